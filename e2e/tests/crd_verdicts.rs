//! Do our CRDs give users the same answers as upstream's? Every case of `e2e/corpus`, on real API servers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow};
use e2e::answer::{Answer, ask};
use e2e::corpus::{self, Case, Kind};
use e2e::crd_set::{CrdSet, outline};
use e2e::difference;
use rig::{Client, Cluster};
use serde_json::{Value, json};

/// Requests under way at a time: enough to keep two API servers busy.
const WORKERS: usize = 4;
/// Differences shown; the others are only counted.
const SHOWN: usize = 60;

#[test]
fn plain_crds_answer_like_upstreams() -> Result<()> {
    let report = compare(CrdSet::Core)?;
    assert!(report.differences.is_empty(), "{report}");
    Ok(())
}

#[test]
fn kwok_crds_answer_like_upstreams() -> Result<()> {
    let report = compare(CrdSet::Kwok)?;
    assert!(report.differences.is_empty(), "{report}");
    Ok(())
}

#[test]
fn aws_crds_answer_like_upstreams() -> Result<()> {
    let report = compare(CrdSet::Aws)?;
    assert!(report.differences.is_empty(), "{report}");
    Ok(())
}

#[test]
fn azure_crds_answer_as_the_contract_states() -> Result<()> {
    let report = compare(CrdSet::Azure)?;
    assert!(report.differences.is_empty(), "{report}");
    Ok(())
}

/// Azure's module is not published, so its outline has nothing to be compared with but the contract.
#[test]
fn azure_crd_has_the_names_versions_and_columns_of_the_contract() -> Result<()> {
    let crds = rig::manifest::documents("our CRDs", &CrdSet::Azure.ours()?)?;
    let crd = crds.iter().find(|crd| crd["spec"]["names"]["kind"] == "AKSNodeClass");
    let spec = &crd.context("there is no AKSNodeClass")?["spec"];
    assert_eq!(spec["names"]["shortNames"], json!(["aksnc", "aksncs"]));
    assert_eq!(spec["names"]["categories"], json!(["karpenter", "nap"]));
    let of = |version: &Value| {
        let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
        let columns: Vec<_> = columns
            .map(|column| json!([column["name"], column["priority"]]))
            .collect();
        let deprecated = version["deprecated"].as_bool().unwrap_or_default();
        json!([
            version["name"],
            version["served"],
            version["storage"],
            deprecated,
            columns
        ])
    };
    let columns = json!([["Ready", null], ["Age", null], ["ImageFamily", 1]]);
    assert_eq!(
        spec["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(of)
            .collect::<Vec<_>>(),
        [
            json!(["v1alpha2", true, false, true, columns]),
            json!(["v1beta1", true, true, false, columns])
        ]
    );
    Ok(())
}

fn compare(set: CrdSet) -> Result<Report> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let cases: Vec<Case> = corpus::load(&root)?
        .into_iter()
        .filter(|case| case.sets.contains(&set))
        .collect();
    let servers = Servers::start(set)?;
    let mut differences = servers.compare_outlines()?;
    differences.extend(servers.compare_answers(&cases)?);
    let mut counts = BTreeMap::new();
    for case in &cases {
        *counts.entry(case.kind).or_insert(0) += 1;
    }
    let report = Report {
        set,
        counts,
        differences,
    };
    eprintln!("{}", report.summary());
    Ok(report)
}

/// What came of all cases under one set of CRDs.
struct Report {
    set: CrdSet,
    counts: BTreeMap<Kind, usize>,
    differences: Vec<String>,
}

impl Report {
    fn summary(&self) -> String {
        let kinds: Vec<_> = self
            .counts
            .iter()
            .map(|(kind, count)| format!("{kind:?} {count}"))
            .collect();
        let (cases, differences) = (self.counts.values().sum::<usize>(), self.differences.len());
        format!(
            "{:?} CRDs: {cases} cases ({}), {differences} differences",
            self.set,
            kinds.join(", ")
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.summary())?;
        self.differences
            .iter()
            .take(SHOWN)
            .try_for_each(|difference| write!(f, "\n{difference}"))
    }
}

