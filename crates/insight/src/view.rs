//! The machines of a cluster with what every answer needs of them: their pods, their room, their price, how they fare.

use std::{
    collections::BTreeMap,
    ops::{Add, AddAssign},
    sync::Arc,
};

use api::labels::{CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, INSTANCE_TYPE, ZONE};
use jiff::Timestamp;
use model::{
    instance_type::{InstanceType, Offering},
    object::{ConditionStatus, NodeName, Pod, Text},
    price::Price,
    resources::ResourceList,
    snapshot::{Member, Snapshot},
    vocabulary::{KeyId, Vocabulary},
};
use packing::supply::{Offered, members};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{Dollars, commitment::Coverage};

/// A cluster, looked at once.
#[derive(Debug)]
pub struct View<'a> {
    /// What is looked at.
    pub snapshot: &'a Snapshot,
    /// The time of it.
    pub now: Timestamp,
    /// By name.
    pub machines: Vec<Machine<'a>>,
}

/// A machine: a node, or a claim that will be one.
#[derive(Debug)]
pub struct Machine<'a> {
    /// Its node and its claim.
    pub member: Member<'a>,
    /// The node's name, or the claim's until there is a node.
    pub name: Text,
    /// Its pool, if it has one.
    pub pool: Option<Text>,
    /// Its type, if it says so.
    pub instance_type: Option<Text>,
    /// Its zone, if it says so.
    pub zone: Option<Text>,
    /// `spot`, `on-demand` or `reserved`, if it says so.
    pub capacity_type: Option<Text>,
    /// What it costs an hour, at the rate of the commitment that covers it; none when the catalogue does not have it.
    pub price: Option<Price>,
    /// What an hour costs less without it: its price, unless a commitment is paid anyway.
    pub marginal: Option<Price>,
    /// What its type costs on demand in its zone.
    pub on_demand: Option<Price>,
    /// The pods on it that have not ended.
    pub pods: Vec<&'a Arc<Pod>>,
    /// What its pods ask for.
    pub requested: Amounts,
    /// What of that DaemonSets' pods ask for.
    pub daemons: Amounts,
    /// What it has for pods.
    pub allocatable: Amounts,
    /// All it has.
    pub capacity: Amounts,
    /// How it fares.
    pub state: State,
}

/// How a machine fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum State {
    /// It was asked for, and has no node yet.
    Launching,
    /// It has a node that is not all up.
    Starting,
    /// It takes pods.
    Ready,
    /// It takes no new pods.
    Cordoned,
    /// Its kubelet does not say that it is ready.
    NotReady,
    /// It goes away.
    Leaving,
}

/// Amounts of what most clusters are short of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Millicores.
    pub cpu_m: u64,
    /// Bytes.
    pub memory: u64,
    /// Whole devices, whoever makes them.
    pub gpus: u64,
}

/// What is asked of something, and what it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// What is asked for.
    pub requested: u64,
    /// What there is.
    pub allocatable: u64,
}

impl Add for Amounts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            cpu_m: self.cpu_m + other.cpu_m,
            memory: self.memory + other.memory,
            gpus: self.gpus + other.gpus,
        }
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Amounts {
    /// The amounts of a list.
    pub fn of(list: &ResourceList) -> Self {
        let mut gpus = 0;
        for (name, amount) in list.iter() {
            if name.as_str().ends_with("/gpu") {
                gpus += u64::try_from(amount.value()).unwrap_or_default();
            }
        }
        Self {
            cpu_m: u64::try_from(list.amount("cpu").milli_value()).unwrap_or_default(),
            memory: u64::try_from(list.amount("memory").value()).unwrap_or_default(),
            gpus,
        }
    }

    /// Whole MiB.
    pub fn memory_mib(self) -> u64 {
        self.memory >> 20
    }
}

/// What pods ask for. Replicas share their spec, so it is added up once for all of them.
#[derive(Debug, Default)]
pub struct Requests(FxHashMap<usize, Amounts>);

