//! What does the region offer? Sizes in the shape of the SKU API, and which of them a virtual machine may use where.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Setup, answer::Refusal, glob, knob::SkuChange};

const SKUS: &str = include_str!("../data/skus.json");

#[derive(Deserialize)]
struct Record {
    name: String,
    tier: String,
    size: String,
    family: String,
    zones: Vec<String>,
    capabilities: Vec<Capability>,
}

#[derive(Deserialize)]
struct Capability {
    name: String,
    value: String,
}

/// A size.
pub(crate) struct Sku {
    pub(crate) name: String,
    pub(crate) family: String,
    tier: String,
    size: String,
    zones: Vec<String>,
    /// In the order of the API, which no client may rely on.
    capabilities: Vec<(String, String)>,
    restricted_zones: Vec<String>,
    is_restricted: bool,
}

impl Sku {
    pub(crate) fn capability(&self, name: &str) -> Option<&str> {
        let found = self.capabilities.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.capability(name)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    pub(crate) fn number(&self, name: &str) -> i64 {
        let value = self.capability(name).and_then(|value| value.parse().ok());
        value.unwrap_or(0)
    }

    pub(crate) fn cores(&self) -> i64 {
        self.number("vCPUs")
    }

    fn set(&mut self, name: &str, value: &str) {
        match self.capabilities.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.capabilities.push((name.to_owned(), value.to_owned())),
        }
    }

    fn json(&self, region: &str) -> Value {
        let mut info = json!({"location": region, "zones": self.zones, "zoneDetails": []});
        if self.has_ultra_disks() {
            let capability = json!({"name": "UltraSSDAvailable", "value": "True"});
            info["zoneDetails"] = json!([{"name": ["1", "2"], "capabilities": [capability]}]);
        }
        let capabilities = self.capabilities.iter();
        let capabilities: Vec<Value> = capabilities
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        json!({
            "resourceType": "virtualMachines", "name": self.name, "tier": self.tier, "size": self.size,
            "family": self.family, "locations": [region], "locationInfo": [info],
            "capabilities": capabilities, "restrictions": self.restrictions(region),
        })
    }

    /// In two of three zones, as regions with an old part have it.
    fn has_ultra_disks(&self) -> bool {
        self.capability("UltraSSDAvailable").is_none() && self.zones.len() == 3 && self.size.ends_with("s_v5")
    }

    fn restrictions(&self, region: &str) -> Vec<Value> {
        let reason = "NotAvailableForSubscription";
        let mut restrictions = Vec::new();
        if self.is_restricted {
            restrictions.push(json!({
                "type": "Location", "values": [region], "reasonCode": reason,
                "restrictionInfo": {"locations": [region]},
            }));
        }
        if !self.restricted_zones.is_empty() {
            restrictions.push(json!({
                "type": "Zone", "values": [region], "reasonCode": reason,
                "restrictionInfo": {"locations": [region], "zones": self.restricted_zones},
            }));
        }
        restrictions
    }
}

/// All sizes of the region.
pub(crate) struct Catalogue {
    skus: BTreeMap<String, Sku>,
}

impl Catalogue {
    pub(crate) fn load(setup: &Setup) -> Result<Self> {
        let records: Vec<Record> = serde_json::from_str(SKUS).context("reading skus.json")?;
        let skus = records.into_iter().map(|record| {
            let zones = record.zones.into_iter().filter(|zone| setup.zones.contains(zone));
            let capabilities = record.capabilities.into_iter();
            let sku = Sku {
                name: record.name.clone(),
                family: record.family,
                tier: record.tier,
                size: record.size,
                zones: zones.collect(),
                capabilities: capabilities.map(|one| (one.name, one.value)).collect(),
                restricted_zones: Vec::new(),
                is_restricted: false,
            };
            (record.name.to_ascii_lowercase(), sku)
        });
        Ok(Self { skus: skus.collect() })
    }

    pub(crate) fn sku(&self, name: &str) -> Option<&Sku> {
        self.skus.get(&name.to_ascii_lowercase())
    }

    /// The families, each once, as the first of their sizes writes them.
    pub(crate) fn families(&self) -> BTreeMap<String, String> {
        let mut families = BTreeMap::new();
        for sku in self.skus.values() {
            families
                .entry(sku.family.to_ascii_lowercase())
                .or_insert_with(|| sku.family.clone());
        }
        families
    }

    pub(crate) fn change(&mut self, change: &SkuChange) -> Result<(), String> {
        let names = self.skus.keys().filter(|name| glob::fits(&change.name, name));
        let names: Vec<String> = names.cloned().collect();
        if names.is_empty() {
            return Err(format!("no size is called `{}`", change.name));
        }
        for name in names {
            if change.removed {
                self.skus.remove(&name);
                continue;
            }
            let Some(sku) = self.skus.get_mut(&name) else { continue };
            if let Some(zones) = &change.restricted_zones {
                sku.restricted_zones.clone_from(zones);
            }
            sku.is_restricted = change.restricted_location.unwrap_or(sku.is_restricted);
            for (capability, value) in &change.capabilities {
                sku.set(capability, value);
            }
        }
        Ok(())
    }

    /// What the SKU API lists: sizes, and other things among them.
    pub(crate) fn list(&self, region: &str) -> Vec<Value> {
        let mut list: Vec<Value> = self.skus.values().map(|sku| sku.json(region)).collect();
        list.push(json!({
            "resourceType": "disks", "name": "Premium_LRS", "tier": "Premium", "size": "P10", "locations": [region],
            "locationInfo": [{"location": region, "zones": ["1", "2", "3"]}],
            "capabilities": [{"name": "MaxSizeGiB", "value": "128"}], "restrictions": [],
        }));
        list.push(json!({
            "resourceType": "availabilitySets", "name": "Aligned", "locations": [region],
            "locationInfo": [{"location": region, "zones": []}],
            "capabilities": [{"name": "MaximumPlatformFaultDomainCount", "value": "3"}], "restrictions": [],
        }));
        list
    }

    /// A size that the subscription may use in a zone, or in the region if no zone is named.
    pub(crate) fn usable(&self, setup: &Setup, size: &str, zone: Option<&str>) -> Result<&Sku, Refusal> {
        let region = &setup.region;
        let sku = self.sku(size).ok_or_else(|| {
            let message = format!(
                "The value {size} provided for the VM size is not valid. The valid sizes in the current region are: the \
                 list of the SKU API for {region}."
            );
            Refusal::bad("InvalidParameter", message).at("vmSize")
        })?;
        if let Some(zone) = zone.filter(|zone| !setup.zones.iter().any(|known| known == zone)) {
            let message = format!("The zone(s) '{zone}' for resource is not supported in location '{region}'.");
            return Err(Refusal::bad("InvalidAvailabilityZone", message).at("zones"));
        }
        let elsewhere = |zone: &str| {
            let is_there = sku.zones.iter().any(|known| known == zone);
            !is_there || sku.restricted_zones.iter().any(|known| known == zone)
        };
        if sku.is_restricted || zone.is_some_and(elsewhere) {
            return Err(crate::allocation::refusal(409, "SkuNotAvailable", size, region));
        }
        Ok(sku)
    }
}
