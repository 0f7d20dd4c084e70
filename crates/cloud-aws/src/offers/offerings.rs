//! Where and at what price a class can have a type.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::{
    aws::{CapacityReservation, CapacityReservationState, EC2NodeClass},
    labels::{CAPACITY_TYPE, CAPACITY_TYPE_RESERVED, CAPACITY_TYPE_SPOT, ZONE, aws},
};
use cloud::{Interruptions, OfferingKey};
use jiff::Timestamp;
use model::{
    object::InstanceTypeName,
    price::Price,
    requirement::{Operator, RequirementSpec},
    resources::ResourceList,
    snapshot::CatalogOffering,
};

use super::{
    prices::Prices,
    reservations::Reservations,
    shortages::{Shortages, Wanted},
};
use crate::border::PlacementGroupFacts;

/// What a reservation costs of the on-demand price: so little that it counts as free, and still more for more.
const RESERVED_PART: u64 = 10_000_000;

/// A zone as a class sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ZoneOfClass {
    pub(crate) id: Option<String>,
    pub(crate) subnets: Vec<String>,
}

/// The zones of a class's subnets.
pub(crate) fn zones_of(class: &EC2NodeClass) -> BTreeMap<String, ZoneOfClass> {
    let mut zones: BTreeMap<String, ZoneOfClass> = BTreeMap::new();
    for subnet in class.status.iter().flat_map(|status| &status.subnets) {
        let zone = zones.entry(subnet.zone.clone()).or_default();
        zone.id = zone.id.take().or_else(|| subnet.zone_id.clone());
        zone.subnets.push(subnet.id.clone());
    }
    zones
}

/// Everything that offerings follow from.
pub(crate) struct Market<'a> {
    pub(crate) prices: &'a Prices,
    pub(crate) shortages: &'a Shortages,
    pub(crate) reservations: &'a Reservations,
    pub(crate) interruptions: &'a Interruptions,
    /// What one costs, as time of the machine it takes.
    pub(crate) interruption_cost: Duration,
    /// Zones, by ID, that machines are shifted away from.
    pub(crate) shifted: &'a BTreeSet<String>,
    /// Prices of overlays for types that have none.
    pub(crate) overlay_prices: &'a BTreeMap<String, Price>,
    /// All zones of the region.
    pub(crate) zones: &'a BTreeSet<String>,
    /// Those of the class.
    pub(crate) zones_of_class: &'a BTreeMap<String, ZoneOfClass>,
    pub(crate) placement_group: Option<&'a PlacementGroupFacts>,
    pub(crate) has_reserved_capacity: bool,
    pub(crate) now: Timestamp,
}

/// A type, as far as offerings ask.
pub(crate) struct Sold<'a> {
    pub(crate) name: &'a InstanceTypeName,
    pub(crate) is_compatible: bool,
    /// Zones that sell it and have a subnet of the class.
    pub(crate) zones: &'a BTreeSet<String>,
    pub(crate) capacity_types: &'a [&'static str],
    pub(crate) reservations: &'a [&'a CapacityReservation],
}

