//! Which labels will a node have that is yet to be launched?
//!
//! Who says it, the strongest first: the plan and the NodePool's template, the offering, the instance type, a constraint
//! of one value. A key that only a constraint of several values names gets one of them; a custom key without values gets
//! some integer. Such open labels are tried value by value, all open keys in step.

use std::collections::BTreeMap;

use model::{
    object::{NodePool, Text},
    plan::PlannedClaim,
    requirement::{Requirement, Requirements},
    vocabulary::Vocabulary,
};

use super::supply::{OfferingView, Promised, Type};
use crate::plugin::node_affinity::NodeLabels;

/// How many values of an open label are tried.
const TRIES: usize = 8;

/// Older names of labels, which kubelets and cloud controllers still set.
const ALIASES: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

/// What a claim says of its node's labels.
#[derive(Debug)]
pub(super) struct ClaimLabels {
    /// Decided by plan and template.
    decided: BTreeMap<Text, Text>,
    /// Left to the cloud.
    constrained: Promised,
    requirements: Requirements,
}

impl ClaimLabels {
    pub(super) fn new(
        claim: &PlannedClaim,
        pool: &NodePool,
        hostname: &Text,
        requirements: Requirements,
        vocabulary: &Vocabulary,
    ) -> Self {
        let mut decided: BTreeMap<Text, Text> = BTreeMap::new();
        decided.extend(pool.spec.template.metadata.labels.iter().cloned());
        decided.extend(claim.labels.iter().cloned());
        decided.insert("karpenter.sh/nodepool".into(), pool.metadata.name.clone());
        for key in ["karpenter.sh/registered", "karpenter.sh/initialized"] {
            decided.insert(key.into(), "true".into());
        }
        decided.insert("kubernetes.io/hostname".into(), hostname.clone());
        if let Some(class) = &pool.spec.template.spec.node_class_ref {
            let key = format!("{}/{}", class.group, class.kind.to_lowercase());
            decided.insert(key.into(), class.name.clone());
        }
        let mut constrained = Promised::of(&requirements, vocabulary);
        for requirement in requirements.iter().filter(|it| it.is_complement()) {
            if !vocabulary.is_well_known(requirement.key()) {
                let key = vocabulary.key_name(requirement.key()).into();
                constrained.open.insert(key, some_integers(requirement, vocabulary));
            }
        }
        Self {
            decided,
            constrained,
            requirements,
        }
    }

    /// Whether the key's value depends on more than type and offering.
    fn is_open(&self, key: &str, kind: &Type, offering: &OfferingView) -> bool {
        let is_known = self.decided.contains_key(key)
            || offering.labels.known.contains_key(key)
            || kind.labels.known.contains_key(key)
            || self.constrained.known.contains_key(key);
        !is_known && (kind.labels.open.contains_key(key) || self.constrained.open.contains_key(key))
    }
}

/// The node launched for a claim as a type by way of an offering, with one choice of open labels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Launched<'a> {
    pub(super) claim: &'a ClaimLabels,
    pub(super) kind: &'a Type,
    pub(super) offering: &'a OfferingView,
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) choice: usize,
}

impl<'a> Launched<'a> {
    /// All choices that differ in the keys asked for.
    pub(super) fn choices(self, mut keys: impl Iterator<Item = &'a str>) -> impl Iterator<Item = Self> {
        let is_open = keys.any(|key| self.claim.is_open(canonical(key), self.kind, self.offering));
        (0..if is_open { TRIES } else { 1 }).map(move |choice| Self { choice, ..self })
    }

    /// Whether anybody says anything of a label.
    pub(super) fn promises(&self, key: &str) -> bool {
        let key = canonical(key);
        let types = [&self.kind.labels, &self.offering.labels, &self.claim.constrained];
        self.claim.decided.contains_key(key)
            || types
                .iter()
                .any(|it| it.known.contains_key(key) || it.open.contains_key(key))
    }

    /// All labels, decided and promised, for the keys that anybody names.
    pub(super) fn all(&self) -> BTreeMap<Text, Text> {
        let sources = [&self.claim.constrained, &self.kind.labels, &self.offering.labels];
        let keys = sources.iter().flat_map(|it| it.known.keys().chain(it.open.keys()));
        let keys = keys.chain(self.claim.decided.keys());
        keys.filter_map(|key| Some((key.clone(), self.label(key)?.into())))
            .collect()
    }

    fn open(&self, key: &str) -> Option<&'a str> {
        let admits = |value: &&Text| {
            let key = self.vocabulary.key(key);
            let requirement = key.and_then(|key| self.claim.requirements.get(key));
            requirement.is_none_or(|requirement| requirement.has(value, self.vocabulary))
        };
        let of_type = self.kind.labels.open.get(key);
        let values = of_type.or_else(|| self.claim.constrained.open.get(key))?;
        let values: Vec<&Text> = values.iter().filter(admits).collect();
        let at = self.choice.checked_rem(values.len())?;
        values.get(at).map(|value| &***value)
    }
}

impl NodeLabels for Launched<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        let key = canonical(key);
        let known = self
            .claim
            .decided
            .get(key)
            .or_else(|| self.offering.labels.known.get(key))
            .or_else(|| self.kind.labels.known.get(key))
            .or_else(|| self.claim.constrained.known.get(key));
        known.map(AsRef::as_ref).or_else(|| self.open(key))
    }
}

fn canonical(key: &str) -> &str {
    ALIASES.iter().find(|(old, _)| *old == key).map_or(key, |(_, new)| new)
}

/// A few of the integers upstream may choose for a label.
fn some_integers(requirement: &Requirement, vocabulary: &Vocabulary) -> Vec<Text> {
    let drawn = (0..64).filter_map(|draw| requirement.any(vocabulary, draw * 0x9e37_79b9));
    let mut drawn: Vec<Text> = drawn.map(Text::from).collect();
    drawn.sort();
    drawn.dedup();
    drawn.truncate(TRIES);
    drawn
}
