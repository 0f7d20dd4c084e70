//! Whether nodes of a pool come to register: the last four outcomes of each pool, in memory.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use model::object::Uid;

/// How many outcomes count.
const OUTCOMES: usize = 4;
/// So many failures among them make a pool unhealthy.
const FAILURES: usize = 2;

/// What the outcomes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// There are none.
    Unknown,
    /// Fewer than half of four failed.
    Healthy,
    /// Half of four or more failed.
    Unhealthy,
}

/// The outcomes of every pool, by its identity.
#[derive(Debug, Default)]
pub struct RegistrationHealth(Mutex<BTreeMap<Uid, VecDeque<bool>>>);

impl RegistrationHealth {
    /// What a pool's outcomes say.
    pub fn of(&self, pool: &Uid) -> Health {
        self.lock().get(pool).map_or(Health::Unknown, judged)
    }

    /// What they would say with one more.
    pub fn with(&self, pool: &Uid, outcome: bool) -> Health {
        let mut outcomes = self.lock().get(pool).cloned().unwrap_or_default();
        push(&mut outcomes, outcome);
        judged(&outcomes)
    }

    /// Counts an outcome; the oldest of more than four is forgotten.
    pub fn record(&self, pool: &Uid, outcome: bool) {
        push(self.lock().entry(pool.clone()).or_default(), outcome);
    }

    /// Starts afresh from a health: the fewest outcomes that say so.
    pub fn assume(&self, pool: &Uid, health: Health) {
        let outcomes = match health {
            Health::Unknown => VecDeque::new(),
            Health::Healthy => VecDeque::from([true]),
            Health::Unhealthy => VecDeque::from([false; FAILURES]),
        };
        self.lock().insert(pool.clone(), outcomes);
    }

    /// Forgets a pool that is gone.
    pub fn forget(&self, pool: &Uid) {
        self.lock().remove(pool);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uid, VecDeque<bool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push(outcomes: &mut VecDeque<bool>, outcome: bool) {
    if outcomes.len() == OUTCOMES {
        outcomes.pop_front();
    }
    outcomes.push_back(outcome);
}

fn judged(outcomes: &VecDeque<bool>) -> Health {
    if outcomes.is_empty() {
        return Health::Unknown;
    }
    let failures = outcomes.iter().filter(|outcome| !**outcome).count();
    if failures >= FAILURES {
        Health::Unhealthy
    } else {
        Health::Healthy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_four_outcomes_count() {
        let pool = Uid::from("p");
        let cases: &[(&[bool], Health)] = &[
            (&[], Health::Unknown),
            (&[true], Health::Healthy),
            (&[false], Health::Healthy),
            (&[false, false], Health::Unhealthy),
            (&[true, false, false], Health::Unhealthy),
            (&[false, false, true, true], Health::Unhealthy),
            (&[false, false, true, true, true], Health::Healthy),
        ];
        for (outcomes, expected) in cases {
            let health = RegistrationHealth::default();
            outcomes.iter().for_each(|outcome| health.record(&pool, *outcome));
            assert_eq!(health.of(&pool), *expected, "{outcomes:?}");
        }
    }

    #[test]
    fn a_health_can_be_assumed_and_looked_ahead_from() {
        let (pool, health) = (Uid::from("p"), RegistrationHealth::default());
        health.assume(&pool, Health::Unhealthy);
        assert_eq!(
            (health.of(&pool), health.with(&pool, true)),
            (Health::Unhealthy, Health::Unhealthy)
        );
        health.assume(&pool, Health::Healthy);
        assert_eq!(
            (health.of(&pool), health.with(&pool, false)),
            (Health::Healthy, Health::Healthy)
        );
    }
}
