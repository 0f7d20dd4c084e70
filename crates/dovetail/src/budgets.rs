//! `dovetail budgets`: when nodes may be disturbed in the coming days, and how many.

mod table;

use std::collections::BTreeMap;

use disruption::{Reason, UNLIMITED};
use jiff::{SignedDuration, Timestamp};
use model::{
    object::{Budget, NodePool},
    snapshot::Snapshot,
};
use runtime::Clock;
use serde::Serialize;

use crate::{
    answer::Answer,
    failure::Failure,
    plugin,
    reply::{Format, Reply, formats},
    source::{self, Needs, SourceArgs},
};

/// What the API server writes where a NodePool says nothing of budgets.
const DEFAULT_NODES: &str = "10%";

/// Print when nodes of each NodePool may be disrupted in the coming days, and how many at a time.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many days.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u8).range(1..=31))]
    days: u8,
    /// Only these NodePools.
    #[arg(long = "pool", value_name = "NODEPOOL")]
    pools: Vec<String>,
    /// How to print it.
    #[arg(short, long, default_value = "table", value_parser = formats(&["table", "json", "yaml"]))]
    output: Format,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) reply: Reply,
}

/// What pools allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    from: Timestamp,
    to: Timestamp,
    pools: Vec<PoolReport>,
}

/// What a pool allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct PoolReport {
    name: String,
    zone: String,
    nodes: u32,
    /// Why nothing is allowed: the budgets cannot be read, or the pool is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed: Option<String>,
    reasons: Vec<ReasonReport>,
}

/// What a pool allows for a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ReasonReport {
    reason: &'static str,
    /// At a time, now; none without a limit.
    now: Option<u32>,
    windows: Vec<Window>,
}

/// A span in which so many nodes may go at a time; none without a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Window {
    from: Timestamp,
    to: Timestamp,
    nodes: Option<u32>,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let input = source::read(&args.source, Needs::Pools)?;
    // A calendar begins today, whenever the dump was made.
    let now = args.source.place.at.unwrap_or_else(|| Clock::system().now());
    let report = report(&input.snapshot, now, args.days, &args.pools)?;
    let is_closed = report.pools.iter().all(PoolReport::is_closed);
    args.reply
        .answer(&input, ("Budgets", &report), args.output, is_closed, |screen| {
            table::render(&report, screen)
        })
}

impl PoolReport {
    /// Whether no node may go now for any reason.
    fn is_closed(&self) -> bool {
        self.closed.is_some() || self.reasons.iter().all(|reason| reason.now == Some(0))
    }
}

fn report(snapshot: &Snapshot, now: Timestamp, days: u8, wanted: &[String]) -> Result<Report, Failure> {
    let to = now + SignedDuration::from_hours(24 * i64::from(days));
    let known = || snapshot.objects().node_pools.iter().map(|pool| &*pool.metadata.name);
    if let Some(unknown) = wanted.iter().find(|name| known().all(|other| other != name.as_str()))
        && known().next().is_some()
    {
        return Err(plugin::unknown("NodePool", unknown, known()));
    }
    let is_wanted = |pool: &NodePool| wanted.is_empty() || wanted.iter().any(|name| **name == *pool.metadata.name);
    let pools = snapshot.objects().node_pools.iter().filter(|pool| is_wanted(pool));
    let pools: Vec<_> = pools.map(|pool| of_pool(snapshot, pool, now, to)).collect();
    if pools.is_empty() {
        let why = "the source has none of kind NodePool in karpenter.sh/v1";
        return Err(Failure::new(
            "no NodePool to show",
            why,
            "kubectl get nodepools -o yaml",
        ));
    }
    Ok(Report { from: now, to, pools })
}

/// What each pool allows in the coming days, by its name.
pub(crate) fn by_pool(snapshot: &Snapshot, days: u8) -> Vec<(String, serde_json::Value)> {
    let now = snapshot.taken_at();
    let to = now + SignedDuration::from_hours(24 * i64::from(days));
    let pools = snapshot.objects().node_pools.iter();
    let reports = pools.map(|pool| of_pool(snapshot, pool, now, to));
    reports
        .map(|report| (report.name.clone(), serde_json::to_value(&report).unwrap_or_default()))
        .collect()
}

fn of_pool(snapshot: &Snapshot, pool: &NodePool, from: Timestamp, to: Timestamp) -> PoolReport {
    let pool = &defaulted(pool);
    let nodes = snapshot.nodes_of_pool(&pool.name()).count();
    let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
    // A share of no nodes is none; when the pool is open shows with its first one.
    let (windows, closed) = match disruption::windows(pool, nodes.max(1), from, to) {
        Ok(windows) => (windows, paused(pool, from)),
        Err(error) => (
            Vec::new(),
            Some(format!(
                "{error}: nothing may be disrupted for any reason until that is mended"
            )),
        ),
    };
    let limited = |nodes: u32| (nodes != UNLIMITED).then_some(nodes);
    let mut reasons: BTreeMap<Reason, Vec<Window>> = BTreeMap::new();
    for window in &windows {
        for (reason, nodes) in &window.allowed {
            let spans = reasons.entry(*reason).or_default();
            let nodes = limited(*nodes);
            match spans.last_mut() {
                Some(last) if last.nodes == nodes => last.to = window.until,
                _ => spans.push(Window {
                    from: window.from,
                    to: window.until,
                    nodes,
                }),
            }
        }
    }
    let reasons = reasons.into_iter().map(|(reason, windows)| ReasonReport {
        reason: reason.as_str(),
        now: windows.first().and_then(|window| window.nodes),
        windows,
    });
    let zone = pool.metadata.annotations.get(disruption::BUDGET_TIME_ZONE);
    PoolReport {
        name: pool.metadata.name.to_string(),
        zone: zone.map_or("UTC".to_owned(), ToString::to_string),
        nodes,
        closed,
        reasons: reasons.collect(),
    }
}

