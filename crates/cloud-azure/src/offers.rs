//! What can be launched, where and at what price.
//!
//! Azure is asked every twelve hours which sizes there are and what they cost, and every ten minutes how much of our
//! quotas is used. What ran out changes in between.

mod gpus;
mod prices;
mod quotas;
mod record;
mod shortages;
mod size_name;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use api::{
    azure::{AKSNodeClass, AKSNodeClassSpec},
    labels::{
        CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT, ZONE,
        azure::{AKS_PRIORITY, AKS_SCALE_SET_PRIORITY, PLACEMENT_SCOPE, REGIONAL_ZONE, SKU_STORAGE_ULTRA_SSD},
    },
};
use catalogue::{
    Damaged,
    azure::{Sale, Setup},
};
use cloud::CloudError;
use jiff::Timestamp;
use model::{
    requirement::{Operator, RequirementSpec},
    resources::ResourceList,
    snapshot::{CatalogOffering, CatalogType, DynamicResources},
};
use runtime::{Clock, Metrics, Settings};

use crate::{
    arm::{Arm, Failure},
    class::{Class, cluster_label},
};

pub use prices::PriceSource;
use prices::Prices;
use quotas::Quotas;
pub use record::SizeRecord;
pub use shortages::{Shortage, Shortages};

/// What can be launched.
pub struct Offers {
    arm: Arm,
    clock: Clock,
    settings: Arc<Settings>,
    metrics: Arc<Metrics>,
    region: String,
    cluster_label: String,
    state: Mutex<State>,
}

struct State {
    records: BTreeMap<String, Arc<SizeRecord>>,
    discoveries: u64,
    prices: Prices,
    quotas: Quotas,
    shortages: Shortages,
    more: u64,
    listed: BTreeMap<String, Listed>,
}

/// What a class was told last, and what that followed from.
struct Listed {
    spec: AKSNodeClassSpec,
    is_local_dns_enabled: bool,
    version: u64,
    types: Vec<Arc<CatalogType>>,
}

/// One way to have a size.
struct Place<'a> {
    zone: &'a str,
    scope: &'a str,
    number: Option<&'a str>,
}

impl Offers {
    /// Nothing but the built-in prices yet.
    pub fn new(arm: Arm, clock: Clock, settings: Arc<Settings>, metrics: Arc<Metrics>) -> Result<Self, Damaged> {
        let region = settings.azure.location.to_lowercase();
        let state = State {
            records: BTreeMap::new(),
            discoveries: 0,
            prices: Prices::built_in(&region)?,
            quotas: Quotas::default(),
            shortages: Shortages::default(),
            more: 0,
            listed: BTreeMap::new(),
        };
        Ok(Self {
            cluster_label: cluster_label(&settings.azure.node_resource_group),
            arm,
            clock,
            settings,
            metrics,
            region,
            state: Mutex::new(state),
        })
    }

    /// Asks which sizes there are, and in which zones.
    pub async fn discover(&self) -> Result<(), Failure> {
        let mut records = BTreeMap::new();
        for sku in self.arm.skus(&self.region).await? {
            if !sku.resource_type.eq_ignore_ascii_case("virtualMachines") {
                continue;
            }
            match SizeRecord::read(&sku, &self.region) {
                Ok(record) => drop(records.insert(record.name.clone(), Arc::new(record))),
                Err(reason) => tracing::trace!(size = sku.name, reason, "a size is left out"),
            }
        }
        if records.is_empty() {
            return Err(Failure::with_code(
                "NoSizes",
                format!("Azure names no size in {} that AKS runs nodes on", self.region),
            ));
        }
        for record in records.values() {
            #[expect(clippy::cast_precision_loss, reason = "a gauge")]
            let (cores, bytes) = (record.vcpu as f64, record.memory_gib * f64::from(1 << 30));
            let name = [record.name.as_str()];
            self.metrics.cloudprovider_instance_type_cpu_cores.set(name, cores);
            self.metrics.cloudprovider_instance_type_memory_bytes.set(name, bytes);
        }
        let mut state = self.lock();
        if state.records != records {
            tracing::debug!(count = records.len(), "discovered instance types");
            state.records = records;
            state.discoveries += 1;
        }
        Ok(())
    }

