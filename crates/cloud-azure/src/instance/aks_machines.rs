//! Machines of an agent pool: AKS makes, changes and removes what belongs to them; we ask for them and follow them.

use std::sync::{Arc, Mutex, PoisonError};

use api::{annotations::azure::AKS_MACHINE_RESOURCE_ID, azure::AKSNodeClass, labels::NODEPOOL};
use cloud::{CloudError, Instance, LaunchToken, Launched};
use model::object::{NodeClaim, ProviderId};
use tokio::task::JoinSet;

use super::{
    aks_watch::{Followed, failed, follow, outcome},
    batch::Batches,
    facts::{Machine, Origin, is_for, is_of_cluster, launched, listed},
    plan::{
        ASYNC, Maker, Plan, Prepared, SYNC, Wish, check_class, class_of, count_start, gives_up, in_place_hash,
        is_settled, plan, refused, upstream_tags,
    },
};
use crate::{
    arm::{Failure, calls::Pool, wire::aks::AksMachine},
    ids,
    launch::{AksMachineRequest, aks_machine, tags},
    mode::Mode,
    reads::ReadSide,
};

/// Machines of an agent pool.
pub(crate) struct AksMachines {
    read: Arc<ReadSide>,
    pool: Pool,
    /// Gathers machines that can be asked for together, in the mode that does.
    batches: Option<Batches>,
    watching: Mutex<JoinSet<()>>,
}

impl AksMachines {
    /// Those of the pool that the settings name; none where they name none.
    pub(crate) fn new(read: &Arc<ReadSide>) -> Option<Self> {
        let pool = read.pool.clone()?;
        let batches = (read.mode == Mode::AksMachineBatch).then(|| Batches::new(Arc::clone(read), pool.clone()));
        Some(Self {
            read: Arc::clone(read),
            pool,
            batches,
            watching: Mutex::default(),
        })
    }

    /// The name of the machine of a claim that AKS made; none where it did not.
    pub(crate) fn name_of(&self, claim: &NodeClaim) -> Option<String> {
        let annotated = claim.metadata.annotations.get(AKS_MACHINE_RESOURCE_ID);
        let annotated = annotated
            .and_then(|id| id.rsplit('/').next())
            .filter(|name| !name.is_empty());
        if let Some(name) = annotated {
            return Some(name.to_owned());
        }
        claim.status.provider_id.as_ref().and_then(|id| self.name_of_id(id))
    }

    /// The name of the machine behind a provider ID; none where AKS did not make it.
    pub(crate) fn name_of_id(&self, id: &ProviderId) -> Option<String> {
        let vm = ids::name_of_provider_id(id).ok()?;
        ids::aks_machine_of_vm(&self.pool.name, vm).map(str::to_owned)
    }

    fn region(&self) -> String {
        self.read.settings.azure.location.to_lowercase()
    }

    fn cluster(&self) -> &str {
        &self.read.settings.azure.cluster_name
    }

