//! The fleet as of one snapshot: everything lists and heads show, made once for each snapshot and away from the screen.

use std::{collections::BTreeSet, sync::Arc};

use insight::{
    Dollars, Fill, Machine, Prices, Requests, State, View,
    fleet::{NodeRow, Pods, Pool},
};
use jiff::Timestamp;
use model::{
    object::{Labels, NodeName},
    snapshot::Snapshot,
};

use crate::choice::{COMPUTED, Choices};

/// The fleet as of one snapshot.
#[derive(Debug)]
pub struct Picture {
    /// Counts snapshots, so that answers are known to belong together.
    pub serial: u64,
    /// The time of it.
    pub taken_at: Timestamp,
    /// What the cluster is called and says of itself.
    pub title: Title,
    /// The nodes that were chosen, by name.
    pub rows: Vec<Row>,
    /// What they come to.
    pub total: Total,
    /// Pods by how they fare.
    pub pods: Pods,
    /// Pools by name.
    pub pools: Vec<Pool>,
    /// What it was made from.
    pub snapshot: Arc<Snapshot>,
    /// What instance types cost.
    pub prices: Arc<Prices>,
}

/// What a cluster is called and says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Title {
    /// Its name.
    pub cluster: String,
    /// As its API server or its newest kubelet says: `v1.33.2-eks-7f2c`.
    pub kubernetes: String,
    /// Whose prices count.
    pub region: String,
    /// Who leads; none when nobody does, or nobody can tell.
    pub leader: Option<String>,
    /// The day of the prices: `2026-07-20`.
    pub prices_of: String,
}

impl Title {
    /// `EKS 1.33`, `Kubernetes 1.36`.
    pub(crate) fn platform(&self) -> String {
        let version = self.kubernetes.trim_start_matches('v');
        let mut numbers = version.split(['.', '-', '+']);
        match (numbers.next(), numbers.next()) {
            (Some(major), Some(minor)) if !major.is_empty() => {
                let is_eks = version.contains("-eks-");
                format!("{} {major}.{minor}", if is_eks { "EKS" } else { "Kubernetes" })
            }
            _ => String::new(),
        }
    }
}

/// A node in the list.
#[derive(Debug, Clone)]
pub struct Row {
    /// What every answer says of it.
    pub node: NodeRow,
    /// Whether it was launched for a NodePool.
    pub is_managed: bool,
    /// Its labels.
    pub labels: Labels,
    /// A share for each chosen resource.
    pub shares: Vec<Share>,
    /// When it was asked for.
    pub created: Option<Timestamp>,
    /// For how long it has not been ready, if it is not.
    pub not_ready_s: Option<i64>,
    vcpu: u64,
}

/// How much of a resource is asked for; in thousandths of its unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share(pub Fill);

/// What the chosen nodes come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Total {
    /// With a node.
    pub nodes: usize,
    /// Without one yet.
    pub launching: usize,
    /// Of somebody else's.
    pub unmanaged: usize,
    /// Spot nodes.
    pub spot: usize,
    /// Cores, and those of spot nodes.
    pub vcpu: Fill,
    /// A share for each chosen resource.
    pub shares: Vec<Share>,
    /// What they cost.
    pub spend_usd_h: Dollars,
    /// Nodes that have drifted.
    pub drifted: usize,
}

/// A pod of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodLine {
    pub(crate) pod: String,
    pub(crate) cpu_m: u64,
    pub(crate) memory_mib: u64,
    pub(crate) is_daemon: bool,
}

impl Picture {
    /// Looks at a snapshot.
    pub fn of(serial: u64, snapshot: Arc<Snapshot>, prices: Arc<Prices>, title: Title, choices: &Choices) -> Self {
        let view = View::priced(&snapshot, &prices);
        let rows: Vec<Row> = view
            .machines
            .iter()
            .filter(|machine| choices.selector.selects(&machine.member.labels()))
            .map(|machine| row(&view, machine, choices))
            .collect();
        let total = total(&rows, choices);
        let (pods, pools) = (Pods::of(&view), Pool::all(&view));
        drop(view);
        Self {
            serial,
            taken_at: snapshot.taken_at(),
            title,
            rows,
            total,
            pods,
            pools,
            prices,
            snapshot,
        }
    }

    /// A node by its name.
    pub(crate) fn row(&self, name: &str) -> Option<&Row> {
        let at = self
            .rows
            .binary_search_by(|row| row.node.name.as_str().cmp(name))
            .ok()?;
        self.rows.get(at)
    }

    /// The pods of a node, the largest first and those of DaemonSets last.
    pub(crate) fn pods_of(&self, node: &str) -> Vec<PodLine> {
        let mut requests = Requests::default();
        let name = NodeName::from(node);
        let bound = self.snapshot.pods_on_node(&name);
        let mut pods: Vec<PodLine> = bound
            .filter(|pod| !pod.is_terminal())
            .map(|pod| {
                let asked = requests.of(pod);
                PodLine {
                    pod: pod.metadata.key().to_string(),
                    cpu_m: asked.cpu_m,
                    memory_mib: asked.memory_mib(),
                    is_daemon: pod.is_owned_by_daemon_set() || pod.is_owned_by_node(),
                }
            })
            .collect();
        pods.sort_by(|a, b| {
            let order = a.is_daemon.cmp(&b.is_daemon);
            order.then((b.cpu_m, b.memory_mib, &a.pod).cmp(&(a.cpu_m, a.memory_mib, &b.pod)))
        });
        pods
    }
}

