//! What does a refused launch mean, and what is not to be asked for again for a while?

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::labels::{CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT, ZONE, azure::REGIONAL_ZONE};
use cloud::CloudError;
use model::snapshot::CatalogType;

use super::Chosen;
use crate::{
    arm::Failure,
    offers::{Shortage, SizeRecord},
};

const HOUR: Duration = Duration::from_hours(1);
/// Messages in conditions are no longer than this.
const LONGEST: usize = 1200;

/// What a refusal comes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    /// What is not to be had.
    pub(crate) shortages: Vec<Shortage>,
    /// As the caller hears of it.
    pub(crate) error: CloudError,
}

/// Which offerings a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Spot everywhere.
    AllSpot,
    /// The size everywhere, as both kinds of capacity.
    Everywhere,
    /// The size in every zone and without one, as this kind of capacity.
    AllZones,
    /// The size in all zones, or without one, as what was asked for; as this kind of capacity.
    Scope,
    /// The same, as both kinds.
    ScopeBoth,
    /// The size in this zone, as this kind of capacity.
    Zone,
    /// The same, as both kinds.
    ZoneBoth,
}

struct Class {
    reason: &'static str,
    reach: Reach,
    believed: Duration,
    message: String,
}

/// What a failed launch comes to. The first rule that fits counts.
pub(crate) fn refusal(failure: &Failure, chosen: &Chosen, record: &SizeRecord) -> Refusal {
    let Some(class) = classify(failure, chosen) else {
        return Refusal {
            shortages: Vec::new(),
            error: unclassified(failure, chosen),
        };
    };
    Refusal {
        shortages: shortages(&class, chosen, record),
        // The same claim is tried again, with what is left for it. Azure's own words say more than ours: which limit, how
        // much of it is used.
        error: CloudError::Create {
            reason: class.reason.to_owned(),
            message: cut(&format!("{} ({failure})", class.message)),
        },
    }
}

fn classify(failure: &Failure, chosen: &Chosen) -> Option<Class> {
    let (text, size, kind, zone) = (failure.text(), &chosen.entry.name, chosen.capacity_type, &chosen.zone);
    let is_not_allowed = failure.code == "OperationNotAllowed";
    let class = |reason, reach, believed, message: String| {
        Some(Class {
            reason,
            reach,
            believed,
            message,
        })
    };
    let minutes = Duration::from_mins;
    match failure.code.as_str() {
        _ if is_not_allowed && text.contains("LowPriorityCores") => class(
            "SubscriptionQuotaReached",
            Reach::AllSpot,
            HOUR,
            "this subscription has reached the regional vCPU quota for spot (LowPriorityQuota). To scale beyond this limit, please review the quota increase process here: https://docs.microsoft.com/en-us/azure/azure-portal/supportability/low-priority-quota"
                .to_owned(),
        ),
        _ if is_not_allowed && text.contains("Family Cores quota") => class(
            "SubscriptionQuotaReached",
            Reach::AllZones,
            if text.contains("Current Limit: 0") {
                HOUR
            } else {
                minutes(10)
            },
            format!(
                "subscription level {kind} vCPU quota for {size} has been reached (may try provision an alternative instance type)"
            ),
        ),
        "SkuNotAvailable" => class(
            "SKUNotAvailable",
            Reach::Scope,
            if chosen.is_spot() { HOUR } else { 23 * HOUR },
            format!(
                "the requested SKU is unavailable for instance type {size} in zone {zone} with capacity type {kind}, for more details please visit: https://aka.ms/azureskunotavailable"
            ),
        ),
        // AKS's own words for a size that a subscription may not have here, whatever the capacity.
        "VMSizeNotSupported" => class("SKUNotAvailable", Reach::Everywhere, 23 * HOUR, not_sold(size)),
        "BadRequest" if text.contains("is not supported for subscription") => {
            class("SKUNotAvailable", Reach::Everywhere, 23 * HOUR, not_sold(size))
        }
        "ZonalAllocationFailed" => class(
            "ZonalAllocationFailure",
            Reach::ZoneBoth,
            HOUR,
            format!(
                "unable to allocate resources in the selected zone ({zone}). (will try a different zone to fulfill your request)"
            ),
        ),
        "AllocationFailed" => class(
            "AllocationFailure",
            Reach::ScopeBoth,
            HOUR,
            format!(
                "unable to allocate resources with selected VM size ({size}). (will try a different VM size to fulfill your request)"
            ),
        ),
        "OverconstrainedZonalAllocationRequest" => class(
            "OverconstrainedZonalAllocationFailure",
            Reach::Zone,
            HOUR,
            format!(
                "unable to allocate resources in the selected zone ({zone}) with {kind} capacity type and {size} VM size. (will try a different zone, capacity type or VM size to fulfill your request)"
            ),
        ),
        "OverconstrainedAllocationRequest" => class(
            "OverconstrainedAllocationFailure",
            Reach::Scope,
            HOUR,
            format!("unable to allocate resources in all zones with {kind} capacity type and {size} VM size. (will try a different capacity type or VM size to fulfill your request)"),
        ),
        _ => None,
    }
}

