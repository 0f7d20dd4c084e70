//! What was bought in advance, what of it is used, and what an hour of a machine costs beside it?
//!
//! A commitment is paid for whether it is used or not. So a machine that one covers costs its committed rate, but removing it
//! saves nothing while nothing else uses the commitment; and launching one is free while there is some left.

use std::{collections::BTreeMap, sync::Arc};

use api::labels::{CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, ZONE};
use model::{
    object::Text,
    price::Price,
    snapshot::{Catalog, CatalogOffering, CatalogType},
};
use serde::{Deserialize, Serialize};

use crate::{Dollars, Machine, View};

/// Everything that was bought in advance.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Commitments {
    /// Always `dovetail.dev/v1alpha1`, if it is there.
    #[serde(default)]
    pub api_version: String,
    /// Always `Commitments`, if it is there.
    #[serde(default)]
    pub kind: String,
    /// Dollars an hour that buy machines at a discount.
    #[serde(default)]
    pub savings_plans: Vec<SavingsPlan>,
    /// Machines of one type.
    #[serde(default)]
    pub reservations: Vec<Reservation>,
}

/// Dollars an hour that buy machines at a discount.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavingsPlan {
    /// What people call it.
    pub name: String,
    /// What is paid an hour, used or not.
    pub usd_per_hour: Dollars,
    /// By how much the prices on demand are lowered, in percent.
    pub discount_percent: u8,
    /// Instance families it covers, such as `m7g`; none for all.
    #[serde(default)]
    pub families: Vec<String>,
}

/// Machines of one type.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reservation {
    /// What people call it.
    pub name: String,
    /// Of which type.
    pub instance_type: String,
    /// In which zone; none for all.
    #[serde(default)]
    pub zone: Option<String>,
    /// How many.
    pub count: u32,
    /// What is paid an hour for each, used or not.
    pub usd_per_hour: Dollars,
}

/// What commitments cover.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Coverage {
    /// By the machine's name.
    pub machines: BTreeMap<Text, Covered>,
    /// By commitment, in their order: reservations first.
    pub commitments: Vec<Used>,
}

/// A machine that a commitment covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covered {
    /// What is paid for it an hour.
    pub paid: Price,
    /// What it costs on demand.
    pub listed: Price,
    /// What an hour costs less without it.
    pub marginal: Price,
}

/// How much of a commitment is used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Used {
    /// What people call it.
    pub name: String,
    /// What is paid an hour.
    pub committed_usd_h: Dollars,
    /// What of that is used.
    pub used_usd_h: Dollars,
}

impl Used {
    /// What is paid for nothing.
    pub fn unused_usd_h(&self) -> Dollars {
        (self.committed_usd_h - self.used_usd_h).or_nothing()
    }
}

/// Next to nothing: what is free must not be without a price.
const FREE: Price = Price::from_picos(1_000_000);

impl Commitments {
    /// What is wrong with them, a sentence each.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.kind.is_empty() && self.kind != "Commitments" {
            faults.push(format!("kind: {:?} is not Commitments", self.kind));
        }
        for plan in &self.savings_plans {
            if plan.discount_percent >= 100 {
                faults.push(format!(
                    "savings plan {}: discountPercent {} is not below 100",
                    plan.name, plan.discount_percent
                ));
            }
            if plan.usd_per_hour <= Dollars::ZERO {
                faults.push(format!("savings plan {}: usdPerHour is not above 0", plan.name));
            }
        }
        for reservation in &self.reservations {
            if reservation.count == 0 {
                faults.push(format!("reservation {}: count is 0", reservation.name));
            }
            if reservation.usd_per_hour < Dollars::ZERO {
                faults.push(format!("reservation {}: usdPerHour is below 0", reservation.name));
            }
        }
        faults
    }

    /// Which machines on demand they cover: reservations those of their type, then savings plans the dearest of the rest.
    pub fn cover(&self, view: &View<'_>) -> Coverage {
        let mut open: Vec<&Machine<'_>> = view.managed().filter(|machine| is_on_demand(machine)).collect();
        open.sort_by_key(|machine| (std::cmp::Reverse(machine.price), machine.name.clone()));
        let mut coverage = Coverage::default();
        for reservation in &self.reservations {
            reservation.cover(&mut open, &mut coverage);
        }
        for plan in &self.savings_plans {
            plan.cover(&mut open, &mut coverage);
        }
        coverage
    }

    /// The catalogue in which a launch that a commitment pays for already costs next to nothing.
    pub fn marginal(&self, catalog: &Catalog, coverage: &Coverage) -> Catalog {
        let left: Vec<Dollars> = coverage.commitments.iter().map(Used::unused_usd_h).collect();
        let is_free = |entry: &CatalogType, offering: &CatalogOffering| {
            let value = |key: &str| {
                let requirement = offering.requirements.iter().find(|it| *it.key == *key)?;
                requirement.values.first().map(ToString::to_string)
            };
            let is_on_demand = value(CAPACITY_TYPE).as_deref() == Some(CAPACITY_TYPE_ON_DEMAND);
            let zone = value(ZONE).unwrap_or_default();
            let reserved = self.reservations.iter().zip(&left).any(|(reservation, left)| {
                reservation.is_for(entry.name.as_str(), &zone) && *left >= reservation.usd_per_hour
            });
            let left = left.iter().skip(self.reservations.len());
            let planned = self.savings_plans.iter().zip(left).any(|(plan, left)| {
                plan.is_for(entry.name.as_str()) && *left >= Dollars::from(plan.rate(offering.price))
            });
            is_on_demand && offering.price > FREE && (reserved || planned)
        };
        let mut catalog = catalog.clone();
        let variants = catalog.node_pool_variants.values_mut().flatten();
        for entry in catalog.instance_types.iter_mut().chain(variants) {
            if entry.offerings.iter().any(|offering| is_free(entry, offering)) {
                let mut cheaper = CatalogType::clone(entry);
                for offering in &mut cheaper.offerings {
                    if is_free(entry, offering) {
                        offering.price = FREE;
                    }
                }
                *entry = Arc::new(cheaper);
            }
        }
        catalog
    }
}

