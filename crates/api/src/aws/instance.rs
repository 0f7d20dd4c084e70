//! What an `EC2NodeClass` asks of the instance itself: metadata service, network interfaces, CPU and local disks.
#![allow(clippy::struct_field_names, reason = "the names are the API's")]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::open_enum::open_enum;

/// How the instance metadata service is exposed.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// Whether the metadata service answers at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "enabled"))]
    pub http_endpoint: Option<Enablement>,
    /// Whether the metadata service answers over IPv6.
    #[serde(rename = "httpProtocolIPv6", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "disabled"))]
    pub http_protocol_ipv6: Option<Enablement>,
    /// How many network hops an answer may travel. One keeps it from containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64), extend("default" = 1))]
    pub http_put_response_hop_limit: Option<i64>,
    /// Whether requests need a session token (IMDSv2).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "required"))]
    pub http_tokens: Option<HttpTokens>,
}

open_enum! {
    /// A feature that is on or off.
    Enablement {
        /// On.
        Enabled = "enabled",
        /// Off.
        Disabled = "disabled",
    }
}

open_enum! {
    /// Whether the metadata service insists on session tokens.
    HttpTokens {
        /// Only requests with a token are answered.
        Required = "required",
        /// Requests without a token are answered too.
        Optional = "optional",
    }
}

/// Idle timeouts of tracked connections on the interfaces of the launch template. Needs Nitro instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)")
        .message("at least one of tcpEstablishedTimeout, udpStreamTimeout, or udpTimeout must be set")
)]
pub struct ConnectionTracking {
    /// Seconds until an idle established TCP connection is forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 432_000))]
    pub tcp_established_timeout: Option<i32>,
    /// Seconds until an idle UDP flow with several exchanges is forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 180))]
    pub udp_stream_timeout: Option<i32>,
    /// Seconds until an idle UDP flow with traffic one way, or a single exchange, is forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 30, max = 60))]
    pub udp_timeout: Option<i32>,
}

/// CPU features of the instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuOptions {
    /// Whether virtual machines can run inside the instance; enabled, only types that support it are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nested_virtualization: Option<Enablement>,
}

/// One network interface of the instance.
#[derive(Clone, Debug, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// The network card the interface sits on.
    #[schemars(range(min = 0))]
    pub network_card_index: i32,
    /// The interface's position on its card.
    #[schemars(range(min = 0))]
    pub device_index: i32,
    /// What the interface carries.
    pub interface_type: InterfaceType,
}

open_enum! {
    /// The kind of a network interface.
    InterfaceType {
        /// An ordinary elastic network adapter.
        Interface = "interface",
        /// An elastic fabric adapter without an address.
        EfaOnly = "efa-only",
    }
}

open_enum! {
    /// What to do with the instance's local disks.
    InstanceStorePolicy {
        /// Join them into one array that holds the state of containerd and the kubelet.
        Raid0 = "RAID0",
    }
}
