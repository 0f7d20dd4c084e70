//! Rules on disruption budgets, BU01 to BU06: when nodes may go, by the windows the controller itself computes.

use disruption::{BUDGET_TIME_ZONE, Cron, Reason, UNLIMITED, Window, windows};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use model::object::{Budget, NodePool};

use crate::{
    finding::Found,
    world::{Pool, World},
};

/// So far ahead a window is looked for.
const AHEAD: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How long the replacement of a node is assumed to take.
const PER_NODE: SignedDuration = SignedDuration::from_mins(15);
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Where a pool's budgets stand.
const BUDGETS: &str = "spec.disruption.budgets";

/// So many nodes a pool has, or would have to have for a share of them to be one.
fn nodes_of(world: &World, pool: &Pool) -> u32 {
    let there = world.nodes_of(pool).count();
    u32::try_from(there).unwrap_or(u32::MAX)
}

fn coming(pool: &NodePool, nodes: u32, from: Timestamp, ahead: SignedDuration) -> Option<Vec<Window>> {
    let to = from.checked_add(ahead).ok()?;
    windows(pool, nodes, from, to).ok()
}

pub(crate) fn never_open(world: &World) -> Vec<Found> {
    let found = world.pools.iter().filter_map(|pool| {
        if pool.pool.spec.disruption.budgets.is_empty() {
            return None;
        }
        let windows = coming(&pool.pool, nodes_of(world, pool).max(100), world.now, AHEAD)?;
        let is_open = |window: &Window| window.allowed.values().any(|allowed| *allowed > 0);
        (!windows.iter().any(is_open)).then(|| {
            let text = "no minute of the next 30 days allows any node to go: neither drift nor consolidation happens";
            Found::new(pool.document, BUDGETS, text)
                .fix("a window: nodes: \"0\" with a schedule and a duration that leave time, beside nodes: \"10%\"")
        })
    });
    found.collect()
}

pub(crate) fn window_small(world: &World) -> Vec<Found> {
    let found = world.pools.iter().filter_map(|pool| {
        let nodes = nodes_of(world, pool);
        if nodes < 2 || pool.pool.spec.disruption.budgets.is_empty() {
            return None;
        }
        let windows = coming(&pool.pool, nodes, world.now, AHEAD)?;
        let (ends, most) = roll(&windows, nodes, world.now);
        if most == 0 {
            return None; // BU01 says it.
        }
        let takes = match ends {
            None => "more than 30 days".to_owned(),
            Some(ends) if ends.duration_since(world.now) > WEEK => {
                let days = ends.duration_since(world.now).as_hours() / 24 + 1;
                format!("{days} days")
            }
            Some(_) => return None,
        };
        let text = format!("{nodes} nodes, {most} at a time: a full roll takes {takes}, at 15 min a node (assumed)");
        Some(Found::new(pool.document, BUDGETS, text))
    });
    found.collect()
}

/// When so many nodes have been replaced one after the other in the windows for drift, and how many go at a time at most.
fn roll(windows: &[Window], nodes: u32, from: Timestamp) -> (Option<Timestamp>, u32) {
    let mut left = nodes;
    let mut most = 0;
    let mut ends = None;
    for window in windows {
        let allowed = window
            .allowed
            .get(&Reason::Drifted)
            .copied()
            .unwrap_or(UNLIMITED)
            .min(nodes);
        most = most.max(allowed);
        if allowed == 0 || ends.is_some() {
            continue;
        }
        let mut at = window.from.max(from);
        while left > 0 && at.checked_add(PER_NODE).is_ok_and(|done| done <= window.until) {
            left = left.saturating_sub(allowed);
            at = at.checked_add(PER_NODE).unwrap_or(window.until);
        }
        if left == 0 {
            ends = Some(at);
        }
    }
    (ends, most)
}

pub(crate) fn cron_invalid(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for pool in &world.pools {
        for (at, budget) in pool.pool.spec.disruption.budgets.iter().enumerate() {
            let Some(schedule) = &budget.schedule else { continue };
            if let Err(error) = Cron::parse(schedule) {
                let text =
                    format!("schedule \"{schedule}\" is no cron line ({error}): the pool is closed for every reason");
                found.push(
                    Found::new(pool.document, format!("{BUDGETS}[{at}].schedule"), text)
                        .fix("five fields: minute hour day month weekday, such as \"0 8 * * 1-5\""),
                );
            }
        }
        let zone = world.value(pool.document)["metadata"]["annotations"][BUDGET_TIME_ZONE].as_str();
        if zone.is_some()
            && matches!(
                windows(&pool.pool, 1, world.now, world.now),
                Err(disruption::BudgetError::TimeZone(_))
            )
        {
            let text = format!(
                "unknown time zone \"{}\": the pool is closed for every reason",
                zone.unwrap_or_default()
            );
            found.push(
                Found::new(pool.document, format!("metadata.annotations.{BUDGET_TIME_ZONE}"), text)
                    .fix("a name of the IANA database, such as Europe/Vienna"),
            );
        }
    }
    // What the API server rejects of budgets is told here too: a schedule without a duration, a duration without a unit.
    let rejected = world.rejected_at(|path| path.contains(".budgets["));
    let is_told = |one: &Found| {
        found
            .iter()
            .any(|told| told.document == one.document && told.path == one.path)
    };
    let rejected: Vec<_> = rejected.into_iter().filter(|one| !is_told(one)).collect();
    found.extend(rejected);
    found
}

