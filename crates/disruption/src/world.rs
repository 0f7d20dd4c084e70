//! The cluster as a decision about going nodes sees it: machines with their pods, prices and what keeps them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use api::labels::{CAPACITY_TYPE, INSTANCE_TYPE, ZONE};
use jiff::Timestamp;
use model::{
    instance_type::{InstanceType, Offering},
    object::{
        ConditionStatus, Labels, NodeClaim, NodeName, NodePool, NodePoolName, ObjectKey, Pod, PodDisruptionBudget,
        ProviderId,
    },
    pdb::{self, Blocking},
    price::Price,
    requirement::Requirement,
    snapshot::{FeatureGates, Member, Snapshot},
    vocabulary::KeyId,
};
use packing::supply::{Offered, members};

use crate::{
    candidate::{Candidate, candidate},
    cost::{Cost, disruption_cost, reschedule_cost},
    expected::Expected,
    facts::Facts,
    method::Class,
    options::Options,
    refusal::Rule,
    warm::Warm,
};

/// Everything the methods look at.
pub(crate) struct World<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) facts: &'a Facts,
    pub(crate) options: &'a Options,
    pub(crate) now: Timestamp,
    /// What other decisions may take over.
    pub(crate) warm: &'a Warm,
    pub(crate) offered: Arc<Offered>,
    /// By name.
    pub(crate) machines: Vec<Machine<'a>>,
    /// What each machine is to the methods of a class, once one of them was asked.
    candidates: [OnceLock<Vec<Result<Candidate, Rule>>>; Class::COUNT],
    /// Pods that cannot be rescheduled now, whatever happens to their node.
    pub(crate) immovable: BTreeSet<ObjectKey>,
    /// What pods that are known to come will need.
    pub(crate) expected: Expected,
}

/// A machine of the cluster.
pub(crate) struct Machine<'a> {
    pub(crate) member: Member<'a>,
    pub(crate) name: NodeName,
    pub(crate) labels: Labels,
    /// The pods bound to its node, in the order of their keys.
    pub(crate) pods: Vec<&'a Arc<Pod>>,
    pub(crate) reschedulable: Vec<Arc<Pod>>,
    pub(crate) reschedule_cost: Cost,
    pub(crate) price: Price,
    /// What its pods keep it by, if anything.
    pub(crate) pod_blocker: Option<Rule>,
}

impl Machine<'_> {
    pub(crate) fn node_pool(&self) -> Option<NodePoolName> {
        self.member.node_pool().cloned().map(NodePoolName::from)
    }

    pub(crate) fn provider_id(&self) -> Option<&ProviderId> {
        let of_claim = self.member.claim.and_then(|claim| claim.status.provider_id.as_ref());
        of_claim.or_else(|| self.member.node.and_then(|node| node.spec.provider_id.as_ref()))
    }

    pub(crate) fn claim_says(&self, condition: &str) -> bool {
        let condition = self.member.claim.and_then(|claim| claim.condition(condition));
        condition.is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    /// What disturbing it costs by the pods the state knows: the denominators of the policy Balanced count nodes that
    /// are no candidates by this.
    pub(crate) fn tracked_cost(&self, gates: &FeatureGates) -> Cost {
        let counted = self
            .pods
            .iter()
            .filter(|pod| !pod.is_terminal() && !pod.is_owned_by_daemon_set());
        reschedule_cost(counted.map(AsRef::as_ref), gates)
    }

    pub(crate) fn disruption_cost(&self, claim: &NodeClaim, gates: &FeatureGates, now: Timestamp) -> Cost {
        disruption_cost(self.pods.iter().map(AsRef::as_ref), claim, gates, now)
    }
}

/// The snapshot in which claims that are marked for deletion are being deleted.
pub(crate) fn with_marks<'a>(snapshot: &'a Snapshot, facts: &Facts, now: Timestamp) -> Cow<'a, Snapshot> {
    let claims = &snapshot.objects().node_claims;
    let marked = facts.marked.iter().filter_map(|name| claims.find("", name.as_str()));
    let going: Vec<Arc<NodeClaim>> = marked
        .filter(|claim| !claim.metadata.is_deleting())
        .map(|claim| {
            let mut going = NodeClaim::clone(claim);
            going.metadata.deletion_timestamp = Some(now);
            Arc::new(going)
        })
        .collect();
    if going.is_empty() {
        return Cow::Borrowed(snapshot);
    }
    Cow::Owned(snapshot.overlaid(|objects| objects.node_claims = objects.node_claims.with(going)))
}

