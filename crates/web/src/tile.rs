//! What does the map show of a node? Its place, its size, how full it is, how it fares, and its pods as amounts.

use insight::{Dollars, Fill, Machine, Requests, State};
use jiff::Timestamp;
use model::object::Text;
use serde::Serialize;

/// A node on the map. Names are those of `NodeRow`; times are points in time, so that waiting changes nothing.
#[derive(Debug, Serialize)]
pub(crate) struct Tile {
    managed: bool,
    claim: Option<String>,
    pool: Option<String>,
    instance_type: Option<String>,
    zone: Option<String>,
    capacity_type: Option<String>,
    usd_h: Option<Dollars>,
    usd_mo: Option<Dollars>,
    on_demand_usd_h: Option<Dollars>,
    state: State,
    drifted: bool,
    created: Option<Timestamp>,
    vcpu: u64,
    gib: u64,
    pods: usize,
    pod_capacity: u64,
    cpu_m: Fill,
    memory_mib: Fill,
    image: String,
    arch: String,
    /// Its pods: millicores, MiB, and 1 for one of a DaemonSet, 2 for one that is protected. Those of DaemonSets last.
    cells: Vec<(u64, u64, u8)>,
}

const OF_A_DAEMON_SET: u8 = 1;
const PROTECTED: u8 = 2;

impl Tile {
    pub(crate) fn of(machine: &Machine<'_>, now: Timestamp) -> Self {
        let text = |value: &Option<Text>| value.as_ref().map(ToString::to_string);
        let claim = machine.member.claim;
        let capacity = machine.member.allocatable().amount("pods").value();
        let mut requests = Requests::default();
        let cell = |pod: &std::sync::Arc<model::object::Pod>, requests: &mut Requests| {
            let asked = requests.of(pod);
            let is_daemon = pod.is_owned_by_daemon_set() || pod.is_owned_by_node();
            let flag = if is_daemon {
                OF_A_DAEMON_SET
            } else if pod.is_disruptable(now) {
                0
            } else {
                PROTECTED
            };
            (asked.cpu_m, asked.memory_mib(), flag)
        };
        let mut cells: Vec<(u64, u64, u8)> = machine.pods.iter().map(|pod| cell(pod, &mut requests)).collect();
        cells.sort_by_key(|(cpu, memory, flag)| (flag & OF_A_DAEMON_SET, std::cmp::Reverse((*cpu, *memory)), *flag));
        Self {
            managed: machine.is_managed(),
            claim: claim.map(|claim| claim.metadata.name.to_string()),
            pool: text(&machine.pool),
            instance_type: text(&machine.instance_type),
            zone: text(&machine.zone),
            capacity_type: text(&machine.capacity_type),
            usd_h: machine.price.map(Dollars::from),
            usd_mo: machine.price.map(|price| Dollars::from(price).monthly()),
            on_demand_usd_h: machine.on_demand.map(Dollars::from),
            state: machine.state,
            drifted: machine.claim_says("Drifted"),
            created: machine.created(),
            vcpu: machine.capacity.cpu_m / 1000,
            gib: machine.capacity.memory >> 30,
            pods: machine.pods.len(),
            pod_capacity: u64::try_from(capacity).unwrap_or_default(),
            cpu_m: Fill {
                requested: machine.requested.cpu_m,
                allocatable: machine.allocatable.cpu_m,
            },
            memory_mib: Fill {
                requested: machine.requested.memory_mib(),
                allocatable: machine.allocatable.memory_mib(),
            },
            image: claim.map(|claim| claim.status.image_id.to_string()).unwrap_or_default(),
            arch: machine
                .member
                .labels()
                .get("kubernetes.io/arch")
                .map(ToString::to_string)
                .unwrap_or_default(),
            cells,
        }
    }
}
