//! Pods that get no node: by what rule, for whole workloads at once.

use std::{collections::BTreeMap, sync::Arc};

use ledger::{Action, Id, Lift, MOST_LISTED, Phase, Record, cut};
use model::plan::Unplaced;

use super::{launches::name_of, story::Story};
use crate::Cluster;

/// The pods that a pass refuses, gathered.
#[derive(Debug, Default)]
pub(crate) struct RefusedPods {
    /// What each message comes to. Pods of a kind share their message, so few are read.
    reasons: Vec<(Arc<str>, &'static str)>,
    groups: BTreeMap<Id, Group>,
}

#[derive(Debug)]
struct Group {
    reason: &'static str,
    first: Unplaced,
    pods: Vec<String>,
    count: usize,
}

impl RefusedPods {
    /// Takes in a refusal; returns the decision it is a part of.
    pub(crate) fn add(&mut self, refusal: &Unplaced) -> Id {
        let known = self
            .reasons
            .iter()
            .find(|(text, _)| Arc::ptr_eq(text, &refusal.message));
        let reason = if let Some((_, reason)) = known {
            reason
        } else {
            let reason = reason(&refusal.message);
            if self.reasons.len() < 64 {
                self.reasons.push((Arc::clone(&refusal.message), reason));
            }
            reason
        };
        let metadata = &refusal.pod.metadata;
        let owner = metadata.controller().map_or(&metadata.name, |owner| &owner.name);
        let id = Id::of("refuse", [reason, &metadata.namespace, owner]);
        let group = self.groups.entry(id).or_insert_with(|| Group {
            reason,
            first: refusal.clone(),
            pods: Vec::new(),
            count: 0,
        });
        group.count += 1;
        if group.pods.len() < MOST_LISTED {
            group.pods.push(name_of(&refusal.pod));
        }
        id
    }

    /// Writes them down: new ones, and those that were found again.
    pub(crate) fn write(self, cluster: &Cluster, story: Option<&Story>) {
        if !cluster.book().is_on() || self.groups.is_empty() {
            return;
        }
        let now = cluster.now();
        let mut pages = cluster.book().pages();
        for (id, group) in self.groups {
            if pages.ring.touch(id, now) {
                if pages.ring.get(id).is_some_and(|known| known.pod_count != group.count) {
                    pages.ring.change(id, |record| {
                        (record.pods, record.pod_count) = (group.pods, group.count);
                    });
                }
                continue;
            }
            pages.ring.put(group.record(id, now, story));
        }
    }
}

impl Group {
    fn record(self, id: Id, now: jiff::Timestamp, story: Option<&Story>) -> Record {
        let mut record = Record::new(id, Action::Refuse, Phase::Done, self.reason, now);
        record.detail = cut(&self.first.message);
        pool_of(&self.first.message)
            .unwrap_or_default()
            .clone_into(&mut record.pool);
        record.lift = Some(lift(self.reason, &record.pool, &name_of(&self.first.pod)));
        (record.pods, record.pod_count) = (self.pods, self.count);
        if let Some(story) = story {
            record.inputs = story.inputs.clone();
        }
        record
    }
}

/// The pool that a message names first.
fn pool_of(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("(NodePool=")?;
    rest.split_once(')').map(|(pool, _)| pool)
}

fn lift(reason: &str, pool: &str, pod: &str) -> Lift {
    if reason == "LimitReached" && !pool.is_empty() {
        return Lift {
            object: format!("NodePool {pool}"),
            change: "raise spec.limits, or let the pods run in another NodePool".to_owned(),
        };
    }
    Lift {
        object: format!("Pod {pod}"),
        change: format!("dovetail why pod {pod} names the smallest change that gives it a node"),
    }
}

/// Upstream's words, and ours for them. The first that is found counts: what is nearest to a node comes first.
const WORDS: [(&str, &str); 13] = [
    ("exceed limits for nodepool", "LimitReached"),
    ("node limits have been exhausted", "LimitReached"),
    ("minValues", "MinValues"),
    ("reserved", "ReservationsFull"),
    ("unsatisfiable topology constraint", "TopologyUnsatisfiable"),
    ("volume", "VolumeConstraint"),
    ("dynamic resource", "DeviceConstraint"),
    ("Dynamic Resource Allocation", "DeviceRequestsIgnored"),
    ("no instance type", "NoInstanceType"),
    ("incompatible requirements", "IncompatibleRequirements"),
    ("did not tolerate", "TaintNotTolerated"),
    ("no dynamic nodepools found", "NoNodePool"),
    ("filtered out all available instance types", "NoInstanceTypes"),
];

/// The rule that stops a pod, in one word.
fn reason(message: &str) -> &'static str {
    let found = WORDS.iter().find(|(text, _)| message.contains(text));
    found.map_or("Unschedulable", |(_, word)| word)
}

#[cfg(test)]
mod tests {
    use model::{
        object::{Metadata, OwnerReference, Pod},
        plan::RefusalKind,
    };

    use super::*;

    fn refusal(name: &str, owner: Option<&str>, message: &Arc<str>) -> Unplaced {
        let owner = owner.map(|name| OwnerReference {
            name: name.into(),
            controller: Some(true),
            ..OwnerReference::default()
        });
        let metadata = Metadata {
            namespace: "shop".into(),
            name: name.into(),
            owner_references: owner.into_iter().collect(),
            ..Metadata::default()
        };
        Unplaced {
            pod: Arc::new(Pod {
                metadata,
                ..Pod::default()
            }),
            kind: RefusalKind::Unschedulable,
            message: Arc::clone(message),
        }
    }

    #[test]
    fn pods_of_one_workload_that_one_rule_stops_are_one_decision() {
        let limit: Arc<str> = "all available instance types exceed limits for nodepool (NodePool=general)".into();
        let taint: Arc<str> = "did not tolerate taint workload=batch:NoSchedule".into();
        let mut refused = RefusedPods::default();
        let first = refused.add(&refusal("api-1", Some("api"), &limit));
        assert_eq!(refused.add(&refusal("api-2", Some("api"), &limit)), first);
        assert_ne!(refused.add(&refusal("api-3", Some("api"), &taint)), first);
        assert_ne!(refused.add(&refusal("web-1", Some("web"), &limit)), first);
        assert_ne!(refused.add(&refusal("alone", None, &limit)), first);
        let group = refused.groups.remove(&first).unwrap();
        let record = group.record(first, jiff::Timestamp::UNIX_EPOCH, None);
        assert_eq!(
            (&*record.reason, &*record.pool, record.pod_count),
            ("LimitReached", "general", 2)
        );
        assert_eq!(record.pods, ["shop/api-1", "shop/api-2"]);
        assert_eq!(record.lift.unwrap().object, "NodePool general");
    }

    #[test]
    fn the_rule_nearest_to_a_node_is_the_one_that_is_named() {
        let cases = [
            (
                "did not tolerate taint a; all available instance types exceed limits for nodepool (NodePool=b)",
                "LimitReached",
            ),
            (
                "no instance type met the scheduling requirements or had enough resources",
                "NoInstanceType",
            ),
            ("something new", "Unschedulable"),
        ];
        for (message, expected) in cases {
            assert_eq!(reason(message), expected, "{message}");
        }
    }
}