impl<'a> World<'a> {
    /// The world of a snapshot in which marks are applied.
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        facts: &'a Facts,
        options: &'a Options,
        warm: &'a Warm,
        now: Timestamp,
    ) -> Self {
        let mut world = Self {
            snapshot,
            facts,
            options,
            now,
            warm,
            offered: warm.offered(snapshot),
            machines: Vec::new(),
            candidates: Default::default(),
            immovable: BTreeSet::new(),
            expected: Expected::default(),
        };
        let budgets = PodBudgets::of(snapshot);
        let mut machines: Vec<_> = members(snapshot)
            .into_iter()
            .map(|member| world.machine(member, &budgets))
            .collect();
        machines.sort_by(|a, b| a.name.cmp(&b.name));
        world.machines = machines;
        world.immovable = world.immovable_pods(&budgets);
        world
    }

    pub(crate) fn gates(&self) -> &'a FeatureGates {
        &self.snapshot.settings().feature_gates
    }

    /// A candidate of a class, or the rule that keeps it from being one, for each machine.
    pub(crate) fn candidates(&self, class: Class) -> &[Result<Candidate, Rule>] {
        let found = || {
            self.machines
                .iter()
                .map(|machine| candidate(self, machine, class))
                .collect()
        };
        self.candidates
            .get(class as usize)
            .map_or(&[], |known| known.get_or_init(found))
    }

    pub(crate) fn pool(&self, name: &NodePoolName) -> Option<&'a Arc<NodePool>> {
        self.snapshot.node_pool(name)
    }

    pub(crate) fn instance_type(&self, pool: &NodePoolName, name: &str) -> Option<&Arc<InstanceType>> {
        self.offered.types.get(pool)?.get(name)
    }

    fn machine(&self, member: Member<'a>, budgets: &PodBudgets<'a>) -> Machine<'a> {
        let (gates, labels) = (self.gates(), member.labels());
        let pods: Vec<&Arc<Pod>> = match member.node {
            Some(node) => self.snapshot.pods_on_node(&node.name()).collect(),
            None => Vec::new(),
        };
        let reschedulable: Vec<Arc<Pod>> = pods
            .iter()
            .filter(|pod| pod.is_reschedulable())
            .map(|pod| Arc::clone(pod))
            .collect();
        Machine {
            name: NodeName::from(member.name()),
            price: self.price(member, &labels),
            reschedule_cost: reschedule_cost(reschedulable.iter().map(AsRef::as_ref), gates),
            pod_blocker: budgets.blocker(&pods, self.now),
            member,
            labels,
            pods,
            reschedulable,
        }
    }

    /// The price of the first offering with the node's zone and capacity type, available or not; nothing when unknown.
    fn price(&self, member: Member<'_>, labels: &Labels) -> Price {
        let pool = member.node_pool().cloned().map(NodePoolName::from);
        pool.and_then(|pool| price_of(&self.offered, &pool, labels))
            .unwrap_or(Price::ZERO)
    }

    /// The lowest price at which a node with these labels could have been had, available or not.
    pub(crate) fn cheapest_like(&self, it: &InstanceType, labels: &Labels) -> Option<Price> {
        let meets = |requirement: &Requirement| match labels.get(self.offered.vocabulary.key_name(requirement.key())) {
            Some(value) => requirement.has(value, &self.offered.vocabulary),
            None => self.offered.vocabulary.is_well_known(requirement.key()) || requirement.accepts_absence(),
        };
        let compatible = it
            .offerings
            .iter()
            .filter(|offering| offering.requirements.iter().all(meets));
        compatible.map(|offering| offering.price).min()
    }

    /// Active pods that are protected, and pods under budgets that never allow an eviction.
    fn immovable_pods(&self, budgets: &PodBudgets<'_>) -> BTreeSet<ObjectKey> {
        let pods = self.machines.iter().flat_map(|machine| &machine.reschedulable);
        let stays = |pod: &&Arc<Pod>| {
            !pod.is_disruptable(self.now) || !budgets.blocking(pod, Blocking::Always, self.now).is_empty()
        };
        pods.filter(stays).map(|pod| pod.metadata.key()).collect()
    }
}

/// The price of the first offering of a node's type with its zone and capacity type, available or not.
pub(crate) fn price_of(offered: &Offered, pool: &NodePoolName, labels: &Labels) -> Option<Price> {
    let it = offered.types.get(pool)?.get(labels.get(INSTANCE_TYPE)?)?;
    // What the label says as a number; an offering may have none, which is what an empty label means.
    let wanted = |key: KeyId, label: &str| match labels.get(label).map_or("", |value| value) {
        "" => Some(None),
        value => offered.vocabulary.value(key, value).map(Some),
    };
    let zone = wanted(KeyId::ZONE, ZONE)?;
    let capacity_type = wanted(KeyId::CAPACITY_TYPE, CAPACITY_TYPE)?;
    let is_here = |offering: &&Offering| {
        offering.value(KeyId::ZONE) == zone && offering.value(KeyId::CAPACITY_TYPE) == capacity_type
    };
    it.offerings.iter().find(is_here).map(|offering| offering.price)
}

/// The disruption budgets of pods, by namespace.
struct PodBudgets<'a> {
    by_namespace: BTreeMap<&'a str, Vec<&'a PodDisruptionBudget>>,
}

impl<'a> PodBudgets<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let mut by_namespace: BTreeMap<&str, Vec<&PodDisruptionBudget>> = BTreeMap::new();
        for budget in snapshot.objects().pod_disruption_budgets.iter() {
            by_namespace.entry(&budget.metadata.namespace).or_default().push(budget);
        }
        Self { by_namespace }
    }

    fn blocking(&self, pod: &Pod, which: Blocking, now: Timestamp) -> Vec<ObjectKey> {
        match self.by_namespace.get(&*pod.metadata.namespace) {
            Some(budgets) => pdb::blocking(pod, budgets.iter().copied(), which, now),
            None => Vec::new(),
        }
    }

    /// What of its pods keeps a node: protected pods first, then budgets, pod by pod.
    fn blocker(&self, pods: &[&Arc<Pod>], now: Timestamp) -> Option<Rule> {
        let protected = pods.iter().find(|pod| !pod.is_disruptable(now));
        if let Some(pod) = protected {
            return Some(Rule::ProtectedPod {
                pod: pod.metadata.key(),
                protection: pod.protection(now),
            });
        }
        pods.iter().find_map(|pod| {
            let budgets = self.blocking(pod, Blocking::Now, now);
            (!budgets.is_empty()).then(|| Rule::PodBudgets {
                pod: pod.metadata.key(),
                budgets,
            })
        })
    }
}
