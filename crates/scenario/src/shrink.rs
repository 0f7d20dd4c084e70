//! Makes a failure small: which of the things that went wrong are needed for it?

use crate::{Outcome, Play, Scenario, Strike, on_virtual_time, play};

/// A run that failed, with as few strikes as make it fail in the same way. `tries` bounds how often it is played.
///
/// This is ddmin: halves are left out, then quarters, until leaving out any single strike makes the failure go away.
pub fn shrink(scenario: &Scenario, how: &Play, failed: &Outcome, tries: usize) -> Vec<Strike> {
    let rule = first_word(failed);
    let fails = |strikes: &[Strike]| {
        let trial = Play {
            strikes: Some(strikes.to_vec()),
            is_written: false,
            ..how.clone()
        };
        let played = on_virtual_time(play(scenario, &trial));
        played.is_ok_and(|played| played.is_ok_and(|outcome| first_word(&outcome) == rule && rule.is_some()))
    };
    smallest(failed.strikes.clone(), tries, fails)
}

/// A failure as a scenario that fails in the same way: with exactly these strikes, and what lasted for a while.
pub fn saved(scenario: &Scenario, how: &Play, failed: &Outcome, strikes: Vec<Strike>) -> Scenario {
    Scenario {
        about: format!("Failed: {}", failed.failures.join("; ")),
        seed: Some(how.seed),
        replicas: failed.replicas,
        faults: failed.lasting.clone(),
        strikes,
        ..scenario.clone()
    }
}

/// Which rule or sentence was broken first.
fn first_word(outcome: &Outcome) -> Option<String> {
    let first = outcome.failures.first()?;
    Some(first.split([' ', ':']).next().unwrap_or_default().to_owned())
}

fn smallest<T: Clone>(mut items: Vec<T>, mut tries: usize, fails: impl Fn(&[T]) -> bool) -> Vec<T> {
    if tries == 0 || fails(&[]) {
        return Vec::new();
    }
    let mut parts = 2;
    while items.len() > 1 && tries > 0 {
        let size = items.len().div_ceil(parts);
        let mut is_smaller = false;
        for start in (0..items.len()).step_by(size) {
            let without: Vec<T> = items
                .iter()
                .enumerate()
                .filter(|(at, _)| !(start..start + size).contains(at))
                .map(|(_, item)| item.clone())
                .collect();
            if tries == 0 {
                return items;
            }
            tries -= 1;
            if fails(&without) {
                items = without;
                parts = (parts - 1).max(2);
                is_smaller = true;
                break;
            }
        }
        if !is_smaller {
            if size == 1 {
                break;
            }
            parts = (parts * 2).min(items.len());
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_what_is_needed() {
        let needed = [17, 80, 81];
        let fails = |items: &[u32]| needed.iter().all(|item| items.contains(item));
        assert_eq!(smallest((0..200).collect(), 500, fails), needed);
    }

    #[test]
    fn a_failure_that_needs_nothing_is_left_with_nothing() {
        assert_eq!(smallest(vec![1, 2, 3], 10, |_| true), [0; 0]);
    }
}
