//! What does Resource Graph show? The resources as they were a while ago, chosen by the queries of the contract.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Refusal},
    knob::Graph,
    request::Asked,
    world::World,
};

/// Since when a resource looks how; nothing once it was gone.
type Past = Vec<(Timestamp, Option<Value>)>;

/// How every resource looked at every time.
#[derive(Default)]
pub(crate) struct Index {
    /// By type and key.
    past: BTreeMap<(&'static str, String), Past>,
    lag: SignedDuration,
    frozen: Option<Timestamp>,
    is_mixed: bool,
}

impl Index {
    pub(crate) fn turn(&mut self, knob: &Graph, now: Timestamp) {
        if let Some(seconds) = knob.lag_seconds {
            self.lag = SignedDuration::from_secs(seconds);
        }
        if let Some(is_frozen) = knob.frozen {
            self.frozen = is_frozen.then_some(now);
        }
        self.is_mixed = knob.mixed_case.unwrap_or(self.is_mixed);
    }

    fn note(&mut self, at: Timestamp, kind: &'static str, key: String, shown: Option<Value>) {
        self.past.entry((kind, key)).or_default().push((at, shown));
    }

    /// Everything of a type as it is shown now.
    fn rows(&self, kind: &str, now: Timestamp) -> Vec<&Value> {
        let until = self.frozen.unwrap_or(now) - self.lag;
        let of_kind = self
            .past
            .iter()
            .filter(|((known, _), _)| known.eq_ignore_ascii_case(kind));
        let shown = of_kind.filter_map(|(_, past)| {
            let last = past.iter().rev().find(|(at, _)| *at <= until)?;
            last.1.as_ref()
        });
        shown.collect()
    }
}

/// A query as far as the contract goes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Query {
    kind: String,
    group: Option<String>,
    with: Vec<String>,
    without: Vec<String>,
}

impl Query {
    fn parse(text: &str) -> Result<Self, String> {
        let mut steps = text.split(" | ");
        if steps.next() != Some("Resources") {
            return Err("a query begins with `Resources`".to_owned());
        }
        let mut query = Self::default();
        for step in steps {
            let quoted = |before: &str, after: &str| {
                let inner = step.strip_prefix(before)?.strip_suffix(after)?;
                (!inner.contains('"')).then(|| inner.to_owned())
            };
            if let Some(kind) = quoted("where type == \"", "\"") {
                query.kind = kind;
            } else if let Some(group) = quoted("where resourceGroup == \"", "\"") {
                query.group = Some(group);
            } else if let Some(tag) = quoted("where tags has_cs \"", "\"") {
                query.with.push(tag);
            } else if let Some(tag) = quoted("where not(tags has_cs \"", "\")") {
                query.without.push(tag);
            } else {
                return Err(format!("`{step}` is not in a query of the contract"));
            }
        }
        if query.kind.is_empty() {
            return Err("a query names a type".to_owned());
        }
        Ok(query)
    }

    fn takes(&self, row: &Value) -> bool {
        let has = |tag: &String| {
            let tags = row["tags"].as_object();
            tags.into_iter()
                .flatten()
                .any(|(name, value)| name == tag || value == tag)
        };
        // Kusto compares case, and the graph has groups in lower case.
        let is_in_group = self
            .group
            .as_ref()
            .is_none_or(|group| row["resourceGroup"] == group.as_str());
        is_in_group && self.with.iter().all(has) && !self.without.iter().any(has)
    }
}

impl World {
    /// Takes what changed into the graph, as of a time.
    pub(crate) fn index(&mut self, at: Timestamp) {
        for key in self.vms.news() {
            let shown = self.vms.get(&key).map(|vm| self.vm_json(vm, false));
            self.graph.note(at, "microsoft.compute/virtualmachines", key, shown);
        }
        for key in self.nics.news() {
            let shown = self.nics.get(&key).map(Self::nic_json);
            self.graph.note(at, "microsoft.network/networkinterfaces", key, shown);
        }
        for key in self.disks.news() {
            let shown = self.disks.get(&key).map(|disk| disk.json(&self.setup.region));
            self.graph.note(at, "microsoft.compute/disks", key, shown);
        }
    }