impl Requests {
    /// What a pod asks for.
    pub fn of(&mut self, pod: &Pod) -> Amounts {
        // What was granted in place may differ from pod to pod.
        let is_plain = pod.status.container_statuses.is_empty() && pod.status.init_container_statuses.is_empty();
        if !is_plain {
            return Amounts::of(&pod.resources().requests());
        }
        let key = Arc::as_ptr(&pod.spec).addr();
        *self
            .0
            .entry(key)
            .or_insert_with(|| Amounts::of(&pod.resources().requests()))
    }
}

/// What instance types cost, by pool and name.
#[derive(Debug)]
pub struct Prices {
    vocabulary: Vocabulary,
    by_pool: BTreeMap<Text, BTreeMap<Text, Arc<InstanceType>>>,
}

impl Prices {
    /// What the catalogue of a snapshot says.
    pub fn of(snapshot: &Snapshot) -> Self {
        let Offered { vocabulary, types, .. } = Offered::of(snapshot);
        let by_pool = types
            .into_iter()
            .map(|(pool, types)| (Text::from(pool.as_str()), types));
        Self {
            vocabulary,
            by_pool: by_pool.collect(),
        }
    }

    /// The type of a name, as a pool describes it; any pool's for machines of none.
    pub fn instance_type(&self, pool: Option<&Text>, name: &str) -> Option<&Arc<InstanceType>> {
        match pool.and_then(|pool| self.by_pool.get(pool)) {
            Some(types) => types.get(name),
            None => self.by_pool.values().find_map(|types| types.get(name)),
        }
    }

    /// What a type costs as a kind of capacity in a zone.
    pub fn price(&self, it: &InstanceType, zone: Option<&str>, capacity_type: Option<&str>) -> Option<Price> {
        let is = |offering: &Offering, key: KeyId, wanted: Option<&str>| {
            let value = offering.value(key).map(|value| self.vocabulary.value_name(key, value));
            value.unwrap_or_default() == wanted.unwrap_or_default()
        };
        let here =
            |offering: &&Offering| is(offering, KeyId::ZONE, zone) && is(offering, KeyId::CAPACITY_TYPE, capacity_type);
        it.offerings.iter().find(here).map(|offering| offering.price)
    }

    /// The lowest price of a type as a kind of capacity, in any zone.
    pub fn cheapest(&self, it: &InstanceType, capacity_type: &str) -> Option<Price> {
        let is = |offering: &&Offering| {
            let value = offering.value(KeyId::CAPACITY_TYPE);
            value.is_some_and(|value| self.vocabulary.value_name(KeyId::CAPACITY_TYPE, value) == capacity_type)
        };
        it.offerings.iter().filter(is).map(|offering| offering.price).min()
    }
}

impl<'a> View<'a> {
    /// Looks at a snapshot.
    pub fn of(snapshot: &'a Snapshot) -> Self {
        Self::priced(snapshot, &Prices::of(snapshot))
    }

    /// Looks at a snapshot whose prices are known.
    pub fn priced(snapshot: &'a Snapshot, prices: &Prices) -> Self {
        let mut requests = Requests::default();
        let launched = members(snapshot);
        let asked_for = snapshot.objects().node_claims.iter();
        let asked_for = asked_for.filter(|claim| claim.status.provider_id.is_none());
        let asked_for = asked_for.map(|claim| Member {
            node: None,
            claim: Some(claim),
        });
        let members = launched.into_iter().chain(asked_for);
        let mut machines: Vec<_> = members
            .map(|member| machine(snapshot, prices, &mut requests, member))
            .collect();
        machines.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            snapshot,
            now: snapshot.taken_at(),
            machines,
        }
    }

    /// The same cluster, with what commitments cover.
    #[must_use]
    pub fn covered(mut self, coverage: &Coverage) -> Self {
        for machine in &mut self.machines {
            if let Some(covered) = coverage.machines.get(&machine.name) {
                machine.price = Some(covered.paid);
                machine.marginal = Some(covered.marginal);
                machine.on_demand = Some(covered.listed);
            }
        }
        self
    }

    /// Machines that were launched for a NodePool.
    pub fn managed(&self) -> impl Iterator<Item = &Machine<'a>> {
        self.machines.iter().filter(|machine| machine.is_managed())
    }

    /// A machine by its name.
    pub fn machine(&self, name: &str) -> Option<&Machine<'a>> {
        let at = self
            .machines
            .binary_search_by(|machine| (*machine.name).cmp(name))
            .ok()?;
        self.machines.get(at)
    }

    /// How long ago something was.
    pub fn seconds_since(&self, time: Timestamp) -> i64 {
        self.now.duration_since(time).as_secs().max(0)
    }
}

