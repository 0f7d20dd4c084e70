//! What goes wrong with a call? Faults that fit it, and limits on how often it may come.

use jiff::{SignedDuration, Timestamp};

use crate::{
    allocation::{self, Wish},
    answer::Refusal,
    glob,
    knob::{Effect, Fault, Throttle},
};

/// All faults and limits that were set.
#[derive(Default)]
pub(crate) struct Faults {
    faults: Vec<Fault>,
    throttles: Vec<(Throttle, Vec<Timestamp>)>,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(crate) fn limit(&mut self, throttle: Throttle) {
        self.throttles.push((throttle, Vec::new()));
    }

    /// What happens to a call, if anything; a fault is spent by it.
    pub(crate) fn spend(&mut self, operation: &str, name: &str, wish: &Wish) -> Option<Effect> {
        let fits = |fault: &Fault| {
            glob::fits(&fault.operation, operation)
                && glob::fits(&fault.name, name)
                && wish.fits(&fault.size, &fault.zone, &fault.capacity)
        };
        let at = self
            .faults
            .iter()
            .position(|fault| fault.times != Some(0) && fits(fault))?;
        let fault = self.faults.get_mut(at)?;
        fault.times = fault.times.map(|times| times - 1);
        let effect = fault.effect.clone();
        self.faults.retain(|fault| fault.times != Some(0));
        Some(effect)
    }

    /// Counts a call; too many are refused, and told when to come back.
    pub(crate) fn throttle(&mut self, operation: &str, now: Timestamp) -> Result<(), Refusal> {
        for (rule, calls) in &mut self.throttles {
            if !glob::fits(&rule.operation, operation) {
                continue;
            }
            let window = SignedDuration::from_secs(rule.window_seconds);
            calls.retain(|at| *at + window > now);
            if calls.len() >= rule.limit {
                let first = calls.first().copied().unwrap_or(now);
                let wait = (first + window).duration_since(now).as_secs();
                let mut refusal = allocation::refusal(429, "TooManyRequests", "", "");
                refusal.retry_after = Some(u64::try_from(wait).unwrap_or(1).max(1));
                return Err(refusal);
            }
            calls.push(now);
        }
        Ok(())
    }

    /// How many more calls a limit allows, for the header that tells it.
    pub(crate) fn remaining(&self, operation: &str) -> Option<usize> {
        let limits = self
            .throttles
            .iter()
            .filter(|(rule, _)| glob::fits(&rule.operation, operation));
        limits.map(|(rule, calls)| rule.limit.saturating_sub(calls.len())).min()
    }
}
