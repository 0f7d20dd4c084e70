//! What can be launched, from what the double of AWS describes: 1,263 types with real numbers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails")]
#![expect(clippy::needless_pass_by_value, reason = "manifests are written where they are used")]

#[path = "../double/mod.rs"]
mod double;
mod market;
mod resources;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::{aws::EC2NodeClass, labels};
use catalogue::Source;
use cloud::OfferingKey;
use cloud_aws::{
    Shortage,
    offers::{
        Offers,
        prices::{PriceSource, Prices, product},
    },
};
use model::{
    requirement::RequirementSpec,
    snapshot::{CatalogOffering, CatalogType},
};
use runtime::{Clock, Metrics, Settings};
use serde_json::json;

fn settings(change: impl FnOnce(&mut Settings)) -> Arc<Settings> {
    let mut settings = Settings::default();
    change(&mut settings);
    Arc::new(settings)
}

async fn offers(region: &str, change: impl FnOnce(&mut Settings)) -> Offers {
    let clients = double::clients(region).await;
    let offers = Offers::new(clients, Clock::system(), settings(change), Arc::new(Metrics::default())).unwrap();
    offers.discover().await.unwrap();
    offers
}

fn class(region: &str, zones: &[&str], spec: serde_json::Value) -> EC2NodeClass {
    let mut whole = json!({
        "subnetSelectorTerms": [{"tags": {"a": "b"}}],
        "securityGroupSelectorTerms": [{"tags": {"a": "b"}}],
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": "node",
    });
    whole
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().cloned().unwrap_or_default());
    let subnets: Vec<_> = zones
        .iter()
        .map(|zone| json!({"id": format!("subnet-{zone}"), "zone": format!("{region}{zone}"), "zoneID": format!("id-{zone}")}))
        .collect();
    serde_json::from_value(json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
        "metadata": {"name": "default", "uid": "1"},
        "spec": whole,
        "status": {"subnets": subnets},
    }))
    .unwrap()
}

fn find(types: &[Arc<CatalogType>], name: &str) -> Arc<CatalogType> {
    let found = types.iter().find(|entry| entry.name.as_str() == name);
    Arc::clone(found.unwrap_or_else(|| panic!("no {name}")))
}

fn offering<'a>(entry: &'a CatalogType, zone: &str, kind: &str) -> &'a CatalogOffering {
    let has = |offering: &CatalogOffering, key: &str, value: &str| {
        let found = offering.requirements.iter().find(|it| it.key == key);
        found.is_some_and(|it| it.values == [value])
    };
    let found = entry
        .offerings
        .iter()
        .find(|it| has(it, labels::ZONE, zone) && has(it, labels::CAPACITY_TYPE, kind));
    found.unwrap_or_else(|| panic!("{} has no {kind} offering in {zone}", entry.name))
}

/// Labels that depend on zones and on how an account may buy, rather than on the type.
const OF_THE_SALE: [&str; 3] = [labels::ZONE, labels::CAPACITY_TYPE, labels::aws::ZONE_ID];

fn of_the_type(entry: &CatalogType) -> BTreeMap<&str, &RequirementSpec> {
    let all = entry.requirements.iter().map(|it| (it.key.as_str(), it));
    all.filter(|(key, _)| !OF_THE_SALE.contains(key)).collect()
}

#[tokio::test]
async fn every_type_that_ec2_describes_is_what_the_published_reference_says() {
    let offers = offers("us-east-1", |_| {}).await;
    let types = offers.types(&class("us-east-1", &["a"], json!({})), None).unwrap();
    let published = catalogue::load(Source::Aws, Some("us-east-1"), &[]).unwrap().catalog;
    let mut compared = 0;
    for entry in &types {
        let Some(expected) = published.get(&entry.name) else {
            continue;
        };
        assert_eq!(entry.capacity, expected.capacity, "{} has another capacity", entry.name);
        assert_eq!(entry.overhead, expected.overhead, "{} has another overhead", entry.name);
        assert_eq!(
            of_the_type(entry),
            of_the_type(expected),
            "{} has other labels",
            entry.name
        );
        compared += 1;
    }
    // What both know: the double lacks types that are newer, our table those without a price.
    assert!(compared > 1200, "{compared}");
}

