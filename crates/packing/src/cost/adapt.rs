//! The solver's problem as the plain picture the passes work on, and their proposals as guides for the solver.
//!
//! The picture is a wish, not a contract: constraints it leaves out cost a pod its proposed place at most, for every
//! guide is filled through the solver's own tests. Pods whose constraints cannot be drawn are left to the solver.
//! The picture for the lower bound is drawn the other way: whatever cannot be drawn is allowed.

mod bonds;
mod sale;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use model::{bitset::BitSet, vocabulary::ValueId};
use rustc_hash::FxHashMap;

pub(crate) use self::sale::Wares;
use self::{bonds::Bonds, sale::Sale};
use super::{Amounts, Class, Packed, Place, Problem, Reach, Room, WIDTH, Zones};
use crate::{
    intake::PLAIN,
    run::{Guide, Run},
    space::Step,
};

/// Pods of one combo and shape: what a class is made from.
pub(crate) type ClassKey = (u32, u32);

/// A problem the passes can work on.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) problem: Problem,
    /// What each class is made from.
    pub(crate) keys: Vec<ClassKey>,
    /// The pods of each class, in the order of the queue.
    pods: Vec<Vec<u32>>,
    /// The label value of each zone; none for offers that name no zone.
    zones: Arc<Vec<Option<ValueId>>>,
}

/// The picture for the passes: pods that still need a place, on nodes to be bought.
pub(crate) fn for_passes(run: &mut Run<'_>, left: &[u32]) -> Picture {
    let is_plain = |pod: &&u32| run.problem.intake.pods[**pod as usize].extra == PLAIN;
    let plain: Vec<u32> = left.iter().filter(is_plain).copied().collect();
    let mut drawing = Drawing::new(Sale::within_limits(run), run, &plain);
    for class in 0..drawing.keys.len() {
        let reach = drawing.first_pool(run, class);
        drawing.add_class(run, class, reach);
    }
    Bonds::of_first_steps(run, &drawing.keys).draw(run, &drawing.zones, &mut drawing.problem);
    drawing.finish()
}

/// The picture for the lower bound: every place each pod may have at any step of its ladder, nodes there are included.
pub(crate) fn for_bound(run: &mut Run<'_>, pods: &[u32]) -> Picture {
    let mut drawing = Drawing::new(Sale::of_everything(run), run, pods);
    drawing.add_rooms(run);
    for class in 0..drawing.keys.len() {
        let reach = drawing.any_pool(run, class);
        drawing.add_class(run, class, reach);
    }
    Bonds::of_last_steps(run, &drawing.keys).draw_per_node(run, &mut drawing.problem);
    drawing.finish()
}

impl Picture {
    /// Values of classes as values of pods, by pod; pods that are not in the picture have none.
    #[expect(clippy::cast_sign_loss, reason = "prices are no less than nothing")]
    pub(crate) fn of_pods(&self, values: &[f64]) -> FxHashMap<u32, u64> {
        let of_class = |(pods, value): (&Vec<u32>, &f64)| {
            let value = value.round() as u64;
            pods.iter().map(move |pod| (*pod, value)).collect::<Vec<_>>()
        };
        self.pods.iter().zip(values).flat_map(of_class).collect()
    }

    /// What a proposal means to the solver, and in which order pods are to be added; bins on nodes there are mean
    /// nothing, they were filled before.
    pub(crate) fn guides(&self, packed: &Packed) -> (Vec<Guide>, Vec<(usize, u32)>) {
        let mut next = vec![0; self.pods.len()];
        let (mut guides, mut turns, mut rest) = (Vec::new(), Turns::new(&self.problem), Vec::new());
        for bin in &packed.bins {
            let Place::Offer(offer) = bin.place else { continue };
            let offer = &self.problem.offers[offer];
            for (class, count) in &bin.pods {
                let from = next[*class];
                next[*class] += *count as usize;
                let pods = self.pods[*class][from..next[*class]].iter();
                let places = pods.map(|pod| (guides.len(), *pod));
                match self.problem.classes[*class].zones {
                    Zones::Spread(spread) => turns.add(spread, offer.zone, places),
                    Zones::Any | Zones::Together(_) => rest.extend(places),
                }
            }
            guides.push(Guide {
                template: offer.pool,
                zone: self.zones[offer.zone].filter(|_| bin.is_zone_settled),
                capacity: offer.capacity,
            });
        }
        let mut order = turns.take();
        order.extend(rest);
        (guides, order)
    }
}

/// Pods to be spread, waiting per spread and zone: guide and pod.
struct Turns {
    waiting: Vec<Vec<VecDeque<(usize, u32)>>>,
    placed: Vec<Vec<u32>>,
}

impl Turns {
    fn new(problem: &Problem) -> Self {
        let zones = |_| vec![VecDeque::new(); problem.zones];
        Self {
            waiting: problem.spreads.iter().map(zones).collect(),
            placed: problem.spreads.iter().map(|spread| spread.placed.clone()).collect(),
        }
    }

    fn add(&mut self, spread: usize, zone: usize, places: impl Iterator<Item = (usize, u32)>) {
        self.waiting[spread][zone].extend(places);
    }

    /// All pods, always one for the zone with the fewest.
    fn take(mut self) -> Vec<(usize, u32)> {
        let mut order = Vec::new();
        for (waiting, placed) in self.waiting.iter_mut().zip(&mut self.placed) {
            placed.resize(waiting.len(), 0);
            let emptiest = |waiting: &[VecDeque<_>], placed: &[u32]| {
                let open = (0..waiting.len()).filter(|&zone| !waiting[zone].is_empty());
                open.min_by_key(|&zone| (placed[zone], zone))
            };
            while let Some(zone) = emptiest(waiting, placed) {
                order.extend(waiting[zone].pop_front());
                placed[zone] += 1;
            }
        }
        order
    }
}

