//! What to plan for: reads the dump, completes it with a catalogue, and says what it could not know.

use std::path::Path;

use jiff::Timestamp;
use model::{
    dump::{self, Source},
    snapshot::Snapshot,
};

use super::{Args, check, offers};
use crate::{failure::Failure, terminal::counted};

/// A snapshot with a catalogue, and where they come from.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) snapshot: Snapshot,
    pub(crate) dump: String,
    pub(crate) files: usize,
    pub(crate) objects: usize,
    pub(crate) catalogue: offers::Offers,
    pub(crate) assumed: Vec<String>,
}

/// What a dump needs, as a command to type.
const DUMP_COMMAND: &str = "kubectl get nodes,pods,nodepools,nodeclaims,daemonsets,deployments,replicasets,pvc,pv,storageclasses,csinodes -A -o yaml > dump.yaml";

pub(super) fn read(args: &Args) -> anyhow::Result<Input> {
    let dump = names(args);
    let taken_at = args.at.unwrap_or_else(now);
    let (snapshot, report) = read_dump(args, taken_at)?;
    if report.objects == 0 {
        return Err(nothing_in(&dump, &report).into());
    }
    if snapshot.objects().node_pools.is_empty() {
        return Err(no_node_pools(&dump, report.objects).into());
    }
    let catalogue = offers::choose(&snapshot, args.catalogue.as_deref(), args.region.as_deref(), taken_at)?;
    let snapshot = match &catalogue.catalog {
        None => snapshot,
        Some(catalog) => with_catalog(&snapshot, catalog.clone()),
    };
    let faults = check::faults(&snapshot);
    if !faults.is_empty() {
        return Err(impossible(&dump, &faults).into());
    }
    let mut assumed = passed_over(&report);
    assumed.extend(missing_kinds(&snapshot));
    assumed.extend(catalogue.assumed.iter().cloned());
    Ok(Input {
        snapshot,
        dump,
        files: report.sources,
        objects: report.objects,
        catalogue,
        assumed,
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the composition root: the engine is told the time"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

fn read_dump(args: &Args, taken_at: Timestamp) -> Result<(Snapshot, dump::Report), Failure> {
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at,
    };
    dump::read(args.from.iter().map(|path| source(path)), options).map_err(|faults| {
        let faults: Vec<_> = faults.0.iter().map(ToString::to_string).collect();
        Failure::new(
            format!("cannot read {}", names(args)),
            faults.join("\n        "),
            format!("mend or take out what is named above; a complete dump is made by\n        {DUMP_COMMAND}"),
        )
    })
}

pub(crate) fn source(path: &Path) -> Source {
    if path.as_os_str() == "-" {
        return Source::Stream("standard input".into(), Box::new(std::io::stdin()));
    }
    Source::Path(path.to_owned())
}

fn names(args: &Args) -> String {
    let name = |path: &std::path::PathBuf| {
        if path.as_os_str() == "-" {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        }
    };
    args.from.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn with_catalog(snapshot: &Snapshot, catalog: model::snapshot::Catalog) -> Snapshot {
    let (title, settings) = (snapshot.title().clone(), snapshot.settings().clone());
    Snapshot::new(title, settings, snapshot.objects().clone(), catalog)
}

fn nothing_in(dump: &str, report: &dump::Report) -> Failure {
    let skipped: usize = report.skipped.values().sum();
    Failure::new(
        format!("{dump} holds no object a plan can be made from"),
        format!(
            "read {} named *.yaml, *.yml or *.json, passed over {} with other names and {} of other kinds",
            counted(report.sources, "file"),
            report.ignored_files,
            counted(skipped, "object"),
        ),
        DUMP_COMMAND,
    )
}

fn no_node_pools(dump: &str, objects: usize) -> Failure {
    Failure::new(
        format!("no NodePool in {dump}"),
        format!(
            "{} read, none of kind NodePool in karpenter.sh/v1: without one nothing can be launched",
            counted(objects, "object")
        ),
        "add them to the dump: kubectl get nodepools -o yaml > nodepools.yaml",
    )
}

/// So many faults are told; who has more has one cause for most of them.
const TOLD: usize = 20;

fn impossible(dump: &str, faults: &[String]) -> Failure {
    let mut told: Vec<String> = faults.iter().take(TOLD).cloned().collect();
    if faults.len() > TOLD {
        told.push(format!("and {} more", faults.len() - TOLD));
    }
    Failure::new(
        format!("{dump} holds what no API server accepts"),
        told.join("\n        "),
        "mend what is named above, or dump the cluster again",
    )
}

/// What was read and does not count.
fn passed_over(report: &dump::Report) -> Vec<String> {
    let kind = |((version, kind), count): (&(String, String), &usize)| format!("{count} {kind} of {version}");
    let kinds: Vec<String> = report.skipped.iter().map(kind).collect();
    let skipped = (!kinds.is_empty()).then(|| format!("no plan reads {}: passed over", kinds.join(", ")));
    let repeated = (report.repeated > 0).then(|| {
        let objects = counted(report.repeated, "object");
        format!("{objects} of a kind and name read before: the last one counts")
    });
    skipped.into_iter().chain(repeated).collect()
}

/// Kinds that matter and of which the dump has none: the answer would differ if it only lacked them.
fn missing_kinds(snapshot: &Snapshot) -> Vec<String> {
    let objects = snapshot.objects();
    let claims_volumes = snapshot.provisionable_pods().any(|pod| {
        pod.spec
            .volumes
            .iter()
            .any(|volume| volume.persistent_volume_claim.is_some())
    });
    let missing = [
        (
            objects.daemon_sets.is_empty(),
            "no DaemonSets in the dump: nodes run none",
        ),
        (
            objects.nodes.is_empty(),
            "no Nodes in the dump: every pod needs a new node",
        ),
        (
            claims_volumes && objects.persistent_volume_claims.is_empty(),
            "no PersistentVolumeClaims in the dump: pods that use one cannot be placed",
        ),
    ];
    missing
        .into_iter()
        .filter(|(is_missing, _)| *is_missing)
        .map(|(_, text)| text.to_owned())
        .collect()
}
