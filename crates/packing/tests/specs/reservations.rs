//! Is a slot of a reservation given out once?

use model::{
    reservation::Reservations,
    vocabulary::{ValueId, Vocabulary},
};

const HOSTS: [&str; 3] = ["host-1", "host-2", "host-3"];

/// Two reservations with this many slots.
fn with_slots(first: u32, second: u32) -> (Reservations<&'static str>, [ValueId; 2]) {
    let mut vocabulary = Vocabulary::new();
    let key = vocabulary.intern_key("reservation-id");
    let ids = ["r-1", "r-2"].map(|id| vocabulary.intern_value(key, id));
    let mut reservations = Reservations::default();
    reservations.learn(ids[0], first);
    reservations.learn(ids[1], second);
    (reservations, ids)
}

/// A reservation nobody has heard of.
fn unknown() -> ValueId {
    let mut vocabulary = Vocabulary::new();
    let key = vocabulary.intern_key("reservation-id");
    ["r-1", "r-2", "r-3"].map(|id| vocabulary.intern_value(key, id))[2]
}

#[test]
fn host_can_have_a_slot_while_there_is_one() {
    let (mut reservations, [first, _]) = with_slots(1, 0);
    assert!(reservations.can_reserve(&HOSTS[0], first));
    assert!(reservations.reserve(&HOSTS[0], first));
    assert!(reservations.can_reserve(&HOSTS[0], first), "it has the slot already");
    assert!(!reservations.can_reserve(&HOSTS[1], first), "none is left");
}

#[test]
fn unknown_reservation_is_refused_without_panic() {
    let (mut reservations, _) = with_slots(1, 1);
    assert!(!reservations.can_reserve(&HOSTS[0], unknown()));
    assert!(!reservations.reserve(&HOSTS[0], unknown()));
}

#[test]
fn slot_is_taken_once_per_host() {
    let (mut reservations, [first, _]) = with_slots(2, 0);
    assert!(reservations.reserve(&HOSTS[0], first));
    assert_eq!(
        (reservations.free(first), reservations.holds(&HOSTS[0], first)),
        (1, true)
    );
    assert!(reservations.reserve(&HOSTS[0], first));
    assert_eq!(reservations.free(first), 1);
}

#[test]
fn slots_of_several_reservations_are_taken_independently() {
    let (mut reservations, ids) = with_slots(2, 2);
    assert!(reservations.reserve(&HOSTS[0], ids[0]));
    assert!(
        ids.iter().all(|id| reservations.reserve(&HOSTS[0], *id)),
        "one is held, one is new"
    );
    assert_eq!(ids.map(|id| reservations.free(id)), [1, 1]);
}

#[test]
fn more_slots_than_there_are_are_refused_without_panic() {
    let (mut reservations, [first, _]) = with_slots(1, 0);
    assert!(reservations.reserve(&HOSTS[0], first));
    assert!(!reservations.reserve(&HOSTS[1], first));
    assert!(!reservations.holds(&HOSTS[1], first));
}

#[test]
fn released_slot_is_free_again() {
    let (mut reservations, ids) = with_slots(1, 1);
    assert!(ids.iter().all(|id| reservations.reserve(&HOSTS[0], *id)));
    reservations.release(&HOSTS[0], ids[0]);
    assert_eq!(ids.map(|id| reservations.free(id)), [1, 0]);
    assert_eq!(ids.map(|id| reservations.holds(&HOSTS[0], id)), [false, true]);
    assert!(reservations.reserve(&HOSTS[1], ids[0]));
}

#[test]
fn releasing_what_is_not_held_changes_nothing() {
    let (mut reservations, ids) = with_slots(1, 1);
    assert!(reservations.reserve(&HOSTS[0], ids[0]));
    reservations.release(&HOSTS[0], ids[1]);
    reservations.release(&HOSTS[1], ids[0]);
    reservations.release(&HOSTS[0], unknown());
    assert_eq!(ids.map(|id| reservations.free(id)), [0, 1]);
}

#[test]
fn slots_are_counted_right_over_many_rounds() {
    let (mut reservations, ids) = with_slots(2, 1);
    for round in 0..5 {
        for host in &HOSTS[..2] {
            assert!(reservations.reserve(host, ids[0]), "round {round}");
        }
        assert!(!reservations.reserve(&HOSTS[2], ids[0]), "round {round}");
        assert!(reservations.reserve(&HOSTS[2], ids[1]), "round {round}");
        assert_eq!(ids.map(|id| reservations.free(id)), [0, 0], "round {round}");
        for host in &HOSTS {
            for id in ids {
                reservations.release(host, id);
            }
        }
        assert_eq!(ids.map(|id| reservations.free(id)), [2, 1], "round {round}");
    }
}

#[test]
fn credit_makes_a_full_reservation_usable_and_ignores_unknown_ones() {
    let (mut reservations, [first, _]) = with_slots(0, 0);
    assert!(!reservations.can_reserve(&HOSTS[0], first));
    reservations.credit(first, 1);
    reservations.credit(unknown(), 1);
    assert!(reservations.can_reserve(&HOSTS[0], first));
    assert!(!reservations.can_reserve(&HOSTS[0], unknown()));
}
