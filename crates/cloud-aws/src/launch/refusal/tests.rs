//! What follows from each of EC2's refusals?

#![allow(
    clippy::needless_pass_by_value,
    clippy::redundant_closure_for_method_calls,
    reason = "a test's helpers are called with literals, and the SDK's paths are longer than its calls"
)]

use super::*;

fn short(code: &str, instance_type: &str, zone: &str) -> FleetError {
    FleetError {
        code: code.to_owned(),
        message: "no".to_owned(),
        instance_type: instance_type.to_owned(),
        zone: zone.to_owned(),
        subnet: "subnet-1".to_owned(),
    }
}

fn offering(instance_type: &str, zone: &str, capacity_type: &str, reason: &str) -> UnavailableOffering {
    UnavailableOffering {
        instance_type: Some(instance_type.into()),
        zone: Some(zone.into()),
        capacity_type: Some(capacity_type.into()),
        reason: reason.into(),
        retry_after: None,
    }
}

#[test]
fn every_reason_of_the_contract_is_found_in_its_words() {
    let cases = [
        (
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted: x",
            "SpotSLRCreationFailed",
        ),
        ("UnauthorizedOperation: x", "Unauthorized"),
        ("AccessDenied: x", "Unauthorized"),
        (
            "AuthFailure: Not authorized for images: [ami-1]",
            "AMIAuthorizationFailure",
        ),
        (
            "InvalidParameter: sg and subnet belong to different networks",
            "SecurityGroupSubnetVPCMismatch",
        ),
        ("InvalidParameter: something else", "LaunchFailed"),
        (
            "InvalidParameterValue: Value (x) for parameter iamInstanceProfile.name is invalid",
            "InstanceProfileNameInvalid",
        ),
        ("InvalidLaunchTemplateId.NotFound: x", "LaunchTemplateNotFound"),
        (
            "InvalidUserData.Malformed: User data is limited to 16384 bytes",
            "UserDataSizeLimitExceeded",
        ),
        ("InvalidAMIID.Malformed: x", "InvalidAMIID"),
        ("InvalidAMIID.NotFound: x", "AMINotFound"),
        ("RequestLimitExceeded: x", "RequestLimitExceeded"),
        ("InternalError: x", "InternalError"),
        (
            "InvalidParameterCombination: The type is not eligible for Free Tier",
            "FreeTierIneligible",
        ),
        ("MaxFleetCountExceeded: x", "FleetQuotaExceeded"),
        ("PendingVerification: x", "AccountPendingVerification"),
        ("MaxSpotInstanceCountExceeded: x", "SpotQuotaExceeded"),
        ("VcpuLimitExceeded: x", "VCPULimitExceeded"),
        (
            "InsufficientFreeAddressesInSubnet: x",
            "InsufficientFreeAddressesInSubnet",
        ),
        ("InsufficientInstanceCapacity: x", "LaunchFailed"),
    ];
    for (text, reason) in cases {
        assert_eq!(reason_message(text).0, reason, "{text}");
    }
}

#[test]
fn a_denial_says_who_denies() {
    let boundary = "UnauthorizedOperation: … with an explicit deny in a permissions boundary";
    let policy = "UnauthorizedOperation: … with an explicit deny in a service control policy";
    let messages = [boundary, policy, "UnauthorizedOperation: x"].map(|text| reason_message(text).1);
    assert!(messages[0].ends_with("permission boundary"), "{}", messages[0]);
    assert!(messages[1].ends_with("service control policy"), "{}", messages[1]);
    assert!(
        messages[2].ends_with("no identity-based policy allows it"),
        "{}",
        messages[2]
    );
}

#[test]
fn shortages_of_capacity_are_those_of_the_contract() {
    for code in [
        "InsufficientInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        "InsufficientFreeAddressesInSubnet",
        "MaxFleetCountExceeded",
        "ReservationCapacityExceeded",
    ] {
        assert!(is_unfulfillable(code), "{code}");
    }
    for code in ["UnauthorizedOperation", "RequestLimitExceeded", "InternalError", ""] {
        assert!(!is_unfulfillable(code), "{code}");
    }
}

fn asked(capacity_type: &str) -> Asked<'_> {
    Asked {
        capacity_type,
        ..Asked::default()
    }
}

fn unavailable(errors: &[FleetError], asked: &Asked<'_>) -> Vec<UnavailableOffering> {
    offerings(shortages(errors, asked))
}