impl Market<'_> {
    /// The offerings of a type.
    pub(crate) fn offerings(&self, sold: &Sold<'_>) -> Vec<CatalogOffering> {
        let mut offerings = Vec::new();
        for zone in self.zones {
            for kind in sold.capacity_types {
                offerings.push(self.bought(sold, zone, kind));
            }
        }
        if self.has_reserved_capacity {
            offerings.extend(sold.reservations.iter().map(|it| self.reserved(sold, it)));
        }
        self.in_partitions(sold, offerings)
    }

    fn bought(&self, sold: &Sold<'_>, zone: &str, kind: &str) -> CatalogOffering {
        let name = sold.name.as_str();
        let price = match kind {
            CAPACITY_TYPE_SPOT => self.prices.spot(name, zone),
            _ => self.prices.on_demand(name),
        };
        let price = price.or_else(|| self.overlay_prices.get(name).copied());
        let price = price.map(|price| self.expected(price, sold.name, zone, kind));
        let (id, subnets) = self.zone_of_class(zone);
        let is_short = |placement_group| {
            let wanted = Wanted {
                instance_type: sold.name,
                zone,
                capacity_type: kind,
                subnets: &subnets,
                placement_group,
                partition: None,
            };
            self.shortages.is_unavailable(&wanted, self.now)
        };
        let mut requirements = vec![
            one(CAPACITY_TYPE, kind),
            one(ZONE, zone),
            absent(aws::CAPACITY_RESERVATION_ID),
            absent(aws::CAPACITY_RESERVATION_TYPE),
            absent(aws::CAPACITY_RESERVATION_INTERRUPTIBLE),
        ];
        requirements.extend(id.map(|id| one(aws::ZONE_ID, id)));
        CatalogOffering {
            requirements,
            price: price.unwrap_or(Price::from_picos(0)),
            available: sold.is_compatible
                && price.is_some()
                && sold.zones.contains(zone)
                && !is_short(self.placement_group.map(|group| group.id.as_str()))
                && !self.is_shifted(id),
            reservation_capacity: 0,
            capacity_override: ResourceList::EMPTY,
            overhead_override: None,
        }
    }

    /// The price, with what interruptions cost beside it where that is to be counted in.
    fn expected(&self, price: Price, name: &InstanceTypeName, zone: &str, kind: &str) -> Price {
        if self.interruption_cost.is_zero() {
            return price;
        }
        let offering = OfferingKey {
            instance_type: name.clone(),
            zone: zone.into(),
            capacity_type: kind.into(),
        };
        let rate = self.interruptions.rate(&offering, self.now);
        rate.expected(price, self.interruption_cost)
    }

    fn reserved(&self, sold: &Sold<'_>, reservation: &CapacityReservation) -> CatalogOffering {
        let on_demand = self.prices.on_demand(sold.name.as_str());
        let price = on_demand.map_or(0, |price| price.picos() / RESERVED_PART);
        let zone = reservation.availability_zone.as_str();
        let (id, _) = self.zone_of_class(zone);
        let left = self.reservations.left(&reservation.id, self.now);
        let mut requirements = vec![
            one(CAPACITY_TYPE, CAPACITY_TYPE_RESERVED),
            one(ZONE, zone),
            one(aws::CAPACITY_RESERVATION_ID, &reservation.id),
            one(aws::CAPACITY_RESERVATION_TYPE, reservation.reservation_type.as_str()),
            one(
                aws::CAPACITY_RESERVATION_INTERRUPTIBLE,
                if reservation.interruptible == Some(true) {
                    "true"
                } else {
                    "false"
                },
            ),
        ];
        requirements.extend(id.map(|id| one(aws::ZONE_ID, id)));
        CatalogOffering {
            requirements,
            price: Price::from_picos(price),
            available: sold.is_compatible
                && left > 0
                && sold.zones.contains(zone)
                && reservation.state != CapacityReservationState::Expiring
                && !self.is_shifted(id),
            reservation_capacity: left,
            capacity_override: ResourceList::EMPTY,
            overhead_override: None,
        }
    }

    /// In a group of partitions every offering is one for each partition.
    fn in_partitions(&self, sold: &Sold<'_>, offerings: Vec<CatalogOffering>) -> Vec<CatalogOffering> {
        let Some(group) = self
            .placement_group
            .filter(|it| it.strategy == "partition" && it.partitions > 0)
        else {
            return offerings;
        };
        let in_partition = |offering: &CatalogOffering, partition: i32| {
            let partition = partition.to_string();
            let mut copy = offering.clone();
            copy.available = copy.available && !self.is_partition_short(sold, &copy, &group.id, &partition);
            copy.requirements.push(one(aws::PLACEMENT_GROUP_PARTITION, &partition));
            copy
        };
        let partitions = |offering| (1..=group.partitions).map(move |it| (offering, it));
        let all = offerings.iter().flat_map(partitions);
        all.map(|(offering, partition)| in_partition(offering, partition))
            .collect()
    }

    fn is_partition_short(&self, sold: &Sold<'_>, offering: &CatalogOffering, group: &str, partition: &str) -> bool {
        let value = |key: &str| {
            let found = offering.requirements.iter().find(|it| it.key == key);
            found.and_then(|it| it.values.first()).map_or("", String::as_str)
        };
        let wanted = Wanted {
            instance_type: sold.name,
            zone: value(ZONE),
            capacity_type: value(CAPACITY_TYPE),
            subnets: &[],
            placement_group: Some(group),
            partition: Some(partition),
        };
        self.shortages.is_unavailable(&wanted, self.now)
    }

    fn zone_of_class(&self, zone: &str) -> (Option<&str>, Vec<&str>) {
        let Some(zone) = self.zones_of_class.get(zone) else {
            return (None, Vec::new());
        };
        (zone.id.as_deref(), zone.subnets.iter().map(String::as_str).collect())
    }

    fn is_shifted(&self, zone_id: Option<&str>) -> bool {
        zone_id.is_some_and(|id| self.shifted.contains(id))
    }
}

/// How a type can be bought, reservations included.
pub(crate) fn capacity_types<'a>(bought: &'a [&'static str], reservations: &[&CapacityReservation]) -> Vec<&'a str> {
    let reserved = (!reservations.is_empty()).then_some(CAPACITY_TYPE_RESERVED);
    bought.iter().copied().chain(reserved).collect()
}

fn one(key: &str, value: &str) -> RequirementSpec {
    RequirementSpec::new(key, Operator::In, &[value])
}

fn absent(key: &str) -> RequirementSpec {
    RequirementSpec::new(key, Operator::DoesNotExist, &[])
}
