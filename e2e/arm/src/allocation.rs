//! Is there room for one more virtual machine? Quotas that count cores, stock by size, zone and capacity type, and how
//! Azure tells that there is none.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    Setup,
    answer::Refusal,
    catalogue::{Catalogue, Sku},
    glob,
    knob::{Quota, Stock, When},
    world::World,
};

/// All codes by which Azure tells that something cannot be had. `OperationNotAllowed` is the quota's.
pub const CODES: [&str; 6] = [
    "SkuNotAvailable",
    "ZonalAllocationFailed",
    "AllocationFailed",
    "OverconstrainedZonalAllocationRequest",
    "OverconstrainedAllocationRequest",
    "OperationNotAllowed",
];

/// What a virtual machine or a machine of AKS needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) size: String,
    pub(crate) zone: Option<String>,
    pub(crate) is_spot: bool,
}

impl Wish {
    /// From the body of a virtual machine or of a machine of AKS.
    pub(crate) fn of(body: &Value) -> Self {
        let properties = &body["properties"];
        let size = &properties["hardwareProfile"]["vmSize"];
        let size = size.as_str().or_else(|| properties["hardware"]["vmSize"].as_str());
        Self {
            size: size.unwrap_or_default().to_owned(),
            zone: body["zones"][0].as_str().map(ToOwned::to_owned),
            is_spot: properties["priority"] == "Spot",
        }
    }

    pub(crate) fn capacity(&self) -> &'static str {
        if self.is_spot { "spot" } else { "on-demand" }
    }

    pub(crate) fn fits(&self, size: &str, zone: &str, capacity: &str) -> bool {
        glob::fits(size, &self.size)
            && glob::fits(zone, self.zone.as_deref().unwrap_or_default())
            && glob::fits(capacity, self.capacity())
    }
}

/// How many cores there may be.
pub(crate) struct Limits {
    default: i64,
    set: BTreeMap<String, i64>,
}

impl Limits {
    pub(crate) fn new(default: i64) -> Self {
        Self {
            default,
            set: BTreeMap::new(),
        }
    }

    pub(crate) fn set(&mut self, quota: &Quota) {
        self.set.insert(quota.family.to_ascii_lowercase(), quota.limit);
    }

    fn of(&self, name: &str) -> i64 {
        let set = self.set.get(&name.to_ascii_lowercase());
        set.copied().unwrap_or(self.default)
    }
}

impl World {
    /// Cores in use: of a family, of the region (`cores`), or of spot (`lowPriorityCores`).
    pub(crate) fn cores_used(&self, name: &str) -> i64 {
        let counted = self.vms.all().filter(|vm| vm.holds_cores());
        let counted = counted.filter_map(|vm| Some((vm, self.catalogue.sku(&vm.wish.size)?)));
        let counted = counted.filter(|(vm, sku)| match name.to_ascii_lowercase().as_str() {
            "cores" => !vm.wish.is_spot,
            "lowprioritycores" => vm.wish.is_spot,
            family => !vm.wish.is_spot && sku.family.eq_ignore_ascii_case(family),
        });
        counted.map(|(_, sku)| sku.cores()).sum()
    }

    /// The usages as the API lists them.
    pub(crate) fn usages(&self) -> Vec<Value> {
        let entry = |value: &str, localized: String, used: i64| {
            json!({
                "unit": "Count", "currentValue": used, "limit": self.limits.of(value),
                "name": {"value": value, "localizedValue": localized},
            })
        };
        let mut list = vec![
            entry("availabilitySets", "Availability Sets".to_owned(), 0),
            entry("cores", "Total Regional vCPUs".to_owned(), self.cores_used("cores")),
            entry("virtualMachines", "Virtual Machines".to_owned(), self.machine_count()),
            entry(
                "lowPriorityCores",
                "Total Regional Spot vCPUs".to_owned(),
                self.cores_used("lowPriorityCores"),
            ),
        ];
        for family in self.catalogue.families().values() {
            list.push(entry(family, format!("{family} vCPUs"), self.cores_used(family)));
        }
        list
    }

    fn machine_count(&self) -> i64 {
        i64::try_from(self.vms.all().count()).unwrap_or(i64::MAX)
    }

