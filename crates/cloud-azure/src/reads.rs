//! The read side as a whole: what the launch side and the provider ask it.

use std::sync::Arc;

use api::azure::AKSNodeClass;
use cloud::CloudError;
use keeper::Objects;
use model::snapshot::CatalogType;
use runtime::{Api, Clock, Metrics, Recorder, Settings, random::Random};

use crate::{
    arm::{Arm, calls::Pool},
    cluster::Cluster,
    instance::AksList,
    mode::{self, Mode, check_pool},
    node_class::images::Images,
    offers::Offers,
};

/// What the provider is made of.
pub struct Parts {
    /// The API server.
    pub api: Api,
    /// Azure.
    pub arm: Arm,
    /// The time.
    pub clock: Clock,
    /// How to run.
    pub settings: Arc<Settings>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Who takes events.
    pub recorder: Recorder,
    /// Which of equal offerings is taken.
    pub random: Random,
}

/// The read side.
pub struct ReadSide {
    pub(crate) arm: Arm,
    pub(crate) clock: Clock,
    pub(crate) settings: Arc<Settings>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) recorder: Recorder,
    pub(crate) random: Random,
    pub(crate) objects: Objects<AKSNodeClass>,
    pub(crate) cluster: Cluster,
    pub(crate) images: Images,
    pub(crate) offers: Offers,
    pub(crate) mode: Mode,
    /// The agent pool whose machines we look after.
    pub(crate) pool: Option<Pool>,
    pub(crate) aks_list: AksList,
}

impl ReadSide {
    /// Connects: a token is given, the network is known, sizes are read. What fails here will not mend itself.
    pub async fn connect(parts: Parts) -> Result<Self, CloudError> {
        let Parts {
            api,
            arm,
            clock,
            settings,
            metrics,
            recorder,
            random,
        } = parts;
        settings
            .azure
            .require()
            .map_err(|error| CloudError::Other(error.to_string()))?;
        let mode = Mode::of(&settings.azure)?;
        let pool = mode::pool(mode, &settings.azure);
        let checked = arm.check().await;
        checked.map_err(|failure| CloudError::Other(format!("getting a token for Azure, {failure}")))?;
        if let Some(pool) = &pool {
            check_pool(&arm, pool).await?;
        }
        let azure = Arc::new(settings.azure.clone());
        let cluster = Cluster::connect(&api, &arm, &azure, &clock).await?;
        let offers = Offers::new(arm.clone(), clock.clone(), Arc::clone(&settings), Arc::clone(&metrics));
        let offers = offers.map_err(|damaged| CloudError::Other(damaged.to_string()))?;
        let discovered = offers.discover().await;
        discovered.map_err(|failure| CloudError::Other(format!("listing the sizes of the region, {failure}")))?;
        Ok(Self {
            objects: Objects::new(api),
            images: Images::new(arm.clone(), &azure, &clock),
            cluster,
            offers,
            mode,
            pool,
            aks_list: AksList::default(),
            arm,
            clock,
            settings,
            metrics,
            recorder,
            random,
        })
    }

    /// What can be launched.
    pub fn offers(&self) -> &Offers {
        &self.offers
    }

    /// A node class as it is now, with its status; none when there is none.
    pub(crate) async fn node_class(&self, name: &str) -> Result<Option<Arc<AKSNodeClass>>, CloudError> {
        let class = self.objects.class(name).await;
        class.map_err(|error| CloudError::Other(format!("resolving node class {name}, {error}")))
    }

    /// The sizes of a class, those that cannot be had now too.
    pub(crate) fn instance_types(&self, class: &AKSNodeClass) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        self.offers.types(class)
    }
}
