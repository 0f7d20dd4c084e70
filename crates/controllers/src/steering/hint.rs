//! Which pods are told where they are meant to run (`status.nominatedNodeName`)?
//!
//! kube-scheduler tries a nominated pod on that node first, keeps the room there free of pods of no higher priority, and
//! takes the nomination back when the pod finds no place at all. Two rules keep that from making things worse:
//! - Only pods whose place does not depend on who is bound before them. A pod that must be spread over zones may be refused
//!   in its zone at the wrong moment, while everybody else's room is kept from it.
//! - Only when a rehearsal leaves fewer pods behind with the nominations than without them.

use std::collections::BTreeSet;

use api::labels::HOSTNAME;
use model::{
    object::{ObjectKey, Pod, PodAffinity, PodSpec},
    plan::Plan,
    snapshot::Snapshot,
};
use scheduler::rehearsal::rehearse;

/// Above so many pods times nodes a plan is not rehearsed: nobody is nominated.
const LARGEST_REHEARSAL: usize = 4_000_000;
/// The scheduler that we know to take a nomination back.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The pods of a plan to be nominated, of those it would like to be; none when that would not help.
pub(crate) fn worthwhile(snapshot: &Snapshot, plan: &Plan) -> BTreeSet<ObjectKey> {
    let nodes = snapshot.objects().nodes.iter().count() + plan.claims.len();
    if plan.placed().saturating_mul(nodes) > LARGEST_REHEARSAL {
        return BTreeSet::new();
    }
    let safely = nominating(plan, may_be_nominated);
    let pods: BTreeSet<ObjectKey> = safely.nominations().map(|(_, pod)| pod.metadata.key()).collect();
    if pods.is_empty() {
        return pods;
    }
    let left_over = |plan: &Plan| rehearse(snapshot, plan).pending.len();
    let without = left_over(&nominating(plan, |_| false));
    if without == 0 || left_over(&safely) >= without {
        return BTreeSet::new();
    }
    pods
}

/// The plan with only some of its nominations.
fn nominating(plan: &Plan, keep: impl Fn(&Pod) -> bool) -> Plan {
    let mut plan = plan.clone();
    for claim in &mut plan.claims {
        let pods = &claim.pods;
        let is_kept = |at: &u32| pods.get(*at as usize).is_some_and(|pod| keep(pod));
        claim.nominated.retain(is_kept);
    }
    plan
}

/// Whether a nomination cannot hurt this pod.
pub(crate) fn may_be_nominated(pod: &Pod) -> bool {
    is_waiting(pod) && is_of_default_scheduler(&pod.spec) && can_be_taken_back(pod) && !depends_on_other_nodes(pod)
}

/// Whether a pod still has no place at all. A stand-in of a buffer never gets one, and is no pod.
pub(crate) fn is_waiting(pod: &Pod) -> bool {
    pod.node_name.is_none()
        && pod.is_active()
        && pod.status.nominated_node_name.is_none()
        && pod.spec.scheduling_gates.is_empty()
        && !pod.metadata.uid.is_unset()
        && !crate::provisioning::is_stand_in(pod)
}

/// Whether the cluster's default scheduler binds the pod.
pub(crate) fn is_of_default_scheduler(spec: &PodSpec) -> bool {
    matches!(&*spec.scheduler_name, "" | DEFAULT_SCHEDULER)
}

/// kube-scheduler leaves the nomination of a pod that may not preempt as it is, also when the pod finds no place.
fn can_be_taken_back(pod: &Pod) -> bool {
    *pod.spec.preemption_policy != *"Never"
}

/// Whether where a pod may go depends on pods of other nodes: required affinities and spreads over more than one host.
pub(crate) fn depends_on_other_nodes(pod: &Pod) -> bool {
    let mut spreads = pod.spec.topology_spread_constraints.iter();
    let affinity = pod.spec.affinity.as_ref();
    let is_wide = |terms: &Option<PodAffinity>| terms.as_ref().is_some_and(has_wide_terms);
    spreads.any(|spread| *spread.when_unsatisfiable == *"DoNotSchedule" && *spread.topology_key != *HOSTNAME)
        || affinity.is_some_and(|affinity| is_wide(&affinity.pod_affinity) || is_wide(&affinity.pod_anti_affinity))
}

/// Whether a required term spans more than one host.
pub(crate) fn has_wide_terms(affinity: &PodAffinity) -> bool {
    affinity.required.iter().any(|term| *term.topology_key != *HOSTNAME)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: &Value, status: &Value) -> Pod {
        let metadata = json!({"name": "web", "namespace": "team", "uid": "1"});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
    }

    #[test]
    fn only_pods_that_a_nomination_cannot_hurt_are_nominated() {
        let spread = |key: &str, when: &str| {
            let spread = json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when});
            json!({"topologySpreadConstraints": [spread]})
        };
        let apart = |key: &str| {
            let term = json!([{"topologyKey": key}]);
            json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}})
        };
        let zone = "topology.kubernetes.io/zone";
        let cases = [
            (json!({}), json!({}), true),
            (json!({"schedulerName": "default-scheduler"}), json!({}), true),
            (json!({"schedulerName": "batch"}), json!({}), false),
            (json!({"preemptionPolicy": "Never"}), json!({}), false),
            (json!({"schedulingGates": [{"name": "quota"}]}), json!({}), false),
            (json!({"nodeName": "n"}), json!({}), false),
            (json!({}), json!({"nominatedNodeName": "n"}), false),
            (json!({}), json!({"phase": "Failed"}), false),
            (spread(zone, "DoNotSchedule"), json!({}), false),
            (spread(zone, "ScheduleAnyway"), json!({}), true),
            (spread(HOSTNAME, "DoNotSchedule"), json!({}), true),
            (apart(zone), json!({}), false),
            (apart(HOSTNAME), json!({}), true),
        ];
        for (spec, status, expected) in cases {
            assert_eq!(may_be_nominated(&pod(&spec, &status)), expected, "{spec}");
        }
    }
}
