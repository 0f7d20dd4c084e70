//! Machines that are stuck or lost: claims that do not come up or do not go, and claims and nodes without each other.

use std::collections::BTreeMap;

use api::{finalizers::TERMINATION, labels::NODEPOOL};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Check, State, mend::Act};
use crate::{
    raw::{Raw, text},
    terminal::counted,
};

/// A launch takes seconds; upstream gives up after this.
const LAUNCHES_WITHIN: SignedDuration = SignedDuration::from_mins(5);
/// A node that has not joined by then does not.
const REGISTERS_WITHIN: SignedDuration = SignedDuration::from_mins(15);
/// A drain takes as long as its pods take; what takes longer than this deserves a look.
const GOES_WITHIN: SignedDuration = SignedDuration::from_hours(1);

fn time(object: &Value, path: &str) -> Option<Timestamp> {
    text(object, path).parse().ok()
}

fn holds(object: &Value, kind: &str) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == *kind && one["status"] == "True")
}

/// What a condition says.
fn says(object: &Value, kind: &str) -> Option<String> {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.find(|one| one["type"] == *kind)?;
    Some(format!(
        "{kind} is {}: {} {}",
        text(found, "status"),
        text(found, "reason"),
        text(found, "message")
    ))
}

/// `3d 2h`, `41m`
fn span(span: SignedDuration) -> String {
    let minutes = span.as_mins();
    match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
        (0, 0, minutes) => format!("{minutes}m"),
        (0, hours, minutes) => format!("{hours}h {minutes}m"),
        (days, hours, _) => format!("{days}d {hours}h"),
    }
}

pub(super) fn checks(raw: &Raw, now: Timestamp) -> Vec<Check> {
    let claims: Vec<&Value> = raw.of_kind("NodeClaim").collect();
    let nodes: Vec<&Value> = raw.of_kind("Node").collect();
    let mut checks = coming(&claims, now);
    checks.extend(lost(&claims, &nodes, now));
    checks.extend(going(raw, &claims, &nodes, now));
    checks
}

/// D07 and D08: claims that are not launched, or whose nodes do not join.
fn coming(claims: &[&Value], now: Timestamp) -> Vec<Check> {
    let living = || {
        claims
            .iter()
            .filter(|claim| claim["metadata"]["deletionTimestamp"].is_null())
    };
    let age = |claim: &Value| time(claim, "metadata.creationTimestamp").map(|since| now.duration_since(since));
    let mut checks = Vec::new();
    let mut stages = |id: &'static str,
                      stuck: Vec<(&Value, SignedDuration)>,
                      condition: &str,
                      what: &str,
                      fine: &str,
                      hint: &str| {
        if stuck.is_empty() {
            checks.push(Check::ok(id, fine));
        }
        for (claim, age) in stuck {
            let name = text(claim, "metadata.name");
            let mut check = Check::new(id, State::Stop, format!("NodeClaim {name} {what} for {}", span(age)));
            check.proof.extend(says(claim, condition));
            checks.push(check.fix(format!("kubectl describe nodeclaim {name}"), hint));
        }
    };
    let launching = living().filter(|claim| !holds(claim, "Launched"));
    let launching = launching
        .filter_map(|claim| Some((*claim, age(claim)?)))
        .filter(|(_, age)| *age > LAUNCHES_WITHIN);
    stages(
        "D07",
        launching.collect(),
        "Launched",
        "has not been launched",
        "no NodeClaim waits for its launch",
        "it only reads: the condition says what the cloud answered (stock, quota, role, subnet)",
    );
    let joining = living().filter(|claim| holds(claim, "Launched") && !holds(claim, "Registered"));
    let joining = joining
        .filter_map(|claim| Some((*claim, age(claim)?)))
        .filter(|(_, age)| *age > REGISTERS_WITHIN);
    stages(
        "D08",
        joining.collect(),
        "Registered",
        "has an instance whose node has not joined",
        "every launched machine has joined",
        "it only reads: most often the node's role has no access entry, or the security group cannot reach the API server",
    );
    checks
}

/// D10 and D11: registered claims whose node is gone, and nodes of pools without a claim.
fn lost(claims: &[&Value], nodes: &[&Value], now: Timestamp) -> Vec<Check> {
    let ids: BTreeMap<&str, &Value> = nodes
        .iter()
        .map(|node| (text(node, "spec.providerID"), *node))
        .collect();
    let is_lost = |claim: &&&Value| {
        holds(claim, "Registered")
            && claim["metadata"]["deletionTimestamp"].is_null()
            && !ids.contains_key(text(claim, "status.providerID"))
    };
    let mut checks = Vec::new();
    for claim in claims.iter().filter(is_lost) {
        let name = text(claim, "metadata.name");
        checks.push(
            Check::new("D10", State::Warn, format!("NodeClaim {name} has registered, and its Node is gone"))
                .proof(format!("no Node has provider ID {}", text(claim, "status.providerID")))
                .fix(
                    format!("kubectl delete nodeclaim {name}"),
                    "the finalizer asks the cloud first and ends the instance if it is there; no pod can run without its Node",
                )
                .act(Act::DeleteClaim {
                    name: name.to_owned(),
                    uid: text(claim, "metadata.uid").to_owned(),
                }),
        );
    }
    if checks.is_empty() {
        checks.push(Check::ok("D10", "every registered NodeClaim has its Node"));
    }
    let known: Vec<&str> = claims.iter().map(|claim| text(claim, "status.providerID")).collect();
    let mut are_claimed = true;
    for node in nodes {
        let pool = node["metadata"]["labels"][NODEPOOL].as_str();
        let is_young =
            time(node, "metadata.creationTimestamp").is_some_and(|since| now.duration_since(since) < LAUNCHES_WITHIN);
        let (Some(pool), false, false) = (pool, is_young, known.contains(&text(node, "spec.providerID"))) else {
            continue;
        };
        are_claimed = false;
        let name = text(node, "metadata.name");
        checks.push(
            Check::new(
                "D11",
                State::Warn,
                format!("Node {name} says it is of NodePool {pool}, and has no NodeClaim"),
            )
            .proof(format!(
                "no NodeClaim has provider ID {}",
                text(node, "spec.providerID")
            ))
            .fix(
                format!("kubectl label node {name} {NODEPOOL}-"),
                "the node stays and keeps its pods; it is then left alone as a node of somebody else",
            )
            .act(Act::ReleaseNode {
                name: name.to_owned(),
                uid: text(node, "metadata.uid").to_owned(),
            }),
        );
    }
    if are_claimed {
        checks.push(Check::ok("D11", "every Node of a NodePool has its NodeClaim"));
    }
    checks
}

