//! The provider itself: what it does when it is asked.

use std::{sync::Arc, time::Duration};

use api::{annotations::azure::AKS_MACHINE_RESOURCE_ID, labels::azure::WELL_KNOWN};
use async_trait::async_trait;
use cloud::{
    CloudError, CloudProvider, Instance, LaunchToken, Launched, NodeClassKind, Notice, RepairAction, RepairPolicy,
    UnavailableOffering,
};
use model::{
    object::{ConditionStatus, NodeClaim, NodePool, ProviderId},
    snapshot::CatalogType,
};

use crate::{
    Controller, Parts, ReadSide, background,
    drift::drift,
    evictions::{CONDITION, Evictions},
    instance::{AksMachines, Machines, not_found, tell_missing},
    offers::Shortage,
};

const NODE_CLASSES: &[NodeClassKind] = &[NodeClassKind {
    group: "karpenter.azure.com",
    version: "v1beta1",
    kind: "AKSNodeClass",
}];

/// For how long a size is not asked for as spot where Azure took a machine of it back: as long as where it sells none.
const EVICTED: Duration = Duration::from_hours(1);

/// Azure virtual machines.
pub struct Azure {
    reads: Arc<ReadSide>,
    machines: Machines,
    /// Those of an agent pool, where they are ours to look after.
    aks_machines: Option<AksMachines>,
    evictions: Evictions,
}

impl Azure {
    /// A provider of this subscription and cluster. What fails here will not mend itself.
    pub async fn connect(parts: Parts) -> Result<Self, CloudError> {
        let reads = Arc::new(ReadSide::connect(parts).await?);
        Ok(Self {
            machines: Machines::new(Arc::clone(&reads)),
            aks_machines: AksMachines::new(&reads),
            evictions: Evictions::new(reads.clock.clone()),
            reads,
        })
    }

    /// What can be launched.
    pub fn reads(&self) -> &Arc<ReadSide> {
        &self.reads
    }

    /// What goes on beside the calls while we lead, until dropped: node classes are looked after, sizes, prices and
    /// quotas read anew, machines kept up to date. What an earlier process knew is taken up from the namespace, if there
    /// is one.
    pub fn run(self: Arc<Self>, namespace: Option<String>) -> impl Future<Output = ()> + Send {
        let controller = Arc::new(Controller::new(Arc::clone(&self.reads)));
        async move {
            tokio::join!(
                controller.run(),
                background::run(&self.reads, namespace),
                self.evictions.follow(self.reads.objects.api()),
            );
        }
    }
}

impl Azure {
    /// The machine of a claim in the agent pool; none where AKS did not make it, or where it is not ours to look after.
    fn of_aks(&self, claim: &NodeClaim) -> Option<(&AksMachines, String)> {
        let aks = self.aks_machines.as_ref()?;
        Some((aks, aks.name_of(claim)?))
    }
}

/// It was launched, and its node is not there yet.
fn is_waiting(claim: &NodeClaim) -> bool {
    claim.status.provider_id.is_some() && claim.status.node_name.is_none() && !claim.metadata.is_deleting()
}

/// A machine of AKS that we were told not to manage must not count as gone: it runs, and costs money.
fn check_managed(claim: &NodeClaim, are_managed: bool) -> Result<(), CloudError> {
    match claim.metadata.annotations.get(AKS_MACHINE_RESOURCE_ID) {
        Some(id) if !are_managed && !id.is_empty() => Err(CloudError::Other(format!(
            "NodeClaim {} has the AKS machine {id}, and machines of AKS are not managed: set \
             MANAGE_EXISTING_AKS_MACHINES to true and AKS_MACHINES_POOL_NAME to its agent pool",
            claim.metadata.name
        ))),
        _ => Ok(()),
    }
}

