//! What is for sale: every launchable offering of every NodePool, less the daemons that will run there.

use std::{collections::BTreeMap, sync::Arc};

use model::{
    bitset::BitSet,
    quantity::Quantity,
    resources::ResourceName,
    vocabulary::{KeyId, ValueId},
};

use super::amounts;
use crate::{
    bitmap::has,
    cost::{Amounts, Offer, Pool},
    index::{self, Mask},
    lanes,
    problem::TemplateEntry,
    run::Run,
    space::StateId,
};

/// Offers of all NodePools, and where they come from.
#[derive(Debug)]
pub(super) struct Sale {
    pub(super) wares: Wares,
    pub(super) pools: Vec<Pool>,
    /// What is open to a claim of a NodePool in a state.
    open: BTreeMap<(usize, StateId), BitSet>,
}

/// The offers themselves: thousands, and the same for every simulation of a cluster while no limit keeps one out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wares {
    pub(super) offers: Arc<Vec<Offer>>,
    /// The label value of each zone.
    pub(super) zones: Arc<Vec<Option<ValueId>>>,
    /// Positions in the index's offers.
    listed: Arc<Vec<usize>>,
}

/// Wares being gathered.
#[derive(Default)]
struct Gathered {
    offers: Vec<Offer>,
    zones: Vec<Option<ValueId>>,
    listed: Vec<usize>,
}

impl Sale {
    /// What the passes may buy: within limits, and without reservations, which run out.
    pub(super) fn within_limits(run: &Run<'_>) -> Self {
        let is_wanted = |offer: &index::Offer| offer.reservation.is_none();
        let templates = &run.problem.templates;
        let is_all_open = templates
            .iter()
            .zip(&run.limits)
            .all(|(entry, limits)| limits.open() == Ok(&entry.rows));
        let wares = if is_all_open {
            let all = || Wares::new(run, |template| Some(&templates[template].rows), is_wanted);
            run.problem.wares.get_or_init(all).clone()
        } else {
            Wares::new(run, |template| run.limits[template].open().ok(), is_wanted)
        };
        Self::of(wares, templates.iter().map(|entry| pool(run, entry)).collect())
    }

    /// What any plan may buy. A claim counts in the limits as the largest machine it may become, so none that is larger
    /// than what is left of them is ever bought.
    pub(super) fn of_everything(run: &Run<'_>) -> Self {
        let wares = Wares::new(run, |template| run.limits[template].open().ok(), |_| true);
        Self::of(wares, run.problem.templates.iter().map(|_| Pool::default()).collect())
    }

    fn of(wares: Wares, pools: Vec<Pool>) -> Self {
        Self {
            wares,
            pools,
            open: BTreeMap::new(),
        }
    }

    /// The offers that are open to a claim of a NodePool in a state.
    pub(super) fn open(&mut self, run: &Run<'_>, template: usize, state: StateId) -> BitSet {
        let Self { wares, open, .. } = self;
        let found = open.entry((template, state)).or_insert_with(|| {
            let state = run.space.state(state);
            let is_open = |(_, (offer, at)): &(u32, (&Offer, &usize))| {
                let it = &run.problem.index.offers[**at];
                offer.pool == template && has(&state.classes, it.class as usize) && has(&state.rows, it.row as usize)
            };
            let numbered = (0..).zip(wares.offers.iter().zip(wares.listed.iter()));
            numbered.filter(is_open).map(|(position, _)| position).collect()
        });
        found.clone()
    }
}

