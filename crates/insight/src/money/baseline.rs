//! What would the same pods cost unpacked? Each on a node of its own, on demand: the cheapest type of its pool that holds it
//! and what DaemonSets run there.

use std::collections::BTreeMap;

use api::labels::CAPACITY_TYPE_ON_DEMAND;
use model::{instance_type::InstanceType, object::Text};
use packing::{Options, supply::Supply};

use crate::{Amounts, Dollars, Prices, Requests, View};

/// A type with room for a pod.
struct Offer {
    price: Dollars,
    room: Amounts,
}

/// What the pods of each pool would cost an hour.
pub(super) fn by_pool(view: &View<'_>, prices: &Prices) -> BTreeMap<String, Dollars> {
    let offers = offers(view, prices);
    let mut requests = Requests::default();
    let mut known: BTreeMap<(&Text, u64, u64, u64), Dollars> = BTreeMap::new();
    let mut sums: BTreeMap<String, Dollars> = BTreeMap::new();
    for machine in view.managed() {
        let Some(pool) = machine.member.node_pool() else {
            continue;
        };
        let none = Vec::new();
        let offered = offers.get(&**pool).unwrap_or(&none);
        for pod in machine.movable() {
            let asked = requests.of(pod);
            let key = (pool, asked.cpu_m, asked.memory, asked.gpus);
            let alone = *known.entry(key).or_insert_with(|| cheapest(offered, asked));
            *sums.entry(pool.to_string()).or_default() += alone;
        }
    }
    sums
}

fn cheapest(offers: &[Offer], asked: Amounts) -> Dollars {
    let fits = |offer: &&Offer| {
        asked.cpu_m <= offer.room.cpu_m && asked.memory <= offer.room.memory && asked.gpus <= offer.room.gpus
    };
    let cheapest = offers.iter().find(fits).map(|offer| offer.price);
    cheapest.unwrap_or_default()
}

/// What each pool can launch on demand, the cheapest first, without the room that DaemonSets take.
fn offers(view: &View<'_>, prices: &Prices) -> BTreeMap<String, Vec<Offer>> {
    // Nodes and pods are not looked at, so they are left out of the way.
    let bare = view.snapshot.overlaid(|objects| {
        objects.nodes = model::snapshot::Table::default();
        objects.node_claims = model::snapshot::Table::default();
        objects.pods = model::snapshot::Table::default();
    });
    let supply = Supply::of(&bare, &Options::default());
    let mut offers: BTreeMap<String, Vec<Offer>> = BTreeMap::new();
    for template in &supply.templates {
        let mut list = Vec::new();
        for group in &template.daemons {
            let taken = Amounts::of(&group.overhead);
            for at in &group.types {
                if let Some(offer) = template.types.get(*at).and_then(|it| offer(prices, it, taken)) {
                    list.push(offer);
                }
            }
        }
        list.sort_by_key(|offer| offer.price);
        offers.insert(template.pool.metadata.name.to_string(), list);
    }
    offers
}

fn offer(prices: &Prices, it: &InstanceType, taken: Amounts) -> Option<Offer> {
    let price = prices.cheapest(it, CAPACITY_TYPE_ON_DEMAND)?;
    let all = Amounts::of(&it.allocatable());
    Some(Offer {
        price: price.into(),
        room: Amounts {
            cpu_m: all.cpu_m.saturating_sub(taken.cpu_m),
            memory: all.memory.saturating_sub(taken.memory),
            gpus: all.gpus,
        },
    })
}
