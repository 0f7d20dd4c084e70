//! Which values of which labels nodes could be launched with: the domains that spread and affinity count over.
//!
//! Whether an instance type can really be launched in a domain is not asked, as upstream does not.

use model::{
    bitset::BitSet,
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
    let mut ways: Vec<(Value, &[Taint])> = Vec::new();
    for offer in pools.iter().filter(|offer| !offer.types.is_empty()) {
        let taints: &[Taint] = &offer.pool.spec.template.spec.taints;
        for (key, values) in values(offer, vocabulary) {
            ways.extend(values.iter().map(|value| ((key, ValueId::from_bit(value)), taints)));
        }
    }
    // Stable: ways stay in the order of the pools, each of which has its values in order already.
    ways.sort_by_key(|(value, _)| *value);
    let domain = |ways: &[(Value, &[Taint])]| {
        let (key, value) = ways.first()?.0;
        let mut taints = Vec::new();
        for (_, of_pool) in ways {
            insert(&mut taints, of_pool);
        }
        Some(Domain { key, value, taints })
    };
    ways.chunk_by(|a, b| a.0 == b.0).filter_map(domain).collect()
}

/// What the pool and each of its types agree on, and what the pool lists itself, key by key. Upstream takes the listed
/// values of a requirement for its domains even when they are the excluded ones.
fn values(offer: &PoolOffer, vocabulary: &mut Vocabulary) -> Vec<(KeyId, BitSet)> {
    let of_pool = pool_requirements(&offer.pool, vocabulary);
    let mut labels: Vec<Label<'_>> = (0..vocabulary.key_count()).map(|_| Label::default()).collect();
    for requirement in of_pool.iter() {
        labels[requirement.key().bit() as usize].of_pool = Some(requirement);
    }
    for of_type in offer.types.iter().flat_map(|ware| ware.entry.requirements.iter()) {
        labels[of_type.key().bit() as usize].meet(of_type, vocabulary);
    }
    for requirement in of_pool.iter() {
        let label = &mut labels[requirement.key().bit() as usize];
        if requirement.operator() == Operator::In || label.types < offer.types.len() {
            label.values.extend(requirement.value_set());
        }
    }
    let met = labels
        .into_iter()
        .filter_map(|label| Some((label.last.or(label.of_pool)?.key(), label.values)));
    met.collect()
}

/// A label, while types are looked at.
#[derive(Default)]
struct Label<'a> {
    of_pool: Option<&'a Requirement>,
    /// What the last type says: many say the same.
    last: Option<&'a Requirement>,
    /// How many types say something.
    types: usize,
    values: BitSet,
}

impl<'a> Label<'a> {
    fn meet(&mut self, of_type: &'a Requirement, vocabulary: &Vocabulary) {
        self.types += 1;
        if self.last.replace(of_type) == Some(of_type) {
            return;
        }
        match self.of_pool {
            Some(of_pool) => self
                .values
                .extend(of_type.intersection(of_pool, vocabulary).value_set()),
            None => self.values.extend(of_type.value_set()),
        }
    }
}

/// A way without taints makes all others superfluous.
fn insert(ways: &mut Vec<Vec<Taint>>, taints: &[Taint]) {
    if taints.is_empty() {
        *ways = vec![Vec::new()];
    } else if !ways.iter().any(|way| way.is_empty() || way[..] == *taints) {
        ways.push(taints.to_vec());
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::demand::fixture::{instance_type, node_pool, snapshot_with};

    /// The domains of a key as `value taints`, over types in z1 and z2.
    fn domains(key: &str, pools: Vec<Value>) -> Vec<String> {
        let types = json!([instance_type("a", "1", &["z1"]), instance_type("b", "1", &["z1", "z2"])]);
        let snapshot = snapshot_with(
            json!({ "instanceTypes": types, "nodePoolInstanceTypes": { "empty": [] } }),
            pools,
        );
        let (pools, mut vocabulary) = Pools::read(&snapshot);
        let universe = universe(&pools, &mut vocabulary);
        let of_key = universe.iter().filter(|domain| vocabulary.key_name(domain.key) == key);
        let text = |domain: &Domain| {
            let way = |way: &Vec<Taint>| {
                way.iter()
                    .map(|taint| taint.key.to_string())
                    .collect::<Vec<_>>()
                    .join("+")
            };
            let ways: Vec<_> = domain.taints.iter().map(way).collect();
            format!(
                "{} [{}]",
                vocabulary.value_name(domain.key, domain.value),
                ways.join(", ")
            )
        };
        of_key.map(text).collect()
    }

    fn pool(name: &str, requirement: Value, taints: &[&str]) -> Value {
        let taint = |key: &&str| json!({ "key": key, "effect": "NoSchedule" });
        let taints: Vec<_> = taints.iter().map(taint).collect();
        node_pool(
            name,
            json!({ "spec": { "template": { "spec": { "requirements": [requirement], "taints": taints } } } }),
        )
    }

    fn requirement(key: &str, operator: &str, values: &[&str]) -> Value {
        json!({ "key": key, "operator": operator, "values": values })
    }

    const ZONE: &str = "topology.kubernetes.io/zone";

    #[test]
    fn domains_are_what_pool_and_type_agree_on_and_what_the_pool_lists() {
        let cases = [
            (ZONE, requirement("team", "Exists", &[]), vec!["z1 []", "z2 []"]),
            (ZONE, requirement(ZONE, "In", &["z2", "z9"]), vec!["z2 []", "z9 []"]),
            (ZONE, requirement(ZONE, "NotIn", &["z1"]), vec!["z2 []"]),
            ("team", requirement("team", "In", &["a"]), vec!["a []"]),
            ("team", requirement("team", "NotIn", &["a"]), vec!["a []"]),
            ("karpenter.sh/nodepool", requirement("team", "Exists", &[]), vec![]),
        ];
        for (key, requirement, mut expected) in cases {
            let mut domains = domains(key, vec![pool("p", requirement.clone(), &[])]);
            domains.sort_unstable();
            expected.sort_unstable();
            assert_eq!(domains, expected, "{key} {requirement}");
        }
    }

    #[test]
    fn ways_with_different_taints_are_kept_until_one_is_without() {
        let z2 = || requirement(ZONE, "In", &["z2"]);
        let tainted = vec![
            pool("a", z2(), &["x"]),
            pool("b", z2(), &["y", "x"]),
            pool("c", z2(), &["x"]),
        ];
        assert_eq!(domains(ZONE, tainted.clone()), ["z2 [x, y+x]"]);
        let with_free = [tainted, vec![pool("0", z2(), &[])]].concat();
        assert_eq!(domains(ZONE, with_free), ["z2 []"]);
    }

    #[test]
    fn pool_without_types_adds_no_domains() {
        let empty = pool("empty", requirement(ZONE, "In", &["z9"]), &[]);
        assert_eq!(domains(ZONE, vec![empty]), [""; 0]);
    }
}
