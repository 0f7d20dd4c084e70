//! What is counted of disruption, by upstream's names.

use std::time::Duration;

use api::labels;
use disruption::{Candidate, Command, Invalid, Method, Reason, Round};
use jiff::Timestamp;
use model::object::{NodeClaim, NodePool, ObjectKey};
use runtime::Metrics;

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

/// Upstream's spelling of a name in a label: words begin with a capital, and several in a row are one word.
pub(crate) fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let is_after_word = before.is_some_and(|before| before.is_ascii_lowercase() || before.is_ascii_digit());
        let is_first = before.is_some() && letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        if letter.is_ascii_uppercase() && (is_after_word || is_first) {
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
pub(super) fn rejected(metrics: &Metrics, command: &Command, why: &Invalid) {
    let number = match why {
        Invalid::Scheduling(_) => return,
        _ => command.candidates.len(),
    };
    metrics
        .voluntary_disruption_failed_validations_total
        .add([command.method.consolidation_type()], count(number));
}

/// Counts a command that begins.
pub(super) fn started(metrics: &Metrics, command: &Command) {
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
pub(super) fn failed(metrics: &Metrics, command: &Command, lost: usize) {
    let labels = [
        command.decision().as_str(),
        lower(command.reason()),
        command.method.consolidation_type(),
    ];
    metrics
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
#[allow(clippy::float_cmp, reason = "counters count whole things")]
mod tests {
    use disruption::{Cost, Replacement, Saving, TerminateFirst};
    use model::{plan::Plan, price::Price};

    use super::*;

    /// A command over a node of each pool, replaced by so many.
    fn command(method: Method, pools: &[&str], replacements: usize) -> Command {
        let candidate = |pool: &&str| Candidate {
            node: "n".into(),
            claim: "c".into(),
            provider_id: "id".into(),
            node_pool: (*pool).into(),
            instance_type: "t".into(),
            capacity_type: "spot".into(),
            zone: "z".into(),
            price: Price::ZERO,
            reschedule_cost: Cost::NODE,
            disruption_cost: Cost::ZERO,
            reschedulable: Vec::new(),
            has_pod_blockers: false,
            is_initialized: true,
            drain_bound: None,
            repair: None,
        };
        Command {
            method,
            candidates: pools.iter().map(candidate).collect(),
            replacements: vec![Replacement::Static("p".into()); replacements],
            plan: Plan::default(),
            terminate_first: None,
            is_reboot: false,
            saving: Saving::default(),
            scores: Vec::new(),
        }
    }

    #[test]
    fn a_command_that_begins_is_counted_once_and_once_for_each_pool() {
        let cases = [
            (Method::Emptiness, 1, 0, ["delete", "empty", "empty"]),
            (Method::Emptiness, 3, 0, ["delete", "empty", "empty"]),
            (
                Method::SingleNodeConsolidation,
                1,
                0,
                ["delete", "underutilized", "single"],
            ),
            (
                Method::SingleNodeConsolidation,
                1,
                1,
                ["replace", "underutilized", "single"],
            ),
            (
                Method::MultiNodeConsolidation,
                3,
                0,
                ["delete", "underutilized", "multi"],
            ),
            (
                Method::MultiNodeConsolidation,
                3,
                1,
                ["replace", "underutilized", "multi"],
            ),
            (Method::Drift, 1, 2, ["replace", "drifted", ""]),
            (Method::Repair, 1, 0, ["delete", "unhealthy", ""]),
        ];
        for (method, nodes, replacements, labels) in cases {
            let metrics = Metrics::default();
            started(&metrics, &command(method, &vec!["p"; nodes], replacements));
            assert_eq!(
                metrics.voluntary_disruption_decisions_total.value(labels),
                1.0,
                "{labels:?}"
            );
            let [decision, reason, kind] = labels;
            let by_pool = &metrics.voluntary_disruption_decisions_by_nodepool_total;
            assert_eq!(by_pool.value(["p", decision, reason, kind]), 1.0, "{labels:?}");
        }
        let metrics = Metrics::default();
        started(&metrics, &command(Method::MultiNodeConsolidation, &["p", "q"], 0));
        let by_pool = &metrics.voluntary_disruption_decisions_by_nodepool_total;
        for pool in ["p", "q"] {
            assert_eq!(by_pool.value([pool, "delete", "underutilized", "multi"]), 1.0);
        }
        let mut first = command(Method::Repair, &["p"], 0);
        first.terminate_first = Some(TerminateFirst::StaticAtLimit);
        started(&metrics, &first);
        let firsts = &metrics.voluntary_disruption_terminate_first_decisions_total;
        assert_eq!(firsts.value(["p", "unhealthy", "static-at-limit"]), 1.0);
    }

    #[test]
    fn a_command_that_does_not_hold_is_counted_by_its_nodes_unless_its_pods_would_go_elsewhere() {
        let kinds = [
            (Method::Emptiness, "empty"),
            (Method::MultiNodeConsolidation, "multi"),
            (Method::SingleNodeConsolidation, "single"),
        ];
        for (method, kind) in kinds {
            let command = command(method, &["p", "p"], 0);
            let counted = |why: Invalid| {
                let metrics = Metrics::default();
                rejected(&metrics, &command, &why);
                metrics.voluntary_disruption_failed_validations_total.value([kind])
            };
            for why in [Invalid::Budget, Invalid::Churn(1), Invalid::Nominated] {
                assert_eq!(counted(why.clone()), 2.0, "{kind} {why}");
            }
            assert_eq!(counted(Invalid::Scheduling(String::new())), 0.0, "{kind}");
        }
    }

    #[test]
    fn a_command_that_is_given_up_is_counted_by_what_did_not_come_up() {
        let metrics = Metrics::default();
        failed(&metrics, &command(Method::MultiNodeConsolidation, &["p"], 1), 1);
        let failures = &metrics.voluntary_disruption_queue_failures_total;
        assert_eq!(failures.value(["replace", "underutilized", "multi"]), 1.0);
        failed(&metrics, &command(Method::Emptiness, &["p"], 0), 0);
        assert_eq!(failures.value(["delete", "empty", "empty"]), 0.0);
    }

    #[test]
    fn names_in_labels_are_in_snake_case() {
        let cases = [
            ("WhenEmptyOrUnderutilized", "when_empty_or_underutilized"),
            ("Balanced", "balanced"),
            ("Ready", "ready"),
            ("KWOKUnhealthy", "kwok_unhealthy"),
            ("NetworkUnavailable", "network_unavailable"),
        ];
        for (name, expected) in cases {
            assert_eq!(snake(name), expected);
        }
    }
}
