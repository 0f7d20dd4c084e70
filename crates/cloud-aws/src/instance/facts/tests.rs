//! What is read out of an instance as EC2 describes it?

#![allow(
    clippy::needless_pass_by_value,
    clippy::redundant_closure_for_method_calls,
    reason = "a test's helpers are called with literals, and the SDK's paths are longer than its calls"
)]

use aws_sdk_ec2::types::{
    CapacityReservationSpecificationResponse, GroupIdentifier, InstanceNetworkInterface, InstanceState, Tag, Tenancy,
    builders::InstanceBuilder,
};
use aws_smithy_types::DateTime;
use serde_json::{Value, json};

use super::*;

fn described() -> InstanceBuilder {
    let tag = |key: &str, value: &str| Tag::builder().key(key).value(value).build();
    Described::builder()
        .instance_id("i-1")
        .instance_type(InstanceType::M5Large)
        .image_id("ami-1")
        .subnet_id("subnet-1")
        .launch_time(DateTime::from_secs(1000))
        .placement(Placement::builder().availability_zone("us-west-2a").build())
        .state(InstanceState::builder().name(InstanceStateName::Running).build())
        .security_groups(GroupIdentifier::builder().group_id("sg-1").build())
        .tags(tag("eks:eks-cluster-name", "dev"))
        .tags(tag("karpenter.sh/nodepool", "general"))
        .tags(tag("karpenter.sh/nodeclaim", "general-x"))
        .tags(tag("dovetail.dev/nodeclaim-uid", "u-1"))
        .tags(tag("karpenter.k8s.aws/ec2nodeclass", "default"))
}

fn machine() -> Machine {
    Machine::of(&described().build(), true)
}

fn reserved(preference: &str, lifecycle: Option<&str>) -> Described {
    let specification = CapacityReservationSpecificationResponse::builder()
        .capacity_reservation_preference(preference.into())
        .build();
    described()
        .capacity_reservation_id("cr-1")
        .capacity_reservation_specification(specification)
        .set_instance_lifecycle(lifecycle.map(Into::into))
        .build()
}

#[test]
fn spot_is_told_by_the_request_or_by_the_lifecycle() {
    let by_request = described().spot_instance_request_id("sir-1").build();
    let by_lifecycle = described().instance_lifecycle(InstanceLifecycleType::Spot).build();
    assert_eq!(Machine::of(&by_request, true).capacity_type, "spot");
    assert_eq!(Machine::of(&by_lifecycle, true).capacity_type, "spot");
    assert_eq!(machine().capacity_type, "on-demand");
}

#[test]
fn a_machine_is_reserved_only_if_it_may_use_nothing_else() {
    let only = "capacity-reservations-only";
    let found = Machine::of(&reserved(only, None), true);
    assert_eq!(found.capacity_type, "reserved");
    assert_eq!(
        found.reservation.map(|it| (it.id, it.kind)),
        Some(("cr-1".to_owned(), ReservationKind::Default))
    );
    assert_eq!(Machine::of(&reserved("open", None), true).capacity_type, "on-demand");
    assert_eq!(Machine::of(&reserved(only, None), false).capacity_type, "on-demand");
    let kinds = [
        ("capacity-block", ReservationKind::CapacityBlock),
        ("interruptible-capacity-reservation", ReservationKind::Interruptible),
    ];
    for (lifecycle, kind) in kinds {
        let found = Machine::of(&reserved(only, Some(lifecycle)), true);
        assert_eq!(found.reservation.map(|it| it.kind), Some(kind));
    }
}

#[test]
fn states_tell_whether_a_machine_is_there_going_or_gone() {
    let state = |name: InstanceStateName| {
        let state = InstanceState::builder().name(name).build();
        Machine::of(&described().state(state).build(), true).state
    };
    assert_eq!(state(InstanceStateName::Pending), State::There);
    assert_eq!(state(InstanceStateName::Stopped), State::There);
    assert_eq!(state(InstanceStateName::ShuttingDown), State::ShuttingDown);
    assert_eq!(state(InstanceStateName::Terminated), State::Terminated);
}

#[test]
fn a_machine_is_ours_by_its_tags_and_for_a_claim_by_its_identity() {
    let machine = machine();
    assert!(machine.is_of("dev"));
    assert!(!machine.is_of("prod"));
    assert!(machine.is_for("any-name", "u-1"));
    assert!(!machine.is_for("general-x", "u-2"), "names are used again");
    let mut upstreams = machine.clone();
    upstreams.tags.remove("dovetail.dev/nodeclaim-uid");
    assert!(upstreams.is_for("general-x", "u-2"));
    assert!(!upstreams.is_for("general-y", "u-2"));
    upstreams.tags.remove("karpenter.sh/nodeclaim");
    assert!(upstreams.is_for("general-y", "u-2"), "upstream tags it only later");
}