fn is_on_demand(machine: &Machine<'_>) -> bool {
    machine.capacity_type.as_deref() == Some(CAPACITY_TYPE_ON_DEMAND) && machine.price.is_some()
}

impl Reservation {
    fn is_for(&self, instance_type: &str, zone: &str) -> bool {
        self.instance_type == instance_type && self.zone.as_deref().is_none_or(|wanted| wanted == zone)
    }

    fn cover(&self, open: &mut Vec<&Machine<'_>>, coverage: &mut Coverage) {
        let is_its = |machine: &&&Machine<'_>| {
            let text = |value: &Option<Text>| value.as_deref().unwrap_or_default().to_owned();
            self.is_for(&text(&machine.instance_type), &text(&machine.zone))
        };
        let its: Vec<&Machine<'_>> = open.iter().filter(is_its).copied().collect();
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        // Who goes makes room for one that is not covered, which then costs less.
        let is_short = its.len() > count;
        let rate = self.usd_per_hour.size();
        for machine in its.iter().take(count) {
            let listed = machine.price.unwrap_or_default();
            let covered = Covered {
                paid: rate,
                listed,
                marginal: if is_short { listed } else { Price::ZERO },
            };
            coverage.machines.insert(machine.name.clone(), covered);
        }
        open.retain(|machine| !coverage.machines.contains_key(&machine.name));
        let times = |number: usize| {
            Dollars(
                self.usd_per_hour
                    .0
                    .saturating_mul(i128::try_from(number).unwrap_or_default()),
            )
        };
        coverage.commitments.push(Used {
            name: self.name.clone(),
            committed_usd_h: times(count),
            used_usd_h: times(its.len().min(count)),
        });
    }
}

impl SavingsPlan {
    fn is_for(&self, instance_type: &str) -> bool {
        let family = instance_type
            .split_once('.')
            .map_or(instance_type, |(family, _)| family);
        self.families.is_empty() || self.families.iter().any(|wanted| wanted == family)
    }

    /// What a price on demand comes to.
    fn rate(&self, listed: Price) -> Price {
        let kept = u64::from(100 - self.discount_percent.min(100));
        Price::from_picos(u64::try_from(u128::from(listed.picos()) * u128::from(kept) / 100).unwrap_or(u64::MAX))
    }

    fn cover(&self, open: &mut Vec<&Machine<'_>>, coverage: &mut Coverage) {
        let its: Vec<&Machine<'_>> = open
            .iter()
            .filter(|machine| machine.instance_type.as_deref().is_some_and(|name| self.is_for(name)))
            .copied()
            .collect();
        let wanted: Dollars = its
            .iter()
            .map(|machine| Dollars::from(self.rate(machine.price.unwrap_or_default())))
            .sum();
        let is_short = wanted > self.usd_per_hour;
        let mut left = self.usd_per_hour;
        for machine in its {
            let listed = machine.price.unwrap_or_default();
            let rate = Dollars::from(self.rate(listed));
            if left <= Dollars::ZERO {
                break;
            }
            // The last may be covered in part: the rest of it is on demand.
            let covered = rate.min(left);
            let rest = Dollars::from(listed).part((rate - covered).size().picos(), rate.size().picos().max(1));
            left = left - covered;
            coverage.machines.insert(
                machine.name.clone(),
                Covered {
                    paid: (covered + rest).size(),
                    listed,
                    marginal: if is_short { listed } else { Price::ZERO },
                },
            );
        }
        open.retain(|machine| !coverage.machines.contains_key(&machine.name));
        coverage.commitments.push(Used {
            name: self.name.clone(),
            committed_usd_h: self.usd_per_hour,
            used_usd_h: self.usd_per_hour - left,
        });
    }
}
