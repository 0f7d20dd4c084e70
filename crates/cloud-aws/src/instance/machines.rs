//! The launch side itself: what it does when it is asked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::labels;
use async_trait::async_trait;
use cloud::{CloudError, Instance, LaunchToken, Launched, Notice};
use jiff::Timestamp;
use model::object::{NodeClaim, ProviderId};
use runtime::{Api, Clock, Metrics};
use tokio::sync::mpsc;

use super::{
    describe::Describe,
    facts::{Machine, Origin, State, Type, launched},
    lookup::Lookup,
    memory::Memory,
    tagging,
    terminate::Terminate,
};
use crate::{
    Clients, Failure,
    border::{
        ClusterFacts, Describes, Freshness, MachineFacts, Machines, PlacementGroupFacts, Reads, Rehearsal,
        RehearsalFailure, ReservationNote,
    },
    interruption::{Queue, STATUS_RECEIPT, StatusPoll},
    launch::{self, Answer, Given, Launcher, Outcome, refusal, tags},
};

/// How often templates that nobody needs are looked for.
const TEMPLATE_SWEEP: Duration = Duration::from_secs(10);
/// How often the health of instances is looked at.
const STATUS_LOOK: Duration = Duration::from_mins(1);
/// How long a wait for notices lasts where there is no queue.
const QUIET: Duration = Duration::from_secs(20);
/// Looks at the health of instances that are kept for whoever asks for notices.
const LOOKS: usize = 4;

/// How machines are made.
#[derive(Debug, Clone, Default)]
pub struct MachineOptions {
    /// The cluster's name, which is in the tags of everything that is ours.
    pub cluster_name: String,
    /// The name of the queue of interruptions; empty for none.
    pub interruption_queue: String,
    /// The gate `ReservedCapacity`.
    pub may_reserve: bool,
    /// `--min-values-policy=Strict`
    pub must_meet_min_values: bool,
}

/// Machines of EC2.
pub struct Ec2Machines {
    reads: Arc<dyn Reads>,
    api: Option<Api>,
    ec2: aws_sdk_ec2::Client,
    clock: Clock,
    metrics: Option<Arc<Metrics>>,
    cluster: String,
    launcher: Launcher,
    describe: Describe,
    terminate: Terminate,
    memory: Memory,
    /// What was read last of each machine.
    read: Mutex<BTreeMap<String, Machine>>,
    queue: Option<Queue>,
    poll: StatusPoll,
    looks: (
        mpsc::Sender<Vec<Notice>>,
        tokio::sync::Mutex<mpsc::Receiver<Vec<Notice>>>,
    ),
}

/// What a launch asks the read side.
struct Facts {
    class: Arc<api::aws::EC2NodeClass>,
    cluster: Arc<ClusterFacts>,
    group: Option<PlacementGroupFacts>,
    types: Vec<Arc<model::snapshot::CatalogType>>,
}