#[tokio::test]
async fn a_type_is_offered_in_every_zone_but_to_be_had_only_where_there_is_a_subnet_of_the_class() {
    let offers = offers("us-west-2", |_| {}).await;
    let types = offers.types(&class("us-west-2", &["a"], json!({})), None).unwrap();
    let entry = find(&types, "m5.large");
    let is_available = |zone: &str| offering(&entry, zone, "on-demand").available;
    assert!(is_available("us-west-2a"));
    assert!(!is_available("us-west-2b"));
    let zone_id = offering(&entry, "us-west-2a", "spot").requirements.last().unwrap();
    assert_eq!(
        (zone_id.key.as_str(), zone_id.values[0].as_str()),
        (labels::aws::ZONE_ID, "id-a")
    );
}

#[tokio::test]
async fn a_class_decides_about_pods_disks_and_reserves() {
    let offers = offers("us-west-2", |settings| settings.aws.reserved_enis = 1).await;
    let class_of = |spec| class("us-west-2", &["a"], spec);
    let amount = |spec: serde_json::Value, name: &str, resource: &str| {
        let types = offers.types(&class_of(spec), None).unwrap();
        find(&types, name).capacity.amount(resource).value()
    };
    // 3 interfaces with 10 addresses each, one of them reserved.
    assert_eq!(amount(json!({}), "m5.large", "pods"), 2 * 9 + 2);
    assert_eq!(amount(json!({"kubelet": {"maxPods": 50}}), "m5.large", "pods"), 50);
    assert_eq!(amount(json!({"kubelet": {"podsPerCore": 4}}), "m5.large", "pods"), 8);
    let bottlerocket = json!({"amiSelectorTerms": [{"alias": "bottlerocket@latest"}], "kubelet": {"podsPerCore": 4}});
    assert_eq!(amount(bottlerocket, "m5.large", "pods"), 20, "it has no podsPerCore");
    let windows = json!({"amiSelectorTerms": [{"alias": "windows2022@latest"}]});
    assert_eq!(amount(windows.clone(), "m5.large", "pods"), 110);
    assert_eq!(amount(windows, "m5.large", "vpc.amazonaws.com/PrivateIPv4Address"), 9);
    let disks = json!({"blockDeviceMappings": [
        {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "100Gi"}},
        {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "200Gi"}},
    ]});
    assert_eq!(amount(disks, "m5.large", "ephemeral-storage"), 100 << 30);
    let raid = json!({"instanceStorePolicy": "RAID0"});
    assert_eq!(amount(raid.clone(), "m5d.large", "ephemeral-storage"), 75_000_000_000);
    assert_eq!(amount(raid, "m5.large", "ephemeral-storage"), 20 << 30);
    let efa = json!({"networkInterfaces": [
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
        {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"},
    ]});
    assert_eq!(amount(efa.clone(), "c6in.32xlarge", "vpc.amazonaws.com/efa"), 1);
    let kubelet = json!({"kubelet": {
        "kubeReserved": {"memory": "1Gi"}, "systemReserved": {"cpu": "500m"},
        "evictionHard": {"memory.available": "5%", "nodefs.available": "100%"},
    }});
    let types = offers.types(&class_of(kubelet), None).unwrap();
    let entry = find(&types, "m5.large");
    let memory = entry.capacity.amount("memory").value();
    assert_eq!(entry.overhead.kube_reserved.amount("memory").value(), 1 << 30);
    assert_eq!(entry.overhead.kube_reserved.amount("cpu").milli_value(), 70);
    assert_eq!(entry.overhead.system_reserved.amount("cpu").milli_value(), 500);
    assert_eq!(
        entry.overhead.eviction_threshold.amount("memory").value(),
        (memory + 19) / 20
    );
    assert!(entry.overhead.eviction_threshold.amount("ephemeral-storage").is_zero());
}

