//! What has the cloud said about machines, and what was done about it?
//!
//! Events say so for an hour, Karpenter's as well as ours; decisions say for much longer what was done. A source without
//! either knows of no notices, which is not the same as that there were none.

mod read;

use std::collections::BTreeMap;

use jiff::Timestamp;
use ledger::Record;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::read::{events_path, read};

/// Reasons of Events that are notices, and what each is called; the words are those of decisions, too.
const NOTICES: [(&str, &str); 6] = [
    ("SpotInterrupted", "spot interruption"),
    ("SpotRebalanceRecommendation", "rebalance recommendation"),
    ("InstanceUnhealthy", "health warning"),
    ("InstanceStopping", "stopping instance"),
    ("InstanceTerminating", "terminating instance"),
    ("CapacityReservationInstanceInterrupted", "reservation interruption"),
];
/// The reason of the Event that says that a node is drained because of a notice.
const HEEDED: &str = "TerminatingOnInterruption";
/// The reason of decisions that notices led to.
const INTERRUPTED: &str = "Interrupted";

/// Every reason that says something about notices.
pub(crate) fn reasons() -> impl Iterator<Item = &'static str> {
    NOTICES.iter().map(|(reason, _)| *reason).chain([HEEDED])
}

/// What was said, and what was done.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    events: Vec<Event>,
    /// Every decision there is.
    pub(crate) records: Vec<Record>,
    /// What could not be read, a sentence each.
    pub(crate) gaps: Vec<String>,
}

/// An Event about a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Event {
    reason: String,
    /// The NodeClaim or the Node.
    name: String,
    /// When it was first said.
    first: Timestamp,
}

/// A notice about a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Notice {
    /// In upstream's word for the Event.
    pub(crate) reason: &'static str,
    /// In words.
    pub(crate) text: &'static str,
    pub(crate) at: Timestamp,
    /// When the node was drained because of it; none where nothing was done, as after a recommendation.
    pub(crate) drained_at: Option<Timestamp>,
    /// The decision to.
    pub(crate) decision: Option<String>,
}

/// How many machines there were notices about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Count {
    /// By what was said, machines.
    pub(crate) machines: BTreeMap<&'static str, usize>,
    /// Machines that were drained because of it.
    pub(crate) drained: usize,
    /// Since when; none where nothing was said.
    pub(crate) since: Option<Timestamp>,
}

impl Ledger {
    /// Takes in an Event as the API server has it, if it is about a notice.
    fn event(&mut self, event: &Value) {
        let reason = event["reason"].as_str().unwrap_or_default();
        if event["kind"] != "Event" || !reasons().any(|known| known == reason) {
            return;
        }
        let time = |field: &str| -> Option<Timestamp> { event[field].as_str()?.parse().ok() };
        let first = time("firstTimestamp").or_else(|| time("eventTime"));
        let Some(first) = first.or_else(|| event["metadata"]["creationTimestamp"].as_str()?.parse().ok()) else {
            return;
        };
        let object = &event["involvedObject"];
        self.events.push(Event {
            reason: reason.to_owned(),
            name: object["name"].as_str().unwrap_or_default().to_owned(),
            first,
        });
    }

    /// Decisions about a machine, by the names it goes by, the newest first.
    pub(crate) fn decisions(&self, names: &[&str]) -> Vec<&Record> {
        let concerns = |record: &&Record| names.iter().any(|name| record.concerns(name));
        let mut found: Vec<&Record> = self.records.iter().filter(concerns).collect();
        found.sort_by_key(|record| std::cmp::Reverse((record.time, record.id)));
        found
    }

    /// Notices about a machine, by the names it goes by, in the order they were given.
    pub(crate) fn notices(&self, names: &[&str]) -> Vec<Notice> {
        let about = |reason: &str| {
            let events = self.events.iter().filter(|event| event.reason == reason);
            let mine = events.filter(|event| names.contains(&event.name.as_str()));
            mine.map(|event| event.first).min()
        };
        let ended = self
            .decisions(names)
            .into_iter()
            .find(|record| record.reason == INTERRUPTED);
        let drained_at = about(HEEDED).or(ended.map(|record| record.time));
        let decision = ended.map(|record| record.id.to_string());
        let mut found = Vec::new();
        for (reason, text) in NOTICES {
            let by_decision = ended.filter(|record| record.detail == text).map(|record| record.time);
            let Some(at) = about(reason).or(by_decision) else {
                continue;
            };
            let is_end = reason != "SpotRebalanceRecommendation";
            found.push(Notice {
                reason,
                text,
                at,
                drained_at: drained_at.filter(|_| is_end),
                decision: decision.clone().filter(|_| is_end),
            });
        }
        found.sort_by_key(|notice| notice.at);
        found
    }

