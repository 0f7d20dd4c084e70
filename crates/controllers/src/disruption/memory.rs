//! What is under way, and what is remembered from one round to the next. All of it is in memory: a restart forgets it, and
//! the first round then undoes the marks of commands that nobody carries on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use disruption::{Command, Constrained, Method, Pass, PastMove, Rotation, Warm};
use jiff::{SignedDuration, Timestamp};
use ledger::Id;
use model::object::{NodeClaimName, NodePoolName, Pod, ProviderId, Text, Uid};

use super::repair::RebootHistory;

/// How long a move is remembered by the loop breaker.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(1);
/// After this long without another failure a pool whose replacements did not come up is tried once more.
const FORGIVEN: SignedDuration = SignedDuration::from_mins(30);
/// A command waits for its replacements for at least this long,
const LEAST_PATIENCE: SignedDuration = SignedDuration::from_mins(10);
/// at most this long,
const MOST_PATIENCE: SignedDuration = SignedDuration::from_hours(1);
/// and in between so long for each machine under way: many of them keep a cloud busy.
const PATIENCE: SignedDuration = SignedDuration::from_millis(80);

/// What is remembered.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    inner: Mutex<Inner>,
    /// What decisions take over from each other.
    warm: Arc<Warm>,
}

#[derive(Debug, Default)]
struct Inner {
    under_way: BTreeMap<Text, UnderWay>,
    waiting: Vec<Waiting>,
    settled_at: BTreeMap<Method, Timestamp>,
    constrained: BTreeMap<Method, Constrained>,
    rotation: Rotation,
    past_moves: Vec<PastMove>,
    failures: BTreeMap<NodePoolName, Failures>,
    reboots: RebootHistory,
    expected: Vec<Arc<Pod>>,
    expected_at: Option<Timestamp>,
}

/// A command that is being carried out.
#[derive(Debug, Clone)]
pub(super) struct UnderWay {
    pub(super) id: Text,
    /// By what its record is known.
    pub(super) decision: Id,
    pub(super) command: Command,
    pub(super) began: Timestamp,
    /// The claims that are to go, by name; a claim of the same name with another identity is somebody else.
    pub(super) leaving: BTreeMap<NodeClaimName, Uid>,
    /// Those of them whose deletion was accepted.
    pub(super) deleted: BTreeSet<NodeClaimName>,
    /// The claims that come first.
    pub(super) awaited: Vec<Awaited>,
}

/// A claim that comes first.
#[derive(Debug, Clone)]
pub(super) struct Awaited {
    pub(super) name: NodeClaimName,
    pub(super) pool: NodePoolName,
    /// It came up. That it may fail later does not matter: its machine is there.
    pub(super) is_initialized: bool,
}

/// Commands that are looked at once more when their time has come.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) method: Method,
    pub(super) commands: Vec<Command>,
    pub(super) due: Timestamp,
}

/// Replacements of a pool that did not come up since one last did.
#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Timestamp,
}

impl Inner {
    /// Counts a failure of each of these pools.
    fn fail(&mut self, pools: BTreeSet<NodePoolName>, now: Timestamp) {
        for pool in pools {
            let known = self.failures.get(&pool).map_or(0, |known| known.count);
            let failures = Failures {
                count: known + 1,
                last: now,
            };
            self.failures.insert(pool, failures);
        }
    }
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What decisions take over from each other.
    pub(super) fn warm(&self) -> Arc<Warm> {
        Arc::clone(&self.warm)
    }

    /// The machines of commands under way.
    pub(super) fn queued(&self) -> BTreeSet<ProviderId> {
        let inner = self.lock();
        let commands = inner.under_way.values();
        let candidates = commands.flat_map(|under_way| &under_way.command.candidates);
        candidates.map(|candidate| candidate.provider_id.clone()).collect()
    }

    /// The claims of commands under way, of those that are being given up as well: their nodes still show it.
    pub(super) fn going(&self) -> Vec<NodeClaimName> {
        let inner = self.lock();
        let commands = inner.under_way.values();
        let candidates = commands.flat_map(|under_way| &under_way.command.candidates);
        candidates.map(|candidate| candidate.claim.clone()).collect()
    }

    /// Whether a command under way takes one of these nodes.
    pub(super) fn takes_any_of(&self, command: &Command) -> bool {
        let queued = self.queued();
        let mut candidates = command.candidates.iter();
        candidates.any(|candidate| queued.contains(&candidate.provider_id))
    }

    pub(super) fn insert(&self, under_way: UnderWay) {
        self.lock().under_way.insert(under_way.id.clone(), under_way);
    }

