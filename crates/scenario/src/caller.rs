//! Tells which process asks the cloud to change something, at the moment it does.

use std::sync::Arc;

use async_trait::async_trait;
use cloud::{
    CloudError, CloudProvider, Instance, LaunchToken, Launched, NodeClassKind, Notice, RegistrationHook, RepairPolicy,
    UnavailableOffering,
};
use model::{
    object::{NodeClaim, NodePool, ProviderId},
    snapshot::CatalogType,
};

/// Hears of the process and of what it asks for.
pub(crate) type Called = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The cloud as one process asks it.
pub(crate) struct Caller {
    cloud: Arc<dyn CloudProvider>,
    process: String,
    called: Called,
}

impl Caller {
    pub(crate) fn new(cloud: Arc<dyn CloudProvider>, process: &str, called: Called) -> Self {
        Self {
            cloud,
            process: process.to_owned(),
            called,
        }
    }

    fn tell(&self, what: &str, claim: &NodeClaim) {
        (self.called)(&self.process, &format!("{what} {}", claim.metadata.name));
    }
}

#[async_trait]
impl CloudProvider for Caller {
    fn name(&self) -> &'static str {
        self.cloud.name()
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        self.cloud.node_classes()
    }

    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        self.tell("launch", claim);
        self.cloud.create(claim, token).await
    }

    async fn resume(&self, claims: &[Arc<NodeClaim>]) -> Result<(), CloudError> {
        self.cloud.resume(claims).await
    }

    fn offers_version(&self) -> u64 {
        self.cloud.offers_version()
    }

    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        self.tell("delete the machine of", claim);
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
        self.tell("reboot the machine of", claim);
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
        self.cloud.acknowledge(notice).await
    }

    fn mark_unavailable(&self, offering: &UnavailableOffering) {
        self.cloud.mark_unavailable(offering);
    }
}
