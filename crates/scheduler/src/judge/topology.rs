//! Is there an order in which every pod could be bound, as far as its neighbours are concerned?
//!
//! The scheduler looks at spread and affinity when it binds a pod, so a plan is sound when some order of binding passes.
//! A plan that tells one is believed only if that one passes. Otherwise two are tried: upstream's (largest pods first, in
//! laps), and the one that always takes the pod that skews least.
//! They are tried in two worlds: one in which a claim whose domain is open is in none, which is how upstream counts, and
//! the one the plan expects. What fails only in one of them is a doubt.

mod anti_affinity;
mod excuse;
mod replay;

use std::collections::BTreeSet;

use model::{
    object::{Affinity, ObjectKey, Pod, Text},
    plan::Plan,
    snapshot::Snapshot,
};

pub(super) use self::replay::Replay;
use self::replay::{Counting, WorldKind};
use super::{NO_ORDER, Place, Reason, Rule, Verdict, claim::ClaimView, existing, world::World};

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

/// A pod that no order could bind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stuck {
    pub(super) pod: ObjectKey,
    pub(super) place: Place,
    pub(super) rule: Rule,
    /// Why upstream may have put it there all the same.
    pub(super) excuse: Option<Reason>,
}

pub(super) fn check(snapshot: &Snapshot, world: &World, claims: &[ClaimView], plan: &Plan, verdict: &mut Verdict) {
    let settled = Replay::new(snapshot, world, claims, plan, WorldKind::Settled);
    existing::check(snapshot, world, &settled, verdict);
    anti_affinity::check(snapshot, &settled, claims, verdict);
    let stuck = settled.stuck(Counting::All);
    let has_open = claims.iter().any(|claim| claim.open_keys().next().is_some());
    let expected: BTreeSet<Stuck> = if has_open {
        Replay::new(snapshot, world, claims, plan, WorldKind::Expected).stuck(Counting::All)
    } else {
        stuck.clone()
    };
    let counted_late = if stuck.is_empty() {
        BTreeSet::new()
    } else {
        settled.stuck(Counting::Settled)
    };
    let is_in = |list: &BTreeSet<Stuck>, pod: &ObjectKey| list.iter().any(|it| it.pod == *pod);
    for it in &stuck {
        // A world in which everything binds is a possible one, so what is stuck in the other one only is open.
        let is_open = !is_in(&expected, &it.pod);
        let is_late = !is_in(&counted_late, &it.pod);
        let reason = is_open.then_some(Reason::OpenDomain).or(it.excuse);
        report(it, reason.or(is_late.then_some(Reason::LateDomain)), verdict);
    }
    for it in expected.iter().filter(|it| !is_in(&stuck, &it.pod)) {
        report(it, Some(Reason::OpenDomain), verdict);
    }
}

fn report(stuck: &Stuck, reason: Option<Reason>, verdict: &mut Verdict) {
    verdict.find(reason, stuck.rule, Some(&stuck.pod), Some(&stuck.place), NO_ORDER);
}
