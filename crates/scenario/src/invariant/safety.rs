//! The rules that must hold at every instant.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use simulator::{Change, Event};

use super::{
    Violation,
    budget::allowed,
    mirror::{Claim, Mirror, Room},
};
use crate::ground::{holds, key, text};

/// I3: a pod that must not be disrupted is evicted, or a pod is deleted past its budget, before its node's time is up.
pub(super) fn protected(
    mirror: &Mirror,
    change: &Change,
    deletions: &BTreeSet<String>,
    now: Timestamp,
) -> Option<Violation> {
    let before = change.before.as_ref()?;
    let is_evicted = !holds(before, "DisruptionTarget") && holds(&change.object, "DisruptionTarget");
    let is_going = |object: &serde_json::Value| !object["metadata"]["deletionTimestamp"].is_null();
    let is_deleted = !is_going(before) && (is_going(&change.object) || change.event == Event::Deleted);
    let is_ours = is_deleted && !holds(&change.object, "DisruptionTarget") && deletions.contains(&key(&change.object));
    let says_no = text(before, "/metadata/annotations/karpenter.sh~1do-not-disrupt") == "true";
    let is_wrong = (is_evicted && says_no) || is_ours;
    let node = text(before, "/spec/nodeName");
    let is_running = text(before, "/status/phase") == "Running";
    let grace = before["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    // A pod gets its whole grace, so it may be told that much before the node's time is up.
    let due = || mirror.claim_of_node(node).and_then(|claim| claim.ends_at);
    // What was asked for in time may come late, when the node is gone already.
    let is_due =
        || !mirror.nodes.contains_key(node) || due().is_some_and(|at| now >= at - SignedDuration::from_secs(grace + 1));
    (is_wrong && is_running && !is_due()).then(|| Violation {
        rule: "I3",
        what: format!(
            "pod {} was {} although it is protected",
            key(before),
            if is_evicted { "evicted" } else { "deleted" }
        ),
    })
}

/// I4: the claims of a pool exceed a limit.
pub(super) fn within_limits(mirror: &Mirror) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, pool) in mirror.pools.iter().filter(|(_, pool)| !pool.limits.is_empty()) {
        let staying = || {
            mirror
                .claims
                .values()
                .filter(|claim| claim.pool == *name && !claim.is_deleting && claim.reason.is_none())
        };
        for (at, resource) in ["cpu", "memory"].into_iter().enumerate() {
            let used: i128 = staying()
                .filter_map(|claim| claim.capacity)
                .map(|capacity| capacity[at])
                .sum();
            if let Some(limit) = pool.limits.get(resource).filter(|limit| used > **limit) {
                found.push(Violation {
                    rule: "I4",
                    what: format!("pool {name} has {used} of {limit} nano-units of {resource}"),
                });
            }
        }
        let nodes = i128::try_from(staying().count()).unwrap_or(i128::MAX) * 1_000_000_000;
        if let Some(limit) = pool.limits.get("nodes").filter(|limit| nodes > **limit) {
            found.push(Violation {
                rule: "I4",
                what: format!(
                    "pool {name} has {} claims and may have {} nodes",
                    nodes / 1_000_000_000,
                    limit / 1_000_000_000
                ),
            });
        }
    }
    found
}

/// I6: more nodes of a pool are disrupted at a time than its budgets allow.
pub(super) fn within_budgets(mirror: &Mirror, change: &Change, now: Timestamp) -> Option<Violation> {
    const VOLUNTARY: [&str; 3] = ["Drifted", "Empty", "Underutilized"];
    let was = change
        .before
        .as_ref()
        .is_some_and(|before| holds(before, "DisruptionReason"));
    if was || !holds(&change.object, "DisruptionReason") {
        return None;
    }
    let claim = mirror.claims.get(text(&change.object, "/metadata/name"))?;
    let reason = claim.reason.as_deref().filter(|reason| VOLUNTARY.contains(reason))?;
    let pool = mirror.pools.get(&claim.pool)?;
    // The contract does not count nodes that are drained and whose machine is being removed, on neither side.
    let of_pool = || {
        mirror
            .claims
            .values()
            .filter(|one| one.pool == claim.pool && !one.is_ending)
    };
    let disrupted = of_pool().filter(|one| one.reason.as_deref() == Some(reason)).count();
    let nodes = of_pool().filter(|one| mirror.is_up(one)).count();
    let most = allowed(&pool.budgets, reason, nodes, now)?;
    (disrupted > most).then(|| Violation {
        rule: "I6",
        what: format!(
            "{disrupted} nodes of pool {} are disrupted as {reason}, its budgets allow {most} of {nodes}",
            claim.pool
        ),
    })
}

