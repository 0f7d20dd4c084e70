//! What people hear of disruption: events on nodes, claims and pools, and log lines, in upstream's words.

use std::{collections::BTreeSet, time::Duration};

use disruption::{Candidate, Command, Invalid, Method, Refusal, Replacement, Round, Rule};
use ledger::Id;
use model::{
    object::{Node, NodeClaim, NodeClaimName, NodeName, ObjectKey},
    snapshot::Snapshot,
};
use runtime::{Event, EventKind};
use serde_json::{Value, json};

use crate::{
    Cluster,
    node::events,
    provisioning::tell::some,
    records::{id_of_move, id_of_refusal},
};

/// How long upstream does not repeat why a node is not consolidated, or not repaired.
const LONG: Duration = Duration::from_mins(15);
/// How long upstream does not repeat that a pool's budget is blocking.
const SHORT: Duration = Duration::from_mins(1);

/// Tells what a round found.
pub(super) fn round(cluster: &Cluster, snapshot: &Snapshot, round: &Round) {
    protections(cluster, snapshot, round);
    for refusal in &round.refusals {
        refused(cluster, snapshot, refusal);
    }
    for pass in &round.passes {
        if let Some(budgets) = &pass.budgets {
            for (pool, budget) in &budgets.pools {
                let message = budget.blocked_message(budgets.reason);
                let pool = snapshot.node_pool(pool);
                if let (Some(message), Some(pool)) = (message, pool) {
                    let dedupe = vec![pool.metadata.uid.to_string(), budgets.reason.to_string()];
                    let event = Event::new(&**pool, EventKind::Normal, "DisruptionBlocked", message);
                    cluster.publish(event.deduped_by(dedupe).quiet_for(SHORT));
                }
            }
        }
    }
    for command in &round.commands {
        found(cluster, snapshot, command);
    }
}

/// Tells why a node stays.
fn refused(cluster: &Cluster, snapshot: &Snapshot, refusal: &Refusal) {
    let decision = id_of_refusal(refusal).filter(|_| cluster.book().is_on());
    if let Some(message) = held(refusal) {
        about(cluster, snapshot, &refusal.node, refusal.claim.as_ref(), |object| {
            object
                .event(EventKind::Normal, "DisruptionHeld", message.clone())
                .quiet_for(LONG)
                .decided(decision)
        });
    }
    let Some(event) = refusal.event() else { return };
    let kind = if event.is_warning {
        EventKind::Warning
    } else {
        EventKind::Normal
    };
    let quiet = if event.reason == "DisruptionBlocked" {
        None
    } else {
        Some(LONG)
    };
    let said = |said: Event| match quiet {
        Some(quiet) => said.quiet_for(quiet),
        None => said,
    };
    about(cluster, snapshot, &refusal.node, refusal.claim.as_ref(), |object| {
        said(object.event(kind, event.reason, event.message.clone())).decided(decision)
    });
    if event.is_warning
        && let Some(pool) = refusal.node_pool.as_ref().and_then(|pool| snapshot.node_pool(pool))
    {
        let event = said(Event::new(&**pool, kind, event.reason, event.message.clone()));
        cluster.publish(event.decided(decision));
    }
}

/// Why a rule of ours keeps a node; upstream has none of them, and no words for them.
pub(crate) fn held(refusal: &Refusal) -> Option<String> {
    let pool = refusal.node_pool.as_ref().map_or("", |pool| pool.as_str());
    match &refusal.rule {
        Rule::MinimumSaving { saving, least } => Some(format!(
            "Replacing it would save {saving} an hour, and NodePool {pool:?} asks for ${} at least",
            least.to_decimal()
        )),
        Rule::LoopGuard => Some(format!(
            "NodePool {pool:?} went from one kind of node to another and back for the same pods, so nothing of it is replaced"
        )),
        Rule::FailedReplacements(count) => Some(format!(
            "{count} replacements of NodePool {pool:?} in a row did not come up, so its nodes are not replaced"
        )),
        Rule::NeededSoon(count) => Some(format!(
            "{count} pods of CronJobs are due within minutes, and would need a new node without it"
        )),
        Rule::MovingCost => Some("Moving its pods would cost more than it saves".to_owned()),
        _ => None,
    }
}

