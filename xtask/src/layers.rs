//! Which crate may see which: the architecture as a table, checked against `cargo metadata`.
//!
//! The pure crates are pure because this fails when one of them can reach a client, a runtime or a source of
//! randomness, however indirectly. A crate that is not in the table fails too: its place is decided here first.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// What one crate may see.
struct Layer {
    name: &'static str,
    /// Workspace crates it may depend on directly.
    sees: &'static [&'static str],
    /// Whether its whole dependency tree must stay free of [`IMPURE`] crates.
    pure: bool,
}

const LAYERS: &[Layer] = &[
    Layer {
        name: "api",
        sees: &[],
        pure: true,
    },
    Layer {
        name: "model",
        sees: &["api"],
        pure: true,
    },
    Layer {
        name: "ledger",
        sees: &["model"],
        pure: true,
    },
    Layer {
        name: "catalogue",
        sees: &["api", "model"],
        pure: true,
    },
    Layer {
        name: "devices",
        sees: &["api", "model"],
        pure: true,
    },
    Layer {
        name: "scheduler",
        sees: &["api", "model"],
        pure: true,
    },
    Layer {
        name: "packing",
        sees: &["api", "model", "devices", "scheduler"],
        pure: true,
    },
    Layer {
        name: "disruption",
        sees: &["api", "model", "packing", "scheduler"],
        pure: true,
    },
    Layer {
        name: "forecast",
        sees: &["api", "model", "packing", "scheduler", "disruption"],
        pure: true,
    },
    Layer {
        name: "lint",
        sees: &["api", "model", "catalogue", "packing", "disruption"],
        pure: true,
    },
    Layer {
        name: "insight",
        sees: &["api", "model", "packing", "scheduler", "disruption", "devices"],
        pure: true,
    },
    Layer {
        name: "tui",
        sees: &["api", "model", "ledger", "packing", "forecast", "insight"],
        pure: true,
    },
    Layer {
        name: "state",
        sees: &["api", "model"],
        pure: true,
    },
    Layer {
        name: "cloud",
        sees: &["api", "model"],
        pure: true,
    },
    Layer {
        name: "runtime",
        sees: &["api", "ledger", "model"],
        pure: false,
    },
    Layer {
        name: "notify",
        sees: &["ledger", "model", "runtime"],
        pure: false,
    },
    Layer {
        name: "keeper",
        sees: &["api", "model", "runtime"],
        pure: false,
    },
    Layer {
        name: "web",
        sees: &["disruption", "insight", "ledger", "model", "packing", "runtime"],
        pure: false,
    },
    Layer {
        name: "cloud-kwok",
        sees: &["api", "model", "catalogue", "cloud", "runtime"],
        pure: false,
    },
    Layer {
        name: "cloud-aws",
        sees: &["api", "model", "catalogue", "cloud", "keeper", "runtime"],
        pure: false,
    },
    Layer {
        name: "cloud-azure",
        sees: &["api", "model", "catalogue", "cloud", "keeper", "runtime"],
        pure: false,
    },
    Layer {
        name: "cloud-sim",
        sees: &["api", "model", "catalogue", "cloud"],
        pure: false,
    },
    Layer {
        name: "simulator",
        sees: &["api", "model", "scheduler"],
        pure: false,
    },
    Layer {
        name: "controllers",
        sees: &[
            "api",
            "ledger",
            "model",
            "packing",
            "scheduler",
            "disruption",
            "state",
            "cloud",
            "runtime",
        ],
        pure: false,
    },
    Layer {
        name: "scenario",
        sees: &[
            "api",
            "model",
            "catalogue",
            "cloud",
            "cloud-sim",
            "controllers",
            "ledger",
            "runtime",
            "simulator",
        ],
        pure: false,
    },
    Layer {
        name: "dovetail",
        sees: &[
            "api",
            "ledger",
            "model",
            "catalogue",
            "cloud",
            "cloud-aws",
            "cloud-azure",
            "cloud-kwok",
            "cloud-sim",
            "controllers",
            "disruption",
            "forecast",
            "lint",
            "insight",
            "notify",
            "packing",
            "runtime",
            "scenario",
            "scheduler",
            "simulator",
            "state",
            "web",
            "tui",
        ],
        pure: false,
    },
    Layer {
        name: "workloads",
        sees: &["catalogue", "model"],
        pure: true,
    },
    Layer {
        name: "rig",
        sees: &[],
        pure: false,
    },
    Layer {
        name: "arm",
        sees: &[],
        pure: false,
    },
    Layer {
        name: "deploy",
        sees: &[],
        pure: false,
    },
    Layer {
        name: "aws-bench",
        sees: &["api", "cloud", "cloud-aws", "model", "rig", "runtime"],
        pure: false,
    },
    Layer {
        name: "packing-bench",
        sees: &["catalogue", "model", "packing", "rig", "workloads"],
        pure: false,
    },
    Layer {
        name: "disruption-bench",
        sees: &["api", "disruption", "model", "packing", "rig", "scheduler", "workloads"],
        pure: false,
    },
    Layer {
        name: "e2e",
        sees: &[
            "api",
            "arm",
            "catalogue",
            "disruption-bench",
            "model",
            "packing",
            "packing-bench",
            "rig",
            "runtime",
            "scheduler",
            "workloads",
        ],
        pure: false,
    },
    Layer {
        name: "xtask",
        sees: &["api", "catalogue", "model", "packing", "rig", "scheduler", "workloads"],
        pure: false,
    },
];

