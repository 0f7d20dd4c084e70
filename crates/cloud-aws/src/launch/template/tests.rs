//! What is in a launch template, and when is it the same one?

#![allow(
    clippy::needless_pass_by_value,
    clippy::redundant_closure_for_method_calls,
    reason = "a test's helpers are called with literals, and the SDK's paths are longer than its calls"
)]

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use model::{instance_type::InstanceType, object::NodeClaim, snapshot::CatalogType, vocabulary::Vocabulary};
use serde_json::{Value, json};

use super::{wire::gibibytes, *};
use crate::{
    border::ClusterFacts,
    launch::template::resolve::{ResolveError, Scene},
};

fn class(spec: Value, status: Value) -> EC2NodeClass {
    let mut whole = json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {
            "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "metadataOptions": {"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled", "httpPutResponseHopLimit": 1, "httpTokens": "required"},
        },
        "status": {
            "securityGroups": [{"id": "sg-1"}, {"id": "sg-2"}],
            "amis": [
                {"id": "ami-arm", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]},
                {"id": "ami-amd", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]},
            ],
            "instanceProfile": "profile",
        },
    });
    merge(&mut whole["spec"], spec);
    merge(&mut whole["status"], status);
    serde_json::from_value(whole).unwrap()
}

fn merge(into: &mut Value, from: Value) {
    for (key, value) in from.as_object().cloned().unwrap_or_default() {
        into[key] = value;
    }
}

fn claim(spec: Value) -> NodeClaim {
    let labels = json!({
        "karpenter.sh/nodepool": "general", "team": "a", "kubernetes.io/arch": "amd64", "x.k8s.io/y": "z",
        "karpenter.k8s.aws/instance-category": "m",
    });
    let mut whole = json!({"metadata": {"name": "general-x", "labels": labels}, "spec": {"requirements": []}});
    merge(&mut whole["spec"], spec);
    serde_json::from_value(whole).unwrap()
}

fn cluster() -> ClusterFacts {
    ClusterFacts {
        name: "dev".to_owned(),
        endpoint: "https://api.example".to_owned(),
        dns_ip: Some("10.100.0.10".to_owned()),
        service_cidr: Some("10.100.0.0/16".to_owned()),
        region: "us-west-2".to_owned(),
        ..ClusterFacts::default()
    }
}

fn offering(zone: &str, capacity_type: &str, more: &[(&str, &str)]) -> Value {
    let fixed = [
        ("topology.kubernetes.io/zone", zone),
        ("karpenter.sh/capacity-type", capacity_type),
    ];
    let requirement = |(key, value): &(&str, &str)| json!({"key": key, "operator": "In", "values": [value]});
    let requirements: Vec<Value> = fixed.iter().chain(more).map(requirement).collect();
    json!({"price": "0.1", "available": true, "reservationCapacity": 1, "requirements": requirements})
}

fn catalogue_type(name: &str, arch: &str, pods: u32, efa: u32, offerings: &[Value]) -> Arc<CatalogType> {
    let described = json!({
        "name": name,
        "capacity": {"pods": pods.to_string(), "cpu": "4", "vpc.amazonaws.com/efa": efa.to_string()},
        "requirements": [
            {"key": "kubernetes.io/arch", "operator": "In", "values": [arch]},
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [name]},
        ],
        "offerings": offerings,
    });
    Arc::new(serde_json::from_value(described).unwrap())
}

fn ordinary() -> Vec<Arc<CatalogType>> {
    let offers = [offering("a", "on-demand", &[])];
    vec![
        catalogue_type("m5.large", "amd64", 29, 0, &offers),
        catalogue_type("m5.xlarge", "amd64", 58, 0, &offers),
        catalogue_type("c5.xlarge", "amd64", 58, 1, &offers),
        catalogue_type("m6g.large", "arm64", 29, 0, &offers),
    ]
}

struct Given {
    class: EC2NodeClass,
    claim: NodeClaim,
    cluster: ClusterFacts,
    types: Vec<Arc<CatalogType>>,
    capacity_type: &'static str,
    may_reserve: bool,
}

impl Default for Given {
    fn default() -> Self {
        Self {
            class: class(json!({}), json!({})),
            claim: claim(json!({})),
            cluster: cluster(),
            types: ordinary(),
            capacity_type: "on-demand",
            may_reserve: true,
        }
    }
}

