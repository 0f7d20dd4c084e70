package main

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
)

// Decision is what became of one pod taken from the queue.
type Decision struct {
	Pod string `json:"pod"`
	// Attempts counts the tries for this pod since it was taken: each but the last ended in a relaxation.
	Attempts int `json:"attempts"`
	// Place is "node", "claim" (one opened earlier), "new" (a claim opened for this pod), or "none" (back to the queue).
	Place string `json:"place"`
	Node  string `json:"node,omitempty"`
	// Claim counts claims in the order they were opened.
	Claim        *int                                      `json:"claim,omitempty"`
	NodePool     string                                    `json:"nodePool,omitempty"`
	Requirements []v1.NodeSelectorRequirementWithMinValues `json:"requirements,omitempty"`
	// Types is how many instance types the claim has left with the pod on it.
	Types int `json:"types,omitempty"`
}

// chronicle writes decisions down while Solve runs. Solve has no hook of its own, but it asks two things we give it:
// the clock each time before it takes a pod from the queue, and the context each time before it tries to place one. What
// changed in the scheduler's lists between two such questions is what it decided.
type chronicle struct {
	claims *[]*scheduling.NodeClaim
	nodes  *[]*scheduling.ExistingNode

	pods      []*corev1.Pod // Solve sorts them in place: at the first question they are the queue
	queue     []*corev1.Pod
	started   bool
	current   *Decision
	opened    map[*scheduling.NodeClaim]int
	held      map[*scheduling.NodeClaim]int
	onNode    []int
	decisions []Decision
}

func newChronicle(scheduler *scheduling.Scheduler, pods []*corev1.Pod) (*chronicle, error) {
	claims, err := private[[]*scheduling.NodeClaim](scheduler, "newNodeClaims")
	if err != nil {
		return nil, err
	}
	nodes, err := private[[]*scheduling.ExistingNode](scheduler, "existingNodes")
	if err != nil {
		return nil, err
	}
	return &chronicle{
		claims: claims,
		nodes:  nodes,
		pods:   pods,
		opened: map[*scheduling.NodeClaim]int{},
		held:   map[*scheduling.NodeClaim]int{},
		onNode: make([]int, len(*nodes)),
	}, nil
}

// private is the address of a field upstream keeps to itself.
func private[T any](of any, name string) (*T, error) {
	field := reflect.ValueOf(of).Elem().FieldByName(name)
	if want := reflect.TypeFor[T](); !field.IsValid() || field.Type() != want {
		return nil, fmt.Errorf("upstream's %T has no field %s of type %s", of, name, want)
	}
	return (*T)(unsafe.Pointer(field.UnsafeAddr())), nil
}

// taking is called before a pod is taken from the queue: the one taken last has its place or goes back. The pod that is
// next when Solve sees no more progress is not tried, and no decision.
func (c *chronicle) taking() {
	c.settle()
	if !c.started {
		c.queue, c.started = slices.Clone(c.pods), true
	} else if c.current != nil {
		c.decisions = append(c.decisions, *c.current)
		if c.current.Place == "none" {
			c.queue = append(c.queue, c.queue[0])
		}
		c.queue = c.queue[1:]
	}
	c.current = nil
	if len(c.queue) > 0 {
		c.current = &Decision{Pod: client.ObjectKeyFromObject(c.queue[0]).String(), Place: "none"}
	}
}

// trying is called before each attempt to place the pod taken last.
func (c *chronicle) trying() {
	c.settle()
	if c.current != nil {
		c.current.Attempts++
	}
}

// settle finds where a pod was added since it last looked.
func (c *chronicle) settle() {
	if c.current == nil {
		return
	}
	for i, node := range *c.nodes {
		if len(node.Pods) != c.onNode[i] {
			c.onNode[i] = len(node.Pods)
			c.current.Place, c.current.Node = "node", node.Name()
			return
		}
	}
	for _, claim := range *c.claims {
		if len(claim.Pods) != c.held[claim] {
			c.held[claim] = len(claim.Pods)
			c.current.Place = "claim"
			if _, known := c.opened[claim]; !known {
				c.opened[claim] = len(c.opened)
				c.current.Place = "new"
			}
			number := c.opened[claim]
			c.current.Claim, c.current.NodePool = &number, claim.NodePoolName
			c.current.Requirements = requirementsOf(claim.Requirements)
			c.current.Types = len(claim.InstanceTypeOptions)
			return
		}
	}
}

// watchedClock tells a chronicle when Solve looks at the time.
type watchedClock struct {
	clock.Clock
	chronicle *chronicle
}

func (w *watchedClock) Since(t time.Time) time.Duration {
	if w.chronicle != nil && calledBy("(*Scheduler).Solve") {
		w.chronicle.taking()
	}
	return w.Clock.Since(t)
}

// watchedContext tells a chronicle when Solve asks whether it may go on.
type watchedContext struct {
	context.Context
	chronicle *chronicle
}

func (w watchedContext) Err() error {
	if calledBy("(*Scheduler).trySchedule") {
		w.chronicle.trying()
	}
	return w.Context.Err()
}

// calledBy tells whether the caller of this function's caller is the named method.
func calledBy(method string) bool {
	callers := make([]uintptr, 1)
	if runtime.Callers(3, callers) == 0 {
		return false
	}
	frame, _ := runtime.CallersFrames(callers).Next()
	return strings.HasSuffix(frame.Function, method)
}
