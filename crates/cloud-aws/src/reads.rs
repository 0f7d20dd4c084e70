//! The read side as a whole: what the launch side and the provider ask it.

use std::sync::Arc;

use api::aws::EC2NodeClass;
use async_trait::async_trait;
use cloud::CloudError;
use keeper::Objects;
use model::{
    object::{NodeClaim, Object},
    snapshot::CatalogType,
};
use runtime::{Api, Clock, Event, EventKind, Metrics, Recorder, Settings, random::Random};

use crate::{
    Clients, Failure,
    border::{ClusterFacts, PlacementGroupFacts, Reads, ReservationNote, Shortage, SubnetFacts, TypeFacts},
    cluster::Cluster,
    node_class::{capacity::Capacity, images::Images, instance_profiles::InstanceProfiles, networks::Networks},
    offers::Offers,
    zonal_shift::ZonalShift,
};

/// What the read side is made of.
pub struct Parts {
    /// The API server.
    pub api: Api,
    /// AWS.
    pub clients: Clients,
    /// The time.
    pub clock: Clock,
    /// How to run.
    pub settings: Arc<Settings>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Who takes events.
    pub recorder: Recorder,
    /// For names.
    pub random: Random,
}

/// The read side.
pub struct ReadSide {
    pub(crate) clock: Clock,
    pub(crate) settings: Arc<Settings>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) recorder: Recorder,
    pub(crate) objects: Objects<EC2NodeClass>,
    pub(crate) cluster: Cluster,
    pub(crate) networks: Networks,
    pub(crate) images: Images,
    pub(crate) capacity: Capacity,
    pub(crate) profiles: InstanceProfiles,
    pub(crate) offers: Offers,
    /// Where `--enable-zonal-shift` asks for it.
    pub(crate) zonal_shift: Option<ZonalShift>,
}

impl ReadSide {
    /// Connects: the cluster is known, EC2 answers, types and their zones are read. What fails here will not mend itself.
    pub async fn connect(parts: Parts) -> Result<Self, CloudError> {
        let Parts {
            api,
            clients,
            clock,
            settings,
            metrics,
            recorder,
            random,
        } = parts;
        let aws = &settings.aws;
        if aws.cluster_name.is_empty() {
            return Err(CloudError::Other(
                "missing field, cluster-name: set --cluster-name or CLUSTER_NAME".to_owned(),
            ));
        }
        check_connectivity(&clients).await?;
        let cluster = Cluster::connect(&api, &clients, aws).await?;
        let offers = Offers::new(
            clients.clone(),
            clock.clone(),
            Arc::clone(&settings),
            Arc::clone(&metrics),
        );
        let offers = offers.map_err(|damaged| CloudError::Other(damaged.to_string()))?;
        let discovered = offers.discover().await;
        discovered.map_err(|failure| CloudError::Other(format!("describing instance types, {failure}")))?;
        let zonal_shift = zonal_shift(&cluster, &clients, &clock, aws.enable_zonal_shift).await?;
        if let Some(shift) = &zonal_shift {
            offers.shift(shift.zones());
        }
        Ok(Self {
            objects: Objects::new(api),
            cluster,
            networks: Networks::new(clients.ec2.clone(), &clock, aws.subnet_refresh_interval),
            images: Images::new(&clients, &clock, aws.ami_refresh_interval),
            capacity: Capacity::new(clients.ec2.clone(), &clock),
            profiles: InstanceProfiles::new(&clients, &clock, &aws.cluster_name, random),
            offers,
            zonal_shift,
            clock,
            settings,
            metrics,
            recorder,
        })
    }

    /// What can be launched.
    pub fn offers(&self) -> &Offers {
        &self.offers
    }

    /// Tells those who look at a claim or a pool that its class is not there.
    pub(crate) fn tell_class_missing<T: Object>(&self, about: &T) {
        let message = "Failed resolving NodeClass".to_owned();
        let event = Event::new(about, EventKind::Warning, "NodeClassResolutionError", message);
        self.recorder.publish(event);
    }
}

async fn zonal_shift(
    cluster: &Cluster,
    clients: &Clients,
    clock: &Clock,
    is_wanted: bool,
) -> Result<Option<ZonalShift>, CloudError> {
    if !is_wanted {
        return Ok(None);
    }
    let arn = cluster.arn().await;
    let arn = arn.map_err(|failure| CloudError::Other(format!("describing the cluster for zonal shift, {failure}")))?;
    ZonalShift::connect(clients, clock, &arn).await.map(Some)
}

/// A dry run of a question that everybody may ask.
async fn check_connectivity(clients: &Clients) -> Result<(), CloudError> {
    match clients.ec2.describe_instance_types().dry_run(true).send().await {
        Ok(_) => Ok(()),
        Err(error) => match Failure::of(&error) {
            failure if failure.is_dry_run_success() => Ok(()),
            failure => Err(CloudError::Other(format!(
                "ec2 api connectivity check failed, {failure}"
            ))),
        },
    }
}

#[async_trait]
impl Reads for ReadSide {
    async fn node_class(&self, name: &str) -> Result<Option<Arc<EC2NodeClass>>, CloudError> {
        let class = self.objects.class(name).await;
        class.map_err(|error| CloudError::Other(format!("resolving node class {name}, {error}")))
    }

    async fn instance_types(&self, class: &EC2NodeClass) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        let group = self.capacity.last_placement_group(class).await;
        self.offers.types(class, group.as_ref())
    }

    fn type_facts(&self, name: &str) -> Option<Arc<TypeFacts>> {
        self.offers.facts(name)
    }

    async fn subnets(&self, class: &EC2NodeClass) -> Result<Vec<SubnetFacts>, CloudError> {
        let found = self.networks.subnets(&class.spec.subnet_selector_terms).await;
        let found = found.map_err(|failure| CloudError::Create {
            reason: "SubnetResolutionFailed".to_owned(),
            message: format!("getting subnets, {failure}"),
        })?;
        let status = class.status.as_ref();
        let is_resolved =
            |it: &SubnetFacts| status.is_some_and(|all| all.subnets.iter().any(|known| known.id == it.id));
        Ok(found.into_iter().filter(is_resolved).collect())
    }

    async fn placement_group(&self, class: &EC2NodeClass) -> Result<Option<PlacementGroupFacts>, CloudError> {
        Ok(self.capacity.last_placement_group(class).await)
    }

    async fn cluster(&self) -> Result<Arc<ClusterFacts>, CloudError> {
        Ok(self.cluster.facts())
    }

    fn zone_id(&self, zone: &str) -> Option<String> {
        let classes = self.objects.classes();
        let subnets = classes.iter().filter_map(|class| class.status.as_ref());
        let mut subnets = subnets.flat_map(|status| &status.subnets);
        subnets.find_map(|subnet| subnet.zone_id.clone().filter(|_| subnet.zone == zone))
    }

    fn shifted_zone(&self, zone: &str) -> Option<String> {
        let shifted = self.zonal_shift.as_ref()?.zones();
        if shifted.is_empty() {
            return None;
        }
        self.zone_id(zone).filter(|id| shifted.contains(id))
    }

    fn tell_missing(&self, claim: &NodeClaim) {
        self.tell_class_missing(claim);
    }

    fn mark_unavailable(&self, shortage: &Shortage) {
        self.offers.mark_unavailable(shortage);
    }

    fn note_reservation(&self, id: &str, note: ReservationNote) {
        self.offers.note_reservation(id, note);
    }
}
