//! A launch template as the SDK sends it.

use api::aws::BlockDeviceMapping;
use aws_sdk_ec2::types::{
    CapacityReservationPreference, CapacityReservationTarget, ConnectionTrackingSpecificationRequest,
    LaunchTemplateBlockDeviceMappingRequest, LaunchTemplateCapacityReservationSpecificationRequest,
    LaunchTemplateCpuOptionsRequest, LaunchTemplateEbsBlockDeviceRequest, LaunchTemplateEnclaveOptionsRequest,
    LaunchTemplateIamInstanceProfileSpecificationRequest, LaunchTemplateInstanceMarketOptionsRequest,
    LaunchTemplateInstanceMetadataOptionsRequest, LaunchTemplateInstanceMetadataTagsState,
    LaunchTemplateInstanceNetworkInterfaceSpecificationRequest, LaunchTemplatePlacementRequest,
    LaunchTemplateTagSpecificationRequest, LaunchTemplatesMonitoringRequest, MarketType, RequestLaunchTemplateData,
    ResourceType, Tag,
};
use model::quantity::Quantity;

use super::{Interface, Reservations, Template};
use crate::launch::{choice::ReservationKind, tags::Tags};

/// Tags as the SDK has them.
pub(crate) fn tags(tags: &Tags) -> Vec<Tag> {
    tags.iter()
        .map(|(key, value)| Tag::builder().key(key).value(value).build())
        .collect()
}

impl Template {
    /// The contents of the request that makes it.
    pub(crate) fn data(&self) -> RequestLaunchTemplateData {
        let profile = LaunchTemplateIamInstanceProfileSpecificationRequest::builder().name(&self.instance_profile);
        let monitoring = LaunchTemplatesMonitoringRequest::builder().enabled(self.is_monitored);
        let enclaves = LaunchTemplateEnclaveOptionsRequest::builder().enabled(self.has_enclaves);
        let placement = LaunchTemplatePlacementRequest::builder()
            .tenancy(self.tenancy.as_str().into())
            .set_group_id(self.placement_group.clone())
            .set_partition_number(self.partition);
        let cpu = self.nested_virtualization.as_ref().map(|nested| {
            LaunchTemplateCpuOptionsRequest::builder()
                .nested_virtualization(nested.as_str().into())
                .build()
        });
        let disks: Vec<_> = self.disks.iter().map(disk).collect();
        RequestLaunchTemplateData::builder()
            .image_id(&self.image)
            .iam_instance_profile(profile.build())
            .monitoring(monitoring.build())
            .user_data(&self.user_data)
            // EC2 refuses a list that is there and empty.
            .set_block_device_mappings(Some(disks).filter(|disks| !disks.is_empty()))
            .metadata_options(self.metadata_options())
            .set_network_interfaces(Some(self.interfaces.iter().map(interface).collect()))
            .placement(placement.build())
            .enclave_options(enclaves.build())
            .set_cpu_options(cpu)
            .set_tag_specifications(Some(self.tag_specifications()))
            .set_capacity_reservation_specification(self.reservation_specification())
            .set_instance_market_options(self.market())
            .build()
    }

    fn metadata_options(&self) -> LaunchTemplateInstanceMetadataOptionsRequest {
        LaunchTemplateInstanceMetadataOptionsRequest::builder()
            .set_http_endpoint(self.metadata.endpoint.as_deref().map(Into::into))
            .set_http_protocol_ipv6(self.metadata.ipv6.as_deref().map(Into::into))
            .set_http_put_response_hop_limit(self.metadata.hop_limit)
            .set_http_tokens(self.metadata.tokens.as_deref().map(Into::into))
            // An account may turn these on for all; our tags have characters that they do not take.
            .instance_metadata_tags(LaunchTemplateInstanceMetadataTagsState::Disabled)
            .build()
    }

