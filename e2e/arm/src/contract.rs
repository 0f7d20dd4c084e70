//! Which calls are there? The operations of the published specifications, and what of a request or an answer breaks them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::schema::{Definitions, Side};

const OPERATIONS: &str = include_str!("../schemas/operations.json");
const SETS: [(&str, &str); 12] = [
    ("compute", include_str!("../schemas/compute.json")),
    ("disk", include_str!("../schemas/disk.json")),
    ("network", include_str!("../schemas/network.json")),
    ("graph", include_str!("../schemas/graph.json")),
    ("skus", include_str!("../schemas/skus.json")),
    ("gallery", include_str!("../schemas/gallery.json")),
    ("subscriptions", include_str!("../schemas/subscriptions.json")),
    ("aks-2026-01", include_str!("../schemas/aks-2026-01.json")),
    ("aks-2026-05", include_str!("../schemas/aks-2026-05.json")),
    ("price", include_str!("../schemas/price.json")),
    ("bootstrapping", include_str!("../schemas/bootstrapping.json")),
    ("asynchronous", include_str!("../schemas/asynchronous.json")),
];

/// Read-only properties that the reference sends and Azure takes: a strict checker must allow them.
const EXCUSED: &[(&str, &[&str])] = &[
    ("VirtualMachines_CreateOrUpdate", &["/name", "/type"]),
    ("VirtualMachineExtensions_CreateOrUpdate", &["/name", "/type"]),
    (
        "Machines_CreateOrUpdate",
        &[
            "/properties/nodeImageVersion",
            // An update sends back what was read.
            "/id",
            "/type",
            "/properties/resourceId",
            "/properties/provisioningState",
            "/properties/eTag",
            "/properties/status",
            "/properties/network/ipAddresses",
            "/properties/kubernetes/nodeName",
            "/properties/kubernetes/currentOrchestratorVersion",
        ],
    ),
    ("NetworkInterfaces_CreateOrUpdate", &["/name"]),
];

/// One call as the specification has it.
#[derive(Deserialize)]
pub(crate) struct Operation {
    pub(crate) id: String,
    /// What a caller must be allowed to do; empty where nothing is asked.
    pub(crate) action: String,
    method: String,
    path: String,
    set: String,
    versions: Vec<String>,
    answers: BTreeMap<u16, Option<String>>,
    /// The schema of an error's body.
    pub(crate) error: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    optional: Vec<String>,
    /// Whether it is answered without a token.
    #[serde(default)]
    pub(crate) open: bool,
}

/// A request's operation, and what its path names.
pub(crate) struct Found<'a> {
    pub(crate) operation: &'a Operation,
    pub(crate) named: BTreeMap<String, String>,
}

/// Why a request is no call of the contract: the code that Azure would give, and the words.
pub(crate) struct Unknown {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

pub(crate) struct Contract {
    operations: Vec<Operation>,
    sets: BTreeMap<&'static str, Definitions>,
}

impl Contract {
    pub(crate) fn load() -> Result<Self> {
        let operations = serde_json::from_str(OPERATIONS).context("reading operations.json")?;
        let mut sets = BTreeMap::new();
        for (name, text) in SETS {
            sets.insert(
                name,
                Definitions::parse(text).with_context(|| format!("reading {name}.json"))?,
            );
        }
        Ok(Self { operations, sets })
    }

    /// The operation of a request. Paths are compared as ARM does, whatever their case.
    pub(crate) fn find(
        &self,
        method: &str,
        path: &str,
        query: &BTreeMap<String, String>,
    ) -> Result<Found<'_>, Unknown> {
        let of_path: Vec<Found<'_>> = self
            .operations
            .iter()
            .filter_map(|operation| named(&operation.path, path).map(|named| Found { operation, named }))
            .collect();
        if of_path.is_empty() {
            return Err(Unknown {
                status: 404,
                code: "InvalidResourceType",
                message: format!("no operation has the path {path}"),
            });
        }
        let mut of_method = of_path.into_iter().filter(|found| found.operation.method == method);
        // The node bootstrapping service has no versions.
        let version = query.get("api-version").map_or("", String::as_str);
        let Some(first) = of_method.next() else {
            return Err(Unknown {
                status: 405,
                code: "MethodNotAllowed",
                message: format!("{path} does not take {method}"),
            });
        };
        let mut candidates = std::iter::once(first).chain(of_method);
        let found = candidates.find(|found| found.operation.versions.iter().any(|known| known == version));
        if found.is_none() && version.is_empty() {
            return Err(Unknown {
                status: 400,
                code: "MissingApiVersionParameter",
                message: "The api-version query parameter (?api-version=) is required for all requests.".to_owned(),
            });
        }
        found.ok_or_else(|| Unknown {
            status: 400,
            code: "InvalidResourceType",
            message: format!("{method} {path} has no api-version {version} here"),
        })
    }

