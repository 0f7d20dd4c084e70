//! The machines of the cluster: nodes and claims joined by provider ID, and what each counts for in its NodePool.

use std::sync::Arc;

use model::{
    object::{Node, NodeClaim, NodeName, NodePool, ObjectKey, Text},
    resources::ResourceList,
    snapshot::{Member, machine_of_claim, machine_of_node},
};
use rustc_hash::FxHashMap;

use crate::{State, Transition, usage::Usages};

/// What is known of all machines, kept in step with their nodes and claims.
#[derive(Debug, Default)]
pub(crate) struct Machines {
    by_id: FxHashMap<Text, Machine>,
    pub(crate) usages: Usages,
}

/// What of a machine others look at.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "one fact each, compared as a whole")]
struct Machine {
    pool: Option<Text>,
    /// Empty when the machine is marked for deletion.
    capacity: ResourceList,
    has_node: bool,
    has_claim: bool,
    is_initialized: bool,
    is_marked: bool,
}

impl Machine {
    /// Whether the difference may make consolidation possible that was not.
    fn matters_to_consolidation(&self, after: &Self) -> bool {
        let is_new = !self.has_node && !self.has_claim;
        let lost = (self.has_node && !after.has_node) || (self.has_claim && !after.has_claim);
        let flips = self.is_initialized != after.is_initialized || self.is_marked != after.is_marked;
        is_new || lost || flips
    }
}

impl State {
    /// The machine of a provider ID, or of the name of a node of somebody else's that has none.
    pub fn machine(&self, id: &str) -> Option<Member<'_>> {
        let is_it = |node: &&Arc<Node>| machine_of_node(node).is_some_and(|machine| **machine == *id);
        let by_name = || self.get::<Node>(&ObjectKey::cluster_scoped(id));
        let node = self.nodes_of_provider_id(id).filter(is_it).last();
        let member = Member {
            node: node.or_else(|| by_name().filter(is_it)),
            claim: self.claims_of_provider_id(id).last(),
        };
        (member.node.is_some() || member.claim.is_some()).then_some(member)
    }

    /// The machine of a claim; the claim alone until it was launched.
    pub fn machine_of_claim<'a>(&'a self, claim: &'a Arc<NodeClaim>) -> Member<'a> {
        let alone = Member {
            node: None,
            claim: Some(claim),
        };
        let joined = machine_of_claim(claim).and_then(|id| self.machine(id));
        joined.map_or(alone, |joined| Member {
            claim: Some(claim),
            ..joined
        })
    }

    /// The machine of a node; none while the node does not count yet.
    pub fn machine_of_node(&self, name: &NodeName) -> Option<Member<'_>> {
        let node = self.get::<Node>(&ObjectKey::cluster_scoped(name.as_str()))?;
        self.machine(machine_of_node(node)?)
    }

    /// All machines, in no order that means anything but always the same one.
    pub fn machines(&self) -> impl Iterator<Item = Member<'_>> {
        let mut ids: Vec<&Text> = self.machines.by_id.keys().collect();
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| self.machine(id))
    }

    /// Whether we mean to delete a machine, or it is already on its way out.
    pub fn is_marked_for_deletion(&self, member: Member<'_>) -> bool {
        let is_marked = |claim: &Arc<NodeClaim>| self.marks.is_to_be_deleted(&claim.metadata.name);
        member.is_leaving() || member.claim.is_some_and(is_marked)
    }

    pub(crate) fn follow_node(&mut self, node: &Transition<Node>) {
        let id = |node: &Option<Arc<Node>>| node.as_ref().and_then(|node| machine_of_node(node)).cloned();
        self.recount_both(id(&node.before), id(&node.after));
    }

    pub(crate) fn follow_claim(&mut self, claim: &Transition<NodeClaim>) {
        if let Some(before) = claim.before.as_ref().filter(|_| claim.ends_before()) {
            self.marks.forget_claim(&before.metadata.name);
            self.ledger.release(&before.name());
        }
        let id = |claim: &Option<Arc<NodeClaim>>| claim.as_ref().and_then(|claim| machine_of_claim(claim)).cloned();
        self.recount_both(id(&claim.before), id(&claim.after));
        if let Some(after) = &claim.after {
            self.settle(after);
        }
    }

    pub(crate) fn follow_pool(&mut self, pool: &Transition<NodePool>) {
        if pool.after.is_some() && pool.changes_generation() {
            self.mark_unconsolidated();
        }
    }

    fn recount_both(&mut self, before: Option<Text>, after: Option<Text>) {
        if before != after
            && let Some(before) = before
        {
            self.recount(&before);
        }
        if let Some(after) = after {
            self.recount(&after);
        }
    }

    /// Looks at a machine again after one of its parts or its marks changed.
    pub(crate) fn recount(&mut self, id: &Text) {
        let after = self.machine(id).map(|member| self.describe(member));
        let before = self.machines.by_id.get(id).cloned().unwrap_or_default();
        let now = after.clone().unwrap_or_default();
        if before == now {
            return;
        }
        if before.matters_to_consolidation(&now) {
            self.mark_unconsolidated();
        }
        let usages = &mut self.machines.usages;
        usages.replace(
            (before.pool.as_ref(), &before.capacity),
            (now.pool.as_ref(), &now.capacity),
        );
        if let Some(after) = after {
            self.machines.by_id.insert(id.clone(), after);
        } else {
            self.machines.by_id.remove(id);
            self.marks.forget_machine(id);
        }
    }

    fn describe(&self, member: Member<'_>) -> Machine {
        let is_marked = self.is_marked_for_deletion(member);
        Machine {
            pool: member.node_pool().cloned(),
            capacity: if is_marked {
                ResourceList::EMPTY
            } else {
                member.capacity()
            },
            has_node: member.node.is_some(),
            has_claim: member.claim.is_some(),
            is_initialized: member.is_initialized(),
            is_marked,
        }
    }
}