/// The pool with the budget that the API server writes on pools without any. One that it has seen, and that has none,
/// was given none on purpose.
fn defaulted(pool: &NodePool) -> NodePool {
    let mut pool = pool.clone();
    let is_seen = !pool.metadata.uid.is_unset();
    if !is_seen && pool.spec.disruption.budgets.is_empty() {
        let budget = Budget {
            nodes: DEFAULT_NODES.into(),
            ..Budget::default()
        };
        pool.spec.disruption.budgets = [budget].into_iter().collect();
    }
    pool
}

fn paused(pool: &NodePool, now: Timestamp) -> Option<String> {
    let until = pool.metadata.annotations.get(api::annotations::PAUSE)?;
    let reason = pool.metadata.annotations.get(api::annotations::PAUSE_REASON);
    let reason = reason.map(|reason| format!(": {reason:?}")).unwrap_or_default();
    match until.parse::<Timestamp>() {
        Ok(until) if until <= now => None,
        Ok(until) => Some(format!("paused until {until}{reason}")),
        Err(_) => Some(format!("paused until it is resumed{reason}")),
    }
}

#[cfg(test)]
mod tests {
    use model::dump::{self, Source};
    use serde_json::json;

    use super::*;
    use crate::terminal::Screen;

    fn snapshot(pools: &[serde_json::Value]) -> Snapshot {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": pools}).to_string();
        let options = dump::Options {
            mode: dump::Mode::Strict,
            taken_at: now(),
        };
        let stream = Source::Stream("test".into(), Box::new(std::io::Cursor::new(list.into_bytes())));
        dump::read([stream], options).unwrap().0
    }

    /// A Monday.
    fn now() -> Timestamp {
        "2026-11-16T10:42:00Z".parse().unwrap()
    }

    fn pool(name: &str, budgets: &serde_json::Value) -> serde_json::Value {
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": {
            "disruption": {"consolidateAfter": "0s", "budgets": budgets},
            "template": {"spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}}},
        }})
    }

    #[test]
    fn a_budget_for_office_hours_closes_the_pool_in_them() {
        let office = json!([{"nodes": "2"}, {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 8 * * 1-5", "duration": "10h"}]);
        let report = report(&snapshot(&[pool("general", &office)]), now(), 7, &[]).unwrap();
        let drifted = report.pools[0]
            .reasons
            .iter()
            .find(|one| one.reason == "Drifted")
            .unwrap();
        assert_eq!(drifted.now, Some(0));
        let first: Vec<_> = drifted
            .windows
            .iter()
            .take(3)
            .map(|one| (one.from.to_string(), one.nodes))
            .collect();
        assert_eq!(
            first,
            [
                ("2026-11-16T10:42:00Z".to_owned(), Some(0)),
                ("2026-11-16T18:00:00Z".to_owned(), Some(2)),
                ("2026-11-17T08:00:00Z".to_owned(), Some(0)),
            ]
        );
        let empty = report.pools[0]
            .reasons
            .iter()
            .find(|one| one.reason == "Empty")
            .unwrap();
        assert_eq!((empty.now, empty.windows.len()), (Some(2), 1));
    }

    #[test]
    fn the_table_shows_each_day_and_when_a_closed_pool_opens() {
        let office = json!([{"nodes": "2"}, {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 8 * * 1-5", "duration": "10h"}]);
        let report = report(&snapshot(&[pool("general", &office)]), now(), 3, &[]).unwrap();
        let screen = Screen {
            width: Some(120),
            is_ascii: true,
            ..Screen::default()
        };
        let expected =
            "Disruption windows from Mon 16 Nov 10:42 UTC; one sign is 3 h.   # open  + open for a part  . closed";
        let shown = table::render(&report, &screen);
        assert_eq!(shown.lines().next(), Some(expected));
        let drifted = shown.lines().find(|line| line.contains("Drifted")).unwrap();
        assert!(drifted.contains("##+...##"), "{drifted}");
        assert!(drifted.ends_with("0  18:00 today, 2 nodes"), "{drifted}");
    }

    #[test]
    fn a_pool_no_api_server_has_seen_has_the_budget_it_would_be_given() {
        let now_of = |pool: serde_json::Value| {
            let node = |at: usize| {
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{at}"),
                    "labels": {"karpenter.sh/nodepool": "general"}}})
            };
            let objects: Vec<_> = (0..21).map(node).chain([pool]).collect();
            let report = report(&snapshot(&objects), now(), 7, &[]).unwrap();
            report.pools[0].reasons[0].now
        };
        let mut written = pool("general", &json!([]));
        written["spec"]["disruption"]["budgets"].take();
        assert_eq!(now_of(written), Some(3), "a tenth of 21");
        let mut seen = pool("general", &json!([]));
        seen["metadata"]["uid"] = json!("u");
        assert_eq!(now_of(seen), None, "no budget was its owner's wish");
    }

    #[test]
    fn a_budget_that_cannot_be_read_closes_its_pool() {
        let broken = json!([{"nodes": "2", "schedule": "0 25 * * *", "duration": "1h"}]);
        let report = report(&snapshot(&[pool("general", &broken)]), now(), 7, &[]).unwrap();
        let closed = report.pools[0].closed.as_deref().unwrap();
        assert!(closed.starts_with("invalid schedule \"0 25 * * *\""), "{closed}");
    }
}