fn entry(requirements: Value, capacity: Value) -> Type {
    let entry = json!({
        "name": "m5.large", "requirements": requirements, "capacity": capacity,
        "overhead": {"kubeReserved": {"cpu": "100m"}, "systemReserved": {}, "evictionThreshold": {"memory": "100Mi"}},
    });
    Type::of(&serde_json::from_value(entry).unwrap())
}

fn requirement(key: &str, values: &[&str]) -> Value {
    json!({"key": key, "operator": "In", "values": values})
}

#[test]
fn a_claim_learns_every_label_its_type_has_one_value_of() {
    let entry = entry(
        json!([
            requirement("kubernetes.io/arch", &["amd64"]),
            requirement("topology.kubernetes.io/zone", &["us-west-2a", "us-west-2b"]),
            requirement("karpenter.k8s.aws/capacity-reservation-id", &["cr-9"]),
            {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "DoesNotExist"},
        ]),
        json!({"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "0", "vpc.amazonaws.com/efa": "1"}),
    );
    let class = serde_json::from_value(json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {"subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [], "role": "r"},
        "status": {"subnets": [{"id": "s-1", "zone": "us-west-2a", "zoneID": "usw2-az2"}], "instanceProfile": "profile"},
    }))
    .unwrap();
    let origin = Origin {
        entry: Some(&entry),
        class: Some(&class),
        ..Origin::default()
    };
    let launched = launched(&machine(), &origin);
    assert_eq!(&*launched.provider_id, "aws:///us-west-2a/i-1");
    let label = |key: &str| launched.labels.get(key).map(ToString::to_string);
    let expected = [
        ("kubernetes.io/arch", "amd64"),
        ("topology.kubernetes.io/zone", "us-west-2a"),
        ("topology.k8s.aws/zone-id", "usw2-az2"),
        ("karpenter.sh/capacity-type", "on-demand"),
        ("karpenter.k8s.aws/instance-tenancy", "default"),
        ("node.kubernetes.io/instance-type", "m5.large"),
        ("karpenter.sh/nodepool", "general"),
    ];
    for (key, value) in expected {
        assert_eq!(label(key).as_deref(), Some(value), "{key}");
    }
    assert_eq!(launched.labels.iter().count(), expected.len(), "{:?}", launched.labels);
    assert_eq!(
        launched
            .annotations
            .get("karpenter.k8s.aws/instance-profile-name")
            .map(|it| &**it),
        Some("profile")
    );
    let hash = class.hash(None);
    assert_eq!(
        launched
            .annotations
            .get("karpenter.k8s.aws/ec2nodeclass-hash")
            .map(|it| &**it),
        Some(hash.as_str())
    );
    assert_eq!(
        launched.capacity.get("nvidia.com/gpu"),
        None,
        "nothing of it is no capacity"
    );
    assert_eq!(
        launched.capacity.get("vpc.amazonaws.com/efa"),
        None,
        "it has no such interface"
    );
    assert_eq!(launched.allocatable.amount("cpu").milli_value(), 1900);
}

#[test]
fn efa_is_capacity_of_a_machine_that_has_the_interface() {
    let interface = InstanceNetworkInterface::builder().interface_type("efa").build();
    let machine = Machine::of(&described().network_interfaces(interface).build(), true);
    let entry = entry(json!([]), json!({"vpc.amazonaws.com/efa": "1"}));
    let origin = Origin {
        entry: Some(&entry),
        ..Origin::default()
    };
    assert_eq!(
        launched(&machine, &origin)
            .capacity
            .amount("vpc.amazonaws.com/efa")
            .value(),
        1
    );
}

#[test]
fn reservations_and_placement_groups_become_labels() {
    let machine = Machine::of(&reserved("capacity-reservations-only", Some("capacity-block")), true);
    let group = PlacementGroupFacts {
        id: "pg-1".to_owned(),
        name: "group".to_owned(),
        strategy: "partition".to_owned(),
        partitions: 3,
    };
    let origin = Origin {
        placement_group: Some(&group),
        ..Origin::default()
    };
    let labels = launched(&machine, &origin).labels;
    let label = |key: &str| labels.get(key).map(ToString::to_string);
    assert_eq!(
        label("karpenter.k8s.aws/capacity-reservation-id").as_deref(),
        Some("cr-1")
    );
    assert_eq!(
        label("karpenter.k8s.aws/capacity-reservation-type").as_deref(),
        Some("capacity-block")
    );
    assert_eq!(
        label("karpenter.k8s.aws/capacity-reservation-interruptible").as_deref(),
        Some("false")
    );
    assert_eq!(label("karpenter.k8s.aws/placement-group-id").as_deref(), Some("pg-1"));
    assert_eq!(
        label("karpenter.k8s.aws/placement-group-partition").as_deref(),
        Some("")
    );
}

#[test]
fn tenancy_is_default_unless_it_says_otherwise() {
    assert_eq!(machine().tenancy, "default");
    let placement = Placement::builder().tenancy(Tenancy::Dedicated).build();
    assert_eq!(
        Machine::of(&described().placement(placement).build(), true).tenancy,
        "dedicated"
    );
}
