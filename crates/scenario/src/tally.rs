//! What a cluster comes to, counted from what its store shows.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use simulator::{Change, Event};

use crate::ground::{holds, text};

/// Counts, kept up with every change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Nodes there are, by name, with their zone.
    pub nodes: BTreeMap<String, String>,
    /// Nodes there ever were.
    pub nodes_ever: u64,
    /// The most nodes there were at a time.
    pub most_nodes: usize,
    /// NodeClaims there ever were.
    pub claims_ever: u64,
    /// Pods that run, by identity.
    pub running: BTreeSet<String>,
    /// Pods that wait for a node, by identity, since when.
    pub waiting: BTreeMap<String, Timestamp>,
    /// Pods there ever were.
    pub pods_ever: u64,
    /// The longest a pod waited for a node, in seconds, those that still wait aside.
    pub longest_wait: i64,
    /// Pods evicted.
    pub evicted: u64,
    /// Nodes disrupted, by reason.
    pub disrupted: BTreeMap<String, u64>,
    /// When nodes were disrupted.
    pub disrupted_at: Vec<Timestamp>,
}

impl Tally {
    /// Sees a change.
    pub fn see(&mut self, change: &Change, now: Timestamp) {
        match change.resource.plural.as_str() {
            "nodes" => self.see_node(change),
            "nodeclaims" => self.see_claim(change, now),
            "pods" => self.see_pod(change, now),
            _ => {}
        }
    }

    /// All nodes disrupted.
    pub fn disruptions(&self) -> u64 {
        self.disrupted.values().sum()
    }

    fn see_node(&mut self, change: &Change) {
        let name = text(&change.object, "/metadata/name").to_owned();
        if change.event == Event::Deleted {
            self.nodes.remove(&name);
            return;
        }
        self.nodes_ever += u64::from(change.event == Event::Added);
        let zone = text(&change.object, "/metadata/labels/topology.kubernetes.io~1zone").to_owned();
        self.nodes.insert(name, zone);
        self.most_nodes = self.most_nodes.max(self.nodes.len());
    }

    fn see_claim(&mut self, change: &Change, now: Timestamp) {
        self.claims_ever += u64::from(change.event == Event::Added);
        let was = change.before.as_ref().is_some_and(|before| holds(before, REASON));
        if !was && holds(&change.object, REASON) {
            *self.disrupted.entry(reason(&change.object)).or_default() += 1;
            self.disrupted_at.push(now);
        }
    }

    fn see_pod(&mut self, change: &Change, now: Timestamp) {
        let uid = text(&change.object, "/metadata/uid").to_owned();
        self.pods_ever += u64::from(change.event == Event::Added);
        let was = change
            .before
            .as_ref()
            .is_some_and(|before| holds(before, "DisruptionTarget"));
        if !was && change.event != Event::Added && holds(&change.object, "DisruptionTarget") {
            self.evicted += 1;
        }
        let is_gone = change.event == Event::Deleted || !change.object["metadata"]["deletionTimestamp"].is_null();
        let phase = text(&change.object, "/status/phase");
        let is_bound = !text(&change.object, "/spec/nodeName").is_empty();
        if !is_gone && phase == "Pending" && !is_bound {
            self.waiting.entry(uid.clone()).or_insert(now);
        } else if let Some(since) = self.waiting.remove(&uid)
            && is_bound
        {
            self.longest_wait = self.longest_wait.max(now.duration_since(since).as_secs());
        }
        if !is_gone && phase == "Running" {
            self.running.insert(uid);
        } else {
            self.running.remove(&uid);
        }
    }
}

const REASON: &str = "DisruptionReason";

fn reason(claim: &Value) -> String {
    let conditions = claim["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.into_iter().find(|one| one["type"] == REASON);
    found
        .map_or("", |one| one["reason"].as_str().unwrap_or_default())
        .to_owned()
}
