//! Where decisions are read from: a cluster's ConfigMaps, a dump that holds them, or a file of lines.

use anyhow::Context;
use jiff::Timestamp;
use ledger::{ENTRY, Limits, Record, Ring, read_lines, read_shard};
use runtime::{
    Api, Clock,
    api::{Options, Whereabouts, connect_to},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    failure::Failure,
    live,
    place::Place,
    raw,
    source::SourceArgs,
    terminal::{Role, Screen, counted, grouped},
};

/// Flags about where decisions are read from.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Source")]
pub(crate) struct ShelfArgs {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The namespace of the controller; otherwise all are looked through.
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "from")]
    pub(crate) namespace: Option<String>,
}

/// All decisions of a source.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) ring: Ring,
    /// What counts as now: of files the time of what is newest in them.
    pub(crate) now: Timestamp,
    /// As messages call it.
    pub(crate) name: String,
    is_live: bool,
    shards: usize,
    /// What could not be read, a sentence each.
    unread: Vec<String>,
}

/// How files of a directory are named that may hold decisions.
const DUMPS: [&str; 4] = ["yaml", "yml", "json", "jsonl"];
/// How names of the ConfigMaps begin.
const NAMED: &str = "dovetail-decisions-";
/// More than any ring holds: files may be of more than one.
const ROOMY: Limits = Limits {
    shards: 1000,
    records: 1000,
    bytes: usize::MAX,
};

/// What was found on the way.
#[derive(Debug, Default)]
struct Finds {
    shards: Vec<(u64, Vec<Record>)>,
    loose: Vec<Record>,
    unread: Vec<String>,
}

impl ShelfArgs {
    /// What the flags of other commands name.
    pub(crate) fn of(source: &SourceArgs, namespace: Option<&str>) -> Self {
        Self {
            place: source.place.clone(),
            namespace: namespace.map(str::to_owned),
        }
    }

    /// Whether a cluster is asked.
    fn is_live(&self) -> bool {
        self.place.from.is_empty()
    }

    /// Reads all decisions.
    pub(crate) fn read(&self) -> anyhow::Result<Shelf> {
        let mut finds = Finds::default();
        let name = if self.is_live() {
            let place = self.place.cluster();
            let (maps, name) = live::wait_for(async { maps(&place, self.namespace.as_deref()).await })?;
            for map in &maps {
                finds.map(map);
            }
            name
        } else {
            raw::texts(&self.place.from, &DUMPS, &mut |name, text, _| finds.text(name, text))?;
            let names: Vec<_> = self.place.from.iter().map(|path| path.display().to_string()).collect();
            names.join(", ")
        };
        let mut shelf = finds.shelf(name, self.is_live(), Clock::system().now())?;
        shelf.now = self.place.at.unwrap_or(shelf.now);
        Ok(shelf)
    }
}

/// Every decision of a dump; none where it holds none.
pub(crate) fn records_of(shelf: &ShelfArgs) -> Vec<Record> {
    let read = shelf.read().ok();
    read.map(|shelf| shelf.ring.iter().cloned().collect())
        .unwrap_or_default()
}

/// Every decision of a cluster; none where it keeps none, or where they may not be read.
pub(crate) async fn records_in(api: &Api) -> Vec<Record> {
    let mut finds = Finds::default();
    for map in listed(api, "", None).await.unwrap_or_default() {
        finds.map(&map);
    }
    finds.shards.into_iter().flat_map(|(_, records)| records).collect()
}

/// The ConfigMaps of a cluster that hold decisions, and what it is called.
async fn maps(place: &Whereabouts, namespace: Option<&str>) -> anyhow::Result<(Vec<Value>, String)> {
    let next = "check --kubeconfig and --context, or work from a dump with --from";
    let (api, name) = connect_to(place, Options::new(live::USER_AGENT))
        .await
        .map_err(|error| Failure::unreachable("cannot reach the cluster", error.to_string(), next))?;
    Ok((listed(&api, &name, namespace).await?, name))
}

async fn listed(api: &Api, name: &str, namespace: Option<&str>) -> anyhow::Result<Vec<Value>> {
    let within = namespace
        .map(|namespace| format!("/namespaces/{namespace}"))
        .unwrap_or_default();
    let path = format!("/api/v1{within}/configmaps?labelSelector=app.kubernetes.io%2Fmanaged-by%3Ddovetail");
    let asked = api.call(http::Method::GET, &path, None, "application/json").await;
    let bytes = asked.map_err(|error| {
        let next = if error.is_forbidden() {
            "ask for the right to list ConfigMaps there, or name the controller's namespace with -n"
        } else {
            "check that kubectl get nodes answers; or work from a dump with --from PATH"
        };
        Failure::unreachable(format!("cannot list ConfigMaps of {name}"), error.to_string(), next)
    })?;
    let mut list: Value = serde_json::from_slice(&bytes).with_context(|| format!("read {path}"))?;
    Ok(match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    })
}

