package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// kube is the API server upstream sees: the snapshot's objects behind the reads an informer cache offers. The published
// fake client keeps JSON and converts on every read, which takes minutes at 20,000 pods; this one keeps typed objects.
// A write only replaces the object in memory, because upstream's own controllers record their verdicts as status.
type kube struct {
	client.Client // panics on what nobody here calls

	mu      sync.RWMutex
	objects map[schema.GroupVersionKind]map[client.ObjectKey]client.Object
	indexes map[index]map[string][]client.Object
}

// index names one field a kind can be listed by.
type index struct {
	kind  schema.GroupVersionKind
	field string
}

func newKube(objects []client.Object) (*kube, error) {
	k := &kube{
		objects: map[schema.GroupVersionKind]map[client.ObjectKey]client.Object{},
		indexes: map[index]map[string][]client.Object{},
	}
	for _, object := range objects {
		kind, err := apiutil.GVKForObject(object, scheme.Scheme)
		if err != nil {
			return nil, err
		}
		key := client.ObjectKeyFromObject(object)
		if _, twice := k.objects[kind][key]; twice {
			return nil, fmt.Errorf("%s %s stands twice in the snapshot", kind.Kind, key)
		}
		k.put(kind, object)
	}
	return k, nil
}

func (k *kube) put(kind schema.GroupVersionKind, object client.Object) {
	if k.objects[kind] == nil {
		k.objects[kind] = map[client.ObjectKey]client.Object{}
	}
	k.objects[kind][client.ObjectKeyFromObject(object)] = object
	clear(k.indexes)
}

func (k *kube) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(into, scheme.Scheme)
	if err != nil {
		return err
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	object, ok := k.objects[kind][key]
	if !ok {
		// A real client leaves the namespace out where the kind has none, and upstream counts on it.
		object, ok = k.objects[kind][client.ObjectKey{Name: key.Name}]
	}
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
	return nil
}

func (k *kube) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(list, scheme.Scheme)
	if err != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	options := (&client.ListOptions{}).ApplyOptions(opts)
	found, err := k.find(kind, options)
	if err != nil {
		return err
	}
	items := make([]runtime.Object, len(found))
	for i, object := range found {
		if options.UnsafeDisableDeepCopy != nil && *options.UnsafeDisableDeepCopy {
			items[i] = object
		} else {
			items[i] = object.DeepCopyObject()
		}
	}
	return meta.SetList(list, items)
}

// find returns what the options select, sorted by namespace and name so that a run can be repeated.
func (k *kube) find(kind schema.GroupVersionKind, options *client.ListOptions) ([]client.Object, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	candidates, err := k.byField(kind, options)
	if err != nil {
		return nil, err
	}
	found := []client.Object{}
	for _, object := range candidates {
		if options.Namespace != "" && object.GetNamespace() != options.Namespace {
			continue
		}
		if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		found = append(found, object)
	}
	return found, nil
}

// byField narrows a kind to the one field requirement upstream's callers use at a time.
func (k *kube) byField(kind schema.GroupVersionKind, options *client.ListOptions) ([]client.Object, error) {
	field, value := "", ""
	if options.FieldSelector != nil && !options.FieldSelector.Empty() {
		requirements := options.FieldSelector.Requirements()
		if len(requirements) != 1 {
			return nil, fmt.Errorf("listing %s by %s: only one field at a time is indexed", kind.Kind, options.FieldSelector)
		}
		field, value = requirements[0].Field, requirements[0].Value
	}
	name := index{kind: kind, field: field}
	if _, built := k.indexes[name]; !built {
		entries, err := k.buildIndex(name)
		if err != nil {
			return nil, err
		}
		k.indexes[name] = entries
	}
	return k.indexes[name][value], nil
}

func (k *kube) buildIndex(name index) (map[string][]client.Object, error) {
	entries := map[string][]client.Object{}
	for _, object := range k.objects[name.kind] {
		value, err := fieldOf(object, name.field)
		if err != nil {
			return nil, err
		}
		entries[value] = append(entries[value], object)
	}
	for _, objects := range entries {
		slices.SortFunc(objects, func(a, b client.Object) int {
			return strings.Compare(client.ObjectKeyFromObject(a).String(), client.ObjectKeyFromObject(b).String())
		})
	}
	return entries, nil
}

// fieldOf is the value an object is indexed under; the empty field puts all objects of a kind under "".
func fieldOf(object client.Object, field string) (string, error) {
	if field == "" {
		return "", nil
	}
	switch o := object.(type) {
	case *corev1.Pod:
		if field == "spec.nodeName" {
			return o.Spec.NodeName, nil
		}
	case *corev1.Node:
		if field == "spec.providerID" {
			return o.Spec.ProviderID, nil
		}
	case *v1.NodeClaim:
		if field == "status.providerID" {
			return o.Status.ProviderID, nil
		}
	case *storagev1.VolumeAttachment:
		if field == "spec.nodeName" {
			return o.Spec.NodeName, nil
		}
	}
	return "", fmt.Errorf("no index on %s of %T", field, object)
}

// Patch keeps the object as the caller wants it to be.
func (k *kube) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	kind, err := apiutil.GVKForObject(object, scheme.Scheme)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(kind, object.DeepCopyObject().(client.Object))
	return nil
}

func (k *kube) Status() client.SubResourceWriter { return statusWriter{kube: k} }
func (k *kube) Scheme() *runtime.Scheme          { return scheme.Scheme }

// statusWriter is kube's status sub-resource.
type statusWriter struct {
	client.SubResourceWriter // panics on what nobody here calls
	kube                     *kube
}

func (s statusWriter) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.kube.Patch(ctx, object, patch)
}
