//! What would kube-scheduler do with these pods and these nodes?
//!
//! Three answers, from the plugins of its default profile ([`plugin`]):
//! - [`Cluster`]: a cluster in memory, in which pods are filtered, scored and bound one by one;
//! - [`judge`]: could every pod of a plan bind where the plan says?
//! - [`rehearsal`]: where would the pods land if the plan were carried out?
//!
//! The behaviour is that of Kubernetes 1.36. Nothing here preempts: a pod without a place stays pending.

mod amounts;
mod class;
mod cluster;
mod judge;
mod node;
pub mod plugin;
pub mod rehearsal;
mod topology;

use model::{plan::Plan, snapshot::Snapshot};

pub use class::ClassId;
pub use cluster::{Cluster, NodeId, Refusal, Spreading};
pub use judge::{Doubt, Place, Reason, Rule, Verdict, Violation, examine, judge};
pub use node::SchedNode;
pub use plugin::Plugin;

/// The nodes that the claims of a plan are expected to become, in the plan's order. A claim that cannot be launched becomes
/// a node without room.
pub fn expected_nodes(snapshot: &Snapshot, plan: &Plan) -> Vec<SchedNode> {
    let nodes = judge::expected_nodes(snapshot, plan).into_iter();
    nodes.map(|node| node.sched_node).collect()
}
