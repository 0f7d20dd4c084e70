//! Which instance types requirements leave: NP07 arch-narrow, NP08 old-generation, NP09 no-type-left, NP10 redundant,
//! NP20 min-values.

use std::collections::BTreeSet;

use api::labels::{ARCH, ARCH_AMD64, ARCH_ARM64, INSTANCE_TYPE, aws, azure};
use model::{
    instance_type::{InstanceType, needed_for_min_values},
    price::Price,
    requirement::Requirements,
    vocabulary::Vocabulary,
    words::{counted, grouped},
};

use super::{REQUIREMENTS, market::values_at};
use crate::{
    finding::Found,
    supply::{Supply, architectures, names_machines, position, value},
    world::{Pool, World},
};

/// What is left of a pool's requirements without those at some places.
fn without(pool: &Pool, dropped: &[usize], vocabulary: &mut Vocabulary) -> Requirements {
    let mut other = pool.pool.clone();
    let kept = other.spec.template.spec.requirements.iter().enumerate();
    let kept = kept.filter(|(at, _)| !dropped.contains(at)).map(|(_, one)| one.clone());
    other.spec.template.spec.requirements = kept.collect();
    packing::supply::template_requirements(&other, vocabulary)
}

pub(crate) fn arch_narrow(world: &World) -> Vec<Found> {
    let narrow = |pool: &Pool| {
        let supply = world.supply(pool)?;
        let at = position(&pool.pool, ARCH)?;
        let allowed = architectures(world.left(pool).into_iter(), &supply.vocabulary);
        if allowed != BTreeSet::from([ARCH_AMD64]) {
            return None;
        }
        let mut vocabulary = supply.vocabulary.clone();
        let open = without(pool, &[at], &mut vocabulary);
        let all: Vec<_> = supply.left(&pool.pool, &open, &vocabulary).collect();
        let of = |arch: &str| {
            let same = |entry: &&&InstanceType| value(entry, ARCH, &vocabulary) == Some(arch);
            all.iter().filter(same).copied().collect::<Vec<_>>()
        };
        let (amd, arm) = (of(ARCH_AMD64), of(ARCH_ARM64));
        if arm.is_empty() {
            return None;
        }
        let compared = comparison(&amd, &arm, &open, &vocabulary).map(|text| format!("; {text}"));
        let text = format!(
            "amd64 only: {} of {} types are arm64{}",
            grouped(arm.len() as u128),
            grouped(all.len() as u128),
            compared.unwrap_or_default()
        );
        let found = Found::new(pool.document, values_at(pool, ARCH), text)
            .fix("values: [\"amd64\", \"arm64\"], once every image of its pods has both: images are not looked at here")
            .replacing("\"amd64\"", "\"amd64\", \"arm64\"");
        Some(found)
    };
    world.pools.iter().filter_map(narrow).collect()
}

/// The cheapest machines of a common size, one of each architecture, by their on-demand prices.
fn comparison(
    amd: &[&InstanceType],
    arm: &[&InstanceType],
    open: &Requirements,
    vocabulary: &Vocabulary,
) -> Option<String> {
    let price = |entry: &InstanceType| -> Option<Price> {
        let offerings = entry
            .offerings
            .iter()
            .filter(|offering| offering.is_compatible(open, vocabulary));
        offerings.map(|offering| offering.price).max()
    };
    let cheapest = |types: &[&InstanceType], cores: i64, gib: i64| {
        let same = types.iter().filter(|entry| {
            // The table keeps a part of the memory for the hypervisor.
            let percent = (entry.capacity.amount("memory").value() >> 20) * 100 / (gib << 10);
            entry.capacity.amount("cpu").value() == cores && (85..=100).contains(&percent)
        });
        same.filter_map(|entry| Some((price(entry)?, entry.name.clone()))).min()
    };
    [(8, 32), (4, 16), (16, 64)].into_iter().find_map(|(cores, gib)| {
        let (amd, arm) = (cheapest(amd, cores, gib)?, cheapest(arm, cores, gib)?);
        let below = 100 - u128::from(arm.0.picos()) * 100 / u128::from(amd.0.picos()).max(1);
        (arm.0 < amd.0).then(|| format!("{} is {below}% below {}", arm.1, amd.1))
    })
}

/// Up to this generation EC2's machines have another hypervisor, and are slower and dearer for the same work.
const OLD: u32 = 4;

pub(crate) fn old_generation(world: &World) -> Vec<Found> {
    let old = |pool: &Pool| {
        let supply = world.supply(pool)?;
        if names_machines(&pool.pool) {
            return None;
        }
        let generation =
            |entry: &InstanceType| value(entry, aws::INSTANCE_GENERATION, &supply.vocabulary)?.parse().ok();
        let is_old = |entry: &&InstanceType| generation(entry).is_some_and(|number: u32| number <= OLD);
        let old: Vec<_> = world.left(pool).into_iter().filter(is_old).collect();
        let families: BTreeSet<_> = old
            .iter()
            .filter_map(|entry| value(entry, aws::INSTANCE_FAMILY, &supply.vocabulary))
            .collect();
        if old.is_empty() {
            return None;
        }
        let at = position(&pool.pool, aws::INSTANCE_GENERATION);
        let written = at.and_then(|at| pool.pool.spec.template.spec.requirements.get(at));
        let said = written.map_or_else(
            || "no condition on the generation".to_owned(),
            |one| format!("generation {} {}", sign(&one.operator), one.values.join(", ")),
        );
        let shown: Vec<_> = families.iter().take(6).copied().collect();
        let more = if families.len() > shown.len() { ", …" } else { "" };
        let text = format!(
            "{said} admits {} of {}{more}: slower; use > 5",
            counted(old.len(), "type"),
            shown.join(", ")
        );
        let path = values_at(pool, aws::INSTANCE_GENERATION);
        let found = Found::new(pool.document, path, text);
        Some(match written {
            Some(one) if *one.operator == *"Gt" && one.values.len() == 1 => {
                found.replacing(format!("\"{}\"", one.values.join("")), "\"5\"")
            }
            _ => found,
        })
    };
    world.pools.iter().filter_map(old).collect()
}

