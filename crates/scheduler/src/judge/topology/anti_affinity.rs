//! Could a required anti-affinity be broken, wherever the cloud launches the claims?

use std::collections::{BTreeMap, BTreeSet};

use model::{
    object::{ObjectKey, Pod, Text},
    snapshot::Snapshot,
};

use super::replay::Replay;
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

/// A pod of the plan on a node whose domain is open for some key.
struct Open<'a> {
    pod: &'a Pod,
    claim: &'a ClaimView,
}

/// Looks at pairs of pods of which one has an open domain; pairs on settled nodes are the replay's business.
pub(super) fn check(snapshot: &Snapshot, replay: &Replay, claims: &[ClaimView], verdict: &mut Verdict) {
    let open: Vec<Open<'_>> = claims
        .iter()
        .filter(|claim| claim.open_keys().next().is_some())
        .flat_map(|claim| claim.pods.iter().map(move |pod| Open { pod, claim }))
        .collect();
    if open.is_empty() {
        return;
    }
    let by_place: BTreeMap<&Place, &ClaimView> = claims.iter().map(|claim| (&claim.place, claim)).collect();
    let mut found: BTreeSet<(ObjectKey, Place, ObjectKey)> = BTreeSet::new();
    for binding in &replay.bindings {
        let terms = required(snapshot, &binding.pod);
        let here = by_place.get(&binding.place);
        for other in &open {
            if here.is_some_and(|here| here.place == other.claim.place) {
                continue;
            }
            let theirs = required(snapshot, other.pod);
            let clash = |terms: &[Term], picked: &Pod| {
                terms.iter().any(|term| {
                    let own = here.map(|here| domains(here, &term.topology_key));
                    let own = own.unwrap_or_else(|| replay.domain_of(binding, &term.topology_key));
                    let shared = own
                        .iter()
                        .flatten()
                        .any(|it| domains(other.claim, &term.topology_key).contains(&Some(it.clone())));
                    term.picks(picked) && shared
                })
            };
            if clash(&terms, other.pod) || clash(&theirs, &binding.pod) {
                found.insert((key_of(&binding.pod), binding.place.clone(), key_of(other.pod)));
            }
        }
    }
    let rule = Rule::Filter(Plugin::InterPodAffinity);
    for (pod, place, other) in found {
        let detail = format!(
            "it may end up in the domain of {}/{}, which it must avoid",
            other.namespace, other.name
        );
        verdict.doubt(Reason::OpenDomain, rule, Some(&pod), Some(&place), detail);
    }
}

fn required(snapshot: &Snapshot, pod: &Pod) -> Vec<Term> {
    let mut terms = Term::of_pod(snapshot, pod);
    terms.retain(|term| term.kind == Kind::AntiAffinity);
    terms
}

fn domains(claim: &ClaimView, key: &Text) -> BTreeSet<Option<Text>> {
    claim.domains.get(key).cloned().unwrap_or_default()
}
