//! Orphans, claims without machines, and the cap.

use super::*;
use crate::Launched;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn machine(id: &str, claim: &str, uid: &str, launched: i64) -> Instance {
    Instance {
        provider_id: id.into(),
        claim: (!claim.is_empty()).then(|| claim.into()),
        claim_uid: (!uid.is_empty()).then(|| uid.into()),
        launched_at: Some(at(launched)),
        is_terminating: false,
        launched: Launched::default(),
    }
}

fn claim(name: &str, uid: &str, machine: &str, launched: i64) -> NodeClaim {
    let launched = at(launched);
    let id = if machine.is_empty() {
        String::new()
    } else {
        format!(r#""providerID":"{machine}","#)
    };
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","uid":"{uid}"}},"status":{{{id}"conditions":[
            {{"type":"Launched","status":"True","reason":"Launched","message":"","lastTransitionTime":"{launched}"}}]}}}}"#
    );
    serde_json::from_str(&json).unwrap()
}

fn ids(instances: &[Instance]) -> Vec<&str> {
    instances.iter().map(|it| it.provider_id.as_str()).collect()
}

#[test]
fn a_machine_goes_when_two_looks_after_its_grace_find_no_claim() {
    let mut sweep = Sweep::default();
    let orphan = [machine("m", "gone", "u", 0)];
    let looks = [
        (89, vec![], vec![("m".into(), Held::Young)]),
        (120, vec!["m"], vec![]),
        (121, vec!["m"], vec![]),
    ];
    for (second, delete, held) in looks {
        let found = sweep.look(&orphan, [], at(second));
        assert_eq!((ids(&found.delete), found.held), (delete, held), "{second}");
    }
    let found = Sweep::default().look(&orphan, [], at(1000));
    assert_eq!(
        (ids(&found.delete), found.held),
        (vec![], vec![("m".into(), Held::SeenOnce)])
    );
}

#[test]
fn a_machine_that_was_seen_with_its_claim_between_two_looks_stays() {
    let mut sweep = Sweep::default();
    let machines = [machine("m", "a", "u", 0)];
    let owner = claim("a", "u", "", 0);
    sweep.look(&machines, [], at(100));
    sweep.look(&machines, [&owner], at(110));
    assert_eq!(sweep.look(&machines, [], at(120)).held, [("m".into(), Held::SeenOnce)]);
}

#[test]
fn machines_are_owned_by_record_or_by_identity_and_by_name_only_if_that_is_all_there_is() {
    let cases = [
        (machine("m", "a", "u", 0), claim("a", "u", "", 0), true),
        (machine("m", "x", "x", 0), claim("a", "u", "m", 0), true),
        (machine("m", "a", "", 0), claim("a", "u", "", 0), true),
        (machine("m", "a", "older", 0), claim("a", "u", "", 0), false),
    ];
    for (machine, owner, owned) in cases {
        let mut sweep = Sweep::default();
        let machines = [machine];
        sweep.look(&machines, [&owner], at(1000));
        let found = sweep.look(&machines, [&owner], at(1010));
        assert_eq!(found.delete.is_empty(), owned, "{machines:?}");
    }
}

#[test]
fn machines_that_leave_or_name_no_claim_are_not_deleted() {
    let leaving = Instance {
        is_terminating: true,
        ..machine("leaving", "gone", "u", 0)
    };
    let machines = [leaving, machine("untagged", "", "", 0)];
    let mut sweep = Sweep::default();
    sweep.look(&machines, [], at(1000));
    let found = sweep.look(&machines, [], at(1010));
    let expected = (vec![], vec![("untagged".into(), Held::Untagged)]);
    assert_eq!((ids(&found.delete), found.held), expected);
}

#[test]
fn ten_machines_or_a_tenth_of_them_go_within_five_minutes_oldest_first() {
    for (count, limit) in [(50u16, 10), (300, 30)] {
        let machines: Vec<_> = (0..count)
            .map(|n| machine(&format!("m{n:03}"), "gone", "u", i64::from(count - n)))
            .collect();
        let mut sweep = Sweep::default();
        sweep.look(&machines, [], at(1000));
        let found = sweep.look(&machines, [], at(1010));
        assert_eq!(found.delete.len(), limit, "{count}");
        assert_eq!(ids(&found.delete)[0], format!("m{:03}", count - 1));
        assert_eq!(found.held[0].1, Held::TooMany { limit });
        // The same ones are asked for again; others wait for the window to pass.
        assert_eq!(ids(&sweep.look(&machines, [], at(1309)).delete), ids(&found.delete));
        let left: Vec<_> = machines
            .iter()
            .filter(|it| !found.delete.contains(it))
            .cloned()
            .collect();
        assert_eq!(
            sweep.look(&left, [], at(1310)).delete.len(),
            limit.min(ALWAYS.max(left.len() / 10))
        );
    }
}

#[test]
fn a_claim_is_bereft_when_two_looks_after_its_grace_miss_its_machine() {
    let mut sweep = Sweep::default();
    let (lost, unlaunched) = (claim("lost", "u", "m", 0), claim("new", "v", "", 0));
    let bereft = [89, 90, 100].map(|second| sweep.look(&[], [&lost, &unlaunched], at(second)).bereft);
    assert_eq!(bereft, [vec![], vec![], vec!["lost".into()]]);
    let back = sweep.look(&[machine("m", "lost", "u", 0)], [&lost], at(110));
    assert_eq!(
        (back.bereft, sweep.look(&[], [&lost], at(120)).bereft),
        (vec![], vec![])
    );
}
