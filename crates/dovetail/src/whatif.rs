//! `dovetail whatif`: before and after a change, a failure or a price move, on a copy of the cluster.

mod report;
mod table;

use std::{num::NonZero, path::PathBuf, str::FromStr, sync::Arc};

use forecast::{Change, Direction, Expression, Kind, Workload};
use model::{
    dump::{self, Mode},
    object::Job,
    snapshot::{Objects, Snapshot},
};

use crate::{
    answer::Answer,
    failure::Failure,
    raw,
    reply::{Format, Reply, formats},
    source::{self, Needs, SourceArgs},
};

/// Before and after a change, a failure or a price move, on a copy.
///
/// Nothing is written to the cluster. Changes may be combined; manifests come first, then other fields and families, then
/// replicas, prices and failures.
///
///     dovetail whatif --from dump/ -f pools.yaml --fail-if 'delta_usd_mo > 200 or unplaced > 0'
///     dovetail whatif --zone-down b
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Manifests to apply: NodePools, workloads, pods, budgets, overlays.
    #[arg(short, long, value_name = "FILE")]
    filename: Vec<PathBuf>,
    /// A NodePool to add; as -f.
    #[arg(long, value_name = "FILE")]
    add_nodepool: Vec<PathBuf>,
    /// A field of a NodePool: `nodepool/general.spec.limits.cpu=276`.
    #[arg(long, value_name = "OBJECT.PATH=VALUE")]
    set: Vec<Setting>,
    /// An instance family to take from all NodePools, or to add: `-m5`, `+m7i`.
    #[arg(long, value_name = "±FAMILY", allow_hyphen_values = true)]
    instance_family: Vec<Family>,
    /// Other replicas: `shop/deploy/web=50`.
    #[arg(long, value_name = "[NS/]KIND/NAME=N")]
    scale: Vec<Scale>,
    /// Spot costs more or less: `+40%`.
    #[arg(long, value_name = "±P%", allow_hyphen_values = true)]
    spot_price: Option<String>,
    /// A zone goes down; its unique ending will do: `b`.
    #[arg(long, value_name = "ZONE")]
    zone_down: Vec<String>,
    /// A node goes; a unique beginning will do.
    #[arg(long, value_name = "NAME")]
    remove_node: Vec<String>,
    /// Exit with 3 when this holds: figures are delta_usd_h, delta_usd_mo, nodes, unplaced, moved, lost.
    #[arg(long, value_name = "CONDITION")]
    fail_if: Option<Expression>,
    /// Do not play on until every move that saves money is made: faster on large clusters.
    #[arg(long)]
    at_once: bool,
    /// How to print it.
    #[arg(short, long, default_value = "table", value_parser = formats(&["table", "wide", "json", "yaml"]))]
    output: Format,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) reply: Reply,
}

/// `nodepool/general.spec.limits.cpu=276`
#[derive(Debug, Clone)]
struct Setting(Change);

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("`{text}` is not of the form nodepool/NAME.spec.limits.cpu=100");
        let (place, value) = text.split_once('=').ok_or_else(refuse)?;
        let (object, path) = place.split_once(".spec").ok_or_else(refuse)?;
        let (kind, name) = object.split_once('/').ok_or_else(refuse)?;
        if !["nodepool", "nodepools", "np"].contains(&kind.to_ascii_lowercase().as_str()) {
            return Err(format!(
                "`{kind}` cannot be set, only nodepool/NAME; use -f for the rest"
            ));
        }
        Ok(Self(Change::Set {
            node_pool: name.to_owned(),
            path: format!("spec{path}"),
            // What does not read as JSON is text, as in kubectl.
            value: serde_json::from_str(value).unwrap_or_else(|_| value.into()),
        }))
    }
}

/// `-m5`, `+m7i`
#[derive(Debug, Clone)]
struct Family(Change);

impl FromStr for Family {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (direction, family) = match text.split_at_checked(1) {
            Some(("-", family)) => (Direction::Without, family),
            Some(("+", family)) => (Direction::With, family),
            _ => return Err(format!("`{text}` has no sign: -m5 takes a family away, +m5 adds it")),
        };
        Ok(Self(Change::Family(direction, family.to_owned())))
    }
}

