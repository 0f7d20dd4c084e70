//! What the read side and the launch side of this crate ask of each other.
//!
//! Facts go across as data. Neither side calls AWS for the other's questions.

use std::{collections::BTreeMap, sync::Arc};

use api::aws::{Ami, EC2NodeClass};
use async_trait::async_trait;
use cloud::{CloudError, Instance, LaunchToken, Launched, Notice};
use jiff::Timestamp;
use model::{
    object::{InstanceTypeName, NodeClaim, ProviderId},
    snapshot::CatalogType,
};

use crate::Failure;

/// What the launch side asks of the read side.
#[async_trait]
pub trait Reads: Send + Sync {
    /// A node class as it is now, with its status; none when there is none.
    async fn node_class(&self, name: &str) -> Result<Option<Arc<EC2NodeClass>>, CloudError>;

    /// The types a class can be launched as, those that cannot be had now too, with capacity, overhead and offerings.
    async fn instance_types(&self, class: &EC2NodeClass) -> Result<Vec<Arc<CatalogType>>, CloudError>;

    /// What EC2 says about a type, beyond what the catalogue carries.
    fn type_facts(&self, name: &str) -> Option<Arc<TypeFacts>>;

    /// The subnets of a class's status, with their free addresses as they were last read.
    async fn subnets(&self, class: &EC2NodeClass) -> Result<Vec<SubnetFacts>, CloudError>;

    /// The placement group that a class selects; none when it selects none.
    async fn placement_group(&self, class: &EC2NodeClass) -> Result<Option<PlacementGroupFacts>, CloudError>;

    /// The cluster that machines join.
    async fn cluster(&self) -> Result<Arc<ClusterFacts>, CloudError>;

    /// The ID of a zone by its name; none when no class has a subnet there.
    fn zone_id(&self, zone: &str) -> Option<String>;

    /// The ID of a zone that machines are shifted away from, by its name; none when they are not.
    fn shifted_zone(&self, zone: &str) -> Option<String>;

    /// Tells those who look at a claim that its class is not there.
    fn tell_missing(&self, claim: &NodeClaim);

    /// Something ran out. It counts for three minutes from now.
    fn mark_unavailable(&self, shortage: &Shortage);

    /// Something became of a capacity reservation.
    fn note_reservation(&self, id: &str, note: ReservationNote);
}

/// What drift asks of the launch side.
#[async_trait]
pub trait Describes: Send + Sync {
    /// A machine as it is.
    async fn describe(&self, id: &ProviderId, freshness: Freshness) -> Result<MachineFacts, CloudError>;
}

/// What the read side asks of the launch side.
#[async_trait]
pub trait Machines: Describes {
    /// See [`cloud::CloudProvider::create`].
    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError>;

    /// See [`cloud::CloudProvider::resume`].
    async fn resume(&self, claims: &[Arc<NodeClaim>]) -> Result<(), CloudError>;

    /// See [`cloud::CloudProvider::delete`].
    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError>;

    /// See [`cloud::CloudProvider::get`].
    async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError>;

    /// See [`cloud::CloudProvider::list`].
    async fn list(&self) -> Result<Vec<Instance>, CloudError>;

    /// See [`cloud::CloudProvider::gives_notice`].
    fn gives_notice(&self) -> bool;

    /// See [`cloud::CloudProvider::notices`].
    async fn notices(&self) -> Result<Vec<Notice>, CloudError>;

    /// See [`cloud::CloudProvider::acknowledge`].
    async fn acknowledge(&self, notice: &Notice) -> Result<(), CloudError>;

    /// Asks EC2 whether it would let us launch: makes a launch template, then dry runs of CreateFleet and RunInstances.
    async fn rehearse(&self, rehearsal: &Rehearsal<'_>) -> Result<(), RehearsalFailure>;

    /// Deletes every launch template of a node class.
    async fn delete_launch_templates(&self, node_class: &str) -> Result<(), CloudError>;

    /// What goes on beside the calls, until dropped: tagging, the poll of instance status. Ends only on a bug.
    async fn run(&self);
}

/// How old an answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// As remembered.
    Remembered,
    /// Asked anew.
    Fresh,
}

/// A machine, as far as drift asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// Its security groups, by ID.
    pub security_groups: Vec<String>,
    /// Its subnet; empty when unknown.
    pub subnet: String,
    /// What it booted from.
    pub image: String,
    /// Its type.
    pub instance_type: String,
    /// The capacity reservation it uses.
    pub capacity_reservation: Option<String>,
    /// Its placement group, by ID.
    pub placement_group: Option<String>,
}

