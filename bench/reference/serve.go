package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
)

// solveQuestion is one line put to `serve`.
type solveQuestion struct {
	File string `json:"file"`
	// Runs is how often to solve, each time from a fresh scheduler; 0 means once.
	Runs    int  `json:"runs"`
	Workers int  `json:"workers"`
	Log     bool `json:"log"`
}

// solveAnswer is one line `serve` prints: a plan for each run, or what went wrong.
type solveAnswer struct {
	Plans []*Plan `json:"plans,omitempty"`
	Error string  `json:"error,omitempty"`
}

// runServe answers questions line by line, so that thousands of small snapshots do not each pay for a process.
func runServe(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		if err := encoder.Encode(reply(lines.Bytes())); err != nil {
			return err
		}
	}
	return lines.Err()
}

func reply(line []byte) solveAnswer {
	asked := solveQuestion{}
	if err := json.Unmarshal(line, &asked); err != nil {
		return solveAnswer{Error: err.Error()}
	}
	plans, err := asked.solve()
	if err != nil {
		return solveAnswer{Error: err.Error()}
	}
	return solveAnswer{Plans: plans}
}

// solve starts from a fresh world each time, because upstream's own state remembers what it planned.
func (q solveQuestion) solve() ([]*Plan, error) {
	snapshot, err := readSnapshot(q.File)
	if err != nil {
		return nil, err
	}
	var plans []*Plan
	for range max(1, q.Runs) {
		ctx, world, err := newWorld(context.Background(), snapshot, max(1, q.Workers))
		if err != nil {
			return nil, err
		}
		world.chronicles = q.Log
		plan, err := world.solve(ctx)
		if err != nil {
			return nil, err
		}
		plan.Snapshot, plan.Workers = snapshot.Metadata.Name, max(1, q.Workers)
		plans = append(plans, plan)
	}
	return plans, nil
}
