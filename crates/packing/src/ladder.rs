//! Where a pod wants to be, and what it gives up, step by step, when that cannot be had.

use std::sync::Arc;

use model::{
    object::{
        Affinity, Labels, List, NodeAffinity, NodeSelectorTerm, PodAffinity, PodAffinityTerm, Text, Toleration,
        TopologySpreadConstraint,
    },
    requirement::{Operator, Requirement, Requirements},
    snapshot::PreferencePolicy,
    vocabulary::Vocabulary,
};

/// The parts of a pod's spec that say where it may go, as it is written. Pods of a workload share them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Written {
    pub(crate) node_selector: Labels,
    pub(crate) affinity: Option<Arc<Affinity>>,
    pub(crate) tolerations: List<Toleration>,
    pub(crate) spreads: List<TopologySpreadConstraint>,
}

/// Where a pod wants to be, with every label understood.
#[derive(Debug, Clone)]
pub(crate) struct Wishes {
    pub(crate) selector: Requirements,
    /// Alternatives of the required node affinity; none when the pod has no such affinity.
    pub(crate) required: Option<Vec<Requirements>>,
    /// Preferred node affinity by weight, heaviest first.
    preferred: Vec<(i32, Requirements)>,
    pub(crate) affinity: Vec<PodAffinityTerm>,
    preferred_affinity: Vec<(i32, PodAffinityTerm)>,
    pub(crate) anti_affinity: Vec<PodAffinityTerm>,
    preferred_anti_affinity: Vec<(i32, PodAffinityTerm)>,
    pub(crate) spreads: Vec<TopologySpreadConstraint>,
    pub(crate) tolerations: Vec<Toleration>,
}

impl Wishes {
    /// What a spec asks for. Under [`PreferencePolicy::Ignore`] wishes that are no conditions are left out at once:
    /// upstream gives them up one failed attempt at a time, with the same outcome.
    pub(crate) fn new(written: &Written, policy: PreferencePolicy, vocabulary: &mut Vocabulary) -> Self {
        let nothing = Affinity::default();
        let affinity = written.affinity.as_deref().unwrap_or(&nothing);
        let node = affinity.node_affinity.as_ref();
        let is_respected = policy == PreferencePolicy::Respect;
        let preferred = node
            .filter(|_| is_respected)
            .map_or_else(Vec::new, |node| preferred(node, vocabulary));
        let weighted = |pods: Option<&PodAffinity>| pods.filter(|_| is_respected).map_or_else(Vec::new, weighted);
        let terms = |pods: Option<&PodAffinity>| pods.map_or_else(Vec::new, |pods| pods.required.to_vec());
        let spreads = written.spreads.iter().filter(|spread| is_respected || is_hard(spread));
        let labels = written.node_selector.iter().map(|(key, value)| (&**key, &**value));
        Self {
            selector: Requirements::from_labels(labels, vocabulary),
            required: node.and_then(|node| required(node, vocabulary)),
            preferred,
            affinity: terms(affinity.pod_affinity.as_ref()),
            preferred_affinity: weighted(affinity.pod_affinity.as_ref()),
            anti_affinity: terms(affinity.pod_anti_affinity.as_ref()),
            preferred_anti_affinity: weighted(affinity.pod_anti_affinity.as_ref()),
            spreads: spreads.cloned().collect(),
            tolerations: written.tolerations.to_vec(),
        }
    }

    /// Gives up one thing; false when nothing is left to give up. All alternatives of the required node affinity go
    /// before the first preference; a preferred taint is tolerated last, and only when some NodePool has one.
    pub(crate) fn relax(&mut self, has_preferred_taints: bool) -> bool {
        if let Some(alternatives) = self.required.as_mut().filter(|alternatives| alternatives.len() > 1) {
            alternatives.remove(0);
            return true;
        }
        drop_first(&mut self.preferred_affinity)
            || drop_first(&mut self.preferred_anti_affinity)
            || drop_first(&mut self.preferred)
            || self.drop_soft_spread()
            || has_preferred_taints && self.tolerate_preferred_taints()
    }

