//! Is there an order in which every pod could be bound, as far as its neighbours are concerned?
//!
//! The scheduler looks at spread and affinity when it binds a pod, so a plan is sound when some order of binding passes.
//! Two are tried: the planner's own (largest pods first, in laps), and the one that always takes the pod that skews least.
//! They are tried in two worlds: one in which a claim whose domain is open is in none, which is how upstream counts, and
//! the one the plan expects. What fails only in one of them is a doubt.

mod anti_affinity;
mod replay;

use std::collections::BTreeSet;

use model::{
    object::{Affinity, ObjectKey, Pod, Text},
    plan::Plan,
    snapshot::Snapshot,
};

pub(super) use self::replay::Replay;
use self::replay::WorldKind;
use super::{Place, Reason, Rule, Verdict, claim::ClaimView, existing, world::World};
use crate::plugin::{Plugin, node_affinity};

/// All labels that constraints and terms speak of.
pub(super) fn keys(snapshot: &Snapshot, plan: &Plan) -> BTreeSet<Text> {
    let claimed = plan.claims.iter().flat_map(|claim| &claim.pods);
    let existing = plan.existing.iter().flat_map(|node| &node.pods);
    let pods = snapshot.objects().pods.iter().chain(claimed).chain(existing);
    let mut keys: BTreeSet<Text> = pods.flat_map(|pod| keys_of(pod)).collect();
    let defaults = snapshot.settings().default_constraints.iter();
    keys.extend(defaults.map(|constraint| constraint.topology_key.clone()));
    keys
}

fn keys_of(pod: &Pod) -> impl Iterator<Item = Text> {
    let spreads = pod.spec.topology_spread_constraints.iter();
    let affinity = pod.spec.affinity.as_deref();
    let side = |of: fn(&Affinity) -> Option<&model::object::PodAffinity>| {
        let required = affinity.and_then(of).map_or(&[][..], |side| &side.required);
        required.iter().map(|term| term.topology_key.clone())
    };
    spreads
        .map(|constraint| constraint.topology_key.clone())
        .chain(side(|affinity| affinity.pod_affinity.as_ref()))
        .chain(side(|affinity| affinity.pod_anti_affinity.as_ref()))
}

/// Whether a constraint counts nodes that the pod's own node affinity rules out.
fn is_wide(pod: &Pod) -> bool {
    let mut constraints = pod.spec.topology_spread_constraints.iter();
    node_affinity::is_constrained(&pod.spec) && constraints.any(|it| *it.node_affinity_policy == *"Ignore")
}

/// A pod that no order could bind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stuck {
    pub(super) pod: ObjectKey,
    pub(super) place: Place,
    pub(super) rule: Rule,
    /// The node's domain is open for a key the pod is constrained by.
    pub(super) is_open: bool,
    /// The pod measures skew over domains that it may not use itself.
    pub(super) is_wide: bool,
}

pub(super) fn check(snapshot: &Snapshot, world: &World, claims: &[ClaimView], plan: &Plan, verdict: &mut Verdict) {
    let settled = Replay::new(snapshot, world, claims, plan, WorldKind::Settled);
    existing::check(snapshot, world, &settled, verdict);
    anti_affinity::check(snapshot, &settled, claims, verdict);
    let stuck = settled.stuck();
    let has_open = claims.iter().any(|claim| claim.open_keys().next().is_some());
    let expected: BTreeSet<Stuck> = if has_open {
        Replay::new(snapshot, world, claims, plan, WorldKind::Expected).stuck()
    } else {
        stuck.clone()
    };
    let is_known = |list: &BTreeSet<Stuck>, pod: &ObjectKey| list.iter().any(|it| it.pod == *pod);
    for it in &stuck {
        let is_open = it.is_open && !is_known(&expected, &it.pod);
        let is_wide = it.is_wide && it.rule == Rule::Filter(Plugin::PodTopologySpread);
        let reason = is_open.then_some(Reason::OpenDomain);
        report(it, reason.or(is_wide.then_some(Reason::SpreadPolicy)), verdict);
    }
    for it in expected.iter().filter(|it| !is_known(&stuck, &it.pod)) {
        report(it, Some(Reason::OpenDomain), verdict);
    }
}

fn report(stuck: &Stuck, reason: Option<Reason>, verdict: &mut Verdict) {
    let detail = "no order of binding was found in which the pod is admitted";
    verdict.find(reason, stuck.rule, Some(&stuck.pod), Some(&stuck.place), detail);
}
