//! What does a launch template hold? Everything about a machine but its type, its subnet and its claim.
//!
//! Templates are named by their contents: equal needs share one, and none is ever changed.

mod resolve;
mod wire;

pub(super) use self::wire::tags as wire_tags;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use api::aws::{AmiFamily, BlockDeviceMapping, ConnectionTracking, EC2NodeClass, InterfaceType};
use serde::Serialize;

pub(crate) use self::resolve::EFA;
pub(super) use self::resolve::{ResolveError, Resolved, Scene, efa_interfaces, resolve};
use super::{choice::ReservationKind, tags::Tags};

/// What every name begins with.
pub(super) const NAME_PREFIX: &str = "karpenter.k8s.aws";

/// A launch template. Its name follows from every field.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Template {
    pub(super) image: String,
    pub(super) instance_profile: String,
    /// In base64.
    pub(super) user_data: String,
    pub(super) is_monitored: bool,
    pub(super) disks: Vec<BlockDeviceMapping>,
    pub(super) metadata: Metadata,
    pub(super) interfaces: Vec<Interface>,
    pub(super) tenancy: String,
    pub(super) placement_group: Option<String>,
    pub(super) partition: Option<i32>,
    pub(super) has_enclaves: bool,
    pub(super) nested_virtualization: Option<String>,
    pub(super) tags: Tags,
    pub(super) is_spot: bool,
    pub(super) reservations: Reservations,
}

impl Template {
    /// Its name: the same for the same contents, in every process.
    pub(super) fn name(&self) -> String {
        let contents = serde_json::to_vec(self).unwrap_or_default();
        format!("{NAME_PREFIX}/{}", api::hash::bytes(&contents))
    }
}

/// How the machine treats capacity reservations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) enum Reservations {
    /// As EC2 does by itself: open ones are used. With the gate `ReservedCapacity` off.
    Open,
    /// None is used: what is not launched as reserved must not take a reservation's place.
    None,
    /// This one only.
    Only {
        /// Its ID.
        id: String,
        /// Its kind.
        kind: ReservationKind,
    },
}

/// How the metadata service is exposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Metadata {
    pub(super) endpoint: Option<String>,
    /// None in regions whose API does not know the field.
    pub(super) ipv6: Option<String>,
    pub(super) hop_limit: Option<i32>,
    pub(super) tokens: Option<String>,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Interface {
    pub(super) card: Option<i32>,
    pub(super) device: i32,
    pub(super) kind: Option<String>,
    pub(super) ipv4_prefixes: Option<i32>,
    pub(super) ipv6_prefixes: Option<i32>,
    pub(super) has_public_address: Option<bool>,
    pub(super) is_primary_ipv6: bool,
    pub(super) ipv6_addresses: Option<i32>,
    pub(super) groups: Vec<String>,
    pub(super) tracking: Option<Tracking>,
}

/// Idle time-outs of tracked connections, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Tracking {
    pub(super) tcp_established: Option<i32>,
    pub(super) udp_stream: Option<i32>,
    pub(super) udp: Option<i32>,
}

impl Tracking {
    fn of(written: Option<&ConnectionTracking>) -> Option<Self> {
        let written = written?;
        let tracking = Self {
            tcp_established: written.tcp_established_timeout,
            udp_stream: written.udp_stream_timeout,
            udp: written.udp_timeout,
        };
        let is_set = tracking.tcp_established.or(tracking.udp_stream).or(tracking.udp);
        is_set.map(|_| tracking)
    }
}

