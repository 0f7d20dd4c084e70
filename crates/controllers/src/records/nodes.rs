//! Nodes that stay: by what rule, and what would lift it. Only rules that stand are written down; what passes by itself
//! within minutes is not.

use std::{collections::BTreeMap, time::Duration};

use disruption::{Refusal, Round, Rule};
use jiff::Timestamp;
use ledger::{Action, Id, Lift, MOST_LISTED, Phase, Record, Score, Target, Usd, cut};
use model::snapshot::Snapshot;

use super::story::inputs_of;
use crate::{Cluster, disruption::tell::held};

/// A rule in one word; none for what passes by itself.
fn word(rule: &Rule) -> Option<&'static str> {
    match rule {
        Rule::DoNotDisrupt | Rule::ProtectedPod { .. } => Some("DoNotDisrupt"),
        Rule::PodBudgets { .. } => Some("PDBBlocked"),
        Rule::Budget { .. } => Some("BudgetClosed"),
        Rule::Paused { .. } => Some("Paused"),
        Rule::RepairNeedsNodePool => Some("NoNodePool"),
        Rule::NodePoolNotFound(_) => Some("NodePoolNotFound"),
        Rule::UnknownInstanceType(_) => Some("UnknownInstanceType"),
        Rule::MissingLabel(_) => Some("MissingLabel"),
        Rule::ConsolidationDisabled => Some("ConsolidationDisabled"),
        Rule::BufferPods => Some("BufferPods"),
        Rule::OnlyWhenEmpty => Some("OnlyWhenEmpty"),
        Rule::Unschedulable(_) => Some("PodsWouldPend"),
        Rule::TooManyReplacements(_) => Some("TooManyReplacements"),
        Rule::MinValues(_) => Some("MinValues"),
        Rule::NotCheaper => Some("NotCheaper"),
        Rule::SpotToSpotDisabled => Some("SpotToSpotDisabled"),
        Rule::SpotFlexibility(_) => Some("SpotFlexibility"),
        Rule::Balanced(_) => Some("Balanced"),
        Rule::DoNotRepair => Some("DoNotRepair"),
        Rule::UnboundedDrain => Some("UnboundedDrain"),
        Rule::BreakerTripped => Some("BreakerTripped"),
        Rule::StaticAtLimit => Some("StaticAtLimit"),
        Rule::ReservationsFull => Some("ReservationsFull"),
        Rule::MinimumSaving { .. } => Some("MinimumSaving"),
        Rule::LoopGuard => Some("LoopGuard"),
        Rule::FailedReplacements(_) => Some("FailedReplacements"),
        Rule::NeededSoon(_) => Some("NeededSoon"),
        Rule::MovingCost => Some("MovingCost"),
        Rule::InQueue
        | Rule::Unmanaged
        | Rule::NoNode
        | Rule::Rebooting
        | Rule::Leaving
        | Rule::NotRegistered
        | Rule::NotInitialized
        | Rule::Nominated
        | Rule::NoNodePoolLabel
        | Rule::StaticPool
        | Rule::NotYetConsolidatable { .. }
        | Rule::NoNodePools
        | Rule::ScaleDownFirst
        | Rule::Settled
        | Rule::NotLookedAt
        | Rule::Later => None,
    }
}

/// The decision that a refusal is; nodes that one budget of a pool keeps are one decision together.
pub(crate) fn id_of_refusal(refusal: &Refusal) -> Option<Id> {
    let word = word(&refusal.rule)?;
    Some(match &refusal.rule {
        Rule::Budget { reason, .. } => Id::of("refuse", [word, pool_of(refusal), reason.as_str()]),
        _ => Id::of("keep", [word, refusal.node.as_str()]),
    })
}

fn pool_of(refusal: &Refusal) -> &str {
    refusal.node_pool.as_ref().map_or("", |pool| pool.as_str())
}

