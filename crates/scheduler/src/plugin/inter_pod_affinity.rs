//! Is the pod near the pods it wants to be near, and away from those it, or they, cannot stand?
//!
//! A [`Term`] is one entry of a pod's (anti-)affinity with two counts per domain: pods it picks, and pods that own it.
//! The cluster tells it of pods as they are bound.

use std::sync::Arc;

use model::{
    object::{LabelSelector, Pod, PodAffinityTerm, Text},
    snapshot::Snapshot,
};

use super::MAX_NODE_SCORE;

/// What the score counts for.
pub(crate) const WEIGHT: i64 = 2;
/// What a required affinity of a pod that runs counts for when the nodes for a pod it picks are scored.
const HARD_POD_AFFINITY_WEIGHT: i64 = 1;

/// What an entry asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Must be near.
    Affinity,
    /// Must be away.
    AntiAffinity,
    /// Should be near, by a positive weight, or away, by a negative one.
    Preferred(i64),
}

impl Kind {
    /// What one pod that owns the term counts for when the nodes for a pod it picks are scored.
    pub(crate) fn weight_on_others(self) -> i64 {
        match self {
            Self::Affinity => HARD_POD_AFFINITY_WEIGHT,
            Self::AntiAffinity => 0,
            Self::Preferred(weight) => weight,
        }
    }
}

/// In which namespaces a term looks.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Namespaces {
    All,
    Listed(Arc<[Text]>),
}

/// One entry of a pod's (anti-)affinity, with its counts.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    pub(crate) kind: Kind,
    pub(crate) topology_key: Text,
    selector: Option<LabelSelector>,
    namespaces: Namespaces,
    /// Pods it picks, by domain.
    pub(crate) targets: Counts,
    /// Pods that have it, by domain.
    pub(crate) owners: Counts,
}

/// Numbers by domain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    by_domain: Vec<i64>,
    total: i64,
}

impl Counts {
    pub(crate) fn add(&mut self, domain: usize, pods: i64) {
        if self.by_domain.len() <= domain {
            self.by_domain.resize(domain + 1, 0);
        }
        if let Some(count) = self.by_domain.get_mut(domain) {
            *count += pods;
            self.total += pods;
        }
    }

    pub(crate) fn get(&self, domain: usize) -> i64 {
        self.by_domain.get(domain).copied().unwrap_or(0)
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.total == 0
    }
}

impl Term {
    /// All terms of a pod.
    pub(crate) fn of_pod(snapshot: &Snapshot, pod: &Pod) -> Vec<Self> {
        let Some(affinity) = &pod.spec.affinity else {
            return Vec::new();
        };
        let term = |kind, written| Self::new(snapshot, pod, kind, written);
        let mut terms = Vec::new();
        let sides = [
            (affinity.pod_affinity.as_ref(), Kind::Affinity, 1),
            (affinity.pod_anti_affinity.as_ref(), Kind::AntiAffinity, -1),
        ];
        for (side, kind, sign) in sides {
            let required = side.map_or(&[][..], |side| &side.required);
            terms.extend(required.iter().map(|written| term(kind, written)));
            let preferred = side.map_or(&[][..], |side| &side.preferred);
            terms.extend(preferred.iter().map(|written| {
                let kind = Kind::Preferred(sign * i64::from(written.weight));
                term(kind, &written.pod_affinity_term)
            }));
        }
        terms
    }

    fn new(snapshot: &Snapshot, pod: &Pod, kind: Kind, written: &PodAffinityTerm) -> Self {
        Self {
            kind,
            topology_key: written.topology_key.clone(),
            selector: written.label_selector.clone(),
            namespaces: namespaces(snapshot, pod, written),
            targets: Counts::default(),
            owners: Counts::default(),
        }
    }

    /// Whether it is the same entry: of the same kind, picking the same pods over the same topology.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.topology_key == other.topology_key
            && self.selector == other.selector
            && self.namespaces == other.namespaces
    }

    /// Whether it picks a pod.
    pub(crate) fn picks(&self, pod: &Pod) -> bool {
        let is_there = match &self.namespaces {
            Namespaces::All => true,
            Namespaces::Listed(names) => names.contains(&pod.metadata.namespace),
        };
        is_there
            && self
                .selector
                .as_ref()
                .is_some_and(|selector| selector.matches(&pod.metadata.labels))
    }
}

