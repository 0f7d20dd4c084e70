package main

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	reqs "sigs.k8s.io/karpenter/pkg/scheduling"
)

// Plan is what `solve` prints. Pods are written namespace/name.
type Plan struct {
	Snapshot  string            `json:"snapshot"`
	Pods      int               `json:"pods"`
	Workers   int               `json:"workers"`
	Construct Cost              `json:"construct"`
	Solve     Cost              `json:"solve"`
	Samples   []int64           `json:"samples,omitempty"`
	Price     float64           `json:"price"`
	Claims    []Claim           `json:"claims"`
	Existing  []Existing        `json:"existing"`
	Errors    map[string]string `json:"errors"`
	Ignored   map[string]string `json:"ignored"`
	Warnings  []string          `json:"warnings"`
	Given     *Given            `json:"given,omitempty"`
	Log       []Decision        `json:"log,omitempty"`
}

// Cost is what one step took. Bytes and allocations are totals over the step, not what was live at its end. CPU time is
// that of all threads, garbage collection included; on a busy machine it says more than the time on the wall.
type Cost struct {
	Nanoseconds    int64  `json:"nanoseconds"`
	CPUNanoseconds int64  `json:"cpuNanoseconds"`
	BytesAllocated uint64 `json:"bytesAllocated"`
	Allocations    uint64 `json:"allocations"`
}

// Claim is one new node: its types are those that survived, in the order Solve left them (the catalogue's order).
// CheapestPrice is the least launchable offering the requirements allow, null when no type has one.
type Claim struct {
	NodePool     string                                    `json:"nodePool"`
	Pods         []string                                  `json:"pods"`
	Requirements []v1.NodeSelectorRequirementWithMinValues `json:"requirements"`
	// Launch are the requirements of the NodeClaim that would be created, but for the instance types.
	Launch        []v1.NodeSelectorRequirementWithMinValues `json:"launch"`
	InstanceTypes []string                                  `json:"instanceTypes"`
	CheapestPrice *float64                                  `json:"cheapestPrice"`
	Requests      corev1.ResourceList                       `json:"requests"`
}

// Existing is a node of the cluster that gets pods.
type Existing struct {
	Node string   `json:"node"`
	Pods []string `json:"pods"`
}

// claimsOf describes the claims as Solve left them. It must run before TruncateInstanceTypes, which sorts in place.
func claimsOf(solved []*scheduling.NodeClaim) map[*scheduling.NodeClaim]Claim {
	described := map[*scheduling.NodeClaim]Claim{}
	for _, claim := range solved {
		described[claim] = describe(claim)
	}
	return described
}

func describe(claim *scheduling.NodeClaim) Claim {
	return Claim{
		NodePool:      claim.NodePoolName,
		Pods:          podNames(claim.Pods),
		Requirements:  requirementsOf(claim.Requirements),
		InstanceTypes: typeNames(claim.InstanceTypeOptions),
		CheapestPrice: cheapest(claim.InstanceTypeOptions, claim.Requirements),
		Requests:      claim.Spec.Resources.Requests,
	}
}

func podNames(pods []*corev1.Pod) []string {
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, client.ObjectKeyFromObject(pod).String())
	}
	return names
}

func typeNames(types []*cloudprovider.InstanceType) []string {
	names := make([]string, 0, len(types))
	for _, it := range types {
		names = append(names, it.Name)
	}
	return names
}

// requirementsOf lists requirements by key; a key bounded on both sides takes two entries, as in a NodeClaim.
func requirementsOf(requirements reqs.Requirements) []v1.NodeSelectorRequirementWithMinValues {
	listed := []v1.NodeSelectorRequirementWithMinValues{}
	for _, key := range slices.Sorted(maps.Keys(requirements)) {
		listed = append(listed, reqs.NewRequirements(requirements[key]).NodeSelectorRequirements()...)
	}
	return listed
}

func cheapest(types []*cloudprovider.InstanceType, requirements reqs.Requirements) *float64 {
	price := math.MaxFloat64
	for _, it := range types {
		for _, offering := range it.Offerings.Launchable().Compatible(requirements) {
			price = min(price, offering.Price)
		}
	}
	if price == math.MaxFloat64 {
		return nil
	}
	return &price
}

func existingOf(nodes []*scheduling.ExistingNode) []Existing {
	used := []Existing{}
	for _, node := range nodes {
		if len(node.Pods) > 0 {
			used = append(used, Existing{Node: node.Name(), Pods: podNames(node.Pods)})
		}
	}
	return used
}

// launchOf is what the NodeClaim to be created asks for. It comes last: upstream writes into the claim as it makes it.
func launchOf(claim *scheduling.NodeClaim) []v1.NodeSelectorRequirementWithMinValues {
	asked := claim.ToNodeClaim().Spec.Requirements
	asked = slices.DeleteFunc(asked, func(r v1.NodeSelectorRequirementWithMinValues) bool {
		return r.Key == corev1.LabelInstanceTypeStable
	})
	slices.SortStableFunc(asked, func(a, b v1.NodeSelectorRequirementWithMinValues) int { return strings.Compare(a.Key, b.Key) })
	return asked
}
