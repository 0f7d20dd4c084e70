//! Are prices laid over the right offers, and wrong ones refused by line and value?

use std::io::Write;

use model::{
    requirement::{Operator, RequirementSpec},
    resources::ResourceList,
};

use super::*;

fn requirement(key: &str, value: &str) -> RequirementSpec {
    RequirementSpec {
        key: key.to_owned(),
        operator: Operator::In,
        values: vec![value.to_owned()],
        min_values: None,
    }
}

fn catalog() -> Catalog {
    let offering = |zone: &str, capacity: &str| CatalogOffering {
        requirements: vec![requirement(CAPACITY_TYPE, capacity), requirement(ZONE, zone)],
        price: "1".parse().unwrap(),
        available: true,
        reservation_capacity: 0,
        capacity_override: ResourceList::default(),
        overhead_override: None,
    };
    let offerings = vec![offering("a", "spot"), offering("b", "spot"), offering("a", "on-demand")];
    let json = serde_json::json!({"name": "m5.large", "offerings": offerings});
    Catalog {
        instance_types: vec![Arc::new(serde_json::from_value(json).unwrap())],
        ..Catalog::default()
    }
}

/// Prices of spot in a, spot in b, on-demand in a; and what is told.
fn priced(text: &str) -> Result<(Vec<String>, String, String), String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let (catalog, told, of) = applied(file.path(), &catalog()).map_err(|failure| failure.to_string())?;
    let offerings = catalog.instance_types[0].offerings.iter();
    let prices = offerings.map(|offering| offering.price.to_decimal()).collect();
    Ok((prices, told.replace(&file.path().display().to_string(), "FILE"), of))
}

#[test]
fn lines_price_a_zone_or_all_of_them() {
    let (prices, told, _) = priced(
        "instance_type,capacity_type,zone,usd_per_hour\n# of today\nm5.large,spot,,0.05\nm5.large,spot,b,0.04\nx9.large,spot,,1\n",
    )
    .unwrap();
    assert_eq!(prices, ["0.05", "0.04", "1"]);
    assert_eq!(
        told,
        "2 prices of FILE: 2 offers changed; 1 price of what this catalogue does not offer"
    );
}

#[test]
fn of_what_aws_prints_the_newest_price_of_linux_counts() {
    let entry = |zone: &str, price: &str, product: &str, time: &str| {
        serde_json::json!({"InstanceType": "m5.large", "AvailabilityZone": zone, "SpotPrice": price,
            "ProductDescription": product, "Timestamp": time})
    };
    let history = [
        entry("a", "0.0300", "Linux/UNIX", "2026-11-16T09:00:00+00:00"),
        entry("a", "0.0200", "Linux/UNIX", "2026-11-14T09:00:00+00:00"),
        entry("b", "9.0", "Windows", "2026-11-17T09:00:00+00:00"),
    ];
    let (prices, _, of) = priced(&serde_json::json!({ "SpotPriceHistory": history }).to_string()).unwrap();
    assert_eq!(
        (prices, of.as_str()),
        (vec!["0.03".into(), "1".into(), "1".into()], "2026-11-16")
    );
}

#[test]
fn of_what_azure_prints_linux_as_one_goes_counts_in_every_zone() {
    let item = |sku: &str, product: &str, kind: &str, price: f64| {
        serde_json::json!({"armSkuName": "m5.large", "skuName": sku, "productName": product, "type": kind,
            "retailPrice": price, "effectiveStartDate": "2026-11-01T00:00:00Z"})
    };
    let items = [
        item("D2 Spot", "Dv5", "Consumption", 0.02),
        item("D2", "Dv5", "Consumption", 0.1),
        item("D2", "Dv5 Windows", "Consumption", 7.0),
        item("D2", "Dv5", "Reservation", 500.0),
        item("D2 Low Priority", "Dv5", "Consumption", 6.0),
    ];
    let (prices, ..) = priced(&serde_json::json!({ "Items": items }).to_string()).unwrap();
    assert_eq!(prices, ["0.02", "0.02", "0.1"]);
}

#[test]
fn what_cannot_be_meant_is_told_by_line_and_value() {
    let error = priced("m5.large,spot,a\nm5.large,cheap,a,1\nm5.large,spot,a,much\n").unwrap_err();
    for part in [
        "line 1: ",
        "line 2: capacity type \"cheap\"",
        "line 3: \"much\" is no price",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(priced("").unwrap_err().contains("it has no prices"));
    assert!(priced("{}").unwrap_err().contains("SpotPriceHistory"));
    let error = priced("Standard_D2s_v5,spot,eastus-1,0.1\n").unwrap_err();
    assert!(error.contains("such as Standard_D2s_v5 spot in eastus-1"), "{error}");
}
