package main

import (
	"context"
	"errors"
	"flag"
	"runtime"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"
)

func runSolve(args []string) error {
	flags := flag.NewFlagSet("solve", flag.ContinueOnError)
	workers := flags.Int("workers", 5, "goroutines that try nodes for a pod; 5 is what upstream's benchmark uses, 1 its default")
	repeat := flags.Int("repeat", 1, "solve this often, each time from a fresh scheduler; the fastest run is printed")
	chronicles := flags.Bool("log", false, "write down each decision, in order")
	file, err := parse(flags, args)
	if err != nil {
		return err
	}
	snapshot, err := readSnapshot(file)
	if err != nil {
		return err
	}
	ctx, world, err := newWorld(context.Background(), snapshot, *workers)
	if err != nil {
		return err
	}
	world.chronicles = *chronicles
	var best *Plan
	var samples []int64
	for range *repeat {
		plan, err := world.solve(ctx)
		if err != nil {
			return err
		}
		samples = append(samples, plan.Solve.Nanoseconds)
		if best == nil || plan.Solve.Nanoseconds < best.Solve.Nanoseconds {
			best = plan
		}
	}
	best.Snapshot, best.Workers, best.Samples = snapshot.Metadata.Name, *workers, samples
	return printJSON(best)
}

// solve does what Provisioner.Schedule does, step by step, so that Solve can be measured apart from the rest.
func (w *world) solve(ctx context.Context) (*Plan, error) {
	plan := &Plan{Claims: []Claim{}, Existing: []Existing{}, Errors: map[string]string{}, Warnings: append([]string{}, w.warnings...)}
	nodes := w.cluster.DeepCopyNodes()
	pods, deleting, err := w.demand(ctx, nodes)
	if err != nil {
		return nil, err
	}
	if plan.Ignored, err = w.ignored(ctx); err != nil {
		return nil, err
	}
	plan.Pods = len(pods)
	if len(pods) == 0 {
		return plan, nil
	}
	var scheduler *scheduling.Scheduler
	plan.Construct, err = measure(func() (err error) {
		scheduler, err = w.provisioner.NewScheduler(ctx, pods, nodes.Active(), deleting, w.schedulerOptions()...)
		return err
	})
	if errors.Is(err, provisioning.ErrNodePoolsNotFound) {
		for _, pod := range pods {
			plan.Errors[client.ObjectKeyFromObject(pod).String()] = "no dynamic nodepools found"
		}
		return plan, nil
	}
	if err != nil {
		return nil, err
	}
	var written *chronicle
	if w.chronicles {
		if plan.Given, err = givenOf(scheduler, pods); err != nil {
			return nil, err
		}
		if written, err = newChronicle(scheduler, pods); err != nil {
			return nil, err
		}
		w.clock.chronicle, ctx = written, watchedContext{Context: ctx, chronicle: written}
		defer func() { w.clock.chronicle = nil }()
	}
	var results scheduling.Results
	plan.Solve, err = measure(func() (err error) {
		results, err = scheduler.Solve(ctx, pods)
		return err
	})
	if err != nil {
		return nil, err
	}
	if w.chronicles {
		plan.Log = written.decisions
	}
	w.fill(ctx, plan, results)
	return plan, nil
}

// demand is what one provisioning pass schedules: pending pods, and the pods of nodes that are going away.
func (w *world) demand(ctx context.Context, nodes state.StateNodes) ([]*corev1.Pod, sets.Set[types.UID], error) {
	pending, err := w.provisioner.GetPendingPods(ctx)
	if err != nil {
		return nil, nil, err
	}
	leaving, err := nodes.Deleting().CurrentlyReschedulablePods(ctx, w.kube, w.clock, w.events)
	if err != nil {
		return nil, nil, err
	}
	deleting := sets.New[types.UID]()
	for _, pod := range leaving {
		deleting.Insert(pod.UID)
	}
	return append(pending, leaving...), deleting, nil
}

// ignored are the provisionable pods GetPendingPods leaves out, and why.
func (w *world) ignored(ctx context.Context) (map[string]string, error) {
	ignored := map[string]string{}
	pods, err := nodeutils.GetProvisionablePods(ctx, w.kube)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if err := w.provisioner.Validate(ctx, pod); err != nil {
			ignored[client.ObjectKeyFromObject(pod).String()] = err.Error()
		}
	}
	return ignored, nil
}

func (w *world) schedulerOptions() []scheduling.Options {
	opts := []scheduling.Options{
		scheduling.DisableReservedCapacityFallback,
		scheduling.NumConcurrentReconciles(int(w.options.CPURequests / 1000)),
		scheduling.MinValuesPolicy(w.options.MinValuesPolicy),
	}
	if w.options.PreferencePolicy == options.PreferencePolicyIgnore {
		opts = append(opts, scheduling.IgnorePreferences)
	}
	return opts
}

// fill writes the results down. Claims that no longer meet minValues once upstream keeps only its 600 cheapest types
// turn into errors, as they do in a provisioning pass; the types printed are those before that cut.
func (w *world) fill(ctx context.Context, plan *Plan, results scheduling.Results) {
	described := claimsOf(results.NewNodeClaims)
	results = results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes)
	for _, claim := range results.NewNodeClaims {
		entry := described[claim]
		entry.Launch = launchOf(claim)
		plan.Claims = append(plan.Claims, entry)
		if entry.CheapestPrice != nil {
			plan.Price += *entry.CheapestPrice
		}
	}
	plan.Existing = existingOf(results.ExistingNodes)
	for pod, err := range results.PodErrors {
		plan.Errors[client.ObjectKeyFromObject(pod).String()] = err.Error()
	}
}

// measure runs a step on a collected heap and says what it cost.
func measure(step func() error) (Cost, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start, used := time.Now(), cpuTime()
	err := step()
	elapsed, used := time.Since(start), cpuTime()-used
	runtime.ReadMemStats(&after)
	return Cost{
		Nanoseconds:    elapsed.Nanoseconds(),
		CPUNanoseconds: used,
		BytesAllocated: after.TotalAlloc - before.TotalAlloc,
		Allocations:    after.Mallocs - before.Mallocs,
	}, err
}

// cpuTime is what this process has used of the processors so far, in nanoseconds.
func cpuTime() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
