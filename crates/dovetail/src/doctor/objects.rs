//! What objects tell by themselves: pools that are not ready, budgets that never allow, a missing queue, two controllers.

use jiff::Timestamp;
use lint::{Finding, Scope, World, document::Document, findings};
use serde_json::Value;

use super::{Check, State, claims};
use crate::{
    raw::{Raw, text},
    terminal::counted,
};

pub(super) fn checks(raw: &Raw, now: Timestamp) -> Vec<Check> {
    let mut checks = not_ready(raw);
    checks.extend(linted(raw, now));
    checks.extend(claims::checks(raw, now));
    checks
}

/// The condition of a kind that is not true, with why.
fn false_condition<'a>(object: &'a Value, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut of_kind = conditions.filter(|one| one["type"] == *kind && one["status"] != "True");
    of_kind.next().map(|one| (text(one, "reason"), text(one, "message")))
}

const UNSEEN: &str = "no controller has said that it is";

fn has_condition(object: &Value, kind: &str) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == *kind)
}

/// Whether a NodePool is of a version that no API server of ours serves.
fn is_old(object: &Value) -> bool {
    object["kind"] == "NodePool" && object["apiVersion"] != "karpenter.sh/v1"
}

/// Nothing is fine about a cluster from which nothing can be launched.
fn no_pools(raw: &Raw) -> Check {
    let old = raw.of_kind("NodePool").filter(|pool| is_old(pool));
    let mut old: Vec<&str> = old.map(|pool| text(pool, "apiVersion")).collect();
    old.dedup();
    let check = Check::new(
        "D05",
        State::Stop,
        "there is no NodePool of karpenter.sh/v1: nothing can be launched",
    );
    if old.is_empty() {
        return check.fix(
            "kubectl get nodepools.karpenter.sh",
            "it only reads; a dump may have been made without them",
        );
    }
    check
        .proof(format!(
            "those there are have version {}, which is not served any more",
            old.join(", ")
        ))
        .fix("dovetail lint -f FILE", "it only reads; NP25 prints what each becomes")
}

/// D05 and D06: NodePools and node classes that are not ready.
fn not_ready(raw: &Raw) -> Vec<Check> {
    let kinds: [(&'static str, &'static str, &[&str]); 2] = [
        ("D05", "NodePool", &["NodePool"]),
        ("D06", "NodeClass", &["EC2NodeClass", "AKSNodeClass", "KWOKNodeClass"]),
    ];
    let mut checks = Vec::new();
    for (id, noun, kinds) in kinds {
        let all = kinds.iter().flat_map(|kind| raw.of_kind(kind));
        let all: Vec<&Value> = all.filter(|object| !is_old(object)).collect();
        let mut are_fine = true;
        if id == "D05" && all.is_empty() {
            checks.push(no_pools(raw));
            continue;
        }
        for object in &all {
            // What no API server has seen nobody could judge; plans take it to be ready, too.
            let is_seen = object["metadata"]["uid"].is_string();
            let unseen = || (id == "D05" && is_seen && !has_condition(object, "Ready")).then_some(("", UNSEEN));
            let Some((reason, message)) = false_condition(object, "Ready").or_else(unseen) else {
                continue;
            };
            are_fine = false;
            let (kind, name) = (text(object, "kind"), text(object, "metadata.name"));
            let told = if message.is_empty() { reason } else { message };
            let mut check = Check::new(id, State::Stop, format!("{kind} {name} is not ready: {told}"));
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            for one in conditions.filter(|one| one["type"] != "Ready" && one["status"] == "False") {
                check = check.proof(format!("{} is False: {}", text(one, "type"), text(one, "message")));
            }
            checks.push(check.fix(
                format!("kubectl describe {} {name}", kind.to_lowercase()),
                "it only reads; what to change is what the condition names",
            ));
        }
        if are_fine {
            let told = match (all.len(), noun) {
                (1, noun) => format!("1 {noun}"),
                (count, "NodeClass") => format!("{count} NodeClasses"),
                (count, noun) => counted(count, noun),
            };
            let is_judged = |object: &&&Value| has_condition(object, "Ready");
            let unjudged = all.len() - all.iter().filter(is_judged).count();
            let ready = match unjudged {
                0 => "ready".to_owned(),
                1 if all.len() == 1 => "taken for ready: no controller has judged it".to_owned(),
                count if count == all.len() => "taken for ready: no controller has judged them".to_owned(),
                count => format!("ready, {count} of which no controller has judged"),
            };
            checks.push(Check::ok(id, format!("{told} {ready}")));
        }
    }
    checks
}