    /// Asks what sizes cost. What fails leaves the old prices standing.
    pub async fn reprice(&self) -> Result<(), Failure> {
        let asked = self.arm.retail_prices(&self.region).await;
        let now = self.clock.now();
        let mut state = self.lock();
        if let Ok(prices) = &asked {
            state.prices.take(prices, now);
        }
        self.show_age(&state.prices, now);
        asked.map(drop)
    }

    /// How old prices are, where people look.
    fn show_age(&self, prices: &Prices, now: Timestamp) {
        let age = |since: Timestamp| now.duration_since(since).as_secs_f64();
        match prices.source() {
            PriceSource::Asked(at) => self.metrics.pricing_age_seconds.set(["on-demand"], age(*at)),
            PriceSource::BuiltIn(day) => {
                if let Ok(noon) = format!("{day}T12:00:00Z").parse() {
                    self.metrics.pricing_age_seconds.set(["built-in"], age(noon));
                }
            }
        }
    }

    /// Asks how much of our quotas is used. While nobody knows, nothing is refused for it.
    pub async fn read_quotas(&self) -> Result<(), Failure> {
        let usages = self.arm.usages(&self.region).await?;
        let mut state = self.lock();
        state.quotas.read(&usages, self.clock.now());
        for (family, ratio) in state.quotas.ratios() {
            self.metrics.azure_quota_used_ratio.set([family], ratio);
        }
        Ok(())
    }

    /// Where prices come from.
    pub fn price_source(&self) -> PriceSource {
        self.lock().prices.source().clone()
    }

    /// What Azure says about a size.
    pub fn record(&self, name: &str) -> Option<Arc<SizeRecord>> {
        self.lock().records.get(name).cloned()
    }

