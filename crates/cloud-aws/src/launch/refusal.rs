//! Why did EC2 refuse, and what follows from it? Error codes in, [`CloudError`] and offerings to avoid out.
//!
//! Codes, reasons and messages are the contract: they reach conditions, events and metrics.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::labels::CAPACITY_TYPE_SPOT;
use cloud::{CloudError, UnavailableOffering};

use crate::{Failure, Shortage};

/// Capacity that cannot be had for a while, whatever the reason.
const UNFULFILLABLE: [&str; 8] = [
    "InsufficientInstanceCapacity",
    "MaxSpotInstanceCountExceeded",
    "VcpuLimitExceeded",
    "UnfulfillableCapacity",
    "Unsupported",
    INSUFFICIENT_FREE_ADDRESSES,
    "MaxFleetCountExceeded",
    "ReservationCapacityExceeded",
];

/// Reasons that asking again does not mend before somebody changes the node class.
const TERMINAL: [&str; 4] = [
    "SecurityGroupSubnetVPCMismatch",
    "UserDataSizeLimitExceeded",
    "InvalidAMIID",
    "FreeTierIneligible",
];

/// The launch template named is not there.
pub(crate) const LAUNCH_TEMPLATE_NAME_NOT_FOUND: &str = "InvalidLaunchTemplateName.NotFoundException";
/// The subnet has no addresses left.
pub(crate) const INSUFFICIENT_FREE_ADDRESSES: &str = "InsufficientFreeAddressesInSubnet";
/// A request with this client token and other contents came before.
pub(crate) const IDEMPOTENT_PARAMETER_MISMATCH: &str = "IdempotentParameterMismatch";
/// The account has no service-linked role for spot and we may not make one: no spot at all.
const NO_SPOT_ROLE: &str = "AuthFailure.ServiceLinkedRoleCreationNotPermitted";
/// What a full spread placement group says.
const SPREAD_LIMIT: &str = "limit of instances in this spread placement group";
/// How long to wait when EC2 throttles; it does not say.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether a code means that capacity cannot be had for a while.
pub(crate) fn is_unfulfillable(code: &str) -> bool {
    UNFULFILLABLE.contains(&code)
}

/// What a failed call means to whoever asked for anything but a launch.
pub(crate) fn error(failure: &Failure, doing: &str) -> CloudError {
    let message = format!("{doing}, {failure}");
    if failure.is_not_found() {
        CloudError::NotFound(message)
    } else if failure.is_throttled() {
        throttled(message)
    } else {
        CloudError::Other(message)
    }
}

/// What a failed call means for a launch: the reason and message of the claim's Launched condition. `said` opens the
/// message.
pub(crate) fn launch_error(failure: &Failure, doing: &str, said: &str) -> CloudError {
    let text = failure.to_string();
    if failure.is_throttled() {
        return throttled(format!("{doing}, {text}"));
    }
    let (reason, message) = reason_message(&text);
    create_error(reason, &format!("{said}: {message}"), &text)
}

fn throttled(message: String) -> CloudError {
    CloudError::Throttled {
        message,
        retry_after: Some(PATIENCE),
    }
}

fn create_error(reason: &str, message: &str, text: &str) -> CloudError {
    // The cloud's own words name the object; the contract's message alone would send people to the logs.
    let (reason, message) = (reason.to_owned(), format!("{message} ({text})"));
    if TERMINAL.contains(&reason.as_str()) {
        return CloudError::Terminal { reason, message };
    }
    CloudError::Create { reason, message }
}

/// One offering a fleet could not launch, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FleetError {
    /// EC2's code.
    pub(crate) code: String,
    /// EC2's words.
    pub(crate) message: String,
    /// Of which type.
    pub(crate) instance_type: String,
    /// In which zone.
    pub(crate) zone: String,
    /// In which subnet.
    pub(crate) subnet: String,
}

impl FleetError {
    fn text(&self) -> String {
        format!("{}: {}", self.code, self.message)
    }

    fn is_shortage(&self) -> bool {
        is_unfulfillable(&self.code) || self.code == NO_SPOT_ROLE
    }