/// An API server with CRDs installed.
struct Server {
    cluster: Cluster,
    crds: Vec<String>,
}

impl Server {
    fn start(crds: &str) -> Result<Self> {
        let cluster = Cluster::builder().api_server_only().start()?;
        let crds = cluster.client().install_crd(crds)?;
        Ok(Self { cluster, crds })
    }

    fn client(&self) -> &Client {
        self.cluster.client()
    }
}

/// The two parties. Upstream is absent where its module is not published; then the stated verdict is all there is.
struct Servers {
    set: CrdSet,
    upstream: Option<Server>,
    ours: Server,
}

impl Servers {
    fn start(set: CrdSet) -> Result<Self> {
        thread::scope(|scope| {
            let upstream = scope.spawn(|| set.upstream()?.map(|crds| Server::start(&crds)).transpose());
            let ours = Server::start(&set.ours()?).context("with our CRDs");
            let upstream = upstream
                .join()
                .map_err(|_| anyhow!("starting upstream's server panicked"))?;
            Ok(Self {
                set,
                upstream: upstream.context("with upstream's CRDs")?,
                ours: ours?,
            })
        })
    }

    /// Names, versions, printer columns and subresources of the kinds.
    fn compare_outlines(&self) -> Result<Vec<String>> {
        let Some(upstream) = &self.upstream else {
            return Ok(Vec::new());
        };
        let mut differences = Vec::new();
        for crd in &upstream.crds {
            if !self.ours.crds.contains(crd) {
                differences.push(format!("{crd}: ours does not have it"));
                continue;
            }
            let places = difference::places(&outline(upstream.client(), crd)?, &outline(self.ours.client(), crd)?);
            differences.extend(places.iter().map(|place| format!("{crd}: {place} (upstream ≠ ours)")));
        }
        Ok(differences)
    }

    fn compare_answers(&self, cases: &[Case]) -> Result<Vec<String>> {
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<(usize, String)>> {
            let mut found = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = cases.get(number) else {
                    return Ok(found);
                };
                found.extend(self.compare(case, number)?.map(|difference| (number, difference)));
            }
        };
        let mut found = thread::scope(|scope| -> Result<Vec<_>> {
            let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
            let found = workers
                .into_iter()
                .map(|worker| worker.join().map_err(|_| anyhow!("a worker panicked"))?);
            Ok(found.collect::<Result<Vec<_>>>()?.concat())
        })?;
        found.sort();
        Ok(found.into_iter().map(|(_, difference)| difference).collect())
    }

    fn compare(&self, case: &Case, number: usize) -> Result<Option<String>> {
        let judge = self
            .upstream
            .as_ref()
            .filter(|_| !(self.set == CrdSet::Aws && case.newer_than_aws));
        let upstream = judge
            .map(|server| ask(server.client(), case, number).context("upstream"))
            .transpose()?;
        let ours = ask(self.ours.client(), case, number).context("ours")?;
        let mut lines = Vec::new();
        lines.extend(upstream.as_ref().and_then(|answer| departure("upstream", answer, case)));
        lines.extend(departure("ours", &ours, case));
        if let Some(upstream) = upstream {
            lines.extend(disagreement(&upstream, &ours));
        }
        let title = format!("\n{} · {:?} · {}", case.file, case.kind, case.name);
        Ok((!lines.is_empty()).then(|| [vec![title], lines].concat().join("\n    ")))
    }
}

fn departure(party: &str, answer: &Answer, case: &Case) -> Option<String> {
    answer
        .departure(case)
        .map(|departure| format!("{departure}; {party} says {answer}"))
}

fn disagreement(upstream: &Answer, ours: &Answer) -> Vec<String> {
    if (upstream.status, &upstream.causes) != (ours.status, &ours.causes) {
        return vec![format!("upstream says {upstream}"), format!("ours says     {ours}")];
    }
    let places = difference::places(&upstream.object, &ours.object);
    places
        .iter()
        .map(|place| format!("{place} (upstream ≠ ours)"))
        .collect()
}
