//! A launch from the wish to the answer: choose types, make templates, ask EC2 once, and read what it says.

use std::{collections::BTreeMap, sync::Arc};

use api::{aws::EC2NodeClass, labels};
use cloud::{CloudError, LaunchToken};
use jiff::Timestamp;
use model::{
    instance_type::InstanceType,
    object::NodeClaim,
    snapshot::{CatalogType, TypeReader},
    vocabulary::Vocabulary,
};
use runtime::{Clock, Metrics};

use super::{
    choice::{self, Choice, Reservation, ReservationKeys, choose, reservation},
    fleet::{self, Fleet, Started},
    readiness::missing,
    refusal::{self, Asked, FleetError, LAUNCH_TEMPLATE_NAME_NOT_FOUND},
    subnets::{Addresses, Chosen, least_pods},
    tags,
    template::{ResolveError, Resolved, Scene, efa_interfaces, resolve},
    templates::Templates,
    user_data::UserDataError,
};
use crate::{
    Failure,
    border::{ClusterFacts, PlacementGroupFacts, SubnetFacts},
};

/// From how many bytes of user data on a warning is given, and how many EC2 takes.
const USER_DATA_WARNING: usize = USER_DATA_LIMIT / 10 * 9;
const USER_DATA_LIMIT: usize = 16384;
/// Fewer types than this, when spot was allowed and none is to be had, are told.
const FLEXIBLE: usize = 5;

/// What a launch needs to know.
pub(crate) struct Given<'a> {
    pub(crate) claim: &'a NodeClaim,
    pub(crate) class: &'a EC2NodeClass,
    pub(crate) cluster: &'a ClusterFacts,
    pub(crate) placement_group: Option<&'a PlacementGroupFacts>,
    pub(crate) types: &'a [Arc<CatalogType>],
    pub(crate) subnets: &'a [SubnetFacts],
}

impl Given<'_> {
    /// The partition asked for: the lowest by its text, since EC2 takes one only.
    pub(crate) fn partition(&self) -> Option<&str> {
        let wanted = self.claim.spec.requirements.iter();
        let of = wanted.filter(|it| *it.key == *labels::aws::PLACEMENT_GROUP_PARTITION && *it.operator == *"In");
        of.flat_map(|it| it.values.iter()).map(|value| &**value).min()
    }

    fn pool(&self) -> &str {
        self.claim.metadata.labels.get(labels::NODEPOOL).map_or("", |pool| pool)
    }
}

/// What came of asking EC2.
pub(crate) enum Answer {
    /// EC2 answered.
    Given(Box<Outcome>),
    /// EC2 refused the request, or no answer came.
    Failed(Failure),
}

/// What a fleet gave.
pub(crate) struct Outcome {
    /// The machine, if one was launched.
    pub(crate) started: Option<(Started, Details)>,
    pub(crate) errors: Vec<FleetError>,
    pub(crate) capacity_type: &'static str,
    /// The types it could choose from.
    pub(crate) types: Vec<String>,
    pub(crate) placement_group: Option<(String, Option<String>)>,
    /// Reservations that turned out to be full.
    pub(crate) full_reservations: Vec<String>,
}

/// What is known about a machine that was launched, beside what EC2 says.
pub(crate) struct Details {
    pub(crate) tenancy: &'static str,
    pub(crate) reservation: Option<Reservation>,
    pub(crate) efa: usize,
    pub(crate) tags: tags::Tags,
}

impl Outcome {
    pub(crate) fn asked(&self) -> Asked<'_> {
        Asked {
            capacity_type: self.capacity_type,
            types: &self.types,
            placement_group: self.placement_group.clone(),
        }
    }
}

/// Launches machines.
pub(crate) struct Launcher {
    pub(super) ec2: aws_sdk_ec2::Client,
    clock: Clock,
    metrics: Option<Arc<Metrics>>,
    pub(super) templates: Templates,
    addresses: Addresses,
    /// The gate `ReservedCapacity`.
    pub(super) may_reserve: bool,
    /// The policy Strict.
    must_meet_min_values: bool,
}