/// - neither names nor selector: the pod's own;
/// - otherwise the names, and the namespaces whose labels the selector picks; an empty selector picks all.
fn namespaces(snapshot: &Snapshot, pod: &Pod, term: &PodAffinityTerm) -> Namespaces {
    let Some(selector) = &term.namespace_selector else {
        if term.namespaces.is_empty() {
            return Namespaces::Listed([pod.metadata.namespace.clone()].into());
        }
        return Namespaces::Listed(term.namespaces.iter().cloned().collect());
    };
    if selector.match_labels.is_empty() && selector.match_expressions.is_empty() {
        return Namespaces::All;
    }
    let objects = snapshot.objects().namespaces.iter();
    let picked = objects.filter(|namespace| selector.matches(&namespace.metadata.labels));
    let picked = picked.map(|namespace| namespace.metadata.name.clone());
    Namespaces::Listed(term.namespaces.iter().cloned().chain(picked).collect())
}

/// Turns sums of weights into scores between nothing and the highest.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "upstream computes with fractions here"
)]
pub(crate) fn normalize(sums: &mut [i64]) {
    let (least, most) = (
        sums.iter().copied().min().unwrap_or(0),
        sums.iter().copied().max().unwrap_or(0),
    );
    for sum in sums {
        *sum = if most > least {
            (MAX_NODE_SCORE as f64 * ((*sum - least) as f64 / (most - least) as f64)) as i64
        } else {
            0
        };
    }
}

#[cfg(test)]
mod tests {
    use model::{
        object::{Namespace, Object},
        snapshot::{Catalog, Objects, Settings, Table, Title},
    };

    use super::*;

    fn snapshot() -> Snapshot {
        let namespace = |json: &str| Arc::new(serde_json::from_str::<Namespace>(json).unwrap());
        let objects = Objects {
            namespaces: Table::new(vec![
                namespace(r#"{"metadata":{"name":"a","labels":{"grade":"gold"}}}"#),
                namespace(r#"{"metadata":{"name":"b"}}"#),
            ]),
            ..Objects::default()
        };
        let title = Title {
            name: String::new(),
            taken_at: "2026-11-16T00:00:00Z".parse().unwrap(),
            origin: String::new(),
        };
        Snapshot::new(title, Settings::default(), objects, Catalog::default())
    }

    #[test]
    fn names_and_selectors_decide_where_a_term_looks() {
        let cases = [
            (r"{}", [false, true]),
            (r#"{"namespaces":["a"]}"#, [true, false]),
            (
                r#"{"namespaceSelector":{"matchLabels":{"grade":"gold"}}}"#,
                [true, false],
            ),
            (
                r#"{"namespaceSelector":{"matchLabels":{"grade":"gold"}},"namespaces":["b"]}"#,
                [true, true],
            ),
            (r#"{"namespaceSelector":{}}"#, [true, true]),
        ];
        let pod = |namespace: &str| {
            let json = format!(r#"{{"metadata":{{"name":"p","namespace":"{namespace}"}},"spec":{{}}}}"#);
            Pod::from_json(json.as_bytes(), &mut model::sharing::Sharing::default()).unwrap()
        };
        for (json, expected) in cases {
            let mut written: PodAffinityTerm = serde_json::from_str(json).unwrap();
            written.label_selector = Some(LabelSelector::default());
            let term = Term::new(&snapshot(), &pod("b"), Kind::Affinity, &written);
            assert_eq!([term.picks(&pod("a")), term.picks(&pod("b"))], expected, "{json}");
        }
    }

    #[test]
    fn scores_span_the_range_of_the_sums() {
        let mut sums = [-10, 0, 5];
        normalize(&mut sums);
        assert_eq!(sums, [0, 66, 100]);
        let mut same = [7, 7];
        normalize(&mut same);
        assert_eq!(same, [0, 0]);
    }
}