impl Wares {
    /// The offers of each template's rows.
    fn new<'m>(
        run: &Run<'_>,
        rows: impl Fn(usize) -> Option<&'m Mask>,
        is_wanted: impl Fn(&index::Offer) -> bool,
    ) -> Self {
        let mut gathered = Gathered::default();
        let mut markets = BTreeMap::new();
        let listed = run.problem.index.offers_by_name();
        for (template, entry) in run.problem.templates.iter().enumerate() {
            let Some(rows) = rows(template) else { continue };
            let listed = listed.iter().map(|at| *at as usize);
            let launchable = listed.map(|at| (at, &run.problem.index.offers[at]));
            let launchable = launchable.filter(|(_, offer)| offer.is_launchable && is_wanted(offer));
            for (at, offer) in launchable.filter(|(_, offer)| has(rows, offer.row as usize)) {
                let zone = gathered.zone(offer.zone);
                let next = markets.len();
                let market = *markets
                    .entry((template, offer.class, arch(run, offer.entry)))
                    .or_insert(next);
                gathered.listed.push(at);
                gathered.offers.push(Offer {
                    row: offer.entry as usize,
                    market,
                    pool: template,
                    zone,
                    allocatable: allocatable(run, entry, offer.row as usize),
                    capacity: capacity(run, offer.entry as usize),
                    price: offer.price.picos(),
                    is_spot: offer.capacity_type == Some(ValueId::SPOT),
                });
            }
        }
        Self {
            offers: Arc::new(gathered.offers),
            zones: Arc::new(gathered.zones),
            listed: Arc::new(gathered.listed),
        }
    }
}

impl Gathered {
    fn zone(&mut self, value: Option<ValueId>) -> usize {
        let known = self.zones.iter().position(|zone| *zone == value);
        known.unwrap_or_else(|| {
            self.zones.push(value);
            self.zones.len() - 1
        })
    }
}

/// Room for pods on a row, less what the daemons of its group take.
fn allocatable(run: &Run<'_>, entry: &TemplateEntry, row: usize) -> Amounts {
    let mut room = amounts(run.problem.index.allocatable(row));
    if let Some(group) = entry.daemons.iter().find(|group| has(&group.rows, row)) {
        room.take(&amounts(&group.overhead), 1);
    }
    room
}

/// Types of different architectures do not stand in for each other.
fn arch(run: &Run<'_>, entry: u32) -> Option<ValueId> {
    let requirements = &run.problem.index.types[entry as usize].requirements;
    requirements.get(KeyId::ARCH).and_then(|arch| arch.values().next())
}

/// What a node takes from limits.
fn capacity(run: &Run<'_>, entry: usize) -> Amounts {
    amounts(run.problem.index.capacity_lanes(entry))
}

/// What a NodePool's limits leave; limits on resources nobody asks for are left to the solver.
fn pool(run: &Run<'_>, entry: &TemplateEntry) -> Pool {
    let Some(remaining) = &entry.remaining else {
        return Pool::default();
    };
    let left = |name: &ResourceName| {
        remaining
            .iter()
            .find(|(limited, _)| limited == name)
            .map(|(_, left)| *left)
    };
    let per_lane: Vec<i64> = run
        .problem
        .lanes
        .names()
        .iter()
        .map(|name| left(name).unwrap_or(i64::MAX))
        .collect();
    let nodes = left(&ResourceName::Nodes)
        .map(|left| left / lanes::offered(&ResourceName::Nodes, Quantity::from_units(1)).max(1));
    Pool {
        remaining: Some(Amounts(std::array::from_fn(|lane| {
            per_lane.get(lane).copied().unwrap_or(i64::MAX)
        }))),
        nodes: nodes.map(|nodes| u32::try_from(nodes).unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        Options, Warm,
        demand::fixture::{instance_type, node_pool, snapshot_with},
    };

    /// Whether two runs over one problem, whose pool has this limit of cores, sell the very same list, and how long it is.
    fn shared(cores: Option<&str>) -> (bool, usize) {
        let mut pool = node_pool("pool", json!({}));
        if let Some(cores) = cores {
            pool["spec"]["limits"] = json!({ "cpu": cores });
        }
        let types = [
            instance_type("small", "1", &["z1"]),
            instance_type("large", "64", &["z1"]),
        ];
        let snapshot = snapshot_with(json!({ "instanceTypes": types }), vec![pool]);
        let problem = Warm::default().problem_of(&snapshot, &Options::default());
        let sale = || Sale::within_limits(&Run::new(&problem)).wares.offers;
        let (one, two) = (sale(), sale());
        (Arc::ptr_eq(&one, &two), one.len())
    }

    #[test]
    fn simulations_of_a_cluster_share_what_is_for_sale_until_a_limit_keeps_something_out() {
        let (is_shared, all) = shared(None);
        assert!(is_shared);
        assert_eq!(shared(Some("1000")), (true, all), "a limit that is far away");
        let (is_shared, few) = shared(Some("8"));
        assert!(!is_shared && few < all, "{few} of {all}");
    }
}
