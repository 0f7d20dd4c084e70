//! The drift hash of an `EC2NodeClass`, bit-equal to upstream's version v5: nodes whose recorded hash differs are
//! replaced.
//!
//! Fields are listed by Go name in Go's declaration order. In Go a zero value is skipped, but a pointer to zero and a
//! present empty list or map are not zero: hence the many `Option`s in the types.

use super::{
    BlockDevice, BlockDeviceMapping, ConnectionTracking, CpuOptions, EC2NodeClass, EC2NodeClassSpec,
    KubeletConfiguration, MetadataOptions, NetworkInterface, PlacementGroupSelector,
};
use crate::{
    hash::{self, Struct},
    quantity::Quantity,
};

/// Says which algorithm made a recorded hash. Hashes of different versions are not compared.
pub const EC2NODECLASS_HASH_VERSION: &str = "v5";

impl EC2NodeClass {
    /// The hash of everything that a running instance cannot change. The image family is hashed as resolved, so that
    /// stating what the alias implies changes nothing.
    pub fn hash(&self, ca_bundle: Option<&str>) -> String {
        let family = self.ami_family();
        let parts = [
            self.spec.hash(),
            hash::string(family.as_str()),
            hash::string(ca_bundle.unwrap_or_default()),
        ];
        hash::set(parts).to_string()
    }
}

impl EC2NodeClassSpec {
    fn hash(&self) -> u64 {
        Struct::new("EC2NodeClassSpec")
            .field(
                "PlacementGroupSelector",
                self.placement_group_selector.as_ref().map(PlacementGroupSelector::hash),
            )
            .field(
                "AssociatePublicIPAddress",
                self.associate_public_ip_address.map(hash::boolean),
            )
            .field("UserData", self.user_data.as_deref().map(hash::string))
            .field(
                "Role",
                self.role.as_deref().filter(|role| !role.is_empty()).map(hash::string),
            )
            .field("InstanceProfile", self.instance_profile.as_deref().map(hash::string))
            .field("Tags", self.tags.as_ref().map(hash::string_map))
            .field("Kubelet", self.kubelet.as_ref().map(KubeletConfiguration::hash))
            .field(
                "BlockDeviceMappings",
                set(self.block_device_mappings.as_deref(), BlockDeviceMapping::hash),
            )
            .field(
                "InstanceStorePolicy",
                self.instance_store_policy
                    .as_ref()
                    .map(|policy| hash::string(policy.as_str())),
            )
            .field(
                "NetworkInterfaces",
                set(self.network_interfaces.as_deref(), NetworkInterface::hash),
            )
            .field("DetailedMonitoring", self.detailed_monitoring.map(hash::boolean))
            .field(
                "MetadataOptions",
                self.metadata_options.as_ref().map(MetadataOptions::hash),
            )
            .field(
                "ConnectionTracking",
                self.connection_tracking.as_ref().map(ConnectionTracking::hash),
            )
            .field("Context", self.context.as_deref().map(hash::string))
            .field("CPUOptions", self.cpu_options.as_ref().map(CpuOptions::hash))
            .done()
    }
}

impl PlacementGroupSelector {
    fn hash(&self) -> u64 {
        Struct::new("PlacementGroupSelector")
            .field("Name", self.name.as_deref().map(hash::string))
            .field("ID", self.id.as_deref().map(hash::string))
            .done()
    }
}

impl KubeletConfiguration {
    fn hash(&self) -> u64 {
        let grace_periods = self.eviction_soft_grace_period.as_ref();
        Struct::new("KubeletConfiguration")
            .field(
                "ClusterDNS",
                set(self.cluster_dns.as_deref(), |address| hash::string(address)),
            )
            .field("MaxPods", self.max_pods.map(hash::int32))
            .field("PodsPerCore", self.pods_per_core.map(hash::int32))
            .field("SystemReserved", self.system_reserved.as_ref().map(hash::string_map))
            .field("KubeReserved", self.kube_reserved.as_ref().map(hash::string_map))
            .field("EvictionHard", self.eviction_hard.as_ref().map(hash::string_map))
            .field("EvictionSoft", self.eviction_soft.as_ref().map(hash::string_map))
            .field(
                "EvictionSoftGracePeriod",
                grace_periods
                    .map(|map| hash::map(map.iter().map(|(signal, span)| (hash::string(signal), span.hash())))),
            )
            .field(
                "EvictionMaxPodGracePeriod",
                self.eviction_max_pod_grace_period.map(hash::int32),
            )
            .field(
                "ImageGCHighThresholdPercent",
                self.image_gc_high_threshold_percent.map(hash::int32),
            )
            .field(
                "ImageGCLowThresholdPercent",
                self.image_gc_low_threshold_percent.map(hash::int32),
            )
            .field("CPUCFSQuota", self.cpu_cfs_quota.map(hash::boolean))
            .done()
    }
}

