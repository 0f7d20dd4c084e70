//! `dovetail status`: the fleet at a glance, with pools, fill, spend, what is next and what needs a person.

mod table;

use std::{collections::BTreeMap, sync::Arc};

use insight::{
    Prices,
    alert::{Alert, alerts},
    fleet::{Fleet, Pods, Pool},
    launch::{self, Pending, Report},
    money::{Accounts, Bounds, Money},
    outlook::{Move, Outlook, Reach, Total},
};
use model::{
    object::{Labels, NodePool},
    snapshot::Snapshot,
};
use serde::Serialize;

use crate::{
    answer::Answer,
    failure::Failure,
    notice,
    plan::threads,
    reply::{Format, Reply, formats},
    source::{self, Input, Needs, Origin, SourceArgs},
    terminal::counted,
    together::together,
};

/// Print the fleet at a glance: pools, fill, spend, what is next, what is blocked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these NodePools in the table.
    #[arg(long = "pool", value_name = "NODEPOOL")]
    pools: Vec<String>,
    /// Only NodePools with these labels in the table, their own or those they give their nodes: `team=shop`.
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = tui::Selector::read)]
    selector: Option<tui::Selector>,
    /// How to print it.
    #[arg(short, long, default_value = "table", value_parser = formats(&["table", "wide", "json", "yaml", "csv", "name"]))]
    output: Format,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) reply: Reply,
}

/// The fleet at a glance.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    /// What Kubernetes it is; empty where nobody says.
    kubernetes: String,
    region: String,
    fleet: Fleet,
    pods: Pods,
    money: Money,
    pools: Vec<PoolStatus>,
    pending: Vec<Pending>,
    /// How many of those that wait would get a node, new or not.
    on_their_way: usize,
    next: Vec<Move>,
    outlook: Total,
    /// What the cloud said about machines, as far as Events and decisions tell.
    notices: notice::Count,
    alerts: Vec<Alert>,
}

/// A pool, with what others say of it.
#[derive(Debug, Serialize)]
struct PoolStatus {
    #[serde(flatten)]
    pool: Pool,
    money: Money,
    held: usize,
    pending: usize,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let mut input = source::read(&args.source, Needs::Decisions)?.about_moves();
    let ledger = notice::read(&args.source.place, &input);
    input.assumed.extend(ledger.gaps.iter().cloned());
    let mut status = status(&input, &args.pools)?;
    if let Some(selector) = &args.selector {
        let meant = labelled(&input.snapshot, selector)?;
        status.pools.retain(|it| meant.contains(&it.pool.name));
    }
    status.notices = ledger.count(&claims_of_nodes(&input));
    let needs_a_person = !status.alerts.is_empty();
    args.reply
        .answer(&input, ("Status", &status), args.output, needs_a_person, |screen| {
            if args.output == Format::Csv {
                return table::csv(&status);
            }
            if args.output == Format::Name {
                return status
                    .pools
                    .iter()
                    .map(|it| format!("nodepool/{}\n", it.pool.name))
                    .collect();
            }
            table::render(&status, &input, screen)
        })
}

fn status(input: &Input, wanted: &[String]) -> Result<Status, Failure> {
    let snapshot = &input.snapshot;
    let prices = Prices::of(snapshot);
    let view = input.priced(&prices);
    let options = packing::Options {
        threads: threads(),
        ..packing::Options::default()
    };
    let reach = Reach::for_machines(view.machines.len(), threads());
    let ((report, bounds), outlook) = together(
        || {
            let planned = launch::plan(input.planning(), &options);
            (Report::of(input.planning(), &planned), Bounds::of(&view))
        },
        || Outlook::of(&input.looked_at(&prices), reach),
    );
    let accounts = Accounts::of(&view, &prices, &outlook, &bounds);
    let pools = Pool::all(&view);
    if let Some(unknown) = wanted.iter().find(|name| pools.iter().all(|pool| pool.name != **name)) {
        let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
        return Err(Failure::new(
            format!("no NodePool {unknown}"),
            format!("there are {}", names.join(", ")),
            "name one of them with --pool",
        ));
    }
    let alerts = alerts(&view, &pools, &report.pending, &outlook);
    let held = |name: &str| {
        let held = outlook.held.iter().filter(|kept| kept.pool == name);
        held.map(|kept| kept.targets.len()).sum()
    };
    let pending = |name: &str| {
        let of_pool = |group: &&Pending| group.funnel.as_ref().is_some_and(|funnel| funnel.node_pool == name);
        let blocked: usize = report
            .pending
            .iter()
            .filter(of_pool)
            .map(|group| group.pods.len())
            .sum();
        let launching = report.new_nodes.iter().filter(|node| node.node_pool == name);
        blocked + launching.map(|node| node.pods.len()).sum::<usize>()
    };
    let pools = pools.into_iter().map(|pool| PoolStatus {
        money: accounts.pools.get(&pool.name).cloned().unwrap_or_default(),
        held: held(&pool.name),
        pending: pending(&pool.name),
        pool,
    });
    let shown = |it: &PoolStatus| wanted.is_empty() || wanted.contains(&it.pool.name);
    Ok(Status {
        kubernetes: kubernetes(input),
        region: input
            .catalogue
            .as_ref()
            .map(|offers| offers.region.clone())
            .unwrap_or_default(),
        fleet: Fleet::of(&view),
        pods: Pods::of(&view),
        pools: pools.filter(shown).collect(),
        money: accounts.money,
        on_their_way: report.pods.on_new_nodes + report.pods.on_existing_nodes,
        pending: report.pending,
        next: outlook.moves,
        outlook: outlook.total,
        notices: notice::Count::default(),
        alerts,
    })
}

/// The NodePools with labels, their own or those of their nodes.
fn labelled(snapshot: &Snapshot, selector: &tui::Selector) -> Result<Vec<String>, Failure> {
    let pools = &snapshot.objects().node_pools;
    let is_meant = |pool: &&Arc<NodePool>| {
        let of_nodes = pool.spec.template.metadata.labels.iter();
        let all: Labels = of_nodes.chain(pool.metadata.labels.iter()).cloned().collect();
        selector.selects(&all) || selector.selects(&pool.metadata.labels)
    };
    let names: Vec<String> = pools
        .iter()
        .filter(is_meant)
        .map(|pool| pool.metadata.name.to_string())
        .collect();
    if names.is_empty() {
        return Err(Failure::new(
            "no NodePool has these labels",
            format!(
                "{} looked through, their own labels and those they give their nodes",
                counted(pools.len(), "NodePool")
            ),
            "kubectl get nodepools --show-labels",
        ));
    }
    Ok(names)
}

/// The claim of each node: notices name either.
fn claims_of_nodes(input: &Input) -> BTreeMap<String, String> {
    let claims = input.snapshot.objects().node_claims.iter();
    claims
        .filter_map(|claim| {
            let node = claim.status.node_name.as_ref()?;
            Some((node.to_string(), claim.metadata.name.to_string()))
        })
        .collect()
}

/// What the API server says it is, or else the newest kubelet.
fn kubernetes(input: &Input) -> String {
    if let Origin::Live {
        version: Some(version), ..
    } = &input.origin
    {
        return version.clone();
    }
    let nodes = input.snapshot.objects().nodes.iter();
    let versions = nodes.map(|node| node.status.node_info.kubelet_version.to_string());
    versions.max().unwrap_or_default()
}
