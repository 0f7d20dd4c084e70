//! How long pods have waited for a place, and which claim each is meant to run on. Forgotten with the pod.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::condition::names::nodepool::NODE_REGISTRATION_HEALTHY;
use jiff::Timestamp;
use model::object::{NodeClaimName, NodePool, NodePoolName, ObjectKey, Pod, condition};

use crate::{State, Transition};

/// When a pod that needs a place was seen and decided on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodTimes {
    /// First seen to need a place.
    pub acknowledged: Option<Timestamp>,
    /// First decided on, whatever the outcome.
    pub decided: Option<Timestamp>,
    /// First found a place, if it has one since.
    pub schedulable: Option<Timestamp>,
    /// First found a place in a pool whose nodes register, if it has one since.
    pub schedulable_in_healthy_pool: Option<Timestamp>,
}

/// What is known of pods that need a place.
#[derive(Debug, Default)]
pub(crate) struct PodTimings {
    times: BTreeMap<ObjectKey, PodTimes>,
    claims: BTreeMap<ObjectKey, NodeClaimName>,
    pods: BTreeMap<NodeClaimName, BTreeSet<ObjectKey>>,
    /// Pods that are to be told where they are meant to run.
    hinted: BTreeSet<ObjectKey>,
}

impl PodTimings {
    fn forget(&mut self, pod: &ObjectKey) {
        self.times.remove(pod);
        self.unmap(pod);
    }

    fn unmap(&mut self, pod: &ObjectKey) {
        let Some(claim) = self.claims.remove(pod) else { return };
        self.hinted.remove(pod);
        if let Some(pods) = self.pods.get_mut(&claim) {
            pods.remove(pod);
            if pods.is_empty() {
                self.pods.remove(&claim);
            }
        }
    }

    /// The times of a pod, decided on now; and how long it had waited, if this is the first decision.
    fn decide(&mut self, pod: &ObjectKey, now: Timestamp) -> (&mut PodTimes, Option<Duration>) {
        let times = self.times.entry(pod.clone()).or_default();
        let acknowledged = times.acknowledged.filter(|_| times.decided.is_none());
        times.decided.get_or_insert(now);
        let waited = acknowledged.map(|since| Duration::try_from(now.duration_since(since)).unwrap_or_default());
        (times, waited)
    }
}

impl State {
    /// Notes that a pod needs a place, the first time.
    pub fn acknowledge_pod(&mut self, pod: &ObjectKey, now: Timestamp) {
        if self.get::<Pod>(pod).is_some() {
            let times = self.pod_timings.times.entry(pod.clone()).or_default();
            times.acknowledged.get_or_insert(now);
        }
    }

    /// Notes that no place was found for a pod. Returns how long it waited for the decision, if it is the first.
    pub fn mark_unschedulable(&mut self, pod: &ObjectKey, now: Timestamp) -> Option<Duration> {
        self.get::<Pod>(pod)?;
        self.pod_timings.unmap(pod);
        let (times, waited) = self.pod_timings.decide(pod, now);
        (times.schedulable, times.schedulable_in_healthy_pool) = (None, None);
        waited
    }

    /// Notes that a place was found for a pod: on machines of a pool, or on a node of somebody else's. Returns how long it
    /// waited for the decision, if it is the first. Nothing for a pod that is bound: it moves, it does not wait.
    pub fn mark_schedulable(
        &mut self,
        pod: &ObjectKey,
        pool: Option<&NodePoolName>,
        now: Timestamp,
    ) -> Option<Duration> {
        if self.get::<Pod>(pod)?.node_name.is_some() {
            return None;
        }
        let is_healthy = pool.is_some_and(|pool| self.do_nodes_register(pool));
        let (times, waited) = self.pod_timings.decide(pod, now);
        times.schedulable.get_or_insert(now);
        let healthy_since = times.schedulable_in_healthy_pool.unwrap_or(now);
        times.schedulable_in_healthy_pool = is_healthy.then_some(healthy_since);
        waited
    }

    /// Notes that a pod is meant to run on a claim's machine.
    pub fn map_pod_to_claim(&mut self, pod: &ObjectKey, claim: &NodeClaimName) {
        if self.get::<Pod>(pod).is_some() && self.claim_of_pod(pod) != Some(claim) {
            let timings = &mut self.pod_timings;
            timings.unmap(pod);
            timings.claims.insert(pod.clone(), claim.clone());
            timings.pods.entry(claim.clone()).or_default().insert(pod.clone());
        }
    }

    /// Notes that a pod is to be told where it is meant to run, before that machine opens. Nothing for a pod that is meant to
    /// run nowhere in particular; forgotten when it is meant to run elsewhere.
    pub fn hint_pod(&mut self, pod: &ObjectKey) {
        if self.claim_of_pod(pod).is_some() {
            self.pod_timings.hinted.insert(pod.clone());
        }
    }

    /// Whether a pod is to be told where it is meant to run.
    pub fn is_hinted(&self, pod: &ObjectKey) -> bool {
        self.pod_timings.hinted.contains(pod)
    }

    /// The claim on whose machine a pod is meant to run.
    pub fn claim_of_pod(&self, pod: &ObjectKey) -> Option<&NodeClaimName> {
        self.pod_timings.claims.get(pod)
    }

    /// All pods that are meant to run on some claim's machine, with that claim.
    pub fn promises(&self) -> impl Iterator<Item = (&ObjectKey, &NodeClaimName)> {
        self.pod_timings.claims.iter()
    }

    /// The pods that are meant to run on a claim's machine, in their order.
    pub fn pods_of_claim(&self, claim: &NodeClaimName) -> impl Iterator<Item = &ObjectKey> {
        self.pod_timings.pods.get(claim).into_iter().flatten()
    }

    /// When a pod was seen and decided on; nothing when it never needed a place.
    pub fn pod_times(&self, pod: &ObjectKey) -> PodTimes {
        self.pod_timings.times.get(pod).copied().unwrap_or_default()
    }

    /// Forgets when a pod was seen and decided on, and where it is meant to run: it runs, or has ended.
    pub fn forget_pod_times(&mut self, pod: &ObjectKey) {
        self.pod_timings.forget(pod);
    }

    pub(crate) fn follow_pod(&mut self, pod: &Transition<Pod>) {
        if let Some(before) = pod.before.as_ref().filter(|_| pod.ends_before()) {
            self.pod_timings.forget(&before.metadata.key());
            self.mark_unconsolidated();
        }
        let node = |pod: &Pod| pod.node_name.clone();
        let is_newly_bound = pod.after.as_ref().is_some_and(|after| {
            after.node_name.is_some()
                && !after.is_terminal()
                && pod.before.as_ref().and_then(|before| node(before)) != after.node_name
        });
        if is_newly_bound {
            self.mark_unconsolidated();
        }
    }

    fn do_nodes_register(&self, pool: &NodePoolName) -> bool {
        let pool = self.get::<NodePool>(&ObjectKey::cluster_scoped(pool.as_str()));
        pool.is_some_and(|pool| condition::holds(&pool.status.conditions, NODE_REGISTRATION_HEALTHY))
    }
}