    /// How many machines there were notices about; a machine goes by its claim's name and its node's.
    pub(crate) fn count(&self, claim_of_node: &BTreeMap<String, String>) -> Count {
        let name = |name: &str| claim_of_node.get(name).map_or(name, String::as_str).to_owned();
        let mut said: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        let mut drained: Vec<String> = Vec::new();
        let mut times: Vec<Timestamp> = Vec::new();
        for event in &self.events {
            times.push(event.first);
            match NOTICES.iter().find(|(reason, _)| *reason == event.reason) {
                Some((_, text)) => said.entry(text).or_default().push(name(&event.name)),
                None => drained.push(name(&event.name)),
            }
        }
        for record in self.records.iter().filter(|record| record.reason == INTERRUPTED) {
            times.push(record.time);
            let claims: Vec<String> = record.there().map(|target| name(&target.claim)).collect();
            if let Some((_, text)) = NOTICES.iter().find(|(_, text)| *text == record.detail) {
                said.entry(text).or_default().extend(claims.iter().cloned());
            }
            drained.extend(claims);
        }
        Count {
            machines: said.into_iter().map(|(text, names)| (text, distinct(names))).collect(),
            drained: distinct(drained),
            since: times.into_iter().min(),
        }
    }
}

fn distinct(mut names: Vec<String>) -> usize {
    names.sort_unstable();
    names.dedup();
    names.len()
}

impl Count {
    pub(crate) fn is_empty(&self) -> bool {
        self.machines.is_empty() && self.drained == 0
    }
}

#[cfg(test)]
mod tests {
    use ledger::{Action, Id, Phase, Target};
    use serde_json::json;

    use super::*;

    fn event(reason: &str, kind: &str, name: &str, at: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Event", "reason": reason, "involvedObject": {"kind": kind, "name": name},
            "firstTimestamp": format!("2026-11-16T{at}Z"), "lastTimestamp": format!("2026-11-16T{at}Z")})
    }

    fn of(events: &[Value]) -> Ledger {
        let mut ledger = Ledger::default();
        for one in events {
            ledger.event(one);
        }
        ledger
    }

    fn at(text: &str) -> Timestamp {
        format!("2026-11-16T{text}Z").parse().unwrap()
    }

    #[test]
    fn a_notice_is_told_once_although_the_claim_and_the_node_have_it() {
        let ledger = of(&[
            event("SpotRebalanceRecommendation", "Node", "n1", "15:20:00"),
            event("SpotInterrupted", "NodeClaim", "c1", "15:30:00"),
            event("SpotInterrupted", "Node", "n1", "15:30:01"),
            event("TerminatingOnInterruption", "NodeClaim", "c1", "15:30:02"),
            event("SpotInterrupted", "NodeClaim", "c2", "15:31:00"),
            event("Unconsolidatable", "NodeClaim", "c1", "15:00:00"),
        ]);
        let told: Vec<_> = ledger
            .notices(&["c1", "n1"])
            .into_iter()
            .map(|notice| (notice.text, notice.at, notice.drained_at))
            .collect();
        let expected = [
            ("rebalance recommendation", at("15:20:00"), None),
            ("spot interruption", at("15:30:00"), Some(at("15:30:02"))),
        ];
        assert_eq!(told, expected);
        let nodes = BTreeMap::from([("n1".to_owned(), "c1".to_owned())]);
        let count = ledger.count(&nodes);
        let machines = BTreeMap::from([("rebalance recommendation", 1), ("spot interruption", 2)]);
        assert_eq!((count.machines, count.drained), (machines, 1));
    }

    #[test]
    fn a_decision_tells_of_a_notice_whose_events_are_gone() {
        let mut ledger = Ledger::default();
        let id = Id::of("delete", ["c1"]);
        let mut record = Record::new(id, Action::Delete, Phase::Done, INTERRUPTED, at("09:00:00"));
        "spot interruption".clone_into(&mut record.detail);
        record.targets = vec![Target {
            claim: "c1".into(),
            node: "n1".into(),
            ..Target::default()
        }];
        ledger.records = vec![record];
        let told = ledger.notices(&["n1"]);
        let [notice] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(
            (notice.text, notice.drained_at),
            ("spot interruption", Some(at("09:00:00")))
        );
        assert_eq!(notice.decision, Some(id.to_string()));
        assert_eq!(ledger.count(&BTreeMap::new()).drained, 1);
    }
}
