//! What people and dashboards see of the cluster: gauges of pods, nodes, pools and conditions, and events when a
//! condition changes.
//!
//! Gauges are drawn from the state when the metrics page is asked for: nothing is kept per pod or per node, nothing runs
//! in between, and nothing is stale. Counters, histograms and events follow the changes of the state. Only how long
//! pods take to start needs a memory, of the pods that wait; that is the controller `metrics.pod`.

mod nodes;
mod pods;
mod pools;
mod status;
mod transitions;

use std::sync::{Arc, Weak};

use model::object::{CapacityBuffer, Node, NodeClaim, NodeClass, NodePool, Pod};
use runtime::{
    metrics::{Sheet, Source},
    settings::MetricsProfile,
};
use state::{Change, State, Tracked, Transition};

use self::{nodes::NodeFamilies, pods::PodMetrics, status::StatusFamilies, transitions::Conditioned};
use crate::Cluster;

/// Shows and tells what the cluster does, from the first time the future is polled until it is dropped. To be polled by
/// the leader only, because it publishes events. Does nothing when the settings say so.
pub async fn run(cluster: Arc<Cluster>) {
    if cluster.settings().disable_cluster_state_observability {
        return std::future::pending().await;
    }
    let (_observer, pods) = Observer::start(&cluster);
    pods.await;
}

/// Follows the state of a cluster.
struct Observer {
    cluster: Weak<Cluster>,
    pods: Arc<PodMetrics>,
    nodes: NodeFamilies,
    status: StatusFamilies,
}

impl Observer {
    fn start(cluster: &Arc<Cluster>) -> (Arc<Self>, impl Future<Output = ()> + Send + use<>) {
        let observer = Arc::new(Self {
            cluster: Arc::downgrade(cluster),
            pods: Arc::default(),
            nodes: NodeFamilies::new(&cluster.cloud().well_known_labels()),
            status: StatusFamilies::new(cluster.cloud().node_classes()),
        });
        let (queue, pods) = crate::run(Arc::clone(&observer.pods), Arc::clone(cluster));
        let listening = Arc::downgrade(&observer);
        // In one look, so that nothing happens between what is there and what is heard of.
        cluster.look(|state| {
            observer.begin(cluster, state);
            let waiting = state.all::<Pod>().iter().filter(|pod| pods::is_waiting(pod));
            waiting.for_each(|pod| queue.add(pod.metadata.key()));
            cluster.listen(Box::new(move |change, _| {
                if let Some(observer) = listening.upgrade() {
                    observer.see(change);
                }
            }));
        });
        cluster.metrics().show(&observer);
        (observer, pods)
    }

    /// Takes what is there already for new.
    fn begin(&self, cluster: &Cluster, state: &State) {
        self.begin_with::<NodeClaim>(cluster, state);
        self.begin_with::<NodePool>(cluster, state);
        self.begin_with::<Node>(cluster, state);
        self.begin_with::<CapacityBuffer>(cluster, state);
        for class in state.node_classes() {
            let (before, after) = (None, Some(Arc::clone(class)));
            self.follow_class(cluster, &Transition { before, after });
        }
    }

    fn begin_with<T: Conditioned + Tracked>(&self, cluster: &Cluster, state: &State) {
        for object in state.all::<T>().iter() {
            let (before, after) = (None, Some(Arc::clone(object)));
            self.follow(cluster, &Transition { before, after });
        }
    }

    fn see(&self, change: &Change) {
        let Some(cluster) = self.cluster.upgrade() else { return };
        match change {
            Change::NodeClaim(claim) => self.follow(&cluster, claim),
            Change::NodePool(pool) => self.follow(&cluster, pool),
            Change::Node(node) => self.follow(&cluster, node),
            Change::CapacityBuffer(buffer) => self.follow(&cluster, buffer),
            Change::NodeClass(class) => self.follow_class(&cluster, class),
            _ => {}
        }
    }

    fn follow_class(&self, cluster: &Cluster, change: &Transition<NodeClass>) {
        if change.latest().is_some_and(|class| self.status.shows(class)) {
            self.follow(cluster, change);
        }
    }

    fn follow<T: Conditioned>(&self, cluster: &Cluster, change: &Transition<T>) {
        if !T::is_shown(cluster.settings()) {
            return;
        }
        let news = transitions::of(change, cluster.now());
        self.status.count(change, &news);
        if let Some(object) = change.latest() {
            for event in news.events(object.as_ref()) {
                cluster.publish(event);
            }
        }
    }
}

impl Source for Observer {
    fn sheets(&self, profile: MetricsProfile) -> Vec<Sheet> {
        let Some(cluster) = self.cluster.upgrade() else {
            return Vec::new();
        };
        let snapshot = cluster.snapshot();
        let metrics = cluster.metrics();
        let classes: Vec<Arc<NodeClass>> = cluster.look(|state| state.node_classes().cloned().collect());
        let mut sheets = self.status.sheets(&snapshot, &classes, cluster.settings(), profile);
        sheets.extend(self.nodes.sheets(metrics, &snapshot, profile));
        sheets.extend(pools::sheets(metrics, &snapshot, cluster.cloud().node_classes()));
        sheets.extend(cluster.look(|state| pools::cluster_sheets(metrics, &snapshot, state)));
        if profile >= MetricsProfile::Standard {
            sheets.push(pods::state_sheet(metrics, &snapshot));
            sheets.extend(self.pods.waiting_sheets(&cluster));
        }
        sheets
    }
}

#[cfg(test)]
mod tests;