    /// The `reason` of `karpenter_cloudprovider_instance_launch_failures_total`.
    pub(crate) fn reason(&self) -> &'static str {
        reason_message(&self.text()).0
    }

    /// Whether a spread placement group is full.
    pub(crate) fn is_spread_limit(&self) -> bool {
        self.message.contains(SPREAD_LIMIT)
    }

    /// The subnet, if it ran out of addresses.
    pub(crate) fn exhausted_subnet(&self) -> Option<&str> {
        (self.code == INSUFFICIENT_FREE_ADDRESSES && !self.subnet.is_empty()).then_some(&self.subnet)
    }
}

/// What a fleet was asked for, as far as its errors must be read with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked<'a> {
    /// `spot`, `on-demand` or `reserved`.
    pub(crate) capacity_type: &'a str,
    /// The types it could choose from: a spread placement group that is full in a zone is full for all of them.
    pub(crate) types: &'a [String],
    /// The placement group, and the partition if one was asked for.
    pub(crate) placement_group: Option<(String, Option<String>)>,
}

/// What the errors of a fleet say about offerings: what plans should avoid for a while. Each is said once.
///
/// Of a reserved launch nothing follows for offerings: its reservation is full, and that is for whoever counts those.
pub(crate) fn shortages(errors: &[FleetError], asked: &Asked<'_>) -> Vec<Shortage> {
    let mut found: BTreeMap<(String, String, String), Shortage> = BTreeMap::new();
    for error in errors {
        if error.code == NO_SPOT_ROLE {
            let shortage = Shortage {
                capacity_type: Some(CAPACITY_TYPE_SPOT.to_owned()),
                reason: error.code.clone(),
                ..Shortage::default()
            };
            found.insert((String::new(), String::new(), error.code.clone()), shortage);
        }
        if let Some(subnet) = error.exhausted_subnet() {
            let shortage = Shortage {
                subnet: Some(subnet.to_owned()),
                reason: error.code.clone(),
                ..Shortage::default()
            };
            found.insert((String::new(), subnet.to_owned(), error.code.clone()), shortage);
        }
        let is_reserved = asked.capacity_type == api::labels::CAPACITY_TYPE_RESERVED;
        if !is_unfulfillable(&error.code) || is_reserved || error.instance_type.is_empty() {
            continue;
        }
        let is_spread = error.is_spread_limit();
        let alone = std::slice::from_ref(&error.instance_type);
        for instance_type in if is_spread { asked.types } else { alone } {
            let shortage = Shortage {
                instance_type: Some(instance_type.as_str().into()),
                zone: Some(error.zone.clone()).filter(|zone| !zone.is_empty()),
                capacity_type: Some(asked.capacity_type.to_owned()),
                subnet: None,
                placement_group: asked.placement_group.clone(),
                reason: error.code.clone(),
            };
            found.insert(
                (instance_type.clone(), error.zone.clone(), error.code.clone()),
                shortage,
            );
        }
    }
    found.into_values().collect()
}

/// The offerings among shortages, as other parts of the program hear of them: a subnet is no offering.
fn offerings(shortages: Vec<Shortage>) -> Vec<UnavailableOffering> {
    let offering = |shortage: Shortage| UnavailableOffering {
        instance_type: shortage.instance_type,
        zone: shortage.zone.map(Into::into),
        capacity_type: shortage.capacity_type.map(Into::into),
        reason: shortage.reason.into(),
        retry_after: None,
    };
    let is_offering = |shortage: &Shortage| shortage.subnet.is_none();
    shortages.into_iter().filter(is_offering).map(offering).collect()
}

/// What a fleet that launched nothing means for the claim. Nothing but shortages: the claim is given up and its pods are
/// planned anew. Anything else among them: a reason that a person can act on.
pub(crate) fn combined(errors: &[FleetError], asked: &Asked<'_>) -> CloudError {
    let texts: BTreeSet<String> = errors.iter().map(FleetError::text).collect();
    let text = texts.into_iter().collect::<Vec<_>>().join("; ");
    if errors.iter().all(FleetError::is_shortage) {
        return CloudError::InsufficientCapacity {
            message: format!("with fleet error(s), {text}"),
            offerings: offerings(shortages(errors, asked)),
        };
    }
    let (reason, message) = reason_message(&text);
    create_error(reason, message, &text)
}

