//! What came of a look at a class, and when to look again.

use std::time::Duration;

/// What a step says about when to look again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// When something changes.
    Settled,
    /// After a while.
    After(Duration),
    /// Soon: something is not there yet that will be.
    Soon,
    /// It failed; soon, and later each time.
    Failed(String),
    /// It failed and will until somebody changes something.
    Hopeless(String),
}

/// What came of a look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// When to look again.
    pub(crate) after: Option<Duration>,
    /// Whether to look again soon, and later each time.
    pub(crate) is_to_be_retried: bool,
    /// What went wrong.
    pub(crate) errors: Vec<String>,
}

impl Outcome {
    pub(crate) fn of(steps: Vec<Step>) -> Self {
        let mut outcome = Self::default();
        for step in steps {
            match step {
                Step::Settled => {}
                Step::After(time) => outcome.after = Some(outcome.after.map_or(time, |known| known.min(time))),
                Step::Soon => outcome.is_to_be_retried = true,
                Step::Failed(error) => {
                    outcome.is_to_be_retried = true;
                    outcome.errors.push(error);
                }
                Step::Hopeless(error) => outcome.errors.push(error),
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_look_is_the_earliest_that_a_step_asks_for() {
        let minute = Duration::from_mins(1);
        let steps = vec![Step::Settled, Step::After(5 * minute), Step::After(minute)];
        assert_eq!(Outcome::of(steps).after, Some(minute));
        assert!(!Outcome::of(vec![Step::Hopeless("no".to_owned())]).is_to_be_retried);
        assert!(Outcome::of(vec![Step::Failed("no".to_owned())]).is_to_be_retried);
    }
}