impl Given {
    fn resolve(&self) -> Result<Vec<Resolved>, ResolveError> {
        let mut vocabulary = Vocabulary::new();
        let types: Vec<InstanceType> = self.types.iter().map(|it| it.instance_type(&mut vocabulary)).collect();
        let tags = [("team".to_owned(), "a".to_owned())].into();
        let scene = Scene {
            class: &self.class,
            claim: &self.claim,
            cluster: &self.cluster,
            tags: &tags,
            capacity_type: self.capacity_type,
            tenancy: "default",
            placement_group: None,
            may_reserve: self.may_reserve,
        };
        resolve(&scene, &types, &self.types, &mut vocabulary)
    }

    fn one(&self) -> Template {
        let resolved = self.resolve().unwrap();
        resolved
            .into_iter()
            .find(|it| it.types.iter().any(|name| **name == *"m5.large"))
            .unwrap()
            .template
    }
}

#[test]
fn types_share_a_template_where_image_pods_and_interfaces_agree() {
    let mut shares: Vec<(String, Vec<String>)> = Given::default()
        .resolve()
        .unwrap()
        .into_iter()
        .map(|it| (it.template.image, it.types.iter().map(ToString::to_string).collect()))
        .collect();
    shares.sort();
    let expected = [
        ("ami-amd", vec!["m5.large"]),
        ("ami-amd", vec!["m5.xlarge", "c5.xlarge"]),
        ("ami-arm", vec!["m6g.large"]),
    ];
    let mut expected = expected.map(|(image, types)| {
        (
            image.to_owned(),
            types.into_iter().map(str::to_owned).collect::<Vec<_>>(),
        )
    });
    expected.sort();
    assert_eq!(shares, expected);
}

#[test]
fn a_name_follows_from_the_contents_and_from_nothing_else() {
    let (one, other) = (Given::default().one(), Given::default().one());
    assert_eq!(one.name(), other.name());
    assert!(one.name().starts_with("karpenter.k8s.aws/"), "{}", one.name());
    let changes = [
        class(json!({"detailedMonitoring": true}), json!({})),
        class(json!({}), json!({"securityGroups": [{"id": "sg-3"}]})),
    ];
    for class in changes {
        let changed = Given {
            class,
            ..Given::default()
        };
        assert_ne!(one.name(), changed.one().name());
    }
}

fn user_data(template: &Template) -> String {
    String::from_utf8(STANDARD.decode(&template.user_data).unwrap()).unwrap()
}

#[test]
fn a_kubelet_is_given_only_labels_it_may_set_itself() {
    let text = user_data(&Given::default().one());
    for expected in [
        "team=a",
        "karpenter.sh/nodepool=general",
        "karpenter.sh/capacity-type=on-demand",
        "karpenter.sh/do-not-sync-taints=true",
        "karpenter.k8s.aws/instance-category=m",
    ] {
        assert!(text.contains(expected), "{expected} is missing in {text}");
    }
    assert!(
        !text.contains("kubernetes.io/arch=") && !text.contains("x.k8s.io/y"),
        "{text}"
    );
}

#[test]
fn a_node_registers_tainted_and_with_the_pods_and_the_dns_of_its_type_and_cluster() {
    let given = Given {
        claim: claim(json!({
            "taints": [{"key": "workload", "value": "batch", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "cni", "effect": "NoExecute"}],
        })),
        ..Given::default()
    };
    let text = user_data(&given.one());
    let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word} is missing in {text}"));
    assert!(
        at("workload") < at("key: cni") && at("key: cni") < at("karpenter.sh/unregistered"),
        "{text}"
    );
    assert!(text.contains("maxPods: 29") && text.contains("10.100.0.10"), "{text}");
}

#[test]
fn custom_images_get_the_users_data_and_no_disks() {
    let given = Given {
        class: class(
            json!({"amiFamily": "Custom", "userData": "mine", "amiSelectorTerms": [{"id": "ami-amd"}]}),
            json!({}),
        ),
        ..Given::default()
    };
    let template = given.one();
    assert_eq!(user_data(&template), "mine");
    assert_eq!(template.disks, []);
    assert_eq!(template.data().block_device_mappings(), []);
}

