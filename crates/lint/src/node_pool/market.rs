//! How many markets a NodePool can buy in: NP04 spot-only, NP05 few-types, NP06 one-category.

use std::collections::BTreeSet;

use api::labels::{CAPACITY_TYPE, aws, azure};
use model::vocabulary::ValueId;

use super::REQUIREMENTS;
use crate::{
    finding::Found,
    supply::{allows, position, value},
    world::{Pool, World},
};

/// So many types upstream asks for before it moves a spot node to a cheaper spot node.
const ENOUGH_TYPES: usize = 15;

impl World {
    /// Whether a pool's requirements allow a kind of capacity; unknown clouds sell everything.
    fn sells(&self, pool: &Pool, kind: ValueId) -> bool {
        self.supply(pool)
            .is_some_and(|supply| allows(&pool.requirements, kind, &supply.vocabulary))
    }
}

pub(crate) fn spot_only(world: &World) -> Vec<Found> {
    let is_spot_only = |pool: &Pool| {
        let sells = |kind| world.sells(pool, kind);
        sells(ValueId::SPOT) && !sells(ValueId::ON_DEMAND) && !sells(ValueId::RESERVED)
    };
    // Pods that tolerate a pool's taints may use every pool with no other taints.
    let takes = |other: &Pool, pool: &Pool| {
        let known: BTreeSet<_> = taints(pool).collect();
        taints(other).all(|taint| known.contains(&taint))
    };
    let has_other_way = |pool: &Pool| {
        let others = || {
            world
                .pools
                .iter()
                .filter(|other| other.document != pool.document && takes(other, pool))
        };
        let is_dedicated = taints(pool).next().is_some();
        (is_dedicated && others().next().is_some()) || others().any(|other| !is_spot_only(other))
    };
    let pools = world
        .pools
        .iter()
        .filter(|pool| is_spot_only(pool) && !has_other_way(pool));
    let found = pools.map(|pool| {
        let path = values_at(pool, CAPACITY_TYPE);
        let text = "spot only: when spot is out nothing runs; add on-demand, spot stays first";
        Found::new(pool.document, path, text)
            .fix("values: [\"spot\", \"on-demand\"]: spot is cheaper, so it is still bought first")
            .replacing("\"spot\"", "\"spot\", \"on-demand\"")
    });
    found.collect()
}

fn taints(pool: &Pool) -> impl Iterator<Item = (&str, &str, &str)> {
    let taints = pool.pool.spec.template.spec.taints.iter();
    taints.map(|taint| (&*taint.key, &*taint.value, &*taint.effect))
}

/// Where the values of a requirement stand; the requirements as a whole where there is none.
pub(super) fn values_at(pool: &Pool, key: &str) -> String {
    match position(&pool.pool, key) {
        Some(at) => format!("{REQUIREMENTS}[{at}].values"),
        None => REQUIREMENTS.to_owned(),
    }
}

pub(crate) fn few_types(world: &World) -> Vec<Found> {
    let few = |pool: &Pool| {
        let supply = world.supply(pool)?;
        if !world.sells(pool, ValueId::SPOT) || pool.pool.is_static() {
            return None;
        }
        let left = world.left(pool);
        let is_few = !left.is_empty() && left.len() < ENOUGH_TYPES && supply.types.len() > ENOUGH_TYPES;
        let machines = [
            api::labels::INSTANCE_TYPE,
            aws::INSTANCE_FAMILY,
            aws::INSTANCE_SIZE,
            azure::SKU_NAME,
        ];
        let blamed = machines.into_iter().find(|key| position(&pool.pool, key).is_some());
        let path = blamed.map_or_else(|| REQUIREMENTS.to_owned(), |key| values_at(pool, key));
        let types = if left.len() == 1 {
            "1 type"
        } else {
            &format!("{} types", left.len())
        };
        let text = format!("{types} on spot: one stock-out stops the pool, spot-to-spot moves need {ENOUGH_TYPES}");
        is_few.then(|| Found::new(pool.document, path, text))
    };
    world.pools.iter().filter_map(few).collect()
}

/// Categories of machines for no special purpose: those of which another would do.
const GENERAL: [(&str, &[&str]); 2] = [
    (aws::INSTANCE_CATEGORY, &["c", "m", "r"]),
    (azure::SKU_FAMILY, &["D", "E", "F"]),
];

pub(crate) fn one_category(world: &World) -> Vec<Found> {
    let one = |pool: &Pool| {
        let supply = world.supply(pool)?;
        let (key, general) = GENERAL
            .into_iter()
            .find(|(key, _)| position(&pool.pool, key).is_some())?;
        let left = world.left(pool);
        let categories: BTreeSet<_> = left
            .iter()
            .filter_map(|entry| value(entry, key, &supply.vocabulary))
            .collect();
        let [category] = categories.into_iter().collect::<Vec<_>>()[..] else {
            return None;
        };
        let other = general
            .iter()
            .find(|other| **other != category && **other != "r" && **other != "F")?;
        general.contains(&category).then(|| {
            let text = format!("category {category} only: {other} would open more markets to the same pods");
            Found::new(pool.document, values_at(pool, key), text)
                .fix(format!("values: [\"{category}\", \"{other}\"]"))
                .replacing(format!("\"{category}\""), format!("\"{category}\", \"{other}\""))
        })
    };
    world.pools.iter().filter_map(one).collect()
}