/// A picture being made.
struct Drawing {
    problem: Problem,
    keys: Vec<ClassKey>,
    pods: Vec<Vec<u32>>,
    zones: Arc<Vec<Option<ValueId>>>,
    sale: Sale,
    reaches: BTreeMap<(BitSet, BitSet), usize>,
}

impl Drawing {
    fn new(sale: Sale, run: &Run<'_>, queue: &[u32]) -> Self {
        let (mut places, mut keys, mut pods) = (BTreeMap::new(), Vec::new(), Vec::new());
        for &pod in queue {
            let entry = run.problem.intake.pods[pod as usize];
            let key = (entry.combo, entry.shape);
            let place = *places.entry(key).or_insert(keys.len());
            if place == keys.len() {
                keys.push(key);
                pods.push(Vec::new());
            }
            pods[place].push(pod);
        }
        let problem = Problem {
            zones: sale.wares.zones.len(),
            offers: Arc::clone(&sale.wares.offers),
            pools: sale.pools.clone(),
            ..Problem::default()
        };
        Self {
            problem,
            keys,
            pods,
            zones: Arc::clone(&sale.wares.zones),
            sale,
            reaches: BTreeMap::new(),
        }
    }

    fn finish(self) -> Picture {
        Picture {
            problem: self.problem,
            keys: self.keys,
            pods: self.pods,
            zones: self.zones,
        }
    }

    fn add_class(&mut self, run: &Run<'_>, class: usize, (offers, rooms): (BitSet, BitSet)) {
        let is_lost = offers.is_empty() && rooms.is_empty();
        let next = self.reaches.len();
        let reach = *self.reaches.entry((offers.clone(), rooms.clone())).or_insert(next);
        if reach == next {
            self.problem.reaches.push(Reach { offers, rooms });
        }
        let asked = run.problem.shape(self.keys[class].1);
        self.problem.classes.push(Class {
            count: self.pods[class].len() as u32,
            requests: amounts(asked),
            reach,
            // What has no place in the picture would be forgotten by it.
            is_unsupported: is_lost || asked.iter().skip(WIDTH).any(|amount| *amount > 0),
            ..Class::default()
        });
    }

    /// The offers of the heaviest NodePool that takes such a pod: lighter ones are not an alternative, they are for pods
    /// that no heavier pool takes.
    fn first_pool(&mut self, run: &mut Run<'_>, class: usize) -> (BitSet, BitSet) {
        let (combo, shape) = self.keys[class];
        let asked = amounts(run.problem.shape(shape));
        for template in 0..run.problem.templates.len() {
            let open = self.open_offers(run, template, combo, 0);
            if open
                .iter()
                .any(|at| asked.fits(&self.sale.wares.offers[at as usize].allocatable))
            {
                return (open, BitSet::default());
            }
        }
        (BitSet::default(), BitSet::default())
    }

    /// Every offer and room the pod may use at some step of its ladder.
    fn any_pool(&mut self, run: &mut Run<'_>, class: usize) -> (BitSet, BitSet) {
        let (combo, _) = self.keys[class];
        let (mut offers, mut rooms) = (BitSet::default(), BitSet::default());
        let mut step = 0;
        while run.climb(combo, step) {
            for template in 0..run.problem.templates.len() {
                offers = offers.union(&self.open_offers(run, template, combo, step));
            }
            rooms = rooms.union(&open_rooms(run, combo, step));
            step += 1;
        }
        (offers, rooms)
    }

    /// The offers of a NodePool that a pod may use at a step of its ladder.
    fn open_offers(&mut self, run: &mut Run<'_>, template: usize, combo: u32, step: usize) -> BitSet {
        let variant = &run.ladders.all[combo as usize].variants[step];
        let (set, tolerations) = (variant.set, variant.tolerations);
        if !run
            .tolerance
            .tolerates(tolerations, run.problem.templates[template].taints)
        {
            return BitSet::default();
        }
        match run.space.join(run.template_states[template], set) {
            Step::To(base) => self.sale.open(run, template, base),
            Step::Conflict | Step::Undefined => BitSet::default(),
        }
    }

    fn add_rooms(&mut self, run: &Run<'_>) {
        let lanes = run.problem.lanes.len();
        let rooms = run.problem.node_room.chunks(lanes).map(|free| Room {
            free: amounts(free),
            ..Room::default()
        });
        self.problem.rooms = rooms.collect();
    }
}

/// The nodes there are whose labels and taints a pod accepts at a step of its ladder.
fn open_rooms(run: &mut Run<'_>, combo: u32, step: usize) -> BitSet {
    let variant = &run.ladders.all[combo as usize].variants[step];
    let (set, tolerations) = (variant.set, variant.tolerations);
    let mut open = BitSet::default();
    for node in 0..run.problem.nodes.len() {
        let is_tolerated = run.tolerance.tolerates(tolerations, run.problem.node_taints[node]);
        if is_tolerated && matches!(run.space.join(run.nodes.states[node], set), Step::To(_)) {
            open.insert(node as u32);
        }
    }
    open
}

/// The lanes the passes weigh.
fn amounts(lanes: &[i64]) -> Amounts {
    Amounts(std::array::from_fn(|lane| lanes.get(lane).copied().unwrap_or(0)))
}