impl Ec2Machines {
    /// Machines of a cluster. With an API server, instances are given their names as tags.
    pub fn new(
        clients: &Clients,
        reads: Arc<dyn Reads>,
        clock: Clock,
        metrics: Option<Arc<Metrics>>,
        api: Option<Api>,
        options: &MachineOptions,
    ) -> Self {
        let ec2 = clients.ec2.clone();
        let cluster = options.cluster_name.as_str();
        let (send, receive) = mpsc::channel(LOOKS);
        let has_queue = !options.interruption_queue.is_empty();
        let queue = has_queue.then(|| {
            Queue::new(
                clients.sqs.clone(),
                &options.interruption_queue,
                clock.clone(),
                metrics.clone(),
            )
        });
        Self {
            launcher: Launcher::new(
                ec2.clone(),
                clock.clone(),
                metrics.clone(),
                cluster,
                options.may_reserve,
                options.must_meet_min_values,
            ),
            describe: Describe::new(ec2.clone(), options.may_reserve, metrics.clone()),
            terminate: Terminate::new(ec2.clone(), metrics.clone()),
            poll: StatusPoll::new(ec2.clone(), clock.clone(), metrics.clone()),
            memory: Memory::default(),
            read: Mutex::default(),
            cluster: cluster.to_owned(),
            looks: (send, tokio::sync::Mutex::new(receive)),
            queue,
            reads,
            api,
            ec2,
            clock,
            metrics,
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn facts(&self, claim: &NodeClaim) -> Result<Facts, CloudError> {
        let reference =
            claim.spec.node_class_ref.as_ref().ok_or_else(|| {
                CloudError::Other(format!("NodeClaim {} has no spec.nodeClassRef", claim.metadata.name))
            })?;
        let class = self.reads.node_class(&reference.name).await?;
        let class = class.ok_or_else(|| {
            self.reads.tell_missing(claim);
            launch::no_such_class(&reference.name)
        })?;
        Ok(Facts {
            cluster: self.reads.cluster().await?,
            group: self.reads.placement_group(&class).await?,
            types: self
                .reads
                .instance_types(&class)
                .await
                .map_err(|error| CloudError::Create {
                    reason: "InstanceTypeResolutionFailed".to_owned(),
                    message: format!("Error resolving instance types: {error}"),
                })?,
            class,
        })
    }

    /// The machine that an earlier request of this launch gave.
    async fn earlier(&self, token: &LaunchToken) -> Result<Option<Machine>, CloudError> {
        let token = token.to_string();
        let wanted = [
            (tags::CLUSTER_NAME, Some(self.cluster.as_str())),
            (tags::LAUNCH, Some(token.as_str())),
        ];
        let found = self.describe.tagged(&wanted, true).await;
        let found = found.map_err(|failure| refusal::error(&failure, "looking for an earlier launch"))?;
        let is_there = |machine: &&Machine| machine.state == State::There;
        Ok(found.iter().find(is_there).or(found.first()).cloned())
    }

    /// What a claim learns from its machine.
    fn learnt(claim: &NodeClaim, machine: &Machine, facts: &Facts, partition: Option<&str>) -> Launched {
        let entry = facts
            .types
            .iter()
            .find(|entry| *entry.name.as_str() == *machine.instance_type);
        let entry = entry.map(|entry| Type::of(entry));
        if entry.is_none() {
            tracing::warn!("NodeClaim.name" = %claim.metadata.name, "instance-type" = machine.instance_type, "launched a type that the catalogue does not have");
        }
        let origin = Origin {
            entry: entry.as_ref(),
            class: Some(&facts.class),
            placement_group: facts.group.as_ref(),
            partition,
            ca_bundle: facts.cluster.ca_bundle.as_deref(),
        };
        launched(machine, &origin).overlaid_for(claim)
    }

    /// Reads what EC2 said about a launch, and tells whom it concerns.
    fn heed(&self, outcome: &Outcome, facts: &Facts) {
        let status = facts.class.status.as_ref();
        let zone_id = |zone: &str| {
            let subnets = status.into_iter().flat_map(|status| &status.subnets);
            let here = subnets.into_iter().find(|subnet| subnet.zone == zone);
            here.and_then(|subnet| subnet.zone_id.clone()).unwrap_or_default()
        };
        for error in &outcome.errors {
            if let Some(metrics) = &self.metrics {
                let labels = [
                    &error.zone,
                    &zone_id(&error.zone),
                    outcome.capacity_type,
                    error.reason(),
                ];
                metrics.cloudprovider_instance_launch_failures_total.inc(labels);
            }
        }
        for shortage in refusal::shortages(&outcome.errors, &outcome.asked()) {
            tracing::debug!(?shortage, "removing offering from offerings");
            self.reads.mark_unavailable(&shortage);
        }
        for id in &outcome.full_reservations {
            self.reads.note_reservation(id, ReservationNote::Unavailable);
        }
    }

    async fn launch(&self, claim: &NodeClaim, token: &LaunchToken, facts: &Facts) -> Result<Launched, CloudError> {
        let subnets = self
            .reads
            .subnets(&facts.class)
            .await
            .map_err(|error| CloudError::Create {
                reason: "SubnetResolutionFailed".to_owned(),
                message: format!("Error getting subnets: {error}"),
            })?;
        let given = Given {
            claim,
            class: &facts.class,
            cluster: &facts.cluster,
            placement_group: facts.group.as_ref(),
            types: &facts.types,
            subnets: &subnets,
        };
        let outcome = match self.launcher.launch(&given, token, || self.memory.ask(token)).await? {
            Answer::Given(outcome) => outcome,
            Answer::Failed(failure) => return Err(self.failed(token, &failure)),
        };
        self.heed(&outcome, facts);
        let Some((started, details)) = &outcome.started else {
            self.memory.came_to_nothing(token);
            return Err(refusal::combined(&outcome.errors, &outcome.asked()));
        };
        let machine = Machine {
            id: started.id.clone(),
            instance_type: started.instance_type.clone(),
            zone: started.zone.clone(),
            image: started.image.clone(),
            subnet: started.subnet.clone(),
            state: State::There,
            launched_at: Some(self.now()),
            capacity_type: outcome.capacity_type,
            reservation: details.reservation.clone(),
            tenancy: details.tenancy.to_owned(),
            partition: None,
            placement_group: facts.group.as_ref().map(|group| group.id.clone()),
            security_groups: facts
                .class
                .status
                .iter()
                .flat_map(|status| status.security_groups.iter().map(|group| group.id.clone()))
                .collect(),
            efa: details.efa,
            tags: details.tags.clone(),
        };
        self.memory.launched(token, &machine, self.now());
        if let Some(reservation) = &machine.reservation {
            self.reads.note_reservation(&reservation.id, ReservationNote::Launched);
        }
        Ok(Self::learnt(claim, &machine, facts, given.partition()))
    }

    /// A request that EC2 refused, or that was not answered. Whether it launched is looked up before it is repeated.
    fn failed(&self, token: &LaunchToken, failure: &Failure) -> CloudError {
        if failure.code != refusal::IDEMPOTENT_PARAMETER_MISMATCH {
            return refusal::launch_error(failure, "creating fleet request", "Error creating fleet request");
        }
        let message =
            format!("an earlier request for launch {token} had other contents, and no machine of it can be seen");
        if self.memory.give_up_waiting(token, self.now()) {
            // Its machine, should one appear yet, has no claim then and is given back.
            return CloudError::InsufficientCapacity {
                message: format!("{message} after a minute"),
                offerings: Vec::new(),
            };
        }
        CloudError::Other(format!("{message} yet"))
    }

    /// The machines of a claim: the recorded one, or those whose launch nobody recorded.
    async fn machines_of(&self, claim: &NodeClaim) -> Result<Vec<Machine>, CloudError> {
        let failed = |failure: Failure| refusal::error(&failure, "describing ec2 instances");
        let uid = claim.metadata.uid.to_string();
        let uid = uid.as_str();
        let Some(id) = &claim.status.provider_id else {
            if uid.is_empty() {
                return Ok(Vec::new());
            }
            let wanted = [
                (tags::CLUSTER_NAME, Some(self.cluster.as_str())),
                (tags::NODE_CLAIM_UID, Some(uid)),
            ];
            let mut found = self.describe.tagged(&wanted, false).await.map_err(failed)?;
            for machine in self.memory.recent_of(uid, self.now()) {
                if !found.iter().any(|it| it.id == machine.id) {
                    found.push(machine);
                }
            }
            return Ok(found);
        };
        let id = instance_id(id)?;
        let known = self.known_there(id);
        let found = match known {
            Some(machine) => Some(machine),
            None => self.describe.one(id).await.map_err(failed)?,
        };
        let Some(machine) = found.or_else(|| self.memory.recent(id, self.now())) else {
            return Ok(Vec::new());
        };
        if !machine.is_of(&self.cluster) || !machine.is_for(&claim.metadata.name, uid) {
            return Err(CloudError::Other(format!(
                "instance {id} is not the machine of NodeClaim {}: its tags {} and {} name another cluster or claim; it stays",
                claim.metadata.name,
                tags::CLUSTER_NAME,
                tags::NODE_CLAIM_UID
            )));
        }
        Ok(vec![machine])
    }

    /// Begins to end a machine. False when EC2 no longer knows it.
    async fn end(&self, machine: &Machine) -> Result<bool, CloudError> {
        if let Some(zone) = self.reads.shifted_zone(&machine.zone) {
            return Err(CloudError::Other(format!(
                "instance {} is in zonally shifted availability zone {} ({zone}), skipping termination",
                machine.id, machine.zone
            )));
        }
        if machine.state == State::ShuttingDown {
            return Ok(true);
        }
        let ended = self.terminate.one(&machine.id).await;
        self.memory.ended(&machine.id);
        match ended {
            Ok(()) => Ok(true),
            Err(failure) if failure.is_not_found() => Ok(false),
            Err(failure) => {
                if let Some(metrics) = &self.metrics {
                    metrics
                        .cloudprovider_instance_termination_failures_total
                        .inc([&machine.zone, &self.reads.zone_id(&machine.zone).unwrap_or_default()]);
                }
                Err(refusal::error(&failure, "terminating instance"))
            }
        }
    }

    fn remember(&self, machine: &Machine) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(machine.id.clone(), machine.clone());
    }

    fn remembered(&self, id: &str) -> Option<Machine> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.get(id).cloned()
    }