/// `shop/deploy/web=50`
#[derive(Debug, Clone)]
struct Scale(Change);

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("`{text}` is not of the form [NAMESPACE/]deploy/NAME=REPLICAS");
        let (place, replicas) = text.split_once('=').ok_or_else(refuse)?;
        let parts: Vec<&str> = place.split('/').collect();
        let (namespace, kind, name) = match parts.as_slice() {
            [kind, name] => (None, *kind, *name),
            [namespace, kind, name] => (Some((*namespace).to_owned()), *kind, *name),
            _ => return Err(refuse()),
        };
        let kind = Kind::named(kind)
            .ok_or_else(|| format!("`{kind}` has no replicas here: deploy, sts or rs (a ReplicaSet) can be scaled"))?;
        let workload = Workload {
            kind,
            namespace,
            name: name.to_owned(),
        };
        let replicas = replicas.parse().map_err(|_| refuse())?;
        Ok(Self(Change::Scale(workload, replicas)))
    }
}

impl Args {
    fn changes(&self) -> anyhow::Result<Vec<Change>> {
        let files: Vec<&PathBuf> = self.filename.iter().chain(&self.add_nodepool).collect();
        let mut changes = Vec::new();
        if !files.is_empty() {
            changes.push(Change::Apply(Box::new(objects(&files)?)));
        }
        changes.extend(self.set.iter().map(|it| it.0.clone()));
        changes.extend(self.instance_family.iter().map(|it| it.0.clone()));
        changes.extend(self.scale.iter().map(|it| it.0.clone()));
        changes.extend(self.spot_price.iter().cloned().map(Change::SpotPrice));
        changes.extend(self.zone_down.iter().cloned().map(Change::ZoneDown));
        changes.extend(self.remove_node.iter().cloned().map(Change::RemoveNode));
        Ok(changes)
    }
}

/// What the figures of `--fail-if` may be.
const FIGURES: [&str; 6] = ["delta_usd_h", "delta_usd_mo", "nodes", "unplaced", "moved", "lost"];

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let changes = args.changes()?;
    if changes.is_empty() {
        return Err(Failure::usage(
            "nothing is changed",
            "a what-if needs a change to look at",
            "dovetail whatif --zone-down b, --scale deploy/NAME=50, --spot-price +40%, -f pools.yaml",
        )
        .into());
    }
    let unknown = args
        .fail_if
        .iter()
        .flat_map(Expression::names)
        .find(|name| !FIGURES.contains(name));
    if let Some(name) = unknown {
        let error = format!("--fail-if: no figure {name}");
        return Err(Failure::usage(error, format!("figures are {}", FIGURES.join(", ")), "name one of them").into());
    }
    let mut input = source::read(&args.source, Needs::Decisions)?;
    let options = packing::Options {
        threads: std::thread::available_parallelism().map_or(1, NonZero::get),
        ..packing::Options::default()
    };
    let found = forecast::ask(&input.snapshot, &changes, &options, !args.at_once)
        .map_err(|misfit| Failure::usage(misfit.what, misfit.why, misfit.next))?;
    input.assumed.extend(found.assumed.iter().cloned());
    let report = report::Report::of(&found);
    let fails = args
        .fail_if
        .as_ref()
        .is_some_and(|it| it.holds(|name| report.figure(name)));
    let is_wide = args.output == Format::Wide;
    let is_no = report.delta.unplaced > 0;
    let mut answer = args
        .reply
        .answer(&input, ("WhatIf", &report), args.output, is_no, |screen| {
            table::render(&found, &report, is_wide, screen)
        })?;
    answer.is_finding |= fails;
    Ok(answer)
}

/// Machines beyond which nobody waits for both sides to come to rest.
const LARGE: usize = 300;