/// What a function of a Snapshot and a time has no use for: I/O, threads of its own, randomness.
const IMPURE: &[&str] = &[
    "async-std",
    "hyper",
    "kube-client",
    "kube-runtime",
    "mio",
    "rand",
    "reqwest",
    "rustls",
    "smol",
    "tokio",
    "ureq",
];

/// Fails with every edge that the table does not allow.
pub(crate) fn check() -> Result<usize> {
    let graph = Graph::load()?;
    let problems: Vec<String> = graph
        .members
        .values()
        .flat_map(|member| violations(&graph, member))
        .collect();
    if problems.is_empty() {
        return Ok(graph.members.len());
    }
    bail!("{} layering problem(s):\n  {}", problems.len(), problems.join("\n  "))
}

fn violations(graph: &Graph, member: &str) -> Vec<String> {
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == member) else {
        return vec![format!(
            "crate `{member}` has no place in xtask/src/layers.rs: decide what it may see"
        )];
    };
    let mut found = Vec::new();
    for seen in graph.direct_members(member) {
        if !layer.sees.contains(&seen.as_str()) {
            found.push(format!(
                "`{member}` depends on `{seen}`, but may only see {:?}",
                layer.sees
            ));
        }
    }
    if layer.pure {
        found.extend(
            graph
                .impure_path(member)
                .map(|path| format!("`{member}` must stay pure, but {path}")),
        );
    }
    found
}

/// The normal (not dev, not build) dependency edges by package name.
struct Graph {
    members: BTreeMap<String, String>,
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn load() -> Result<Self> {
        let output = crate::run::capture(crate::run::cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
        let metadata: Metadata = serde_json::from_str(&output).context("reading `cargo metadata`")?;
        let names: BTreeMap<&str, &str> = metadata
            .packages
            .iter()
            .map(|package| (package.id.as_str(), package.name.as_str()))
            .collect();
        let name = |id: &str| names.get(id).copied().unwrap_or(id).to_owned();
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in &metadata.resolve.nodes {
            let normal = node
                .deps
                .iter()
                .filter(|dep| dep.dep_kinds.iter().any(|kind| kind.kind.is_none()));
            edges
                .entry(name(&node.id))
                .or_default()
                .extend(normal.map(|dep| name(&dep.pkg)));
        }
        let members = metadata
            .workspace_members
            .iter()
            .map(|id| (name(id), name(id)))
            .collect();
        Ok(Self { members, edges })
    }

    fn direct(&self, package: &str) -> impl Iterator<Item = &String> {
        self.edges.get(package).into_iter().flatten()
    }

    fn direct_members(&self, package: &str) -> impl Iterator<Item = &String> {
        self.direct(package)
            .filter(|dependency| self.members.contains_key(*dependency))
    }

    /// The first chain of dependencies from `package` to an impure crate, as text.
    fn impure_path(&self, package: &str) -> Option<String> {
        let mut seen = BTreeSet::from([package.to_owned()]);
        let mut open = vec![vec![package.to_owned()]];
        while let Some(path) = open.pop() {
            for next in path.last().into_iter().flat_map(|last| self.direct(last)) {
                let mut longer = path.clone();
                longer.push(next.clone());
                if IMPURE.contains(&next.as_str()) {
                    return Some(longer.join(" → "));
                }
                if seen.insert(next.clone()) {
                    open.push(longer);
                }
            }
        }
        None
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dep>,
}

#[derive(Deserialize)]
struct Dep {
    pkg: String,
    dep_kinds: Vec<DepKind>,
}

#[derive(Deserialize)]
struct DepKind {
    kind: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(members: &[&str], edges: &[(&str, &[&str])]) -> Graph {
        Graph {
            members: members.iter().map(|name| ((*name).into(), (*name).into())).collect(),
            edges: edges
                .iter()
                .map(|(from, to)| ((*from).into(), to.iter().map(|t| (*t).into()).collect()))
                .collect(),
        }
    }

    #[test]
    fn a_pure_crate_may_not_reach_a_runtime_through_others() {
        let graph = graph(&["api"], &[("api", &["kube"]), ("kube", &["kube-core", "tokio"])]);
        assert_eq!(
            violations(&graph, "api"),
            ["`api` must stay pure, but api → kube → tokio"]
        );
    }

    #[test]
    fn a_crate_may_not_look_up_the_hill() {
        let graph = graph(&["api", "model"], &[("api", &["model"]), ("model", &[])]);
        assert_eq!(
            violations(&graph, "api"),
            ["`api` depends on `model`, but may only see []"]
        );
    }

    #[test]
    fn a_crate_without_a_place_is_named() {
        let graph = graph(&["util"], &[]);
        assert_eq!(
            violations(&graph, "util"),
            ["crate `util` has no place in xtask/src/layers.rs: decide what it may see"]
        );
    }
}
