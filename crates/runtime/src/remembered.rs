//! Answers that are believed for a while, so that a cloud is not asked again and again.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;

use crate::Clock;

/// Answers by question.
pub struct Remembered<V> {
    clock: Clock,
    answers: Mutex<BTreeMap<String, (Timestamp, V)>>,
}

impl<V: Clone> Remembered<V> {
    /// None yet.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            answers: Mutex::default(),
        }
    }

    /// An answer that is still believed.
    pub fn get(&self, question: &str) -> Option<V> {
        let now = self.clock.now();
        let answers = self.lock();
        let (until, answer) = answers.get(question)?;
        (*until > now).then(|| answer.clone())
    }

    /// Believes an answer for so long.
    pub fn put(&self, question: &str, answer: V, believed: Duration) {
        let now = self.clock.now();
        let until = now.saturating_add(believed).unwrap_or(Timestamp::MAX);
        let mut answers = self.lock();
        answers.retain(|_, (until, _)| *until > now);
        answers.insert(question.to_owned(), (until, answer));
    }

    /// Forgets answers, by their questions.
    pub fn forget(&self, is_meant: impl Fn(&str) -> bool) {
        self.lock().retain(|question, _| !is_meant(question));
    }

    /// All that are still believed, with their questions.
    pub fn all(&self) -> Vec<(String, V)> {
        let now = self.clock.now();
        let answers = self.lock();
        let fresh = answers.iter().filter(|(_, (until, _))| *until > now);
        fresh
            .map(|(question, (_, answer))| (question.clone(), answer.clone()))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (Timestamp, V)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_believed_for_its_time_and_no_longer() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let known = Remembered::new(clock);
        known.put("a", 1, Duration::from_mins(1));
        known.put("b", 2, Duration::from_mins(2));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(
            [known.get("a"), known.get("b"), known.get("c")],
            [Some(1), Some(2), None]
        );
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(known.get("a"), None);
        known.forget(|question| question == "b");
        assert_eq!(known.all(), []);
    }
}
