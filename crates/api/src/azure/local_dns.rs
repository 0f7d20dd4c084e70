//! The DNS cache an `AKSNodeClass` puts on each node.
//!
//! The schema requires every field of a zone override. They are read as optional nevertheless: upstream hashes an absent
//! one as absent, and an object stored before a field was required must stay readable.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::{duration::NillableDuration, open_enum::open_enum};

/// The DNS cache on each node.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalDns {
    /// Whether nodes run the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub mode: Option<LocalDnsMode>,
    /// Zones of queries from the kubelet and from pods with dnsPolicy Default.
    #[serde(rename = "vnetDNSOverrides", skip_serializing_if = "Option::is_none")]
    #[schemars(required, length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["zone"]))]
    #[x_kube(
        validation = Rule::new("['.', 'cluster.local'].all(z, self.exists(x, x.zone == z))")
            .message("must contain required zones '.' and 'cluster.local'"),
        validation = Rule::new("!self.exists(x, x.zone == '.' && x.forwardDestination == 'ClusterCoreDNS')")
            .message("root zone '.' cannot be forwarded to ClusterCoreDNS from vnetDNSOverrides"),
        validation = Rule::new("!self.exists(x, x.zone != '.' && !x.zone.endsWith('cluster.local') && x.forwardDestination == 'ClusterCoreDNS')")
            .message("external domains cannot be forwarded to ClusterCoreDNS from vnetDNSOverrides")
    )]
    pub vnet_dns_overrides: Option<Vec<LocalDnsZoneOverride>>,
    /// Zones of queries from pods with dnsPolicy ClusterFirst.
    #[serde(rename = "kubeDNSOverrides", skip_serializing_if = "Option::is_none")]
    #[schemars(required, length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["zone"]))]
    #[x_kube(
        validation = Rule::new("['.', 'cluster.local'].all(z, self.exists(x, x.zone == z))")
            .message("must contain required zones '.' and 'cluster.local'")
    )]
    pub kube_dns_overrides: Option<Vec<LocalDnsZoneOverride>>,
}

open_enum! {
    /// Whether nodes run the DNS cache.
    LocalDnsMode {
        /// They do if the cluster supports it.
        Preferred = "Preferred",
        /// They do.
        Required = "Required",
        /// They do not.
        Disabled = "Disabled",
    }
}

/// How queries for one DNS zone are answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!(self.zone.endsWith('cluster.local') && self.forwardDestination == 'VnetDNS')")
        .message("'cluster.local' cannot be forwarded to VnetDNS"),
    validation = Rule::new("!(self.serveStale == 'Verify' && self.protocol == 'ForceTCP')")
        .message("serveStale Verify cannot be used with protocol ForceTCP")
)]
pub struct LocalDnsZoneOverride {
    /// The DNS zone, such as `cluster.local`, or `.` for all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, length(min = 1, max = 254), extend("pattern" = r"^(\.|[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?)*\.?)$"))]
    pub zone: Option<String>,
    /// What is logged of each query.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub query_logging: Option<LocalDnsQueryLogging>,
    /// The protocol towards the next server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub protocol: Option<LocalDnsProtocol>,
    /// The next server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub forward_destination: Option<LocalDnsForwardDestination>,
    /// How one of several next servers is chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub forward_policy: Option<LocalDnsForwardPolicy>,
    /// How many queries may be under way at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, range(min = 0))]
    pub max_concurrent: Option<i32>,
    /// How long answers are cached.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, extend("pattern" = "^([0-9]+(s|m|h))+$"))]
    pub cache_duration: Option<NillableDuration>,
    /// How long past their end answers may still be served.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, extend("pattern" = "^([0-9]+(s|m|h))+$"))]
    pub serve_stale_duration: Option<NillableDuration>,
    /// When outdated answers are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub serve_stale: Option<LocalDnsServeStale>,
}

open_enum! {
    /// What is logged of each query.
    LocalDnsQueryLogging {
        /// Errors.
        Error = "Error",
        /// Everything.
        Log = "Log",
    }
}

open_enum! {
    /// The protocol towards the next server.
    LocalDnsProtocol {
        /// UDP where possible.
        PreferUdp = "PreferUDP",
        /// TCP always.
        ForceTcp = "ForceTCP",
    }
}

open_enum! {
    /// Where queries go that the cache cannot answer.
    LocalDnsForwardDestination {
        /// The cluster's CoreDNS.
        ClusterCoreDns = "ClusterCoreDNS",
        /// The DNS servers of the virtual network.
        VnetDns = "VnetDNS",
    }
}

open_enum! {
    /// How one of several next servers is chosen.
    LocalDnsForwardPolicy {
        /// The first that answers.
        Sequential = "Sequential",
        /// Each in turn.
        RoundRobin = "RoundRobin",
        /// Any.
        Random = "Random",
    }
}

open_enum! {
    /// When outdated answers are served.
    LocalDnsServeStale {
        /// Once the source has failed to answer.
        Verify = "Verify",
        /// At once, and renewed after.
        Immediate = "Immediate",
        /// Never.
        Disable = "Disable",
    }
}