    /// The sizes of a class by name, those that cannot be had now too.
    pub fn types(&self, class: &AKSNodeClass) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        let now = self.clock.now();
        let mut state = self.lock();
        if state.records.is_empty() {
            return Err(CloudError::Other("no instance types found".to_owned()));
        }
        let version = state.version(now);
        let (name, is_local_dns_enabled) = (Class(class).name().to_owned(), Class(class).is_local_dns_enabled());
        if let Some(listed) = state.listed.get(&name)
            && (listed.version, listed.is_local_dns_enabled) == (version, is_local_dns_enabled)
            && listed.spec == class.spec
        {
            return Ok(listed.types.clone());
        }
        let fitting = state.records.values().filter(|record| record.is_for(class));
        let types: Vec<_> = fitting
            .map(|record| Arc::new(self.describe(&state, record, class, now)))
            .collect();
        let listed = Listed {
            spec: class.spec.clone(),
            is_local_dns_enabled,
            version,
            types: types.clone(),
        };
        state.listed.insert(name, listed);
        Ok(types)
    }

    fn describe(&self, state: &State, record: &SizeRecord, class: &AKSNodeClass, now: Timestamp) -> CatalogType {
        let class = Class(class);
        let setup = Setup {
            os_disk_gb: class.os_disk_gb().into(),
            max_pods: class.max_pods(&self.settings.azure).into(),
            memory_overhead: self.settings.aws.vm_memory_overhead_percent,
            os_sku: class.os_sku(),
            is_fips: class.is_fips(),
            cluster: Some(&self.cluster_label),
        };
        let zones: Vec<(String, &str)> = self.zones_of(record);
        let mut names: Vec<&str> = zones.iter().map(|(name, _)| name.as_str()).collect();
        names.push(REGIONAL_ZONE);
        let sale = Sale {
            region: &self.region,
            zones: &names,
            capacity_types: if record.is_spot_capable {
                &[CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT]
            } else {
                &[CAPACITY_TYPE_ON_DEMAND]
            },
            priorities: &["regular", "spot"],
            has_ultra_ssd: record.has_ultra_ssd(None) || zones.iter().any(|(_, it)| record.has_ultra_ssd(Some(it))),
        };
        let machine = record.machine();
        let limit = record.max_data_disks.map(|disks| ("disk.csi.azure.com".into(), disks));
        CatalogType {
            name: record.name.as_str().into(),
            requirements: catalogue::azure::labels(&machine, &setup, &sale),
            capacity: catalogue::azure::capacity(&machine, &setup),
            overhead: catalogue::azure::overhead(&machine),
            offerings: Self::offerings(state, record, &zones, now),
            volume_attachment_limits: limit.into_iter().collect(),
            dynamic_resources: DynamicResources::default(),
        }
    }

    fn zones_of<'a>(&self, record: &'a SizeRecord) -> Vec<(String, &'a str)> {
        let zones = record.zones.iter();
        zones
            .map(|number| (format!("{}-{number}", self.region), number.as_str()))
            .collect()
    }

    /// Every zone, then the region without one, each on demand and as spot.
    fn offerings(state: &State, record: &SizeRecord, zones: &[(String, &str)], now: Timestamp) -> Vec<CatalogOffering> {
        let zonal = zones.iter().map(|(zone, number)| Place {
            zone,
            scope: "zonal",
            number: Some(number),
        });
        let regional = Place {
            zone: REGIONAL_ZONE,
            scope: "regional",
            number: None,
        };
        let mut offerings = Vec::new();
        for place in zonal.chain([regional]) {
            for kind in [CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT] {
                let is_spot = kind == CAPACITY_TYPE_SPOT;
                let priority = if is_spot { "spot" } else { "regular" };
                let ultra: &[&str] = if record.has_ultra_ssd(place.number) {
                    &["true", "false"]
                } else {
                    &["false"]
                };
                let one = |key: &str, value: &str| RequirementSpec::new(key, Operator::In, &[value]);
                offerings.push(CatalogOffering {
                    requirements: vec![
                        one(CAPACITY_TYPE, kind),
                        one(ZONE, place.zone),
                        one(PLACEMENT_SCOPE, place.scope),
                        one(AKS_SCALE_SET_PRIORITY, priority),
                        one(AKS_PRIORITY, priority),
                        RequirementSpec::new(SKU_STORAGE_ULTRA_SSD, Operator::In, ultra),
                    ],
                    price: if is_spot {
                        state.prices.spot(&record.name)
                    } else {
                        state.prices.on_demand(&record.name)
                    },
                    available: state.why(record, place.zone, kind, now).is_none(),
                    reservation_capacity: 0,
                    capacity_override: ResourceList::EMPTY,
                    overhead_override: None,
                });
            }
        }
        offerings
    }

    /// Why an offering is not to be had now, in words; none when it is.
    pub fn why(&self, size: &str, zone: &str, capacity_type: &str) -> Option<String> {
        let state = self.lock();
        let record = state.records.get(size)?;
        state.why(record, zone, capacity_type, self.clock.now())
    }

    /// Something ran out.
    pub fn mark_unavailable(&self, shortage: &Shortage) {
        tracing::debug!(?shortage, "removing offering from offerings");
        self.lock().shortages.mark(shortage, self.clock.now());
    }

    /// What is worth keeping over a restart.
    pub fn keepsake(&self) -> Shortages {
        self.lock().shortages.clone()
    }

    /// Takes up what an earlier process knew.
    pub fn remember(&self, shortages: Shortages) {
        let mut state = self.lock();
        state.shortages = shortages;
        state.more += 1;
    }

    /// Counts changes that came neither from a pool nor from a class.
    pub fn version(&self) -> u64 {
        let now = self.clock.now();
        self.lock().version(now)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn version(&mut self, now: Timestamp) -> u64 {
        let known = self.discoveries + self.prices.version() + self.more;
        known + self.quotas.version(now) + self.shortages.version(now)
    }

    fn why(&self, record: &SizeRecord, zone: &str, capacity_type: &str, now: Timestamp) -> Option<String> {
        let (name, family) = (&record.name, &record.quota_family);
        let ran_out = self.shortages.why(name, family, record.vcpu, zone, capacity_type, now);
        if let Some(reason) = ran_out {
            return Some(reason.to_owned());
        }
        if capacity_type == CAPACITY_TYPE_SPOT {
            let reason = "not sold as spot here (LowPriorityCapable is not set)";
            return (!record.is_spot_capable).then(|| reason.to_owned());
        }
        self.quotas.is_full(family, record.vcpu)
    }
}