fn row(view: &View<'_>, machine: &Machine<'_>, choices: &Choices) -> Row {
    let node = NodeRow::of(view, machine);
    let shares = choices
        .resources
        .iter()
        .map(|name| match name.as_str() {
            "cpu" => Share(node.cpu_m),
            "memory" => Share(node.memory_mib),
            other => Share(asked(machine, other)),
        })
        .collect();
    let ready = machine.member.node.and_then(|node| node.condition("Ready"));
    let since = ready.and_then(|ready| ready.last_transition_time);
    let not_ready_s = since
        .filter(|_| machine.state == State::NotReady)
        .map(|since| view.seconds_since(since));
    Row {
        is_managed: machine.is_managed(),
        labels: machine.member.labels(),
        shares,
        created: machine.created(),
        not_ready_s,
        vcpu: machine.capacity.cpu_m / 1000,
        node,
    }
}

/// What pods ask of a resource that is neither cpu nor memory.
fn asked(machine: &Machine<'_>, resource: &str) -> Fill {
    let unsigned = |amount: i64| u64::try_from(amount).unwrap_or_default();
    let allocatable = unsigned(machine.member.allocatable().amount(resource).value());
    let requested = if resource == "pods" {
        machine.pods.len() as u64
    } else {
        let requests = machine.pods.iter().map(|pod| pod.resources().requests());
        requests
            .map(|requests| unsigned(requests.amount(resource).value()))
            .sum()
    };
    Fill { requested, allocatable }
}

/// Somebody else's nodes count where somebody chose nodes by a label; otherwise what is ours counts.
fn total(rows: &[Row], choices: &Choices) -> Total {
    let mut total = Total {
        shares: vec![Share::default(); choices.resources.len()],
        ..Total::default()
    };
    for row in rows {
        if !row.is_managed {
            total.unmanaged += 1;
            if choices.selector.is_empty() {
                continue;
            }
        }
        total.spend_usd_h += row.node.usd_h.unwrap_or_default();
        if row.node.state == State::Launching {
            total.launching += 1;
            continue;
        }
        total.nodes += 1;
        total.drifted += usize::from(row.node.drifted);
        total.vcpu.allocatable += row.vcpu;
        if row.is_spot() {
            total.spot += 1;
            total.vcpu.requested += row.vcpu;
        }
        for (sum, share) in total.shares.iter_mut().zip(&row.shares) {
            sum.0.requested += share.0.requested;
            sum.0.allocatable += share.0.allocatable;
        }
    }
    total
}

impl Row {
    pub(crate) fn is_spot(&self) -> bool {
        self.node.capacity_type.as_deref() == Some(api::labels::CAPACITY_TYPE_SPOT)
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.node.capacity_type.as_deref() == Some(api::labels::CAPACITY_TYPE_RESERVED)
    }

    pub(crate) fn pods(&self) -> Fill {
        Fill {
            requested: self.node.pods as u64,
            allocatable: self.node.pod_capacity,
        }
    }

    /// How old it is at a time.
    pub(crate) fn age_s(&self, now: Timestamp) -> Option<i64> {
        self.created.map(|created| now.duration_since(created).as_secs().max(0))
    }

    /// The value of a label, or of one that is worked out.
    pub(crate) fn label(&self, key: &str, now: Timestamp) -> String {
        let of_node = || self.labels.get(key).map(ToString::to_string).unwrap_or_default();
        match key.strip_prefix(COMPUTED) {
            Some("age") => self.age_s(now).map(crate::figure::age).unwrap_or_default(),
            Some("cpu-usage") => crate::figure::whole_percent(self.node.cpu_m),
            Some("memory-usage") => crate::figure::whole_percent(self.node.memory_mib),
            Some("pods-usage") => crate::figure::whole_percent(self.pods()),
            _ => of_node(),
        }
    }
}

/// Rows by pool, zone or type: how many, how full, how dear.
pub(crate) fn summed<'r>(rows: impl Iterator<Item = &'r Row>) -> (usize, Fill, Fill, Dollars) {
    let mut sum = (0, Fill::default(), Fill::default(), Dollars::ZERO);
    for row in rows {
        sum.0 += 1;
        sum.1.requested += row.node.cpu_m.requested;
        sum.1.allocatable += row.node.cpu_m.allocatable;
        sum.2.requested += row.node.memory_mib.requested;
        sum.2.allocatable += row.node.memory_mib.allocatable;
        sum.3 += row.node.usd_h.unwrap_or_default();
    }
    sum
}

/// Names that a later picture has and an earlier one has not, with how many are gone.
pub(crate) fn differences(before: &Picture, after: &Picture) -> (Vec<String>, usize) {
    let had: BTreeSet<&str> = before.rows.iter().map(|row| row.node.name.as_str()).collect();
    let new: Vec<String> = after
        .rows
        .iter()
        .filter(|row| !had.contains(row.node.name.as_str()))
        .map(|row| row.node.name.clone())
        .collect();
    let gone = (before.rows.len() + new.len()).saturating_sub(after.rows.len());
    (new, gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_is_told_from_its_version() {
        let platform = |version: &str| {
            Title {
                kubernetes: version.into(),
                ..Title::default()
            }
            .platform()
        };
        assert_eq!(platform("v1.33.2-eks-7f2c"), "EKS 1.33");
        assert_eq!(platform("v1.36.0"), "Kubernetes 1.36");
        assert_eq!(platform(""), "");
    }
}
