//! What can be launched, where and at what price.
//!
//! EC2 is asked every twelve hours which types there are, in which zones, and what they cost. What ran out, how many
//! places reservations have left and how much memory nodes turned out to have changes in between.

mod compatibility;
pub mod memory;
mod offerings;
pub mod prices;
mod record;
mod reservations;
mod setup;
pub mod shortages;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::{
    aws::{CapacityReservation, EC2NodeClass, EC2NodeClassSpec, EC2NodeClassStatus},
    labels::aws,
};
use aws_sdk_ec2::types::{Filter, LocationType};
use catalogue::{
    Damaged,
    aws::{KnownType, Reservation, Sale},
};
use cloud::{CloudError, Interruptions, OfferingKey};
use model::{
    object::{InstanceTypeName, List},
    price::Price,
    quantity::Quantity,
    requirement::{Operator, RequirementSpec},
    resources::ResourceName,
    snapshot::{CatalogType, DynamicResources},
};
use runtime::{Clock, Metrics, Settings};

use crate::{
    Clients, Failure,
    border::{PlacementGroupFacts, ReservationNote, Shortage, TypeFacts},
};

pub use compatibility::is_compatible;
use memory::Memory;
use offerings::{Market, Sold, ZoneOfClass, capacity_types, zones_of};
use prices::{PriceError, PriceSource, Prices};
pub use record::{Incomplete, TypeRecord};
pub use reservations::Reservations;
pub use setup::setup;
use shortages::Shortages;

/// What can be launched.
pub struct Offers {
    clients: Clients,
    clock: Clock,
    settings: Arc<Settings>,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
}

struct State {
    known: BTreeMap<String, KnownType>,
    records: BTreeMap<InstanceTypeName, TypeRecord>,
    zones_of_type: BTreeMap<String, BTreeSet<String>>,
    zones: BTreeSet<String>,
    discoveries: u64,
    prices: Prices,
    shortages: Shortages,
    reservations: Reservations,
    memory: Memory,
    interruptions: Interruptions,
    shifted: BTreeSet<String>,
    overlay_prices: BTreeMap<String, Price>,
    more: u64,
    listed: BTreeMap<String, Listed>,
}

/// What a class was told last, and what that followed from.
struct Listed {
    of: Basis,
    types: Vec<Entry>,
}

/// What all types of a class follow from, but for shortages.
#[derive(PartialEq)]
struct Basis {
    spec: EC2NodeClassSpec,
    status: EC2NodeClassStatus,
    group: Option<PlacementGroupFacts>,
    version: u64,
}

struct Entry {
    told: Arc<CatalogType>,
    sequence: u64,
}