    /// A machine of a zone that is shifted away from, as it was last read: what EC2 says of it now is not to be trusted.
    fn known_there(&self, id: &str) -> Option<Machine> {
        self.remembered(id)
            .filter(|machine| self.reads.shifted_zone(&machine.zone).is_some())
    }

    async fn fresh(&self, id: &ProviderId) -> Result<Machine, CloudError> {
        let id = instance_id(id)?;
        if let Some(machine) = self.known_there(id) {
            return Ok(machine);
        }
        let found = self.describe.one(id).await;
        let found = found.map_err(|failure| refusal::error(&failure, "failed to describe ec2 instances"))?;
        // Reads may lag behind a launch.
        let found = found.or_else(|| self.memory.recent(id, self.now()));
        let ours = found.filter(|machine| machine.is_of(&self.cluster));
        let Some(machine) = ours else {
            let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            read.remove(id);
            return Err(CloudError::NotFound(format!("instance {id} not found")));
        };
        self.remember(&machine);
        Ok(machine)
    }

    async fn look_at_health(&self) {
        loop {
            match self.poll.look().await {
                Ok(notices) if notices.is_empty() => {}
                // Nobody asks for notices: the next look finds the same.
                Ok(notices) => drop(self.looks.0.try_send(notices)),
                Err(failure) if failure.is_unauthorized() => {
                    tracing::error!(
                        error = %failure,
                        "not allowed to read the status of instances (ec2:DescribeInstanceStatus): impaired machines are not replaced"
                    );
                    return;
                }
                Err(failure) => tracing::warn!(error = %failure, "failed reading the status of instances"),
            }
            tokio::time::sleep(STATUS_LOOK).await;
        }
    }