fn is_zero(budget: &Budget) -> bool {
    matches!(&*budget.nodes, "0" | "0%")
}

pub(crate) fn zero_wins(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for pool in &world.pools {
        let budgets = &pool.pool.spec.disruption.budgets;
        let concerns = |one: &Budget, other: &Budget| match (&one.reasons, &other.reasons) {
            (None, _) | (_, None) => true,
            (Some(one), Some(other)) => one.iter().any(|reason| other.contains(reason)),
        };
        for (at, budget) in budgets.iter().enumerate() {
            let is_always = is_zero(budget) && budget.schedule.is_none();
            let other = budgets
                .iter()
                .find(|other| other.schedule.is_some() && concerns(budget, other) && !is_zero(other));
            if let Some(other) = other.filter(|_| is_always) {
                let text = format!(
                    "nodes: \"{}\" without a schedule beside a window for {}: the strictest budget wins, so the window never opens",
                    budget.nodes, other.nodes
                );
                found.push(
                    Found::new(pool.document, format!("{BUDGETS}[{at}].nodes"), text)
                        .fix("put a schedule and a duration on the zero: the hours in which nothing may go"),
                );
            }
        }
    }
    found
}

/// Zones of regions, by how a region's name begins: for where people are awake.
const ZONES: [(&str, &str); 22] = [
    ("us-east", "America/New_York"),
    ("us-west", "America/Los_Angeles"),
    ("us-gov", "America/New_York"),
    ("ca-", "America/Toronto"),
    ("sa-", "America/Sao_Paulo"),
    ("ap-northeast", "Asia/Tokyo"),
    ("ap-southeast-1", "Asia/Singapore"),
    ("ap-southeast-2", "Australia/Sydney"),
    ("ap-south", "Asia/Kolkata"),
    ("me-", "Asia/Dubai"),
    ("eastus", "America/New_York"),
    ("centralus", "America/Chicago"),
    ("southcentralus", "America/Chicago"),
    ("westus", "America/Los_Angeles"),
    ("canada", "America/Toronto"),
    ("brazil", "America/Sao_Paulo"),
    ("japan", "Asia/Tokyo"),
    ("southeastasia", "Asia/Singapore"),
    ("eastasia", "Asia/Hong_Kong"),
    ("australia", "Australia/Sydney"),
    ("centralindia", "Asia/Kolkata"),
    ("uae", "Asia/Dubai"),
];

pub(crate) fn utc_window(world: &World) -> Vec<Found> {
    let Some(region) = world.region() else {
        return Vec::new();
    };
    let Some((_, zone)) = ZONES.iter().find(|(prefix, _)| region.starts_with(prefix)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for pool in &world.pools {
        if world.value(pool.document)["metadata"]["annotations"][BUDGET_TIME_ZONE].is_string() {
            continue;
        }
        for (at, budget) in pool.pool.spec.disruption.budgets.iter().enumerate() {
            let (Some(schedule), Some(span)) = (&budget.schedule, budget.duration) else {
                continue;
            };
            let Ok(cron) = Cron::parse(schedule) else { continue };
            let Some(start) = cron.next(world.now, &TimeZone::UTC) else {
                continue;
            };
            let Some(there) = disruption::zone_named(zone) else {
                continue;
            };
            let span = span.to_signed();
            // A quiet time that covers the working day on paper, and less than half of it where people work.
            let is_meant_for_day = is_zero(budget) && share_of_day(start, span, &TimeZone::UTC) >= 60;
            let share = share_of_day(start, span, &there);
            if is_meant_for_day && share < 50 {
                let local = start.to_zoned(there).strftime("%H:%M").to_string();
                let text = format!(
                    "schedule \"{schedule}\" is UTC: in {zone} it begins at {local} and covers {share}% of the working day"
                );
                found.push(
                    Found::new(pool.document, format!("{BUDGETS}[{at}].schedule"), text)
                        .fix(format!("metadata.annotations {BUDGET_TIME_ZONE}: {zone}")),
                );
            }
        }
    }
    found
}

/// How much of the hours from 9 to 17 a span covers in a zone, in percent.
fn share_of_day(start: Timestamp, span: SignedDuration, zone: &TimeZone) -> i64 {
    let hours = span.as_hours().min(24);
    let covered = (0..hours).filter(|hour| {
        let at = start.checked_add(SignedDuration::from_hours(*hour)).unwrap_or(start);
        (9..17).contains(&at.to_zoned(zone.clone()).hour())
    });
    i64::try_from(covered.count()).unwrap_or(0) * 100 / 8
}

pub(crate) fn default_budget(world: &World) -> Vec<Found> {
    let is_unsaid = |pool: &&Pool| world.value(pool.document)["spec"]["disruption"]["budgets"].is_null();
    let found = world.pools.iter().filter(is_unsaid).map(|pool| {
        let text = "no budgets written: 10% of the nodes may go at any hour";
        Found::new(pool.document, "spec.disruption", text).fix("budgets: [{nodes: \"10%\"}], written down, or windows")
    });
    found.collect()
}
