//! What many objects have in common, held once: label sets, pod specs, conditions, names.
//!
//! A watch parses each object on its own, so a thousand replicas arrive as a thousand equal specs. The pool replaces each
//! equal part by the allocation it saw first. What no object holds any more it lets go of by itself, whenever it has grown
//! to twice of what it kept the last time: nobody has to remember to call [`Sharing::release_unused`].

use std::{hash::Hash, sync::Arc};

use rustc_hash::FxHashSet;

use crate::object::{
    Affinity, BriefCondition, Container, ContainerStatus, Labels, List, NodeSelectorRequirement, OwnerReference,
    PodSpec, Text, Toleration, TopologySpreadConstraint,
};

/// A pool of shared parts. One per watch or dump; not a cache of objects.
#[derive(Debug, Default)]
pub struct Sharing {
    texts: Pool<str>,
    text_lists: Pool<[Text]>,
    labels: Pool<[(Text, Text)]>,
    owners: Pool<[OwnerReference]>,
    pod_specs: Pool<PodSpec>,
    affinities: Pool<Affinity>,
    containers: Pool<[Container]>,
    tolerations: Pool<[Toleration]>,
    spreads: Pool<[TopologySpreadConstraint]>,
    container_statuses: Pool<[ContainerStatus]>,
    requirements: Pool<[NodeSelectorRequirement]>,
    /// How many parts were in use when it last looked.
    kept: usize,
}

/// A pool smaller than this is not worth looking through.
const RELEASE_LEAST: usize = 4096;

#[derive(Debug)]
struct Pool<T: ?Sized>(FxHashSet<Arc<T>>);

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self(FxHashSet::default())
    }
}

impl<T: ?Sized + Eq + Hash> Pool<T> {
    /// Replaces the part by the pool's equal one; false when the pool has none.
    fn known(&self, part: &mut Arc<T>) -> bool {
        match self.0.get(part) {
            Some(pooled) => {
                *part = Arc::clone(pooled);
                true
            }
            None => false,
        }
    }

    fn add(&mut self, part: &Arc<T>) {
        self.0.insert(Arc::clone(part));
    }

    fn release_unused(&mut self) -> usize {
        let before = self.0.len();
        self.0.retain(|part| Arc::strong_count(part) > 1);
        before - self.0.len()
    }
}

impl Sharing {
    /// Lets go of everything no object holds any more; returns how many parts that were.
    ///
    /// Parts hold parts (a spec its texts), so the outer pools go first.
    pub fn release_unused(&mut self) -> usize {
        self.pod_specs.release_unused()
            + self.affinities.release_unused()
            + self.containers.release_unused()
            + self.tolerations.release_unused()
            + self.spreads.release_unused()
            + self.container_statuses.release_unused()
            + self.requirements.release_unused()
            + self.owners.release_unused()
            + self.labels.release_unused()
            + self.text_lists.release_unused()
            + self.texts.release_unused()
    }

    /// How many parts it holds.
    pub fn len(&self) -> usize {
        self.texts.0.len()
            + self.text_lists.0.len()
            + self.labels.0.len()
            + self.owners.0.len()
            + self.pod_specs.0.len()
            + self.affinities.0.len()
            + self.containers.0.len()
            + self.tolerations.0.len()
            + self.spreads.0.len()
            + self.container_statuses.0.len()
            + self.requirements.0.len()
    }

    /// True when it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lets go of what is unused once it may be half of everything, so that looking costs little per object.
    pub(crate) fn release_when_grown(&mut self) {
        if self.len() > RELEASE_LEAST.max(2 * self.kept) {
            self.release_unused();
            self.kept = self.len();
        }
    }

    pub(crate) fn text(&mut self, text: &mut Text) {
        if !text.is_empty() && !self.texts.known(text) {
            self.texts.add(text);
        }
    }