/// D09, D15 and D16: what rules of lint say that stops an installation.
fn linted(raw: &Raw, now: Timestamp) -> Vec<Check> {
    let kinds = [
        "NodePool",
        "EC2NodeClass",
        "AKSNodeClass",
        "KWOKNodeClass",
        "Deployment",
        "StatefulSet",
        "DaemonSet",
        "PodDisruptionBudget",
        "HorizontalPodAutoscaler",
        "ScaledObject",
        "Node",
    ];
    let wanted = raw
        .documents
        .iter()
        .filter(|document| kinds.contains(&text(&document.value, "kind")));
    let wanted: Vec<Document> = wanted.cloned().collect();
    let has_deployments = wanted
        .iter()
        .any(|document| text(&document.value, "kind") == "Deployment");
    let world = World::new(wanted, Scope::Whole, now, Vec::new());
    let has_controller = world.has_installation();
    let found = findings(&world);
    let of = |code: &str| {
        found
            .iter()
            .filter(move |finding| finding.code == code)
            .collect::<Vec<_>>()
    };
    let mut checks = Vec::new();
    let mut add = |id: &'static str, state: State, found: &[&Finding], fine: &str| {
        if found.is_empty() {
            checks.push(Check::ok(id, fine));
        }
        for finding in found {
            let told = format!("{}: {}", finding.title.replacen('/', " ", 1), finding.text);
            let fix = finding.fix.lines().next().unwrap_or_default().replace('`', "");
            let line = finding.line.map_or(String::new(), |line| format!(":{line}"));
            checks.push(
                Check::new(id, state, told)
                    .proof(format!("{} in {}{line}", finding.path, finding.source))
                    .fix(
                        fix,
                        format!(
                            "a change of the manifest, reviewed as any other; dovetail lint --explain {}",
                            finding.code
                        ),
                    ),
            );
        }
    };
    if has_controller {
        add(
            "D09",
            State::Stop,
            &of("IN03"),
            "an interruption queue is set, or no pool buys spot on EC2",
        );
    }
    if has_deployments {
        add("D16", State::Stop, &of("IN04"), "no two controllers act");
    }
    if !has_controller {
        checks.push(Check::new(
            "D09",
            State::Skipped,
            "no Deployment of the controller in the source: the interruption queue is not known",
        ));
    }
    if !has_deployments {
        checks.push(Check::new(
            "D16",
            State::Skipped,
            "no Deployments in the source: whether two controllers run is not known",
        ));
    }
    let mut add = |id: &'static str, state: State, found: &[&Finding], fine: &str| {
        if found.is_empty() {
            checks.push(Check::ok(id, fine));
        }
        for finding in found {
            checks.push(
                Check::new(
                    id,
                    state,
                    format!("PDB {} {}", finding.object.trim_start_matches("pdb/"), finding.text),
                )
                .fix(
                    "maxUnavailable: 1",
                    "it lets one pod go at a time, and holds at any number of replicas (lint PD01)",
                ),
            );
        }
    };
    let budgets = raw.of_kind("PodDisruptionBudget").count();
    let blocking: Vec<&Finding> = of("PD01").into_iter().chain(of("PD02")).collect();
    add(
        "D15",
        State::Warn,
        &blocking,
        &format!("{} can allow evictions", counted(budgets, "PodDisruptionBudget")),
    );
    checks
}