#[test]
fn each_shortage_names_its_offering_once() {
    let errors = [
        short("InsufficientInstanceCapacity", "m5.large", "us-west-2a"),
        short("InsufficientInstanceCapacity", "m5.large", "us-west-2a"),
        short("VcpuLimitExceeded", "c5.large", "us-west-2b"),
        short("InternalError", "r5.large", "us-west-2b"),
    ];
    assert_eq!(
        unavailable(&errors, &asked("spot")),
        [
            offering("c5.large", "us-west-2b", "spot", "VcpuLimitExceeded"),
            offering("m5.large", "us-west-2a", "spot", "InsufficientInstanceCapacity"),
        ]
    );
}

#[test]
fn without_the_service_linked_role_no_spot_is_to_be_had() {
    let errors = [short(
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
        "m5.large",
        "us-west-2a",
    )];
    let CloudError::InsufficientCapacity { offerings, .. } = combined(&errors, &asked("spot")) else {
        panic!("it is a shortage")
    };
    assert_eq!(offerings.len(), 1);
    assert_eq!((&offerings[0].instance_type, &offerings[0].zone), (&None, &None));
    assert_eq!(offerings[0].capacity_type.as_deref(), Some("spot"));
}

#[test]
fn a_full_spread_placement_group_is_full_for_every_type_of_the_zone() {
    let mut error = short("InsufficientInstanceCapacity", "m5.large", "us-west-2a");
    error.message = "You've reached the limit of instances in this spread placement group.".to_owned();
    let candidates = ["m5.large".to_owned(), "c5.large".to_owned()];
    let group = ("pg-1".to_owned(), None);
    let asked = Asked {
        capacity_type: "on-demand",
        types: &candidates,
        placement_group: Some(group.clone()),
    };
    let found = shortages(&[error], &asked);
    let types: Vec<_> = found
        .iter()
        .filter_map(|it| it.instance_type.as_ref())
        .map(ToString::to_string)
        .collect();
    assert_eq!(types, ["c5.large", "m5.large"]);
    assert!(
        found.iter().all(|it| it.placement_group.as_ref() == Some(&group)),
        "{found:?}"
    );
}

#[test]
fn a_full_reservation_says_nothing_about_offerings() {
    let errors = [short("ReservationCapacityExceeded", "m5.large", "us-west-2a")];
    assert_eq!(unavailable(&errors, &asked("reserved")), []);
    assert!(matches!(
        combined(&errors, &asked("reserved")),
        CloudError::InsufficientCapacity { .. }
    ));
}

#[test]
fn one_error_that_is_no_shortage_is_told_instead_of_given_up_on() {
    let errors = [
        short("InsufficientInstanceCapacity", "m5.large", "us-west-2a"),
        short("UnauthorizedOperation", "c5.large", "us-west-2a"),
    ];
    let error = combined(&errors, &asked("on-demand"));
    assert!(
        matches!(&error, CloudError::Create { reason, .. } if reason == "Unauthorized"),
        "{error:?}"
    );
}

#[test]
fn what_no_retry_mends_waits_for_somebody_to_change_something() {
    let failure = |code: &str, message: &str| Failure {
        code: code.to_owned(),
        message: message.to_owned(),
        status: Some(400),
    };
    let too_large = failure("InvalidUserData.Malformed", "User data is limited to 16384 bytes");
    let error = launch_error(
        &too_large,
        "creating launch template",
        "Error getting launch template configs",
    );
    assert!(
        matches!(&error, CloudError::Terminal { reason, .. } if reason == "UserDataSizeLimitExceeded"),
        "{error:?}"
    );
    let throttled = launch_error(
        &failure("RequestLimitExceeded", "slow down"),
        "creating fleet request",
        "x",
    );
    assert!(
        matches!(
            throttled,
            CloudError::Throttled {
                retry_after: Some(_),
                ..
            }
        ),
        "{throttled:?}"
    );
}

#[test]
fn a_subnet_without_addresses_is_named() {
    assert_eq!(
        short("InsufficientFreeAddressesInSubnet", "m5.large", "a").exhausted_subnet(),
        Some("subnet-1")
    );
    assert_eq!(
        short("InsufficientInstanceCapacity", "m5.large", "a").exhausted_subnet(),
        None
    );
    let found = shortages(
        &[short("InsufficientFreeAddressesInSubnet", "m5.large", "a")],
        &asked("spot"),
    );
    assert!(
        found
            .iter()
            .any(|it| it.subnet.as_deref() == Some("subnet-1") && it.instance_type.is_none()),
        "{found:?}"
    );
}
