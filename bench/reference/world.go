package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1beta1 "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers/capacitybuffer"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"
)

// world is upstream as its operator would have assembled it at the moment the snapshot was taken.
type world struct {
	options     *options.Options
	kube        *kube
	cloud       cloudprovider.CloudProvider
	clock       *watchedClock
	chronicles  bool // whether decisions are written down
	cluster     *state.Cluster
	provisioner *provisioning.Provisioner
	events      *recorder
	warnings    []string
}

// newWorld assembles the world and lets upstream's own controllers digest the snapshot. The clock stands still at the
// snapshot's time, so nothing upstream decides depends on how fast this machine is (multi-node consolidation's
// one-minute limit excepted: it is a context deadline).
func newWorld(ctx context.Context, snapshot *Snapshot, workers int) (context.Context, *world, error) {
	log.SetLogger(logr.Discard())
	opts, err := snapshot.options(workers)
	if err != nil {
		return nil, nil, err
	}
	ctx = opts.ToContext(injection.WithControllerName(log.IntoContext(ctx, logr.Discard()), "provisioner"))
	snapshot.registerLabels()
	types, err := snapshot.catalogue()
	if err != nil {
		return nil, nil, err
	}
	objects, skipped, err := snapshot.decode()
	if err != nil {
		return nil, nil, err
	}
	kube, err := newKube(objects)
	if err != nil {
		return nil, nil, err
	}
	w := &world{options: opts, kube: kube, clock: clockAt(snapshot.Metadata.TakenAt), events: &recorder{}}
	if skipped > 0 {
		w.warn("%d object(s) of a kind upstream's core does not know were left out", skipped)
	}
	store := nodeoverlay.NewInstanceTypeStore()
	bare := newProvider(snapshot, types, objects)
	w.cloud = overlay.Decorate(bare, kube, store)
	w.cluster = state.NewCluster(w.clock, kube, w.cloud)
	devices := deviceallocation.NewController(kube)
	buffers := virtualpods.NewVirtualPodCache(kube)
	w.provisioner = provisioning.NewProvisioner(kube, w.events, w.cloud, w.cluster, w.clock, devices, buffers)

	if opts.FeatureGates.NodeOverlay {
		// The overlay controller reads the types as the cloud gives them; the provider serves them with overlays applied.
		controller := nodeoverlay.NewController(w.clock, kube, bare, store, w.cluster)
		if _, err := controller.Reconcile(ctx, reconcile.Request{}); err != nil {
			return nil, nil, fmt.Errorf("applying node overlays: %w", err)
		}
	}
	if opts.FeatureGates.CapacityBuffer {
		if err := w.resolveBuffers(ctx, buffers); err != nil {
			return nil, nil, err
		}
	}
	devices.Hydrate(ctx)
	return ctx, w, w.fillCluster(ctx)
}

func clockAt(at time.Time) *watchedClock {
	if at.IsZero() {
		return &watchedClock{Clock: clock.RealClock{}}
	}
	return &watchedClock{Clock: clocktesting.NewFakeClock(at)}
}

func (w *world) warn(format string, args ...any) {
	w.warnings = append(w.warnings, fmt.Sprintf(format, args...))
}

// fillCluster feeds cluster state in the order in which a restarted operator settles: claims, nodes, pods, daemons.
func (w *world) fillCluster(ctx context.Context) error {
	claims, nodes := &v1.NodeClaimList{}, &corev1.NodeList{}
	pods, daemons := &corev1.PodList{}, &appsv1.DaemonSetList{}
	for _, list := range []client.ObjectList{claims, nodes, pods, daemons} {
		if err := w.kube.List(ctx, list); err != nil {
			return err
		}
	}
	for i := range claims.Items {
		w.cluster.UpdateNodeClaim(&claims.Items[i])
	}
	for i := range nodes.Items {
		if err := w.cluster.UpdateNode(ctx, &nodes.Items[i]); err != nil {
			w.warn("node %s is not in cluster state: %v", nodes.Items[i].Name, err)
		}
	}
	for i := range pods.Items {
		if err := w.cluster.UpdatePod(ctx, &pods.Items[i]); err != nil {
			w.warn("pod %s is not in cluster state: %v", client.ObjectKeyFromObject(&pods.Items[i]), err)
		}
	}
	for i := range daemons.Items {
		if err := w.cluster.UpdateDaemonSet(ctx, &daemons.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// resolveBuffers lets upstream's controller write each CapacityBuffer's status and materialise its virtual pods.
func (w *world) resolveBuffers(ctx context.Context, cache *virtualpods.Cache) error {
	buffers := &autoscalingv1beta1.CapacityBufferList{}
	if err := w.kube.List(ctx, buffers); err != nil {
		return err
	}
	controller := capacitybuffer.NewController(w.kube, noTrigger{}, cache)
	for i := range buffers.Items {
		key := client.ObjectKeyFromObject(&buffers.Items[i])
		if _, err := controller.Reconcile(ctx, reconcile.Request{NamespacedName: key}); err != nil {
			return fmt.Errorf("resolving CapacityBuffer %s: %w", key, err)
		}
	}
	return nil
}

// noTrigger stands for the batching window: the snapshot is one batch.
type noTrigger struct{}

func (noTrigger) Trigger(types.UID) {}
func (noTrigger) TriggerReconcile() {}

// recorder keeps the events, which is where upstream says why it did not act.
type recorder struct{ published []events.Event }

func (r *recorder) Publish(published ...events.Event) {
	r.published = append(r.published, published...)
}