    async fn sweep_templates(&self) {
        loop {
            tokio::time::sleep(TEMPLATE_SWEEP).await;
            if let Err(failure) = self.launcher.templates().sweep().await {
                tracing::warn!(error = %failure, "failed to delete launch template");
            }
        }
    }
}

/// `i-0abc` of `aws:///us-west-2a/i-0abc`.
fn instance_id(id: &ProviderId) -> Result<&str, CloudError> {
    let parts = id
        .as_str()
        .rsplit_once(":///")
        .and_then(|(_, rest)| rest.rsplit_once('/'));
    let last = parts.map(|(_, last)| last).filter(|last| !last.is_empty());
    last.ok_or_else(|| CloudError::Other(format!("provider ID {id} is not of the form aws:///ZONE/INSTANCE")))
}

#[async_trait]
impl Describes for Ec2Machines {
    async fn describe(&self, id: &ProviderId, freshness: Freshness) -> Result<MachineFacts, CloudError> {
        if freshness == Freshness::Remembered
            && let Some(machine) = self.remembered(instance_id(id)?)
        {
            return Ok(machine.facts());
        }
        Ok(self.fresh(id).await?.facts())
    }
}

#[async_trait]
impl Machines for Ec2Machines {
    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        if self.memory.may_run(token)
            && let Some(machine) = self.earlier(token).await?
        {
            if machine.state != State::There {
                return Err(CloudError::NotFound(format!(
                    "instance {} of launch {token} is gone",
                    machine.id
                )));
            }
            let facts = self.facts(claim).await?;
            self.memory.launched(token, &machine, self.now());
            return Ok(Self::learnt(claim, &machine, &facts, partition(claim).as_deref()));
        }
        let facts = self.facts(claim).await?;
        if facts.class.metadata.deletion_timestamp.is_some() {
            self.reads.tell_missing(claim);
        }
        launch::check_ready(&facts.class)?;
        self.launch(claim, token, &facts).await
    }

    async fn resume(&self, claims: &[Arc<NodeClaim>]) -> Result<(), CloudError> {
        self.memory
            .inherit(claims.iter().map(|claim| claim.metadata.uid.clone()));
        let hydrated = self.launcher.templates().hydrate().await;
        if let Err(failure) = hydrated {
            // They are found again by name when they are needed, and cost nothing meanwhile.
            tracing::warn!(error = %failure, "unable to hydrate the AWS launch template cache");
        }
        Ok(())
    }

    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        let mut is_gone = true;
        for machine in self.machines_of(claim).await? {
            is_gone &= !self.end(&machine).await?;
        }
        if !is_gone {
            return Ok(());
        }
        let reservation = claim.metadata.labels.get(labels::aws::CAPACITY_RESERVATION_ID);
        if let Some(reservation) = reservation {
            self.reads.note_reservation(reservation, ReservationNote::Terminated);
        }
        self.memory.forget(&claim.metadata.uid);
        Err(CloudError::NotFound("instance terminated".to_owned()))
    }

    async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError> {
        let machine = self.fresh(id).await?;
        Lookup::new(&*self.reads).instance(&machine).await
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let wanted = [
            (labels::NODEPOOL, None),
            (labels::aws::NODE_CLASS, None),
            (tags::CLUSTER_NAME, Some(self.cluster.as_str())),
        ];
        let found = self.describe.tagged(&wanted, false).await;
        let found = found.map_err(|failure| refusal::error(&failure, "describing ec2 instances"))?;
        {
            let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            read.retain(|_, machine| self.reads.shifted_zone(&machine.zone).is_some());
            read.extend(found.iter().map(|machine| (machine.id.clone(), machine.clone())));
        }
        let mut lookup = Lookup::new(&*self.reads);
        let mut instances = Vec::with_capacity(found.len());
        for machine in &found {
            instances.push(lookup.instance(machine).await?);
        }
        Ok(instances)
    }

    fn gives_notice(&self) -> bool {
        true
    }

    async fn notices(&self) -> Result<Vec<Notice>, CloudError> {
        let mut looks = self.looks.1.lock().await;
        let from_queue = async {
            let Some(queue) = &self.queue else {
                tokio::time::sleep(QUIET).await;
                return Ok(Vec::new());
            };
            let received = queue.notices().await;
            received.map_err(|failure| refusal::error(&failure, "getting messages from queue"))
        };
        tokio::select! {
            // A poll that is dropped may have hidden messages, which come again after their time.
            biased;
            looked = looks.recv() => Ok(looked.unwrap_or_default()),
            received = from_queue => received,
        }
    }

    async fn acknowledge(&self, notice: &Notice) -> Result<(), CloudError> {
        let Some(queue) = self
            .queue
            .as_ref()
            .filter(|_| !notice.receipt.starts_with(STATUS_RECEIPT))
        else {
            return Ok(());
        };
        let deleted = queue.delete(&notice.receipt).await;
        deleted.map_err(|failure| refusal::error(&failure, "deleting sqs message"))
    }

    async fn rehearse(&self, rehearsal: &Rehearsal<'_>) -> Result<(), RehearsalFailure> {
        let cluster = self.reads.cluster().await;
        let cluster = cluster.map_err(|error| RehearsalFailure::Unprepared(error.to_string()))?;
        self.launcher.rehearse(rehearsal, &cluster).await
    }

    async fn delete_launch_templates(&self, node_class: &str) -> Result<(), CloudError> {
        let deleted = self.launcher.templates().delete_of_class(node_class).await;
        deleted.map_err(|failure| refusal::error(&failure, "deleting launch templates"))
    }

    async fn run(&self) {
        let tagging = async {
            match &self.api {
                Some(api) => tagging::run(api, &self.ec2, &self.describe, &*self.reads, &self.cluster).await,
                None => std::future::pending().await,
            }
        };
        let all = futures_util::future::join3(self.look_at_health(), self.sweep_templates(), tagging);
        let ((), (), ()) = Box::pin(all).await;
    }
}

/// The partition of a placement group that a claim asks for.
fn partition(claim: &NodeClaim) -> Option<String> {
    let wanted = claim.spec.requirements.iter();
    let of = wanted.filter(|it| *it.key == *labels::aws::PLACEMENT_GROUP_PARTITION && *it.operator == *"In");
    of.flat_map(|it| it.values.iter()).map(ToString::to_string).min()
}