    fn drop_soft_spread(&mut self) -> bool {
        match self.spreads.iter().position(|spread| !is_hard(spread)) {
            Some(at) => {
                self.spreads.swap_remove(at);
                true
            }
            None => false,
        }
    }

    fn tolerate_preferred_taints(&mut self) -> bool {
        let toleration = Toleration {
            operator: "Exists".into(),
            effect: "PreferNoSchedule".into(),
            ..Toleration::default()
        };
        let is_new = !self.tolerations.contains(&toleration);
        if is_new {
            self.tolerations.push(toleration);
        }
        is_new
    }

    /// What a node must fulfil: node selector, first alternative, and with preferences the heaviest one left.
    pub(crate) fn requirements(&self, with_preferences: bool, vocabulary: &Vocabulary) -> Requirements {
        let mut all = self.selector.clone();
        if let Some((_, preferred)) = self.preferred.first().filter(|_| with_preferences) {
            all.add_all(preferred, vocabulary);
        }
        if let Some(first) = self.required.iter().flatten().next() {
            all.add_all(first, vocabulary);
        }
        all
    }

    /// Everything the pod may ever ask of a node's labels.
    pub(crate) fn all_requirements(&self) -> impl Iterator<Item = &Requirements> {
        let preferred = self.preferred.iter().map(|(_, requirements)| requirements);
        std::iter::once(&self.selector)
            .chain(self.required.iter().flatten())
            .chain(preferred)
    }

    /// Terms of pod affinity that count at this step of the ladder.
    pub(crate) fn affinity_terms(&self) -> impl Iterator<Item = &PodAffinityTerm> {
        let preferred = self.preferred_affinity.iter().map(|(_, term)| term);
        self.affinity.iter().chain(preferred)
    }

    /// Terms of pod anti-affinity that count at this step of the ladder.
    pub(crate) fn anti_affinity_terms(&self) -> impl Iterator<Item = &PodAffinityTerm> {
        let preferred = self.preferred_anti_affinity.iter().map(|(_, term)| term);
        self.anti_affinity.iter().chain(preferred)
    }
}

fn is_hard(spread: &TopologySpreadConstraint) -> bool {
    *spread.when_unsatisfiable == *"DoNotSchedule"
}

fn drop_first<T>(terms: &mut Vec<T>) -> bool {
    let is_droppable = !terms.is_empty();
    if is_droppable {
        terms.remove(0);
    }
    is_droppable
}

fn required(node: &NodeAffinity, vocabulary: &mut Vocabulary) -> Option<Vec<Requirements>> {
    let terms = &node.required.as_ref()?.node_selector_terms;
    Some(terms.iter().map(|term| term_requirements(term, vocabulary)).collect())
}

fn preferred(node: &NodeAffinity, vocabulary: &mut Vocabulary) -> Vec<(i32, Requirements)> {
    let mut terms: Vec<_> = node.preferred.iter().collect();
    terms.sort_by_key(|term| std::cmp::Reverse(term.weight));
    let mut understood = |term: &NodeSelectorTerm| term_requirements(term, vocabulary);
    terms
        .into_iter()
        .map(|term| (term.weight, understood(&term.preference)))
        .collect()
}

fn weighted(pods: &PodAffinity) -> Vec<(i32, PodAffinityTerm)> {
    let mut terms: Vec<_> = pods.preferred.to_vec();
    terms.sort_by_key(|term| std::cmp::Reverse(term.weight));
    terms
        .into_iter()
        .map(|term| (term.weight, term.pod_affinity_term))
        .collect()
}