/// D12 and D13: claims and nodes that do not go, and what they wait for.
fn going(raw: &Raw, claims: &[&Value], nodes: &[&Value], now: Timestamp) -> Vec<Check> {
    let since = |object: &Value| time(object, "metadata.deletionTimestamp").map(|at| now.duration_since(at));
    let mut checks = Vec::new();
    for claim in claims {
        let Some(span_gone) = since(claim).filter(|span| *span > GOES_WITHIN) else {
            continue;
        };
        let name = text(claim, "metadata.name");
        let node = nodes
            .iter()
            .find(|node| text(node, "spec.providerID") == text(claim, "status.providerID"));
        let mut check = Check::new(
            "D12",
            State::Warn,
            format!("NodeClaim {name} has been deleting for {}", span(span_gone)),
        );
        match node {
            None => {
                check = check
                    .proof("its Node is gone; the finalizer waits for the cloud to say that the instance is gone")
                    .fix(
                        format!("kubectl get nodeclaim {name} -o jsonpath='{{.status.providerID}}'   and look whether that instance exists"),
                        "it only reads: take the finalizer off by hand only if the cloud says the instance does not exist",
                    );
            }
            Some(node) => {
                let waits = waiting_pods(raw, text(node, "metadata.name"));
                check.proof.extend(waits.iter().take(5).cloned());
                if waits.is_empty() {
                    check.proof.extend(attachments(raw, text(node, "metadata.name")));
                }
                check = check.fix(
                    "dovetail lint --explain PD01 shows budgets that hold it; terminationGracePeriod on the NodePool ends the next one",
                    "no pod is forced: evictions go on as budgets allow",
                );
            }
        }
        checks.push(check);
    }
    if checks.is_empty() {
        checks.push(Check::ok("D12", "no NodeClaim has been going for more than an hour"));
    }
    let mut are_free = true;
    for node in nodes {
        let is_held = node["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == TERMINATION));
        let has_claim = claims
            .iter()
            .any(|claim| text(claim, "status.providerID") == text(node, "spec.providerID"));
        let Some(span_gone) = since(node).filter(|span| *span > GOES_WITHIN && is_held && !has_claim) else {
            continue;
        };
        are_free = false;
        let name = text(node, "metadata.name");
        checks.push(
            Check::new("D13", State::Stop, format!("Node {name} has been deleting for {} with finalizer {TERMINATION}, and nobody is left to take it off", span(span_gone)))
                .proof("it has no NodeClaim")
                .fix(
                    format!("kubectl patch node {name} --type=json -p '[{{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}}]'"),
                    "only once the cloud says that the instance does not exist: the finalizer is what ends it",
                ),
        );
    }
    if are_free {
        checks.push(Check::ok(
            "D13",
            format!("no finalizer is left behind on {}", counted(nodes.len(), "Node")),
        ));
    }
    checks
}

/// Pods that a drain of a node waits for, and what holds each.
fn waiting_pods(raw: &Raw, node: &str) -> Vec<String> {
    let here = raw.of_kind("Pod").filter(|pod| text(pod, "spec.nodeName") == node);
    let is_daemon = |pod: &Value| {
        let owners = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners
            .filter_map(|owner| owner["kind"].as_str())
            .any(|kind| kind == "DaemonSet" || kind == "Node")
    };
    let waiting = here.filter(|pod| !is_daemon(pod) && !matches!(text(pod, "status.phase"), "Succeeded" | "Failed"));
    let told = waiting.map(|pod| {
        let name = format!("{}/{}", text(pod, "metadata.namespace"), text(pod, "metadata.name"));
        let protection = pod["metadata"]["annotations"][api::annotations::DO_NOT_DISRUPT].as_str();
        match protection {
            Some(value) => format!(
                "pod {name} is still there: {}: \"{value}\"",
                api::annotations::DO_NOT_DISRUPT
            ),
            None if !pod["metadata"]["deletionTimestamp"].is_null() => format!("pod {name} is still terminating"),
            None => format!("pod {name} is still there: not evicted yet"),
        }
    });
    told.collect()
}

fn attachments(raw: &Raw, node: &str) -> Option<String> {
    let volumes = raw
        .of_kind("VolumeAttachment")
        .filter(|one| text(one, "spec.nodeName") == node)
        .count();
    (volumes > 0).then(|| format!("{} still attached to {node}", counted(volumes, "volume")))
}