impl Machine<'_> {
    /// Whether it was launched for a NodePool.
    pub fn is_managed(&self) -> bool {
        self.member.is_managed() && self.pool.is_some()
    }

    /// Whether it is spot capacity.
    pub fn is_spot(&self) -> bool {
        self.capacity_type.as_deref() == Some(api::labels::CAPACITY_TYPE_SPOT)
    }

    /// What it costs an hour, nothing where nobody knows.
    pub fn cost(&self) -> Dollars {
        self.price.map(Dollars::from).unwrap_or_default()
    }

    /// As the engine names it.
    pub fn node_name(&self) -> NodeName {
        NodeName::from(self.name.clone())
    }

    /// Pods that would have to be made anew elsewhere.
    pub fn movable(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods.iter().copied().filter(|pod| pod.is_reschedulable())
    }

    /// Whether its claim says so.
    pub fn claim_says(&self, condition: &str) -> bool {
        let condition = self.member.claim.and_then(|claim| claim.condition(condition));
        condition.is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    /// When it was asked for.
    pub fn created(&self) -> Option<Timestamp> {
        let claim = self.member.claim.and_then(|claim| claim.metadata.creation_timestamp);
        claim.or_else(|| self.member.node.and_then(|node| node.metadata.creation_timestamp))
    }
}

fn machine<'a>(snapshot: &'a Snapshot, prices: &Prices, requests: &mut Requests, member: Member<'a>) -> Machine<'a> {
    let labels = member.labels();
    let label = |key: &str| labels.get(key).filter(|value| !value.is_empty()).cloned();
    let pool = member.node_pool().cloned();
    let (instance_type, zone, capacity_type) = (label(INSTANCE_TYPE), label(ZONE), label(CAPACITY_TYPE));
    let it = instance_type
        .as_ref()
        .and_then(|name| prices.instance_type(pool.as_ref(), name));
    let of_type = |capacity_type: Option<&str>| prices.price(it?, zone.as_deref(), capacity_type);
    let price = of_type(capacity_type.as_deref());
    let on_demand = of_type(Some(CAPACITY_TYPE_ON_DEMAND));
    // Somebody else's machines say nothing of their kind of capacity: on demand is what most are.
    let price = if member.is_managed() {
        price
    } else {
        price.or(on_demand)
    };
    let pods: Vec<&Arc<Pod>> = match member.node {
        Some(node) => {
            let name = node.name();
            let bound = snapshot.pods_on_node(&name);
            bound.filter(|pod| !pod.is_terminal()).collect()
        }
        None => Vec::new(),
    };
    let (mut requested, mut daemons) = (Amounts::default(), Amounts::default());
    for pod in &pods {
        let asked = requests.of(pod);
        requested += asked;
        if pod.is_owned_by_daemon_set() || pod.is_owned_by_node() {
            daemons += asked;
        }
    }
    Machine {
        name: member.name(),
        state: state(member),
        allocatable: Amounts::of(&member.allocatable()),
        capacity: Amounts::of(&member.capacity()),
        price,
        marginal: price,
        on_demand,
        member,
        pool,
        instance_type,
        zone,
        capacity_type,
        pods,
        requested,
        daemons,
    }
}

fn state(member: Member<'_>) -> State {
    let Some(node) = member.node else {
        return if member.is_leaving() {
            State::Leaving
        } else {
            State::Launching
        };
    };
    let is_ready = node
        .condition("Ready")
        .is_none_or(|ready| ready.status == ConditionStatus::True);
    if member.is_leaving() {
        State::Leaving
    } else if !member.is_initialized() {
        State::Starting
    } else if !is_ready {
        State::NotReady
    } else if node.spec.unschedulable {
        State::Cordoned
    } else {
        State::Ready
    }
}