/// Writes down which nodes a round keeps. What is known is only seen again. Returns the decisions that are new.
pub(crate) fn kept(
    cluster: &Cluster,
    snapshot: &Snapshot,
    round: &Round,
    inputs: &model::snapshot::Inputs,
    took: Duration,
) -> Vec<Id> {
    if !cluster.book().is_on() {
        return Vec::new();
    }
    let now = cluster.now();
    let mut new: BTreeMap<Id, Vec<&Refusal>> = BTreeMap::new();
    let mut pages = cluster.book().pages();
    let mut seen = std::collections::BTreeSet::new();
    for refusal in &round.refusals {
        let Some(id) = id_of_refusal(refusal) else { continue };
        if let Some(group) = new.get_mut(&id) {
            group.push(refusal);
        } else if !seen.contains(&id) {
            if pages.ring.touch(id, now) {
                seen.insert(id);
            } else {
                new.insert(id, vec![refusal]);
            }
        }
    }
    if new.is_empty() {
        return Vec::new();
    }
    drop(pages);
    let inputs = inputs_of(cluster, inputs, took);
    let records: Vec<Record> = new
        .iter()
        .map(|(id, refusals)| {
            let mut record = record(*id, refusals, snapshot, now);
            record.inputs = inputs.clone();
            record
        })
        .collect();
    let mut pages = cluster.book().pages();
    for record in records {
        pages.ring.put(record);
    }
    new.into_keys().collect()
}

fn record(id: Id, refusals: &[&Refusal], snapshot: &Snapshot, now: Timestamp) -> Record {
    let first = refusals.first();
    let reason = first.and_then(|refusal| word(&refusal.rule)).unwrap_or_default();
    let is_group = first.is_some_and(|refusal| matches!(refusal.rule, Rule::Budget { .. }));
    let action = if is_group { Action::Refuse } else { Action::Keep };
    let mut record = Record::new(id, action, Phase::Done, reason, now);
    record.nodes = refusals.len();
    record.targets = refusals
        .iter()
        .take(MOST_LISTED)
        .map(|refusal| target(refusal, snapshot))
        .collect();
    let nodes = refusals.iter().map(|refusal| &refusal.node);
    record.pod_count = nodes.map(|node| snapshot.pods_on_node(node).count()).sum();
    let forgone = refusals.iter().filter_map(|refusal| refusal.would_save);
    let forgone: model::price::Price = forgone.sum();
    record.forgone_usd_h = Some(Usd::from(forgone)).filter(|usd| usd.0 > 0);
    if let Some(first) = first {
        pool_of(first).clone_into(&mut record.pool);
        record.detail = cut(&detail(first, snapshot, now));
        record.lift = first.fix.as_ref().map(|fix| Lift {
            object: format!("{} {}", fix.kind, fix.object),
            change: cut(&fix.change),
        });
        if let Rule::Balanced(scores) = &first.rule {
            record.score = scores.first().map(score);
        }
        if is_group
            && let Some(pool) = first.node_pool.as_ref().and_then(|pool| snapshot.node_pool(pool))
            && disruption::pause_of(pool, now).is_some()
        {
            "Paused".clone_into(&mut record.reason);
        }
    }
    record
}

/// The score of a pool under the policy Balanced.
pub(super) fn score(score: &disruption::PoolScore) -> Score {
    let permille = |(part, whole): (i128, i128)| {
        let permille = if whole <= 0 { 0 } else { part * 1000 / whole };
        i64::try_from(permille).unwrap_or(i64::MAX)
    };
    Score {
        saving_permille: permille(score.saving),
        disruption_permille: permille(score.disruption),
        approved: score.is_approved,
    }
}

fn target(refusal: &Refusal, snapshot: &Snapshot) -> Target {
    let node = snapshot.node(&refusal.node);
    let label = |key: &str| {
        let value = node.and_then(|node| node.metadata.labels.get(key));
        value.map(ToString::to_string).unwrap_or_default()
    };
    Target {
        node: refusal.node.to_string(),
        claim: refusal.claim.as_ref().map(ToString::to_string).unwrap_or_default(),
        instance_type: label(api::labels::INSTANCE_TYPE),
        zone: label(api::labels::ZONE),
        capacity: label(api::labels::CAPACITY_TYPE),
        usd_h: refusal.would_save.map(Usd::from),
        comes: false,
    }
}

