//! Do pods lie evenly over the domains of a topology?
//!
//! A constraint counts the pods its selector picks, per value of a node label, over the nodes that its policies admit.
//! One [`Constraint`] is kept per class of pods and per entry of its spec; the cluster tells it of nodes and pods.

mod default_selector;
mod score;

pub use default_selector::default_selector;
pub(crate) use score::{SoftSpread, WEIGHT, normalize};

use model::object::{LabelSelector, LabelSelectorRequirement, List, Pod, Text, TopologySpreadConstraint};

/// What a constraint does when it cannot be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Keeps the pod off.
    DoNotSchedule,
    /// Makes the node less welcome.
    ScheduleAnyway,
}

impl Action {
    fn of(constraint: &TopologySpreadConstraint) -> Self {
        if *constraint.when_unsatisfiable == *"ScheduleAnyway" {
            Self::ScheduleAnyway
        } else {
            Self::DoNotSchedule
        }
    }
}

/// What tells one constraint from another, but for the nodes it looks at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    topology_key: Text,
    max_skew: i64,
    min_domains: usize,
    selector: Option<LabelSelector>,
    namespace: Text,
    honors: [bool; 2],
}

/// A constraint with its counts.
#[derive(Debug, Clone)]
pub(crate) struct Constraint {
    pub(crate) topology_key: Text,
    pub(crate) max_skew: i64,
    min_domains: usize,
    selector: Option<LabelSelector>,
    namespace: Text,
    pub(crate) honors_affinity: bool,
    pub(crate) honors_taints: bool,
    /// Whether the pod counts itself: it does when its own labels match.
    pub(crate) self_match: i64,
    /// Pods counted, by domain; none for a domain without an eligible node.
    counts: Vec<Option<i64>>,
    /// Least of the counts.
    least: i64,
    /// How many domains have it, so that the others need not be looked at while one of them is left.
    at_least: usize,
    /// How many domains there are.
    domains: usize,
}

impl Constraint {
    /// The constraints of a pod with this action.
    pub(crate) fn of_pod(pod: &Pod, written: &[TopologySpreadConstraint], action: Action) -> Vec<Self> {
        let wanted = written.iter().filter(|constraint| Action::of(constraint) == action);
        wanted.map(|constraint| Self::new(pod, constraint)).collect()
    }

    fn new(pod: &Pod, written: &TopologySpreadConstraint) -> Self {
        let selector = written.label_selector.as_ref();
        let selector = selector.map(|selector| narrowed(selector, &written.match_label_keys, pod));
        let labels = &pod.metadata.labels;
        let self_match = i64::from(selector.as_ref().is_some_and(|selector| selector.matches(labels)));
        Self {
            topology_key: written.topology_key.clone(),
            max_skew: i64::from(written.max_skew),
            min_domains: usize::try_from(written.min_domains.unwrap_or(1)).unwrap_or(1),
            selector,
            namespace: pod.metadata.namespace.clone(),
            honors_affinity: *written.node_affinity_policy != *"Ignore",
            honors_taints: *written.node_taints_policy == *"Honor",
            self_match,
            counts: Vec::new(),
            least: 0,
            at_least: 0,
            domains: 0,
        }
    }

    /// Whether it counts a pod: one of its namespace that its selector picks and that is not on its way out. A selector
    /// without conditions counts nobody, as upstream has it, though the pod itself is taken to match.
    pub(crate) fn counts(&self, pod: &Pod) -> bool {
        let selector = self.selector.as_ref().filter(|selector| !is_empty(selector));
        pod.metadata.namespace == self.namespace
            && !pod.metadata.is_deleting()
            && selector.is_some_and(|selector| selector.matches(&pod.metadata.labels))
    }

    /// An eligible node in this domain, with so many pods that count.
    pub(crate) fn add_node(&mut self, domain: usize, pods: i64) {
        if self.counts.len() <= domain {
            self.counts.resize(domain + 1, None);
        }
        match self.counts.get_mut(domain) {
            Some(count @ None) => *count = Some(pods),
            _ => return self.add_pods(domain, pods),
        }
        self.domains += 1;
        if self.domains == 1 || pods < self.least {
            (self.least, self.at_least) = (pods, 1);
        } else if pods == self.least {
            self.at_least += 1;
        }
    }

    /// More pods that count, or fewer, in a domain that has an eligible node.
    pub(crate) fn add_pods(&mut self, domain: usize, pods: i64) {
        let Some(Some(count)) = self.counts.get_mut(domain) else {
            return;
        };
        let was_least = *count == self.least;
        *count += pods;
        if was_least && pods > 0 && self.at_least > 1 {
            self.at_least -= 1;
        } else if was_least || *count <= self.least {
            self.refresh();
        }
    }

