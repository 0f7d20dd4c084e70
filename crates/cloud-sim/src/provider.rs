//! What one process sees of the region, through the provider contract.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use catalogue::Source;
use cloud::{
    CloudError, CloudProvider, Instance, LaunchToken, Launched, NodeClassKind, Notice, RepairAction, RepairPolicy,
    UnavailableOffering, UnavailableOfferings,
};
use model::{
    object::{ConditionStatus, NodeClaim, NodePool, ProviderId},
    snapshot::CatalogType,
};
use tokio::sync::oneshot;

use crate::{CallFault, Machine, Method, Region, region::gone};

const AWS: &[NodeClassKind] = &[NodeClassKind {
    group: "karpenter.k8s.aws",
    version: "v1",
    kind: "EC2NodeClass",
}];
const AZURE: &[NodeClassKind] = &[NodeClassKind {
    group: "karpenter.azure.com",
    version: "v1beta1",
    kind: "AKSNodeClass",
}];
const KWOK: &[NodeClassKind] = &[NodeClassKind {
    group: "karpenter.kwok.sh",
    version: "v1alpha1",
    kind: "KWOKNodeClass",
}];

/// The provider of one process. What it has learnt dies with it.
pub struct CloudSim {
    region: Arc<Region>,
    unavailable: Mutex<UnavailableOfferings>,
    is_dead: Arc<AtomicBool>,
    who: String,
}

type Call<R> = Box<dyn FnOnce(&Region) -> Result<R, CloudError> + Send>;

impl CloudSim {
    pub(crate) fn new(region: Arc<Region>, who: &str) -> Self {
        Self {
            region,
            unavailable: Mutex::default(),
            is_dead: Arc::default(),
            who: who.to_owned(),
        }
    }

    /// Asks the region, with what goes wrong on the way.
    async fn ask<R: Send + 'static>(&self, method: Method, about: &str, call: Call<R>) -> Result<R, CloudError> {
        if self.is_dead.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        match self.region.judge(method, about, &self.who) {
            CallFault::None => call(&self.region),
            CallFault::Fail => Err(CloudError::Other(
                "InternalError: an internal error has occurred (injected fault)".to_owned(),
            )),
            CallFault::Throttle(wait) => Err(CloudError::Throttled {
                message: "RequestLimitExceeded: Request limit exceeded. (injected fault)".to_owned(),
                retry_after: Some(wait),
            }),
            CallFault::LoseAnswer => {
                drop(call(&self.region));
                Err(CloudError::Other(
                    "the connection was closed before the answer came (injected fault)".to_owned(),
                ))
            }
            CallFault::Delay(time) => self.later(time, call).await,
            CallFault::CrashBefore => self.die().await,
            CallFault::CrashAfter => {
                drop(call(&self.region));
                self.die().await
            }
        }
    }

    /// A call that is under way is carried out also if whoever asked is dead by then.
    async fn later<R: Send + 'static>(&self, time: Duration, call: Call<R>) -> Result<R, CloudError> {
        let (answer, answered) = oneshot::channel();
        let region = Arc::clone(&self.region);
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            let _ = answer.send(call(&region));
        });
        let lost = |_| CloudError::Other("the cloud is gone".to_owned());
        answered.await.map_err(lost)?
    }

    async fn die<R>(&self) -> R {
        self.is_dead.store(true, Ordering::Relaxed);
        self.region.killed();
        std::future::pending().await
    }

    fn unavailable(&self) -> MutexGuard<'_, UnavailableOfferings> {
        self.unavailable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shortages are remembered, so that the next plan avoids them.
    fn learn(&self, error: &CloudError) {
        if let CloudError::InsufficientCapacity { offerings, .. } = error {
            let now = self.region.now();
            let mut unavailable = self.unavailable();
            for offering in offerings {
                unavailable.mark(offering, now);
            }
        }
    }
}

#[async_trait]
impl CloudProvider for CloudSim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        match self.region.market().source() {
            Source::Aws => AWS,
            Source::Azure => AZURE,
            Source::Kwok => KWOK,
        }
    }

    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        let (wanted, token, known) = (claim.clone(), token.clone(), self.unavailable().clone());
        let launch = Box::new(move |region: &Region| region.launch(&wanted, &token, &known));
        let launched = self.ask(Method::Create, &claim.metadata.name, launch).await;
        launched.inspect_err(|error| self.learn(error))
    }

    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        if claim
            .status
            .provider_id
            .as_ref()
            .is_some_and(|id| self.region.lock_foreign(id))
        {
            return Err(gone());
        }
        let unwanted = claim.clone();
        let delete = Box::new(move |region: &Region| region.delete(&unwanted));
        self.ask(Method::Delete, &claim.metadata.name, delete).await
    }

    async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError> {
        let wanted = id.clone();
        let get = Box::new(move |region: &Region| {
            let found = region.visible_one(&wanted);
            found.as_ref().map(Machine::instance).ok_or_else(gone)
        });
        self.ask(Method::Get, id.as_str(), get).await
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let list = Box::new(|region: &Region| Ok(region.visible().iter().map(Machine::instance).collect()));
        self.ask(Method::List, "", list).await
    }

    async fn instance_types(&self, _: &NodePool) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        let types = self.region.types();
        Ok(self.unavailable().overlay(&types, self.region.now()))
    }

    fn offers_version(&self) -> u64 {
        // Either part only grows, so a sum that stands still means that both do.
        self.region.price_step() + self.unavailable().version(self.region.now())
    }

    async fn is_drifted(&self, claim: &NodeClaim) -> Result<Option<String>, CloudError> {
        let is_old = !claim.status.image_id.is_empty() && *claim.status.image_id != *self.region.image();
        let reason = match self.region.market().source() {
            Source::Aws => "AMIDrift",
            Source::Azure | Source::Kwok => "ImageDrift",
        };
        Ok(is_old.then(|| reason.to_owned()))
    }

    async fn reboot(&self, _: &NodeClaim, operation_id: &str) -> Result<(), CloudError> {
        self.region.reboot(operation_id);
        Ok(())
    }

    /// As Karpenter's provider for EKS has them.
    fn repair_policies(&self) -> Vec<RepairPolicy> {
        let policy = |condition_status, reason_regex| RepairPolicy {
            condition_type: "Ready",
            condition_status,
            reason_regex,
            toleration: Duration::from_mins(30),
            termination_grace_period: Some(Duration::ZERO),
            priority: 0,
            action: RepairAction::ReplaceNode,
        };
        vec![
            policy(ConditionStatus::False, ""),
            policy(ConditionStatus::Unknown, ".*"),
        ]
    }

    fn well_known_labels(&self) -> Vec<String> {
        self.region.market().well_known()
    }

    fn gives_notice(&self) -> bool {
        true
    }

    async fn notices(&self) -> Result<Vec<Notice>, CloudError> {
        self.region.noticed().await;
        let receive = Box::new(|region: &Region| Ok(region.receive()));
        self.ask(Method::Notices, "", receive).await
    }

    async fn acknowledge(&self, notice: &Notice) -> Result<(), CloudError> {
        let receipt = notice.receipt.clone();
        let acknowledge = Box::new(move |region: &Region| {
            region.acknowledge(&receipt);
            Ok(())
        });
        self.ask(Method::Acknowledge, &notice.receipt, acknowledge).await
    }

    fn mark_unavailable(&self, offering: &UnavailableOffering) {
        self.unavailable().mark(offering, self.region.now());
    }
}
