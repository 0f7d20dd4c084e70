//! `EC2NodeClass`: what instances a NodePool launches on AWS, where, and how they are set up.
#![allow(
    dead_code,
    reason = "kube's schema derive repeats the struct to describe it, and nothing reads the copy"
)]

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::{
    AmiFamily, AmiSelectorTerm, BlockDeviceMapping, CapacityReservationSelectorTerm, ConnectionTracking, CpuOptions,
    EC2NodeClassStatus, Enablement, HttpTokens, InstanceStorePolicy, KubeletConfiguration, MetadataOptions,
    NetworkInterface, PlacementGroupSelector, SecurityGroupSelectorTerm, SubnetSelectorTerm,
};
use crate::absent_spec::spec_may_be_absent;

/// What to launch, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, CustomResource, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", remote = "Self")]
#[kube(
    group = "karpenter.k8s.aws",
    version = "v1",
    kind = "EC2NodeClass",
    plural = "ec2nodeclasses",
    shortname = "ec2nc",
    shortname = "ec2ncs",
    category = "karpenter",
    status = "EC2NodeClassStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Role", type_ = "string", json_path = ".spec.role", priority = 1),
    doc = "Settings for EC2 instances. Referenced from a NodePool's nodeClassRef."
)]
#[x_kube(
    validation = Rule::new("(has(self.role) && !has(self.instanceProfile)) || (!has(self.role) && has(self.instanceProfile))")
        .message("must specify exactly one of ['role', 'instanceProfile']"),
    validation = Rule::new("!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'al2') ? (self.amiFamily == 'Custom' || self.amiFamily == 'AL2') : true)")
        .message("if set, amiFamily must be 'AL2' or 'Custom' when using an AL2 alias"),
    validation = Rule::new("!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'al2023') ? (self.amiFamily == 'Custom' || self.amiFamily == 'AL2023') : true)")
        .message("if set, amiFamily must be 'AL2023' or 'Custom' when using an AL2023 alias"),
    validation = Rule::new("!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'bottlerocket') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Bottlerocket') : true)")
        .message("if set, amiFamily must be 'Bottlerocket' or 'Custom' when using a Bottlerocket alias"),
    validation = Rule::new("!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2019') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Windows2019') : true)")
        .message("if set, amiFamily must be 'Windows2019' or 'Custom' when using a Windows2019 alias"),
    validation = Rule::new("!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2022') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Windows2022') : true)")
        .message("if set, amiFamily must be 'Windows2022' or 'Custom' when using a Windows2022 alias"),
    validation = Rule::new("!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2025') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Windows2025') : true)")
        .message("if set, amiFamily must be 'Windows2025' or 'Custom' when using a Windows2025 alias"),
    validation = Rule::new("self.amiSelectorTerms.exists(x, has(x.alias)) ? true : has(self.amiFamily)")
        .message("must specify amiFamily if amiSelectorTerms does not contain an alias")
)]
pub struct EC2NodeClassSpec {
    /// Subnets to launch into: those that any term finds.
    #[schemars(length(max = 30))]
    #[x_kube(
        validation = Rule::new("self.size() != 0").message("subnetSelectorTerms cannot be empty"),
        validation = Rule::new("self.all(x, has(x.tags) || has(x.id))")
            .message("expected at least one, got none, ['tags', 'id']"),
        validation = Rule::new("!self.all(x, has(x.id) && has(x.tags))")
            .message("'id' is mutually exclusive, cannot be set with a combination of other fields in a subnet selector term")
    )]
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    /// Security groups of the instances: those that any term finds.
    #[schemars(length(max = 30))]
    #[x_kube(
        validation = Rule::new("self.size() != 0").message("securityGroupSelectorTerms cannot be empty"),
        validation = Rule::new("self.all(x, has(x.tags) || has(x.id) || has(x.name))")
            .message("expected at least one, got none, ['tags', 'id', 'name']"),
        validation = Rule::new("!self.all(x, has(x.id) && (has(x.tags) || has(x.name)))")
            .message("'id' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term"),
        validation = Rule::new("!self.all(x, has(x.name) && (has(x.tags) || has(x.id)))")
            .message("'name' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term")
    )]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// Capacity reservations to use: those that any term finds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 30))]
    #[x_kube(
        validation = Rule::new("self.all(x, has(x.tags) || has(x.id) || has(x.instanceMatchCriteria))")
            .message("expected at least one, got none, ['tags', 'id', 'instanceMatchCriteria']"),
        validation = Rule::new("!self.all(x, has(x.id) && (has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))")
            .message("'id' is mutually exclusive, cannot be set along with other fields in a capacity reservation selector term")
    )]
    pub capacity_reservation_selector_terms: Option<Vec<CapacityReservationSelectorTerm>>,
    /// The placement group instances join.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = Rule::new("has(self.name) || has(self.id)")
            .message("expected at least one, got none, ['name', 'id']"),
        validation = Rule::new("!(has(self.name) && has(self.id))").message("'name' and 'id' are mutually exclusive")
    )]
    pub placement_group_selector: Option<PlacementGroupSelector>,
    /// Whether instances get a public address. Unset leaves it to the subnet.
    #[serde(rename = "associatePublicIPAddress", skip_serializing_if = "Option::is_none")]
    pub associate_public_ip_address: Option<bool>,
    /// How many address prefixes the network interface gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ip_prefix_count: Option<i32>,
    /// Machine images to boot: those that any term finds.
    #[schemars(length(min = 1, max = 30))]
    #[x_kube(
        validation = Rule::new("self.all(x, has(x.tags) || has(x.id) || has(x.name) || has(x.alias) || has(x.ssmParameter))")
            .message("expected at least one, got none, ['tags', 'id', 'name', 'alias', 'ssmParameter']"),
        validation = Rule::new("!self.exists(x, has(x.id) && (has(x.alias) || has(x.tags) || has(x.name) || has(x.owner)))")
            .message("'id' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms"),
        validation = Rule::new("!self.exists(x, has(x.alias) && (has(x.id) || has(x.tags) || has(x.name) || has(x.owner)))")
            .message("'alias' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms"),
        validation = Rule::new("!(self.exists(x, has(x.alias)) && self.size() != 1)")
            .message("'alias' is mutually exclusive, cannot be set with a combination of other amiSelectorTerms")
    )]
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    /// The image family, which decides the format of user data and the default disks. An alias implies it; without one
    /// it is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ami_family: Option<AmiFamily>,
    /// User data in the format of the image family. What nodes need to join the cluster is merged into it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// The IAM role of the nodes, for which an instance profile is made. Excludes `instanceProfile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self != ''").message("role cannot be empty"))]
    pub role: Option<String>,
    /// The instance profile of the nodes, which must exist and carry a role. Excludes `role`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self != ''").message("instanceProfile cannot be empty"))]
    pub instance_profile: Option<String>,
    /// Tags for the instances, volumes and other EC2 resources made for this class.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = Rule::new("self.all(k, k != '')").message("empty tag keys aren't supported"),
        validation = Rule::new("self.all(k, k !='eks:eks-cluster-name')")
            .message("tag contains a restricted tag matching eks:eks-cluster-name"),
        validation = Rule::new("self.all(k, !k.startsWith('kubernetes.io/cluster') )")
            .message("tag contains a restricted tag matching kubernetes.io/cluster/"),
        validation = Rule::new("self.all(k, k != 'karpenter.sh/nodepool')")
            .message("tag contains a restricted tag matching karpenter.sh/nodepool"),
        validation = Rule::new("self.all(k, k !='karpenter.sh/nodeclaim')")
            .message("tag contains a restricted tag matching karpenter.sh/nodeclaim"),
        validation = Rule::new("self.all(k, k !='karpenter.k8s.aws/ec2nodeclass')")
            .message("tag contains a restricted tag matching karpenter.k8s.aws/ec2nodeclass")
    )]
    pub tags: Option<BTreeMap<String, String>>,
    /// Kubelet settings of the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = Rule::new("has(self.imageGCHighThresholdPercent) && has(self.imageGCLowThresholdPercent) ?  self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent  : true")
            .message("imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent"),
        validation = Rule::new("has(self.evictionSoft) ? self.evictionSoft.all(e, (e in self.evictionSoftGracePeriod)):true")
            .message("evictionSoft OwnerKey does not have a matching evictionSoftGracePeriod"),
        validation = Rule::new("has(self.evictionSoftGracePeriod) ? self.evictionSoftGracePeriod.all(e, (e in self.evictionSoft)):true")
            .message("evictionSoftGracePeriod OwnerKey does not have a matching evictionSoft")
    )]
    pub kubelet: Option<KubeletConfiguration>,
    /// Disks of the instances. Unset, the image family's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    #[x_kube(
        validation = Rule::new("self.filter(x, has(x.rootVolume)?x.rootVolume==true:false).size() <= 1")
            .message("must have only one blockDeviceMappings with rootVolume")
    )]
    pub block_device_mappings: Option<Vec<BlockDeviceMapping>>,
    /// What to do with local disks. Unset, they are left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// Network interfaces of the instances. Unset, one ordinary interface, and EFA ones where pods ask for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 150))]
    #[x_kube(
        validation = Rule::new("self.size() == 0 || self.exists(x, x.deviceIndex == 0 && x.networkCardIndex == 0 && x.interfaceType == 'interface')")
            .message("networkInterfaces must include a primary interface with interfaceType='interface'"),
        validation = Rule::new("self.all(x, self.filter(y, x.networkCardIndex == y.networkCardIndex && x.deviceIndex == y.deviceIndex).size() == 1 && (x.interfaceType != 'efa-only' || self.filter(y, x.networkCardIndex == y.networkCardIndex && y.interfaceType == 'efa-only').size() == 1))")
            .message("networkInterfaces must not have duplicate networkCardIndex and deviceIndex pairs, and can have at most one efa device per network card")
    )]
    pub network_interfaces: Option<Vec<NetworkInterface>>,
    /// Whether CloudWatch gathers metrics every minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detailed_monitoring: Option<bool>,
    /// How the instance metadata service is exposed. By default it answers over IPv4, one hop far, to requests with a
    /// token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {
        "httpEndpoint": "enabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "required",
    }))]
    pub metadata_options: Option<MetadataOptions>,
    /// Idle timeouts of tracked connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_tracking: Option<ConnectionTracking>,
    /// Passed on as the reserved EC2 field of the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// CPU features of the instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_options: Option<CpuOptions>,
}

spec_may_be_absent!(EC2NodeClassSpec);

impl EC2NodeClassSpec {
    /// The spec as the API server stores it, with the schema's defaults filled in. A manifest read from a file needs
    /// this before it is hashed; an object read from a cluster has them.
    #[must_use]
    pub fn defaulted(mut self) -> Self {
        let options = self.metadata_options.get_or_insert_default();
        options.http_endpoint.get_or_insert(Enablement::Enabled);
        options.http_protocol_ipv6.get_or_insert(Enablement::Disabled);
        options.http_put_response_hop_limit.get_or_insert(1);
        options.http_tokens.get_or_insert(HttpTokens::Required);
        self
    }
}

#[cfg(test)]
mod tests;
