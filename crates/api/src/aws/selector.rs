//! How an `EC2NodeClass` finds the AWS resources its nodes use. Terms of a list are alternatives; the fields of one term
//! must all match.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::open_enum::open_enum;

/// One way to find subnets.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
pub struct SubnetSelectorTerm {
    /// Tags the subnet must carry. The value `*` matches any value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 20))]
    #[x_kube(
        validation = Rule::new("self.all(k, k != '' && self[k] != '')")
            .message("empty tag keys or values aren't supported")
    )]
    pub tags: Option<BTreeMap<String, String>>,
    /// The subnet's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "subnet-[0-9a-z]+"))]
    pub id: Option<String>,
}

/// One way to find security groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
pub struct SecurityGroupSelectorTerm {
    /// Tags the security group must carry. The value `*` matches any value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 20))]
    #[x_kube(
        validation = Rule::new("self.all(k, k != '' && self[k] != '')")
            .message("empty tag keys or values aren't supported")
    )]
    pub tags: Option<BTreeMap<String, String>>,
    /// The security group's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "sg-[0-9a-z]+"))]
    pub id: Option<String>,
    /// The security group's name, which is not its `Name` tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// One way to find capacity reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservationSelectorTerm {
    /// Tags the capacity reservation must carry. The value `*` matches any value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 20))]
    #[x_kube(
        validation = Rule::new("self.all(k, k != '' && self[k] != '')")
            .message("empty tag keys or values aren't supported")
    )]
    pub tags: Option<BTreeMap<String, String>>,
    /// The capacity reservation's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^cr-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// The account that owns the capacity reservation.
    #[serde(rename = "ownerID", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^[0-9]{12}$"))]
    pub owner_id: Option<String>,
    /// Whether the reservation takes any matching instance, or only those that name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_match_criteria: Option<InstanceMatchCriteria>,
}

open_enum! {
    /// Which launches a capacity reservation accepts.
    InstanceMatchCriteria {
        /// Any launch with the right attributes.
        Open = "open",
        /// Only launches that name the reservation.
        Targeted = "targeted",
    }
}

/// The placement group that instances join, by name or by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
pub struct PlacementGroupSelector {
    /// The placement group's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// The placement group's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^pg-[0-9a-z]+$"))]
    pub id: Option<String>,
}

/// One way to find machine images.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AmiSelectorTerm {
    /// A published EKS image line and version, as `family@version`. Families: al2, al2023, bottlerocket, windows2019,
    /// windows2022, windows2025. The version is a release of that line or `latest`, which replaces nodes on every new
    /// release; Windows families know only `latest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 30))]
    #[x_kube(
        validation = Rule::new("self.matches('^[a-zA-Z0-9]+@.+$')")
            .message("'alias' is improperly formatted, must match the format 'family@version'"),
        validation = Rule::new("self.split('@')[0] in ['al2','al2023','bottlerocket','windows2019','windows2022','windows2025']")
            .message("family is not supported, must be one of the following: 'al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025'"),
        validation = Rule::new("self.split('@')[0] in ['windows2019','windows2022','windows2025'] ? self.split('@')[1] == 'latest' : true")
            .message("windows families may only specify version 'latest'")
    )]
    pub alias: Option<String>,
    /// Tags the image must carry. The value `*` matches any value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 20))]
    #[x_kube(
        validation = Rule::new("self.all(k, k != '' && self[k] != '')")
            .message("empty tag keys or values aren't supported")
    )]
    pub tags: Option<BTreeMap<String, String>>,
    /// The image's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "ami-[0-9a-z]+"))]
    pub id: Option<String>,
    /// The image's name, which is not its `Name` tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The image's owner: an account id, `self`, `amazon` or `aws-marketplace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The name or ARN of an SSM parameter that holds the image's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssm_parameter: Option<String>,
}