#[test]
fn every_family_has_its_disks() {
    let sizes = |family: AmiFamily| -> Vec<(String, String)> {
        let disks = default_disks(&family);
        let size = |disk: BlockDeviceMapping| (disk.device_name.unwrap(), disk.ebs.unwrap().volume_size.unwrap().0);
        disks.into_iter().map(size).collect()
    };
    let disk = |device: &str, size: &str| (device.to_owned(), size.to_owned());
    assert_eq!(sizes(AmiFamily::AL2), [disk("/dev/xvda", "20Gi")]);
    assert_eq!(sizes(AmiFamily::AL2023), [disk("/dev/xvda", "20Gi")]);
    assert_eq!(
        sizes(AmiFamily::Bottlerocket),
        [disk("/dev/xvda", "4Gi"), disk("/dev/xvdb", "20Gi")]
    );
    for family in [AmiFamily::Windows2019, AmiFamily::Windows2022, AmiFamily::Windows2025] {
        assert_eq!(sizes(family), [disk("/dev/sda1", "50Gi")]);
    }
    for disk in default_disks(&AmiFamily::Bottlerocket) {
        let ebs = disk.ebs.unwrap();
        assert_eq!(
            (ebs.encrypted, ebs.volume_type),
            (Some(true), Some(api::aws::VolumeType::Gp3))
        );
    }
}

#[test]
fn sizes_are_whole_gibibytes_rounded_up() {
    for (size, expected) in [("20Gi", 20), ("20G", 19), ("1T", 932), ("2Ti", 2048), ("1500Mi", 2)] {
        assert_eq!(gibibytes(size), Some(expected), "{size}");
    }
    assert_eq!(gibibytes("much"), None);
}

#[test]
fn the_classes_disks_are_sent_as_written_and_zero_means_unset() {
    let mapping = json!([{
        "deviceName": "/dev/xvda",
        "ebs": {"volumeSize": "100Gi", "volumeType": "io2", "iops": 3000, "throughput": 0, "encrypted": false,
            "deleteOnTermination": true, "kmsKeyID": "key", "snapshotID": "snap-1", "volumeInitializationRate": 200},
    }]);
    let given = Given {
        class: class(json!({"blockDeviceMappings": mapping}), json!({})),
        ..Given::default()
    };
    let data = given.one().data();
    let ebs = data.block_device_mappings()[0].ebs().unwrap();
    assert_eq!(
        (ebs.volume_size(), ebs.iops(), ebs.throughput()),
        (Some(100), Some(3000), None)
    );
    assert_eq!(
        (ebs.encrypted(), ebs.delete_on_termination()),
        (Some(false), Some(true))
    );
    assert_eq!(
        (ebs.kms_key_id(), ebs.snapshot_id(), ebs.volume_initialization_rate()),
        (Some("key"), Some("snap-1"), Some(200))
    );
}

#[test]
fn metadata_options_are_the_classes_and_lack_ipv6_where_the_api_does() {
    let data = Given::default().one().data();
    let options = data.metadata_options().unwrap();
    assert_eq!(options.http_put_response_hop_limit(), Some(1));
    assert_eq!(options.http_tokens().map(|it| it.as_str()), Some("required"));
    assert_eq!(options.instance_metadata_tags().map(|it| it.as_str()), Some("disabled"));
    assert_eq!(options.http_protocol_ipv6().map(|it| it.as_str()), Some("disabled"));
    let mut isolated = Given::default();
    isolated.cluster.region = "us-iso-east-1".to_owned();
    assert_eq!(
        isolated.one().data().metadata_options().unwrap().http_protocol_ipv6(),
        None
    );
}

#[test]
fn a_class_without_metadata_options_keeps_the_service_shut() {
    let mut given = Given::default();
    given.class.spec.metadata_options = None;
    given.cluster.is_ipv6 = true;
    let metadata = given.one().metadata;
    let expected = Metadata {
        endpoint: Some("disabled".to_owned()),
        ipv6: Some("enabled".to_owned()),
        hop_limit: Some(2),
        tokens: Some("required".to_owned()),
    };
    assert_eq!(metadata, expected);
}

