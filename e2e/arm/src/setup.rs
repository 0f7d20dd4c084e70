//! Which Azure does a double play? Its subscription, its region, the cluster whose nodes are made in it, and its time.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a double begins with. Every name has a default.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Setup {
    /// The subscription that everything is in.
    pub subscription: String,
    /// The tenant whose token endpoint answers.
    pub tenant: String,
    /// The region.
    pub region: String,
    /// Its zones; none make it a region without.
    pub zones: Vec<String>,
    /// The cluster.
    pub cluster: String,
    /// The group of the cluster, of a network of the user's own and of the disk encryption set.
    pub cluster_group: String,
    /// The group of the nodes and of the network that AKS made.
    pub node_group: String,
    /// The eight digits by which AKS tells its own resources.
    pub cluster_id: String,
    /// The agent pool that takes machines.
    pub pool: String,
    /// Cores that every family, the region and spot begin with.
    pub cores: i64,
    /// For how long a network interface is kept for a virtual machine whose creation failed.
    pub reserved_seconds: i64,
    /// What `Retry-After` says beside a long-running operation; none leaves it out.
    pub retry_after: Option<u64>,
    /// The address to listen at; port 0 takes a free one.
    pub listen: String,
    /// The time; that of the wall unless told otherwise.
    #[serde(skip)]
    pub clock: Clock,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            subscription: "11111111-2222-3333-4444-555555555555".to_owned(),
            tenant: "99999999-8888-7777-6666-555555555555".to_owned(),
            region: "eastus".to_owned(),
            zones: ["1", "2", "3"].map(ToOwned::to_owned).to_vec(),
            cluster: "dovetail".to_owned(),
            cluster_group: "rg-dovetail".to_owned(),
            node_group: "MC_rg-dovetail_dovetail_eastus".to_owned(),
            cluster_id: "12345678".to_owned(),
            pool: "machines".to_owned(),
            cores: 10_000,
            reserved_seconds: 180,
            retry_after: Some(0),
            listen: "127.0.0.1:0".to_owned(),
            clock: Clock::default(),
        }
    }
}

impl Setup {
    /// With a clock that stands at a time until a knob advances it.
    #[must_use]
    pub fn still_at(mut self, time: Timestamp) -> Self {
        self.clock = Clock(Arc::new(move || time));
        self
    }

    /// The network that AKS made.
    pub fn vnet(&self) -> String {
        format!("aks-vnet-{}", self.cluster_id)
    }

    /// The network security group of the nodes.
    pub fn nsg(&self) -> String {
        format!("aks-agentpool-{}-nsg", self.cluster_id)
    }

    /// The id of the subnet that AKS made.
    pub fn subnet_id(&self) -> String {
        let network = self.network_id(&self.node_group, "virtualNetworks", &self.vnet());
        format!("{network}/subnets/aks-subnet")
    }

    /// The id of a subnet of the user's own network.
    pub fn own_subnet_id(&self) -> String {
        let network = self.network_id(&self.cluster_group, "virtualNetworks", "own-vnet");
        format!("{network}/subnets/nodes")
    }

    /// The id of the disk encryption set.
    pub fn encryption_set_id(&self) -> String {
        let group = self.group_id(&self.cluster_group);
        format!("{group}/providers/Microsoft.Compute/diskEncryptionSets/des")
    }

    /// The id of a group.
    pub fn group_id(&self, group: &str) -> String {
        format!("/subscriptions/{}/resourceGroups/{group}", self.subscription)
    }

    pub(crate) fn network_id(&self, group: &str, kind: &str, name: &str) -> String {
        format!("{}/providers/Microsoft.Network/{kind}/{name}", self.group_id(group))
    }

    pub(crate) fn compute_id(&self, group: &str, kind: &str, name: &str) -> String {
        format!("{}/providers/Microsoft.Compute/{kind}/{name}", self.group_id(group))
    }

    /// A group as it was created, from a name in any case.
    pub(crate) fn group(&self, name: &str) -> Option<&str> {
        let all = [self.node_group.as_str(), self.cluster_group.as_str()];
        all.into_iter().find(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Where the time comes from.
#[derive(Clone)]
pub struct Clock(pub Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Default for Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "a server of others: whoever starts it may give it another clock"
    )]
    fn default() -> Self {
        Self(Arc::new(Timestamp::now))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Clock")
    }
}
