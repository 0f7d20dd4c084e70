//! The cluster as it was right before and right after each change, in the few facts that the rules need.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
    /// What the pods it was made for ask for.
    pub(super) promised: [i128; 2],
    /// When it is too old to stay.
    pub(super) expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) allocatable: [i128; 2],
    pub(super) is_open: bool,
    /// It says of itself that all of it is up, which its claim says a moment later.
    is_initialized: bool,
    /// When it was last open, if it is not any more.
    closed_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Pod {
    pub(super) app: String,
    pub(super) node: String,
    pub(super) requests: [i128; 2],
    pub(super) is_daemon: bool,
    pub(super) is_leaving: bool,
    /// No two of its app may share a node.
    pub(super) is_apart: bool,
    /// Since when it has had its node.
    bound_at: Option<Timestamp>,
}

/// Room on a node for pods that have to move.
#[derive(Debug, Clone)]
pub(super) struct Room {
    pub(super) node: String,
    free: [i128; 2],
    /// Of which there are pods.
    apps: BTreeSet<String>,
}

impl Room {
    /// Whether a pod could go there, as far as cores, memory and its wish to be apart go.
    pub(super) fn takes(&self, pod: &Pod) -> bool {
        let fits = pod.requests.iter().zip(self.free).all(|(asked, free)| *asked <= free);
        fits && !(pod.is_apart && self.apps.contains(&pod.app))
    }

    pub(super) fn free(&self) -> [i128; 2] {
        self.free
    }
}

/// What a disruption could count on when its node was marked: the pods that have to move, and where there was room.
#[derive(Debug, Clone)]
pub(super) struct Marked {
    /// By identity.
    pub(super) pods: BTreeSet<String>,
    pub(super) rooms: Vec<Room>,
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
    /// Claims that are being disrupted on our own account, and what that could count on.
    pub(super) marked: BTreeMap<String, Marked>,
    /// Pods that needed a place lately: what they ask for, and until when; no end while they still do.
    wanting: BTreeMap<String, ([i128; 2], Option<Timestamp>)>,
}

/// How far behind a decision may see the cluster: what came or went within it does not count against the decision.
const BLUR: SignedDuration = SignedDuration::from_secs(60);
/// How long a claim that was made for a pod may be on its way.
const ON_THE_WAY: SignedDuration = SignedDuration::from_mins(16);

/// How long a peak of pods excuses nodes that were launched for it.
const PEAK: SignedDuration = SignedDuration::from_mins(30);

impl Mirror {
    /// Whether a claim's node counts as up, for the contract: the node's own label decides.
    pub(super) fn is_up(&self, claim: &Claim) -> bool {
        claim.is_initialized || self.nodes.get(&claim.node).is_some_and(|node| node.is_initialized)
    }

