//! The cluster as it was right before and right after each change, in the few facts that the rules need.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use model::quantity::Quantity;
use serde_json::Value;
use simulator::{Change, Event};

use crate::ground::{holds, text};

#[derive(Debug, Clone, Default)]
pub(super) struct Claim {
    pub(super) pool: String,
    pub(super) node: String,
    pub(super) is_deleting: bool,
    /// Why it is being disrupted, if it is.
    pub(super) reason: Option<String>,
    /// When its last pod must be gone.
    pub(super) ends_at: Option<Timestamp>,
    /// Cores and memory, in nano-units, once it is launched.
    pub(super) capacity: Option<[i128; 2]>,
    pub(super) is_initialized: bool,
    /// It is drained, and its machine is being removed.
    pub(super) is_ending: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) allocatable: [i128; 2],
    pub(super) is_open: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Pod {
    pub(super) app: String,
    pub(super) node: String,
    pub(super) requests: [i128; 2],
    pub(super) is_daemon: bool,
    pub(super) is_leaving: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Pool {
    pub(super) limits: BTreeMap<String, i128>,
    pub(super) budgets: Vec<Value>,
}

#[derive(Debug, Default)]
pub(super) struct Mirror {
    pub(super) claims: BTreeMap<String, Claim>,
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) pods: BTreeMap<String, Pod>,
    pub(super) pools: BTreeMap<String, Pool>,
    /// When pods of an app were evicted.
    pub(super) moves: BTreeMap<String, VecDeque<Timestamp>>,
    /// How many pods an app has.
    counts: BTreeMap<String, usize>,
    /// The most pods an app had.
    pub(super) sizes: BTreeMap<String, usize>,
    /// When claims were made.
    pub(super) made: VecDeque<Timestamp>,
    /// The most pods there were lately, and when.
    peak: (usize, Option<Timestamp>),
}

/// How long a peak of pods excuses nodes that were launched for it.
const PEAK: SignedDuration = SignedDuration::from_mins(30);

impl Mirror {
    pub(super) fn see(&mut self, change: &Change, now: Timestamp) {
        let name = text(&change.object, "/metadata/name").to_owned();
        let is_gone = change.event == Event::Deleted;
        match change.resource.plural.as_str() {
            "nodeclaims" if is_gone => drop(self.claims.remove(&name)),
            "nodeclaims" => {
                if change.event == Event::Added {
                    self.made.push_back(now);
                }
                self.claims.insert(name, claim(&change.object));
            }
            "nodes" if is_gone => drop(self.nodes.remove(&name)),
            "nodes" => drop(self.nodes.insert(name, node(&change.object))),
            "nodepools" if is_gone => drop(self.pools.remove(&name)),
            "nodepools" => drop(self.pools.insert(name, pool(&change.object))),
            "pods" => self.see_pod(change, is_gone, now),
            _ => {}
        }
    }

    fn see_pod(&mut self, change: &Change, is_gone: bool, now: Timestamp) {
        let uid = text(&change.object, "/metadata/uid").to_owned();
        let is_over = matches!(text(&change.object, "/status/phase"), "Succeeded" | "Failed");
        let pod = pod(&change.object);
        let was_target = change
            .before
            .as_ref()
            .is_none_or(|before| holds(before, "DisruptionTarget"));
        if !was_target && holds(&change.object, "DisruptionTarget") {
            self.moves.entry(pod.app.clone()).or_default().push_back(now);
        }
        if is_gone || is_over {
            self.forget_pod(&uid);
        } else {
            let app = pod.app.clone();
            self.pods.insert(uid, pod);
            if change.event == Event::Added {
                let size = self.counts.entry(app.clone()).or_default();
                *size += 1;
                let size = *size;
                let most = self.sizes.entry(app).or_default();
                *most = (*most).max(size);
            }
        }
        let count = self.pods.len();
        let is_past = self.peak.1.is_none_or(|at| now.duration_since(at) > PEAK);
        if count >= self.peak.0 || is_past {
            self.peak = (count, Some(now));
        }
    }

    fn forget_pod(&mut self, uid: &str) {
        let gone = self.pods.remove(uid);
        if let Some(count) = gone.and_then(|pod| self.counts.get_mut(&pod.app)) {
            *count = count.saturating_sub(1);
        }
    }

    /// The most pods there were lately.
    pub(super) fn peak(&self) -> usize {
        self.peak.0
    }

    pub(super) fn forget_moves(&mut self) {
        self.moves.clear();
        self.made.clear();
    }

    pub(super) fn claim_of_node(&self, node: &str) -> Option<&Claim> {
        self.claims.values().find(|claim| claim.node == node)
    }
}

fn amounts(resources: &Value) -> [i128; 2] {
    ["cpu", "memory"].map(|name| nanos(&resources[name]))
}

pub(super) fn nanos(value: &Value) -> i128 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.parse::<Quantity>().map_or(0, Quantity::nanos)
}

fn claim(object: &Value) -> Claim {
    let conditions = object["status"]["conditions"].as_array();
    let reason = conditions.and_then(|conditions| {
        let found = conditions
            .iter()
            .find(|one| one["type"] == "DisruptionReason" && one["status"] == "True");
        found.and_then(|one| one["reason"].as_str().map(str::to_owned))
    });
    let ends_at = text(
        object,
        "/metadata/annotations/karpenter.sh~1nodeclaim-termination-timestamp",
    );
    let capacity = &object["status"]["capacity"];
    Claim {
        pool: text(object, "/metadata/labels/karpenter.sh~1nodepool").to_owned(),
        node: text(object, "/status/nodeName").to_owned(),
        is_deleting: !object["metadata"]["deletionTimestamp"].is_null(),
        reason,
        ends_at: ends_at.parse().ok(),
        capacity: capacity.is_object().then(|| amounts(capacity)),
        is_initialized: holds(object, "Initialized"),
        is_ending: holds(object, "InstanceTerminating"),
    }
}

fn node(object: &Value) -> Node {
    let taints = object["spec"]["taints"].as_array();
    let is_kept_free = taints.is_some_and(|taints| taints.iter().any(|taint| taint["effect"] != "PreferNoSchedule"));
    let is_deleting = !object["metadata"]["deletionTimestamp"].is_null();
    Node {
        allocatable: amounts(&object["status"]["allocatable"]),
        is_open: holds(object, "Ready") && !is_kept_free && !is_deleting && object["spec"]["unschedulable"] != true,
    }
}

fn pod(object: &Value) -> Pod {
    let mut requests = [0; 2];
    for container in object["spec"]["containers"].as_array().into_iter().flatten() {
        let asked = amounts(&container["resources"]["requests"]);
        requests = [requests[0] + asked[0], requests[1] + asked[1]];
    }
    Pod {
        app: text(object, "/metadata/labels/app").to_owned(),
        node: text(object, "/spec/nodeName").to_owned(),
        requests,
        is_daemon: text(object, "/metadata/ownerReferences/0/kind") == "DaemonSet",
        is_leaving: !object["metadata"]["deletionTimestamp"].is_null(),
    }
}

fn pool(object: &Value) -> Pool {
    let limits = object["spec"]["limits"].as_object();
    let limits = limits
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), nanos(value)));
    let budgets = object["spec"]["disruption"]["budgets"].as_array();
    Pool {
        limits: limits.collect(),
        budgets: budgets
            .cloned()
            .unwrap_or_else(|| vec![serde_json::json!({"nodes": "10%"})]),
    }
}
