//! Do the passes and the bound keep their word on small problems whose cheapest plan is known?
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::collections::BTreeMap;

use model::bitset::BitSet;
use packing::{
    bound::lower_bound,
    cost::{Amounts, Class, Group, Offer, Packed, Place, Pool, Problem, Reach, Room, Settings, Variant, portfolio},
};
use proptest::{collection::vec, prelude::*};

const ZONES: usize = 2;

prop_compose! {
    fn offers()(drawn in vec((1..9_i64, 1..17_i64, 1..6_i64, 1..40_u64, 0..ZONES, any::<bool>()), 1..6)) -> Vec<Offer> {
        let offer = |(row, (cpu, memory, pods, price, zone, is_spot)): (usize, &(i64, i64, i64, u64, usize, bool))| Offer {
            row,
            market: zone * 2 + usize::from(*is_spot),
            zone: *zone,
            allocatable: Amounts([*cpu, *memory, *pods, 0, 0, 0]),
            capacity: Amounts([*cpu, *memory, *pods, 0, 0, 0]),
            price: price * 1_000_000_000,
            is_spot: *is_spot,
            ..Offer::default()
        };
        drawn.iter().enumerate().map(offer).collect()
    }
}

prop_compose! {
    fn problems()(
        offers in offers(),
        classes in vec((1..4_u32, 0..5_i64, 0..9_i64, 0..3_usize, 0..4_usize, 0..4_u64), 1..4),
        rooms in vec((0..5_i64, 0..9_i64, 0..3_i64), 0..2),
        reaches in vec(any::<u32>(), 2),
    ) -> Problem {
        let every: BitSet = (0..u32::try_from(offers.len()).unwrap()).collect();
        let rooms: Vec<Room> = rooms
            .iter()
            .map(|(cpu, memory, pods)| Room { free: Amounts([*cpu, *memory, *pods, 0, 0, 0]), ..Room::default() })
            .collect();
        let all_rooms: BitSet = (0..u32::try_from(rooms.len()).unwrap()).collect();
        let narrow = |mask: &u32| Reach {
            offers: every.iter().filter(|at| mask >> at & 1 == 1).collect(),
            rooms: all_rooms.iter().filter(|at| mask >> (at + 8) & 1 == 1).collect(),
        };
        let mut all = vec![Reach { offers: every.clone(), rooms: all_rooms.clone() }];
        all.extend(reaches.iter().map(narrow));
        let class = |(count, cpu, memory, reach, group, marks): &(u32, i64, i64, usize, usize, u64)| Class {
            count: *count,
            requests: Amounts([*cpu, *memory, 1, 0, 0, 0]),
            reach: *reach,
            groups: if *group < 2 { vec![*group] } else { Vec::new() },
            carries: marks & 1,
            repels: marks >> 1,
            ..Class::default()
        };
        Problem {
            zones: ZONES,
            classes: classes.iter().map(class).collect(),
            offers: offers.into(),
            rooms,
            reaches: all,
            groups: vec![Group { max: 1 }, Group { max: 2 }],
            pools: vec![Pool::default()],
            ..Problem::default()
        }
    }
}

/// Whether a node takes these pods together, by the problem's own words.
fn holds(problem: &Problem, room: &Amounts, is_reached: impl Fn(&Reach) -> bool, pods: &[(usize, u32)]) -> bool {
    let mut used = Amounts::default();
    let mut groups = vec![0; problem.groups.len()];
    for (class, count) in pods.iter().filter(|(_, count)| *count > 0) {
        let it = &problem.classes[*class];
        used.add(&it.requests, *count);
        it.groups.iter().for_each(|group| groups[*group] += count);
        let others = pods.iter().filter(|(other, count)| *count > 0 && other != class);
        let is_repelled = others
            .map(|(other, _)| &problem.classes[*other])
            .any(|other| it.repels & other.carries != 0);
        let repels_itself = it.repels & it.carries != 0 && *count > 1;
        if is_repelled || repels_itself || !is_reached(&problem.reaches[it.reach]) {
            return false;
        }
    }
    used.fits(room)
        && groups
            .iter()
            .zip(&problem.groups)
            .all(|(count, group)| *count <= group.max)
}

/// All ways to take pods from what is left that a node holds.
fn fillings(problem: &Problem, room: &Amounts, is_reached: &dyn Fn(&Reach) -> bool, left: &[u32]) -> Vec<Vec<u32>> {
    let mut found = vec![Vec::new()];
    for count in left {
        let longer = found.iter().flat_map(|filling: &Vec<u32>| {
            (0..=*count).map(move |taken| filling.iter().copied().chain([taken]).collect::<Vec<u32>>())
        });
        found = longer.collect();
    }
    let pods = |filling: &[u32]| -> Vec<(usize, u32)> { filling.iter().copied().enumerate().collect() };
    found.retain(|filling| filling.iter().any(|count| *count > 0) && holds(problem, room, is_reached, &pods(filling)));
    found
}

