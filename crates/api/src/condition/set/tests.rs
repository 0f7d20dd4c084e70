//! `scripts.json` holds scripts and what the condition library of sigs.k8s.io/karpenter v1.15.0 made of a NodeClaim
//! after each step, under a fake clock. The claim is created at midnight; a script begins ten seconds later.

use jiff::SignedDuration;
use serde::Deserialize;

use super::*;
use crate::{condition::names::nodeclaim, duration::Duration};

#[derive(Deserialize)]
struct Script {
    name: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(rename = "do")]
    act: Vec<String>,
    changed: Option<bool>,
    #[serde(default)]
    failed: bool,
    then: Option<Vec<String>>,
}

struct Claim {
    subject: Subject,
    conditions: Vec<Condition>,
}

impl Claim {
    fn new() -> Self {
        let created: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let now = created + SignedDuration::from_secs(10);
        Self {
            subject: Subject {
                generation: 1,
                created,
                deleting: false,
                now,
            },
            conditions: vec![],
        }
    }

    /// Carries out one step and says whether a set changed anything and whether a clear failed.
    fn act(&mut self, act: &[&str]) -> (Option<bool>, bool) {
        match act {
            ["wait", time] => self.subject.now += time.parse::<Duration>().unwrap().to_signed(),
            ["respec"] => self.subject.generation += 1,
            ["delete"] => self.subject.deleting = true,
            _ => return self.change(act),
        }
        (None, false)
    }

    fn change(&mut self, act: &[&str]) -> (Option<bool>, bool) {
        let mut set = nodeclaim::TYPES.open(&mut self.conditions, self.subject);
        let changed = match act {
            ["open"] => return (None, false),
            ["clear", condition_type] => return (None, set.clear(condition_type).is_err()),
            ["true", condition_type] => set.set_true(condition_type),
            ["true", condition_type, reason, message] => set.set_true_with_reason(condition_type, reason, message),
            ["false", condition_type, reason, message] => set.set_false(condition_type, reason, message),
            ["unknown", condition_type] => set.set_unknown(condition_type),
            ["unknown", condition_type, reason, message] => {
                set.set_unknown_with_reason(condition_type, reason, message)
            }
            other => panic!("unknown step {other:?}"),
        };
        (Some(changed), false)
    }

    fn shown(&self) -> Vec<String> {
        self.conditions
            .iter()
            .map(|it| {
                let since = it.last_transition_time.0.strftime("%H:%M:%S");
                let Condition {
                    type_,
                    status,
                    observed_generation,
                    reason,
                    message,
                    ..
                } = it;
                format!("{type_}={status} since {since} for {observed_generation}, {reason}: {message}")
            })
            .collect()
    }
}

fn replay(scripts: &str) {
    for script in serde_json::from_str::<Vec<Script>>(scripts).unwrap() {
        let mut claim = Claim::new();
        for (index, step) in script.steps.iter().enumerate() {
            let act: Vec<&str> = step.act.iter().map(String::as_str).collect();
            let place = format!("{}, step {index}: {act:?}", script.name);
            assert_eq!(claim.act(&act), (step.changed, step.failed), "{place}");
            if let Some(then) = &step.then {
                assert_eq!(claim.shown(), *then, "{place}");
            }
        }
    }
}

#[test]
fn conditions_change_as_in_the_go_module() {
    replay(include_str!("scripts.json"));
}

#[test]
fn an_absent_condition_is_unknown_and_neither_true_nor_false() {
    let conditions = [];
    assert!(!is_true(&conditions, "Launched"));
    assert!(!is_false(&conditions, "Launched"));
    assert!(is_unknown(&conditions, "Launched"));
}

#[test]
fn observing_adds_nothing() {
    let mut claim = Claim::new();
    let set = nodeclaim::TYPES.open_observed(&mut claim.conditions, claim.subject);
    assert_eq!((set.list(), set.root()), (&[][..], None));
}

#[test]
fn a_root_without_dependents_is_true_after_any_change() {
    let mut claim = Claim::new();
    let mut set = ConditionTypes::ready(&[]).open(&mut claim.conditions, claim.subject);
    set.set_false("Other", "A", "a");
    assert_eq!(
        claim.shown(),
        [
            "Other=False since 00:00:10 for 1, A: a",
            "Ready=True since 00:00:10 for 1, Ready: "
        ]
    );
}