    fn tag_specifications(&self) -> Vec<LaunchTemplateTagSpecificationRequest> {
        let of = |kind: ResourceType| {
            LaunchTemplateTagSpecificationRequest::builder()
                .resource_type(kind)
                .set_tags(Some(tags(&self.tags)))
                .build()
        };
        let spot = self.is_spot.then(|| of(ResourceType::SpotInstancesRequest));
        std::iter::once(of(ResourceType::NetworkInterface))
            .chain(spot)
            .collect()
    }

    fn reservation_specification(&self) -> Option<LaunchTemplateCapacityReservationSpecificationRequest> {
        let builder = LaunchTemplateCapacityReservationSpecificationRequest::builder();
        let specification = match &self.reservations {
            Reservations::Open => return None,
            Reservations::None => builder.capacity_reservation_preference(CapacityReservationPreference::None),
            Reservations::Only { id, .. } => builder
                .capacity_reservation_preference(CapacityReservationPreference::CapacityReservationsOnly)
                .capacity_reservation_target(CapacityReservationTarget::builder().capacity_reservation_id(id).build()),
        };
        Some(specification.build())
    }

    fn market(&self) -> Option<LaunchTemplateInstanceMarketOptionsRequest> {
        let Reservations::Only { kind, .. } = &self.reservations else {
            return None;
        };
        let market = match kind {
            ReservationKind::Default => return None,
            ReservationKind::CapacityBlock => MarketType::CapacityBlock,
            ReservationKind::Interruptible => "interruptible-capacity-reservation".into(),
        };
        let options = LaunchTemplateInstanceMarketOptionsRequest::builder().market_type(market);
        Some(options.build())
    }
}

fn interface(it: &Interface) -> LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
    let tracking = it.tracking.map(|tracking| {
        ConnectionTrackingSpecificationRequest::builder()
            .set_tcp_established_timeout(tracking.tcp_established)
            .set_udp_stream_timeout(tracking.udp_stream)
            .set_udp_timeout(tracking.udp)
            .build()
    });
    LaunchTemplateInstanceNetworkInterfaceSpecificationRequest::builder()
        .set_network_card_index(it.card)
        .device_index(it.device)
        .set_interface_type(it.kind.clone())
        .set_ipv4_prefix_count(it.ipv4_prefixes)
        .set_ipv6_prefix_count(it.ipv6_prefixes)
        .set_associate_public_ip_address(it.has_public_address)
        .set_primary_ipv6(it.is_primary_ipv6.then_some(true))
        .set_ipv6_address_count(it.ipv6_addresses)
        .set_groups(Some(it.groups.clone()))
        .set_connection_tracking_specification(tracking)
        .build()
}

fn disk(it: &BlockDeviceMapping) -> LaunchTemplateBlockDeviceMappingRequest {
    let number = |value: Option<i64>| value.filter(|it| *it != 0).and_then(|it| i32::try_from(it).ok());
    let ebs = it.ebs.as_ref().map(|ebs| {
        LaunchTemplateEbsBlockDeviceRequest::builder()
            .set_delete_on_termination(ebs.delete_on_termination)
            .set_encrypted(ebs.encrypted)
            .set_volume_type(ebs.volume_type.as_ref().map(|it| it.as_str().into()))
            .set_iops(number(ebs.iops))
            .set_throughput(number(ebs.throughput))
            .set_kms_key_id(ebs.kms_key_id.clone())
            .set_snapshot_id(ebs.snapshot_id.clone())
            .set_volume_initialization_rate(ebs.volume_initialization_rate)
            .set_volume_size(ebs.volume_size.as_ref().and_then(|size| gibibytes(&size.0)))
            .build()
    });
    LaunchTemplateBlockDeviceMappingRequest::builder()
        .set_device_name(it.device_name.clone())
        .set_ebs(ebs)
        .build()
}

/// Whole GiB, rounded up.
pub(super) fn gibibytes(size: &str) -> Option<i32> {
    let bytes = size.parse::<Quantity>().ok()?.value();
    i32::try_from(bytes.max(0).unsigned_abs().div_ceil(1 << 30)).ok()
}
