//! The answer as a document: both sides, their difference, and who is concerned.

use std::collections::BTreeMap;

use forecast::{Answer, NewNode, Side};
use model::price::Price;
use serde::Serialize;

use crate::terminal::HOURS_OF_A_MONTH;

/// The answer.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) change: Vec<String>,
    pub(super) before: SideReport,
    pub(super) after: SideReport,
    pub(super) delta: Delta,
    pub(super) new_nodes: Vec<NewNodeReport>,
    pub(super) removed_nodes: Vec<String>,
    pub(super) moved: Vec<Moved>,
    pub(super) unplaced: Vec<Unplaced>,
    pub(super) lost: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct SideReport {
    /// Nodes of NodePools, as in `status`.
    nodes: usize,
    /// Nodes of somebody else's.
    unmanaged: usize,
    spot: usize,
    spend_usd_h: f64,
    spend_usd_mo: f64,
    pools_usd_h: BTreeMap<String, f64>,
    cpu_requested_m: i64,
    cpu_m: i64,
    memory_requested_mib: i64,
    memory_mib: i64,
    pods_running: usize,
    unplaced: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    settled: Option<SettledReport>,
}

/// Once every move that saves money is made.
#[derive(Debug, Serialize)]
struct SettledReport {
    nodes: usize,
    spend_usd_h: f64,
    spend_usd_mo: f64,
    pods_moved: usize,
    is_at_rest: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Delta {
    pub(super) nodes: i64,
    pub(super) usd_h: f64,
    pub(super) usd_mo: f64,
    pub(super) unplaced: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) settled_usd_mo: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct NewNodeReport {
    node_pool: String,
    instance_type: String,
    zone: String,
    capacity_type: String,
    usd_h: f64,
    pods: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Moved {
    pod: String,
    from: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Unplaced {
    pod: String,
    why: String,
}

impl Report {
    pub(super) fn of(answer: &Answer) -> Self {
        let (before, after) = (SideReport::of(&answer.before), SideReport::of(&answer.after));
        Self {
            change: answer.said.clone(),
            delta: Delta::between(&answer.before, &answer.after),
            new_nodes: answer.new_nodes.iter().map(new_node).collect(),
            removed_nodes: answer.removed.iter().map(ToString::to_string).collect(),
            moved: answer
                .moved
                .iter()
                .map(|it| Moved {
                    pod: it.pod.to_string(),
                    from: it.from.to_string(),
                    to: it.to.as_ref().map(ToString::to_string),
                })
                .collect(),
            unplaced: answer
                .stuck
                .iter()
                .map(|it| Unplaced {
                    pod: it.pod.to_string(),
                    why: it.why.clone(),
                })
                .collect(),
            lost: answer.lost.iter().map(ToString::to_string).collect(),
            before,
            after,
        }
    }

    /// A figure that `--fail-if` names.
    pub(super) fn figure(&self, name: &str) -> Option<f64> {
        let count = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        Some(match name {
            "delta_usd_h" => self.delta.usd_h,
            "delta_usd_mo" => self.delta.usd_mo,
            "nodes" => count(self.after.nodes),
            "unplaced" => count(self.unplaced.len()),
            "moved" => count(self.moved.len()),
            "lost" => count(self.lost.len()),
            _ => return None,
        })
    }
}

impl SideReport {
    fn of(side: &Side) -> Self {
        Self {
            nodes: side.nodes,
            unmanaged: side.unmanaged,
            spot: side.spot,
            spend_usd_h: dollars(side.price),
            spend_usd_mo: month(side.price),
            pools_usd_h: side
                .pools
                .iter()
                .map(|(name, price)| (name.to_string(), dollars(*price)))
                .collect(),
            cpu_requested_m: side.cpu.0,
            cpu_m: side.cpu.1,
            memory_requested_mib: side.memory.0,
            memory_mib: side.memory.1,
            pods_running: side.running,
            unplaced: side.unplaced,
            settled: side.settled.as_ref().map(|settled| SettledReport {
                nodes: settled.nodes,
                spend_usd_h: dollars(settled.price),
                spend_usd_mo: month(settled.price),
                pods_moved: settled.moved,
                is_at_rest: settled.is_at_rest,
            }),
        }
    }
}

impl Delta {
    fn between(before: &Side, after: &Side) -> Self {
        let settled = before.settled.as_ref().zip(after.settled.as_ref());
        Self {
            nodes: signed(after.nodes) - signed(before.nodes),
            usd_h: dollars(after.price) - dollars(before.price),
            usd_mo: month(after.price) - month(before.price),
            unplaced: signed(after.unplaced) - signed(before.unplaced),
            settled_usd_mo: settled.map(|(before, after)| month(after.price) - month(before.price)),
        }
    }
}

fn new_node(node: &NewNode) -> NewNodeReport {
    NewNodeReport {
        node_pool: node.node_pool.to_string(),
        instance_type: node.instance_type.clone(),
        zone: node.zone.clone(),
        capacity_type: node.capacity_type.clone(),
        usd_h: dollars(node.price),
        pods: node.pods,
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Dollars as a number, to the hundredth of a cent: what follows is noise of the division.
#[expect(clippy::cast_precision_loss, reason = "a price in dollars, for documents")]
fn dollars(price: Price) -> f64 {
    ((price.picos() / 100_000_000) as f64) / 10_000.0
}

#[expect(clippy::cast_precision_loss, reason = "a price in dollars, for documents")]
fn month(price: Price) -> f64 {
    let cents = u128::from(price.picos()) * u128::from(HOURS_OF_A_MONTH) / 10_000_000_000;
    cents as f64 / 100.0
}