#[tokio::test]
async fn a_type_that_the_class_cannot_use_is_listed_and_not_to_be_had() {
    let offers = offers("us-west-2", |_| {}).await;
    let is_available = |spec: serde_json::Value, name: &str| {
        let types = offers.types(&class("us-west-2", &["a", "b", "c"], spec), None).unwrap();
        find(&types, name).offerings.iter().any(|it| it.available)
    };
    assert!(!is_available(json!({}), "a1.large"));
    let bottlerocket = json!({"amiSelectorTerms": [{"alias": "bottlerocket@latest"}]});
    assert!(is_available(bottlerocket, "a1.large"));
    let tracking = json!({"connectionTracking": {"udpTimeout": 45}});
    assert!(is_available(tracking.clone(), "m5.large"));
    assert!(!is_available(tracking, "m4.large"), "it has no nitro");
    let many = json!({"networkInterfaces": [
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
        {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
    ]});
    assert!(!is_available(many, "m5.large"), "it has one network card");
}

#[tokio::test]
async fn what_ran_out_is_not_to_be_had_and_the_version_says_that_something_changed() {
    let offers = offers("us-west-2", |_| {}).await;
    let class = class("us-west-2", &["a", "b"], json!({}));
    let before = (offers.version(), offers.types(&class, None).unwrap());
    offers.mark_unavailable(&Shortage {
        instance_type: Some("m5.large".into()),
        zone: Some("us-west-2a".to_owned()),
        capacity_type: Some("spot".to_owned()),
        reason: "InsufficientInstanceCapacity".to_owned(),
        ..Shortage::default()
    });
    let after = offers.types(&class, None).unwrap();
    assert!(offers.version() > before.0);
    let is_available = |zone: &str, kind: &str| offering(&find(&after, "m5.large"), zone, kind).available;
    assert!(!is_available("us-west-2a", "spot"));
    assert!(is_available("us-west-2a", "on-demand"));
    assert!(is_available("us-west-2b", "spot"));
    // The others are the very same: nothing was made anew for them.
    assert!(Arc::ptr_eq(&find(&before.1, "m5.xlarge"), &find(&after, "m5.xlarge")));
    // A whole capacity type, as when the account has no role for spot.
    offers.mark_unavailable(&Shortage {
        capacity_type: Some("spot".to_owned()),
        ..Shortage::default()
    });
    let after = offers.types(&class, None).unwrap();
    assert!(!offering(&find(&after, "m5.xlarge"), "us-west-2b", "spot").available);
    // What is known survives a restart.
    let kept = serde_json::to_string(&offers.keepsake()).unwrap();
    let again = self::offers("us-west-2", |_| {}).await;
    again.remember(serde_json::from_str(&kept).unwrap());
    let types = again.types(&class, None).unwrap();
    assert!(!offering(&find(&types, "m5.large"), "us-west-2a", "spot").available);
}

#[tokio::test]
async fn prices_are_the_built_in_ones_until_aws_has_named_others_and_spot_costs_as_much_until_then() {
    let region = "eu-west-1";
    let offers = offers(region, |_| {}).await;
    let class = class(region, &["a", "b"], json!({}));
    let price = |zone: &str, kind: &str| {
        let types = offers.types(&class, None).unwrap();
        let entry = find(&types, "m5.large");
        let offering = offering(&entry, zone, kind);
        (offering.price.to_decimal(), offering.available)
    };
    let built_in = ("0.107".to_owned(), true);
    assert_eq!(price("eu-west-1a", "on-demand"), built_in);
    assert_eq!(price("eu-west-1a", "spot"), built_in);
    assert!(matches!(offers.price_source(), PriceSource::BuiltIn(day) if day.len() == 10));
    let clients = double::clients(region).await;
    double::tell(&clients, "prices", &json!({"m5.large": 0.2, "m5.metal": 5.5})).await;
    double::tell(&clients, "spot-prices", &json!({"m5.large": {"eu-west-1a": 0.05}})).await;
    offers.reprice().await.unwrap();
    assert!(matches!(offers.price_source(), PriceSource::Asked(_)));
    assert_eq!(price("eu-west-1a", "on-demand"), ("0.2".to_owned(), true));
    assert_eq!(price("eu-west-1a", "spot"), ("0.05".to_owned(), true));
    assert!(!price("eu-west-1b", "spot").1, "a zone without a price sells none");
}

#[tokio::test]
async fn a_failed_question_leaves_the_old_prices_standing() {
    let region = "eu-central-1";
    let offers = offers(region, |_| {}).await;
    let clients = double::clients(region).await;
    // Without bare metal the answer is not whole.
    double::tell(&clients, "prices", &json!({"m5.large": 0.2})).await;
    let failed = offers.reprice().await.unwrap_err();
    assert_eq!(failed.to_string(), "no on-demand pricing found");
    assert!(matches!(offers.price_source(), PriceSource::BuiltIn(_)));
}

#[tokio::test]
async fn in_an_isolated_vpc_on_demand_prices_are_not_asked_for() {
    let region = "ap-south-1";
    let offers = offers(region, |settings| settings.aws.isolated_vpc = true).await;
    let clients = double::clients(region).await;
    double::tell(&clients, "prices", &json!({"m5.large": 0.2, "m5.metal": 5.5})).await;
    offers.reprice().await.unwrap();
    assert!(matches!(offers.price_source(), PriceSource::BuiltIn(_)));
}

#[tokio::test]
async fn reserved_places_are_all_but_free_and_to_be_had_while_there_are_some() {
    let offers = offers("us-west-2", |_| {}).await;
    let mut class = class("us-west-2", &["a"], json!({}));
    let reservation = json!({
        "availabilityZone": "us-west-2a", "id": "cr-1", "instanceMatchCriteria": "targeted",
        "instanceType": "m5.large", "ownerID": "123456789012",
    });
    let status = class.status.as_mut().unwrap();
    status
        .capacity_reservations
        .push(serde_json::from_value(reservation).unwrap());
    offers.read_reservation("cr-1", 2);
    let types = offers.types(&class, None).unwrap();
    let entry = find(&types, "m5.large");
    let reserved = offering(&entry, "us-west-2a", "reserved");
    assert_eq!((reserved.available, reserved.reservation_capacity), (true, 2));
    let on_demand = offering(&entry, "us-west-2a", "on-demand").price;
    assert_eq!(reserved.price.picos(), on_demand.picos() / 10_000_000);
    offers.note_reservation("cr-1", cloud_aws::ReservationNote::Unavailable);
    let types = offers.types(&class, None).unwrap();
    assert!(!offering(&find(&types, "m5.large"), "us-west-2a", "reserved").available);
}

#[tokio::test]
async fn memory_that_a_node_has_shown_counts_instead_of_the_estimate() {
    let offers = offers("us-west-2", |_| {}).await;
    let class = class("us-west-2", &["a"], json!({}));
    offers.see_memory("m5.large", &class, 7_000_000_000);
    let types = offers.types(&class, None).unwrap();
    assert_eq!(
        find(&types, "m5.large").capacity.amount("memory").value(),
        7_000_000_000
    );
    assert_ne!(
        find(&types, "m5.xlarge").capacity.amount("memory").value(),
        7_000_000_000
    );
}

#[tokio::test]
async fn nothing_can_be_said_before_subnets_are_known() {
    let offers = offers("us-west-2", |_| {}).await;
    let error = offers.types(&class("us-west-2", &[], json!({})), None).unwrap_err();
    assert_eq!(error.to_string(), "no subnets found");
}

#[tokio::test]
async fn requests_are_counted_by_service_action_and_status() {
    let metrics = Arc::new(Metrics::default());
    let clients = double::clients_counted("us-west-2", Some(Arc::clone(&metrics))).await;
    clients.ec2.describe_subnets().send().await.unwrap();
    clients
        .ec2
        .describe_subnets()
        .subnet_ids("subnet-none")
        .send()
        .await
        .unwrap_err();
    let page = metrics.page(runtime::settings::MetricsProfile::Standard);
    let text: String = page.collect();
    assert!(
        text.contains(r#"aws_sdk_go_request_total{action="DescribeSubnets",service="EC2",status_code="200"} 1"#),
        "{text}"
    );
    assert!(
        text.contains(r#"aws_sdk_go_request_total{action="DescribeSubnets",service="EC2",status_code="400"} 1"#),
        "{text}"
    );
}

#[tokio::test]
async fn offerings_rank_by_how_often_machines_are_taken_back_only_where_that_is_asked_for() {
    let key = OfferingKey {
        instance_type: "m5.large".into(),
        zone: "us-west-2a".into(),
        capacity_type: "spot".into(),
    };
    let class = class("us-west-2", &["a"], json!({}));
    let prices = |offers: &Offers| {
        let entry = find(&offers.types(&class, None).unwrap(), "m5.large");
        ["spot", "on-demand"].map(|kind| offering(&entry, "us-west-2a", kind).price)
    };
    let counted_in = |settings: &mut Settings| {
        settings.aws.interruption_cost = Duration::from_hours(1);
    };
    let (plain, ranked) = tokio::join!(offers("us-west-2", |_| {}), offers("us-west-2", counted_in));
    let [list_price, on_demand] = prices(&plain);
    let version = ranked.version();
    for offers in [&plain, &ranked] {
        offers.interrupted(&key);
        offers.ran(&BTreeMap::from([(key.clone(), 8)]), Duration::from_hours(2));
    }
    assert_eq!(prices(&plain), [list_price, on_demand]);
    // Once in forty hours of machine time, and the twentieth part that is assumed: 1.05 in 40 hours.
    let lost = list_price.picos() * 26_250 / 1_000_000;
    assert_eq!(prices(&ranked)[0].picos(), list_price.picos() + lost);
    assert_eq!(prices(&ranked)[1], on_demand);
    assert!(ranked.version() > version);
    // A restart does not make it forget.
    let later = offers("us-west-2", counted_in).await;
    later.remember(ranked.keepsake());
    assert_eq!(prices(&later), prices(&ranked));
}

#[test]
fn prices_are_in_yuan_in_china_and_stay_the_tables_in_govcloud() {
    let per_unit = json!({"USD": "0.17", "CNY": "1.20"});
    let terms = json!({"OnDemand": {"term": {"priceDimensions": {"hour": {"pricePerUnit": per_unit}}}}});
    let text = json!({"product": {"attributes": {"instanceType": "c98.large"}}, "terms": terms}).to_string();
    let price = |region| product(&text, region).unwrap().1.to_decimal();
    assert_eq!([price("cn-north-1"), price("us-east-1")], ["1.2", "0.17"]);
    let is_asked = |region| Prices::built_in(region, false).unwrap().0.asks_on_demand();
    assert_eq!(
        ["cn-north-1", "us-gov-west-1", "us-east-1"].map(is_asked),
        [true, false, true]
    );
    let known = |region, name| Prices::built_in(region, false).unwrap().0.on_demand(name);
    let prices = ["us-east-1", "us-gov-west-1", "cn-north-1", "cn-northwest-1"].map(|region| known(region, "c5.large"));
    let prices = prices.map(|price| price.map_or_else(String::new, model::price::Price::to_decimal));
    assert_eq!(prices, ["0.085", "0.102", "0.739", "0.085"]);
    assert_eq!(known("cn-north-1", "m8g.large"), None, "it is not sold there");
}
