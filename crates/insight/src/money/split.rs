//! Who pays for what? The price of machines by pool, type, zone or kind of capacity, and by whose pods are on them.

use std::collections::BTreeMap;

use model::object::Pod;
use serde::Serialize;

use super::{AboveBound, Accounts};
use crate::{Amounts, Dollars, Machine, Requests, View};

/// By what money is split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// The NodePool of machines.
    Pool,
    /// Their type.
    Type,
    /// Their zone.
    Zone,
    /// Their kind of capacity.
    Capacity,
    /// The namespace of pods.
    Namespace,
    /// A label of pods.
    Label(String),
}

impl By {
    /// The word for it: `pool`, `label:team`.
    pub fn word(&self) -> String {
        match self {
            Self::Pool => "pool".into(),
            Self::Type => "type".into(),
            Self::Zone => "zone".into(),
            Self::Capacity => "capacity".into(),
            Self::Namespace => "namespace".into(),
            Self::Label(key) => format!("label:{key}"),
        }
    }
}

/// Money by something.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rows {
    /// By what.
    pub key: String,
    /// The dearest first.
    pub rows: Vec<Row>,
}

/// The part of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    /// Whose.
    pub name: String,
    /// Machines, where machines are split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<usize>,
    /// Pods.
    pub pods: usize,
    /// Millicores that pods ask for.
    pub cpu_m: u64,
    /// MiB that pods ask for.
    pub memory_mib: u64,
    /// What it costs.
    pub usd_h: Dollars,
    /// The same for a month.
    pub usd_mo: Dollars,
    /// What of that is on spot.
    pub spot_usd_mo: Dollars,
    /// What of that nobody asks for, where machines are split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_usd_mo: Option<Dollars>,
    /// What is above the bound, by pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above_bound: Option<AboveBound>,
    /// What is saved, by pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_usd_mo: Option<Dollars>,
}

/// Pods of DaemonSets.
const DAEMON_SETS: &str = "__daemonsets__";
/// Room that nobody asks for.
const IDLE: &str = "__idle__";
/// Pods without the label.
const NONE: &str = "__none__";

/// So many MiB count as much as a core: what clouds ask for a core and for memory.
const MIB_PER_CORE: u64 = 7_373;
/// So much of a machine's price is its devices', in percent.
const GPU_PERCENT: u64 = 60;

/// The part of a machine's price that an amount of it is: its devices' and the rest, in which a core counts as 7.2 GiB.
fn part(machine: &Machine<'_>, amounts: Amounts) -> Dollars {
    let price = machine.cost();
    // Exact, so that the weights of pods add up to the weight of all they ask for.
    let weight = |amounts: Amounts| amounts.cpu_m * MIB_PER_CORE * (1 << 20) + amounts.memory * 1000;
    let all = machine.allocatable;
    let of_devices = if all.gpus > 0 {
        price.part(GPU_PERCENT, 100)
    } else {
        Dollars::ZERO
    };
    let devices = of_devices.part(amounts.gpus.min(all.gpus), all.gpus.max(1));
    let rest = (price - of_devices).part(weight(amounts).min(weight(all)), weight(all).max(1));
    devices + rest
}

/// What of a machine's price nobody asks for.
pub(super) fn idle(machine: &Machine<'_>) -> Dollars {
    machine.cost() - part(machine, machine.requested)
}

impl Rows {
    /// Money of a view, split.
    pub fn of(view: &View<'_>, accounts: &Accounts, by: &By) -> Self {
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        match by {
            By::Pool | By::Type | By::Zone | By::Capacity => machines(view, by, &mut rows),
            By::Namespace | By::Label(_) => pods(view, by, &mut rows),
        }
        let mut rows = named(rows);
        if *by == By::Pool {
            for row in &mut rows {
                let money = accounts.pools.get(&row.name);
                row.above_bound = money.map(|money| money.above_bound);
                row.saved_usd_mo = money.map(|money| money.saved.total_usd_mo);
            }
        }
        sort(&mut rows);
        Self { key: by.word(), rows }
    }

