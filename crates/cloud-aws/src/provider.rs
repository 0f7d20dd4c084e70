//! The provider itself: what it does when it is asked.

use std::{sync::Arc, time::Duration};

use api::{aws::EC2NodeClass, labels::aws::WELL_KNOWN};
use async_trait::async_trait;
use cloud::{
    CloudError, CloudProvider, Instance, LaunchToken, Launched, NodeClassKind, Notice, OfferingKey, RepairAction,
    RepairPolicy, UnavailableOffering,
};
use model::{
    object::{ConditionStatus, NodeClaim, NodePool, ProviderId},
    snapshot::{CatalogType, MinValuesPolicy},
};

use crate::{
    Controller, Ec2Machines, MachineOptions, Parts, ReadSide, background,
    border::{Machines, Reads},
    drift::drift,
};

const NODE_CLASSES: &[NodeClassKind] = &[NodeClassKind {
    group: "karpenter.k8s.aws",
    version: "v1",
    kind: "EC2NodeClass",
}];

/// Amazon EC2.
pub struct Aws {
    reads: Arc<ReadSide>,
    machines: Arc<dyn Machines>,
}

impl Aws {
    /// A provider of these two sides.
    pub fn of(reads: Arc<ReadSide>, machines: Arc<dyn Machines>) -> Self {
        Self { reads, machines }
    }

    /// A provider of this account and cluster. What fails here will not mend itself.
    pub async fn connect(parts: Parts) -> Result<Self, CloudError> {
        let (api, clients, clock) = (parts.api.clone(), parts.clients.clone(), parts.clock.clone());
        let (metrics, settings) = (Arc::clone(&parts.metrics), Arc::clone(&parts.settings));
        let reads = Arc::new(ReadSide::connect(parts).await?);
        let options = MachineOptions {
            cluster_name: settings.aws.cluster_name.clone(),
            interruption_queue: settings.aws.interruption_queue.clone(),
            may_reserve: settings.decisions.feature_gates.reserved_capacity,
            must_meet_min_values: settings.decisions.min_values_policy == MinValuesPolicy::Strict,
        };
        let asked = Arc::clone(&reads) as Arc<dyn Reads>;
        let machines = Ec2Machines::new(&clients, asked, clock, Some(metrics), Some(api), &options);
        Ok(Self::of(reads, Arc::new(machines)))
    }

    /// A class that is there to stay: one that goes is as good as gone.
    async fn usable_class(&self, name: &str) -> Result<Option<Arc<EC2NodeClass>>, CloudError> {
        let class = self.reads.node_class(name).await?;
        Ok(class.filter(|class| class.metadata.deletion_timestamp.is_none()))
    }

    /// What goes on beside the calls while we lead, until dropped: node classes are looked after, prices and types read
    /// anew, machines tagged. What an earlier process knew is taken up from the namespace, if there is one.
    pub fn run(self: Arc<Self>, namespace: Option<String>) -> impl Future<Output = ()> + Send {
        let controller = Arc::new(Controller::new(Arc::clone(&self.reads), Arc::clone(&self.machines)));
        async move {
            tokio::join!(
                controller.run(),
                background::run(&self.reads, &*self.machines, namespace),
                self.machines.run(),
            );
        }
    }
}

#[async_trait]
impl CloudProvider for Aws {
    fn name(&self) -> &'static str {
        "aws"
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        NODE_CLASSES
    }

    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        self.machines.create(claim, token).await
    }

    async fn resume(&self, claims: &[Arc<NodeClaim>]) -> Result<(), CloudError> {
        self.machines.resume(claims).await
    }

    fn offers_version(&self) -> u64 {
        self.reads.offers().version()
    }

    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        self.machines.delete(claim).await
    }

    async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError> {
        self.machines.get(id).await
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        self.machines.list().await
    }

    async fn instance_types(&self, pool: &NodePool) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        let Some(reference) = &pool.spec.template.spec.node_class_ref else {
            return Ok(Vec::new());
        };
        let Some(class) = self.usable_class(&reference.name).await? else {
            self.reads.tell_class_missing(pool);
            return Ok(Vec::new());
        };
        self.reads.instance_types(&class).await
    }

    async fn is_drifted(&self, claim: &NodeClaim) -> Result<Option<String>, CloudError> {
        let Some(reference) = &claim.spec.node_class_ref else {
            return Ok(None);
        };
        match self.usable_class(&reference.name).await? {
            Some(class) => drift(claim, &class, &*self.reads, &*self.machines).await,
            None => Ok(None),
        }
    }

    async fn reboot(&self, _: &NodeClaim, _: &str) -> Result<(), CloudError> {
        Err(CloudError::RebootNotImplemented)
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        let policy = |condition_type, condition_status, minutes| RepairPolicy {
            condition_type,
            condition_status,
            reason_regex: "",
            toleration: Duration::from_mins(minutes),
            termination_grace_period: Some(Duration::ZERO),
            priority: 0,
            action: RepairAction::ReplaceNode,
        };
        let (no, unknown) = (ConditionStatus::False, ConditionStatus::Unknown);
        vec![
            policy("Ready", no, 30),
            policy("Ready", unknown, 30),
            policy("AcceleratedHardwareReady", no, 10),
            policy("StorageReady", no, 30),
            policy("NetworkingReady", no, 30),
            policy("KernelReady", no, 30),
            policy("ContainerRuntimeReady", no, 30),
        ]
    }

    fn well_known_labels(&self) -> Vec<String> {
        WELL_KNOWN.iter().map(|key| (*key).to_owned()).collect()
    }

    fn gives_notice(&self) -> bool {
        self.machines.gives_notice()
    }

    async fn notices(&self) -> Result<Vec<Notice>, CloudError> {
        self.machines.notices().await
    }

    async fn acknowledge(&self, notice: &Notice) -> Result<(), CloudError> {
        self.machines.acknowledge(notice).await
    }

    fn interrupted(&self, claim: &NodeClaim) {
        if let Some(offering) = OfferingKey::of(claim) {
            self.reads.offers().interrupted(&offering);
        }
    }

    fn mark_unavailable(&self, offering: &UnavailableOffering) {
        self.reads.mark_unavailable(&crate::Shortage {
            instance_type: offering.instance_type.clone(),
            zone: offering.zone.as_deref().map(str::to_owned),
            capacity_type: offering.capacity_type.as_deref().map(str::to_owned),
            reason: offering.reason.to_string(),
            ..crate::Shortage::default()
        });
    }
}
