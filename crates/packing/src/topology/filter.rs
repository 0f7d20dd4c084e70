//! Which nodes take part in a spread: those the pod could run on, as far as its policies say.

use model::{
    object::{Taint, Toleration, TopologySpreadConstraint},
    requirement::{Requirements, UndefinedLabels},
    taint::check_tolerated,
    vocabulary::{KeyId, Vocabulary},
};

use crate::ladder::Wishes;

/// Which nodes take part in a spread.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Filter {
    /// Any of these must hold; without alternatives every node passes.
    pub(crate) alternatives: Vec<Requirements>,
    pub(crate) honors_affinity: bool,
    pub(crate) honors_taints: bool,
    pub(crate) tolerations: Vec<Toleration>,
}

impl Filter {
    pub(super) fn new(spread: &TopologySpreadConstraint, wishes: &Wishes, vocabulary: &Vocabulary) -> Self {
        let with_selector = |term: &Requirements| {
            let mut all = wishes.selector.clone();
            all.add_all(term, vocabulary);
            all
        };
        let alternatives = match &wishes.required {
            Some(terms) => terms.iter().map(with_selector).collect(),
            None => vec![wishes.selector.clone()],
        };
        Self {
            alternatives: alternatives.into_iter().map(without_hostname).collect(),
            honors_affinity: *spread.node_affinity_policy != *"Ignore",
            honors_taints: *spread.node_taints_policy == *"Honor",
            tolerations: wishes.tolerations.clone(),
        }
    }

    /// True when every node passes.
    pub(crate) fn is_open(&self) -> bool {
        let has_open_alternative = self.alternatives.is_empty() || self.alternatives.iter().any(Requirements::is_empty);
        !self.honors_taints && (!self.honors_affinity || has_open_alternative)
    }

    /// Whether a node takes part. A label it does not define fails, on claims too, whatever the cloud would fill in.
    pub(crate) fn matches(&self, taints: &[Taint], node: &Requirements, vocabulary: &Vocabulary) -> bool {
        self.matches_affinity(node, vocabulary) && self.matches_taints(taints)
    }

    fn matches_affinity(&self, node: &Requirements, vocabulary: &Vocabulary) -> bool {
        !self.honors_affinity
            || self.alternatives.is_empty()
            || self
                .alternatives
                .iter()
                .any(|wanted| node.is_compatible(wanted, UndefinedLabels::Denied, vocabulary))
    }

    fn matches_taints(&self, taints: &[Taint]) -> bool {
        let tolerations: Vec<_> = self.tolerations.iter().map(Toleration::view).collect();
        !self.honors_taints || check_tolerated(taints.iter().map(Taint::view), &tolerations).is_ok()
    }
}

/// States leave the hostname out, so a filter must too; pods that select a host by name are refused beforehand.
fn without_hostname(mut requirements: Requirements) -> Requirements {
    requirements.remove(KeyId::HOSTNAME);
    requirements
}
