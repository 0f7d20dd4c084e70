//! Counts and times what a cloud is asked, for `karpenter_cloudprovider_duration_seconds` and `_errors_total`.

use std::{sync::Arc, time::Duration};

use api::labels::NODEPOOL;
use async_trait::async_trait;
use model::{
    object::{NodeClaim, NodePool, ProviderId},
    snapshot::CatalogType,
};

use crate::{
    CloudError, CloudProvider, Instance, LaunchToken, Launched, NodeClassKind, Notice, RegistrationHook, RepairPolicy,
    UnavailableOffering,
};

/// Hears of every call. It also tells the time, because this crate has no clock.
pub trait CallObserver: Send + Sync {
    /// The time since any fixed moment.
    fn elapsed(&self) -> Duration;

    /// A call has ended.
    fn called(&self, call: &Call<'_>);
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// The provider.
    pub provider: &'static str,
    /// Upstream's name of the method.
    pub method: &'static str,
    /// The pool it was for; empty when it was for none.
    pub node_pool: &'a str,
    /// How long it took.
    pub took: Duration,
    /// The error's label; none when it went well.
    pub error: Option<&'static str>,
}

/// A cloud whose calls are observed.
pub struct Metered {
    cloud: Arc<dyn CloudProvider>,
    observer: Arc<dyn CallObserver>,
}

impl Metered {
    /// Observes the calls of a cloud.
    pub fn new(cloud: Arc<dyn CloudProvider>, observer: Arc<dyn CallObserver>) -> Self {
        Self { cloud, observer }
    }

    fn ended<T>(&self, method: &'static str, node_pool: &str, began: Duration, result: &Result<T, CloudError>) {
        self.observer.called(&Call {
            provider: self.cloud.name(),
            method,
            node_pool,
            took: self.observer.elapsed().saturating_sub(began),
            error: result.as_ref().err().map(CloudError::label),
        });
    }
}

fn pool_of(claim: &NodeClaim) -> &str {
    claim.metadata.labels.get(NODEPOOL).map_or("", AsRef::as_ref)
}

#[async_trait]
impl CloudProvider for Metered {
    fn name(&self) -> &'static str {
        self.cloud.name()
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        self.cloud.node_classes()
    }

    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        let began = self.observer.elapsed();
        let result = self.cloud.create(claim, token).await;
        self.ended("Create", pool_of(claim), began, &result);
        result
    }

    async fn resume(&self, claims: &[Arc<NodeClaim>]) -> Result<(), CloudError> {
        self.cloud.resume(claims).await
    }

    fn offers_version(&self) -> u64 {
        self.cloud.offers_version()
    }

    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        let began = self.observer.elapsed();
        let result = self.cloud.delete(claim).await;
        self.ended("Delete", pool_of(claim), began, &result);
        result
    }

    async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError> {
        let began = self.observer.elapsed();
        let result = self.cloud.get(id).await;
        let labels = result.as_ref().ok().map(|instance| &instance.launched.labels);
        let pool = labels.and_then(|labels| labels.get(NODEPOOL)).map_or("", AsRef::as_ref);
        self.ended("Get", pool, began, &result);
        result
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let began = self.observer.elapsed();
        let result = self.cloud.list().await;
        self.ended("List", "", began, &result);
        result
    }

    async fn instance_types(&self, pool: &NodePool) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        let began = self.observer.elapsed();
        let result = self.cloud.instance_types(pool).await;
        self.ended("GetInstanceTypes", &pool.metadata.name, began, &result);
        result
    }

    async fn is_drifted(&self, claim: &NodeClaim) -> Result<Option<String>, CloudError> {
        let began = self.observer.elapsed();
        let result = self.cloud.is_drifted(claim).await;
        self.ended("IsDrifted", pool_of(claim), began, &result);
        result
    }

    async fn reboot(&self, claim: &NodeClaim, operation_id: &str) -> Result<(), CloudError> {
        let began = self.observer.elapsed();
        let result = self.cloud.reboot(claim, operation_id).await;
        self.ended("Reboot", pool_of(claim), began, &result);
        result
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

    fn interrupted(&self, claim: &NodeClaim) {
        self.cloud.interrupted(claim);
    }

    fn mark_unavailable(&self, offering: &UnavailableOffering) {
        self.cloud.mark_unavailable(offering);
    }
}
