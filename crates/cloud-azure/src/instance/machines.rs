//! The launch side itself: what it does when it is asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::{azure::AKSNodeClass, labels::NODEPOOL};
use cloud::{CloudError, Instance, LaunchToken, Launched};
use jiff::Timestamp;
use model::{
    object::{NodeClaim, ProviderId},
    snapshot::CatalogType,
};
use tokio::task::JoinSet;

use super::{
    facts::{Machine, Origin, belongs, is_for, launched},
    graph,
    watch::{Watched, watch},
};
use crate::{
    arm::{
        Failure, Operation,
        wire::{NetworkInterface, Tags, VirtualMachine},
    },
    ids,
    launch::{
        self, Bootstrap, Chosen, Interface, MachineRequest, check_ready, choose, custom_data, missing_class,
        refusal::refusal, tags,
    },
    node_class::image_of_type,
    offers::SizeRecord,
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

/// Everything that a launch is made from.
struct Plan {
    name: String,
    class: Arc<AKSNodeClass>,
    chosen: Chosen,
    record: Arc<SizeRecord>,
    image: api::azure::NodeImage,
    kubernetes: String,
    tags: Tags,
    in_place_hash: String,
}

/// What a launch begins with.
enum Prepared {
    /// An earlier request of it has made the machine.
    There(Box<Launched>),
    /// There is none yet.
    Planned(Box<Plan>),
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

    async fn class_of(&self, claim: &NodeClaim) -> Result<Arc<AKSNodeClass>, CloudError> {
        let reference =
            claim.spec.node_class_ref.as_ref().ok_or_else(|| {
                CloudError::Other(format!("NodeClaim {} has no spec.nodeClassRef", claim.metadata.name))
            })?;
        let class = self.read.node_class(&reference.name).await?;
        class.ok_or_else(|| {
            missing_class(&format!(
                "aksnodeclasses.karpenter.azure.com \"{}\" not found",
                reference.name
            ))
        })
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
        let class = self.class_of(claim).await?;
        match self.read.arm.vm(self.group(), name).await {
            Ok(vm) => {
                let launched = self.adopt(claim, token, &class, &vm).await?;
                return Ok(Prepared::There(Box::new(launched)));
            }
            Err(failure) if failure.is_not_found() => {}
            Err(failure) => return Err(failure.into_cloud("getting virtual machine")),
        }
        check_ready(&class)?;
        let plan = self.plan(claim, token, name.to_owned(), class)?;
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
            self.delete_vm(&machine.name).await?;
            return Err(gone("never came about"));
        }
        if machine.is_creating() {
            self.watch(claim, &machine.name, None, None);
        }
        let types = self.types(class)?;
        let entry = types.iter().find(|entry| *entry.name.as_str() == *machine.size);
        let hash = self.in_place_hash(class, claim)?;
        let origin = Origin {
            entry: entry.map(|entry| &**entry),
            class: Some(class),
            claim: Some(claim),
            in_place_hash: Some(&hash),
        };
        Ok(launched(&machine, &self.provider_id(&machine.name), &origin))
    }

    fn types(&self, class: &AKSNodeClass) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        self.read.instance_types(class).map_err(|error| CloudError::Create {
            reason: "InstanceTypeResolutionFailed".to_owned(),
            message: format!("Error resolving instance types: {error}"),
        })
    }

    fn upstream_tags(&self, class: &AKSNodeClass, claim: &NodeClaim) -> Result<Tags, CloudError> {
        let additional = self.read.settings.azure.extra_tags();
        let additional = additional.map_err(|error| CloudError::Other(error.to_string()))?;
        Ok(tags::upstream(self.cluster(), &additional, class, claim))
    }

    fn in_place_hash(&self, class: &AKSNodeClass, claim: &NodeClaim) -> Result<String, CloudError> {
        let tags = self.upstream_tags(class, claim)?;
        Ok(tags::in_place_hash(&self.read.settings.azure.node_identities, &tags))
    }

    fn plan(
        &self,
        claim: &NodeClaim,
        token: &LaunchToken,
        name: String,
        class: Arc<AKSNodeClass>,
    ) -> Result<Plan, CloudError> {
        let failed = |message: String| CloudError::Create {
            reason: "CreateInstanceFailed".to_owned(),
            message,
        };
        let types = self.types(&class)?;
        let offers = &self.read.offers;
        let chosen = choose(claim, &types, &self.read.random, |size, zone, kind| {
            offers.why(size, zone, kind)
        })?;
        let size = chosen.entry.name.as_str();
        let record = offers
            .record(size)
            .ok_or_else(|| failed(format!("size {size} is not known any more")))?;
        let images = class.images().map_err(|stale| failed(stale.to_string()))?;
        let Some(image) = image_of_type(images, &chosen.entry).cloned() else {
            let family = crate::class::Class(&class).family();
            self.read.metrics.image_selection_error_count.inc([family]);
            return Err(failed(format!(
                "no image of AKSNodeClass {} fits size {size}",
                crate::class::Class(&class).name()
            )));
        };
        let kubernetes = class
            .kubernetes_version()
            .map_err(|stale| failed(stale.to_string()))?
            .to_owned();
        let upstream = self.upstream_tags(&class, claim)?;
        Ok(Plan {
            in_place_hash: tags::in_place_hash(&self.read.settings.azure.node_identities, &upstream),
            tags: tags::all(&upstream, &class, claim, Some(token)),
            name,
            class,
            chosen,
            record,
            image,
            kubernetes,
        })
    }

    async fn launch(&self, claim: &NodeClaim, plan: &Plan) -> Result<Launched, CloudError> {
        self.count_start(claim, plan);
        let asked = match self.ask(claim, plan).await {
            Ok(asked) => asked,
            Err(failure) => {
                // What is there of it costs money, and nobody would know of it. Where Azure did not say what became of the
                // request, it may have been done: the next try finds its machine by name, and so does a deletion.
                if is_settled(&failure) {
                    self.clean_up(&plan.name).await;
                }
                return Err(self.refused(claim, plan, &failure, "sync"));
            }
        };
        let (mut vm, operation) = asked;
        vm.id = ids::vm_id(self.read.arm.subscription(), self.group(), &plan.name);
        let machine = Machine::of(&vm, &self.region());
        if claim.metadata.labels.get(NODEPOOL).is_some() {
            self.watch(
                claim,
                &plan.name,
                Some(operation),
                Some((plan.chosen.clone(), Arc::clone(&plan.record))),
            );
        } else if let Err(failure) = self.read.arm.finish(operation, CLEANUP).await {
            // Nobody plans a claim without a pool anew: it waits for its machine.
            self.clean_up(&plan.name).await;
            return Err(self.refused(claim, plan, &failure, "async"));
        }
        let origin = Origin {
            entry: Some(&plan.chosen.entry),
            class: Some(&plan.class),
            claim: Some(claim),
            in_place_hash: Some(&plan.in_place_hash),
        };
        Ok(launched(&machine, &self.provider_id(&plan.name), &origin))
    }

    /// Makes the network interface, waits for it, and asks for the machine.
    async fn ask(&self, claim: &NodeClaim, plan: &Plan) -> Result<(VirtualMachine, Operation), Failure> {
        let azure = &self.read.settings.azure;
        let cluster = &self.read.cluster;
        let security_group = cluster.security_group().await?;
        let labels = launch::node_labels(claim, &plan.class, &plan.chosen, &plan.kubernetes, azure, cluster);
        let taints = launch::allowed_taints(claim);
        self.make_interface(plan, &security_group.id).await?;
        let vm = launch::machine(&MachineRequest {
            name: &plan.name,
            class: &plan.class,
            chosen: &plan.chosen,
            record: &plan.record,
            image: &plan.image,
            settings: azure,
            nic_id: &ids::nic_id(self.read.arm.subscription(), self.group(), &plan.name),
            custom_data: custom_data(&Bootstrap {
                class: &plan.class,
                chosen: &plan.chosen,
                record: &plan.record,
                kubernetes: &plan.kubernetes,
                labels: &labels,
                taints: &taints,
                settings: azure,
                cluster,
                security_group,
            }),
            tags: &plan.tags,
        });
        let operation = self.read.arm.put_vm(self.group(), &plan.name, &vm).await?;
        Ok((vm, operation))
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
                is_accelerated: plan.record.has_accelerated_networking,
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

    /// What a refusal comes to, told to whom it concerns.
    fn refused(&self, claim: &NodeClaim, plan: &Plan, failure: &Failure, phase: &str) -> CloudError {
        self.count_failure(claim, &plan.chosen, &plan.image.id, failure, phase);
        let refusal = refusal(failure, &plan.chosen, &plan.record);
        for shortage in &refusal.shortages {
            self.read.offers.mark_unavailable(shortage);
        }
        refusal.error
    }

    fn count_start(&self, claim: &NodeClaim, plan: &Plan) {
        let pool = pool_of(claim);
        let Chosen {
            zone, capacity_type, ..
        } = &plan.chosen;
        let labels = [
            plan.image.id.as_str(),
            plan.record.name.as_str(),
            zone,
            capacity_type,
            pool,
        ];
        self.read.metrics.instance_vm_create_start_total.inc(labels);
    }

    fn count_failure(&self, claim: &NodeClaim, chosen: &Chosen, image: &str, failure: &Failure, phase: &str) {
        let (size, pool) = (chosen.entry.name.as_str(), pool_of(claim));
        let labels = [
            image,
            size,
            &chosen.zone,
            chosen.capacity_type,
            pool,
            phase,
            failure.label(),
        ];
        self.read.metrics.instance_vm_create_failure_total.inc(labels);
    }

    /// Follows a launch that Azure has taken on to its end.
    fn watch(
        &self,
        claim: &NodeClaim,
        name: &str,
        operation: Option<Operation>,
        asked: Option<(Chosen, Arc<SizeRecord>)>,
    ) {
        self.note(name);
        let watched = Watched {
            read: Arc::clone(&self.read),
            claim: claim.clone(),
            name: name.to_owned(),
            operation,
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

    /// See [`cloud::CloudProvider::resume`]: launches that an earlier process did not see to their end are followed.
    pub(crate) fn resume(&self, claims: &[Arc<NodeClaim>]) {
        for claim in claims {
            let is_waiting = claim.status.node_name.is_none() && !claim.metadata.is_deleting();
            let id = claim.status.provider_id.as_ref().filter(|_| is_waiting);
            if let Some(Ok(name)) = id.map(ids::name_of_provider_id) {
                self.watch(claim, name, None, None);
            }
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
        Ok(self.instance(&machine).await)
    }

    /// See [`cloud::CloudProvider::list`].
    pub(crate) async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let rows = graph::machines(&self.read.arm, self.group()).await;
        let rows = rows.map_err(|failure| failure.into_cloud("listing virtual machines"))?;
        let mut machines: Vec<Machine> = rows.iter().map(|vm| Machine::of(vm, &self.region())).collect();
        machines.extend(self.unlisted(&machines).await?);
        let mut instances = Vec::with_capacity(machines.len());
        for machine in machines.iter().filter(|machine| machine.is_of(self.cluster())) {
            instances.push(self.instance(machine).await);
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

    /// A machine as the cloud lists it. A class or a size that is gone leaves out what only it could say.
    async fn instance(&self, machine: &Machine) -> Instance {
        let class = match machine.node_class() {
            Some(name) => self.read.node_class(name).await.ok().flatten(),
            None => None,
        };
        let types = class
            .and_then(|class| self.read.instance_types(&class).ok())
            .unwrap_or_default();
        let entry = types.iter().find(|entry| *entry.name.as_str() == *machine.size);
        let origin = Origin {
            entry: entry.map(|entry| &**entry),
            ..Origin::default()
        };
        let id = self.provider_id(&machine.name);
        machine.instance(&id, launched(machine, &id, &origin))
    }
}

pub(super) fn pool_of(claim: &NodeClaim) -> &str {
    claim.metadata.labels.get(NODEPOOL).map_or("", |pool| pool)
}

/// Whether a claim is given up when it hears this, rather than launched again.
fn gives_up(error: &CloudError) -> bool {
    matches!(
        error,
        CloudError::InsufficientCapacity { .. } | CloudError::NodeClassNotReady(_)
    )
}

/// Whether a failure says that nothing will come of a request.
fn is_settled(failure: &Failure) -> bool {
    failure.status.is_some_and(|status| status < 500 && status != 429)
}

/// Whether a network interface was refused because a pool that it names is gone.
fn names_gone_pool(failure: &Failure, pools: &[String]) -> bool {
    let text = failure.text().to_lowercase();
    failure.code == "InvalidResourceReference" && pools.iter().any(|pool| text.contains(&pool.to_lowercase()))
}
