//! When the cloud is asked again, and what holds while it does not answer.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn asked(second: i64, offers_version: u64, generation: i64) -> Asked {
    Asked {
        at: at(second),
        offers_version,
        subjects: vec![Subject {
            pool: "default".into(),
            generation,
            node_class: None,
        }],
    }
}

#[test]
fn the_cloud_is_asked_again_when_pool_or_offers_change_and_after_five_minutes() {
    let before = asked(0, 1, 1);
    let cases = [
        (asked(299, 1, 1), false),
        (asked(300, 1, 1), true),
        (asked(1, 2, 1), true),
        (asked(1, 1, 2), true),
    ];
    for (now, outdated) in cases {
        assert_eq!(is_outdated(&before, &now), outdated, "{now:?}");
    }
}

#[test]
fn types_outlive_a_passing_failure_for_a_quarter_of_an_hour_and_no_other() {
    let throttled = CloudError::Throttled {
        message: "slow down".to_owned(),
        retry_after: None,
    };
    let unready = CloudError::NodeClassNotReady("no subnets".to_owned());
    let cases = [(&throttled, 899, true), (&throttled, 900, false), (&unready, 1, false)];
    for (problem, second, kept) in cases {
        let earlier = Answer {
            types: Some((at(0), Vec::new())),
            problem: None,
        };
        let answer = take(&"default".into(), earlier, Err(problem.clone()), at(second));
        assert_eq!(
            (answer.types.is_some(), answer.problem.as_ref()),
            (kept, Some(problem)),
            "{second}"
        );
    }
}
