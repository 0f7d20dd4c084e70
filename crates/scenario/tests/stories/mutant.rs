//! Clouds with a bug on purpose.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use async_trait::async_trait;
use cloud::{
    CloudError, CloudProvider, Instance, LaunchToken, Launched, NodeClassKind, Notice, RepairPolicy,
    UnavailableOffering,
};
use model::{
    object::{NodeClaim, NodePool, ProviderId},
    snapshot::CatalogType,
};
use scenario::Wrap;

/// What is wrong with the cloud that the autoscaler sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// Says that machines are gone, and leaves them running.
    DeletesNothing,
    /// Forgets the token: every call launches another machine.
    ForgetsTheToken,
    /// Finds that every machine has drifted, always.
    AlwaysDrifted,
}

struct Mutant {
    cloud: Arc<dyn CloudProvider>,
    bug: Bug,
    calls: AtomicU32,
}

pub(crate) fn with(bug: Bug) -> Wrap {
    Arc::new(move |cloud| {
        Arc::new(Mutant {
            cloud,
            bug,
            calls: AtomicU32::new(0),
        })
    })
}

#[async_trait]
impl CloudProvider for Mutant {
    fn name(&self) -> &'static str {
        self.cloud.name()
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        self.cloud.node_classes()
    }

    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        let mut token = token.clone();
        if self.bug == Bug::ForgetsTheToken {
            token.attempt += 1000 + self.calls.fetch_add(1, Ordering::Relaxed);
        }
        self.cloud.create(claim, &token).await
    }

    fn offers_version(&self) -> u64 {
        self.cloud.offers_version()
    }

    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        if self.bug == Bug::DeletesNothing {
            return Err(CloudError::NotFound("instance terminated".to_owned()));
        }
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
        if self.bug == Bug::AlwaysDrifted {
            return Ok(Some("ImageDrift".to_owned()));
        }
        self.cloud.is_drifted(claim).await
    }

    async fn reboot(&self, claim: &NodeClaim, operation_id: &str) -> Result<(), CloudError> {
        self.cloud.reboot(claim, operation_id).await
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.cloud.repair_policies()
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
