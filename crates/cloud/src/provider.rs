//! The provider contract.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use model::{
    object::{NodeClaim, NodePool, ProviderId},
    snapshot::CatalogType,
};

use crate::{CloudError, Instance, LaunchToken, Launched, Notice, RepairPolicy, UnavailableOffering};

/// A kind of node class that a provider launches from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeClassKind {
    /// API group.
    pub group: &'static str,
    /// Served version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
}

/// What a registration hook says: nothing to wait for, or when to ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookResult {
    /// The node may register.
    Done,
    /// Not yet; ask again after a time, or when something changes.
    Pending(Option<Duration>),
}

/// A provider's say in whether a node may register.
#[async_trait]
pub trait RegistrationHook: Send + Sync {
    /// Its name, as the Registered condition shows it.
    fn name(&self) -> &str;

    /// Whether the claim's node may register.
    async fn registered(&self, claim: &NodeClaim) -> Result<HookResult, CloudError>;
}

/// A cloud. Every call may be repeated: the same question has the same effect as asking once.
#[async_trait]
pub trait CloudProvider: Send + Sync {
    /// Its name in metrics.
    fn name(&self) -> &'static str;

    /// Kinds of node classes it launches from; the first is the default.
    fn node_classes(&self) -> &'static [NodeClassKind];

    /// Launches the machine of a claim. Asked again with the same token it gives the same machine.
    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError>;

    /// Takes up what an earlier process left under way: called once by a new leader with all claims, before it asks for
    /// anything else. A cloud that finishes launches by itself has nothing to do.
    async fn resume(&self, claims: &[Arc<NodeClaim>]) -> Result<(), CloudError> {
        let _ = claims;
        Ok(())
    }

    /// Counts changes of what [`CloudProvider::instance_types`] would say that did not come from a pool or a node class:
    /// a price, an offering that ran out or came back. While it stands still, the answer need not be asked for again.
    fn offers_version(&self) -> u64 {
        0
    }

    /// Begins or goes on to remove a claim's machine: fine while it is on its way out, [`CloudError::NotFound`] once it is
    /// gone. A claim without a provider ID may have a machine all the same, if the answer to its launch was lost.
    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError>;

    /// A machine.
    async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError>;

    /// All machines of this cluster.
    async fn list(&self) -> Result<Vec<Instance>, CloudError>;

    /// All types a pool may use, those that cannot be had now too, in the order that breaks ties.
    async fn instance_types(&self, pool: &NodePool) -> Result<Vec<Arc<CatalogType>>, CloudError>;

    /// Why a claim's machine is no longer what its node class asks for.
    async fn is_drifted(&self, claim: &NodeClaim) -> Result<Option<String>, CloudError>;

    /// Reboots a claim's machine; returns once the cloud has taken it on. The same operation is not done twice.
    async fn reboot(&self, claim: &NodeClaim, operation_id: &str) -> Result<(), CloudError>;

    /// When nodes count as broken.
    fn repair_policies(&self) -> Vec<RepairPolicy>;

    /// Its say in registration.
    fn registration_hooks(&self) -> &[Arc<dyn RegistrationHook>] {
        &[]
    }

    /// Label keys it adds to the well-known set.
    fn well_known_labels(&self) -> Vec<String>;

    /// Whether it says beforehand what will happen to machines. Where it does not, nobody asks for notices.
    fn gives_notice(&self) -> bool {
        false
    }

    /// Waits for notices, and returns those there are: none after a while without any. A notice that is not acknowledged
    /// comes again, also to another process.
    async fn notices(&self) -> Result<Vec<Notice>, CloudError> {
        std::future::pending().await
    }

    /// A notice was acted on and need not come again.
    async fn acknowledge(&self, notice: &Notice) -> Result<(), CloudError> {
        let _ = notice;
        Ok(())
    }

    /// The cloud takes a claim's machine back: told once for a machine, so that it can be counted.
    fn interrupted(&self, claim: &NodeClaim) {
        let _ = claim;
    }

    /// An offering is not to be had for a while, as somebody else found out: plans avoid it.
    fn mark_unavailable(&self, offering: &UnavailableOffering) {
        let _ = offering;
    }
}
