package main

import (
	"context"
	"flag"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/events"
)

// Consolidation is what `consolidate` prints: each method asked by itself, in the order upstream's loop asks them, and
// the method that would have acted.
type Consolidation struct {
	Snapshot string   `json:"snapshot"`
	Nodes    int      `json:"nodes"`
	Acts     string   `json:"acts"`
	Methods  []Method `json:"methods"`
	Warnings []string `json:"warnings"`
}

// Method is one consolidation method's verdict. Events hold the reasons upstream published, by node or claim name.
type Method struct {
	Name       string              `json:"name"`
	Candidates []Candidate         `json:"candidates"`
	Budgets    map[string]int      `json:"budgets"`
	Commands   []Command           `json:"commands"`
	Events     map[string][]string `json:"events"`
	Cost       Cost                `json:"cost"`
}

// Candidate is a node the method may act on.
type Candidate struct {
	Node           string  `json:"node"`
	NodePool       string  `json:"nodePool"`
	Price          float64 `json:"price"`
	DisruptionCost float64 `json:"disruptionCost"`
}

// Command is what the method would do.
type Command struct {
	Decision     string     `json:"decision"`
	Candidates   []string   `json:"candidates"`
	Replacements []Claim    `json:"replacements"`
	Existing     []Existing `json:"existing"`
	Savings      float64    `json:"savings"`
}

func runConsolidate(args []string) error {
	file, err := parse(flag.NewFlagSet("consolidate", flag.ContinueOnError), args)
	if err != nil {
		return err
	}
	snapshot, err := readSnapshot(file)
	if err != nil {
		return err
	}
	ctx, world, err := newWorld(context.Background(), snapshot, 1)
	if err != nil {
		return err
	}
	if err := world.placeBuffers(ctx); err != nil {
		return err
	}
	result := Consolidation{Snapshot: snapshot.Metadata.Name, Nodes: len(world.cluster.DeepCopyNodes()), Warnings: append([]string{}, world.warnings...)}
	for _, method := range world.methods() {
		verdict, err := world.ask(ctx, method)
		if err != nil {
			return err
		}
		result.Methods = append(result.Methods, verdict)
		if result.Acts == "" && len(verdict.Commands) > 0 {
			result.Acts = verdict.Name
		}
	}
	return printJSON(result)
}

// placeBuffers does what a provisioning pass leaves behind for emptiness: how many virtual pods each node carries.
func (w *world) placeBuffers(ctx context.Context) error {
	if !w.options.FeatureGates.CapacityBuffer {
		return nil
	}
	nodes := w.cluster.DeepCopyNodes()
	pods, deleting, err := w.demand(ctx, nodes)
	if err != nil || len(pods) == 0 {
		return err
	}
	scheduler, err := w.provisioner.NewScheduler(ctx, pods, nodes.Active(), deleting, w.schedulerOptions()...)
	if err != nil {
		return err
	}
	results, err := scheduler.Solve(ctx, pods)
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for _, node := range results.ExistingNodes {
		for _, pod := range node.Pods {
			if provisioning.IsVirtualPod(pod) {
				counts[node.ProviderID()]++
			}
		}
	}
	w.cluster.UpdateBufferPodCounts(counts)
	return nil
}

// methods are upstream's three consolidation methods with a validator that agrees at once: upstream waits 15 seconds
// and decides again on a cluster that may have moved, and a snapshot does not move.
func (w *world) methods() []disruption.Method {
	queue := disruption.NewQueue(w.kube, w.events, w.cluster, w.clock, w.provisioner)
	base := disruption.MakeConsolidation(w.clock, w.cluster, w.kube, w.provisioner, w.cloud, w.events, queue)
	agree := disruption.WithValidator(agreeable{})
	return []disruption.Method{
		disruption.NewEmptiness(base, agree),
		disruption.NewMultiNodeConsolidation(base, agree),
		disruption.NewSingleNodeConsolidation(base, agree),
	}
}

type agreeable struct{}

func (agreeable) Validate(_ context.Context, command disruption.Command, _ time.Duration) (disruption.Command, error) {
	return command, nil
}

// ask runs one method the way upstream's disruption controller does.
func (w *world) ask(ctx context.Context, method disruption.Method) (Method, error) {
	w.events.published = nil
	queue := disruption.NewQueue(w.kube, w.events, w.cluster, w.clock, w.provisioner)
	verdict := Method{Name: method.ConsolidationType(), Candidates: []Candidate{}, Commands: []Command{}}
	candidates, totals, err := disruption.GetCandidatesWithTotals(ctx, w.cluster, w.kube, w.events, w.clock, w.cloud,
		method.ShouldDisrupt, method.Class(), queue, nil)
	if err != nil {
		return verdict, err
	}
	for _, candidate := range candidates {
		verdict.Candidates = append(verdict.Candidates, Candidate{
			Node: candidate.Name(), NodePool: candidate.NodePool.Name, Price: candidate.Price,
			DisruptionCost: candidate.RescheduleDisruptionCost,
		})
	}
	slices.SortFunc(verdict.Candidates, func(a, b Candidate) int { return strings.Compare(a.Node, b.Node) })
	if setter, ok := method.(disruption.NodePoolTotalsSetter); ok {
		setter.SetNodePoolTotals(totals)
	}
	budgets, err := disruption.BuildDisruptionBudgetMapping(ctx, w.cluster, w.clock, w.kube, w.cloud, w.events, method.Reason())
	if err != nil {
		return verdict, err
	}
	verdict.Budgets = maps.Clone(budgets)
	var commands []disruption.Command
	verdict.Cost, err = measure(func() (err error) {
		commands, err = method.ComputeCommands(ctx, budgets, candidates...)
		return err
	})
	for _, command := range commands {
		if command.Decision() != disruption.NoOpDecision {
			verdict.Commands = append(verdict.Commands, describeCommand(command))
		}
	}
	verdict.Events = messages(w.events.published)
	return verdict, err
}

func describeCommand(command disruption.Command) Command {
	described := Command{
		Decision:     string(command.Decision()),
		Candidates:   command.SourceNodeNames(),
		Replacements: []Claim{},
		Existing:     existingOf(command.Results.ExistingNodes),
		Savings:      command.EstimatedSavings(),
	}
	slices.Sort(described.Candidates)
	for _, replacement := range command.Replacements {
		described.Replacements = append(described.Replacements, describe(replacement.NodeClaim))
	}
	return described
}

// messages groups event texts by the object they are about.
func messages(published []events.Event) map[string][]string {
	texts := map[string][]string{}
	for _, event := range published {
		object, ok := event.InvolvedObject.(client.Object)
		if !ok {
			continue
		}
		text := event.Reason + ": " + event.Message
		if !slices.Contains(texts[object.GetName()], text) {
			texts[object.GetName()] = append(texts[object.GetName()], text)
		}
	}
	return texts
}
