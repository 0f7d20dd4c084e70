//! Which labels have a meaning in a snapshot: core's, and those its catalogue calls well-known.

use api::labels::LabelRules;
use model::snapshot::Catalog;

/// How the label of a reservation ends, whatever the provider: the catalogue has no field of its own for it.
const RESERVATION_ID: &str = "reservation-id";

/// The label rules of a catalogue.
pub fn label_rules(catalog: &Catalog) -> LabelRules {
    let named = catalog.well_known_labels.iter().map(AsRef::as_ref);
    LabelRules::new(&[]).with_well_known(named.chain(reservation_keys(catalog)))
}

fn reservation_keys(catalog: &Catalog) -> impl Iterator<Item = &str> {
    let offerings = catalog.instance_types.iter().flat_map(|entry| &entry.offerings);
    let keys = offerings.flat_map(|offering| &offering.requirements);
    keys.map(|requirement| requirement.key.as_str())
        .filter(|key| key.ends_with(RESERVATION_ID))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogue_labels_and_the_reservation_label_are_well_known() {
        let offering = r#"{"price":"1","requirements":[{"key":"cloud/reservation-id","operator":"In","values":["r"]},
            {"key":"cloud/rack","operator":"In","values":["1"]}]}"#;
        let entry = format!(r#"{{"name":"a","offerings":[{offering}]}}"#);
        let catalog = Catalog {
            instance_types: vec![serde_json::from_str(&entry).unwrap()],
            well_known_labels: vec!["cloud/size".into()].into(),
            ..Catalog::default()
        };
        let rules = label_rules(&catalog);
        let is_known = ["cloud/reservation-id", "cloud/size", "cloud/rack"].map(|key| rules.is_well_known(key));
        assert_eq!(is_known, [true, true, false]);
    }
}