/// The interfaces of a machine: those the class lists, as many EFA ones as the claim needs, or one.
fn interfaces(class: &EC2NodeClass, efa: usize, is_ipv6: bool) -> Vec<Interface> {
    let groups: Vec<String> = class
        .status
        .iter()
        .flat_map(|status| status.security_groups.iter().map(|group| group.id.clone()))
        .collect();
    let prefixes = class.spec.ip_prefix_count;
    let ordinary = Interface {
        ipv4_prefixes: prefixes.filter(|_| !is_ipv6),
        ipv6_prefixes: prefixes.filter(|_| is_ipv6),
        has_public_address: class.spec.associate_public_ip_address,
        is_primary_ipv6: is_ipv6,
        ipv6_addresses: is_ipv6.then_some(1),
        tracking: Tracking::of(class.spec.connection_tracking.as_ref()),
        groups: groups.clone(),
        ..Interface::default()
    };
    let listed = class.spec.network_interfaces.as_deref().unwrap_or_default();
    if !listed.is_empty() {
        let of = |written: &api::aws::NetworkInterface| {
            // EC2 refuses addresses on an interface that carries none.
            let is_bare = written.interface_type == InterfaceType::EfaOnly;
            let bare = Interface {
                groups: groups.clone(),
                ..Interface::default()
            };
            Interface {
                card: Some(written.network_card_index),
                device: written.device_index,
                kind: Some(written.interface_type.to_string()),
                ..if is_bare { bare } else { ordinary.clone() }
            }
        };
        return listed.iter().map(of).collect();
    }
    if efa > 0 {
        let of = |card: usize| Interface {
            card: i32::try_from(card).ok(),
            // One card comes first, so that a public address goes to it.
            device: i32::from(card > 0),
            kind: Some("efa".to_owned()),
            ..ordinary.clone()
        };
        return (0..efa).map(of).collect();
    }
    vec![ordinary]
}

/// The disks of a class, or its family's.
fn disks(class: &EC2NodeClass, family: &AmiFamily) -> Vec<BlockDeviceMapping> {
    match class.spec.block_device_mappings.as_deref() {
        None | Some([]) => default_disks(family),
        Some(disks) => disks.to_vec(),
    }
}

/// The disks a family has where the class names none.
pub(crate) fn default_disks(family: &AmiFamily) -> Vec<BlockDeviceMapping> {
    let disk = |device: &str, size: &str| BlockDeviceMapping {
        device_name: Some(device.to_owned()),
        ebs: Some(api::aws::BlockDevice {
            encrypted: Some(true),
            volume_type: Some(api::aws::VolumeType::Gp3),
            volume_size: Some(size.into()),
            ..api::aws::BlockDevice::default()
        }),
        root_volume: None,
    };
    match family {
        AmiFamily::Custom => Vec::new(),
        AmiFamily::Bottlerocket => vec![disk("/dev/xvda", "4Gi"), disk("/dev/xvdb", "20Gi")],
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => vec![disk("/dev/sda1", "50Gi")],
        AmiFamily::AL2 | AmiFamily::AL2023 | AmiFamily::Other(_) => vec![disk("/dev/xvda", "20Gi")],
    }
}

/// Regions whose API does not know the metadata service's IPv6 switch.
const WITHOUT_IPV6_METADATA: [&str; 6] = [
    "us-iso-east-1",
    "us-iso-west-1",
    "us-isob-east-1",
    "us-isob-west-1",
    "us-isof-south-1",
    "us-isof-east-1",
];

fn metadata(class: &EC2NodeClass, is_ipv6: bool, region: &str) -> Metadata {
    let has_ipv6_switch = !WITHOUT_IPV6_METADATA.contains(&region);
    let text = |value: &str| Some(value.to_owned());
    match &class.spec.metadata_options {
        Some(options) => Metadata {
            endpoint: options.http_endpoint.as_ref().map(ToString::to_string),
            ipv6: options
                .http_protocol_ipv6
                .as_ref()
                .map(ToString::to_string)
                .filter(|_| has_ipv6_switch),
            hop_limit: options
                .http_put_response_hop_limit
                .and_then(|it| i32::try_from(it).ok()),
            tokens: options.http_tokens.as_ref().map(ToString::to_string),
        },
        // The API server fills the field in; an object that never passed it has none.
        None => Metadata {
            endpoint: text("disabled"),
            ipv6: text(if is_ipv6 { "enabled" } else { "disabled" }).filter(|_| has_ipv6_switch),
            hop_limit: Some(2),
            tokens: text("required"),
        },
    }
}

/// The labels a kubelet may give its own node: admission refuses it those of Kubernetes' own domains.
fn allowed_labels(labels: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_refused = |key: &str| {
        let domain = api::labels::domain(key);
        let mut refused = ["node-restriction.kubernetes.io", "kubernetes.io", "k8s.io"].into_iter();
        refused.any(|it| domain == it || domain.ends_with(&format!(".{it}")))
    };
    labels.into_iter().filter(|(key, _)| !is_refused(key)).collect()
}
