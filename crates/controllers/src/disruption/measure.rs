//! What is counted of disruption, by upstream's names.

use std::time::Duration;

use api::labels;
use disruption::{Candidate, Command, Invalid, Method, Reason, Round};
use jiff::Timestamp;
use model::object::{NodeClaim, NodePool, ObjectKey};

use crate::{
    Cluster,
    node_claim::{label, termination_mode},
};

/// A reason as metrics spell it.
pub(super) fn lower(reason: Reason) -> &'static str {
    match reason {
        Reason::Underutilized => "underutilized",
        Reason::Empty => "empty",
        Reason::Drifted => "drifted",
        Reason::Unhealthy => "unhealthy",
    }
}

/// Upstream's spelling of a name in a label.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Counts a round. The methods share its time equally: they are asked in one go.
pub(super) fn round(cluster: &Cluster, round: &Round, paused: usize, took: Duration, now: Timestamp) {
    let metrics = cluster.metrics();
    let share = took.as_secs_f64() / count(round.passes.len().max(1));
    for pass in &round.passes {
        let reason = lower(pass.method.reason());
        metrics
            .voluntary_disruption_decision_evaluation_duration_seconds
            .observe([reason, pass.method.consolidation_type()], share);
        metrics
            .voluntary_disruption_eligible_nodes
            .set([reason], count(pass.eligible));
        if let Some(budgets) = &pass.budgets {
            for (pool, budget) in &budgets.pools {
                let labels = [pool.as_str(), reason];
                metrics
                    .nodepools_allowed_disruptions
                    .set(labels, f64::from(budget.allowed));
                metrics
                    .nodepools_nodes_consuming_budgets
                    .set(labels, f64::from(budget.disrupting));
            }
        }
        if !pass.waiting.is_empty() {
            metrics
                .voluntary_disruption_consolidation_timeouts_total
                .inc([pass.method.consolidation_type()]);
        }
    }
    for command in &round.commands {
        scored(cluster, command);
    }
    metrics
        .disruption_oldest_unevaluated_candidate_seconds
        .set([], round.rotation.oldest(now).as_secs_f64());
    metrics.disruption_paused_nodepools.set([], count(paused));
}

/// Counts how a consolidation was judged, for each pool it takes nodes of.
fn scored(cluster: &Cluster, command: &Command) {
    if !command.method.is_consolidation() || command.method == Method::Emptiness {
        return;
    }
    let metrics = cluster.metrics();
    for pool in command.node_pools() {
        let known = cluster.get::<NodePool>(&ObjectKey::cluster_scoped(pool.as_str()));
        let policy = known.map(|pool| pool.spec.disruption.consolidation_policy.clone());
        let policy = policy.unwrap_or_default();
        metrics
            .consolidation_moves_total
            .inc(["approved", pool.as_str(), &policy]);
        for score in command.scores.iter().filter(|score| score.pool == *pool) {
            #[expect(clippy::cast_precision_loss, reason = "a histogram")]
            let share = |(part, whole): (i128, i128)| if whole <= 0 { 0.0 } else { part as f64 / whole as f64 };
            let (saving, disruption) = (share(score.saving), share(score.disruption));
            let value = if saving <= 0.0 { 0.0 } else { saving / disruption };
            let decision = if score.is_approved { "approved" } else { "rejected" };
            metrics
                .consolidation_score
                .observe([decision, pool.as_str(), &policy], value);
        }
    }
}

/// Counts a command that did not hold. Upstream does not count those whose pods would go elsewhere.
pub(super) fn rejected(cluster: &Cluster, command: &Command, why: &Invalid) {
    let number = match why {
        Invalid::Scheduling(_) => return,
        _ => command.candidates.len(),
    };
    cluster
        .metrics()
        .voluntary_disruption_failed_validations_total
        .add([command.method.consolidation_type()], count(number));
}

/// Counts a command that begins.
pub(super) fn started(cluster: &Cluster, command: &Command) {
    let metrics = cluster.metrics();
    let (decision, reason) = (command.decision().as_str(), lower(command.reason()));
    let kind = command.method.consolidation_type();
    metrics
        .voluntary_disruption_decisions_total
        .inc([decision, reason, kind]);
    for pool in command.node_pools() {
        metrics
            .voluntary_disruption_decisions_by_nodepool_total
            .inc([pool.as_str(), decision, reason, kind]);
        if let Some(why) = command.terminate_first {
            metrics
                .voluntary_disruption_terminate_first_decisions_total
                .inc([pool.as_str(), reason, why.as_str()]);
        }
    }
}

/// Counts a command that was given up, by its replacements that did not come up.
pub(super) fn failed(cluster: &Cluster, command: &Command, lost: usize) {
    let labels = [
        command.decision().as_str(),
        lower(command.reason()),
        command.method.consolidation_type(),
    ];
    cluster
        .metrics()
        .voluntary_disruption_queue_failures_total
        .add(labels, count(lost));
}

/// Counts a node that goes, or reboots.
pub(super) fn disrupted(cluster: &Cluster, command: &Command, candidate: &Candidate) {
    let claim = cluster.get::<NodeClaim>(&ObjectKey::cluster_scoped(candidate.claim.as_str()));
    let pool = cluster.get::<NodePool>(&ObjectKey::cluster_scoped(candidate.node_pool.as_str()));
    let policy = match pool.filter(|_| command.method.is_consolidation()) {
        Some(pool) => snake(&pool.spec.disruption.consolidation_policy),
        None => String::new(),
    };
    let mode = claim.as_deref().map_or("graceful", termination_mode);
    let capacity_type = claim.as_deref().map_or("", |claim| label(claim, labels::CAPACITY_TYPE));
    let node_pool = candidate.node_pool.as_str();
    let labels = [lower(command.reason()), node_pool, capacity_type, &*policy, mode];
    let metrics = cluster.metrics();
    metrics.nodeclaims_disrupted_total.inc(labels);
    metrics
        .pods_disruption_initiated_total
        .add(labels, count(candidate.reschedulable.len()));
    if let Some(repair) = candidate
        .repair
        .as_ref()
        .filter(|_| command.reason() == Reason::Unhealthy)
    {
        let mode = match candidate.drain_bound {
            Some(bound) if bound.is_zero() || bound.is_negative() => "forceful",
            Some(_) => "eventual",
            None => mode,
        };
        let image = claim.as_deref().map_or("", |claim| &*claim.status.image_id);
        metrics.nodeclaims_unhealthy_disrupted_total.inc([
            &*snake(&repair.condition),
            node_pool,
            capacity_type,
            image,
            mode,
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_labels_are_in_snake_case() {
        let cases = [
            ("WhenEmptyOrUnderutilized", "when_empty_or_underutilized"),
            ("Balanced", "balanced"),
            ("Ready", "ready"),
        ];
        for (name, expected) in cases {
            assert_eq!(snake(name), expected);
        }
    }
}