impl Finds {
    fn map(&mut self, map: &Value) {
        let name = map["metadata"]["name"].as_str().unwrap_or_default();
        if !name.starts_with(NAMED) {
            return;
        }
        let read = map["binaryData"][ENTRY].as_str().map(read_shard);
        match read {
            Some(Ok((number, records, unread))) => {
                self.shards.push((number, records));
                self.lost(name, unread);
            }
            Some(Err(error)) => self.unread.push(format!("ConfigMap {name}: {error}")),
            None => self
                .unread
                .push(format!("ConfigMap {name} has no binaryData {ENTRY:?}")),
        }
    }

    fn lost(&mut self, name: &str, lines: usize) {
        if lines > 0 {
            self.unread.push(format!(
                "{} of {name} cannot be read, and {lines} are left out",
                counted(lines, "line")
            ));
        }
    }

    fn text(&mut self, name: &str, text: &str) {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let is_lines = serde_json::from_str::<Record>(first).is_ok() || first.starts_with("{\"shard\":");
        if is_lines {
            let (records, unread) = read_lines(text);
            self.loose.extend(records);
            self.lost(name, unread);
            return;
        }
        // Most of a dump is pods; what holds no decision is not even parsed.
        if !text.contains(NAMED) {
            return;
        }
        match raw::values(text) {
            Ok(documents) => documents.iter().for_each(|document| self.map(document)),
            Err(error) => self.unread.push(format!("{name}: {error:#}")),
        }
    }

    fn shelf(self, name: String, is_live: bool, clock: Timestamp) -> anyhow::Result<Shelf> {
        let shards = self.shards.len();
        let mut ring = Ring::restored(ROOMY, self.shards);
        for record in self.loose {
            let is_known = ring
                .get(record.id)
                .is_some_and(|known| known.last_seen >= record.last_seen);
            if !is_known {
                ring.put(record);
            }
        }
        if ring.is_empty() {
            return Err(nothing_kept(&name, is_live, &self.unread).into());
        }
        let newest = ring.iter().map(|record| record.last_seen.max(record.time)).max();
        Ok(Shelf {
            now: if is_live { clock } else { newest.unwrap_or(clock) },
            ring,
            name,
            is_live,
            shards,
            unread: self.unread,
        })
    }
}

fn nothing_kept(name: &str, is_live: bool, unread: &[String]) -> Failure {
    let why = match unread.first() {
        Some(fault) => fault.clone(),
        None if is_live => {
            "no ConfigMap dovetail-decisions-0 to -9: no dovetail has led here yet, or it runs with --decision-records=false"
                .to_owned()
        }
        None => "it holds no ConfigMap dovetail-decisions-0 to -9, and no lines of decisions".to_owned(),
    };
    let next = if is_live {
        "kubectl get configmaps -A -l app.kubernetes.io/managed-by=dovetail"
    } else {
        "kubectl get configmaps -A -l app.kubernetes.io/managed-by=dovetail -o yaml > decisions.yaml"
    };
    Failure::new(format!("no decisions in {name}"), why, next)
}

impl Shelf {
    /// An answer as a document.
    pub(crate) fn envelope(&self, kind: &str, answer: impl Serialize) -> Value {
        let mut document = json!({
            "apiVersion": "dovetail.dev/v1alpha1",
            "kind": kind,
            "cluster": if self.is_live { self.name.as_str() } else { "" },
            "as_of": self.now.to_string(),
            "source": {
                "type": if self.is_live { "live" } else { "dump" },
                "name": self.name,
                "decisions": self.ring.len(),
            },
            "engine": env!("CARGO_PKG_VERSION"),
            "prices": "",
            "assumed": self.unread,
        });
        let answer = serde_json::to_value(answer).unwrap_or_default();
        if let (Value::Object(document), Value::Object(answer)) = (&mut document, answer) {
            document.extend(answer);
        }
        document
    }

    /// Where the answer comes from: a line, dim; and what could not be read.
    pub(crate) fn closing(&self, screen: &Screen) -> String {
        let oldest = self.ring.iter().map(|record| record.time).min();
        let since = oldest.map_or(String::new(), |time| {
            format!(" back to {}", screen.zone.to_the_second(time, self.now))
        });
        let held = grouped(self.ring.len() as u128);
        let shards = if self.shards > 0 {
            format!(" in {}", counted(self.shards, "shard"))
        } else {
            String::new()
        };
        let mut lines = vec![format!("source   {}: {held} decisions{shards}{since}", self.name)];
        lines.extend(self.unread.iter().map(|fault| format!("unread   {fault}")));
        let dimmed = lines.iter().map(|line| screen.paint(Role::Secondary, line));
        dimmed.fold(String::new(), |notes, line| notes + &line + "\n")
    }
}
