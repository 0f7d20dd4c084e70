//! What moves between two reads of EC2: shifts of zones, prices of overlays, pages of prices.

use std::{collections::BTreeSet, sync::Arc};

use cloud_aws::offers::Offers;
use runtime::{Clock, Metrics, settings::MetricsProfile};
use serde_json::{Value, json};

use crate::{class, double, find, offering, offers, settings};

#[tokio::test]
async fn nothing_is_to_be_had_in_a_zone_while_it_is_shifted_away_from() {
    let offers = offers("us-west-2", |_| {}).await;
    let class = class("us-west-2", &["a", "b"], json!({}));
    let is_available = |zone: &str| {
        let types = offers.types(&class, None).unwrap();
        let entry = find(&types, "m5.large");
        ["spot", "on-demand"].map(|kind| offering(&entry, zone, kind).available)
    };
    assert_eq!(is_available("us-west-2a"), [true; 2]);
    offers.shift(BTreeSet::from(["id-a".to_owned()]));
    assert_eq!(
        (is_available("us-west-2a"), is_available("us-west-2b")),
        ([false; 2], [true; 2])
    );
    offers.shift(BTreeSet::new());
    assert_eq!(is_available("us-west-2a"), [true; 2]);
}

#[tokio::test]
async fn a_type_without_a_price_is_to_be_had_once_an_overlay_names_one() {
    let offers = offers("us-east-1", |_| {}).await;
    let class = class("us-east-1", &["a", "b", "c", "d", "e", "f"], json!({}));
    let bought = || {
        let types = offers.types(&class, None).unwrap();
        let entry = find(&types, "dl1.24xlarge");
        let mut bought = entry
            .offerings
            .iter()
            .filter(|it| it.available)
            .map(|it| it.price.to_decimal());
        bought.next()
    };
    assert_eq!(bought(), None);
    let overlay = |price: &str| [("dl1.24xlarge".to_owned(), price.parse().unwrap())].into();
    offers.overlay(overlay("13.1"));
    assert_eq!(bought().as_deref(), Some("13.1"));
    // One that has a price keeps it: the plan puts overlays on such prices itself.
    let price = |name: &str| {
        let types = offers.types(&class, None).unwrap();
        offering(&find(&types, name), "us-east-1a", "on-demand").price
    };
    let before = price("m5.large");
    offers.overlay([("m5.large".to_owned(), "0.001".parse().unwrap())].into());
    assert_eq!((price("m5.large"), bought()), (before, None));
}

#[tokio::test]
async fn cores_and_memory_of_types_are_on_the_metrics_page() {
    let metrics = Arc::new(Metrics::default());
    let clients = double::clients("us-west-2").await;
    let offers = Offers::new(clients, Clock::system(), settings(|_| {}), Arc::clone(&metrics)).unwrap();
    offers.discover().await.unwrap();
    let page: String = metrics.page(MetricsProfile::Full).collect();
    for line in [
        "karpenter_cloudprovider_instance_type_cpu_cores{instance_type=\"m5.xlarge\"} 4",
        "karpenter_cloudprovider_instance_type_memory_bytes{instance_type=\"m5.xlarge\"} 1.7179869184e+10",
    ] {
        assert!(page.lines().any(|it| it == line), "{line}");
    }
}

#[tokio::test]
async fn prices_come_in_as_many_pages_as_aws_likes_and_spot_under_either_of_two_names() {
    let region = "ap-northeast-2";
    let offers = offers(region, |_| {}).await;
    let class = class(region, &["a"], json!({}));
    let (many, zone): (usize, String) = (250, format!("{region}a"));
    let types = offers.types(&class, None).unwrap();
    let names: Vec<String> = types
        .iter()
        .map(|it| it.name.to_string())
        .filter(|it| !it.contains("metal"))
        .collect();
    let names: Vec<&String> = names.iter().take(many).collect();
    let clients = double::clients(region).await;
    let mut prices: serde_json::Map<String, Value> = names.iter().map(|name| ((*name).clone(), json!(7.5))).collect();
    prices.insert("m5.metal".to_owned(), json!(8.5));
    double::tell(&clients, "prices", &Value::Object(prices)).await;
    let spot: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| ((*name).clone(), json!({&zone: 2.5})))
        .collect();
    double::tell(&clients, "spot-prices", &Value::Object(spot)).await;
    offers.reprice().await.unwrap();
    let types = offers.types(&class, None).unwrap();
    for name in names {
        let entry = find(&types, name);
        let priced = entry.offerings.iter().filter(|it| {
            let zones = it
                .requirements
                .iter()
                .filter(|it| it.key == "topology.kubernetes.io/zone");
            zones.flat_map(|it| &it.values).any(|value| *value == zone)
        });
        let mut found: Vec<String> = priced.map(|it| it.price.to_decimal()).collect();
        found.sort();
        assert!(
            found.iter().all(|price| price == "2.5" || price == "7.5"),
            "{name}: {found:?}"
        );
    }
    let of_metal = offering(&find(&types, "m5.metal"), &zone, "on-demand")
        .price
        .to_decimal();
    assert_eq!(of_metal, "8.5");
}