    pub(super) fn see(&mut self, change: &Change, now: Timestamp) {
        let name = text(&change.object, "/metadata/name").to_owned();
        let is_gone = change.event == Event::Deleted;
        match change.resource.plural.as_str() {
            "nodeclaims" if is_gone => {
                self.claims.remove(&name);
                self.marked.remove(&name);
            }
            "nodeclaims" => {
                if change.event == Event::Added {
                    self.made.push_back(now);
                }
                let seen = claim(&change.object);
                let is_marked = seen.reason.as_deref().is_some_and(|reason| REPLACED.contains(&reason));
                if !is_marked {
                    self.marked.remove(&name);
                } else if !self.marked.contains_key(&name) {
                    let marked = self.mark(&seen.node, now);
                    self.marked.insert(name.clone(), marked);
                }
                self.claims.insert(name, seen);
            }
            "nodes" if is_gone => drop(self.nodes.remove(&name)),
            "nodes" => {
                let mut seen = node(&change.object);
                let before = self.nodes.get(&name);
                seen.closed_at = before.and_then(|it| if it.is_open { Some(now) } else { it.closed_at });
                self.nodes.insert(name, seen);
            }
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
        let is_waiting = !is_gone && !is_over && !pod.is_leaving && pod.node.is_empty();
        match self.wanting.get_mut(&uid) {
            Some((_, until)) if !is_waiting => *until = until.or(Some(now)),
            None if is_waiting => drop(self.wanting.insert(uid.clone(), (pod.requests, None))),
            _ => {}
        }
        if is_gone || is_over {
            self.forget_pod(&uid);
        } else {
            let app = pod.app.clone();
            let known = self.pods.get(&uid).and_then(|known| known.bound_at);
            let bound_at = (!pod.node.is_empty()).then(|| known.unwrap_or(now));
            self.pods.insert(uid, Pod { bound_at, ..pod });
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

    /// What a disruption of this node can count on now.
    fn mark(&self, node: &str, now: Timestamp) -> Marked {
        let is_old = |pod: &Pod| pod.bound_at.is_some_and(|at| now.duration_since(at) >= BLUR);
        let pods = self.pods.iter().filter(|(_, pod)| pod.node == node && is_old(pod));
        let pods = pods.filter(|(_, pod)| !pod.is_daemon && !pod.is_leaving);
        let is_room = |(name, there): &(&String, &Node)| {
            let was_open = there.closed_at.is_some_and(|at| now.duration_since(at) <= BLUR);
            **name != node && (there.is_open || was_open)
        };
        let room = |(name, there): (&String, &Node)| {
            let mut room = Room {
                node: name.clone(),
                free: there.allocatable,
                apps: BTreeSet::new(),
            };
            let on_it = self.pods.values().filter(|pod| pod.node == *name);
            for pod in on_it.filter(|pod| is_old(pod) && !pod.is_leaving) {
                room.free = [room.free[0] - pod.requests[0], room.free[1] - pod.requests[1]];
                room.apps.insert(pod.app.clone());
            }
            room
        };
        Marked {
            pods: pods.map(|(uid, _)| uid.clone()).collect(),
            rooms: self.nodes.iter().filter(is_room).map(room).collect(),
        }
    }

    /// The rooms a marked claim's pods may go to now: those there were when it was marked, and every node that is up now.
    pub(super) fn rooms(&self, marked: &Marked, own: &str) -> Vec<Room> {
        let mut rooms = marked.rooms.clone();
        let up = self
            .claims
            .values()
            .filter(|claim| claim.is_initialized && claim.node != own);
        for claim in up {
            if let Some(node) = self.nodes.get(&claim.node)
                && !rooms.iter().any(|room| room.node == claim.node)
            {
                rooms.push(Room {
                    node: claim.node.clone(),
                    free: node.allocatable,
                    apps: BTreeSet::new(),
                });
            }
        }
        rooms
    }

    /// What pods asked for that needed a place lately, those included that have to leave their node.
    pub(super) fn wanted(&mut self, now: Timestamp) -> [i128; 2] {
        let is_over = |until: &Option<Timestamp>| until.is_some_and(|at| now.duration_since(at) > ON_THE_WAY);
        self.wanting.retain(|_, (_, until)| !is_over(until));
        let going: BTreeSet<&str> = self
            .claims
            .values()
            .filter(|claim| claim.is_deleting || claim.reason.is_some())
            .map(|claim| claim.node.as_str())
            .collect();
        let moving = self.pods.iter().filter(|(uid, pod)| {
            going.contains(pod.node.as_str()) && !pod.node.is_empty() && !self.wanting.contains_key(*uid)
        });
        let asked = self.wanting.values().map(|(requests, _)| *requests);
        sum(asked.chain(moving.map(|(_, pod)| pod.requests)))
    }

    /// What the claims on their way were made for.
    pub(super) fn promised(&self) -> [i128; 2] {
        let on_their_way = self.claims.values().filter(|it| !it.is_initialized && !it.is_deleting);
        sum(on_their_way.map(|claim| claim.promised))
    }

    pub(super) fn claim_of_node(&self, node: &str) -> Option<&Claim> {
        self.claims.values().find(|claim| claim.node == node)
    }
}

/// Reasons for which a node is replaced.
const REPLACED: [&str; 2] = ["Drifted", "Underutilized"];

fn sum(amounts: impl Iterator<Item = [i128; 2]>) -> [i128; 2] {
    amounts.fold([0; 2], |sum, more| [sum[0] + more[0], sum[1] + more[1]])
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
        promised: amounts(&object["spec"]["resources"]["requests"]),
        expires_at: expiry(object),
    }
}

fn expiry(claim: &Value) -> Option<Timestamp> {
    let lives = crate::time::parse(text(claim, "/spec/expireAfter")).ok()?;
    let made: Timestamp = text(claim, "/metadata/creationTimestamp").parse().ok()?;
    made.checked_add(lives).ok()
}

fn node(object: &Value) -> Node {
    let taints = object["spec"]["taints"].as_array();
    let is_kept_free = taints.is_some_and(|taints| taints.iter().any(|taint| taint["effect"] != "PreferNoSchedule"));
    let is_deleting = !object["metadata"]["deletionTimestamp"].is_null();
    Node {
        allocatable: amounts(&object["status"]["allocatable"]),
        is_open: holds(object, "Ready") && !is_kept_free && !is_deleting && object["spec"]["unschedulable"] != true,
        is_initialized: text(object, "/metadata/labels/karpenter.sh~1initialized") == "true",
        closed_at: None,
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
        is_apart: is_apart(object),
        bound_at: None,
    }
}

/// Whether it keeps away from nodes with pods of its own app.
fn is_apart(pod: &Value) -> bool {
    let required = &pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let is_own = |term: &Value| {
        term["topologyKey"] == "kubernetes.io/hostname"
            && term["labelSelector"]["matchLabels"]["app"] == pod["metadata"]["labels"]["app"]
    };
    required.as_array().is_some_and(|terms| terms.iter().any(is_own))
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