/// Tells on pods what their protection means, up to the first that keeps its node.
fn protections(cluster: &Cluster, snapshot: &Snapshot, round: &Round) {
    let kept = round.refusals.iter().filter(|refusal| refusal.rule.is_about_node());
    let kept: BTreeSet<&NodeName> = kept.map(|refusal| &refusal.node).collect();
    let nodes = snapshot.objects().nodes.iter();
    let nodes = nodes.filter(|node| !kept.contains(&node.name()) && snapshot.claim_of_node(node).is_some());
    let now = cluster.now();
    for node in nodes {
        let name = node.name();
        let pods = snapshot.pods_on_node(&name);
        for pod in pods.filter(|pod| pod.is_active()) {
            let protection = pod.protection(now);
            if let Some(event) = events::protection(pod, &protection) {
                cluster.publish(event);
            }
            if protection.is_active() {
                break;
            }
        }
    }
}

/// Tells that nodes could be replaced by cheaper ones, and how a pool under the policy Balanced judged it.
fn found(cluster: &Cluster, snapshot: &Snapshot, command: &Command) {
    if !command.method.is_consolidation() || command.method == Method::Emptiness {
        return;
    }
    let decision = cluster.book().is_on().then(|| id_of_move(command));
    if !command.replacements.is_empty() {
        for candidate in &command.candidates {
            let message = command.candidate_message(&candidate.node);
            let text = command.text_for(&candidate.node);
            about(cluster, snapshot, &candidate.node, Some(&candidate.claim), |object| {
                let event = object.event(EventKind::Normal, "ConsolidationCandidate", message.clone());
                let dedupe = vec![object.uid(), text.clone()];
                event.deduped_by(dedupe).decided(decision)
            });
        }
    }
    for score in command.scores.iter().filter(|score| score.is_approved) {
        let message = score.message();
        if command.method == Method::SingleNodeConsolidation {
            for candidate in &command.candidates {
                about(cluster, snapshot, &candidate.node, Some(&candidate.claim), |object| {
                    let event = object.event(EventKind::Normal, "ConsolidationApproved", message.clone());
                    event.decided(decision)
                });
            }
        } else if let Some(pool) = snapshot.node_pool(&score.pool) {
            let event = Event::new(&**pool, EventKind::Normal, "ConsolidationApproved", message);
            cluster.publish(event.decided(decision));
        }
    }
}

/// Tells that a command did not hold. Of empty nodes upstream says nothing.
pub(super) fn rejected(cluster: &Cluster, snapshot: &Snapshot, command: &Command, why: &Invalid) {
    let decision = cluster.book().is_on().then(|| id_of_move(command));
    let logged = decision.map(tracing::field::display);
    tracing::debug!(command = %command.text(), error = %why, decision = logged, "abandoning disruption attempt, command is no longer valid");
    if !command.method.is_consolidation() || command.method == Method::Emptiness {
        return;
    }
    for candidate in &command.candidates {
        let message = command.rejected_message(&candidate.node, why);
        let text = command.text_for(&candidate.node);
        about(cluster, snapshot, &candidate.node, Some(&candidate.claim), |object| {
            let event = object.event(EventKind::Normal, "ConsolidationRejected", message.clone());
            let event = event.deduped_by(vec![object.uid(), text.clone(), why.label().to_owned()]);
            event.decided(decision)
        });
    }
}

/// Tells that a command begins. Here `decision` is upstream's key, and says what it comes to; our id has another.
pub(super) fn started(cluster: &Cluster, command: &Command, id: &str, decision: Id) {
    let decision_id = cluster.book().is_on().then(|| tracing::field::display(decision));
    tracing::info!(
        command = %command.log_text(id),
        decision = command.decision().as_str(),
        "decision-id" = decision_id,
        "disrupted-node-count" = command.candidates.len(),
        "replacement-node-count" = command.replacements.len(),
        "pod-count" = command.pod_count(),
        "disrupted-nodes" = %disrupted_nodes(command),
        "replacement-nodes" = %replacement_nodes(command),
        "disrupting node(s)"
    );
}