    /// See [`cloud::CloudProvider::create`].
    pub(crate) async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        let name = ids::aks_machine_name(&claim.metadata.name, token.attempt);
        match self.prepare(claim, token, &name).await {
            Ok(Prepared::There(launched)) => Ok(*launched),
            Ok(Prepared::Planned(plan)) => self.launch(claim, &plan).await,
            Err(refused) => {
                if gives_up(&refused)
                    && let Err(error) = self.end(claim, &name).await
                {
                    tracing::error!(name, %error, "removing what an earlier try of a launch has left");
                }
                Err(refused)
            }
        }
    }

    /// Looks for what an earlier request of this launch made, and decides what to ask for where there is nothing.
    async fn prepare(&self, claim: &NodeClaim, token: &LaunchToken, name: &str) -> Result<Prepared, CloudError> {
        let class = class_of(&self.read, claim).await?;
        match self.read.arm.aks_machine(&self.pool, name).await {
            Ok(found) => {
                let launched = self.adopt(claim, token, &class, &found).await?;
                return Ok(Prepared::There(Box::new(launched)));
            }
            Err(failure) if failure.is_not_found() => {}
            Err(failure) => return Err(failure.into_cloud("getting AKS machine")),
        }
        check_class(&self.read, claim, &class)?;
        let plan = plan(&self.read, Maker::Aks, claim, token, name.to_owned(), class)?;
        Ok(Prepared::Planned(Box::new(plan)))
    }

    /// The machine that an earlier request of this launch made.
    async fn adopt(
        &self,
        claim: &NodeClaim,
        token: &LaunchToken,
        class: &Arc<AKSNodeClass>,
        found: &AksMachine,
    ) -> Result<Launched, CloudError> {
        let tags = found.properties.tags.clone().unwrap_or_default();
        if !is_of_cluster(&tags, self.cluster()) || !is_for(&tags, &found.name, claim) {
            return Err(CloudError::Create {
                reason: "CreateInstanceFailed".to_owned(),
                message: format!(
                    "AKS machine {} is there already, and its tags {} and {} name another cluster or claim: rename or delete it",
                    found.name,
                    tags::CLUSTER,
                    tags::AKS_MACHINE
                ),
            });
        }
        let gone = |why: &str| CloudError::NotFound(format!("AKS machine {} of launch {token} {why}", found.name));
        if found.properties.provisioning_state.eq_ignore_ascii_case("Deleting") {
            return Err(gone("is being deleted"));
        }
        let machine = self.seen(found);
        let wish = machine.as_ref().ok();
        let wish = wish.and_then(|machine| Wish::behind(&self.read, class, machine));
        if let Some(failure) = failed(found) {
            if let Some(wish) = &wish {
                refused(&self.read, claim, wish, &failure, ASYNC);
            }
            self.delete_machine(&found.name).await?;
            return Err(gone(&format!("never came about, {failure}")));
        }
        let machine = machine?;
        if machine.is_creating() {
            self.follow(claim, &found.name, wish.clone());
        }
        let hash = in_place_hash(&self.read, Maker::Aks, &upstream_tags(&self.read, class, claim)?);
        let origin = Origin {
            entry: wish.as_ref().map(|wish| &*wish.chosen.entry),
            class: Some(class),
            claim: Some(claim),
            in_place_hash: Some(&hash),
            aks_machine: Some(&found.id),
        };
        let id = ids::provider_id_of_vm(&found.properties.resource_id);
        Ok(launched(&machine, &id, &origin).overlaid_for(claim))
    }

    fn seen(&self, found: &AksMachine) -> Result<Machine, CloudError> {
        Machine::of_aks(found, &self.region()).map_err(CloudError::Other)
    }

    async fn launch(&self, claim: &NodeClaim, plan: &Plan) -> Result<Launched, CloudError> {
        count_start(&self.read, claim, &plan.wish);
        let found = match self.ask(claim, plan).await {
            Ok(found) => found,
            Err(failure) => return Err(self.give_back(claim, plan, &failure, SYNC).await),
        };
        if let Some(failure) = failed(&found) {
            return Err(self.give_back(claim, plan, &failure, ASYNC).await);
        }
        let machine = self.seen(&found)?;
        if claim.metadata.labels.get(NODEPOOL).is_some() {
            self.follow(claim, &plan.name, Some(plan.wish.clone()));
        } else if let Err(Some(failure)) = outcome(&self.read, &self.pool, &plan.name).await {
            // Nobody plans a claim without a pool anew: it waits for its machine.
            return Err(self.give_back(claim, plan, &failure, ASYNC).await);
        }
        let origin = Origin {
            entry: Some(&plan.wish.chosen.entry),
            class: Some(&plan.class),
            claim: Some(claim),
            in_place_hash: Some(&plan.in_place_hash),
            aks_machine: Some(&found.id),
        };
        let id = ids::provider_id_of_vm(&found.properties.resource_id);
        Ok(launched(&machine, &id, &origin).overlaid_for(claim))
    }

    /// Asks for the machine, alone or with others, and looks at what AKS made of it.
    async fn ask(&self, claim: &NodeClaim, plan: &Plan) -> Result<AksMachine, Failure> {
        let machine = aks_machine(&AksMachineRequest {
            claim,
            class: &plan.class,
            chosen: &plan.wish.chosen,
            record: &plan.wish.record,
            image: &plan.wish.image,
            kubernetes: &plan.kubernetes,
            tags: &plan.tags,
        })?;
        match &self.batches {
            Some(batches) => batches.ask(&plan.name, machine).await?,
            None => {
                self.read
                    .arm
                    .put_aks_machine(&self.pool, &plan.name, &machine, None)
                    .await?;
            }
        }
        self.read.arm.aks_machine(&self.pool, &plan.name).await
    }

    /// Removes what there is of a failed launch, unless it is not known what became of it: the next try finds its machine
    /// by name then, and so does a deletion.
    async fn give_back(&self, claim: &NodeClaim, plan: &Plan, failure: &Failure, phase: &str) -> CloudError {
        if is_settled(failure)
            && let Err(error) = self.delete_machine(&plan.name).await
        {
            tracing::error!(name = plan.name, %error, "removing what is left of a failed launch");
        }
        refused(&self.read, claim, &plan.wish, failure, phase)
    }

    /// Follows a launch that AKS has taken on to its end.
    fn follow(&self, claim: &NodeClaim, name: &str, wish: Option<Wish>) {
        let followed = Followed {
            read: Arc::clone(&self.read),
            pool: self.pool.clone(),
            claim: claim.clone(),
            name: name.to_owned(),
            wish,
        };
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        while watching.try_join_next().is_some() {}
        watching.spawn(follow(followed));
    }

    /// See [`cloud::CloudProvider::resume`]: a launch that an earlier process did not see to its end is followed.
    pub(crate) fn resume(&self, claim: &NodeClaim, name: &str) {
        self.follow(claim, name, None);
    }

    /// See [`cloud::CloudProvider::delete`].
    pub(crate) async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        let names = match self.name_of(claim) {
            Some(name) => vec![name],
            None => ids::aks_names_of_claim(claim),
        };
        let mut is_gone = true;
        for name in &names {
            is_gone &= !self.end(claim, name).await?;
        }
        if is_gone {
            return Err(CloudError::NotFound("instance terminated".to_owned()));
        }
        Ok(())
    }

    /// Begins or goes on to remove a machine. False once it is gone.
    async fn end(&self, claim: &NodeClaim, name: &str) -> Result<bool, CloudError> {
        let found = match self.read.arm.aks_machine(&self.pool, name).await {
            Ok(found) => found,
            Err(failure) if failure.is_not_found() => return Ok(false),
            Err(failure) => return Err(failure.into_cloud("getting AKS machine")),
        };
        let tags = found.properties.tags.clone().unwrap_or_default();
        if !is_of_cluster(&tags, self.cluster()) || !is_for(&tags, name, claim) {
            return Err(CloudError::Other(format!(
                "AKS machine {name} is not NodeClaim {}'s: its tags {} and {} name another cluster or claim; it stays",
                claim.metadata.name,
                tags::CLUSTER,
                tags::AKS_MACHINE
            )));
        }
        if found.properties.provisioning_state.eq_ignore_ascii_case("Deleting") {
            return Ok(true);
        }
        self.delete_machine(name).await
    }

    /// Begins to delete a machine. False when it is gone.
    async fn delete_machine(&self, name: &str) -> Result<bool, CloudError> {
        match self.read.arm.delete_aks_machine(&self.pool, name).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.is_not_found() => Ok(false),
            Err(failure) => Err(failure.into_cloud("deleting AKS machine")),
        }
    }

    /// See [`cloud::CloudProvider::get`].
    pub(crate) async fn get(&self, name: &str) -> Result<Instance, CloudError> {
        let gone = || CloudError::NotFound(format!("AKS machine {name} not found"));
        let found = match self.read.arm.aks_machine(&self.pool, name).await {
            Ok(found) => found,
            Err(failure) if failure.is_not_found() => return Err(gone()),
            Err(failure) => return Err(failure.into_cloud("getting AKS machine")),
        };
        let machine = self.seen(&found)?;
        if !is_of_cluster(&machine.tags, self.cluster()) {
            return Err(gone());
        }
        let id = ids::provider_id_of_vm(&found.properties.resource_id);
        Ok(listed(&self.read, &machine, &id, Some(&found.id)).await)
    }

    /// See [`cloud::CloudProvider::list`].
    pub(crate) async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let found = match self.read.arm.aks_machines(&self.pool).await {
            Ok(found) => found,
            // It was there when we began: with the pool its machines went.
            Err(failure) if failure.is_not_found() => {
                tracing::error!(pool = self.pool.name, error = %failure, "the agent pool of machines is gone");
                Vec::new()
            }
            Err(failure) => return Err(failure.into_cloud("listing AKS machines")),
        };
        let mut instances = Vec::new();
        for machine in &found {
            match Machine::of_aks(machine, &self.region()) {
                Ok(seen) if is_of_cluster(&seen.tags, self.cluster()) => {
                    let id = ids::provider_id_of_vm(&machine.properties.resource_id);
                    instances.push(listed(&self.read, &seen, &id, Some(&machine.id)).await);
                }
                Ok(_) => {}
                Err(error) => tracing::error!(error, "a machine of the list cannot be read"),
            }
        }
        Ok(instances)
    }
}
