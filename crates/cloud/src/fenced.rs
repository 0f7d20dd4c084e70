//! Changes nothing in the cloud for a process that no longer leads.
//!
//! The API server's fence keeps a process that was stopped for a while from writing. What it believed of the cluster is
//! as old as its standstill: machines that the next leader has launched meanwhile look to it as if nobody claimed them.

use std::sync::Arc;

use async_trait::async_trait;
use model::{
    object::{NodeClaim, NodePool, ProviderId},
    snapshot::CatalogType,
};

use crate::{
    CloudError, CloudProvider, Instance, LaunchToken, Launched, NodeClassKind, Notice, RegistrationHook, RepairPolicy,
    UnavailableOffering,
};

/// Whether we may act at this moment.
pub type MayAct = Arc<dyn Fn() -> bool + Send + Sync>;

/// A cloud that is changed only while we may act.
pub struct Fenced {
    cloud: Arc<dyn CloudProvider>,
    may_act: MayAct,
}

impl Fenced {
    /// Asked right before every call that changes something, which is not made where it says no.
    pub fn new(cloud: Arc<dyn CloudProvider>, may_act: MayAct) -> Self {
        Self { cloud, may_act }
    }

    fn check(&self) -> Result<(), CloudError> {
        if (self.may_act)() {
            return Ok(());
        }
        Err(CloudError::Other(
            "not asked: another process may lead by now, and only the leader acts".to_owned(),
        ))
    }
}

#[async_trait]
impl CloudProvider for Fenced {
    fn name(&self) -> &'static str {
        self.cloud.name()
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        self.cloud.node_classes()
    }

    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        self.check()?;
        self.cloud.create(claim, token).await
    }

    async fn resume(&self, claims: &[Arc<NodeClaim>]) -> Result<(), CloudError> {
        self.check()?;
        self.cloud.resume(claims).await
    }

    fn offers_version(&self) -> u64 {
        self.cloud.offers_version()
    }

    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        self.check()?;
        self.cloud.delete(claim).await
    }

    async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError> {
        self.cloud.get(id).await
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        self.cloud.list().await
    }

    async fn instance_types(&self, pool: &NodePool) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        self.cloud.instance_types(pool).await
    }

    async fn is_drifted(&self, claim: &NodeClaim) -> Result<Option<String>, CloudError> {
        self.cloud.is_drifted(claim).await
    }

    async fn reboot(&self, claim: &NodeClaim, operation_id: &str) -> Result<(), CloudError> {
        self.check()?;
        self.cloud.reboot(claim, operation_id).await
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.cloud.repair_policies()
    }

    fn registration_hooks(&self) -> &[Arc<dyn RegistrationHook>] {
        self.cloud.registration_hooks()
    }

    fn well_known_labels(&self) -> Vec<String> {
        self.cloud.well_known_labels()
    }

    fn gives_notice(&self) -> bool {
        self.cloud.gives_notice()
    }

    async fn notices(&self) -> Result<Vec<Notice>, CloudError> {
        self.cloud.notices().await
    }

    async fn acknowledge(&self, notice: &Notice) -> Result<(), CloudError> {
        self.check()?;
        self.cloud.acknowledge(notice).await
    }

    fn interrupted(&self, claim: &NodeClaim) {
        self.cloud.interrupted(claim);
    }

    fn mark_unavailable(&self, offering: &UnavailableOffering) {
        self.cloud.mark_unavailable(offering);
    }
}
