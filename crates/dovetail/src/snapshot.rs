//! `dovetail snapshot`: what a cluster holds, in a file that every command reads with `--from`.
//!
//! Secrets are never asked for. What nothing looks at is left out anyway; what may be private on request.

mod redaction;

use std::{
    collections::BTreeSet,
    fs::File,
    io::{BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use flate2::{Compression, write::GzEncoder};
use model::snapshot::Objects;
use runtime::{Api, ApiError, Resource, api::Whereabouts};
use serde_json::Value;

use crate::{
    answer::Answer,
    crds,
    failure::Failure,
    live::wait_for,
    notice,
    raw::{self, noted},
    source::DUMP_COMMAND,
    terminal::{counted, grouped},
};

/// Write what a cluster holds to a file, for every command that takes --from.
///
/// Everything that decisions, rules and checks look at: pools, claims, nodes, pods and who made them, budgets, volumes, node
/// classes, Karpenter's CRDs, the
/// controller's lease and its decisions, and Events about interruptions. Secrets are never read, and of ConfigMaps only the controller's own.
/// --redact leaves out what may be private: environment, commands, probes, user data, scalers' addresses, annotations of others.
///
/// Example: dovetail snapshot -o prod.json.gz && dovetail status --from prod.json.gz
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file, compressed if its name ends in .gz; otherwise standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave out what may be private and what no answer needs.
    #[arg(long)]
    redact: bool,
    /// Print the kubectl line that makes a dump instead, for where this program may not run.
    #[arg(long, conflicts_with_all = ["output", "redact"])]
    script: bool,
    /// The kubeconfig that names the cluster; otherwise as kubectl finds it.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; otherwise its current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Kinds that only `decisions` and `doctor` read.
const OF_THE_CONTROLLER: [(&str, &str, &str); 2] = [
    (
        "v1",
        "ConfigMap",
        "labelSelector=app.kubernetes.io%2Fmanaged-by%3Ddovetail",
    ),
    (
        "coordination.k8s.io/v1",
        "Lease",
        "fieldSelector=metadata.name%3Dkarpenter-leader-election",
    ),
];

/// What to do where this program reaches no cluster.
const ELSEWHERE: &str = "--kubeconfig FILE and --context NAME choose one; dovetail snapshot --script prints the kubectl line for where it is reached";

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    if args.script {
        return Ok(Answer::from(format!("{DUMP_COMMAND}\n")));
    }
    if args.output.is_none() && std::io::stdout().is_terminal() {
        let error = "a snapshot is not for reading on a terminal";
        return Err(Failure::usage(error, "standard output is one", "give -o FILE, or pipe it").into());
    }
    let place = Whereabouts {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
    };
    let (held, cluster) = wait_for(async {
        let (api, name) = raw::connected(&place, ELSEWHERE).await?;
        Ok((held(&api, &name, args.redact).await?, name))
    })?;
    match &args.output {
        Some(path) => to_file(path, &held)?,
        None => written(std::io::stdout().lock(), &held).context("write to standard output")?,
    }
    Ok(Answer {
        notes: closing(args, &cluster, &held),
        ..Answer::default()
    })
}

/// What a cluster holds.
#[derive(Debug, Default)]
struct Held {
    objects: Vec<Value>,
    /// What is not in it, a sentence each.
    gaps: Vec<String>,
}

impl Held {
    fn count(&self, kind: &str) -> usize {
        self.objects.iter().filter(|object| object["kind"] == kind).count()
    }
}

/// Every kind that some command reads, once.
fn kinds() -> Vec<(&'static str, &'static str)> {
    let mut seen = BTreeSet::new();
    let all = Objects::KINDS.iter().chain(&raw::KINDS).copied();
    all.filter(|kind| seen.insert(*kind)).collect()
}

async fn held(api: &Api, cluster: &str, redact: bool) -> Result<Held, Failure> {
    let mut held = Held::default();
    for (api_version, kind) in kinds() {
        let listed = api.pages(&Resource::new(api_version, kind)).await;
        held.take(listed, cluster, api_version, kind)?;
    }
    for (api_version, kind, query) in OF_THE_CONTROLLER {
        let path = format!("{}?{query}", Resource::new(api_version, kind).collection(""));
        let listed = api.call(http::Method::GET, &path, None, "application/json").await;
        held.take(listed.map(|page| vec![page]), cluster, api_version, kind)?;
    }
    for reason in notice::reasons() {
        let path = notice::events_path(reason);
        let listed = api.call(http::Method::GET, &path, None, "application/json").await;
        held.take(listed.map(|page| vec![page]), cluster, "v1", "Event")?;
    }
    held.gaps.dedup();
    for name in crds::diff::names() {
        let path = format!("{}/{name}", crds::diff::PATH);
        match api.call(http::Method::GET, &path, None, "application/json").await {
            Ok(bytes) => held.objects.extend(definition(&bytes)),
            Err(error) if error.is_not_found() || error.is_forbidden() => {}
            Err(error) => return Err(raw::unreachable(cluster, &error)),
        }
    }
    for object in &mut held.objects {
        redaction::tidied(object);
        if redact {
            redaction::redacted(object);
        }
    }
    Ok(held)
}

/// A definition with its kind written on it, as in a list.
fn definition(bytes: &[u8]) -> Option<Value> {
    let mut found: Value = serde_json::from_slice(bytes).ok()?;
    found["apiVersion"] = "apiextensions.k8s.io/v1".into();
    found["kind"] = "CustomResourceDefinition".into();
    Some(found)
}

impl Held {
    /// Takes in what was listed. A kind that is not installed has no objects; one that we may not list is told of.
    fn take(
        &mut self,
        listed: Result<Vec<bytes::Bytes>, ApiError>,
        cluster: &str,
        api_version: &str,
        kind: &str,
    ) -> Result<(), Failure> {
        match listed {
            Ok(pages) => {
                let items = pages.iter().flat_map(|page| raw::items(page, api_version, kind));
                self.objects.extend(items);
            }
            Err(error) if error.is_not_found() || error.is_missing_kind() => {}
            Err(error) if error.is_forbidden() => {
                self.gaps.push(format!("may not list {kind}: answers take it for none"));
            }
            Err(error) => return Err(raw::unreachable(cluster, &error)),
        }
        Ok(())
    }
}

/// A file that is there whole or not at all.
fn to_file(path: &Path, held: &Held) -> anyhow::Result<()> {
    let beside = PathBuf::from(format!("{}.new", path.display()));
    let file = File::create(&beside).with_context(|| format!("create {}", beside.display()))?;
    let is_compressed = path.extension().is_some_and(|extension| extension == "gz");
    let done = if is_compressed {
        let mut encoder = GzEncoder::new(BufWriter::new(file), Compression::default());
        written(&mut encoder, held).and_then(|()| encoder.finish()?.flush())
    } else {
        written(BufWriter::new(file), held)
    };
    done.with_context(|| format!("write {}", beside.display()))?;
    std::fs::rename(&beside, path).with_context(|| format!("put {} in its place", path.display()))
}

/// As `kubectl get -o json` prints many, an object a line: equal clusters give equal bytes.
fn written(mut out: impl Write, held: &Held) -> std::io::Result<()> {
    write!(
        out,
        "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"metadata\":{{}},\"items\":["
    )?;
    for (at, object) in held.objects.iter().enumerate() {
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut out, object)?;
    }
    out.write_all(b"\n]}\n")?;
    out.flush()
}

fn closing(args: &Args, cluster: &str, held: &Held) -> String {
    let kinds: BTreeSet<&str> = held
        .objects
        .iter()
        .map(|object| object["kind"].as_str().unwrap_or_default())
        .collect();
    let mut text = format!(
        "{cluster}: {}, {}, {} objects of {}\n{}",
        counted(held.count("Node"), "node"),
        counted(held.count("Pod"), "pod"),
        grouped(held.objects.len() as u128),
        counted(kinds.len(), "kind"),
        noted("assumed", &held.gaps),
    );
    if let Some(path) = &args.output {
        let name = path.display();
        text.push_str(&format!("next    dovetail status --from {name}\n"));
    }
    text
}