/// The label conditions of a term; conditions on fields are not understood, upstream refuses such pods beforehand.
pub(crate) fn term_requirements(term: &NodeSelectorTerm, vocabulary: &mut Vocabulary) -> Requirements {
    let mut requirements = Requirements::default();
    for expression in &term.match_expressions {
        let operator = expression.operator.parse().unwrap_or(Operator::In);
        let values = expression.values.iter().map(Text::as_ref);
        let requirement = Requirement::parse(&expression.key, operator, values, vocabulary);
        requirements.add(requirement, vocabulary);
    }
    requirements
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::object::PodSpec;

    use super::*;

    fn wishes(spec: &str, policy: PreferencePolicy, vocabulary: &mut Vocabulary) -> Wishes {
        let spec: PodSpec = serde_json::from_str(spec).unwrap();
        let written = Written {
            node_selector: spec.node_selector.clone(),
            affinity: spec.affinity.clone(),
            tolerations: spec.tolerations.clone(),
            spreads: spec.topology_spread_constraints.clone(),
        };
        Wishes::new(&written, policy, vocabulary)
    }

    const EVERYTHING: &str = r#"{
        "containers": [],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                    { "matchExpressions": [{ "key": "a", "operator": "Exists" }] },
                    { "matchExpressions": [{ "key": "b", "operator": "Exists" }] } ] },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    { "weight": 1, "preference": { "matchExpressions": [{ "key": "light", "operator": "Exists" }] } },
                    { "weight": 9, "preference": { "matchExpressions": [{ "key": "heavy", "operator": "Exists" }] } } ]
            },
            "podAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
                { "weight": 1, "podAffinityTerm": { "topologyKey": "zone" } } ] },
            "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
                { "weight": 1, "podAffinityTerm": { "topologyKey": "host" } } ] }
        },
        "topologySpreadConstraints": [
            { "maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "ScheduleAnyway" },
            { "maxSkew": 1, "topologyKey": "y", "whenUnsatisfiable": "DoNotSchedule" } ]
    }"#;

    #[test]
    fn alternatives_go_before_preferences_and_preferred_taints_are_tolerated_last() {
        let mut wishes = wishes(EVERYTHING, PreferencePolicy::Respect, &mut Vocabulary::new());
        let counts = |wishes: &Wishes| {
            (
                wishes.required.as_ref().map_or(0, Vec::len),
                wishes.preferred_affinity.len(),
                wishes.preferred_anti_affinity.len(),
                wishes.preferred.len(),
                wishes.spreads.len(),
                wishes.tolerations.len(),
            )
        };
        let mut seen = vec![counts(&wishes)];
        while wishes.relax(true) {
            seen.push(counts(&wishes));
        }
        let expected = [
            (2, 1, 1, 2, 2, 0),
            (1, 1, 1, 2, 2, 0),
            (1, 0, 1, 2, 2, 0),
            (1, 0, 0, 2, 2, 0),
            (1, 0, 0, 1, 2, 0),
            (1, 0, 0, 0, 2, 0),
            (1, 0, 0, 0, 1, 0),
            (1, 0, 0, 0, 1, 1),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_heaviest_preference_counts_as_a_requirement_until_it_is_dropped() {
        let mut vocabulary = Vocabulary::new();
        let wishes = wishes(EVERYTHING, PreferencePolicy::Respect, &mut vocabulary);
        let names = |with_preferences| {
            let requirements = wishes.requirements(with_preferences, &vocabulary);
            let names = requirements
                .iter()
                .map(|requirement| vocabulary.key_name(requirement.key()).to_owned());
            names.collect::<BTreeSet<_>>()
        };
        assert_eq!(names(false), BTreeSet::from(["a".to_owned()]));
        assert_eq!(names(true), BTreeSet::from(["a".to_owned(), "heavy".to_owned()]));
    }

    #[test]
    fn ignored_preferences_leave_only_conditions() {
        let mut wishes = wishes(EVERYTHING, PreferencePolicy::Ignore, &mut Vocabulary::new());
        assert_eq!(wishes.spreads.len(), 1);
        assert!(wishes.relax(false), "the first alternative of two");
        assert!(!wishes.relax(false));
    }
}