fn disrupted_nodes(command: &Command) -> Value {
    let node = |candidate: &Candidate| {
        let is_escalated = candidate.repair.as_ref().is_some_and(|repair| repair.is_escalated);
        let mut node = json!({
            "Node": { "name": candidate.node.as_str() }, "NodeClaim": { "name": candidate.claim.as_str() },
            "instance-type": candidate.instance_type.as_str(), "capacity-type": &*candidate.capacity_type,
        });
        if is_escalated {
            node["reboot-escalated"] = json!(true);
        }
        node
    };
    command.candidates.iter().map(node).collect()
}

fn replacement_nodes(command: &Command) -> Value {
    let is_only = command.replacements.len() == 1;
    let node = |replacement: &Replacement| {
        let planned = replacement.planned();
        let kind = planned.and_then(Command::replacement_capacity_type);
        let mut node = json!({ "capacity-type": kind.as_deref().unwrap_or_default() });
        if let Some(planned) = planned.filter(|_| is_only) {
            node["instance-types"] = json!(some(planned.options.iter(), 5));
        }
        node
    };
    command.replacements.iter().map(node).collect()
}

/// Tells that a command waits for a replacement.
pub(super) fn awaited(cluster: &Cluster, command: &Command, claim: &NodeClaim, is_initialized: bool, decision: Id) {
    let decision = cluster.book().is_on().then_some(decision);
    let reason = command.reason();
    let message = format!("Launching NodeClaim: {reason}");
    let launching = Event::new(claim, EventKind::Normal, "DisruptionLaunching", message);
    let launching = launching.deduped_by(vec![claim.metadata.uid.to_string(), reason.to_string()]);
    cluster.publish(launching.decided(decision));
    if !is_initialized {
        let message = "Waiting on readiness to continue disruption".to_owned();
        let waiting = Event::new(claim, EventKind::Normal, "DisruptionWaitingReadiness", message);
        cluster.publish(waiting.decided(decision));
    }
}

/// Tells that a node goes.
pub(super) fn terminating(cluster: &Cluster, command: &Command, candidate: &Candidate, decision: Id) {
    let decision = cluster.book().is_on().then_some(decision);
    let reason = command.reason();
    let (node, claim) = cluster.look(|state| {
        let node = state.get::<Node>(&ObjectKey::cluster_scoped(candidate.node.as_str()));
        let claim = state.get::<NodeClaim>(&ObjectKey::cluster_scoped(candidate.claim.as_str()));
        (node.cloned(), claim.cloned())
    });
    let event = |object: Subject<'_>, what: &str| {
        let event = object.event(
            EventKind::Normal,
            "DisruptionTerminating",
            format!("Disrupting {what}: {reason}"),
        );
        let event = event.deduped_by(vec![object.uid(), reason.to_string()]);
        event.decided(decision)
    };
    if let Some(node) = node {
        cluster.publish(event(Subject::Node(&node), "Node"));
    }
    if let Some(claim) = claim {
        cluster.publish(event(Subject::Claim(&claim), "NodeClaim"));
    }
}

/// Tells that a command was given up.
pub(super) fn failed(command: &Command, id: &str, why: &str) {
    tracing::error!(
        command = %command.log_text(id),
        error = why,
        "failed terminating nodes while executing a disruption command"
    );
}

/// A node or its claim.
#[derive(Clone, Copy)]
enum Subject<'a> {
    Node(&'a Node),
    Claim(&'a NodeClaim),
}

impl Subject<'_> {
    fn event(self, kind: EventKind, reason: &str, message: String) -> Event {
        match self {
            Self::Node(node) => Event::new(node, kind, reason, message),
            Self::Claim(claim) => Event::new(claim, kind, reason, message),
        }
    }

    fn uid(self) -> String {
        match self {
            Self::Node(node) => node.metadata.uid.to_string(),
            Self::Claim(claim) => claim.metadata.uid.to_string(),
        }
    }
}

/// Publishes an event on a node and its claim, whichever there are.
fn about(
    cluster: &Cluster,
    snapshot: &Snapshot,
    node: &NodeName,
    claim: Option<&NodeClaimName>,
    event: impl Fn(Subject<'_>) -> Event,
) {
    if let Some(node) = snapshot.node(node) {
        cluster.publish(event(Subject::Node(node)));
    }
    let claim = claim.and_then(|claim| snapshot.objects().node_claims.find("", claim.as_str()));
    if let Some(claim) = claim {
        cluster.publish(event(Subject::Claim(claim)));
    }
}
