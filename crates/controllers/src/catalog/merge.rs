//! One catalogue out of what each pool was offered.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    object::{InstanceTypeName, NodePoolName},
    snapshot::{Catalog, CatalogType},
};

/// The catalogue of all pools: every type once, in the order in which the pools, by name, were told of it. A type that a
/// later pool was told of otherwise is kept as a variant of that pool. A pool without types is listed with none, for a
/// pool that is not listed gets all.
pub(super) fn merge(
    offers: impl IntoIterator<Item = (NodePoolName, Vec<Arc<CatalogType>>)>,
    well_known_labels: &[String],
) -> Catalog {
    let mut catalog = Catalog {
        well_known_labels: well_known_labels.iter().map(|label| label.as_str().into()).collect(),
        ..Catalog::default()
    };
    let mut places: BTreeMap<InstanceTypeName, usize> = BTreeMap::new();
    for (pool, types) in offers {
        let mut own = BTreeMap::new();
        let names: BTreeSet<_> = types.iter().map(|offered| offered.name.clone()).collect();
        for offered in types {
            let place = *places
                .entry(offered.name.clone())
                .or_insert(catalog.instance_types.len());
            match catalog.instance_types.get(place) {
                None => catalog.instance_types.push(offered),
                Some(known) if is_same(known, &offered) => {}
                Some(_) => drop(own.insert(offered.name.clone(), offered)),
            }
        }
        if !own.is_empty() {
            catalog
                .node_pool_variants
                .insert(pool.clone(), own.into_values().collect());
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
            node_pool_variants: BTreeMap::new(),
            well_known_labels: vec!["cloud/size".into()].into(),
        };
        assert_eq!(merge(offers, &["cloud/size".to_owned()]), expected);
    }

    #[test]
    fn a_type_that_a_pool_is_told_of_otherwise_is_its_own_variant() {
        let offers = [
            ("a".into(), vec![offered("large", "2"), offered("small", "1")]),
            ("b".into(), vec![offered("small", "9"), offered("large", "2")]),
        ];
        let catalog = merge(offers, &[]);
        let prices = |pool: &str| -> Vec<_> {
            let pool = NodePoolName::from(pool);
            let types = catalog.of_pool(&pool);
            types
                .map(|it| (it.name.to_string(), it.offerings[0].price.to_decimal()))
                .collect()
        };
        let expected =
            |small: &str| [("large", "2"), ("small", small)].map(|(it, price)| (it.to_owned(), price.to_owned()));
        assert_eq!(
            (prices("a"), prices("b")),
            (expected("1").to_vec(), expected("9").to_vec())
        );
    }
}