#[test]
fn without_a_list_there_is_one_interface_with_the_classes_groups() {
    let given = Given {
        class: class(
            json!({"associatePublicIPAddress": false, "ipPrefixCount": 3, "connectionTracking": {"udpTimeout": 45}}),
            json!({}),
        ),
        ..Given::default()
    };
    let data = given.one().data();
    let [interface] = data.network_interfaces() else {
        panic!("{:?}", data.network_interfaces())
    };
    assert_eq!(interface.groups(), ["sg-1", "sg-2"]);
    assert_eq!(
        (interface.device_index(), interface.network_card_index()),
        (Some(0), None)
    );
    assert_eq!(
        (interface.ipv4_prefix_count(), interface.ipv6_prefix_count()),
        (Some(3), None)
    );
    assert_eq!(interface.associate_public_ip_address(), Some(false));
    assert_eq!(
        interface
            .connection_tracking_specification()
            .and_then(|it| it.udp_timeout()),
        Some(45)
    );
    assert_eq!((interface.primary_ipv6(), interface.ipv6_address_count()), (None, None));
    assert_eq!(data.security_group_ids(), &[] as &[String]);
}

#[test]
fn on_an_ipv6_cluster_prefixes_and_addresses_are_of_that_family() {
    let mut given = Given {
        class: class(json!({"ipPrefixCount": 3}), json!({})),
        ..Given::default()
    };
    given.cluster.is_ipv6 = true;
    let data = given.one().data();
    let interface = &data.network_interfaces()[0];
    assert_eq!(
        (interface.ipv4_prefix_count(), interface.ipv6_prefix_count()),
        (None, Some(3))
    );
    assert_eq!(
        (interface.primary_ipv6(), interface.ipv6_address_count()),
        (Some(true), Some(1))
    );
}

#[test]
fn efa_interfaces_come_only_when_the_claim_asks_for_them() {
    let offers = [offering("a", "on-demand", &[])];
    let mut given = Given {
        types: vec![catalogue_type("m5.large", "amd64", 29, 4, &offers)],
        ..Given::default()
    };
    assert_eq!(given.one().interfaces.len(), 1);
    given.claim = claim(json!({"resources": {"requests": {"vpc.amazonaws.com/efa": "2"}}}));
    let interfaces = given.one().interfaces;
    let places: Vec<_> = interfaces
        .iter()
        .map(|it| (it.card, it.device, it.kind.as_deref()))
        .collect();
    let efa = Some("efa");
    assert_eq!(
        places,
        [
            (Some(0), 0, efa),
            (Some(1), 1, efa),
            (Some(2), 1, efa),
            (Some(3), 1, efa)
        ]
    );
}

#[test]
fn every_efa_interface_has_what_an_ordinary_one_has() {
    let offers = [offering("a", "on-demand", &[])];
    for (is_public, is_ipv6) in [(true, false), (false, false), (true, true)] {
        let spec = json!({"associatePublicIPAddress": is_public, "connectionTracking": {"tcpEstablishedTimeout": 600}});
        let mut given = Given {
            class: class(spec, json!({})),
            claim: claim(json!({"resources": {"requests": {"vpc.amazonaws.com/efa": "2"}}})),
            types: vec![catalogue_type("m5.large", "amd64", 29, 2, &offers)],
            ..Given::default()
        };
        given.cluster.is_ipv6 = is_ipv6;
        let data = given.one().data();
        assert_eq!(data.network_interfaces().len(), 2);
        for interface in data.network_interfaces() {
            assert_eq!(interface.associate_public_ip_address(), Some(is_public));
            let tracking = interface.connection_tracking_specification();
            assert_eq!(tracking.and_then(|it| it.tcp_established_timeout()), Some(600));
            assert_eq!(interface.primary_ipv6(), is_ipv6.then_some(true));
            assert_eq!(interface.ipv6_address_count(), is_ipv6.then_some(1));
            assert_eq!(interface.groups(), ["sg-1", "sg-2"]);
        }
    }
}

