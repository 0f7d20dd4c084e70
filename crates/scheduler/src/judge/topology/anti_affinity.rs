//! Could a required anti-affinity be broken, wherever the cloud launches the claims?

use std::collections::{BTreeMap, BTreeSet};

use model::{
    object::{ObjectKey, Text},
    snapshot::Snapshot,
};

use super::replay::{Binding, Replay};
use crate::{
    judge::{
        Place, Reason, Rule, Verdict,
        claim::{ClaimView, key_of},
    },
    plugin::{
        Plugin,
        inter_pod_affinity::{Kind, Term},
    },
};

/// Looks at pairs of pods of which one has an open domain; pairs on settled nodes are the replay's business.
pub(super) fn check(snapshot: &Snapshot, replay: &Replay, claims: &[ClaimView], verdict: &mut Verdict) {
    let is_open = |claim: &&ClaimView| claim.open_keys().next().is_some();
    let by_place: BTreeMap<&Place, &ClaimView> = claims.iter().map(|claim| (&claim.place, claim)).collect();
    let sides: Vec<Side<'_>> = replay
        .bindings
        .iter()
        .map(|it| Side::new(snapshot, it, &by_place))
        .collect();
    for claim in claims.iter().filter(is_open) {
        let (inside, outside): (Vec<_>, Vec<_>) = sides.iter().partition(|side| side.binding.place == claim.place);
        for one in inside {
            for other in &outside {
                if let Some(key) = one.clash(other, replay).or_else(|| other.clash(one, replay)) {
                    report(one, other, &key, verdict);
                }
            }
        }
    }
}

/// A pod of the plan and its place.
struct Side<'a> {
    binding: &'a Binding,
    claim: Option<&'a ClaimView>,
    terms: Vec<Term>,
}

impl<'a> Side<'a> {
    fn new(snapshot: &Snapshot, binding: &'a Binding, claims: &BTreeMap<&Place, &'a ClaimView>) -> Self {
        let mut terms = Term::of_pod(snapshot, &binding.pod);
        terms.retain(|term| term.kind == Kind::AntiAffinity);
        Self {
            claim: claims.get(&binding.place).copied(),
            binding,
            terms,
        }
    }

    /// The topology over which one of its terms may be broken by the other pod; settled pairs aside.
    fn clash(&self, other: &Self, replay: &Replay) -> Option<Text> {
        let picking = self.terms.iter().filter(|term| term.picks(&other.binding.pod));
        let mut keys = picking.map(|term| &term.topology_key);
        keys.find(|key| {
            let (own, theirs) = (self.domains(key, replay), other.domains(key, replay));
            own.len() + theirs.len() > 2 && own.iter().any(|it| it.is_some() && theirs.contains(it))
        })
        .cloned()
    }

    fn domains(&self, key: &Text, replay: &Replay) -> BTreeSet<Option<Text>> {
        let of_claim = self.claim.and_then(|claim| claim.domains.get(key)).cloned();
        of_claim.unwrap_or_else(|| replay.domain_of(self.binding, key))
    }

    /// Whether the claim says nothing of the topology, so that upstream records nothing.
    fn is_unrecorded(&self, key: &Text) -> bool {
        self.claim.is_some_and(|claim| !claim.constrained.contains(key))
    }
}

fn report(one: &Side<'_>, other: &Side<'_>, key: &Text, verdict: &mut Verdict) {
    let ObjectKey { namespace, name } = key_of(&other.binding.pod);
    let detail = format!("it may end up in the same {key} as {namespace}/{name}, which must be kept apart");
    let is_unrecorded = one.is_unrecorded(key) || other.is_unrecorded(key);
    let reason = is_unrecorded.then_some(Reason::UnrecordedDomain);
    let (pod, place) = (key_of(&one.binding.pod), &one.binding.place);
    verdict.find(
        reason,
        Rule::Filter(Plugin::InterPodAffinity),
        Some(&pod),
        Some(place),
        detail,
    );
}