    pub(super) fn get(&self, id: &str) -> Option<UnderWay> {
        self.lock().under_way.get(id).cloned()
    }

    /// Whether a decision is being carried out.
    pub(super) fn carries(&self, decision: Id) -> bool {
        let inner = self.lock();
        inner.under_way.values().any(|under_way| under_way.decision == decision)
    }

    /// Notes how far a command has come.
    pub(super) fn update(&self, under_way: UnderWay) {
        if let Some(known) = self.lock().under_way.get_mut(&under_way.id) {
            *known = under_way;
        }
    }

    /// Which commands a claim has to do with.
    pub(super) fn concerned_by(&self, claim: &str) -> Vec<Text> {
        let inner = self.lock();
        let is_concerned = |under_way: &&UnderWay| {
            let is_awaited = under_way.awaited.iter().any(|awaited| awaited.name.as_str() == claim);
            is_awaited || under_way.leaving.keys().any(|name| name.as_str() == claim)
        };
        let concerned = inner.under_way.values().filter(is_concerned);
        concerned.map(|under_way| under_way.id.clone()).collect()
    }

    /// The pods that are known to come.
    pub(super) fn expected(&self) -> Vec<Arc<Pod>> {
        self.lock().expected.clone()
    }

    pub(super) fn expect(&self, pods: Vec<Arc<Pod>>) {
        self.lock().expected = pods;
    }

    /// Whether it is time to ask again which pods are known to come; if so, that was now.
    pub(super) fn expects_again(&self, now: Timestamp, every: SignedDuration) -> bool {
        let mut inner = self.lock();
        let is_time = inner.expected_at.is_none_or(|at| now.duration_since(at) >= every);
        if is_time {
            inner.expected_at = Some(now);
        }
        is_time
    }

    /// How long a command may wait for its replacements.
    pub(super) fn patience(&self) -> SignedDuration {
        patience(self.queued().len())
    }

    /// A command was carried out.
    pub(super) fn succeed(&self, id: &str, moves: Vec<PastMove>, now: Timestamp) {
        let mut inner = self.lock();
        if let Some(done) = inner.under_way.remove(id) {
            for awaited in &done.awaited {
                inner.failures.remove(&awaited.pool);
            }
        }
        inner.past_moves.retain(|past| now.duration_since(past.at) < REMEMBERED);
        inner.past_moves.extend(moves);
    }

    /// A command was given up; returns how many of its replacements did not come up.
    pub(super) fn fail(&self, id: &str, now: Timestamp) -> usize {
        let mut inner = self.lock();
        let Some(failed) = inner.under_way.remove(id) else {
            return 0;
        };
        let lost: Vec<_> = failed
            .awaited
            .iter()
            .filter(|awaited| !awaited.is_initialized)
            .collect();
        inner.fail(lost.iter().map(|awaited| awaited.pool.clone()).collect(), now);
        lost.len()
    }

    /// Replacements could not even be asked for.
    pub(super) fn fail_to_start(&self, command: &Command, now: Timestamp) {
        let replacements = command.replacements.iter();
        let pools = replacements.map(|replacement| replacement.node_pool().clone());
        self.lock().fail(pools.collect(), now);
    }

    /// A pool was changed, or one of its machines came up: its replacements may be worth another try.
    pub(super) fn forgive(&self, pool: &NodePoolName) {
        self.lock().failures.remove(pool);
    }

    /// How often replacements failed in a row, by pool; what is long ago does not count.
    pub(super) fn failures(&self, now: Timestamp) -> BTreeMap<NodePoolName, u32> {
        let inner = self.lock();
        let recent = inner
            .failures
            .iter()
            .filter(|(_, failures)| now.duration_since(failures.last) < FORGIVEN);
        recent.map(|(pool, failures)| (pool.clone(), failures.count)).collect()
    }

    pub(super) fn past_moves(&self) -> Vec<PastMove> {
        self.lock().past_moves.clone()
    }

    /// Commands that wait, in the order they came.
    pub(super) fn waiting(&self) -> Vec<Waiting> {
        self.lock().waiting.clone()
    }

    /// When the first of them is due.
    pub(super) fn waits_until(&self) -> Option<Timestamp> {
        self.lock().waiting.iter().map(|waiting| waiting.due).min()
    }

    pub(super) fn wait(&self, waiting: Waiting) {
        self.lock().waiting.push(waiting);
    }

    /// The first commands whose time has come.
    pub(super) fn take_due(&self, now: Timestamp) -> Option<Waiting> {
        let mut inner = self.lock();
        let at = inner.waiting.iter().position(|waiting| waiting.due <= now)?;
        Some(inner.waiting.remove(at))
    }