impl BlockDeviceMapping {
    fn hash(&self) -> u64 {
        let root_volume = self.root_volume.filter(|root| *root);
        Struct::new("BlockDeviceMapping")
            .field("DeviceName", self.device_name.as_deref().map(hash::string))
            .field("EBS", self.ebs.as_ref().map(BlockDevice::hash))
            .field("RootVolume", root_volume.map(hash::boolean))
            .done()
    }
}

impl BlockDevice {
    fn hash(&self) -> u64 {
        Struct::new("BlockDevice")
            .field("DeleteOnTermination", self.delete_on_termination.map(hash::boolean))
            .field("Encrypted", self.encrypted.map(hash::boolean))
            .field("IOPS", self.iops.map(hash::int64))
            .field("KMSKeyID", self.kms_key_id.as_deref().map(hash::string))
            .field("SnapshotID", self.snapshot_id.as_deref().map(hash::string))
            .field("Throughput", self.throughput.map(hash::int64))
            .field(
                "VolumeInitializationRate",
                self.volume_initialization_rate.map(hash::int32),
            )
            .field(
                "VolumeSize",
                self.volume_size
                    .as_ref()
                    .map(|size| hash::string(&canonical_size(size))),
            )
            .field(
                "VolumeType",
                self.volume_type.as_ref().map(|kind| hash::string(kind.as_str())),
            )
            .done()
    }
}

/// A volume's size as Go prints a quantity: with the largest suffix that leaves a whole number. The schema admits whole
/// numbers of `Gi`, `G`, `Ti` and `T` below a thousand `T`, so there is one step to climb.
fn canonical_size(size: &Quantity) -> String {
    let climb = |suffix: &str, step: u64, above: &str| {
        let number: u64 = size.0.strip_suffix(suffix)?.parse().ok()?;
        number.is_multiple_of(step).then(|| format!("{}{above}", number / step))
    };
    climb("Gi", 1024, "Ti")
        .or_else(|| climb("G", 1000, "T"))
        .unwrap_or_else(|| size.0.clone())
}

impl NetworkInterface {
    fn hash(&self) -> u64 {
        let non_zero = |index: i32| (index != 0).then(|| hash::int32(index));
        Struct::new("NetworkInterface")
            .field("NetworkCardIndex", non_zero(self.network_card_index))
            .field("DeviceIndex", non_zero(self.device_index))
            .field("InterfaceType", hash::string(self.interface_type.as_str()))
            .done()
    }
}

impl MetadataOptions {
    fn hash(&self) -> u64 {
        Struct::new("MetadataOptions")
            .field(
                "HTTPEndpoint",
                self.http_endpoint.as_ref().map(|word| hash::string(word.as_str())),
            )
            .field(
                "HTTPProtocolIPv6",
                self.http_protocol_ipv6.as_ref().map(|word| hash::string(word.as_str())),
            )
            .field(
                "HTTPPutResponseHopLimit",
                self.http_put_response_hop_limit.map(hash::int64),
            )
            .field(
                "HTTPTokens",
                self.http_tokens.as_ref().map(|word| hash::string(word.as_str())),
            )
            .done()
    }
}

impl ConnectionTracking {
    fn hash(&self) -> u64 {
        Struct::new("ConnectionTracking")
            .field("TCPEstablishedTimeout", self.tcp_established_timeout.map(hash::int32))
            .field("UDPStreamTimeout", self.udp_stream_timeout.map(hash::int32))
            .field("UDPTimeout", self.udp_timeout.map(hash::int32))
            .done()
    }
}

impl CpuOptions {
    fn hash(&self) -> u64 {
        let nested = self.nested_virtualization.as_ref();
        Struct::new("CPUOptions")
            .field("NestedVirtualization", nested.map(|word| hash::string(word.as_str())))
            .done()
    }
}

/// A Go slice: absent, or the set of its elements' hashes.
fn set<T>(elements: Option<&[T]>, hash: impl Fn(&T) -> u64) -> Option<u64> {
    elements.map(|elements| hash::set(elements.iter().map(hash)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hash_vectors;

    #[test]
    fn hashes_equal_those_of_upstream() {
        // The selectors are required but not hashed, so most vectors leave them out.
        let selectors = json!({ "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [] });
        hash_vectors::check(include_str!("hash_vectors.json"), |spec, ca_bundle| {
            let spec = serde_json::from_value(hash_vectors::merge(&selectors, &spec)).unwrap();
            EC2NodeClass::new("default", spec).hash(ca_bundle)
        });
    }

    #[test]
    fn volume_sizes_are_hashed_as_go_prints_them() {
        let cases = [
            ("1Gi", "1Gi"),
            ("1024Gi", "1Ti"),
            ("1500Gi", "1500Gi"),
            ("64000G", "64T"),
            ("1T", "1T"),
            ("Ti", "Ti"),
        ];
        for (written, printed) in cases {
            assert_eq!(canonical_size(&Quantity::from(written)), printed);
        }
    }
}