impl Offers {
    /// Nothing but the built-in prices yet.
    pub fn new(
        clients: Clients,
        clock: Clock,
        settings: Arc<Settings>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, Damaged> {
        let (prices, known) = Prices::built_in(&clients.region, settings.aws.isolated_vpc)?;
        let state = State {
            known,
            records: BTreeMap::new(),
            zones_of_type: BTreeMap::new(),
            zones: BTreeSet::new(),
            discoveries: 0,
            prices,
            shortages: Shortages::default(),
            reservations: Reservations::default(),
            memory: Memory::default(),
            interruptions: Interruptions::default(),
            shifted: BTreeSet::new(),
            overlay_prices: BTreeMap::new(),
            more: 0,
            listed: BTreeMap::new(),
        };
        Ok(Self {
            clients,
            clock,
            settings,
            metrics,
            state: Mutex::new(state),
        })
    }

    /// Asks EC2 which types there are, and in which zones.
    pub async fn discover(&self) -> Result<(), Failure> {
        let (types, zones) = tokio::join!(self.describe_types(), self.describe_zones());
        let (records, zones) = (types?, zones?);
        for record in records.values() {
            let (facts, name) = (&record.facts, record.facts.name.as_str());
            #[expect(clippy::cast_precision_loss, reason = "a gauge; memory lies far below 2^53 bytes")]
            let (cores, bytes) = (facts.vcpu as f64, (facts.memory_mib << 20) as f64);
            self.metrics.cloudprovider_instance_type_cpu_cores.set([name], cores);
            self.metrics.cloudprovider_instance_type_memory_bytes.set([name], bytes);
        }
        let mut state = self.lock();
        // An empty answer is no answer: what was known stays.
        if records.is_empty() || zones.is_empty() {
            return Ok(());
        }
        if state.records != records || state.zones_of_type != zones {
            tracing::debug!(count = records.len(), "discovered instance types");
            state.discoveries += 1;
            state.zones = zones.values().flatten().cloned().collect();
            state.records = records;
            state.zones_of_type = zones;
        }
        Ok(())
    }

    async fn describe_types(&self) -> Result<BTreeMap<InstanceTypeName, TypeRecord>, Failure> {
        let filter = |name: &str, values: &[&str]| {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            Filter::builder().name(name).set_values(Some(values)).build()
        };
        let mut pages = self
            .clients
            .ec2
            .describe_instance_types()
            .filters(filter("supported-virtualization-type", &["hvm"]))
            .filters(filter("processor-info.supported-architecture", &["x86_64", "arm64"]))
            .max_results(100)
            .into_paginator()
            .send();
        let mut records = BTreeMap::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| Failure::of(&error))?;
            let state = self.lock();
            for info in page.instance_types() {
                let known = info.instance_type().and_then(|name| state.known.get(name.as_str()));
                match TypeRecord::read(info, known) {
                    Ok(record) => {
                        records.insert(record.facts.name.as_str().into(), record);
                    }
                    Err(incomplete) => tracing::error!(error = %incomplete, "describing instance types"),
                }
            }
        }
        Ok(records)
    }

    async fn describe_zones(&self) -> Result<BTreeMap<String, BTreeSet<String>>, Failure> {
        let mut pages = self
            .clients
            .ec2
            .describe_instance_type_offerings()
            .location_type(LocationType::AvailabilityZone)
            .max_results(1000)
            .into_paginator()
            .send();
        let mut zones: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| Failure::of(&error))?;
            for offering in page.instance_type_offerings() {
                if let (Some(name), Some(zone)) = (offering.instance_type(), offering.location()) {
                    zones
                        .entry(name.as_str().to_owned())
                        .or_default()
                        .insert(zone.to_owned());
                }
            }
        }
        Ok(zones)
    }

    /// Asks what types cost. What fails leaves the old prices standing.
    pub async fn reprice(&self) -> Result<(), PriceError> {
        let asks = self.lock().prices.asks_on_demand();
        let now = self.clock.now();
        let (on_demand, spot) = tokio::join!(
            async {
                if asks {
                    prices::ask_on_demand(&self.clients).await.map(Some)
                } else {
                    Ok(None)
                }
            },
            prices::ask_spot(&self.clients, now),
        );
        let mut state = self.lock();
        if let Ok(Some(prices)) = &on_demand {
            state.prices.take_on_demand(prices.clone(), now);
        }
        if let Ok(prices) = &spot {
            state.prices.take_spot(prices.clone(), now);
        }
        self.show_age(&state.prices);
        on_demand.map(drop).and(spot.map(drop))
    }

    /// How old prices are, where people look.
    fn show_age(&self, prices: &Prices) {
        let now = self.clock.now();
        let age = |since| now.duration_since(since).as_secs_f64();
        match prices.on_demand_source() {
            PriceSource::Asked(at) => self.metrics.pricing_age_seconds.set(["on-demand"], age(*at)),
            PriceSource::BuiltIn(day) => {
                let noon = format!("{day}T12:00:00Z").parse();
                if let Ok(noon) = noon {
                    self.metrics.pricing_age_seconds.set(["built-in"], age(noon));
                }
            }
        }
        if let Some(at) = prices.spot_read_at() {
            self.metrics.pricing_age_seconds.set(["spot"], age(at));
        }
    }

    /// Where on-demand prices come from.
    pub fn price_source(&self) -> PriceSource {
        self.lock().prices.on_demand_source().clone()
    }

    /// What EC2 says about a type.
    pub fn facts(&self, name: &str) -> Option<Arc<TypeFacts>> {
        let state = self.lock();
        let record = state.records.get(&InstanceTypeName::from(name));
        record.map(|record| Arc::clone(&record.facts))
    }

    /// The types of a class, those that cannot be had now too, by name.
    pub fn types(
        &self,
        class: &EC2NodeClass,
        group: Option<&PlacementGroupFacts>,
    ) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        let now = self.clock.now();
        let mut state = self.lock();
        let missing = |what: &str| Err(CloudError::Other(format!("no {what} found")));
        if state.records.is_empty() {
            return missing("instance types");
        }
        if state.zones_of_type.is_empty() {
            return missing("instance types offerings");
        }
        let status = class.status.clone().unwrap_or_default();
        if status.subnets.is_empty() {
            return missing("subnets");
        }
        let basis = Basis {
            spec: class.spec.clone(),
            status: EC2NodeClassStatus {
                conditions: Vec::new(),
                ..status
            },
            group: group.cloned(),
            version: state.base_version(),
        };
        let name = class.metadata.name.clone().unwrap_or_default();
        let mut listed = match state.listed.remove(&name) {
            Some(listed) if listed.of == basis => listed,
            _ => Listed {
                types: self.describe(&state, class, now),
                of: basis,
            },
        };
        self.refresh(&mut state, class, group, &mut listed, now);
        let types = listed.types.iter().map(|entry| Arc::clone(&entry.told)).collect();
        state.listed.insert(name, listed);
        Ok(types)
    }

    /// Every type without its offerings.
    fn describe(&self, state: &State, class: &EC2NodeClass, now: jiff::Timestamp) -> Vec<Entry> {
        let setup = setup(class, &self.settings.aws);
        let status = class.status.clone().unwrap_or_default();
        let zones = zones_of(class);
        let gate = self.settings.decisions.feature_gates.reserved_capacity;
        let mut entries = Vec::with_capacity(state.records.len());
        for (name, record) in &state.records {
            let machine = record.machine();
            let sold_in = state.zones_of_class(name.as_str(), &zones);
            let zone_names: Vec<&str> = sold_in.iter().map(String::as_str).collect();
            let zone_ids: Vec<&str> = sold_in
                .iter()
                .filter_map(|zone| zones.get(zone)?.id.as_deref())
                .collect();
            let reserved = reservations_of(&status.capacity_reservations, name, gate);
            let reservations: Vec<Reservation<'_>> = reserved.iter().map(|it| reservation(it)).collect();
            let sale = Sale {
                region: &self.clients.region,
                zones: &zone_names,
                zone_ids: &zone_ids,
                capacity_types: &capacity_types(&record.capacity_types, &reserved),
                reservations: &reservations,
            };
            let mut capacity = catalogue::aws::capacity(&machine, &setup);
            let key = memory::key(name.as_str(), &status.amis);
            if let Some(bytes) = state.memory.get(&key, now) {
                capacity.set(ResourceName::Memory, Quantity::from_bytes(bytes));
            }
            let told = CatalogType {
                name: name.clone(),
                requirements: catalogue::aws::labels(&machine, &setup, &sale),
                capacity,
                overhead: catalogue::aws::overhead(&machine, &setup),
                offerings: Vec::new(),
                volume_attachment_limits: List::default(),
                dynamic_resources: DynamicResources::default(),
            };
            entries.push(Entry {
                told: Arc::new(told),
                sequence: u64::MAX,
            });
        }
        entries
    }

    /// Makes the offerings of those types anew about which something changed.
    fn refresh(
        &self,
        state: &mut State,
        class: &EC2NodeClass,
        group: Option<&PlacementGroupFacts>,
        listed: &mut Listed,
        now: jiff::Timestamp,
    ) {
        let zones_of_class = zones_of(class);
        let status = class.status.clone().unwrap_or_default();
        let gate = self.settings.decisions.feature_gates.reserved_capacity;
        for entry in &mut listed.types {
            let sequence = state.shortages.sequence(&entry.told.name, now);
            if sequence == entry.sequence {
                continue;
            }
            let name = entry.told.name.clone();
            let Some(record) = state.records.get(&name) else {
                continue;
            };
            let market = Market {
                prices: &state.prices,
                shortages: &state.shortages,
                reservations: &state.reservations,
                interruptions: &state.interruptions,
                interruption_cost: self.settings.aws.interruption_cost,
                shifted: &state.shifted,
                overlay_prices: &state.overlay_prices,
                zones: &state.zones,
                zones_of_class: &zones_of_class,
                placement_group: group,
                has_reserved_capacity: gate,
                now,
            };
            let offerings = market.offerings(&Sold {
                name: &name,
                is_compatible: is_compatible(&record.facts, class, group),
                zones: &state.zones_of_class(name.as_str(), &zones_of_class),
                capacity_types: &record.capacity_types,
                reservations: &reservations_of(&status.capacity_reservations, &name, gate),
            });
            let mut told = CatalogType::clone(&entry.told);
            if entry.sequence == u64::MAX {
                told.requirements.extend(group.into_iter().flat_map(group_labels));
            }
            told.offerings = offerings;
            *entry = Entry {
                told: Arc::new(told),
                sequence,
            };
        }
    }

    /// Something ran out.
    pub fn mark_unavailable(&self, shortage: &Shortage) {
        tracing::debug!(
            reason = shortage.reason,
            "instance-type" = shortage.instance_type.as_ref().map_or("", |name| name.as_str()),
            zone = shortage.zone.as_deref().unwrap_or_default(),
            "capacity-type" = shortage.capacity_type.as_deref().unwrap_or_default(),
            subnet = shortage.subnet.as_deref().unwrap_or_default(),
            ttl = ?cloud::BELIEVED,
            "removing offering from offerings"
        );
        self.lock().shortages.mark(shortage, self.clock.now());
    }

    /// Places of a reservation, as EC2 says.
    pub fn read_reservation(&self, id: &str, left: u32) {
        self.lock().reservations.read(id, left, self.clock.now());
    }

    /// Something became of a reservation.
    pub fn note_reservation(&self, id: &str, note: ReservationNote) {
        self.lock().reservations.note(id, note);
    }

    /// A node of this type, booted from an image that is current, has so much memory.
    pub fn see_memory(&self, instance_type: &str, class: &EC2NodeClass, bytes: i64) {
        let images = class.status.as_ref().map(|it| it.amis.as_slice()).unwrap_or_default();
        let key = memory::key(instance_type, images);
        if self.lock().memory.see(&key, bytes, self.clock.now()) {
            tracing::debug!(
                "memory-capacity" = bytes,
                "instance-type" = instance_type,
                "updating discovered capacity cache"
            );
        }
    }

    /// EC2 takes a machine back.
    pub fn interrupted(&self, offering: &OfferingKey) {
        let now = self.clock.now();
        let mut state = self.lock();
        state.interruptions.interrupted(offering, now);
        self.rank_anew(&mut state);
    }

    /// Machines have been running for a while.
    pub fn ran(&self, machines: &BTreeMap<OfferingKey, u32>, time: Duration) {
        let now = self.clock.now();
        let mut state = self.lock();
        for (offering, count) in machines {
            state.interruptions.ran(offering, time.saturating_mul(*count), now);
        }
        self.rank_anew(&mut state);
        for (offering, _, _) in state.interruptions.all(now) {
            #[expect(clippy::cast_precision_loss, reason = "a gauge")]
            let rate = state.interruptions.rate(offering, now).per_million_hours as f64 / 1e6;
            let labels = [offering.instance_type.as_str(), &offering.capacity_type, &offering.zone];
            self.metrics.interruptions_per_machine_hour.set(labels, rate);
        }
    }

    /// Prices that count interruptions in have changed, where they do.
    fn rank_anew(&self, state: &mut State) {
        if !self.settings.aws.interruption_cost.is_zero() {
            state.more += 1;
        }
    }

    /// What is worth keeping over a restart, as JSON.
    pub fn keepsake(&self) -> Keepsake {
        let state = self.lock();
        Keepsake {
            shortages: state.shortages.clone(),
            memory: state.memory.clone(),
            interruptions: state.interruptions.clone(),
        }
    }

    /// Takes up what an earlier process knew.
    pub fn remember(&self, keepsake: Keepsake) {
        let mut state = self.lock();
        state.shortages = keepsake.shortages;
        state.memory = keepsake.memory;
        state.interruptions = keepsake.interruptions;
        state.memory.forget(self.clock.now());
        state.more += 1;
    }

    /// Zones, by ID, that machines are shifted away from.
    pub fn shift(&self, zone_ids: BTreeSet<String>) {
        let mut state = self.lock();
        if state.shifted != zone_ids {
            state.shifted = zone_ids;
            state.more += 1;
        }
    }

    /// Prices of overlays for types that have none.
    pub fn overlay(&self, prices: BTreeMap<String, Price>) {
        let mut state = self.lock();
        if state.overlay_prices != prices {
            state.overlay_prices = prices;
            state.more += 1;
        }
    }

    /// Counts changes that came neither from a pool nor from a class.
    pub fn version(&self) -> u64 {
        let mut state = self.lock();
        let now = self.clock.now();
        state.base_version() + state.shortages.version(now)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is worth keeping over a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Keepsake {
    /// What ran out.
    pub shortages: Shortages,
    /// How much memory machines turned out to have.
    pub memory: Memory,
    /// Which machines were taken back.
    pub interruptions: Interruptions,
}

impl State {
    fn base_version(&self) -> u64 {
        self.discoveries + self.prices.version() + self.reservations.version() + self.memory.version() + self.more
    }

    /// Zones that sell the type and have a subnet of the class.
    fn zones_of_class(&self, name: &str, zones: &BTreeMap<String, ZoneOfClass>) -> BTreeSet<String> {
        let sold = self.zones_of_type.get(name).into_iter().flatten();
        sold.filter(|zone| zones.contains_key(*zone)).cloned().collect()
    }
}

fn reservations_of<'a>(
    all: &'a [CapacityReservation],
    name: &InstanceTypeName,
    gate: bool,
) -> Vec<&'a CapacityReservation> {
    let of_type = all.iter().filter(|it| it.instance_type == name.as_str());
    of_type.filter(|_| gate).collect()
}

fn reservation(status: &CapacityReservation) -> Reservation<'_> {
    Reservation {
        id: &status.id,
        kind: status.reservation_type.as_str(),
        is_interruptible: status.interruptible == Some(true),
    }
}

/// The group itself and its partitions, so that pods can be spread over them.
fn group_labels(group: &PlacementGroupFacts) -> Vec<RequirementSpec> {
    let mut labels = vec![RequirementSpec::new(
        aws::PLACEMENT_GROUP_ID,
        Operator::In,
        &[&group.id],
    )];
    if group.strategy == "partition" && group.partitions > 0 {
        let partitions = (1..=group.partitions).map(|it| it.to_string()).collect();
        labels.push(RequirementSpec {
            values: partitions,
            ..RequirementSpec::new(aws::PLACEMENT_GROUP_PARTITION, Operator::In, &[])
        });
    }
    labels
}