/// What is asked of EC2, and what to reckon with when it answers.
struct Prepared {
    fleet: Fleet,
    resolved: Vec<Resolved>,
    choice: Choice,
    subnets: Chosen,
    vocabulary: Vocabulary,
}

impl Launcher {
    pub(crate) fn new(
        ec2: aws_sdk_ec2::Client,
        clock: Clock,
        metrics: Option<Arc<Metrics>>,
        cluster: &str,
        may_reserve: bool,
        must_meet_min_values: bool,
    ) -> Self {
        Self {
            templates: Templates::new(ec2.clone(), clock.clone(), cluster),
            ec2,
            clock,
            metrics,
            addresses: Addresses::default(),
            may_reserve,
            must_meet_min_values,
        }
    }

    /// The launch templates.
    pub(crate) fn templates(&self) -> &Templates {
        &self.templates
    }

    /// Asks EC2 for a machine. `client_token` makes a repetition the same request.
    pub(crate) async fn launch(
        &self,
        given: &Given<'_>,
        token: &LaunchToken,
        client_token: impl Fn() -> String,
    ) -> Result<Answer, CloudError> {
        let prepared = self.prepare(given, token)?;
        let mut answer = self.ask(given, &prepared, client_token()).await?;
        if matches!(&answer, Answer::Failed(failure) if failure.code == LAUNCH_TEMPLATE_NAME_NOT_FOUND) {
            // What we believed of the templates is wrong: once more, with those that are really there.
            self.templates
                .forget(prepared.fleet.configs.iter().map(|it| it.template.as_str()))
                .await;
            answer = self.ask(given, &prepared, client_token()).await?;
        }
        let used = match &answer {
            Answer::Given(outcome) => outcome.started.as_ref().map(|(it, _)| it.subnet.as_str()),
            Answer::Failed(_) => None,
        };
        self.addresses.settle(&prepared.subnets, used);
        if let Answer::Given(outcome) = &answer {
            let exhausted = outcome.errors.iter().filter_map(FleetError::exhausted_subnet);
            exhausted.for_each(|subnet| self.addresses.exhausted(subnet, self.clock.now()));
        }
        Ok(answer)
    }

    fn prepare(&self, given: &Given<'_>, token: &LaunchToken) -> Result<Prepared, CloudError> {
        let mut vocabulary = vocabulary();
        let wanted = named(given);
        let mut reader = TypeReader::default();
        let types: Vec<InstanceType> = wanted.iter().map(|entry| reader.read(entry, &mut vocabulary)).collect();
        let choice = choose(given.claim, types, self.must_meet_min_values, &mut vocabulary)?;
        tell_inflexible(given, &choice, &mut vocabulary);
        let now: Timestamp = self.clock.now();
        let needed = |zone: &str| least_pods(&choice.types, zone, choice.capacity_type, &vocabulary);
        let subnets = self.addresses.choose(given.subnets, needed, now);
        let prepared = self.resolve(given, token, &choice, &subnets.subnets, &wanted, &mut vocabulary);
        let (fleet, resolved) = prepared.inspect_err(|_| self.addresses.settle(&subnets, None))?;
        Ok(Prepared {
            fleet,
            resolved,
            choice,
            subnets,
            vocabulary,
        })
    }