    /// What some pods cost, split: their share of the machines they are on.
    pub fn of_pods(view: &View<'_>, by: &By, is_meant: impl Fn(&Pod) -> bool) -> Self {
        let mut requests = Requests::default();
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        for machine in view.managed() {
            for pod in machine.pods.iter().filter(|pod| is_meant(pod)) {
                let name = match by {
                    By::Pool => machine.pool.as_deref(),
                    By::Type => machine.instance_type.as_deref(),
                    By::Zone => machine.zone.as_deref(),
                    By::Capacity => machine.capacity_type.as_deref(),
                    By::Namespace => Some(&*pod.metadata.namespace),
                    By::Label(key) => pod.metadata.labels.get(key).map(|value| &**value),
                };
                let asked = requests.of(pod);
                let row = rows.entry(name.unwrap_or(NONE).to_owned()).or_default();
                row.pods += 1;
                row.cpu_m += asked.cpu_m;
                row.memory_mib += asked.memory_mib();
                add(row, machine, part(machine, asked));
            }
        }
        let mut rows = named(rows);
        sort(&mut rows);
        Self { key: by.word(), rows }
    }
}

fn named(rows: BTreeMap<String, Row>) -> Vec<Row> {
    let rows = rows.into_iter().map(|(name, row)| Row {
        name,
        usd_mo: row.usd_h.monthly(),
        ..row
    });
    rows.collect()
}

/// The dearest first; what is nobody's comes last.
fn sort(rows: &mut [Row]) {
    let is_special = |row: &Row| row.name.starts_with("__");
    rows.sort_by(|a, b| (is_special(a), b.usd_h, &a.name).cmp(&(is_special(b), a.usd_h, &b.name)));
}

fn machines(view: &View<'_>, by: &By, rows: &mut BTreeMap<String, Row>) {
    for machine in view.managed() {
        let name = match by {
            By::Type => &machine.instance_type,
            By::Zone => &machine.zone,
            By::Capacity => &machine.capacity_type,
            _ => &machine.pool,
        };
        let row = rows.entry(name.as_deref().unwrap_or(NONE).to_owned()).or_default();
        row.nodes = Some(row.nodes.unwrap_or_default() + 1);
        row.pods += machine.pods.len();
        row.cpu_m += machine.requested.cpu_m;
        row.memory_mib += machine.requested.memory_mib();
        add(row, machine, machine.cost());
        row.idle_usd_mo = Some(row.idle_usd_mo.unwrap_or_default() + idle(machine).monthly());
    }
}

fn pods(view: &View<'_>, by: &By, rows: &mut BTreeMap<String, Row>) {
    let mut requests = Requests::default();
    for machine in view.managed() {
        for pod in &machine.pods {
            let name = if pod.is_owned_by_daemon_set() || pod.is_owned_by_node() {
                DAEMON_SETS
            } else {
                match by {
                    By::Label(key) => pod.metadata.labels.get(key).map_or(NONE, |value| &**value),
                    _ => &*pod.metadata.namespace,
                }
            };
            let asked = requests.of(pod);
            let row = rows.entry(name.to_owned()).or_default();
            row.pods += 1;
            row.cpu_m += asked.cpu_m;
            row.memory_mib += asked.memory_mib();
            add(row, machine, part(machine, asked));
        }
        let free = |all: u64, asked: u64| all.saturating_sub(asked);
        let row = rows.entry(IDLE.to_owned()).or_default();
        row.cpu_m += free(machine.allocatable.cpu_m, machine.requested.cpu_m);
        row.memory_mib += free(machine.allocatable.memory_mib(), machine.requested.memory_mib());
        add(row, machine, idle(machine));
    }
}

fn add(row: &mut Row, machine: &Machine<'_>, amount: Dollars) {
    row.usd_h += amount;
    if machine.is_spot() {
        row.spot_usd_mo += amount.monthly();
    }
}