fn sign(operator: &str) -> &str {
    match operator {
        "Gt" => ">",
        "Gte" => ">=",
        "Lt" => "<",
        "Lte" => "<=",
        "In" => "in",
        other => other,
    }
}

pub(crate) fn no_type_left(world: &World) -> Vec<Found> {
    let none = |pool: &Pool| {
        let supply = world.supply(pool)?;
        if !world.left(pool).is_empty() {
            return None;
        }
        let requirements = &pool.pool.spec.template.spec.requirements;
        let mut vocabulary = supply.vocabulary.clone();
        let mut relaxed = Vec::new();
        for (at, requirement) in requirements.iter().enumerate() {
            let rest = without(pool, &[at], &mut vocabulary);
            let count = supply.left(&pool.pool, &rest, &vocabulary).count();
            relaxed.push((count, at, requirement));
        }
        relaxed.retain(|(count, ..)| *count > 0);
        relaxed.sort_by_key(|(count, at, _)| (std::cmp::Reverse(*count), *at));
        let found = match relaxed.first() {
            None => Found::new(
                pool.document,
                REQUIREMENTS,
                "its requirements leave no instance type at all",
            )
            .fix("relax more than one requirement: no single one is to blame"),
            Some((count, at, blamed)) => {
                let said = format!("{} {} {}", blamed.key, blamed.operator, blamed.values.join(", "));
                let text = format!("its requirements leave no instance type; without {said} there are {count}");
                Found::new(pool.document, format!("{REQUIREMENTS}[{at}]"), text).fix(format!("relax or drop {said}"))
            }
        };
        Some(found)
    };
    world.pools.iter().filter_map(none).collect()
}

/// Keys of what a machine is, which a list of machines says already.
const OF_MACHINES: [&str; 12] = [
    aws::INSTANCE_CATEGORY,
    aws::INSTANCE_FAMILY,
    aws::INSTANCE_GENERATION,
    aws::INSTANCE_SIZE,
    aws::INSTANCE_CPU,
    aws::INSTANCE_MEMORY,
    aws::INSTANCE_HYPERVISOR,
    azure::SKU_FAMILY,
    azure::SKU_SERIES,
    azure::SKU_VERSION,
    azure::SKU_CPU,
    azure::SKU_MEMORY,
];

pub(crate) fn redundant(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for pool in &world.pools {
        let Some(supply) = world.supply(pool) else { continue };
        let requirements = &pool.pool.spec.template.spec.requirements;
        let lists = [INSTANCE_TYPE, aws::INSTANCE_FAMILY, azure::SKU_NAME];
        let list = lists.into_iter().find(|key| {
            let of_key = position(&pool.pool, key).and_then(|at| requirements.get(at));
            of_key.is_some_and(|one| *one.operator == *"In" && one.min_values.is_none())
        });
        let Some(list) = list else { continue };
        let all: Vec<_> = world.left(pool).iter().map(|entry| entry.name.clone()).collect();
        for (at, requirement) in requirements.iter().enumerate() {
            let key = &*requirement.key;
            if key == list || !OF_MACHINES.contains(&key) || requirement.min_values.is_some() || all.is_empty() {
                continue;
            }
            if same_without(pool, supply, at, &all) {
                let short = |key: &str| key.rsplit('/').next().unwrap_or_default().to_owned();
                let text = format!("{} repeats what the list of {} says", short(key), short(list));
                found.push(Found::new(pool.document, format!("{REQUIREMENTS}[{at}]"), text).fix(format!("drop {key}")));
            }
        }
    }
    found
}

fn same_without(pool: &Pool, supply: &Supply, at: usize, all: &[std::sync::Arc<str>]) -> bool {
    let mut vocabulary = supply.vocabulary.clone();
    let rest = without(pool, &[at], &mut vocabulary);
    let rest: Vec<_> = supply
        .left(&pool.pool, &rest, &vocabulary)
        .map(|entry| &entry.name)
        .collect();
    rest.len() == all.len()
}

pub(crate) fn min_values(world: &World) -> Vec<Found> {
    let unmet = |pool: &Pool| {
        let supply = world.supply(pool)?;
        let left = world.left(pool);
        let unmet = needed_for_min_values(left, &pool.requirements, &supply.vocabulary).err()?;
        let found = unmet.labels.into_iter().map(|(key, there)| {
            let at = position(&pool.pool, &key);
            let asked = at.and_then(|at| pool.pool.spec.template.spec.requirements.get(at)?.min_values);
            let path = at.map_or_else(
                || REQUIREMENTS.to_owned(),
                |at| format!("{REQUIREMENTS}[{at}].minValues"),
            );
            let asked = asked.unwrap_or_default();
            let text = format!("minValues {asked} on {key}: its requirements leave {there} different ones");
            Found::new(pool.document, path, text)
                .fix(format!("minValues: {there} at most"))
                .replacing(asked.to_string(), there.to_string())
        });
        Some(found.collect::<Vec<_>>())
    };
    world.pools.iter().filter_map(unmet).flatten().collect()
}