    /// Whether a wish can be granted: not at all (an error), or so that the operation fails in the end.
    pub(crate) fn allocate(&self, wish: &Wish) -> Result<Option<Refusal>, Refusal> {
        let sku = self.catalogue.usable(&self.setup, &wish.size, wish.zone.as_deref())?;
        if wish.is_spot && !sku.has("LowPriorityCapable") {
            let message = format!(
                "Azure Spot Virtual Machine is not supported for this VM size {}.",
                wish.size
            );
            return Err(Refusal::bad("BadRequest", message));
        }
        self.within_quota(wish, sku)?;
        let Some(rule) = self.stock.iter().find(|rule| self.is_sold_out(rule, wish)) else {
            return Ok(None);
        };
        let refusal = refusal(409, &rule.code, &wish.size, &self.setup.region);
        match rule.when {
            When::Sync => Err(refusal),
            When::Async => Ok(Some(refusal)),
        }
    }

    fn is_sold_out(&self, rule: &Stock, wish: &Wish) -> bool {
        let fits = |wish: &Wish| wish.fits(&rule.size, &rule.zone, &rule.capacity);
        let there = self.vms.all().filter(|vm| vm.holds_cores() && fits(&vm.wish));
        fits(wish) && there.count() >= rule.limit
    }

    fn within_quota(&self, wish: &Wish, sku: &Sku) -> Result<(), Refusal> {
        let names = if wish.is_spot {
            vec![("lowPriorityCores".to_owned(), "LowPriorityCores".to_owned())]
        } else {
            vec![
                (sku.family.clone(), format!("{} Cores", sku.family)),
                ("cores".to_owned(), "Total Regional Cores".to_owned()),
            ]
        };
        for (name, words) in names {
            let (limit, used, more) = (self.limits.of(&name), self.cores_used(&name), sku.cores());
            if used + more > limit {
                return Err(over_quota(&self.setup, &words, limit, used, more));
            }
        }
        Ok(())
    }
}

fn over_quota(setup: &Setup, words: &str, limit: i64, used: i64, more: i64) -> Refusal {
    let message = format!(
        "Operation could not be completed as it results in exceeding approved {words} quota. Additional details - \
         Deployment Model: Resource Manager, Location: {}, Current Limit: {limit}, Current Usage: {used}, Additional \
         Required: {more}, (Minimum) New Limit Required: {}. Submit a request for Quota increase by specifying parameters \
         listed in the 'Details' section for deployment to succeed.",
        setup.region,
        used + more
    );
    Refusal::new(409, "OperationNotAllowed", message)
}

/// An error of one of the [`CODES`] in the words of Azure.
pub(crate) fn refusal(status: u16, code: &str, size: &str, region: &str) -> Refusal {
    let guidance = "Read more about improving likelihood of allocation success at http://aka.ms/allocation-guidance";
    let message = match code {
        "SkuNotAvailable" => format!(
            "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: {size}' is \
             currently not available in location '{region}'. Please try another size or deploy to a different location \
             or different zone. See https://aka.ms/azureskunotavailable for details."
        ),
        "ZonalAllocationFailed" => {
            format!(
                "Allocation failed. We do not have sufficient capacity for the requested VM size in this zone. {guidance}"
            )
        }
        "AllocationFailed" => format!(
            "Allocation failed. We do not have sufficient capacity for the requested VM size in this region. {guidance}"
        ),
        "OverconstrainedZonalAllocationRequest" | "OverconstrainedAllocationRequest" => format!(
            "Allocation failed. VM(s) with the following constraints cannot be allocated, because the condition is too \
             restrictive. Please remove some constraints and try again. Constraints applied are: VM Size ({size}), \
             Networking Constraints (such as Accelerated Networking or IPv6)"
        ),
        "OperationNotAllowed" => {
            "Operation could not be completed as it results in exceeding approved quota.".to_owned()
        }
        "TooManyRequests" => {
            "The server rejected the request because too many requests have been received for this subscription."
                .to_owned()
        }
        "AuthorizationFailed" => {
            "The client does not have authorization to perform the action over the scope.".to_owned()
        }
        other => format!("{other}: told by a knob of the double"),
    };
    Refusal::new(status, code, message)
}

/// The quotas' names that are not families, for whoever reads the state.
pub(crate) fn quota_state(world: &World) -> BTreeMap<String, i64> {
    let names = ["cores", "lowPriorityCores"].map(ToOwned::to_owned);
    let families = families(&world.catalogue);
    let all = names.into_iter().chain(families);
    all.map(|name| (name.clone(), world.cores_used(&name)))
        .filter(|(_, used)| *used > 0)
        .collect()
}

fn families(catalogue: &Catalogue) -> Vec<String> {
    catalogue.families().into_values().collect()
}
