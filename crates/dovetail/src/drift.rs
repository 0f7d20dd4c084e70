//! `dovetail drift`: which nodes have drifted and why; who would roll after a change, in which windows, until when.

mod judge;
mod roll;
mod table;

use std::{collections::BTreeMap, path::PathBuf};

use model::object::NodeClaim;
use serde::Serialize;
use serde_json::json;

use self::{judge::Fleet, roll::Roll};
use crate::{
    answer::Answer,
    document,
    failure::Failure,
    place::Place,
    raw::{self, Raw, noted},
    reply::Reply,
    terminal::counted,
    trace,
};

/// Print which nodes have drifted and why; with --preview, who would roll after a change, in what windows, until when.
///
/// Nothing is changed. Compared are the drift hashes of NodePools and NodeClasses, requirements, and the images that a
/// NodeClass's status names. How long a wave takes is assumed; --wave says it.
///
/// Example: dovetail drift --preview -f nodeclass-default.yaml
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Look at what would be after these manifests were applied.
    #[arg(long, requires = "files")]
    preview: bool,
    /// The manifests of the change: files, directories, or `-` for standard input.
    #[arg(short = 'f', long = "filename", num_args = 1.., value_name = "PATH", requires = "preview")]
    files: Vec<PathBuf>,
    /// Only NodeClaims with these labels, as kubectl has them: `karpenter.sh/nodepool=general`, `team in (a,b)`.
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = tui::Selector::read)]
    selector: Option<tui::Selector>,
    #[command(flatten)]
    pub(crate) place: Place,
    /// How long the replacement of a wave of nodes is assumed to take.
    #[arg(long, value_name = "DURATION", default_value = "15m")]
    wave: api::duration::Duration,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    pub(crate) reply: Reply,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Table,
    Json,
    Yaml,
}

/// What drifts.
#[derive(Debug, Serialize)]
struct Report {
    /// What is looked at before it is applied; empty without a preview.
    #[serde(skip_serializing_if = "String::is_empty")]
    change: String,
    /// All nodes of NodePools.
    nodes: usize,
    pools: Vec<PoolReport>,
    /// What could not be compared, a sentence each.
    assumed: Vec<String>,
}

/// What drifts in a pool.
#[derive(Debug, Serialize)]
struct PoolReport {
    name: String,
    nodes: Vec<NodeReport>,
    now_drifted: usize,
    pods: usize,
    #[serde(flatten)]
    roll: Roll,
}

/// A node that drifts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct NodeReport {
    node: String,
    nodeclaim: String,
    /// One word, as upstream has it.
    why: String,
    detail: String,
    pods: usize,
    /// Whether it has drifted already.
    is_now: bool,
    /// Whether the controller has marked it so.
    marked: bool,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let raw = read(args)?;
    let change = if args.preview {
        Some(raw::of_files(&args.files)?)
    } else {
        None
    };
    let report = report(&raw, change.as_ref(), args)?;
    let rolls = report.pools.iter().any(|pool| !pool.nodes.is_empty());
    let screen = args.reply.presentation.screen();
    let envelope = || {
        let frame = raw.frame(args.place.at.unwrap_or(raw.now));
        let answer = json!({"change": report.change, "nodes": report.nodes, "pools": report.pools});
        frame.around("Drift", &report.assumed, answer)
    };
    let text = match args.output {
        Format::Table => table::render(&report, &screen),
        Format::Json => document::json(&envelope())?,
        Format::Yaml => document::yaml(&envelope())?,
    };
    let notes = noted("assumed", &report.assumed) + &trace::of_objects(&raw, args.reply.verbose);
    let answer = args.reply.told(text, notes)?;
    Ok(Answer {
        is_finding: args.reply.exit_code && rolls,
        ..answer
    })
}

fn read(args: &Args) -> anyhow::Result<Raw> {
    if !args.place.from.is_empty() {
        return Ok(raw::of_files(&args.place.from)?);
    }
    raw::of_cluster(&args.place.cluster())
}

fn report(raw: &Raw, change: Option<&Raw>, args: &Args) -> Result<Report, Failure> {
    let (now, wave) = (args.place.at.unwrap_or(raw.now), args.wave);
    let fleet = Fleet::read(raw);
    if fleet.pools.is_empty() {
        let why = "the source has none of kind NodePool in karpenter.sh/v1";
        let next = "kubectl get nodepools,nodeclaims,ec2nodeclasses,nodes,pods -A -o yaml > dump.yaml";
        return Err(Failure::new(format!("no NodePool in {}", raw.name), why, next));
    }
    let after = match change {
        None => None,
        Some(change) => Some(fleet.with(change)?),
    };
    let mut assumed = raw.gaps.clone();
    let mut drifting: BTreeMap<String, Vec<NodeReport>> = BTreeMap::new();
    let is_meant = |claim: &&NodeClaim| {
        let selector = args.selector.as_ref();
        selector.is_none_or(|selector| selector.selects(&claim.metadata.labels))
    };
    let meant: Vec<&NodeClaim> = fleet.claims.iter().filter(is_meant).collect();
    if meant.is_empty() && args.selector.is_some() {
        let why = format!("{} looked through", counted(fleet.claims.len(), "NodeClaim"));
        let next = "kubectl get nodeclaims --show-labels";
        return Err(Failure::new("no NodeClaim has these labels", why, next));
    }
    for claim in &meant {
        let today = fleet.drift(claim);
        let then = match &after {
            None => today.clone(),
            Some(after) => today.clone().or_else(|| after.drift_from(&fleet, claim)),
        };
        let Some(drift) = then else { continue };
        let pool = claim.node_pool().map(|pool| pool.to_string()).unwrap_or_default();
        drifting.entry(pool).or_default().push(NodeReport {
            node: claim
                .status
                .node_name
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            nodeclaim: claim.metadata.name.to_string(),
            marked: drift.is_marked,
            why: drift.why,
            detail: drift.detail,
            pods: fleet.pods_on(claim),
            is_now: today.is_some(),
        });
    }
    if let Some(after) = &after {
        assumed.extend(after.unknown.iter().cloned());
    }
    let of_pool = |(name, pool): (&String, &model::object::NodePool)| {
        let mut nodes = drifting.remove(name).unwrap_or_default();
        nodes.sort_by(|one, other| one.node.cmp(&other.node));
        let total = fleet.claims_of(name);
        PoolReport {
            name: name.clone(),
            now_drifted: nodes.iter().filter(|node| node.is_now).count(),
            pods: nodes.iter().map(|node| node.pods).sum(),
            roll: roll::plan(pool, nodes.len(), total, now, wave.to_signed()),
            nodes,
        }
    };
    let pools = after.as_ref().map_or(&fleet.pools, |after| &after.pools);
    let pools: Vec<_> = pools.iter().map(of_pool).collect();
    Ok(Report {
        change: change.map(|change| change.name.clone()).unwrap_or_default(),
        nodes: meant.len(),
        pools,
        assumed,
    })
}