fn detail(refusal: &Refusal, snapshot: &Snapshot, now: Timestamp) -> String {
    match &refusal.rule {
        Rule::Budget {
            reason,
            allowed,
            disrupting,
            opens,
        } => {
            let pool = refusal.node_pool.as_ref().and_then(|pool| snapshot.node_pool(pool));
            if let Some(pause) = pool.and_then(|pool| disruption::pause_of(pool, now)) {
                let until = pause
                    .until
                    .map_or("until it is resumed".to_owned(), |at| format!("until {at}"));
                return format!("the NodePool is paused {until}: {}", pause.reason);
            }
            let opens = opens.map_or_else(String::new, |at| format!(", more from {at}"));
            format!("budget for {reason}: {allowed} at a time, {disrupting} under way{opens}")
        }
        Rule::Balanced(scores) => scores.first().map(disruption::PoolScore::message).unwrap_or_default(),
        rule => held(refusal)
            .or_else(|| refusal.event().map(|event| event.message))
            .unwrap_or_else(|| format!("{rule:?}")),
    }
}

#[cfg(test)]
mod tests {
    use disruption::Reason;
    use model::dump::{self, Source};

    use super::*;

    fn refusal(node: &str, rule: Rule) -> Refusal {
        Refusal {
            node: node.into(),
            claim: None,
            node_pool: Some("general".into()),
            method: None,
            rule,
            would_save: Some(model::price::Price::from_picos(2_000_000_000)),
            fix: None,
        }
    }

    fn budget(reason: Reason, disrupting: u32) -> Rule {
        Rule::Budget {
            reason,
            allowed: 1,
            disrupting,
            opens: None,
        }
    }

    #[test]
    fn nodes_that_one_budget_keeps_are_one_decision_whatever_else_is_under_way() {
        let one = id_of_refusal(&refusal("a", budget(Reason::Drifted, 1)));
        assert!(one.is_some());
        assert_eq!(id_of_refusal(&refusal("b", budget(Reason::Drifted, 2))), one);
        assert_ne!(id_of_refusal(&refusal("a", budget(Reason::Empty, 1))), one);
    }

    #[test]
    fn a_rule_that_keeps_two_nodes_is_two_decisions_and_one_that_passes_is_none() {
        let id = |node, rule| id_of_refusal(&refusal(node, rule));
        assert_ne!(id("a", Rule::NotCheaper), id("b", Rule::NotCheaper));
        assert_ne!(id("a", Rule::NotCheaper), id("a", Rule::OnlyWhenEmpty));
        assert_eq!(id("a", Rule::Later), None);
        assert_eq!(id("a", Rule::NotYetConsolidatable { at: None }), None);
    }

    #[test]
    fn a_pool_that_is_paused_is_told_as_that() {
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        let pool = r#"{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general", "annotations":
            {"dovetail.dev/pause": "2026-11-16T11:00:00Z", "dovetail.dev/pause-reason": "sale"}}}"#;
        let options = dump::Options {
            mode: dump::Mode::Lenient,
            taken_at: now,
        };
        let source = Source::Stream("test".into(), Box::new(std::io::Cursor::new(pool.as_bytes().to_vec())));
        let (snapshot, _) = dump::read([source], options).unwrap();
        let refusals = [
            refusal("a", budget(Reason::Empty, 0)),
            refusal("b", budget(Reason::Empty, 0)),
        ];
        let id = id_of_refusal(&refusals[0]).unwrap();
        let record = record(id, &refusals.iter().collect::<Vec<_>>(), &snapshot, now);
        assert_eq!((&*record.reason, record.word(), record.nodes), ("Paused", "refused", 2));
        assert_eq!(record.detail, "the NodePool is paused until 2026-11-16T11:00:00Z: sale");
        assert_eq!(record.forgone_usd_h, Some(Usd(4_000_000)));
    }
}