/// I7: many more nodes than pods could ever need, one each.
pub(super) fn no_runaway(mirror: &Mirror) -> Option<Violation> {
    let going = mirror
        .claims
        .values()
        .filter(|claim| claim.reason.is_some() || claim.is_deleting)
        .count();
    let most = mirror.peak() * 3 / 2 + going + 3;
    let nodes = mirror.nodes.len();
    (nodes > most).then(|| Violation {
        rule: "I7",
        what: format!("{nodes} nodes for {} pods", mirror.peak()),
    })
}

/// Four cores and eight GiB: so much more than pods ask for may be on its way.
const SPARE: [i128; 2] = [4_000_000_000, 8 * 1024 * 1024 * 1024 * 1_000_000_000];

/// I7: claims on their way were made for more than twice what pods that need a place ask for, so the same pods were
/// counted again and again.
pub(super) fn no_double_promise(mirror: &mut Mirror, change: &Change, now: Timestamp) -> Option<Violation> {
    if change.event != Event::Added {
        return None;
    }
    let own = mirror.claims.get(text(&change.object, "/metadata/name"))?.promised;
    let (promised, wanted) = (mirror.promised(), mirror.wanted(now));
    let is_over = (0..2).all(|at| promised[at] > 2 * wanted[at] + own[at] + SPARE[at]);
    is_over.then(|| Violation {
        rule: "I7",
        what: format!(
            "claims on their way were made for {promised:?} nano-units of cpu and memory, and pods ask for {wanted:?}"
        ),
    })
}

/// I8: claims are made, or pods are moved, again and again although nothing changed.
pub(super) fn no_churn(mirror: &mut Mirror, change: &Change, now: Timestamp) -> Vec<Violation> {
    let mut found = Vec::new();
    let lately = |times: &mut std::collections::VecDeque<Timestamp>, window: SignedDuration| {
        while times.front().is_some_and(|at| now.duration_since(*at) > window) {
            times.pop_front();
        }
        times.len()
    };
    if change.event == Event::Added {
        let made = lately(&mut mirror.made, SignedDuration::from_mins(10));
        let most = 3 * mirror.peak() + 3;
        if made > most {
            found.push(Violation {
                rule: "I8",
                what: format!("{made} claims within ten minutes for {} pods", mirror.peak()),
            });
        }
    }
    let sizes = mirror.sizes.clone();
    for (app, times) in &mut mirror.moves {
        let moved = lately(times, SignedDuration::from_hours(1));
        let size = sizes.get(app).copied().unwrap_or(1);
        if moved > 2 * size + 2 {
            found.push(Violation {
                rule: "I8",
                what: format!("the {size} pods of {app} were moved more than twice each within an hour"),
            });
        }
    }
    found
}

/// I9: a node that is to be replaced goes before there is room for its pods.
///
/// A disruption may count on the room there was when it began, and on every node that is up when the node goes: what
/// others took meanwhile is not its fault. A replacement that is not up yet is no room.
pub(super) fn replaced_first(mirror: &Mirror, change: &Change, now: Timestamp) -> Option<Violation> {
    let before = change.before.as_ref()?;
    let is_going = |object: &serde_json::Value| !object["metadata"]["deletionTimestamp"].is_null();
    if is_going(before) || !is_going(&change.object) {
        return None;
    }
    let name = text(before, "/metadata/name");
    let claim: &Claim = mirror.claims.get(name)?;
    let marked = mirror.marked.get(name)?;
    let reason = claim.reason.as_deref()?;
    // Others end claims too, marked or not: users who delete a pool, and age.
    if !mirror.pools.contains_key(&claim.pool) || claim.expires_at.is_some_and(|at| now >= at) {
        return None;
    }
    let rooms = mirror.rooms(marked, &claim.node);
    let mut needed = [0; 2];
    for pod in marked.pods.iter().filter_map(|uid| mirror.pods.get(uid)) {
        if pod.is_leaving || pod.node != claim.node {
            continue;
        }
        needed = [needed[0] + pod.requests[0], needed[1] + pod.requests[1]];
        if !rooms.iter().any(|room| room.takes(pod)) {
            return Some(Violation {
                rule: "I9",
                what: format!(
                    "NodeClaim {name} goes as {reason}, and no node takes its pod of {}",
                    pod.app
                ),
            });
        }
    }
    let free = rooms.iter().map(Room::free);
    let free = free.fold([0; 2], |sum, free| [sum[0] + free[0].max(0), sum[1] + free[1].max(0)]);
    let is_short = (0..2).any(|at| needed[at] > free[at]);
    is_short.then(|| Violation {
        rule: "I9",
        what: format!(
            "NodeClaim {name} goes as {reason} with pods that ask for {needed:?} nano-units of cpu and memory, and {free:?} are free elsewhere"
        ),
    })
}
