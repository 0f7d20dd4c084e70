//! The rules that keep nodes, in plain words: what each is called, who made it, and when it ends by itself.

use disruption::{Fix, Refusal, Rule};
use jiff::Timestamp;
use model::{eviction::Protection, words::counted};
use serde::Serialize;

/// Why a node stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stay {
    /// What the rule is called.
    pub rule: &'static str,
    /// What kind of reason it is.
    pub class: Class,
    /// In a word: `pod`, `pdb`, `policy`, `budget`, …
    pub word: &'static str,
    /// What made it: `pod data/pg-0`, `NodePool data`; empty for what nobody made.
    pub by: String,
    /// In a sentence.
    pub text: String,
    /// When it ends by itself, if that is known.
    pub lifts_at: Option<Timestamp>,
    /// The smallest change that lifts it.
    pub fix: Option<StayFix>,
}

/// What kind of reason a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Class {
    /// Somebody asked for it, and can take it back.
    Held,
    /// Time lifts it.
    Waits,
    /// Removing the node would not be worth it, or would leave pods without a place.
    Worth,
    /// The node is not in a state to be removed, or goes already.
    State,
}

/// The smallest change that lifts a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StayFix {
    /// What to change: `NodePool data`.
    pub object: String,
    /// How, in the imperative.
    pub change: String,
    /// Lines of YAML, each with `+`, `-` or a blank in front; empty where a sentence says more.
    pub patch: Vec<String>,
}

impl StayFix {
    /// What the engine says of it, with a patch where it is one field.
    pub(crate) fn of(fix: &Fix, rule: &Rule) -> Self {
        let name = fix.object.to_string();
        let object = format!("{} {}", fix.kind, name.trim_start_matches('/'));
        Self {
            object,
            change: fix.change.clone(),
            patch: patch(rule),
        }
    }
}

fn patch(rule: &Rule) -> Vec<String> {
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    match rule {
        Rule::DoNotDisrupt | Rule::ProtectedPod { .. } => lines(&["- karpenter.sh/do-not-disrupt: \"true\""]),
        Rule::OnlyWhenEmpty => lines(&[
            "  spec:",
            "    disruption:",
            "-     consolidationPolicy: WhenEmpty",
            "+     consolidationPolicy: WhenEmptyOrUnderutilized",
        ]),
        Rule::ConsolidationDisabled => lines(&[
            "  spec:",
            "    disruption:",
            "-     consolidateAfter: Never",
            "+     consolidateAfter: 5m",
        ]),
        _ => Vec::new(),
    }
}

impl Stay {
    /// A refusal of the engine in plain words.
    pub fn of(refusal: &Refusal) -> Self {
        let pool = refusal.node_pool.as_ref().map(ToString::to_string).unwrap_or_default();
        let fix = refusal.fix.as_ref().map(|fix| StayFix::of(fix, &refusal.rule));
        Self {
            fix,
            ..said(&refusal.rule, &pool)
        }
    }
}

fn stay(rule: &'static str, class: Class, word: &'static str, by: String, text: String) -> Stay {
    Stay {
        rule,
        class,
        word,
        by,
        text,
        lifts_at: None,
        fix: None,
    }
}

