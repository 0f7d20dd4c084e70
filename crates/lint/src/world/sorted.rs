//! Which object is what: fills a world's lists from its documents.

use std::sync::Arc;

use catalogue::Source;
use model::{object::NodePool, requirement::Requirements};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Install, Pool, Scaler, Workload, World};

impl World {
    /// Sorts the documents. Pods, Nodes and NodeClaims, of which a cluster has many, are kept slim.
    pub(super) fn sort(&mut self) {
        for at in 0..self.documents.len() {
            let Some(document) = self.documents.get(at) else {
                continue;
            };
            let value = &document.value;
            let kind = value["kind"].as_str().unwrap_or_default().to_owned();
            let group = value["apiVersion"].as_str().unwrap_or_default();
            let group = group.split_once('/').map_or("", |(group, _)| group).to_owned();
            match (group.as_str(), kind.as_str()) {
                ("karpenter.sh", "NodePool") => match pool(at, value) {
                    Ok(pool) => self.pools.extend(pool),
                    Err(error) => self.unread.push(not_read(value, &error)),
                },
                ("karpenter.sh", "NodeClaim") => self.keep(at, |world| &mut world.claims),
                ("", "Node") => self.keep(at, |world| &mut world.nodes),
                ("", "Pod") => {
                    let is_owned = value["metadata"]["ownerReferences"].is_array();
                    if !is_owned {
                        self.workloads.extend(Workload::read(at, value));
                    }
                    let is_placed = value["spec"]["nodeName"].is_string() || is_owned;
                    if is_placed {
                        self.keep(at, |world| &mut world.pods);
                    }
                }
                (_, "PodDisruptionBudget") => self.pdbs.push(at),
                (_, "HorizontalPodAutoscaler" | "ScaledObject") => self.scalers.extend(Scaler::read(at, value)),
                (group, kind) if kind.ends_with("NodeClass") && group.starts_with("karpenter") => self.classes.push(at),
                _ => {
                    self.installs.extend(Install::read(at, value));
                    self.workloads.extend(Workload::read(at, value));
                }
            }
        }
    }

    /// Keeps a typed copy; of many objects that is all that is kept.
    fn keep<T: DeserializeOwned>(&mut self, at: usize, list: fn(&mut Self) -> &mut Vec<Arc<T>>) {
        let Some(document) = self.documents.get_mut(at) else {
            return;
        };
        let is_bare = self.workloads.last().is_some_and(|workload| workload.document == at);
        let value = if is_bare {
            document.value.clone()
        } else {
            document.value.take()
        };
        let told = json!({"kind": value["kind"], "metadata": {"name": value["metadata"]["name"]}});
        match serde_json::from_value::<T>(value) {
            Ok(read) => list(self).push(Arc::new(read)),
            Err(error) => self.unread.push(not_read(&told, &error)),
        }
    }
}

fn not_read(value: &Value, error: &serde_json::Error) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&value["kind"]), text(&value["metadata"]["name"]));
    format!("{kind} {name} cannot be read, so no rule looks at it: {error}")
}

/// A NodePool; none of a version that is not served.
fn pool(document: usize, value: &Value) -> Result<Option<Pool>, serde_json::Error> {
    if value["apiVersion"] != "karpenter.sh/v1" {
        return Ok(None);
    }
    let pool: NodePool = serde_json::from_value(value.clone())?;
    let class = pool.spec.template.spec.node_class_ref.as_ref();
    Ok(Some(Pool {
        document,
        source: class.and_then(|class| Source::of_node_class(&class.kind)),
        requirements: Requirements::default(),
        left: Vec::new(),
        pool,
    }))
}
