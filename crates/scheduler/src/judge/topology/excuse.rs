//! Why upstream may plan what no order of binding allows.

use model::{
    object::{Pod, Toleration},
    snapshot::Snapshot,
};

use crate::{
    judge::Reason,
    plugin::{
        Plugin,
        inter_pod_affinity::{Kind, Term},
        node_affinity,
    },
};

/// The first known looseness of upstream that explains why the plugin refuses the pod.
pub(super) fn excuse(snapshot: &Snapshot, pod: &Pod, plugin: Plugin) -> Option<Reason> {
    match plugin {
        Plugin::PodTopologySpread if is_wide(pod) => Some(Reason::SpreadPolicy),
        Plugin::PodTopologySpread if is_relaxed(snapshot, pod) => Some(Reason::FreshGroup),
        Plugin::InterPodAffinity if founds_its_own(snapshot, pod) => Some(Reason::OwnGroup),
        _ => None,
    }
}

/// Whether a constraint counts nodes that the pod's own node affinity rules out.
fn is_wide(pod: &Pod) -> bool {
    let mut constraints = pod.spec.topology_spread_constraints.iter();
    node_affinity::is_constrained(&pod.spec) && constraints.any(|it| *it.node_affinity_policy == *"Ignore")
}

/// Whether a step of upstream's ladder changes what its groups are told apart by: node affinity terms and tolerations.
fn is_relaxed(snapshot: &Snapshot, pod: &Pod) -> bool {
    let affinity = pod.spec.affinity.as_ref().and_then(|it| it.node_affinity.as_ref());
    let required = affinity.and_then(|it| it.required.as_ref());
    let has_terms = required.is_some_and(|it| it.node_selector_terms.len() > 1);
    let mut pools = snapshot.objects().node_pools.iter();
    let is_soft = |taint: &model::object::Taint| *taint.effect == *"PreferNoSchedule";
    let is_armed = pools.any(|pool| pool.spec.template.spec.taints.iter().any(is_soft));
    has_terms || is_armed && !pod.spec.tolerations.iter().any(tolerates_all_soft)
}

fn tolerates_all_soft(toleration: &Toleration) -> bool {
    let Toleration {
        key,
        operator,
        value,
        effect,
        ..
    } = toleration;
    key.is_empty() && value.is_empty() && **operator == *"Exists" && **effect == *"PreferNoSchedule"
}

/// Whether the pod is picked by its own required affinity, and its node affinity may keep it from the others.
fn founds_its_own(snapshot: &Snapshot, pod: &Pod) -> bool {
    let mut terms = Term::of_pod(snapshot, pod);
    terms.retain(|term| term.kind == Kind::Affinity);
    !terms.is_empty() && terms.iter().all(|term| term.picks(pod)) && node_affinity::is_constrained(&pod.spec)
}
