//! The launch side itself: what it does when it is asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::{azure::AKSNodeClass, labels::NODEPOOL};
use cloud::{CloudError, Instance, LaunchToken, Launched};
use jiff::Timestamp;
use model::object::{NodeClaim, ProviderId};
use tokio::task::JoinSet;

use super::{
    boot::boot,
    facts::{Machine, Origin, belongs, is_for, launched, listed},
    graph,
    plan::{
        ASYNC, Maker, Plan, Prepared, SYNC, Wish, check_class, class_of, count_start, gives_up, in_place_hash,
        is_settled, plan, refused, types, upstream_tags,
    },
    watch::{Asked, Watched, watch, why_failed},
};
use crate::{
    arm::{
        Failure, Operation,
        wire::{NetworkInterface, VirtualMachine},
    },
    ids,
    launch::{self, Interface, MachineRequest, tags},
    mode::Mode,
    reads::ReadSide,
};

/// How long a network interface may take.
const INTERFACE: Duration = Duration::from_mins(5);
/// How long what is left of a failed launch may take to go.
const CLEANUP: Duration = Duration::from_mins(5);

/// How far Resource Graph may lag behind a launch. A machine that it does not show yet must not count as gone.
const GRAPH_LAG: Duration = Duration::from_mins(10);

/// Machines of Azure.
pub(crate) struct Machines {
    read: Arc<ReadSide>,
    watching: Mutex<JoinSet<()>>,
    /// Machines by name that were asked for lately, and when.
    recent: Mutex<BTreeMap<String, Timestamp>>,
}

impl Machines {
    pub(crate) fn new(read: Arc<ReadSide>) -> Self {
        Self {
            read,
            watching: Mutex::default(),
            recent: Mutex::default(),
        }
    }

    fn group(&self) -> &str {
        &self.read.settings.azure.node_resource_group
    }

    fn cluster(&self) -> &str {
        &self.read.settings.azure.cluster_name
    }

    fn region(&self) -> String {
        self.read.settings.azure.location.to_lowercase()
    }

    fn provider_id(&self, name: &str) -> String {
        ids::provider_id(self.read.arm.subscription(), self.group(), name)
    }