    pub(crate) fn query_graph(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        let body = &asked.body;
        let text = body["query"].as_str().unwrap_or_default();
        let query = Query::parse(text).map_err(|why| Refusal::bad("InvalidQuery", format!("{why}: {text}")))?;
        let subscriptions = body["subscriptions"].as_array().map_or(&[][..], Vec::as_slice);
        let is_ours = subscriptions.iter().any(|one| one == self.setup.subscription.as_str());
        let rows = self.graph.rows(&query.kind, asked.now).into_iter().filter(|_| is_ours);
        let rows: Vec<Value> = rows
            .map(|shown| self.row(shown))
            .filter(|row| query.takes(row))
            .collect();
        self.graph_page(&body["options"], rows)
    }

    fn graph_page(&self, options: &Value, rows: Vec<Value>) -> Result<Answer, Refusal> {
        let start = match options["$skipToken"].as_str().map(str::parse::<usize>) {
            None => 0,
            Some(Ok(start)) => start,
            Some(Err(_)) => return Err(Refusal::bad("InvalidSkipToken", "The skip token is not ours.")),
        };
        let top = options["$top"].as_u64().and_then(|top| usize::try_from(top).ok());
        let size = self.page_size("Resources").or(top).unwrap_or(1000);
        let total = rows.len();
        let page: Vec<Value> = rows.into_iter().skip(start).take(size).collect();
        let mut answer = json!({
            "totalRecords": total, "count": page.len(), "resultTruncated": "false", "facets": [], "data": page,
        });
        if total > start + size {
            answer["$skipToken"] = json!((start + size).to_string());
        }
        Ok(Answer::ok(answer))
    }

    /// A resource as a row.
    fn row(&self, shown: &Value) -> Value {
        let mut row = shown.clone();
        let id = shown["id"].as_str().unwrap_or_default();
        let group = id.split('/').nth(4).unwrap_or_default();
        row["resourceGroup"] = json!(group.to_ascii_lowercase());
        row["subscriptionId"] = json!(self.setup.subscription);
        row["tenantId"] = json!(self.setup.tenant);
        row["type"] = json!(shown["type"].as_str().unwrap_or_default().to_ascii_lowercase());
        if row["tags"].is_null() {
            row["tags"] = json!({});
        }
        if self.graph.is_mixed {
            row["id"] = json!(mixed(id));
        }
        row
    }
}

/// An id with its group and its last name in another case.
fn mixed(id: &str) -> String {
    let parts: Vec<&str> = id.split('/').collect();
    let last = parts.len().saturating_sub(1);
    let parts = parts.iter().enumerate().map(|(index, part)| match index {
        4 => part.to_ascii_uppercase(),
        _ if index == last => {
            let letters = part.chars().enumerate();
            letters
                .map(|(at, letter)| {
                    if at % 2 == 0 {
                        letter.to_ascii_uppercase()
                    } else {
                        letter
                    }
                })
                .collect()
        }
        _ => (*part).to_owned(),
    });
    parts.collect::<Vec<String>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_queries_of_the_contract_are_understood() {
        let text = "Resources | where type == \"microsoft.compute/virtualmachines\" | where resourceGroup == \"mc_rg\" | \
                    where tags has_cs \"karpenter.sh_nodepool\" | \
                    where not(tags has_cs \"karpenter.azure.com_aksmachine_nodeclaim\")";
        let expected = Query {
            kind: "microsoft.compute/virtualmachines".to_owned(),
            group: Some("mc_rg".to_owned()),
            with: vec!["karpenter.sh_nodepool".to_owned()],
            without: vec!["karpenter.azure.com_aksmachine_nodeclaim".to_owned()],
        };
        assert_eq!(Query::parse(text), Ok(expected));
    }

    #[test]
    fn another_query_is_refused() {
        let text = "Resources | where type == \"microsoft.compute/virtualmachines\" | limit 5";
        assert_eq!(
            Query::parse(text),
            Err("`limit 5` is not in a query of the contract".to_owned())
        );
    }
}