/// A rule in plain words.
pub(crate) fn said(rule: &Rule, pool: &str) -> Stay {
    use Class::{Held, State, Waits, Worth};
    let none = String::new;
    let by_pool = || format!("NodePool {pool}");
    match rule {
        Rule::InQueue => stay("InQueue", State, "moving", none(), "a move of it is under way".into()),
        Rule::RepairNeedsNodePool => stay(
            "RepairNeedsNodePool",
            State,
            "repair",
            none(),
            "a claim of no NodePool has no template for a replacement".into(),
        ),
        Rule::Unmanaged => stay("Unmanaged", State, "foreign", none(), "it has no NodeClaim".into()),
        Rule::NoNode => stay(
            "NoNode",
            State,
            "launching",
            none(),
            "its node has not joined yet".into(),
        ),
        Rule::Rebooting => stay("Rebooting", State, "reboot", none(), "it reboots".into()),
        Rule::Leaving => stay("Leaving", State, "leaving", none(), "it goes already".into()),
        Rule::NotRegistered => stay(
            "NotRegistered",
            State,
            "starting",
            none(),
            "it has not registered yet".into(),
        ),
        Rule::NotInitialized => stay(
            "NotInitialized",
            State,
            "starting",
            none(),
            "not all of it is up yet".into(),
        ),
        Rule::Nominated => stay(
            "Nominated",
            Waits,
            "nominated",
            none(),
            "pods that wait are to go there".into(),
        ),
        Rule::DoNotDisrupt => stay(
            "DoNotDisrupt",
            Held,
            "node",
            "node".into(),
            "the node has karpenter.sh/do-not-disrupt: \"true\", which never ends".into(),
        ),
        Rule::NoNodePoolLabel => stay("NoNodePoolLabel", State, "label", none(), "it names no NodePool".into()),
        Rule::NodePoolNotFound(name) => stay(
            "NodePoolNotFound",
            State,
            "pool",
            none(),
            format!("NodePool {name} is not there, or offers no instance type"),
        ),
        Rule::ProtectedPod { pod, protection } => protected(&pod.to_string(), protection),
        Rule::PodBudgets { pod, budgets } => pod_budgets(&pod.to_string(), budgets),
        Rule::StaticPool => stay(
            "StaticPool",
            Held,
            "policy",
            by_pool(),
            format!("NodePool {pool} has a fixed number of nodes"),
        ),
        Rule::UnknownInstanceType(name) => stay(
            "UnknownInstanceType",
            State,
            "price",
            none(),
            format!("nobody offers {name} now, so its price is unknown"),
        ),
        Rule::MissingLabel(label) => stay(
            "MissingLabel",
            State,
            "label",
            none(),
            format!("it has no label {label}, so its price is unknown"),
        ),
        Rule::ConsolidationDisabled => stay(
            "ConsolidationDisabled",
            Held,
            "policy",
            by_pool(),
            format!("NodePool {pool} has consolidateAfter: Never"),
        ),
        Rule::BufferPods => stay(
            "BufferPods",
            Held,
            "buffer",
            none(),
            "it has room that a CapacityBuffer keeps".into(),
        ),
        Rule::OnlyWhenEmpty => stay(
            "OnlyWhenEmpty",
            Held,
            "policy",
            by_pool(),
            format!("NodePool {pool} has consolidationPolicy: WhenEmpty, and this node is not empty"),
        ),
        Rule::NotYetConsolidatable { at } => Stay {
            lifts_at: *at,
            ..stay(
                "NotYetConsolidatable",
                Waits,
                "quiet",
                by_pool(),
                match at {
                    Some(_) => format!("pods came or went on it within consolidateAfter of NodePool {pool}"),
                    None => "its claim does not say yet that it may be consolidated".to_owned(),
                },
            )
        },
        Rule::Budget {
            reason,
            allowed,
            disrupting,
            opens,
        } => Stay {
            lifts_at: *opens,
            ..stay(
                "Budget",
                if opens.is_some() { Waits } else { Held },
                "budget",
                by_pool(),
                budget(pool, *reason, *allowed, *disrupting),
            )
        },
        Rule::NoNodePools => stay(
            "NoNodePools",
            State,
            "pool",
            none(),
            "there is no NodePool to launch a replacement from".into(),
        ),
        Rule::Unschedulable(pods) => {
            let first = pods.named.first().map(|(pod, _)| format!(", first {pod}"));
            let text = format!(
                "{} would have no place{}",
                counted(pods.count, "pod"),
                first.unwrap_or_default()
            );
            stay("Unschedulable", Worth, "room", none(), text)
        }
        Rule::TooManyReplacements(count) => stay(
            "TooManyReplacements",
            Worth,
            "room",
            none(),
            format!("its pods would need {count} new nodes"),
        ),
        Rule::MinValues(unmet) => stay(
            "MinValues",
            Held,
            "minValues",
            by_pool(),
            format!("too few cheaper types for minValues: {unmet}"),
        ),
        Rule::NotCheaper => stay(
            "NotCheaper",
            Worth,
            "price",
            none(),
            "its pods fit nowhere else, and nothing cheaper holds them".into(),
        ),
        Rule::SpotToSpotDisabled => stay(
            "SpotToSpotDisabled",
            Held,
            "setting",
            "setting SpotToSpotConsolidation".into(),
            "a spot node is not replaced by a cheaper one: SpotToSpotConsolidation is off".into(),
        ),
        Rule::SpotFlexibility(got) => stay(
            "SpotFlexibility",
            Worth,
            "types",
            by_pool(),
            format!("only {got} types are cheaper, and a spot node is replaced when 15 are"),
        ),
        Rule::Balanced(_) => stay(
            "Balanced",
            Worth,
            "balance",
            by_pool(),
            format!(
                "consolidationPolicy: Balanced of NodePool {pool} finds that it saves too little for what it disturbs"
            ),
        ),
        Rule::DoNotRepair => stay(
            "DoNotRepair",
            Held,
            "node",
            "node".into(),
            "the node has karpenter.sh/do-not-repair: \"true\"".into(),
        ),
        Rule::UnboundedDrain => stay(
            "UnboundedDrain",
            Held,
            "drain",
            by_pool(),
            "pods block its drain, and no terminationGracePeriod ends it".into(),
        ),
        Rule::BreakerTripped => stay(
            "BreakerTripped",
            State,
            "breaker",
            by_pool(),
            format!("more than 20% of the nodes of NodePool {pool} are unhealthy at once"),
        ),
        Rule::StaticAtLimit => stay(
            "StaticAtLimit",
            Held,
            "limit",
            by_pool(),
            format!("static NodePool {pool} has as many nodes as it may have"),
        ),
        Rule::ReservationsFull => stay(
            "ReservationsFull",
            State,
            "reserved",
            by_pool(),
            format!("the capacity reservations of NodePool {pool} are full"),
        ),
        Rule::ScaleDownFirst => stay(
            "ScaleDownFirst",
            State,
            "scale",
            by_pool(),
            format!("static NodePool {pool} has more nodes than it should; that is settled first"),
        ),
        Rule::Settled => stay(
            "Settled",
            State,
            "settled",
            none(),
            "nothing changed since it was last looked at".into(),
        ),
        Rule::NotLookedAt => stay(
            "NotLookedAt",
            State,
            "later",
            none(),
            "this round did not get to it; the next begins here".into(),
        ),
        Rule::Later => stay(
            "Later",
            State,
            "later",
            none(),
            "another move of this round comes first".into(),
        ),
        Rule::Paused { reason, until } => Stay {
            lifts_at: *until,
            ..stay(
                "Paused",
                Held,
                "pause",
                by_pool(),
                format!("people paused it: {reason:?}"),
            )
        },
        Rule::MinimumSaving { least, .. } => stay(
            "MinimumSaving",
            Held,
            "minimum",
            by_pool(),
            format!(
                "it saves less than the ${} an hour that NodePool {pool} asks for",
                least.to_decimal()
            ),
        ),
        Rule::LoopGuard => stay(
            "LoopGuard",
            Held,
            "loop",
            by_pool(),
            format!("NodePool {pool} went from one kind of node to another and back for the same pods"),
        ),
        Rule::FailedReplacements(times) => stay(
            "FailedReplacements",
            Held,
            "failures",
            by_pool(),
            format!(
                "{} of NodePool {pool} in a row did not come up",
                counted(count(*times), "replacement")
            ),
        ),
        Rule::NeededSoon(pods) => stay(
            "NeededSoon",
            Waits,
            "expected",
            none(),
            format!("{} that are known to come would need it", counted(*pods, "pod")),
        ),
        Rule::MovingCost => stay(
            "MovingCost",
            Worth,
            "price",
            none(),
            "moving costs more than it saves before the node would end anyway".into(),
        ),
    }
}

fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn budget(pool: &str, reason: disruption::Reason, allowed: u32, disrupting: u32) -> String {
    let nodes = counted(count(allowed), "node");
    if allowed == 0 {
        return format!("NodePool {pool} allows no {reason} node to go now");
    }
    format!("NodePool {pool} allows {nodes} at a time for {reason}, and {disrupting} already count")
}

/// A pod that may not be disturbed.
pub(crate) fn protected(pod: &str, protection: &Protection) -> Stay {
    let (end, lifts_at) = match protection {
        Protection::Until(until) => ("for a while".to_owned(), Some(*until)),
        Protection::FromStart => ("for a while that begins when it starts".to_owned(), None),
        _ => (": \"true\", which never ends".to_owned(), None),
    };
    let gap = if end.starts_with(':') { "" } else { " " };
    Stay {
        lifts_at,
        ..stay(
            "ProtectedPod",
            if lifts_at.is_some() { Class::Waits } else { Class::Held },
            "pod",
            format!("pod {pod}"),
            format!("{pod} has karpenter.sh/do-not-disrupt{gap}{end}"),
        )
    }
}

fn pod_budgets(pod: &str, budgets: &[model::object::ObjectKey]) -> Stay {
    let names: Vec<String> = budgets.iter().map(ToString::to_string).collect();
    let text = match names.as_slice() {
        [only] => format!("PDB {only} allows no eviction of {pod} now"),
        several => format!(
            "{pod} is in several PDBs ({}), so it is never evicted",
            several.join(", ")
        ),
    };
    let by = format!("pdb {}", names.first().map(String::as_str).unwrap_or_default());
    stay("PodBudgets", Class::Held, "pdb", by, text)
}