    /// See [`cloud::CloudProvider::create`].
    pub(crate) async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        let name = ids::name_of_launch(claim, token);
        match self.prepare(claim, token, &name).await {
            Ok(Prepared::There(launched)) => Ok(*launched),
            Ok(Prepared::Planned(plan)) => self.launch(claim, &plan).await,
            Err(refused) => {
                if gives_up(&refused) {
                    self.remove_earlier(claim, &name).await;
                }
                Err(refused)
            }
        }
    }

    /// Looks for what an earlier request of this launch made, and decides what to ask for where there is nothing.
    async fn prepare(&self, claim: &NodeClaim, token: &LaunchToken, name: &str) -> Result<Prepared, CloudError> {
        let class = class_of(&self.read, claim).await?;
        match self.read.arm.vm(self.group(), name).await {
            Ok(vm) => {
                let launched = self.adopt(claim, token, &class, &vm).await?;
                return Ok(Prepared::There(Box::new(launched)));
            }
            Err(failure) if failure.is_not_found() => {}
            Err(failure) => return Err(failure.into_cloud("getting virtual machine")),
        }
        check_class(&self.read, claim, &class)?;
        let plan = plan(&self.read, Maker::Us, claim, token, name.to_owned(), class)?;
        Ok(Prepared::Planned(Box::new(plan)))
    }

    /// Removes what an earlier try of a launch has left, by this process or one before. The claim goes without anybody
    /// asking for its machine to be deleted, because a refused launch has none.
    async fn remove_earlier(&self, claim: &NodeClaim, name: &str) {
        if let Err(error) = self.end(claim, name).await {
            tracing::error!(name, %error, "removing what an earlier try of a launch has left");
        }
    }

    /// The machine that an earlier request of this launch made.
    async fn adopt(
        &self,
        claim: &NodeClaim,
        token: &LaunchToken,
        class: &Arc<AKSNodeClass>,
        vm: &VirtualMachine,
    ) -> Result<Launched, CloudError> {
        let machine = Machine::of(vm, &self.region());
        if !machine.is_of(self.cluster()) || !machine.is_for(claim) {
            return Err(CloudError::Create {
                reason: "CreateInstanceFailed".to_owned(),
                message: format!(
                    "virtual machine {} is there already, and its tags {} and {} name another cluster or claim: rename or delete it",
                    machine.name,
                    tags::CLUSTER,
                    tags::CLAIM_UID
                ),
            });
        }
        let gone =
            |why: &str| CloudError::NotFound(format!("virtual machine {} of launch {token} {why}", machine.name));
        if machine.is_deleting() {
            return Err(gone("is being deleted"));
        }
        if machine.has_failed() {
            let failure = why_failed(&self.read, &machine.name).await;
            if let Some(wish) = Wish::behind(&self.read, class, &machine) {
                refused(&self.read, claim, &wish, &failure, ASYNC);
            }
            self.delete_vm(&machine.name).await?;
            return Err(gone(&format!("never came about, {failure}")));
        }
        // Whether an earlier process came to make it a node is not known.
        if machine.is_creating() || self.read.mode == Mode::BootstrappingClient {
            self.watch(claim, &machine.name, None);
        }
        let types = types(&self.read, class)?;
        let entry = types.iter().find(|entry| *entry.name.as_str() == *machine.size);
        let hash = in_place_hash(&self.read, Maker::Us, &upstream_tags(&self.read, class, claim)?);
        let origin = Origin {
            entry: entry.map(|entry| &**entry),
            class: Some(class),
            claim: Some(claim),
            in_place_hash: Some(&hash),
            ..Origin::default()
        };
        Ok(launched(&machine, &self.provider_id(&machine.name), &origin).overlaid_for(claim))
    }

    async fn launch(&self, claim: &NodeClaim, plan: &Plan) -> Result<Launched, CloudError> {
        count_start(&self.read, claim, &plan.wish);
        let asked = match self.ask(claim, plan).await {
            Ok(asked) => asked,
            Err(failure) => {
                // What is there of it costs money, and nobody would know of it. Where Azure did not say what became of the
                // request, it may have been done: the next try finds its machine by name, and so does a deletion.
                if is_settled(&failure) {
                    self.clean_up(&plan.name).await;
                }
                return Err(refused(&self.read, claim, &plan.wish, &failure, SYNC));
            }
        };
        let (mut vm, operation, cse) = asked;
        vm.id = ids::vm_id(self.read.arm.subscription(), self.group(), &plan.name);
        let machine = Machine::of(&vm, &self.region());
        // Nobody plans a claim without a pool anew: it waits for its machine.
        if claim.metadata.labels.get(NODEPOOL).is_none()
            && let Err(failure) = self.read.arm.finish(operation.clone(), CLEANUP).await
        {
            self.clean_up(&plan.name).await;
            return Err(refused(&self.read, claim, &plan.wish, &failure, ASYNC));
        }
        let asked = Asked {
            operation,
            wish: plan.wish.clone(),
            cse,
        };
        self.watch(claim, &plan.name, Some(asked));
        let origin = Origin {
            entry: Some(&plan.wish.chosen.entry),
            class: Some(&plan.class),
            claim: Some(claim),
            in_place_hash: Some(&plan.in_place_hash),
            ..Origin::default()
        };
        Ok(launched(&machine, &self.provider_id(&plan.name), &origin).overlaid_for(claim))
    }

    /// Makes the network interface, waits for it, and asks for the machine.
    async fn ask(
        &self,
        claim: &NodeClaim,
        plan: &Plan,
    ) -> Result<(VirtualMachine, Operation, Option<String>), Failure> {
        let azure = &self.read.settings.azure;
        let cluster = &self.read.cluster;
        let security_group = cluster.security_group().await?;
        let boot = boot(&self.read, claim, plan).await?;
        self.make_interface(plan, &security_group.id).await?;
        let vm = launch::machine(&MachineRequest {
            name: &plan.name,
            class: &plan.class,
            chosen: &plan.wish.chosen,
            record: &plan.wish.record,
            image: &plan.wish.image,
            settings: azure,
            nic_id: &ids::nic_id(self.read.arm.subscription(), self.group(), &plan.name),
            custom_data: boot.custom_data,
            tags: &plan.tags,
        });
        let operation = self.read.arm.put_vm(self.group(), &plan.name, &vm).await?;
        Ok((vm, operation, boot.cse))
    }

    async fn make_interface(&self, plan: &Plan, security_group: &str) -> Result<(), Failure> {
        let mut has_refreshed = false;
        loop {
            let pools = self.read.cluster.backend_pools().await?;
            let nic = launch::interface(&Interface {
                name: &plan.name,
                class: &plan.class,
                settings: &self.read.settings.azure,
                backend_pools: &pools,
                security_group,
                is_accelerated: plan.wish.record.has_accelerated_networking,
                tags: &plan.tags,
            });
            match self.put_interface(&plan.name, &nic).await {
                // A load balancer was changed since we looked: once more, with the pools that are really there.
                Err(failure) if !has_refreshed && names_gone_pool(&failure, &pools) => {
                    has_refreshed = true;
                    self.read.cluster.forget_pools();
                }
                result => return result,
            }
        }
    }

    async fn put_interface(&self, name: &str, nic: &NetworkInterface) -> Result<(), Failure> {
        let operation = self.read.arm.put_nic(self.group(), name, nic).await?;
        self.read.arm.finish(operation, INTERFACE).await
    }

    /// Follows a launch that Azure has taken on to its end.
    fn watch(&self, claim: &NodeClaim, name: &str, asked: Option<Asked>) {
        self.note(name);
        let watched = Watched {
            read: Arc::clone(&self.read),
            claim: claim.clone(),
            name: name.to_owned(),
            asked,
        };
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        while watching.try_join_next().is_some() {}
        watching.spawn(watch(watched));
    }

    /// Removes what there is of a failed launch. What stays is found by its tags later.
    async fn clean_up(&self, name: &str) {
        let arm = &self.read.arm;
        let removed = async {
            match arm.delete_vm(self.group(), name).await {
                Ok(operation) => arm.finish(operation, CLEANUP).await?,
                Err(failure) if failure.is_not_found() => {}
                Err(failure) => return Err(failure),
            }
            match arm.delete_nic(self.group(), name).await {
                Ok(operation) => arm.finish(operation, CLEANUP).await,
                Err(failure) if failure.is_not_found() => Ok(()),
                Err(failure) => Err(failure),
            }
        };
        if let Err(failure) = removed.await {
            tracing::error!(name, error = %failure, "removing what is left of a failed launch");
        }
    }

    /// See [`cloud::CloudProvider::resume`]: a launch that an earlier process did not see to its end is followed.
    pub(crate) fn resume(&self, claim: &NodeClaim) {
        if let Some(Ok(name)) = claim.status.provider_id.as_ref().map(ids::name_of_provider_id) {
            self.watch(claim, name, None);
        }
    }

    /// See [`cloud::CloudProvider::delete`].
    pub(crate) async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        let names = match &claim.status.provider_id {
            Some(id) => vec![ids::name_of_provider_id(id)?.to_owned()],
            None => ids::names_of_claim(claim),
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

    /// Begins or goes on to remove a machine and its network interface. False once both are gone.
    async fn end(&self, claim: &NodeClaim, name: &str) -> Result<bool, CloudError> {
        let refuse = |what: &str| {
            Err(CloudError::Other(format!(
                "{what} {name} is not NodeClaim {}'s: its tags {} and {} name another cluster or claim; it stays",
                claim.metadata.name,
                tags::CLUSTER,
                tags::CLAIM_UID
            )))
        };
        match self.read.arm.vm(self.group(), name).await {
            Ok(vm) => {
                let machine = Machine::of(&vm, &self.region());
                if !machine.is_of(self.cluster()) || !machine.is_for(claim) {
                    return refuse("virtual machine");
                }
                if machine.is_deleting() {
                    return Ok(true);
                }
                return self.delete_vm(name).await;
            }
            Err(failure) if failure.is_not_found() => {}
            Err(failure) => return Err(failure.into_cloud("getting virtual machine")),
        }
        // It goes with its machine, unless there never was one.
        match self.read.arm.nic(self.group(), name).await {
            Ok(nic) if !belongs(&nic.tags, self.cluster()) || !is_for(&nic.tags, name, claim) => Ok(false),
            Ok(_) => match self.read.arm.delete_nic(self.group(), name).await {
                Ok(_) => Ok(true),
                Err(failure) if failure.is_not_found() => Ok(false),
                // Azure holds it for three minutes after a failed machine. The sweep of interfaces takes it then.
                Err(failure) => {
                    tracing::error!(name, error = %failure, "deleting a network interface");
                    Ok(false)
                }
            },
            Err(failure) if failure.is_not_found() => Ok(false),
            Err(failure) => Err(failure.into_cloud("getting network interface")),
        }
    }

    /// Begins to delete a machine. False when it is gone.
    async fn delete_vm(&self, name: &str) -> Result<bool, CloudError> {
        match self.read.arm.delete_vm(self.group(), name).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.is_not_found() => Ok(false),
            Err(failure) => Err(failure.into_cloud("deleting virtual machine")),
        }
    }

    /// See [`cloud::CloudProvider::get`].
    pub(crate) async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError> {
        let name = ids::name_of_provider_id(id)?;
        let gone = || CloudError::NotFound(format!("virtual machine {name} not found"));
        let vm = match self.read.arm.vm(self.group(), name).await {
            Ok(vm) => vm,
            Err(failure) if failure.is_not_found() => return Err(gone()),
            Err(failure) => return Err(failure.into_cloud("getting virtual machine")),
        };
        let machine = Machine::of(&vm, &self.region());
        if !machine.is_of(self.cluster()) {
            return Err(gone());
        }
        Ok(listed(&self.read, &machine, &self.provider_id(&machine.name), None).await)
    }

    /// See [`cloud::CloudProvider::list`].
    pub(crate) async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let rows = graph::machines(&self.read.arm, self.group()).await;
        let rows = rows.map_err(|failure| failure.into_cloud("listing virtual machines"))?;
        let mut machines: Vec<Machine> = rows.iter().map(|vm| Machine::of(vm, &self.region())).collect();
        machines.extend(self.unlisted(&machines).await?);
        let mut instances = Vec::with_capacity(machines.len());
        for machine in machines.iter().filter(|machine| machine.is_of(self.cluster())) {
            let id = self.provider_id(&machine.name);
            instances.push(listed(&self.read, machine, &id, None).await);
        }
        Ok(instances)
    }

    /// A machine was asked for just now.
    fn note(&self, name: &str) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.insert(name.to_owned(), self.read.clock.now());
    }

    /// Machines of late that the list does not show, each asked for by its name.
    async fn unlisted(&self, listed: &[Machine]) -> Result<Vec<Machine>, CloudError> {
        let known: BTreeSet<&str> = listed.iter().map(|machine| machine.name.as_str()).collect();
        let now = self.read.clock.now();
        let missing: Vec<String> = {
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            recent.retain(|_, at| now.duration_since(*at).unsigned_abs() < GRAPH_LAG);
            recent
                .keys()
                .filter(|name| !known.contains(name.as_str()))
                .cloned()
                .collect()
        };
        let mut found = Vec::new();
        for name in missing {
            match self.read.arm.vm(self.group(), &name).await {
                Ok(vm) => found.push(Machine::of(&vm, &self.region())),
                Err(failure) if failure.is_not_found() => {
                    self.recent.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
                }
                Err(failure) => return Err(failure.into_cloud("getting virtual machine")),
            }
        }
        Ok(found)
    }
}

/// Whether a network interface was refused because a pool that it names is gone.
fn names_gone_pool(failure: &Failure, pools: &[String]) -> bool {
    let text = failure.text().to_lowercase();
    failure.code == "InvalidResourceReference" && pools.iter().any(|pool| text.contains(&pool.to_lowercase()))
}