    /// What is wrong with a request's query and body.
    pub(crate) fn request_problems(
        &self,
        found: &Found<'_>,
        query: &BTreeMap<String, String>,
        body: Option<&Value>,
    ) -> Vec<String> {
        let operation = found.operation;
        let known = |name: &str| name == "api-version" || operation.optional.iter().any(|known| known == name);
        let strange = query.keys().filter(|name| !known(name));
        let mut problems: Vec<String> = strange
            .map(|name| format!("?{name}: is not a parameter of the operation"))
            .collect();
        match (&operation.body, body) {
            (Some(schema), Some(body)) => {
                problems.extend(self.check(operation, schema, &with_name(found, body), Side::Request));
            }
            (Some(_), None) => problems.push("/: the body is missing".to_owned()),
            (None, Some(_)) => problems.push("/: the operation takes no body".to_owned()),
            (None, None) => {}
        }
        problems
    }

    /// What is wrong with an answer of ours.
    pub(crate) fn response_problems(&self, operation: &Operation, status: u16, body: Option<&Value>) -> Vec<String> {
        if status >= 400 {
            let Some(body) = body else {
                return vec!["/: an error has a body".to_owned()];
            };
            return self.check(operation, &operation.error, body, Side::Response);
        }
        match (operation.answers.get(&status), body) {
            (None, _) => vec![format!("{status} is not a status of {}", operation.id)],
            (Some(Some(schema)), Some(body)) => self.check(operation, schema, body, Side::Response),
            (Some(Some(_)), None) => vec!["/: the body is missing".to_owned()],
            // What a Location leads to in the end is the resource, whose own operation checks it.
            (Some(None), _) => Vec::new(),
        }
    }

    fn check(&self, operation: &Operation, schema: &str, body: &Value, side: Side) -> Vec<String> {
        let excused = EXCUSED.iter().find(|(id, _)| *id == operation.id);
        let excused = excused.map_or(&[][..], |(_, places)| places);
        let Some(set) = self.sets.get(operation.set.as_str()) else {
            return vec![format!("no set of schemas is called {}", operation.set)];
        };
        let mut problems = set.problems(schema, body, side, excused);
        if operation.id == "Resources" {
            // Published as an object; it is an array when rows are asked for as objects.
            problems.retain(|problem| problem != "/data: is an array, expected object");
        }
        problems
    }
}

/// The schemas ask for a name, which clients give in the path.
fn with_name(found: &Found<'_>, body: &Value) -> Value {
    let is_put = found.operation.method == "PUT";
    let last = found.operation.path.rsplit('/').next().unwrap_or_default();
    let name = found.named.get(last.trim_matches(['{', '}']));
    let mut body = body.clone();
    if let (true, Some(name), Some(fields)) = (is_put, name, body.as_object_mut()) {
        fields.entry("name").or_insert_with(|| Value::from(name.clone()));
    }
    body
}

/// What a path names if it has the form of a template.
fn named(template: &str, path: &str) -> Option<BTreeMap<String, String>> {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    let mut named = BTreeMap::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(named),
            (Some(part), Some(text)) => match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                Some(_) if text.is_empty() => return None,
                Some(name) => drop(named.insert(name.to_owned(), text.to_owned())),
                None if part.eq_ignore_ascii_case(text) => {}
                None => return None,
            },
            _ => return None,
        }
    }
}