#[async_trait]
impl CloudProvider for Azure {
    fn name(&self) -> &'static str {
        "azure"
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        NODE_CLASSES
    }

    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        match &self.aks_machines {
            Some(aks) if self.reads.mode.makes_aks_machines() => aks.create(claim, token).await,
            _ => self.machines.create(claim, token).await,
        }
    }

    async fn resume(&self, claims: &[Arc<NodeClaim>]) -> Result<(), CloudError> {
        for claim in claims.iter().filter(|claim| is_waiting(claim)) {
            match self.of_aks(claim) {
                Some((aks, name)) => aks.resume(claim, &name),
                None => self.machines.resume(claim),
            }
        }
        Ok(())
    }

    fn offers_version(&self) -> u64 {
        self.reads.offers().version()
    }

    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        if let Some((aks, _)) = self.of_aks(claim) {
            return aks.delete(claim).await;
        }
        check_managed(claim, self.aks_machines.is_some())?;
        let ended = self.machines.delete(claim).await;
        match (&self.aks_machines, ended) {
            // Which of both it was launched as is not written down yet.
            (Some(aks), Err(CloudError::NotFound(_))) if claim.status.provider_id.is_none() => aks.delete(claim).await,
            (_, ended) => ended,
        }
    }

    async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError> {
        let aks = self
            .aks_machines
            .as_ref()
            .and_then(|aks| Some((aks, aks.name_of_id(id)?)));
        match aks {
            Some((aks, name)) => aks.get(&name).await,
            None => self.machines.get(id).await,
        }
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let mut all = self.machines.list().await?;
        if let Some(aks) = &self.aks_machines {
            all.extend(aks.list().await?);
        }
        Ok(all)
    }

    async fn instance_types(&self, pool: &NodePool) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        let Some(reference) = &pool.spec.template.spec.node_class_ref else {
            return Ok(Vec::new());
        };
        let class = self.reads.node_class(&reference.name).await?;
        if let Some(class) = class.filter(|class| class.metadata.deletion_timestamp.is_none()) {
            return self.reads.instance_types(&class);
        }
        tell_missing(&self.reads, pool);
        let why = not_found(&reference.name);
        Err(CloudError::NodeClassNotReady(format!("resolving node class, {why}")))
    }

    async fn is_drifted(&self, claim: &NodeClaim) -> Result<Option<String>, CloudError> {
        let Some(reference) = &claim.spec.node_class_ref else {
            return Ok(None);
        };
        let class = self.reads.node_class(&reference.name).await?;
        match class.filter(|class| class.metadata.deletion_timestamp.is_none()) {
            Some(class) => drift(claim, &class, &self.reads).await,
            None => Ok(None),
        }
    }

    async fn reboot(&self, _: &NodeClaim, _: &str) -> Result<(), CloudError> {
        Err(CloudError::RebootNotImplemented)
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        let policy = |condition_type, condition_status, reason_regex, minutes| RepairPolicy {
            condition_type,
            condition_status,
            reason_regex,
            toleration: Duration::from_mins(minutes),
            termination_grace_period: Some(Duration::ZERO),
            priority: 0,
            action: RepairAction::ReplaceNode,
        };
        let (yes, no, unknown) = (ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown);
        vec![
            policy("Ready", no, "", 10),
            policy("Ready", unknown, ".*", 10),
            policy("kubernetes.azure.com/NodeHealthy", no, ".*", 0),
            // An agent of AKS on the node writes it when Azure is about to take a spot machine back.
            policy(CONDITION, yes, ".*", 0),
        ]
    }

    fn gives_notice(&self) -> bool {
        true
    }

    async fn notices(&self) -> Result<Vec<Notice>, CloudError> {
        Ok(self.evictions.wait().await)
    }

    async fn acknowledge(&self, notice: &Notice) -> Result<(), CloudError> {
        self.evictions.heed(&notice.receipt);
        Ok(())
    }

    fn well_known_labels(&self) -> Vec<String> {
        WELL_KNOWN.iter().map(|key| (*key).to_owned()).collect()
    }

    fn mark_unavailable(&self, offering: &UnavailableOffering) {
        let believed = offering.retry_after.unwrap_or(EVICTED);
        let (Some(size), Some(zone), Some(kind)) = (&offering.instance_type, &offering.zone, &offering.capacity_type)
        else {
            return;
        };
        self.reads.offers().mark_unavailable(&Shortage::Offering {
            size: size.to_string(),
            family: String::new(),
            vcpu: 0,
            zone: zone.to_string(),
            capacity_type: kind.to_string(),
            reason: offering.reason.to_string(),
            believed,
        });
    }
}