    fn refresh(&mut self) {
        let counts = || self.counts.iter().flatten().copied();
        self.least = counts().min().unwrap_or(0);
        self.at_least = counts().filter(|count| *count == self.least).count();
    }

    /// Pods counted in a domain.
    pub(crate) fn count(&self, domain: usize) -> i64 {
        self.counts.get(domain).copied().flatten().unwrap_or(0)
    }

    /// How far a domain is above the least.
    pub(crate) fn ahead(&self, domain: usize) -> i64 {
        let least = if self.domains < self.min_domains { 0 } else { self.least };
        self.count(domain) - least
    }

    /// What tells it from others.
    pub(crate) fn identity(&self) -> Identity {
        Identity {
            topology_key: self.topology_key.clone(),
            max_skew: self.max_skew,
            min_domains: self.min_domains,
            selector: self.selector.clone(),
            namespace: self.namespace.clone(),
            honors: [self.honors_affinity, self.honors_taints],
        }
    }
}

/// The selector with the pod's own values for some keys added.
fn narrowed(selector: &LabelSelector, keys: &[Text], pod: &Pod) -> LabelSelector {
    let own = keys.iter().filter_map(|key| {
        let value = pod.metadata.labels.get(key)?;
        Some(LabelSelectorRequirement {
            key: key.clone(),
            operator: "In".into(),
            values: List::from(vec![value.clone()]),
        })
    });
    LabelSelector {
        match_labels: selector.match_labels.clone(),
        match_expressions: selector.match_expressions.iter().cloned().chain(own).collect(),
    }
}

fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.is_empty() && selector.match_expressions.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constraint(json: &str) -> Constraint {
        let pod: Pod = serde_json::from_str(
            r#"{"metadata":{"name":"p","namespace":"ns","labels":{"app":"web","rev":"2"}},"spec":{}}"#,
        )
        .unwrap();
        Constraint::new(&pod, &serde_json::from_str(json).unwrap())
    }

    fn pod(namespace: &str, labels: &str) -> Pod {
        serde_json::from_str(&format!(
            r#"{{"metadata":{{"name":"q","namespace":"{namespace}","labels":{labels}}},"spec":{{}}}}"#
        ))
        .unwrap()
    }

    #[test]
    fn the_selector_its_namespace_and_the_match_label_keys_decide_who_counts() {
        let web = r#"{"maxSkew":1,"labelSelector":{"matchLabels":{"app":"web"}},"matchLabelKeys":["rev","absent"]}"#;
        let cases = [
            (web, "ns", r#"{"app":"web","rev":"2"}"#, true),
            (web, "ns", r#"{"app":"web","rev":"1"}"#, false),
            (web, "other", r#"{"app":"web","rev":"2"}"#, false),
            (r#"{"maxSkew":1}"#, "ns", r#"{"app":"web"}"#, false),
            (r#"{"maxSkew":1,"labelSelector":{}}"#, "ns", r#"{"app":"web"}"#, false),
        ];
        for (written, namespace, labels, expected) in cases {
            assert_eq!(
                constraint(written).counts(&pod(namespace, labels)),
                expected,
                "{written} {labels}"
            );
        }
        let matches: Vec<i64> = [web, r#"{"maxSkew":1}"#, r#"{"maxSkew":1,"labelSelector":{}}"#]
            .map(|written| constraint(written).self_match)
            .to_vec();
        assert_eq!(matches, [1, 0, 1]);
    }

    #[test]
    fn what_a_domain_is_ahead_is_measured_from_the_emptiest_domain_or_from_zero_below_min_domains() {
        let mut spread = constraint(r#"{"maxSkew":1,"minDomains":3,"labelSelector":{"matchLabels":{"app":"web"}}}"#);
        spread.add_node(0, 2);
        spread.add_node(1, 1);
        assert_eq!((spread.ahead(0), spread.ahead(1)), (2, 1));
        spread.add_node(2, 1);
        assert_eq!((spread.ahead(0), spread.ahead(1)), (1, 0));
        spread.add_pods(1, 1);
        assert_eq!((spread.ahead(0), spread.ahead(1), spread.ahead(2)), (1, 1, 0));
        spread.add_pods(2, 1);
        assert_eq!((spread.ahead(0), spread.ahead(1), spread.ahead(2)), (0, 0, 0));
    }
}
