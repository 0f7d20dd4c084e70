//! What a node class and the settings make of every machine: its system, its disks, its kubelet.

use model::{quantity::Quantity, resources::ResourceList};

/// What runs on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Os {
    /// Any Linux.
    Linux,
    /// Windows Server.
    Windows {
        /// Such as `10.0.20348`.
        build: &'static str,
    },
}

/// When the kubelet evicts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// Below so much.
    Amount(Quantity),
    /// Below so many percent of the capacity; a hundred means never.
    Percent(f64),
}

/// What a node class and the settings make of every machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// What runs on it.
    pub os: Os,
    /// The part of memory that the hypervisor takes.
    pub vm_memory_overhead: f64,
    /// The size of the disk that pods write to.
    pub storage: Quantity,
    /// Local disks, where there are some, are that disk instead.
    pub uses_local_disks: bool,
    /// Most pods, whatever the network says.
    pub max_pods: Option<i64>,
    /// Most pods for each virtual CPU.
    pub pods_per_core: Option<i64>,
    /// Pods are as many as network interfaces have addresses; else 110.
    pub are_pods_limited_by_interfaces: bool,
    /// Memory is kept for as many pods as network interfaces have addresses, however many there may be.
    pub is_overhead_by_interfaces: bool,
    /// Network interfaces that pods do not get.
    pub reserved_interfaces: i64,
    /// Interfaces of the first card that carry no addresses.
    pub efa_only_on_first_card: i64,
    /// EFA interfaces that the class configures; none where it leaves them to the pods.
    pub efa: Option<i64>,
    /// Instead of what is computed.
    pub kube_reserved: ResourceList,
    /// For the system.
    pub system_reserved: ResourceList,
    /// `memory.available` of evictionHard.
    pub eviction_memory: Option<Threshold>,
    /// `nodefs.available` of evictionHard.
    pub eviction_storage: Option<Threshold>,
}

/// A node class that says nothing: AL2023.
impl Default for Setup {
    fn default() -> Self {
        Self {
            os: Os::Linux,
            vm_memory_overhead: 0.075,
            storage: Quantity::from_bytes(20 << 30),
            uses_local_disks: false,
            max_pods: None,
            pods_per_core: None,
            are_pods_limited_by_interfaces: true,
            is_overhead_by_interfaces: true,
            reserved_interfaces: 0,
            efa_only_on_first_card: 0,
            efa: None,
            kube_reserved: ResourceList::EMPTY,
            system_reserved: ResourceList::EMPTY,
            eviction_memory: None,
            eviction_storage: None,
        }
    }
}
