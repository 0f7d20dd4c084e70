//! What is there? Nodes and pools with their fill, their price, their limits, and what waits.

use api::condition::names::nodeclaim::DRIFTED;
use model::{
    object::{ConditionStatus, NodePool, Pod},
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
};
use serde::Serialize;

use crate::{Amounts, Dollars, Fill, Machine, State, View};

/// The fleet at a glance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Fleet {
    /// Machines of NodePools that have a node.
    pub nodes: usize,
    /// Those that have none yet.
    pub launching: usize,
    /// Spot nodes.
    pub spot: usize,
    /// Nodes on demand.
    pub on_demand: usize,
    /// Reserved nodes.
    pub reserved: usize,
    /// Nodes of somebody else's: they take pods, and are never removed.
    pub unmanaged: usize,
    /// All cores of the machines.
    pub vcpu: u64,
    /// Those of spot machines.
    pub spot_vcpu: u64,
    /// Millicores asked for, and there.
    pub cpu_m: Fill,
    /// MiB asked for, and there.
    pub memory_mib: Fill,
}

/// Pods by how they fare.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Pods {
    /// On a node, and not ended.
    pub running: usize,
    /// Wait for a node.
    pub pending: usize,
    /// Wait for kube-scheduler, or for what they asked to wait for.
    pub unscheduled: usize,
    /// How long the longest wait has been.
    pub longest_wait_s: Option<i64>,
}

/// A pool at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Whether it launches nodes.
    pub ready: bool,
    /// Nodes.
    pub nodes: usize,
    /// Claims without a node yet.
    pub launching: usize,
    /// Spot nodes.
    pub spot: usize,
    /// Cores.
    pub vcpu: u64,
    /// Millicores asked for, and there.
    pub cpu_m: Fill,
    /// MiB asked for, and there.
    pub memory_mib: Fill,
    /// Each limit, with what is used of it.
    pub limits: Vec<Limit>,
    /// What it costs.
    pub spend_usd_h: Dollars,
    /// Nodes that have drifted.
    pub drifted: usize,
    /// `WhenEmpty`, `WhenEmptyOrUnderutilized` or `Balanced`.
    pub policy: String,
    /// How long a node must be quiet.
    pub consolidate_after: String,
}

/// A limit of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// Of which resource.
    pub resource: String,
    /// What its machines use, those on their way included.
    pub used: String,
    /// What of that is on its way.
    pub in_flight: String,
    /// What it may use.
    pub limit: String,
    /// What is left; less than nothing when the limit was lowered.
    pub left: String,
    /// How much of it is used.
    pub percent: u64,
}

impl Limit {
    /// The resource and what is used of it: `cpu 252/256`.
    pub fn brief(&self) -> String {
        format!("{} {}/{}", self.resource, self.used, self.limit)
    }
}

impl Fleet {
    /// The fleet of a view.
    pub fn of(view: &View<'_>) -> Self {
        let mut fleet = Self::default();
        let (mut requested, mut allocatable) = (Amounts::default(), Amounts::default());
        for machine in &view.machines {
            if !machine.is_managed() {
                fleet.unmanaged += 1;
                continue;
            }
            if machine.state == State::Launching {
                fleet.launching += 1;
                continue;
            }
            fleet.nodes += 1;
            match machine.capacity_type.as_deref() {
                Some(api::labels::CAPACITY_TYPE_SPOT) => fleet.spot += 1,
                Some(api::labels::CAPACITY_TYPE_RESERVED) => fleet.reserved += 1,
                _ => fleet.on_demand += 1,
            }
            let vcpu = machine.capacity.cpu_m / 1000;
            fleet.vcpu += vcpu;
            if machine.is_spot() {
                fleet.spot_vcpu += vcpu;
            }
            requested += machine.requested;
            allocatable += machine.allocatable;
        }
        (fleet.cpu_m, fleet.memory_mib) = fills(requested, allocatable);
        fleet
    }
}

fn fills(requested: Amounts, allocatable: Amounts) -> (Fill, Fill) {
    let cpu = Fill {
        requested: requested.cpu_m,
        allocatable: allocatable.cpu_m,
    };
    let memory = Fill {
        requested: requested.memory_mib(),
        allocatable: allocatable.memory_mib(),
    };
    (cpu, memory)
}

impl Pods {
    /// The pods of a view.
    pub fn of(view: &View<'_>) -> Self {
        let mut pods = Self::default();
        for pod in view.snapshot.objects().pods.iter().filter(|pod| !pod.is_terminal()) {
            if pod.node_name.is_some() {
                pods.running += 1;
            } else if pod.is_provisionable() {
                pods.pending += 1;
                pods.longest_wait_s = pods.longest_wait_s.max(waited(view, pod));
            } else {
                pods.unscheduled += 1;
            }
        }
        pods
    }
}

/// For how long a pod has waited: since kube-scheduler found no place, or else since it was made.
pub fn waited(view: &View<'_>, pod: &Pod) -> Option<i64> {
    let marked = pod
        .condition("PodScheduled")
        .and_then(|condition| condition.last_transition_time);
    let since = marked.or(pod.metadata.creation_timestamp)?;
    Some(view.seconds_since(since))
}

