//! The AWS provider's part of the API: `EC2NodeClass` in group `karpenter.k8s.aws`, version `v1`.
//!
//! The contract is the published module `github.com/aws/karpenter-provider-aws` v1.14.1.

mod ami;
mod block_device;
pub mod condition;
mod ec2nodeclass;
mod hash;
mod instance;
mod kubelet;
mod selector;
mod status;
mod tag;

pub use ami::{Alias, AmiFamily};
pub use block_device::{BlockDevice, BlockDeviceMapping, VolumeType};
pub use ec2nodeclass::{EC2NodeClass, EC2NodeClassSpec};
pub use hash::EC2NODECLASS_HASH_VERSION;
pub use instance::{
    ConnectionTracking, CpuOptions, Enablement, HttpTokens, InstanceStorePolicy, InterfaceType, MetadataOptions,
    NetworkInterface,
};
pub use kubelet::KubeletConfiguration;
pub use selector::{
    AmiSelectorTerm, CapacityReservationSelectorTerm, InstanceMatchCriteria, PlacementGroupSelector,
    SecurityGroupSelectorTerm, SubnetSelectorTerm,
};
pub use status::{
    Ami, CapacityReservation, CapacityReservationState, CapacityReservationType, EC2NodeClassStatus, SecurityGroup,
    Subnet,
};
pub use tag::is_restricted_tag;
