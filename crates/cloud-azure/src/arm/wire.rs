//! What goes over the wire: the parts of Azure's resources that we write or read, in its words.
#![allow(missing_docs, reason = "the names are Azure's, and so is what they mean")]

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Azure writes null where it means none.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Names and values.
pub type Tags = BTreeMap<String, String>;

macro_rules! wire {
    ($(#[$doc:meta])* $name:ident { $($body:tt)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name { $($body)* }
    };
}

pub mod aks;

wire! {
    /// A page of a list.
    Page {
        #[serde(deserialize_with = "or_default")]
        pub value: Vec<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub next_link: Option<String>,
    }
}

wire! {
    /// A reference to another resource.
    Reference {
        pub id: String,
    }
}

wire! {
    /// A virtual machine.
    VirtualMachine {
        #[serde(skip_serializing_if = "String::is_empty")]
        pub id: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        pub name: String,
        pub location: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub identity: Option<Identity>,
        #[serde(deserialize_with = "or_default")]
        pub zones: Vec<String>,
        #[serde(deserialize_with = "or_default")]
        pub tags: Tags,
        pub properties: VirtualMachineProperties,
    }
}

wire! {
    /// The identities of a virtual machine.
    Identity {
        #[serde(rename = "type")]
        pub kind: String,
        #[serde(deserialize_with = "or_default")]
        pub user_assigned_identities: BTreeMap<String, Value>,
    }
}

wire! {
    VirtualMachineProperties {
        #[serde(skip_serializing)]
        pub provisioning_state: Option<String>,
        #[serde(skip_serializing)]
        pub time_created: Option<Timestamp>,
        pub hardware_profile: HardwareProfile,
        pub storage_profile: StorageProfile,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub os_profile: Option<OsProfile>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub network_profile: Option<NetworkProfile>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub priority: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub eviction_policy: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub billing_profile: Option<BillingProfile>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub security_profile: Option<SecurityProfile>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub additional_capabilities: Option<AdditionalCapabilities>,
        /// Only where it is asked for.
        #[serde(skip_serializing, deserialize_with = "or_default")]
        pub instance_view: InstanceView,
    }
}

wire! {
    /// How a virtual machine fares.
    InstanceView {
        #[serde(deserialize_with = "or_default")]
        pub statuses: Vec<InstanceStatus>,
    }
}

wire! {
    InstanceStatus {
        #[serde(deserialize_with = "or_default")]
        pub code: String,
        #[serde(deserialize_with = "or_default")]
        pub message: String,
    }
}

wire! {
    HardwareProfile {
        pub vm_size: String,
    }
}

wire! {
    StorageProfile {
        #[serde(skip_serializing_if = "Option::is_none")]
        pub image_reference: Option<ImageReference>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub os_disk: Option<OsDisk>,
    }
}

wire! {
    ImageReference {
        #[serde(skip_serializing_if = "Option::is_none")]
        pub id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub community_gallery_image_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub shared_gallery_image_id: Option<String>,
    }
}

wire! {
    OsDisk {
        pub name: String,
        #[serde(rename = "diskSizeGB")]
        pub disk_size_gb: i32,
        pub create_option: String,
        pub delete_option: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub caching: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub diff_disk_settings: Option<DiffDiskSettings>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub managed_disk: Option<ManagedDisk>,
    }
}

wire! {
    DiffDiskSettings {
        pub option: String,
        pub placement: String,
    }
}

wire! {
    ManagedDisk {
        #[serde(skip_serializing_if = "Option::is_none")]
        pub disk_encryption_set: Option<Reference>,
    }
}

wire! {
    OsProfile {
        pub admin_username: String,
        pub computer_name: String,
        pub custom_data: String,
        pub linux_configuration: LinuxConfiguration,
    }
}

wire! {
    LinuxConfiguration {
        pub disable_password_authentication: bool,
        pub ssh: Ssh,
    }
}

wire! {
    Ssh {
        pub public_keys: Vec<SshPublicKey>,
    }
}

wire! {
    SshPublicKey {
        pub path: String,
        pub key_data: String,
    }
}

wire! {
    NetworkProfile {
        pub network_interfaces: Vec<NetworkInterfaceReference>,
    }
}

wire! {
    NetworkInterfaceReference {
        pub id: String,
        pub properties: NetworkInterfaceReferenceProperties,
    }
}

wire! {
    NetworkInterfaceReferenceProperties {
        pub primary: bool,
        pub delete_option: String,
    }
}

wire! {
    BillingProfile {
        pub max_price: i64,
    }
}

wire! {
    SecurityProfile {
        #[serde(skip_serializing_if = "Option::is_none")]
        pub encryption_at_host: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub security_type: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub uefi_settings: Option<UefiSettings>,
    }
}

wire! {
    UefiSettings {
        #[serde(skip_serializing_if = "Option::is_none")]
        pub secure_boot_enabled: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub v_tpm_enabled: Option<bool>,
    }
}

wire! {
    AdditionalCapabilities {
        #[serde(rename = "ultraSSDEnabled", skip_serializing_if = "Option::is_none")]
        pub ultra_ssd_enabled: Option<bool>,
    }
}

wire! {
    /// An extension of a virtual machine.
    Extension {
        pub location: String,
        pub tags: Tags,
        pub properties: ExtensionProperties,
    }
}

wire! {
    ExtensionProperties {
        pub publisher: String,
        #[serde(rename = "type")]
        pub kind: String,
        pub type_handler_version: String,
        pub auto_upgrade_minor_version: bool,
        pub settings: BTreeMap<String, Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub protected_settings: Option<BTreeMap<String, Value>>,
    }
}

wire! {
    /// A network interface.
    NetworkInterface {
        #[serde(skip_serializing_if = "String::is_empty")]
        pub id: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        pub name: String,
        pub location: String,
        #[serde(deserialize_with = "or_default")]
        pub tags: Tags,
        pub properties: NetworkInterfaceProperties,
    }
}

wire! {
    NetworkInterfaceProperties {
        pub ip_configurations: Vec<IpConfiguration>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub network_security_group: Option<Reference>,
        pub enable_accelerated_networking: bool,
        #[serde(rename = "enableIPForwarding")]
        pub enable_ip_forwarding: bool,
        /// The machine it is attached to.
        #[serde(skip_serializing)]
        pub virtual_machine: Option<Reference>,
    }
}

wire! {
    IpConfiguration {
        pub name: String,
        pub properties: IpConfigurationProperties,
    }
}

wire! {
    IpConfigurationProperties {
        pub primary: bool,
        #[serde(rename = "privateIPAllocationMethod")]
        pub private_ip_allocation_method: String,
        pub subnet: Reference,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub load_balancer_backend_address_pools: Vec<Reference>,
    }
}

wire! {
    /// A load balancer.
    LoadBalancer {
        pub name: String,
        pub properties: LoadBalancerProperties,
    }
}

wire! {
    LoadBalancerProperties {
        #[serde(deserialize_with = "or_default")]
        pub backend_address_pools: Vec<BackendPool>,
    }
}

wire! {
    BackendPool {
        pub id: String,
        pub name: String,
        pub properties: BackendPoolProperties,
    }
}

wire! {
    BackendPoolProperties {
        #[serde(deserialize_with = "or_default")]
        pub load_balancer_backend_addresses: Vec<BackendAddress>,
    }
}

wire! {
    BackendAddress {
        pub properties: BackendAddressProperties,
    }
}

wire! {
    BackendAddressProperties {
        #[serde(deserialize_with = "or_default")]
        pub ip_address: String,
    }
}

wire! {
    /// Anything with a name.
    Named {
        pub id: String,
        pub name: String,
    }
}

wire! {
    /// What Resource Graph is asked.
    GraphRequest {
        pub subscriptions: Vec<String>,
        pub query: String,
        pub options: GraphOptions,
    }
}

wire! {
    GraphOptions {
        pub result_format: String,
        #[serde(rename = "$skipToken", skip_serializing_if = "Option::is_none")]
        pub skip_token: Option<String>,
    }
}

wire! {
    /// What Resource Graph says.
    GraphAnswer {
        #[serde(deserialize_with = "or_default")]
        pub data: Vec<Value>,
        #[serde(rename = "$skipToken")]
        pub skip_token: Option<String>,
    }
}

wire! {
    /// A size as Resource SKUs has it.
    Sku {
        pub name: String,
        #[serde(deserialize_with = "or_default")]
        pub size: String,
        #[serde(deserialize_with = "or_default")]
        pub family: String,
        pub resource_type: String,
        #[serde(deserialize_with = "or_default")]
        pub location_info: Vec<LocationInfo>,
        #[serde(deserialize_with = "or_default")]
        pub capabilities: Vec<Capability>,
        #[serde(deserialize_with = "or_default")]
        pub restrictions: Vec<Restriction>,
    }
}

wire! {
    LocationInfo {
        pub location: String,
        #[serde(deserialize_with = "or_default")]
        pub zones: Vec<String>,
        #[serde(deserialize_with = "or_default")]
        pub zone_details: Vec<ZoneDetails>,
    }
}

wire! {
    ZoneDetails {
        /// The zones; Azure has the field under both spellings.
        #[serde(alias = "Name", deserialize_with = "or_default")]
        pub name: Vec<String>,
        #[serde(deserialize_with = "or_default")]
        pub capabilities: Vec<Capability>,
    }
}

wire! {
    Capability {
        pub name: String,
        #[serde(deserialize_with = "or_default")]
        pub value: String,
    }
}

wire! {
    Restriction {
        #[serde(rename = "type", deserialize_with = "or_default")]
        pub kind: String,
        #[serde(deserialize_with = "or_default")]
        pub values: Vec<String>,
        #[serde(deserialize_with = "or_default")]
        pub restriction_info: RestrictionInfo,
    }
}

wire! {
    RestrictionInfo {
        #[serde(deserialize_with = "or_default")]
        pub locations: Vec<String>,
        #[serde(deserialize_with = "or_default")]
        pub zones: Vec<String>,
    }
}

wire! {
    /// How much of a quota is used.
    Usage {
        pub name: UsageName,
        pub current_value: i64,
        pub limit: i64,
    }
}

wire! {
    UsageName {
        #[serde(deserialize_with = "or_default")]
        pub value: String,
    }
}

wire! {
    /// A version of an image in a community gallery.
    CommunityImageVersion {
        pub name: String,
        pub properties: CommunityImageVersionProperties,
    }
}

wire! {
    CommunityImageVersionProperties {
        pub published_date: Option<Timestamp>,
    }
}

wire! {
    /// A version of an image in a shared gallery of AKS.
    NodeImageVersion {
        #[serde(deserialize_with = "or_default")]
        pub os: String,
        #[serde(deserialize_with = "or_default")]
        pub sku: String,
        #[serde(deserialize_with = "or_default")]
        pub version: String,
    }
}

wire! {
    /// A virtual network.
    VirtualNetwork {
        pub properties: VirtualNetworkProperties,
    }
}

wire! {
    VirtualNetworkProperties {
        #[serde(deserialize_with = "or_default")]
        pub resource_guid: String,
    }
}

/// A page of retail prices.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct PricePage {
    #[serde(deserialize_with = "or_default")]
    pub items: Vec<RetailPrice>,
    pub next_page_link: Option<String>,
}

wire! {
    /// A retail price.
    RetailPrice {
        pub retail_price: f64,
        #[serde(deserialize_with = "or_default")]
        pub arm_sku_name: String,
        #[serde(deserialize_with = "or_default")]
        pub sku_name: String,
        #[serde(deserialize_with = "or_default")]
        pub product_name: String,
        #[serde(deserialize_with = "or_default")]
        pub meter_name: String,
    }
}