#[test]
fn interfaces_of_the_class_are_verbatim_and_efa_only_ones_bare() {
    let listed = json!([
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
        {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
    ]);
    let given = Given {
        class: class(
            json!({"networkInterfaces": listed, "ipPrefixCount": 2, "associatePublicIPAddress": true}),
            json!({}),
        ),
        ..Given::default()
    };
    let interfaces = given.one().interfaces;
    assert_eq!(
        (interfaces[0].ipv4_prefixes, interfaces[0].has_public_address),
        (Some(2), Some(true))
    );
    let bare = Interface {
        card: Some(1),
        device: 1,
        kind: Some("efa-only".to_owned()),
        groups: vec!["sg-1".to_owned(), "sg-2".to_owned()],
        ..Interface::default()
    };
    assert_eq!(interfaces[1], bare);
}

#[test]
fn each_reservation_has_a_template_that_uses_it_only() {
    let reserved = |id: &str, zone: &str, kind: &str, interruptible: &str| {
        let more = [
            ("karpenter.k8s.aws/capacity-reservation-id", id),
            ("karpenter.k8s.aws/capacity-reservation-type", kind),
            ("karpenter.k8s.aws/capacity-reservation-interruptible", interruptible),
        ];
        offering(zone, "reserved", &more)
    };
    let cases = [
        ("default", "false", None),
        ("capacity-block", "false", Some("capacity-block")),
        ("default", "true", Some("interruptible-capacity-reservation")),
    ];
    for (kind, interruptible, market) in cases {
        let offers = [
            reserved("cr-1", "a", kind, interruptible),
            reserved("cr-2", "b", kind, interruptible),
        ];
        let given = Given {
            types: vec![catalogue_type("m5.large", "amd64", 29, 0, &offers)],
            capacity_type: "reserved",
            ..Given::default()
        };
        let resolved = given.resolve().unwrap();
        assert_eq!(resolved.len(), 2, "{kind}");
        let data = resolved[0].template.data();
        let specification = data.capacity_reservation_specification().unwrap();
        assert_eq!(
            specification.capacity_reservation_preference().map(|it| it.as_str()),
            Some("capacity-reservations-only")
        );
        let target = specification
            .capacity_reservation_target()
            .and_then(|it| it.capacity_reservation_id());
        assert_eq!(target, Some("cr-1"));
        let found = data
            .instance_market_options()
            .and_then(|it| it.market_type())
            .map(|it| it.as_str().to_owned());
        assert_eq!(found.as_deref(), market, "{kind} {interruptible}");
    }
}

#[test]
fn what_is_not_reserved_keeps_out_of_reservations_while_the_gate_is_on() {
    let specification = |may_reserve| {
        let given = Given {
            may_reserve,
            ..Given::default()
        };
        given.one().data().capacity_reservation_specification().cloned()
    };
    assert_eq!(
        specification(true)
            .unwrap()
            .capacity_reservation_preference()
            .map(|it| it.as_str()),
        Some("none")
    );
    assert_eq!(specification(false), None);
}

#[test]
fn spot_requests_are_tagged_too() {
    let kinds = |capacity_type| {
        let given = Given {
            capacity_type,
            ..Given::default()
        };
        let data = given.one().data();
        let kinds = data.tag_specifications().iter().filter_map(|it| it.resource_type());
        kinds.map(|it| it.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(kinds("on-demand"), ["network-interface"]);
    assert_eq!(kinds("spot"), ["network-interface", "spot-instances-request"]);
}

#[test]
fn enclaves_and_nested_virtualization_are_asked_for_where_wanted() {
    let given = Given {
        class: class(json!({"cpuOptions": {"nestedVirtualization": "enabled"}}), json!({})),
        claim: claim(json!({"resources": {"requests": {"eks.amazonaws.com/nitro-sandbox": "1"}}})),
        ..Given::default()
    };
    let data = given.one().data();
    assert_eq!(data.enclave_options().and_then(|it| it.enabled()), Some(true));
    assert_eq!(
        data.cpu_options()
            .and_then(|it| it.nested_virtualization())
            .map(|it| it.as_str()),
        Some("enabled")
    );
    assert_eq!(Given::default().one().data().cpu_options(), None);
}

#[test]
fn a_class_whose_status_lacks_something_cannot_be_launched_from() {
    let with = |status: Value| Given {
        class: class(json!({}), status),
        ..Given::default()
    };
    assert_eq!(
        with(json!({"securityGroups": []})).resolve().unwrap_err(),
        ResolveError::NoSecurityGroups
    );
    assert_eq!(with(json!({"amis": []})).resolve().unwrap_err(), ResolveError::NoImages);
    let only = json!([{"id": "ami-x", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["s390x"]}]}]);
    let error = with(json!({"amis": only})).resolve().unwrap_err();
    assert_eq!(
        error.to_string(),
        "no instance types satisfy requirements of amis [ami-x]"
    );
}
