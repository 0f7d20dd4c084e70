//! What a demo came to: money, nodes, pods and disruptions, for people and for programs.

use std::{collections::BTreeMap, time::Duration};

use model::price::Price;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Demo, screen::dollars};
use crate::terminal::{counted, grouped, hourly, monthly};

/// The whole of a demo in figures.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// How long it lasted by the cluster's clock.
    lasted_s: u64,
    money: Money,
    nodes: Nodes,
    pods: Pods,
    disruptions: Disruptions,
}

#[derive(Debug, Serialize)]
struct Money {
    #[serde(rename = "spent_usd", serialize_with = "in_dollars")]
    spent_picos: u128,
    #[serde(rename = "mean_usd_h", with = "insight::usd")]
    mean: Price,
    #[serde(rename = "end_usd_h", with = "insight::usd")]
    end: Price,
}

#[derive(Debug, Serialize)]
struct Nodes {
    launched: u64,
    at_the_end: usize,
    at_most: usize,
    taken_back: u64,
}

#[derive(Debug, Serialize)]
struct Pods {
    ever: u64,
    running: usize,
    waiting: usize,
    longest_wait_s: i64,
}

#[derive(Debug, Serialize)]
struct Disruptions {
    nodes: u64,
    by_reason: BTreeMap<String, u64>,
    evicted_pods: u64,
}

/// To the hundredth of a cent: what follows is noise of the division.
#[expect(clippy::cast_precision_loss, reason = "an amount in dollars, for documents")]
fn in_dollars<S: serde::Serializer>(picos: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((picos / 100_000_000) as f64 / 10_000.0)
}

impl Summary {
    pub(super) async fn of(demo: &Demo) -> Self {
        let tally = demo.tally.lock().await;
        let bill = demo.world.region.bill();
        let time: Duration = demo.began.elapsed();
        let seconds = u128::from(time.as_secs().max(1));
        let mean = u64::try_from(bill.spent_picos * 3600 / seconds).unwrap_or(u64::MAX);
        Self {
            lasted_s: time.as_secs(),
            money: Money {
                spent_picos: bill.spent_picos,
                mean: Price::from_picos(mean),
                end: bill.hourly,
            },
            nodes: Nodes {
                launched: bill.launched,
                at_the_end: tally.nodes.len(),
                at_most: tally.most_nodes,
                taken_back: bill.taken,
            },
            pods: Pods {
                ever: tally.pods_ever,
                running: tally.running.len(),
                waiting: tally.waiting.len(),
                longest_wait_s: tally.longest_wait,
            },
            disruptions: Disruptions {
                nodes: tally.disruptions(),
                by_reason: tally
                    .disrupted
                    .iter()
                    .map(|(reason, count)| (reason.clone(), *count))
                    .collect(),
                evicted_pods: tally.evicted,
            },
        }
    }

    pub(super) fn document(&self, seed: u64) -> Value {
        let mut document = serde_json::to_value(self).unwrap_or_default();
        document["apiVersion"] = json!("dovetail.dev/v1alpha1");
        document["kind"] = json!("DemoSummary");
        document["engine"] = json!(env!("CARGO_PKG_VERSION"));
        document["seed"] = json!(seed);
        document
    }

    pub(super) fn text(&self) -> String {
        let Self {
            money,
            nodes,
            pods,
            disruptions,
            ..
        } = self;
        let reasons = disruptions
            .by_reason
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"));
        let reasons = match reasons.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => none,
            some => format!(" ({some})"),
        };
        let minutes = self.lasted_s / 60;
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        format!(
            "\n\nIn {}:{:02} h of the cluster's time\n\
             money        {} spent, {} on average, {} at the end ({})\n\
             nodes        {} launched, {} at the end, at most {} at a time, {} taken back by the cloud\n\
             pods         {} in all, {} run, {} wait; the longest wait for a node was {} s\n\
             disruptions  {}{reasons}, {} evicted\n",
            minutes / 60,
            minutes % 60,
            dollars(money.spent_picos),
            hourly(money.mean),
            hourly(money.end),
            monthly(money.end),
            nodes.launched,
            nodes.at_the_end,
            nodes.at_most,
            nodes.taken_back,
            grouped(u128::from(pods.ever)),
            grouped(pods.running as u128),
            grouped(pods.waiting as u128),
            pods.longest_wait_s,
            counted(count(disruptions.nodes), "node"),
            counted(count(disruptions.evicted_pods), "pod"),
        )
    }
}