    fn resolve(
        &self,
        given: &Given<'_>,
        token: &LaunchToken,
        choice: &Choice,
        subnets: &BTreeMap<String, String>,
        catalogue: &[Arc<CatalogType>],
        vocabulary: &mut Vocabulary,
    ) -> Result<(Fleet, Vec<Resolved>), CloudError> {
        if subnets.is_empty() {
            let name = given.class.metadata.name.as_deref().unwrap_or_default();
            return Err(CloudError::Create {
                reason: "SubnetResolutionFailed".to_owned(),
                message: format!("Error getting subnets: EC2NodeClass {name} has none; see its condition SubnetsReady"),
            });
        }
        let tags = tags::of_class(given.class, given.pool(), &given.cluster.name);
        let group = given.placement_group;
        let partition = given.partition().and_then(|it| it.parse().ok());
        let scene = Scene {
            class: given.class,
            claim: given.claim,
            cluster: given.cluster,
            tags: &tags,
            capacity_type: choice.capacity_type,
            tenancy: choice.tenancy,
            placement_group: group.map(|group| (group.id.clone(), partition.filter(|_| group.strategy == "partition"))),
            may_reserve: self.may_reserve,
        };
        let resolved = resolve(&scene, &choice.types, catalogue, vocabulary).map_err(unresolved)?;
        let tags = tags::of_launch(&tags, given.claim, token);
        let context = given.class.spec.context.as_deref();
        let fleet = Fleet::of(given.claim, context, choice, &resolved, subnets, tags, vocabulary);
        let fleet = fleet.ok_or_else(|| CloudError::Create {
            reason: "LaunchFailed".to_owned(),
            message: "Error getting launch template configs: no capacity offerings are currently available given the constraints".to_owned(),
        })?;
        Ok((fleet, resolved))
    }

    async fn ask(&self, given: &Given<'_>, prepared: &Prepared, client_token: String) -> Result<Answer, CloudError> {
        let is_used = |it: &&Resolved| {
            let name = it.template.name();
            prepared.fleet.configs.iter().any(|config| config.template == name)
        };
        for resolved in prepared.resolved.iter().filter(is_used) {
            self.note_size(given.class, &resolved.template.user_data);
            let ensured = self.templates.ensure(&resolved.template).await;
            ensured.map_err(|failure| {
                refusal::launch_error(
                    &failure,
                    "getting launch template configs, getting launch templates",
                    "Error getting launch template configs",
                )
            })?;
        }
        let request = prepared.fleet.input(Some(client_token));
        match request.send_with(&self.ec2).await {
            Ok(answer) => {
                let errors = fleet::errors(answer.errors());
                Ok(Answer::Given(Box::new(outcome(
                    given,
                    prepared,
                    fleet::started(answer.instances()),
                    errors,
                ))))
            }
            Err(error) => Ok(Answer::Failed(Failure::of(&error))),
        }
    }

    /// EC2 refuses what is too large, and says so only then.
    pub(super) fn note_size(&self, class: &EC2NodeClass, user_data: &str) {
        let name = class.metadata.name.as_deref().unwrap_or_default();
        let bytes = user_data.trim_end_matches('=').len() * 3 / 4;
        if let Some(metrics) = &self.metrics {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            metrics.ec2nodeclasses_userdata_bytes.set([name], f64::from(bytes));
        }
        if bytes >= USER_DATA_WARNING {
            tracing::info!(
                "EC2NodeClass.name" = name,
                "userdata-bytes" = bytes,
                limit = USER_DATA_LIMIT,
                "rendered user data is approaching the EC2 user data size limit"
            );
        }
    }
}

fn vocabulary() -> Vocabulary {
    let mut vocabulary = Vocabulary::new();
    for key in labels::aws::WELL_KNOWN {
        vocabulary.add_well_known(key);
    }
    vocabulary
}

/// The types that the claim names; all of them when it names none.
fn named(given: &Given<'_>) -> Vec<Arc<CatalogType>> {
    let wanted = given.claim.spec.requirements.iter();
    let mut wanted = wanted.filter(|it| *it.key == *labels::INSTANCE_TYPE && *it.operator == *"In");
    let Some(named) = wanted.next() else {
        return given.types.to_vec();
    };
    let names: std::collections::BTreeSet<&str> = named.values.iter().map(|name| &**name).collect();
    let is_named = |entry: &&Arc<CatalogType>| names.contains(entry.name.as_str());
    given.types.iter().filter(is_named).cloned().collect()
}

