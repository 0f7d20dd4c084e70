//! What a class and its kubelet leave of a type for pods, and which devices types have.

use cloud_aws::offers::Offers;
use serde_json::{Value, json};

use crate::{class, find, offers};

const MIB: i64 = 1 << 20;

fn merged(one: Value, two: Value) -> Value {
    let mut all = one;
    all.as_object_mut().unwrap().extend(two.as_object().unwrap().clone());
    all
}

/// A class of an image family.
fn of_family(family: &str) -> Value {
    match family {
        "custom" => json!({"amiFamily": "Custom", "amiSelectorTerms": [{"id": "ami-1"}]}),
        family => json!({"amiSelectorTerms": [{"alias": format!("{family}@latest")}]}),
    }
}

/// Pods and what is kept of memory for the kubelet, in MiB, of a t3.large: three interfaces with twelve addresses each.
fn pods_and_reserve(offers: &Offers, spec: Value) -> (i64, i64) {
    let types = offers.types(&class("us-west-2", &["a"], spec), None).unwrap();
    let entry = find(&types, "t3.large");
    let reserve = entry.overhead.kube_reserved.amount("memory").value();
    (entry.capacity.amount("pods").value(), reserve / MIB)
}

#[tokio::test]
async fn fewer_pods_need_a_smaller_reserve_only_where_the_image_reckons_with_them() {
    let plain = offers("us-west-2", |_| {}).await;
    let with_reserved = offers("us-west-2", |settings| settings.aws.reserved_enis = 1).await;
    let ten_pods = json!({"kubelet": {"maxPods": 10}});
    // 11 MiB for each pod, and 255 more. AL2 and AL2023 reckon with all addresses, however few pods there may be.
    let (all, ten, few, windows) = (11 * 35 + 255, 11 * 10 + 255, 11 * 24 + 255, 11 * 110 + 255);
    for (family, of_ten, of_fewer_interfaces) in [
        ("al2", (10, all), (24, all)),
        ("al2023", (10, all), (24, all)),
        ("custom", (10, all), (24, all)),
        ("bottlerocket", (10, ten), (24, few)),
        ("windows2019", (10, ten), (110, windows)),
        ("windows2022", (10, ten), (110, windows)),
        ("windows2025", (10, ten), (110, windows)),
    ] {
        let limited = merged(of_family(family), ten_pods.clone());
        assert_eq!(pods_and_reserve(&plain, limited), of_ten, "{family} with ten pods");
        assert_eq!(
            pods_and_reserve(&with_reserved, of_family(family)),
            of_fewer_interfaces,
            "{family} with one interface less"
        );
    }
}

#[tokio::test]
async fn memory_is_kept_free_as_the_hard_threshold_says_whatever_the_soft_one_does() {
    let offers = offers("us-west-2", |_| {}).await;
    let kept = |family: &str, hard: Value, soft: Value| {
        let threshold = |value: Value| match value {
            Value::Null => json!({}),
            value => json!({"memory.available": value}),
        };
        let kubelet = json!({"kubelet": {
            "kubeReserved": {"memory": "1Gi"}, "systemReserved": {"memory": "2Gi"},
            "evictionHard": threshold(hard), "evictionSoft": threshold(soft),
        }});
        let spec = merged(of_family(family), kubelet);
        let types = offers.types(&class("us-west-2", &["a"], spec), None).unwrap();
        let entry = find(&types, "m5.xlarge");
        let memory = entry.capacity.amount("memory").value();
        (entry.overhead.eviction_threshold.amount("memory").value(), memory)
    };
    let quantities = [
        ("al2023", json!("500Mi"), Value::Null, 500),
        ("al2023", Value::Null, json!("50Mi"), 100),
        ("al2023", Value::Null, json!("100%"), 100),
        ("al2023", json!("1Gi"), json!("10Gi"), 1024),
        ("al2023", json!("1Gi"), json!("5%"), 1024),
        ("al2023", json!("100%"), Value::Null, 0),
        ("bottlerocket", json!("1Gi"), json!("10Gi"), 1024),
        ("bottlerocket", Value::Null, Value::Null, 100),
    ];
    for (family, hard, soft, expected) in quantities {
        let (bytes, _) = kept(family, hard.clone(), soft.clone());
        assert_eq!(bytes, expected * MIB, "{family} {hard} {soft}");
    }
    for (hard, soft, parts) in [(json!("10%"), Value::Null, 10), (json!("5%"), json!("10%"), 20)] {
        let (bytes, memory) = kept("al2023", hard.clone(), soft.clone());
        assert_eq!(bytes, (memory + parts - 1) / parts, "{hard} {soft}");
    }
}

#[tokio::test]
async fn types_have_the_devices_that_pods_ask_for_and_no_others() {
    let offers = offers("us-east-1", |_| {}).await;
    let types = offers.types(&class("us-east-1", &["a"], json!({})), None).unwrap();
    let (nvidia, amd, gaudi) = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi");
    let (neuron, core) = ("aws.amazon.com/neuron", "aws.amazon.com/neuroncore");
    let (pod_eni, efa) = ("vpc.amazonaws.com/pod-eni", "vpc.amazonaws.com/efa");
    for (name, resource, count) in [
        ("g4dn.12xlarge", nvidia, 4),
        ("g4dn.8xlarge", nvidia, 1),
        ("g4ad.16xlarge", amd, 4),
        ("dl1.24xlarge", gaudi, 8),
        ("inf1.2xlarge", neuron, 1),
        ("inf1.6xlarge", neuron, 4),
        ("trn1.2xlarge", neuron, 1),
        ("trn1.2xlarge", core, 2),
        ("inf2.24xlarge", neuron, 6),
        ("inf2.24xlarge", core, 12),
        ("m6g.large", pod_eni, 9),
        ("t3.large", pod_eni, 0),
        ("m5.large", nvidia, 0),
        ("m5.large", neuron, 0),
        ("dl1.24xlarge", efa, 4),
        ("c5n.18xlarge", efa, 1),
        ("m5.large", efa, 0),
        ("m5.large", "vpc.amazonaws.com/PrivateIPv4Address", 0),
    ] {
        let amount = find(&types, name).capacity.amount(resource).value();
        assert_eq!(amount, count, "{resource} of {name}");
    }
}

#[tokio::test]
async fn an_efa_interface_of_another_network_card_costs_no_pods() {
    let offers = offers("us-east-1", |_| {}).await;
    let pods = |card: u32, device: u32| {
        let interfaces = json!({"networkInterfaces": [
            {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
            {"networkCardIndex": card, "deviceIndex": device, "interfaceType": "efa-only"},
        ]});
        let types = offers.types(&class("us-east-1", &["a"], interfaces), None).unwrap();
        find(&types, "m6idn.32xlarge").capacity.amount("pods").value()
    };
    // Eight interfaces with fifty addresses each on the first card.
    assert_eq!((pods(1, 0), pods(0, 1)), (8 * 49 + 2, 7 * 49 + 2));
}
