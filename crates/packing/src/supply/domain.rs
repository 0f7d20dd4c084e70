//! Which values of which labels nodes could be launched with: the domains that spread and affinity count over.
//!
//! Whether an instance type can really be launched in a domain is not asked, as upstream does not.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    object::Taint,
    requirement::{Operator, Requirement},
    vocabulary::{KeyId, ValueId, Vocabulary},
};

use super::{
    Domain,
    pool::{PoolOffer, Pools},
    template::pool_requirements,
};

type Value = (KeyId, ValueId);

/// The domains of all pools that have instance types, sorted by key and value.
pub(super) fn universe(pools: &Pools, vocabulary: &mut Vocabulary) -> Vec<Domain> {
    let mut universe = BTreeMap::<Value, Vec<Vec<Taint>>>::new();
    for offer in pools.iter().filter(|offer| !offer.types.is_empty()) {
        let taints = &offer.pool.spec.template.spec.taints;
        for value in values(offer, vocabulary) {
            insert(universe.entry(value).or_default(), taints);
        }
    }
    let domain = |((key, value), taints)| Domain { key, value, taints };
    universe.into_iter().map(domain).collect()
}

/// What the pool and each of its types agree on, and what the pool lists itself. Upstream takes the listed values of a
/// requirement for its domains even when they are the excluded ones.
fn values(offer: &PoolOffer, vocabulary: &mut Vocabulary) -> BTreeSet<Value> {
    let pool = pool_requirements(&offer.pool, vocabulary);
    let mut values = BTreeSet::new();
    for requirement in pool.iter() {
        let is_in = requirement.operator() == Operator::In;
        let is_left_alone = || offer.types.iter().any(|it| !it.requirements.defines(requirement.key()));
        if is_in || is_left_alone() {
            values.extend(listed(requirement));
        }
    }
    for requirement in offer.types.iter().flat_map(|it| it.requirements.iter()) {
        match pool.get(requirement.key()) {
            Some(of_pool) => values.extend(listed(&requirement.intersection(of_pool, vocabulary))),
            None => values.extend(listed(requirement)),
        }
    }
    values
}

fn listed(requirement: &Requirement) -> Vec<Value> {
    requirement.values().map(|value| (requirement.key(), value)).collect()
}

/// A way without taints makes all others superfluous.
fn insert(ways: &mut Vec<Vec<Taint>>, taints: &[Taint]) {
    if taints.is_empty() {
        *ways = vec![Vec::new()];
    } else if !ways.iter().any(|way| way.is_empty() || way[..] == *taints) {
        ways.push(taints.to_vec());
    }
}