/// A launch to try without launching.
#[derive(Debug)]
pub struct Rehearsal<'a> {
    /// From which class.
    pub class: &'a EC2NodeClass,
    /// The type to launch.
    pub instance_type: &'a Arc<CatalogType>,
    /// The image to boot.
    pub image: &'a Ami,
    /// `default` or `dedicated`.
    pub tenancy: &'a str,
}

/// Where a rehearsal came to an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RehearsalFailure {
    /// The launch template was refused.
    CreateLaunchTemplate(Failure),
    /// CreateFleet was refused.
    CreateFleet(Failure),
    /// RunInstances was refused in every subnet; this is the first subnet's answer.
    RunInstances(Failure),
    /// It did not come to a call: something of the class or the cluster is not known.
    Unprepared(String),
}

/// What the account and the cluster say about the cluster that machines join.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// `--cluster-name`
    pub name: String,
    /// The API server's address.
    pub endpoint: String,
    /// Who signs its certificates, in base64; none where it cannot be told.
    pub ca_bundle: Option<String>,
    /// Addresses of cluster DNS: that of the Service kube-dns.
    pub dns_ip: Option<String>,
    /// Addresses are of version 6.
    pub is_ipv6: bool,
    /// Addresses of Services; AL2023 cannot join without it.
    pub service_cidr: Option<String>,
    /// Kubernetes' minor version, such as `1.34`.
    pub version: String,
    /// The region.
    pub region: String,
}

/// What EC2 says about a type, beyond what the catalogue carries.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a machine, each on its own")]
pub struct TypeFacts {
    /// Its name.
    pub name: String,
    /// `amd64` or `arm64`.
    pub arch: String,
    /// Virtual CPUs.
    pub vcpu: i64,
    /// Memory as EC2 states it.
    pub memory_mib: i64,
    /// `nitro`, `xen`, or empty for bare metal.
    pub hypervisor: String,
    /// Whether there is no hypervisor.
    pub is_bare_metal: bool,
    /// Most EFA interfaces.
    pub efa_interfaces: i32,
    /// Whether there is an elastic network adapter.
    pub is_ena_supported: bool,
    /// Most network interfaces on each network card.
    pub network_cards: Vec<i32>,
    /// The card of the primary interface.
    pub default_network_card: usize,
    /// IPv4 addresses on each interface.
    pub ipv4_per_interface: i32,
    /// Local disks, decimal gigabytes in total.
    pub local_storage_gb: Option<i64>,
    /// Strategies of placement groups it supports.
    pub placement_strategies: Vec<String>,
    /// Whether machines on it can be hosts of machines.
    pub is_nested_virtualization_supported: bool,
    /// GPUs or other accelerators.
    pub is_accelerated: bool,
}

/// A subnet of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubnetFacts {
    /// Its ID.
    pub id: String,
    /// Its zone.
    pub zone: String,
    /// Its zone by the account-independent ID.
    pub zone_id: String,
    /// Free addresses when it was last read.
    pub free_addresses: i32,
    /// When that was.
    pub read_at: Timestamp,
}

/// A placement group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementGroupFacts {
    /// Its ID.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `cluster`, `spread` or `partition`.
    pub strategy: String,
    /// How many partitions it has.
    pub partitions: i32,
}

/// What is not to be had. An absent part means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shortage {
    /// The type.
    pub instance_type: Option<InstanceTypeName>,
    /// The zone.
    pub zone: Option<String>,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: Option<String>,
    /// Only this subnet is out of addresses.
    pub subnet: Option<String>,
    /// Only within this placement group, and perhaps only this partition of it.
    pub placement_group: Option<(String, Option<String>)>,
    /// EC2's code.
    pub reason: String,
}

/// What became of a capacity reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservationNote {
    /// A machine of ours took a place.
    Launched,
    /// A machine of ours gave a place back.
    Terminated,
    /// It is used up.
    Unavailable,
}

/// Which types boot from which image: each type from the first image whose requirements it meets, in the status' order.
/// Types that no image fits are left out.
pub fn images_of_types<'a>(
    images: &'a [Ami],
    types: &'a [Arc<CatalogType>],
) -> BTreeMap<&'a str, Vec<&'a Arc<CatalogType>>> {
    crate::node_class::images_of_types(images, types)
}
