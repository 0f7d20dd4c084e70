//! Where does each node of the cluster count, for constraints that look at the same label through the same filter?
//!
//! Thousands of constraints share a handful of views, so a node is looked up once and not once per constraint.

use model::{object::Text, vocabulary::KeyId};

use super::{Scene, filter::Filter, ordinal};
use crate::{bitmap::put, space::Space};

/// Where a node of the cluster counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    /// Not looked up yet.
    Unknown,
    /// It does not take part.
    Nowhere,
    Host(u32),
    Domain(u32),
    /// A host that takes no pods in this run.
    Elsewhere,
}

/// What constraints must have in common to see nodes alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Lens {
    pub(super) key: KeyId,
    /// Position of the node filter; none when every node passes.
    pub(super) filter: Option<u32>,
    /// Whether a node without a hostname label goes by its name; avoiders are counted by label alone.
    pub(super) has_fallback: bool,
}

/// The cluster through one lens.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) lens: Lens,
    /// By position in the scene, as far as somebody asked.
    spots: Vec<Spot>,
    /// Domains of nodes there are, with pods on them or not.
    pub(super) known: Box<[u64]>,
}

impl View {
    pub(super) fn new(lens: Lens, filter: Option<&Filter>, scene: &Scene<'_>, space: &Space<'_>) -> Self {
        Self {
            lens,
            spots: vec![Spot::Unknown; scene.bound.nodes.len()],
            known: known_domains(lens.key, filter, scene, space),
        }
    }

    /// Where a node counts, by its position in the scene.
    pub(super) fn spot(&mut self, at: u32, filter: Option<&Filter>, scene: &Scene<'_>, space: &Space<'_>) -> Spot {
        let known = self.spots[at as usize];
        if known != Spot::Unknown {
            return known;
        }
        let spot = self.look_up(at, filter, scene, space);
        self.spots[at as usize] = spot;
        spot
    }

    fn look_up(&self, at: u32, filter: Option<&Filter>, scene: &Scene<'_>, space: &Space<'_>) -> Spot {
        let taints = &scene.bound.nodes[at as usize].spec.taints;
        let requirements = &scene.bound_requirements[at as usize];
        let takes_part = filter.is_none_or(|filter| filter.matches(taints, requirements, space.vocabulary));
        let Some(value) = self.value(at, scene, space).filter(|_| takes_part) else {
            return Spot::Nowhere;
        };
        match space.topology_key(self.lens.key) {
            Some(key) => {
                let domain = ordinal(&space.keys[key], value, space);
                domain.map_or(Spot::Nowhere, |domain| Spot::Domain(domain as u32))
            }
            None => scene.hosts.get(value).map_or(Spot::Elsewhere, |host| Spot::Host(*host)),
        }
    }

    /// The value a node counts under.
    pub(super) fn value<'a>(&self, at: u32, scene: &'a Scene<'_>, space: &Space<'_>) -> Option<&'a Text> {
        let node = &scene.bound.nodes[at as usize];
        let has_fallback = self.lens.has_fallback && self.lens.key == KeyId::HOSTNAME;
        let fallback = has_fallback.then_some(&node.metadata.name);
        let name = space.vocabulary.key_name(self.lens.key);
        node.metadata.labels.get(name).or(fallback)
    }
}

fn known_domains(key: KeyId, filter: Option<&Filter>, scene: &Scene<'_>, space: &Space<'_>) -> Box<[u64]> {
    let Some(at) = space.topology_key(key) else {
        return Box::default();
    };
    let entry = &space.keys[at];
    let name = space.vocabulary.key_name(key);
    let mut known = vec![0; entry.words].into_boxed_slice();
    for (node, requirements) in scene.nodes.iter().zip(scene.node_requirements) {
        let Some(object) = &node.node else { continue };
        let takes_part =
            filter.is_none_or(|filter| filter.matches(&object.spec.taints, requirements, space.vocabulary));
        let value = node.labels.get(name).filter(|_| takes_part);
        if let Some(domain) = value.and_then(|value| ordinal(entry, value, space)) {
            put(&mut known, domain);
        }
    }
    known
}