fn not_sold(size: &impl std::fmt::Display) -> String {
    format!(
        "VM size {size} is not supported for this subscription in this location, for more details please visit: https://aka.ms/aks/vm-size-selector"
    )
}

/// A quota of the whole region leaves nothing to fall back to; anything else is tried again.
fn unclassified(failure: &Failure, chosen: &Chosen) -> CloudError {
    let text = failure.text();
    let is_regional_quota =
        failure.code == "OperationNotAllowed" && text.contains("exceeding approved Total Regional Cores quota");
    if is_regional_quota {
        return CloudError::InsufficientCapacity {
            message: cut(&format!(
                "regional {} vCPU quota limit for subscription has been reached. To scale beyond this limit, please review the quota increase process here: https://learn.microsoft.com/en-us/azure/quotas/regional-quota-requests ({failure})",
                chosen.capacity_type
            )),
            offerings: Vec::new(),
        };
    }
    if failure.is_throttled() {
        return failure.clone().into_cloud("creating virtual machine");
    }
    CloudError::Create {
        reason: "CreateInstanceFailed".to_owned(),
        message: cut(&format!("creating instance failed, {failure}")),
    }
}

fn shortages(class: &Class, chosen: &Chosen, record: &SizeRecord) -> Vec<Shortage> {
    if class.reach == Reach::AllSpot {
        return vec![Shortage::AllSpot {
            reason: class.reason,
            believed: class.believed,
        }];
    }
    let is_regional = |zone: &str| zone == REGIONAL_ZONE;
    let is_meant = |zone: &str| match class.reach {
        Reach::AllSpot | Reach::Everywhere | Reach::AllZones => true,
        Reach::Scope | Reach::ScopeBoth => is_regional(zone) == is_regional(&chosen.zone),
        Reach::Zone | Reach::ZoneBoth => zone == chosen.zone,
    };
    let are_both = matches!(class.reach, Reach::Everywhere | Reach::ScopeBoth | Reach::ZoneBoth);
    let places = places(&chosen.entry);
    let mut all = Vec::new();
    for zone in places.keys().filter(|zone| is_meant(zone)) {
        for kind in [CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT] {
            let is_sold_as = places.get(zone).is_some_and(|kinds| kinds.contains(kind));
            // Larger sizes of the family may be sold as what this one is not.
            if are_both || (kind == chosen.capacity_type && is_sold_as) {
                all.push(Shortage::Offering {
                    size: record.name.clone(),
                    family: record.quota_family.clone(),
                    vcpu: record.vcpu,
                    zone: (*zone).to_owned(),
                    capacity_type: kind.to_owned(),
                    reason: class.reason.to_owned(),
                    believed: class.believed,
                });
            }
        }
    }
    all
}

/// The zones of a size's offerings, and as which kinds of capacity it is sold there.
fn places(entry: &CatalogType) -> BTreeMap<&str, BTreeSet<&'static str>> {
    let mut places: BTreeMap<&str, BTreeSet<&'static str>> = BTreeMap::new();
    for offering in &entry.offerings {
        let value = |key: &str| {
            let found = offering.requirements.iter().find(|it| it.key == key)?;
            found.values.first().map(String::as_str)
        };
        let (Some(zone), Some(kind)) = (value(ZONE), value(CAPACITY_TYPE)) else {
            continue;
        };
        let kind = match kind {
            CAPACITY_TYPE_SPOT => CAPACITY_TYPE_SPOT,
            _ => CAPACITY_TYPE_ON_DEMAND,
        };
        places.entry(zone).or_default().insert(kind);
    }
    places
}

/// No longer than a condition's message may be.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests;
