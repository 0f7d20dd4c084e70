//! Which zone is each pending pod bound to? For the gauge by effective zone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::labels::ZONE;
use model::object::{NodeSelectorTerm, Pod, PodPhase};

/// Pending pods by the zone they must run in; `flexible` where there are several, `none` where there is none.
pub(crate) fn counts(pods: &[Arc<Pod>]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod.status.phase == PodPhase::Pending) {
        *counts.entry(effective(pod)).or_default() += 1;
    }
    counts
}

/// The zone of a pod by its own selector and required affinity. The first term speaks for the affinity, as it does when
/// pods are planned for.
fn effective(pod: &Pod) -> String {
    let selected = pod.spec.node_selector.get(ZONE).map(|zone| BTreeSet::from([&**zone]));
    let required = pod.spec.affinity.as_ref().and_then(|affinity| {
        let required = affinity.node_affinity.as_ref()?.required.as_ref()?;
        zones(required.node_selector_terms.first()?)
    });
    let zones = match (selected, required) {
        (Some(one), Some(two)) => one.intersection(&two).copied().collect(),
        (one, two) => match one.or(two) {
            Some(zones) => zones,
            None => return "flexible".to_owned(),
        },
    };
    let mut zones = zones.into_iter();
    match (zones.next(), zones.next()) {
        (None, _) => "none".to_owned(),
        (Some(zone), None) => zone.to_owned(),
        _ => "flexible".to_owned(),
    }
}

fn zones(term: &NodeSelectorTerm) -> Option<BTreeSet<&str>> {
    let mut of_zone = term.match_expressions.iter();
    let of_zone = of_zone.find(|expression| *expression.key == *ZONE && *expression.operator == *"In")?;
    Some(of_zone.values.iter().map(|zone| &**zone).collect())
}