    /// Notes which methods found nothing more to do.
    pub(super) fn settle(&self, passes: &[Pass]) {
        let mut inner = self.lock();
        for pass in passes {
            if let Some(at) = pass.settled {
                inner.settled_at.insert(pass.method, at);
            }
            if let Some(within) = &pass.constrained {
                inner.constrained.insert(pass.method, within.clone());
            }
        }
    }

    pub(super) fn constrained(&self) -> BTreeMap<Method, Constrained> {
        self.lock().constrained.clone()
    }

    pub(super) fn settled_at(&self) -> BTreeMap<Method, Timestamp> {
        self.lock().settled_at.clone()
    }

    pub(super) fn rotate(&self, rotation: Rotation) {
        self.lock().rotation = rotation;
    }

    pub(super) fn rotation(&self) -> Rotation {
        self.lock().rotation.clone()
    }

    /// Notes a reboot that was asked for.
    pub(super) fn rebooted(&self, claim: &Uid, now: Timestamp) {
        self.lock().reboots.record(claim, now);
    }

    /// Whether a claim was rebooted so often that another reboot will not help.
    pub(super) fn is_reboot_futile(&self, claim: &Uid, now: Timestamp) -> bool {
        self.lock().reboots.is_futile(claim, now)
    }
}

/// How long a command may wait while so many machines are under way.
fn patience(machines: usize) -> SignedDuration {
    let machines = i32::try_from(machines).unwrap_or(i32::MAX);
    (PATIENCE * machines).clamp(LEAST_PATIENCE, MOST_PATIENCE)
}

#[cfg(test)]
mod tests {
    use model::plan::Plan;

    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).unwrap()
    }

    fn under_way(id: &str, is_initialized: bool) -> UnderWay {
        let command = Command {
            method: Method::Drift,
            candidates: Vec::new(),
            replacements: Vec::new(),
            plan: Plan::default(),
            terminate_first: None,
            is_reboot: false,
            saving: disruption::Saving::default(),
            scores: Vec::new(),
        };
        UnderWay {
            id: id.into(),
            decision: Id::of("replace", [id]),
            command,
            began: at(0),
            leaving: [("old".into(), "u".into())].into(),
            deleted: BTreeSet::new(),
            awaited: vec![Awaited {
                name: "new".into(),
                pool: "p".into(),
                is_initialized,
            }],
        }
    }

    #[test]
    fn replacements_that_do_not_come_up_are_counted_until_one_does_or_time_passes() {
        let memory = Memory::default();
        for (id, minute) in [("a", 1), ("b", 2)] {
            memory.insert(under_way(id, false));
            assert_eq!(memory.fail(id, at(minute)), 1);
        }
        assert_eq!(memory.failures(at(3)), [("p".into(), 2)].into());
        assert_eq!(memory.failures(at(32)), BTreeMap::new());
        memory.insert(under_way("c", false));
        memory.fail("c", at(40));
        assert_eq!(memory.failures(at(41)), [("p".into(), 3)].into());
        memory.insert(under_way("d", true));
        memory.succeed("d", Vec::new(), at(42));
        assert_eq!(memory.failures(at(43)), BTreeMap::new());
    }

    #[test]
    fn a_command_may_wait_longer_the_more_machines_are_under_way() {
        let cases = [
            (0, 600),
            (100, 600),
            (4000, 600),
            (10_000, 800),
            (40_000, 3200),
            (80_000, 3600),
            (100_000, 3600),
        ];
        for (machines, seconds) in cases {
            assert_eq!(patience(machines).as_secs(), seconds, "{machines}");
        }
    }

    #[test]
    fn a_command_is_found_by_the_claims_it_waits_for_and_those_it_takes() {
        let memory = Memory::default();
        memory.insert(under_way("a", false));
        for (claim, expected) in [("old", vec!["a"]), ("new", vec!["a"]), ("other", vec![])] {
            let found = memory.concerned_by(claim);
            assert_eq!(found.iter().map(|id| &**id).collect::<Vec<_>>(), expected, "{claim}");
        }
    }

    #[test]
    fn what_waits_is_taken_once_when_its_time_has_come() {
        let memory = Memory::default();
        let waiting = Waiting {
            method: Method::Emptiness,
            commands: Vec::new(),
            due: at(5),
        };
        memory.wait(waiting);
        assert!(memory.take_due(at(4)).is_none());
        assert_eq!(memory.waits_until(), Some(at(5)));
        assert!(memory.take_due(at(5)).is_some());
        assert!(memory.take_due(at(5)).is_none());
    }
}
