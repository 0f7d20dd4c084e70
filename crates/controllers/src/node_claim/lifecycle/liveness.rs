//! Giving up: no machine within five minutes, no node within fifteen.

use std::time::Duration;

use api::condition::names::nodeclaim;
use jiff::{SignedDuration, Timestamp};
use model::object::{NodeClaim, condition};

use super::{Lifecycle, Pass};
use crate::{Cluster, Next, node_claim::Reason};

const LAUNCH_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);
const REGISTRATION_TIMEOUT: SignedDuration = SignedDuration::from_mins(15);

/// What is to be done about a claim that has no node yet.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    /// It has one.
    Fine,
    /// There is time left.
    Wait(Duration),
    /// There is not.
    GiveUp(Reason, SignedDuration),
}

/// The clocks start with the conditions' last transition, which for both is the claim's creation.
fn decide(claim: &NodeClaim, now: Timestamp) -> Decision {
    let holds = |kind: &str| condition::holds(&claim.status.conditions, kind);
    if holds(nodeclaim::REGISTERED) {
        return Decision::Fine;
    }
    let (kind, timeout, reason) = if holds(nodeclaim::LAUNCHED) {
        (nodeclaim::REGISTERED, REGISTRATION_TIMEOUT, Reason::RegistrationTimeout)
    } else {
        (nodeclaim::LAUNCHED, LAUNCH_TIMEOUT, Reason::LaunchTimeout)
    };
    let since = claim
        .condition(kind)
        .and_then(|condition| condition.last_transition_time)
        .unwrap_or(now);
    match Duration::try_from(timeout - now.duration_since(since)) {
        Ok(left) if !left.is_zero() => Decision::Wait(left),
        _ => Decision::GiveUp(reason, timeout),
    }
}

impl Lifecycle {
    pub(super) async fn check_liveness(&self, cluster: &Cluster, pass: &mut Pass) {
        if pass.is_over() {
            return;
        }
        match decide(&pass.draft, pass.now) {
            Decision::Fine => {}
            Decision::Wait(left) => pass.after(left),
            Decision::GiveUp(reason, timeout) => match self.record_health(cluster, &pass.draft, false).await {
                Ok(Next::Change) => {
                    self.give_up(cluster, pass, reason).await;
                    let (name, reason) = (&pass.draft.metadata.name, reason.label());
                    tracing::debug!("NodeClaim.name" = %name, ?timeout, reason, "terminating due to timeout");
                }
                Ok(next) => pass.next(next),
                Err(problem) => pass.fail(problem),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim made at 10:00 with the statuses of its conditions, `Registered` since `since`.
    fn claim(launched: &str, registered: &str, since: &str) -> NodeClaim {
        let json = format!(
            r#"{{"status":{{"conditions":[
                {{"type":"Launched","status":"{launched}","lastTransitionTime":"2026-11-16T10:00:00Z"}},
                {{"type":"Registered","status":"{registered}","lastTransitionTime":"2026-11-16T{since}:00Z"}}]}}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn a_claim_is_given_up_when_machine_or_node_take_too_long() {
        let wait = |minutes| Decision::Wait(Duration::from_mins(minutes));
        let launch = Decision::GiveUp(Reason::LaunchTimeout, LAUNCH_TIMEOUT);
        let registration = Decision::GiveUp(Reason::RegistrationTimeout, REGISTRATION_TIMEOUT);
        let cases = [
            (claim("Unknown", "Unknown", "10:00"), "10:01", wait(4)),
            (claim("Unknown", "Unknown", "10:00"), "10:05", launch),
            (claim("True", "Unknown", "10:00"), "10:05", wait(10)),
            (claim("True", "Unknown", "10:00"), "10:15", registration),
            (claim("True", "True", "10:02"), "23:00", Decision::Fine),
            // Two nodes with one provider ID: the clock starts anew when that is seen.
            (claim("True", "False", "10:10"), "10:20", wait(5)),
            (
                claim("True", "False", "10:10"),
                "10:25",
                Decision::GiveUp(Reason::RegistrationTimeout, REGISTRATION_TIMEOUT),
            ),
        ];
        for (claim, now, expected) in cases {
            let at: Timestamp = format!("2026-11-16T{now}:00Z").parse().unwrap();
            assert_eq!(decide(&claim, at), expected, "{now}");
        }
    }
}
