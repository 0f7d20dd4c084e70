//! Which hosts can use the devices of a slice, and what that asks of a NodeClaim.
//!
//! Matching takes the terms of a node selector as alternatives, but as requirements they are all intersected: upstream
//! cannot write "zone a or zone b" on a NodeClaim any other way, and so a device of such a slice may fit nowhere.

use std::sync::Arc;

use model::{
    object::{NodeName, NodeSelector, NodeSelectorTerm, ResourceSliceSpec},
    requirement::{Operator, Requirement, Requirements, UndefinedLabels},
    vocabulary::Vocabulary,
};

/// Labels that a device asks for and a host leaves open are set at launch; the same lenience holds for nodes.
pub(crate) const LENIENT: UndefinedLabels = UndefinedLabels::AllowedIfWellKnown;

/// Which hosts can use a slice's devices.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reach {
    AllNodes,
    Node(NodeName),
    Nodes(Vec<Requirements>),
    Nowhere,
}

impl Reach {
    pub(crate) fn of(slice: &ResourceSliceSpec, vocabulary: &mut Vocabulary) -> Self {
        if slice.all_nodes == Some(true) {
            return Self::AllNodes;
        }
        if let Some(name) = &slice.node_name {
            return Self::Node(name.clone());
        }
        let Some(selector) = &slice.node_selector else {
            return Self::Nowhere;
        };
        let terms = selector.node_selector_terms.iter();
        Self::Nodes(terms.map(|term| term_requirements(term, vocabulary)).collect())
    }

    /// Whether a host with these requirements can use the devices; `node` is the name of a node that exists.
    pub(crate) fn includes(&self, requirements: &Requirements, node: Option<&str>, vocabulary: &Vocabulary) -> bool {
        match self {
            Self::AllNodes => true,
            Self::Node(name) => node == Some(name.as_str()),
            Self::Nodes(terms) => terms
                .iter()
                .any(|term| requirements.is_compatible(term, LENIENT, vocabulary)),
            Self::Nowhere => false,
        }
    }
}

/// What using a slice's devices asks of the host; none when it asks nothing.
pub(crate) fn topology(slice: &ResourceSliceSpec, vocabulary: &mut Vocabulary) -> Option<Arc<Requirements>> {
    let selector = slice.node_selector.as_ref().filter(|_| slice.all_nodes != Some(true))?;
    Some(Arc::new(collapsed(selector, vocabulary)))
}

/// All terms of a selector at once.
pub(crate) fn collapsed(selector: &NodeSelector, vocabulary: &mut Vocabulary) -> Requirements {
    let mut requirements = Requirements::default();
    for term in &selector.node_selector_terms {
        let term = term_requirements(term, vocabulary);
        requirements.add_all(&term, vocabulary);
    }
    requirements
}

/// Only conditions on labels: a field such as the node's name is not looked at.
fn term_requirements(term: &NodeSelectorTerm, vocabulary: &mut Vocabulary) -> Requirements {
    let mut requirements = Requirements::default();
    for expression in &term.match_expressions {
        // The API server refuses other operators; upstream would read them as "any value".
        let operator = expression.operator.parse().unwrap_or(Operator::Exists);
        let values = expression.values.iter().map(AsRef::as_ref);
        let requirement = Requirement::parse(&expression.key, operator, values, vocabulary);
        requirements.add(requirement, vocabulary);
    }
    requirements
}