    pub(crate) fn texts(&mut self, texts: &mut List<Text>) {
        if !texts.is_empty() && !self.text_lists.known(&mut texts.0) {
            self.text_lists.add(&texts.0);
        }
    }

    /// Label sets that differ, as those of a StatefulSet's pods do, still share their texts.
    pub(crate) fn labels(&mut self, labels: &mut Labels) {
        if labels.is_empty() || self.labels.known(&mut labels.0) {
            return;
        }
        if let Some(pairs) = Arc::get_mut(&mut labels.0) {
            for (key, value) in pairs {
                self.text(key);
                self.text(value);
            }
        }
        self.labels.add(&labels.0);
    }

    pub(crate) fn owners(&mut self, owners: &mut List<OwnerReference>) {
        if owners.is_empty() || self.owners.known(&mut owners.0) {
            return;
        }
        if let Some(owners) = Arc::get_mut(&mut owners.0) {
            for owner in owners {
                self.text(&mut owner.api_version);
                self.text(&mut owner.kind);
            }
        }
        self.owners.add(&owners.0);
    }

    /// Specs that differ, as those of a DaemonSet's pods do by their node, still share their larger parts.
    pub(crate) fn pod_spec(&mut self, spec: &mut Arc<PodSpec>) {
        if self.pod_specs.known(spec) {
            return;
        }
        if let Some(spec) = Arc::get_mut(spec) {
            self.parts_of(spec);
        }
        self.pod_specs.add(spec);
    }

    fn parts_of(&mut self, spec: &mut PodSpec) {
        self.text(&mut spec.scheduler_name);
        self.text(&mut spec.priority_class_name);
        self.text(&mut spec.preemption_policy);
        self.labels(&mut spec.node_selector);
        if let Some(affinity) = &mut spec.affinity
            && !self.affinities.known(affinity)
        {
            self.affinities.add(affinity);
        }
        share_list(&mut self.tolerations, &mut spec.tolerations);
        share_list(&mut self.spreads, &mut spec.topology_spread_constraints);
        share_list(&mut self.containers, &mut spec.containers);
        share_list(&mut self.containers, &mut spec.init_containers);
    }

    /// Whole lists are hardly ever equal, because they hold times; their texts repeat in every pod and node.
    pub(crate) fn brief_conditions(&mut self, conditions: &mut List<BriefCondition>) {
        if let Some(conditions) = Arc::get_mut(&mut conditions.0) {
            for condition in conditions {
                self.text(&mut condition.kind);
                self.text(&mut condition.reason);
            }
        }
    }

    pub(crate) fn container_statuses(&mut self, statuses: &mut List<ContainerStatus>) {
        share_list(&mut self.container_statuses, statuses);
    }

    pub(crate) fn requirements(&mut self, requirements: &mut List<NodeSelectorRequirement>) {
        share_list(&mut self.requirements, requirements);
    }
}

fn share_list<T: Eq + Hash>(pool: &mut Pool<[T]>, list: &mut List<T>) {
    if !list.is_empty() && !pool.known(&mut list.0) {
        pool.add(&list.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Node, Object};

    #[test]
    fn parts_that_no_object_holds_are_let_go_without_being_asked() {
        let mut pool = Sharing::default();
        let read = |pool: &mut Sharing, at: usize| {
            let json = format!(r#"{{"metadata":{{"name":"n{at}","labels":{{"app":"a{at}"}}}}}}"#);
            Node::from_json(json.as_bytes(), pool).unwrap()
        };
        let kept: Vec<Node> = (0..100).map(|at| read(&mut pool, at)).collect();
        for at in 100..10 * RELEASE_LEAST {
            drop(read(&mut pool, at));
        }
        assert!(pool.len() <= RELEASE_LEAST, "{} parts", pool.len());
        let parts = pool.len();
        assert_eq!(read(&mut pool, 7).metadata.labels, kept[7].metadata.labels);
        assert_eq!(pool.len(), parts, "what is in use is still shared");
    }
}
