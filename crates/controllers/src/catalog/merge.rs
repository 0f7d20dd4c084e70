//! One catalogue out of what each pool was offered.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    object::{InstanceTypeName, NodePoolName},
    snapshot::{Catalog, CatalogType},
};

/// The catalogue of all pools: every type once, in the order in which the pools, by name, were told of it. A pool without
/// types is listed with none, for a pool that is not listed gets all.
pub(super) fn merge(
    offers: impl IntoIterator<Item = (NodePoolName, Vec<Arc<CatalogType>>)>,
    well_known_labels: Vec<String>,
) -> Catalog {
    let mut catalog = Catalog {
        well_known_labels: well_known_labels.iter().map(|label| label.as_str().into()).collect(),
        ..Catalog::default()
    };
    let mut places: BTreeMap<InstanceTypeName, usize> = BTreeMap::new();
    for (pool, types) in offers {
        let mut names = BTreeSet::new();
        for offered in types {
            let name = offered.name.clone();
            let place = *places.entry(name.clone()).or_insert(catalog.instance_types.len());
            match catalog.instance_types.get(place) {
                None => catalog.instance_types.push(offered),
                Some(known) if is_same(known, &offered) => {}
                Some(_) => tracing::error!(
                    "NodePool.name" = %pool, "instance-type" = %name,
                    "node classes describe an instance type differently; the first description is used for all pools"
                ),
            }
            names.insert(name);
        }
        catalog
            .node_pool_instance_types
            .insert(pool, names.into_iter().collect());
    }
    catalog
}

fn is_same(one: &Arc<CatalogType>, other: &Arc<CatalogType>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

#[cfg(test)]
mod tests {
    use model::object::List;

    use super::*;

    fn offered(name: &str, price: &str) -> Arc<CatalogType> {
        let json = format!(r#"{{"name":"{name}","offerings":[{{"price":"{price}","available":true}}]}}"#);
        Arc::new(serde_json::from_str(&json).unwrap())
    }

    fn names(names: &[&str]) -> List<InstanceTypeName> {
        names.iter().map(|name| InstanceTypeName::from(*name)).collect()
    }

    #[test]
    fn pools_share_the_types_they_are_offered_alike_and_a_pool_without_types_gets_none() {
        let offers = [
            ("a".into(), vec![offered("large", "2"), offered("small", "1")]),
            ("b".into(), vec![offered("huge", "4"), offered("large", "2")]),
            ("c".into(), Vec::new()),
        ];
        let expected = Catalog {
            instance_types: vec![offered("large", "2"), offered("small", "1"), offered("huge", "4")],
            node_pool_instance_types: [
                ("a".into(), names(&["large", "small"])),
                ("b".into(), names(&["huge", "large"])),
                ("c".into(), names(&[])),
            ]
            .into(),
            well_known_labels: vec!["cloud/size".into()].into(),
        };
        assert_eq!(merge(offers, vec!["cloud/size".to_owned()]), expected);
    }
}
