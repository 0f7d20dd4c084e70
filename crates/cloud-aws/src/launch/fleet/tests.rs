//! What does CreateFleet get to read?

#![allow(
    clippy::needless_pass_by_value,
    clippy::redundant_closure_for_method_calls,
    reason = "a test's helpers are called with literals, and the SDK's paths are longer than its calls"
)]

use aws_sdk_ec2::{operation::create_fleet::CreateFleetInput, types::LaunchTemplateAndOverridesResponse};

use super::*;

fn fleet() -> Fleet {
    let way = |instance_type: &str, price: &str| Override {
        instance_type: instance_type.to_owned(),
        zone: "us-west-2a".to_owned(),
        subnet: "subnet-1".to_owned(),
        image: "ami-1".to_owned(),
        price: price.parse().unwrap(),
    };
    Fleet {
        capacity_type: "on-demand",
        reservation: None,
        configs: vec![Config {
            template: "karpenter.k8s.aws/1".to_owned(),
            overrides: vec![way("m5.large", "0.096"), way("m5.xlarge", "0.192")],
        }],
        context: None,
        has_price_overlay: false,
        tags: [("team".to_owned(), "a".to_owned())].into(),
    }
}

fn sent(fleet: &Fleet) -> CreateFleetInput {
    fleet.input(Some("u-1-1".to_owned())).build().unwrap()
}

#[test]
fn a_request_is_for_one_machine_at_once_and_carries_its_token() {
    let input = sent(&fleet());
    assert_eq!(input.r#type(), Some(&FleetType::Instant));
    assert_eq!(input.client_token(), Some("u-1-1"));
    let capacity = input.target_capacity_specification().unwrap();
    assert_eq!(capacity.total_target_capacity(), Some(1));
    let tagged: Vec<_> = input
        .tag_specifications()
        .iter()
        .filter_map(|it| it.resource_type())
        .map(|it| it.as_str())
        .collect();
    assert_eq!(tagged, ["instance", "volume", "fleet"]);
    let config = &input.launch_template_configs()[0];
    let template = config.launch_template_specification().unwrap();
    assert_eq!(
        (template.launch_template_name(), template.version()),
        (Some("karpenter.k8s.aws/1"), Some("$Latest"))
    );
    let way = &config.overrides()[0];
    assert_eq!(way.instance_type().map(|it| it.as_str()), Some("m5.large"));
    assert_eq!(
        (way.subnet_id(), way.availability_zone(), way.image_id()),
        (Some("subnet-1"), Some("us-west-2a"), Some("ami-1"))
    );
    assert_eq!(way.priority(), Some(0.096));
}

#[test]
fn capacity_types_overlays_and_reservations_have_their_strategies() {
    // Capacity type, kind of reservation, overlay; then target, spot, on-demand strategy, reservation type.
    let cases = [
        (
            ("spot", None, false),
            ("spot", Some("price-capacity-optimized"), None, None),
        ),
        (
            ("spot", None, true),
            ("spot", Some("capacity-optimized-prioritized"), None, None),
        ),
        (
            ("on-demand", None, false),
            ("on-demand", None, Some("lowest-price"), None),
        ),
        (
            ("on-demand", None, true),
            ("on-demand", None, Some("prioritized"), None),
        ),
        (
            ("reserved", Some(ReservationKind::Default), false),
            ("on-demand", None, Some("lowest-price"), None),
        ),
        (
            ("reserved", Some(ReservationKind::CapacityBlock), false),
            ("capacity-block", None, None, None),
        ),
        (
            ("reserved", Some(ReservationKind::Interruptible), false),
            (
                "reserved-capacity",
                None,
                None,
                Some("interruptible-capacity-reservation"),
            ),
        ),
    ];
    for ((capacity_type, reservation, has_price_overlay), expected) in cases {
        let input = sent(&Fleet {
            capacity_type,
            reservation,
            has_price_overlay,
            ..fleet()
        });
        let target = input
            .target_capacity_specification()
            .and_then(|it| it.default_target_capacity_type());
        let spot = input
            .spot_options()
            .and_then(|it| it.allocation_strategy())
            .map(|it| it.as_str().to_owned());
        let on_demand = input
            .on_demand_options()
            .and_then(|it| it.allocation_strategy())
            .map(|it| it.as_str().to_owned());
        let reserved = input
            .reserved_capacity_options()
            .and_then(|it| it.reservation_types().first());
        let found = (
            target.map(|it| it.as_str()).unwrap_or_default(),
            spot.as_deref(),
            on_demand.as_deref(),
            reserved.map(|it| it.as_str()),
        );
        assert_eq!(found, expected, "{capacity_type} {reservation:?} {has_price_overlay}");
    }
}

fn overrides(instance_type: &str) -> LaunchTemplateAndOverridesResponse {
    let overrides = aws_sdk_ec2::types::FleetLaunchTemplateOverrides::builder()
        .instance_type(instance_type.into())
        .availability_zone("us-west-2a")
        .subnet_id("subnet-1")
        .image_id("ami-1");
    LaunchTemplateAndOverridesResponse::builder()
        .overrides(overrides.build())
        .build()
}

#[test]
fn an_answer_names_the_machine_and_what_could_not_be_had() {
    let error = CreateFleetError::builder()
        .error_code("InsufficientInstanceCapacity")
        .error_message("none left")
        .launch_template_and_overrides(overrides("m5.large"))
        .build();
    let expected = FleetError {
        code: "InsufficientInstanceCapacity".to_owned(),
        message: "none left".to_owned(),
        instance_type: "m5.large".to_owned(),
        zone: "us-west-2a".to_owned(),
        subnet: "subnet-1".to_owned(),
    };
    assert_eq!(errors(&[error]), [expected]);
    let instance = CreateFleetInstance::builder()
        .instance_ids("i-1")
        .launch_template_and_overrides(overrides("m5.xlarge"))
        .build();
    let expected = Started {
        id: "i-1".to_owned(),
        instance_type: "m5.xlarge".to_owned(),
        zone: "us-west-2a".to_owned(),
        subnet: "subnet-1".to_owned(),
        image: "ami-1".to_owned(),
    };
    assert_eq!(started(&[instance]), Some(expected));
    assert_eq!(started(&[]), None);
}
