//! Which domain is a node in? Label values are numbered per key, so that counts are vectors.

use std::sync::Arc;

use model::object::Text;
use rustc_hash::FxHashMap;

/// A topology key and the domain of every node.
#[derive(Debug, Clone)]
pub(crate) struct TopologyKey {
    pub(crate) name: Text,
    /// Looked up only, never walked.
    numbers: FxHashMap<Arc<str>, u32>,
    of_node: Vec<Option<u32>>,
}

impl TopologyKey {
    pub(crate) fn new(name: Text) -> Self {
        Self {
            name,
            numbers: FxHashMap::default(),
            of_node: Vec::new(),
        }
    }

    /// The next node has this value, or lacks the label.
    pub(crate) fn push(&mut self, value: Option<&Text>) {
        let number = value.map(|value| {
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            *self.numbers.entry(Arc::clone(value)).or_insert(next)
        });
        self.of_node.push(number);
    }

    /// How many domains there are.
    pub(crate) fn domains(&self) -> usize {
        self.numbers.len()
    }

    /// The domain of a node; none when it lacks the label.
    pub(crate) fn domain(&self, node: usize) -> Option<usize> {
        self.of_node.get(node).copied().flatten().map(|number| number as usize)
    }
}
