package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// errReadOnly answers every call that would change a cloud: a snapshot only decides.
var errReadOnly = errors.New("the reference decides on a snapshot and launches nothing")

// provider serves the snapshot's catalogue.
type provider struct {
	types   []*cloudprovider.InstanceType
	byPool  map[string][]*cloudprovider.InstanceType
	classes []schema.GroupKind
}

var _ cloudprovider.CloudProvider = (*provider)(nil)

func newProvider(snapshot *Snapshot, types []*cloudprovider.InstanceType, objects []client.Object) *provider {
	p := &provider{types: types, byPool: map[string][]*cloudprovider.InstanceType{}, classes: nodeClasses(objects)}
	for pool, names := range snapshot.NodePoolInstanceTypes {
		offered := []*cloudprovider.InstanceType{}
		for _, it := range types {
			if slices.Contains(names, it.Name) {
				offered = append(offered, it)
			}
		}
		p.byPool[pool] = offered
	}
	return p
}

// nodeClasses are the kinds of node class the snapshot's pools and claims refer to: all of them are ours to manage.
func nodeClasses(objects []client.Object) []schema.GroupKind {
	var classes []schema.GroupKind
	for _, object := range objects {
		var ref *v1.NodeClassReference
		switch o := object.(type) {
		case *v1.NodePool:
			ref = o.Spec.Template.Spec.NodeClassRef
		case *v1.NodeClaim:
			ref = o.Spec.NodeClassRef
		}
		if ref != nil && !slices.Contains(classes, ref.GroupKind()) {
			classes = append(classes, ref.GroupKind())
		}
	}
	slices.SortFunc(classes, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return classes
}

func (p *provider) GetInstanceTypes(_ context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	if types, ok := p.byPool[pool.Name]; ok {
		return types, nil
	}
	return p.types, nil
}

func (p *provider) GetSupportedNodeClasses() []status.Object {
	var classes []status.Object
	for _, kind := range p.classes {
		class := &nodeClass{}
		class.SetGroupVersionKind(kind.WithVersion("v1"))
		classes = append(classes, class)
	}
	return classes
}

func (p *provider) Name() string                                 { return "snapshot" }
func (p *provider) RepairPolicies() []cloudprovider.RepairPolicy { return nil }

func (p *provider) Create(context.Context, *v1.NodeClaim) (*v1.NodeClaim, error) {
	return nil, errReadOnly
}
func (p *provider) Delete(context.Context, *v1.NodeClaim) error         { return errReadOnly }
func (p *provider) Get(context.Context, string) (*v1.NodeClaim, error)  { return nil, errReadOnly }
func (p *provider) List(context.Context) ([]*v1.NodeClaim, error)       { return nil, errReadOnly }
func (p *provider) Reboot(context.Context, *v1.NodeClaim, string) error { return errReadOnly }
func (p *provider) IsDrifted(context.Context, *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	return "", nil
}

// nodeClass stands for any cloud's node class: upstream only asks for its group and kind.
type nodeClass struct{ unstructured.Unstructured }

func (n *nodeClass) GetConditions() []status.Condition { return nil }
func (n *nodeClass) SetConditions([]status.Condition)  {}
func (n *nodeClass) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions().For(n, opts...)
}
