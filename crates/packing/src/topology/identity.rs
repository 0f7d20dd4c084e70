//! When do two constraints share their counts?
//!
//! Upstream hashes a constraint and trusts the hash. The hash leaves some things out, and equal members of a list cancel
//! each other out in it; what it tells apart is what is told apart here, so that counts are shared by the same pods.

use model::{
    object::{LabelSelector, PodAffinityTerm, Text, Toleration, TopologySpreadConstraint},
    requirement::{Requirement, Requirements},
    vocabulary::KeyId,
};

use super::filter::Filter;

/// What a group of pods is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Evenness over domains.
    Spread,
    /// Near pods.
    Affinity,
    /// Away from pods.
    AntiAffinity,
    /// Away from pods that want to be away: counts those, binds the pods they avoid.
    Inverse,
}

impl Kind {
    /// Upstream's name for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Spread => "topology spread",
            Self::Affinity => "pod affinity",
            Self::AntiAffinity | Self::Inverse => "pod anti-affinity",
        }
    }
}

/// What must be equal for two constraints to share their counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) kind: Kind,
    pub(crate) key: KeyId,
    namespaces: Vec<Text>,
    max_skew: i32,
    selector: Option<SelectorIdentity>,
    filter: Option<FilterIdentity>,
}

type Expression = (Text, Text, Vec<Text>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SelectorIdentity {
    labels: model::object::Labels,
    expressions: Vec<Expression>,
}

/// Of the node filter's requirements only the keys count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FilterIdentity {
    keys: Vec<Vec<KeyId>>,
    honors_affinity: bool,
    honors_taints: bool,
    tolerations: Vec<Toleration>,
}

impl Identity {
    pub(super) fn of_spread(
        key: KeyId,
        namespace: &Text,
        spread: &TopologySpreadConstraint,
        selector: Option<&LabelSelector>,
        filter: &Filter,
    ) -> Self {
        Self {
            kind: Kind::Spread,
            key,
            namespaces: vec![namespace.clone()],
            max_skew: spread.max_skew,
            selector: selector.map(selector_identity),
            filter: Some(filter_identity(filter)),
        }
    }

    pub(super) fn of_term(kind: Kind, key: KeyId, namespaces: Vec<Text>, term: &PodAffinityTerm) -> Self {
        Self {
            kind,
            key,
            namespaces,
            max_skew: i32::MAX,
            selector: term.label_selector.as_ref().map(selector_identity),
            filter: None,
        }
    }
}

fn selector_identity(selector: &LabelSelector) -> SelectorIdentity {
    let mut expressions: Vec<Expression> = selector
        .match_expressions
        .iter()
        .map(|expression| {
            let mut values = expression.values.to_vec();
            values.sort_unstable();
            (expression.key.clone(), expression.operator.clone(), values)
        })
        .collect();
    expressions.sort_unstable();
    expressions.dedup();
    SelectorIdentity {
        labels: selector.match_labels.clone(),
        expressions,
    }
}

fn filter_identity(filter: &Filter) -> FilterIdentity {
    let keys = |alternative: &Requirements| alternative.iter().map(Requirement::key).collect::<Vec<_>>();
    let tolerations = filter.tolerations.clone();
    FilterIdentity {
        keys: odd_ones(filter.alternatives.iter().map(keys).collect(), Vec::cmp),
        honors_affinity: filter.honors_affinity,
        honors_taints: filter.honors_taints,
        tolerations: odd_ones(tolerations, |a, b| toleration_key(a).cmp(&toleration_key(b))),
    }
}

fn toleration_key(toleration: &Toleration) -> (&str, &str, &str, &str, Option<i64>) {
    let view = toleration.view();
    (
        view.key,
        view.operator,
        view.value,
        view.effect,
        toleration.toleration_seconds,
    )
}

/// The members that occur an odd number of times, sorted: pairs cancel out in upstream's hash.
fn odd_ones<T: PartialEq>(mut members: Vec<T>, order: impl Fn(&T, &T) -> std::cmp::Ordering) -> Vec<T> {
    members.sort_by(order);
    let mut odd: Vec<T> = Vec::new();
    for member in members {
        if odd.last() == Some(&member) {
            odd.pop();
        } else {
            odd.push(member);
        }
    }
    odd
}