/// The reason and the message of a condition, by the first words that match.
pub(crate) fn reason_message(text: &str) -> (&'static str, &'static str) {
    let has = |words: &str| text.contains(words);
    if has(NO_SPOT_ROLE) {
        return (
            "SpotSLRCreationFailed",
            "User does not have sufficient permission to create the Spot ServiceLinkedRole to launch spot instances",
        );
    }
    if has("UnauthorizedOperation") || has("AccessDenied") || has("AuthFailure") {
        return unauthorized(text);
    }
    if has("InvalidParameter") && has("belong to different networks") {
        return (
            "SecurityGroupSubnetVPCMismatch",
            "Security groups and subnets must be in the same VPC.",
        );
    }
    let known = REASONS.iter().find(|(words, _, _)| has(words));
    known.map_or(("LaunchFailed", "Instance launch failed"), |(_, reason, message)| {
        (reason, message)
    })
}

fn unauthorized(text: &str) -> (&'static str, &'static str) {
    let cases = [
        (
            "with an explicit deny in a permissions boundary",
            "Unauthorized",
            "User is not authorized to perform this operation due to a permission boundary",
        ),
        (
            "with an explicit deny in a service control policy",
            "Unauthorized",
            "User is not authorized to perform this operation due to a service control policy",
        ),
        (
            "Not authorized for images",
            "AMIAuthorizationFailure",
            "User is not authorized for AMI used in instance launch",
        ),
    ];
    let found = cases.into_iter().find(|(words, _, _)| text.contains(words));
    found.map_or(
        (
            "Unauthorized",
            "User is not authorized to perform this operation because no identity-based policy allows it",
        ),
        |(_, reason, message)| (reason, message),
    )
}

/// Words, reason, message; the first that matches counts, so shortages come last.
const REASONS: [(&str, &str, &str); 13] = [
    (
        "iamInstanceProfile.name is invalid",
        "InstanceProfileNameInvalid",
        "Instance profile name used from EC2NodeClass status does not exist",
    ),
    (
        "InvalidLaunchTemplateId.NotFound",
        "LaunchTemplateNotFound",
        "Launch template used for instance launch wasn't found",
    ),
    (
        "User data is limited to",
        "UserDataSizeLimitExceeded",
        "Rendered user data exceeds the EC2 user data size limit",
    ),
    (
        "InvalidAMIID.Malformed",
        "InvalidAMIID",
        "AMI used for instance launch is invalid",
    ),
    (
        "InvalidAMIID.NotFound",
        "AMINotFound",
        "AMI used for instance launch either does not exist or you don't have permissions to use it",
    ),
    ("RequestLimitExceeded", "RequestLimitExceeded", "Request limit exceeded"),
    ("InternalError", "InternalError", "An internal error has occurred"),
    (
        "not eligible for Free Tier",
        "FreeTierIneligible",
        "The specified instance type is not eligible for Free Tier",
    ),
    (
        "MaxFleetCountExceeded",
        "FleetQuotaExceeded",
        "A fleet launch was requested but this would exceed your fleet request quota",
    ),
    (
        "PendingVerification",
        "AccountPendingVerification",
        "An instance launch was requested but the request for launching resources in this region is still being verified",
    ),
    (
        "MaxSpotInstanceCountExceeded",
        "SpotQuotaExceeded",
        "A spot instance launch was requested but this would exceed your spot instance quota",
    ),
    (
        "VcpuLimitExceeded",
        "VCPULimitExceeded",
        "An instance was requested that would exceed your VCPU quota",
    ),
    (
        INSUFFICIENT_FREE_ADDRESSES,
        "InsufficientFreeAddressesInSubnet",
        "There are not enough free IP addresses to launch an instance in this subnet",
    ),
];

#[cfg(test)]
mod tests;
