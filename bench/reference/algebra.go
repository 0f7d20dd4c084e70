package main

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"

	"go.uber.org/multierr"
	corev1 "k8s.io/api/core/v1"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// question is one line of input: two sets of requirements and values to probe them with.
type question struct {
	A      []requirement `json:"a"`
	B      []requirement `json:"b"`
	Values []string      `json:"values"`
}

type requirement struct {
	Key       string   `json:"key"`
	Operator  string   `json:"operator"`
	Values    []string `json:"values,omitempty"`
	MinValues *int     `json:"minValues,omitempty"`
}

// answer is one line of output. Lists are sorted, so that map order never shows.
type answer struct {
	A                   []description `json:"a"`
	B                   []description `json:"b"`
	Sum                 []description `json:"sum"`
	Overlaps            []overlap     `json:"overlaps"`
	Intersects          []string      `json:"intersects"`
	Compatible          []string      `json:"compatible"`
	CompatibleWellKnown []string      `json:"compatibleWellKnown"`
	Text                string        `json:"text"`
}

// description is everything that can be asked of one requirement of a set.
type description struct {
	Key      string        `json:"key"`
	Operator string        `json:"operator"`
	Len      int           `json:"len"`
	Text     string        `json:"text"`
	Has      []bool        `json:"has"`
	API      []requirement `json:"api"`
}

type overlap struct {
	Key  string `json:"key"`
	Both bool   `json:"both"`
}

// runAlgebra answers questions about upstream's requirement algebra, line by line.
func runAlgebra(in io.Reader, out io.Writer) error {
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		var q question
		if err := decoder.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := encoder.Encode(answerTo(q)); err != nil {
			return err
		}
	}
}

func answerTo(q question) answer {
	a, b, sum := setOf(q.A), setOf(q.B), setOf(q.A)
	sum.Add(b.Values()...)
	return answer{
		A:                   describeSet(a, q.Values),
		B:                   describeSet(b, q.Values),
		Sum:                 describeSet(sum, q.Values),
		Overlaps:            overlaps(a, b),
		Intersects:          texts(a.Intersects(b)),
		Compatible:          texts(a.Compatible(b)),
		CompatibleWellKnown: texts(a.Compatible(b, scheduling.AllowUndefinedWellKnownLabels)),
		Text:                sum.String(),
	}
}

func setOf(requirements []requirement) scheduling.Requirements {
	set := scheduling.NewRequirements()
	for _, r := range requirements {
		values := slices.Clone(r.Values) // upstream normalises values in place
		set.Add(scheduling.NewRequirementWithFlexibility(r.Key, corev1.NodeSelectorOperator(r.Operator), r.MinValues, values...))
	}
	return set
}

func describeSet(set scheduling.Requirements, values []string) []description {
	descriptions := []description{}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		r := set.Get(key)
		d := description{Key: key, Operator: string(r.Operator()), Len: r.Len(), Text: r.String(), Has: []bool{}, API: []requirement{}}
		for _, value := range values {
			d.Has = append(d.Has, r.Has(value))
		}
		for _, entry := range scheduling.NewRequirements(r).NodeSelectorRequirements() {
			d.API = append(d.API, written(entry))
		}
		descriptions = append(descriptions, d)
	}
	return descriptions
}

func written(r v1.NodeSelectorRequirementWithMinValues) requirement {
	return requirement{Key: r.Key, Operator: string(r.Operator), Values: r.Values, MinValues: r.MinValues}
}

func overlaps(a, b scheduling.Requirements) []overlap {
	result := []overlap{}
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if b.Has(key) {
			result = append(result, overlap{Key: key, Both: a.Get(key).HasIntersection(b.Get(key))})
		}
	}
	return result
}

func texts(err error) []string {
	result := []string{}
	for _, e := range multierr.Errors(err) {
		result = append(result, e.Error())
	}
	slices.Sort(result)
	return result
}
