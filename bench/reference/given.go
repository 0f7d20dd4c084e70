package main

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	reqs "sigs.k8s.io/karpenter/pkg/scheduling"
)

// Given is what upstream's scheduler starts from: printed with the log, so that a difference can be traced to its root.
type Given struct {
	Pods      []string        `json:"pods"`
	Templates []GivenTemplate `json:"templates"`
	Nodes     []GivenNode     `json:"nodes"`
	// Domains are the values of each label that new nodes may have.
	Domains map[string][]string `json:"domains"`
	// Volumes are the alternatives of each pod that has any, as upstream prints requirements.
	Volumes map[string][]string `json:"volumes"`
}

// GivenTemplate is what a NodePool's claims start as.
type GivenTemplate struct {
	NodePool     string                                    `json:"nodePool"`
	Requirements []v1.NodeSelectorRequirementWithMinValues `json:"requirements"`
	Types        []string                                  `json:"types"`
	Remaining    corev1.ResourceList                       `json:"remaining"`
	Daemons      []GivenDaemons                            `json:"daemons"`
}

// GivenDaemons are types on which the same daemons run.
type GivenDaemons struct {
	Types    []string            `json:"types"`
	Overhead corev1.ResourceList `json:"overhead"`
}

// GivenNode is a node with its room.
type GivenNode struct {
	Name        string              `json:"name"`
	Initialized bool                `json:"initialized"`
	Taints      []string            `json:"taints"`
	Labels      map[string]string   `json:"labels"`
	Remaining   corev1.ResourceList `json:"remaining"`
}

func givenOf(scheduler *scheduling.Scheduler, pods []*corev1.Pod) (*Given, error) {
	given := &Given{Pods: podNames(pods), Templates: []GivenTemplate{}, Nodes: []GivenNode{}}
	slices.Sort(given.Pods)
	for _, fill := range []func(*scheduling.Scheduler) error{given.templates, given.nodes, given.domains} {
		if err := fill(scheduler); err != nil {
			return nil, err
		}
	}
	return given, given.volumes(scheduler, pods)
}

func (g *Given) templates(scheduler *scheduling.Scheduler) error {
	templates, err := private[[]*scheduling.NodeClaimTemplate](scheduler, "nodeClaimTemplates")
	if err != nil {
		return err
	}
	remaining, err := private[map[string]corev1.ResourceList](scheduler, "remainingResources")
	if err != nil {
		return err
	}
	groups, err := private[map[*scheduling.NodeClaimTemplate][]scheduling.DaemonOverheadGroup](scheduler, "daemonOverheadGroups")
	if err != nil {
		return err
	}
	for _, template := range *templates {
		entry := GivenTemplate{
			NodePool:     template.NodePoolName,
			Requirements: requirementsOf(template.Requirements),
			Types:        typeNames(template.InstanceTypeOptions),
			Remaining:    (*remaining)[template.NodePoolName],
			Daemons:      []GivenDaemons{},
		}
		for _, group := range (*groups)[template] {
			entry.Daemons = append(entry.Daemons, GivenDaemons{Types: typeNames(group.InstanceTypes), Overhead: group.DaemonOverhead})
		}
		slices.SortFunc(entry.Daemons, func(a, b GivenDaemons) int { return slices.Compare(a.Types, b.Types) })
		g.Templates = append(g.Templates, entry)
	}
	return nil
}

func (g *Given) nodes(scheduler *scheduling.Scheduler) error {
	nodes, err := private[[]*scheduling.ExistingNode](scheduler, "existingNodes")
	if err != nil {
		return err
	}
	for _, node := range *nodes {
		remaining, err := private[corev1.ResourceList](node, "remainingResources")
		if err != nil {
			return err
		}
		taints := []string{}
		for _, taint := range node.Taints() {
			taints = append(taints, taint.ToString())
		}
		g.Nodes = append(g.Nodes, GivenNode{
			Name:        node.Name(),
			Initialized: node.Initialized(),
			Taints:      taints,
			Labels:      node.Labels(),
			Remaining:   remaining.DeepCopy(),
		})
	}
	return nil
}

func (g *Given) domains(scheduler *scheduling.Scheduler) error {
	topology, err := private[*scheduling.Topology](scheduler, "topology")
	if err != nil {
		return err
	}
	groups, err := private[map[string]scheduling.TopologyDomainGroup](*topology, "domainGroups")
	if err != nil {
		return err
	}
	g.Domains = map[string][]string{}
	for key, group := range *groups {
		g.Domains[key] = slices.AppendSeq([]string{}, maps.Keys(group))
		slices.Sort(g.Domains[key])
	}
	return nil
}

func (g *Given) volumes(scheduler *scheduling.Scheduler, pods []*corev1.Pod) error {
	byPod, err := private[map[types.UID][]reqs.Requirements](scheduler, "volumeReqsByPod")
	if err != nil {
		return err
	}
	g.Volumes = map[string][]string{}
	for _, pod := range pods {
		name := client.ObjectKeyFromObject(pod).String()
		for _, alternative := range (*byPod)[pod.UID] {
			g.Volumes[name] = append(g.Volumes[name], strings.TrimSpace(alternative.String()))
		}
	}
	return nil
}