impl Pool {
    /// All pools of a view, by name.
    pub fn all(view: &View<'_>) -> Vec<Self> {
        let pools = view.snapshot.objects().node_pools.iter();
        pools.map(|pool| Self::of(view, pool)).collect()
    }

    /// A pool of a view.
    pub fn of(view: &View<'_>, pool: &NodePool) -> Self {
        let machines: Vec<&Machine<'_>> = view
            .managed()
            .filter(|machine| machine.pool.as_ref() == Some(&pool.metadata.name))
            .collect();
        let (mut requested, mut allocatable, mut vcpu) = (Amounts::default(), Amounts::default(), 0);
        let up = || machines.iter().filter(|machine| machine.state != State::Launching);
        for machine in up() {
            requested += machine.requested;
            allocatable += machine.allocatable;
            vcpu += machine.capacity.cpu_m / 1000;
        }
        let (cpu_m, memory_mib) = fills(requested, allocatable);
        let disruption = &pool.spec.disruption;
        Self {
            name: pool.metadata.name.to_string(),
            ready: pool.is_ready(),
            nodes: up().count(),
            launching: machines.len() - up().count(),
            spot: up().filter(|machine| machine.is_spot()).count(),
            vcpu,
            cpu_m,
            memory_mib,
            limits: limits(pool, &machines),
            spend_usd_h: machines.iter().map(|machine| machine.cost()).sum(),
            drifted: machines.iter().filter(|machine| machine.claim_says(DRIFTED)).count(),
            policy: disruption.consolidation_policy.to_string(),
            consolidate_after: disruption
                .consolidate_after
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
        }
    }

    /// The limit of which most is used.
    pub fn nearest_limit(&self) -> Option<&Limit> {
        self.limits.iter().max_by_key(|limit| limit.percent)
    }
}

fn limits(pool: &NodePool, machines: &[&Machine<'_>]) -> Vec<Limit> {
    let staying = || machines.iter().filter(|machine| machine.state != State::Leaving);
    let sum = |of: &mut dyn Iterator<Item = ResourceList>, name: &ResourceName| {
        of.fold(Quantity::default(), |sum, capacity| {
            sum + capacity.amount(name.as_str())
        })
    };
    let limit = |(name, limit): (&ResourceName, Quantity)| {
        let used = sum(&mut staying().map(|machine| machine.member.capacity()), name);
        let launching = staying().filter(|machine| machine.state == State::Launching);
        let in_flight = sum(&mut launching.map(|machine| machine.member.capacity()), name);
        let used = used.with_format(limit.format());
        let percent = match limit.nanos() {
            0 => 100,
            nanos => u64::try_from(used.nanos().saturating_mul(100) / nanos).unwrap_or_default(),
        };
        Limit {
            resource: name.to_string(),
            used: used.to_string(),
            in_flight: in_flight.with_format(limit.format()).to_string(),
            left: (limit - used).to_string(),
            limit: limit.to_string(),
            percent,
        }
    };
    pool.spec.limits.iter().map(limit).collect()
}

/// A node at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeRow {
    /// Its name, or its claim's until it has one.
    pub name: String,
    /// Its claim; none for somebody else's.
    pub claim: Option<String>,
    /// Its pool.
    pub pool: Option<String>,
    /// Its type.
    pub instance_type: Option<String>,
    /// Its zone.
    pub zone: Option<String>,
    /// Its kind of capacity.
    pub capacity_type: Option<String>,
    /// What it costs; none when nobody knows.
    pub usd_h: Option<Dollars>,
    /// How it fares.
    pub state: State,
    /// Whether its kubelet says that it is ready.
    pub ready: bool,
    /// Whether it is not what its pool asks for now.
    pub drifted: bool,
    /// How long ago it was asked for.
    pub age_s: Option<i64>,
    /// Pods on it.
    pub pods: usize,
    /// Pods it can take.
    pub pod_capacity: u64,
    /// Millicores asked for, and there.
    pub cpu_m: Fill,
    /// MiB asked for, and there.
    pub memory_mib: Fill,
    /// The image it booted from.
    pub image: String,
}

impl NodeRow {
    /// A machine as a row.
    pub fn of(view: &View<'_>, machine: &Machine<'_>) -> Self {
        let text = |value: &Option<model::object::Text>| value.as_ref().map(ToString::to_string);
        let (cpu_m, memory_mib) = fills(machine.requested, machine.allocatable);
        let claim = machine.member.claim;
        let ready = machine.member.node.and_then(|node| node.condition("Ready"));
        let pods = machine.member.allocatable().amount("pods").value();
        Self {
            name: machine.name.to_string(),
            claim: claim.map(|claim| claim.metadata.name.to_string()),
            pool: text(&machine.pool),
            instance_type: text(&machine.instance_type),
            zone: text(&machine.zone),
            capacity_type: text(&machine.capacity_type),
            usd_h: machine.price.map(Dollars::from),
            state: machine.state,
            ready: ready.is_some_and(|ready| ready.status == ConditionStatus::True),
            drifted: machine.claim_says(DRIFTED),
            age_s: machine.created().map(|created| view.seconds_since(created)),
            pods: machine.pods.len(),
            pod_capacity: u64::try_from(pods).unwrap_or_default(),
            cpu_m,
            memory_mib,
            image: claim.map(|claim| claim.status.image_id.to_string()).unwrap_or_default(),
        }
    }
}