/// The same for the page, which asks in the words of the flags.
pub(crate) fn for_page(snapshot: &Snapshot, asked: &web::Asked) -> Result<serde_json::Value, web::Refused> {
    let changes =
        changes_of(asked).map_err(|why| refused("the change cannot be read", why, "write it as the flag has it"))?;
    if changes.is_empty() {
        return Err(refused(
            "nothing is changed",
            "a what-if needs a change to look at".into(),
            "choose one",
        ));
    }
    let options = packing::Options::default();
    let rests = snapshot.objects().nodes.len() <= LARGE;
    let found = forecast::ask(snapshot, &changes, &options, rests)
        .map_err(|misfit| refused(&misfit.what, misfit.why, &misfit.next))?;
    let mut tree = serde_json::to_value(report::Report::of(&found)).unwrap_or_default();
    tree["assumed"] = found.assumed.into();
    Ok(tree)
}

fn refused(error: &str, why: String, next: &str) -> web::Refused {
    web::Refused {
        error: error.to_owned(),
        why,
        next: next.to_owned(),
    }
}

fn changes_of(asked: &web::Asked) -> Result<Vec<Change>, String> {
    let mut changes = Vec::new();
    for text in &asked.set {
        changes.push(text.parse::<Setting>()?.0);
    }
    for text in &asked.instance_family {
        changes.push(text.parse::<Family>()?.0);
    }
    for text in &asked.scale {
        changes.push(text.parse::<Scale>()?.0);
    }
    changes.extend(asked.spot_price.iter().cloned().map(Change::SpotPrice));
    changes.extend(asked.zone_down.iter().cloned().map(Change::ZoneDown));
    changes.extend(asked.remove_node.iter().cloned().map(Change::RemoveNode));
    Ok(changes)
}

/// The objects of manifests.
fn objects(files: &[&PathBuf]) -> Result<Objects, Failure> {
    let options = dump::Options {
        mode: Mode::Strict,
        taken_at: jiff::Timestamp::UNIX_EPOCH,
    };
    let sources = files.iter().map(|path| dump::Source::Path((*path).clone()));
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let written: Vec<PathBuf> = files.iter().map(|path| (*path).clone()).collect();
    raw::accepted(&raw::of_files(&written)?, &raw::admission())?;
    let (snapshot, report) = dump::read(sources, options).map_err(|faults| {
        let faults: Vec<_> = faults.0.iter().map(ToString::to_string).collect();
        Failure::new(
            format!("cannot read {}", names.join(", ")),
            faults.join("\n        "),
            "mend what is named above; dovetail lint -f FILE tells more",
        )
    })?;
    if report.objects == 0 {
        return Err(Failure::new(
            format!("{} holds nothing that a plan reads", names.join(", ")),
            "no NodePool, workload, Pod, PodDisruptionBudget or NodeOverlay was found",
            "name files with such manifests",
        ));
    }
    if let Some(job) = report.jobs.values().find(|job| job.width() > forecast::MOST_PODS) {
        return Err(Failure::new(
            format!("Job {} makes {} pods at once", job.metadata.key(), job.width()),
            format!("no cluster runs more than {} pods", forecast::MOST_PODS),
            "lower spec.parallelism",
        ));
    }
    let mut objects = snapshot.objects().clone();
    let of_jobs = report.jobs.values().flat_map(Job::pods).map(Arc::new);
    objects.pods = objects.pods.with(of_jobs.collect::<Vec<_>>());
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_people_write_them() {
        assert!(
            matches!("-m5".parse::<Family>().unwrap().0, Change::Family(Direction::Without, family) if family == "m5")
        );
        assert!("m5".parse::<Family>().is_err());
        let scaled = "shop/deploy/web=50".parse::<Scale>().unwrap().0;
        let Change::Scale(workload, 50) = scaled else {
            panic!("{scaled:?}")
        };
        assert_eq!(workload.to_string(), "Deployment shop/web");
        for wrong in ["web=5", "deploy/web", "deploy/web=x", "job/x=3"] {
            assert!(wrong.parse::<Scale>().is_err(), "{wrong}");
        }
        let set = "nodepool/general.spec.limits.cpu=276".parse::<Setting>().unwrap().0;
        assert!(matches!(set, Change::Set { path, .. } if path == "spec.limits.cpu"));
        assert!("deployment/x.spec.replicas=3".parse::<Setting>().is_err());
    }
}