fn tell_inflexible(given: &Given<'_>, choice: &Choice, vocabulary: &mut Vocabulary) {
    let wanted = choice::requirements(given.claim, vocabulary);
    let is_spot_allowed = wanted
        .get(model::vocabulary::KeyId::CAPACITY_TYPE)
        .is_none_or(|it| it.has(labels::CAPACITY_TYPE_SPOT, vocabulary));
    let count = choice.types.len();
    if choice.capacity_type == labels::CAPACITY_TYPE_ON_DEMAND && is_spot_allowed && count < FLEXIBLE {
        tracing::info!(
            "NodeClaim.name" = %given.claim.metadata.name, "instance-types" = count,
            "at least {FLEXIBLE} instance types are recommended when flexible to spot but requesting on-demand"
        );
    }
}

fn unresolved(error: ResolveError) -> CloudError {
    match error {
        // It comes with the next look at the cluster.
        ResolveError::UserData(UserDataError::NoClusterCidr) => CloudError::NodeClassNotReady(error.to_string()),
        ResolveError::UserData(_) => CloudError::Terminal {
            reason: "LaunchFailed".to_owned(),
            message: format!("Error getting launch template configs: {error}"),
        },
        error => CloudError::Create {
            reason: "LaunchFailed".to_owned(),
            message: format!("Error getting launch template configs: {error}"),
        },
    }
}

fn outcome(given: &Given<'_>, prepared: &Prepared, started: Option<Started>, errors: Vec<FleetError>) -> Outcome {
    let (choice, vocabulary) = (&prepared.choice, &prepared.vocabulary);
    let details = |started: Started| {
        let details = Details {
            tenancy: choice.tenancy,
            reservation: reservation_of(choice, &started.instance_type, &started.zone, vocabulary),
            efa: efa_of(given, choice, &started.instance_type),
            tags: prepared.fleet.tags.clone(),
        };
        (started, details)
    };
    let is_full = |error: &&FleetError| refusal::is_unfulfillable(&error.code) && !error.is_spread_limit();
    let full = errors
        .iter()
        .filter(is_full)
        .filter_map(|error| reservation_of(choice, &error.instance_type, &error.zone, vocabulary));
    let group = given.placement_group;
    Outcome {
        full_reservations: full.map(|it| it.id).collect(),
        started: started.map(details),
        capacity_type: choice.capacity_type,
        types: choice.types.iter().map(|entry| entry.name.to_string()).collect(),
        placement_group: group.map(|group| (group.id.clone(), given.partition().map(str::to_owned))),
        errors,
    }
}

/// The reservation a machine of a reserved launch is in: the filters left one for a type and zone.
fn reservation_of(choice: &Choice, instance_type: &str, zone: &str, vocabulary: &Vocabulary) -> Option<Reservation> {
    if choice.capacity_type != labels::CAPACITY_TYPE_RESERVED {
        return None;
    }
    let keys = ReservationKeys::known(vocabulary)?;
    let entry = choice.types.iter().find(|entry| *entry.name == *instance_type)?;
    let key = model::vocabulary::KeyId::ZONE;
    let mut here = entry.offerings.iter().filter(|it| {
        it.value(key)
            .is_some_and(|value| vocabulary.value_name(key, value) == zone)
    });
    here.find_map(|it| reservation(it, keys, vocabulary))
}

fn efa_of(given: &Given<'_>, choice: &Choice, instance_type: &str) -> usize {
    let Some(entry) = choice.types.iter().find(|entry| *entry.name == *instance_type) else {
        return 0;
    };
    let listed = given.class.spec.network_interfaces.as_deref().unwrap_or_default();
    if listed.is_empty() {
        return efa_interfaces(entry, given.claim);
    }
    usize::try_from(entry.capacity.amount(super::EFA).value()).unwrap_or(0)
}

/// The class of a claim is not there.
pub(crate) fn no_such_class(name: &str) -> CloudError {
    missing(&format!("ec2nodeclasses.karpenter.k8s.aws \"{name}\" not found"))
}