/// The cheapest way to place all pods, looked for everywhere; none when there is none.
fn optimum(
    problem: &Problem,
    room: usize,
    left: Vec<u32>,
    known: &mut BTreeMap<(usize, Vec<u32>), Option<u64>>,
) -> Option<u64> {
    if left.iter().all(|count| *count == 0) {
        return Some(0);
    }
    if let Some(answer) = known.get(&(room, left.clone())) {
        return *answer;
    }
    let without = |filling: &[u32]| {
        left.iter()
            .zip(filling)
            .map(|(left, taken)| left - taken)
            .collect::<Vec<u32>>()
    };
    let mut answers = Vec::new();
    if let Some(it) = problem.rooms.get(room) {
        let at = u32::try_from(room).unwrap();
        answers.push(optimum(problem, room + 1, left.clone(), known));
        for filling in fillings(problem, &it.free, &|reach| reach.rooms.contains(at), &left) {
            answers.push(optimum(problem, room + 1, without(&filling), known));
        }
    } else {
        for (at, offer) in (0..).zip(problem.offers.iter()) {
            for filling in fillings(problem, &offer.allocatable, &|reach| reach.offers.contains(at), &left) {
                let rest = optimum(problem, room, without(&filling), known);
                answers.push(rest.map(|rest| rest + offer.price));
            }
        }
    }
    let best = answers.into_iter().flatten().min();
    known.insert((room, left), best);
    best
}

fn check_bins(problem: &Problem, packed: &Packed) {
    let mut counts = vec![0; problem.classes.len()];
    for bin in &packed.bins {
        let is_held = match bin.place {
            Place::Offer(at) => {
                let offer = u32::try_from(at).unwrap();
                holds(
                    problem,
                    &problem.offers[at].allocatable,
                    |reach| reach.offers.contains(offer),
                    &bin.pods,
                )
            }
            Place::Room(at) => {
                let room = u32::try_from(at).unwrap();
                holds(
                    problem,
                    &problem.rooms[at].free,
                    |reach| reach.rooms.contains(room),
                    &bin.pods,
                )
            }
        };
        assert!(is_held, "{bin:?}");
        bin.pods.iter().for_each(|(class, count)| counts[*class] += count);
    }
    packed
        .unplaced
        .iter()
        .for_each(|(class, count)| counts[*class] += count);
    let asked: Vec<u32> = problem.classes.iter().map(|class| class.count).collect();
    assert_eq!(counts, asked, "every pod is in one bin or left over");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_bin_holds_its_pods_and_no_plan_is_below_the_bound(problem in problems()) {
        let settings = Settings { variants: vec![Variant::Mixed, Variant::SmallNodes], ..Settings::default() };
        let found = portfolio(&problem, &settings);
        let bound = lower_bound(&problem, &found.values);
        for candidate in &found.candidates {
            check_bins(&problem, &candidate.packed);
            if candidate.packed.unplaced.is_empty() {
                prop_assert!(bound <= candidate.price, "{} > {}", bound, candidate.price);
            }
        }
        let left: Vec<u32> = problem.classes.iter().map(|class| class.count).collect();
        if let Some(optimum) = optimum(&problem, 0, left, &mut BTreeMap::new()) {
            prop_assert!(bound <= optimum, "{} > {}", bound, optimum);
            let complete = found.candidates.iter().filter(|candidate| candidate.packed.unplaced.is_empty());
            for candidate in complete {
                prop_assert!(optimum <= candidate.price, "{} > {}", optimum, candidate.price);
            }
        }
    }
}

#[test]
fn a_budget_ends_the_search_with_what_was_found() {
    let offer = Offer {
        allocatable: Amounts([4, 8, 4, 0, 0, 0]),
        price: 1_000_000_000,
        ..Offer::default()
    };
    let class = Class {
        count: 40,
        requests: Amounts([1, 1, 1, 0, 0, 0]),
        ..Class::default()
    };
    let problem = Problem {
        zones: 1,
        classes: vec![class],
        offers: vec![offer].into(),
        reaches: vec![Reach {
            offers: BitSet::from_iter([0]),
            rooms: BitSet::default(),
        }],
        pools: vec![Pool::default()],
        ..Problem::default()
    };
    let with = |steps| {
        portfolio(
            &problem,
            &Settings {
                steps,
                ..Settings::default()
            },
        )
    };
    let (whole, cut) = (with(1_000_000), with(3));
    assert_eq!((whole.is_cut_short, whole.candidates[0].price), (false, 10_000_000_000));
    assert!(cut.is_cut_short && cut.steps < whole.steps);
    check_bins(&problem, &cut.candidates[0].packed);
}
