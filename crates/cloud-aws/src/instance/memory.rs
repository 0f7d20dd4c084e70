//! What does this process remember of launches, so that none is done twice and none is lost sight of?

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cloud::LaunchToken;
use jiff::Timestamp;
use model::object::Uid;

use super::facts::Machine;

/// How long reads of EC2 may lag behind a launch.
const LAG: Duration = Duration::from_mins(2);
/// How long a request with other contents may keep us waiting for the machine it perhaps launched.
const UNRESOLVED: Duration = Duration::from_mins(1);

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct Memory {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Claims that an earlier process may have launched for; none before it is known which those are.
    inherited: Option<BTreeSet<Uid>>,
    /// Launches that were asked for and whose answer is not known.
    open: BTreeSet<LaunchToken>,
    /// How many requests of a launch are known to have come to nothing.
    spent: BTreeMap<LaunchToken, u32>,
    /// Since when a launch is not told apart from an earlier request.
    unresolved: BTreeMap<LaunchToken, Timestamp>,
    /// Machines we launched that reads may not show yet.
    recent: BTreeMap<String, (Timestamp, Machine)>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new term begins: these claims were there before it.
    pub(super) fn inherit(&self, claims: impl Iterator<Item = Uid>) {
        *self.lock() = Inner {
            inherited: Some(claims.collect()),
            ..Inner::default()
        };
    }

    /// Whether a machine of this launch may run already.
    pub(super) fn may_run(&self, token: &LaunchToken) -> bool {
        let inner = self.lock();
        let is_inherited = inner.inherited.as_ref().is_none_or(|it| it.contains(&token.claim));
        is_inherited || inner.open.contains(token)
    }

    /// A request goes out. Returns what makes it one and the same with every repetition of it: the launch, and how many
    /// of its requests came to nothing before. EC2 answers a token it knows with the answer it gave before, so a request
    /// that is known to have failed must not be repeated under it.
    pub(super) fn ask(&self, token: &LaunchToken) -> String {
        let mut inner = self.lock();
        inner.open.insert(token.clone());
        match inner.spent.get(token) {
            None => token.to_string(),
            Some(spent) => format!("{token}-{spent}"),
        }
    }

    /// The request of a launch is known to have launched nothing.
    pub(super) fn came_to_nothing(&self, token: &LaunchToken) {
        let mut inner = self.lock();
        inner.open.remove(token);
        inner.unresolved.remove(token);
        *inner.spent.entry(token.clone()).or_default() += 1;
    }

    /// The launch gave a machine.
    pub(super) fn launched(&self, token: &LaunchToken, machine: &Machine, now: Timestamp) {
        let mut inner = self.lock();
        // Whoever asks again is to look first.
        inner.open.insert(token.clone());
        inner.spent.remove(token);
        inner.unresolved.remove(token);
        inner.recent.retain(|_, (until, _)| *until > now);
        let until = now.saturating_add(LAG).unwrap_or(Timestamp::MAX);
        inner.recent.insert(machine.id.clone(), (until, machine.clone()));
    }

    /// EC2 knows this request with other contents, and no machine of it can be seen. True once it is not waited for any
    /// longer.
    pub(super) fn give_up_waiting(&self, token: &LaunchToken, now: Timestamp) -> bool {
        let mut inner = self.lock();
        let since = *inner.unresolved.entry(token.clone()).or_insert(now);
        now.duration_since(since) >= jiff::SignedDuration::try_from(UNRESOLVED).unwrap_or_default()
    }

    /// A machine that we launched a moment ago, and that reads may not show yet.
    pub(super) fn recent(&self, id: &str, now: Timestamp) -> Option<Machine> {
        let inner = self.lock();
        let (until, machine) = inner.recent.get(id)?;
        (*until > now).then(|| machine.clone())
    }

    /// Machines for a claim that we launched a moment ago.
    pub(super) fn recent_of(&self, uid: &str, now: Timestamp) -> Vec<Machine> {
        let inner = self.lock();
        let of_claim = |machine: &Machine| {
            machine
                .tags
                .get(crate::launch::tags::NODE_CLAIM_UID)
                .is_some_and(|it| it == uid)
        };
        let found = inner
            .recent
            .values()
            .filter(|(until, machine)| *until > now && of_claim(machine));
        found.map(|(_, machine)| machine.clone()).collect()
    }

    /// A machine of a claim was ended; nothing of it is to be remembered.
    pub(super) fn ended(&self, id: &str) {
        self.lock().recent.remove(id);
    }

    /// A claim is over.
    pub(super) fn forget(&self, claim: &Uid) {
        let mut inner = self.lock();
        let is_other = |token: &LaunchToken| token.claim != *claim;
        inner.open.retain(is_other);
        inner.spent.retain(|token, _| is_other(token));
        inner.unresolved.retain(|token, _| is_other(token));
        if let Some(inherited) = &mut inner.inherited {
            inherited.remove(claim);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claim: &str, attempt: u32) -> LaunchToken {
        LaunchToken {
            claim: claim.into(),
            attempt,
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_was_there_before_this_term_may_run_and_what_came_after_does_not() {
        let memory = Memory::default();
        assert!(
            memory.may_run(&token("a", 1)),
            "before anything is known, everything may"
        );
        memory.inherit(["a".into()].into_iter());
        assert!(memory.may_run(&token("a", 1)));
        assert!(!memory.may_run(&token("b", 1)));
        memory.ask(&token("b", 1));
        assert!(memory.may_run(&token("b", 1)), "its answer may have been lost");
        memory.came_to_nothing(&token("b", 1));
        assert!(!memory.may_run(&token("b", 1)));
    }

    #[test]
    fn a_request_is_the_same_until_it_is_known_to_have_come_to_nothing() {
        let memory = Memory::default();
        assert_eq!([memory.ask(&token("a", 1)), memory.ask(&token("a", 1))], ["a-1", "a-1"]);
        memory.came_to_nothing(&token("a", 1));
        assert_eq!(memory.ask(&token("a", 1)), "a-1-1");
        assert_eq!(memory.ask(&token("a", 2)), "a-2");
    }

    #[test]
    fn a_request_that_cannot_be_told_apart_is_waited_for_a_minute() {
        let memory = Memory::default();
        assert!(!memory.give_up_waiting(&token("a", 1), at(0)));
        assert!(!memory.give_up_waiting(&token("a", 1), at(59)));
        assert!(memory.give_up_waiting(&token("a", 1), at(60)));
    }
}
