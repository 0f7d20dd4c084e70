//! What node classes make of a cloud's machines: disks, pods, the system, the zones of their subnets.

use std::{collections::BTreeMap, sync::Arc};

use api::{aws::EC2NodeClass, azure::AKSNodeClass};
use model::{
    object::{NodePool, NodePoolName},
    snapshot::CatalogType,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Damaged, Loaded, Source, WINDOWS_PRICES, asks_for_windows, aws, azure, with_windows};

/// A node class, as far as machines differ by it.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeClass {
    /// Of Amazon EC2.
    Aws {
        /// What its machines are like.
        setup: aws::Setup,
        /// Where it has subnets; none where nobody has looked.
        zones: Vec<String>,
    },
    /// Of Azure.
    Azure(azure::Setup<'static>),
}

impl NodeClass {
    /// What a class of the cloud says, as it is written; none where that cannot be understood, or changes no machine.
    pub fn read(source: Source, class: &Value) -> Option<Self> {
        match source {
            Source::Aws => understood(class).map(|class| Self::of_ec2(&class)),
            Source::Azure => understood(class).map(|class| Self::of_aks(&class)),
            Source::Kwok => None,
        }
    }

    /// What an EC2NodeClass says.
    fn of_ec2(class: &EC2NodeClass) -> Self {
        let subnets = class.status.iter().flat_map(|status| &status.subnets);
        let mut zones: Vec<String> = subnets.map(|subnet| subnet.zone.clone()).collect();
        zones.sort();
        zones.dedup();
        Self::Aws {
            setup: aws::Setup::of(class),
            zones,
        }
    }

    /// What an AKSNodeClass says.
    fn of_aks(class: &AKSNodeClass) -> Self {
        Self::Azure(azure::Setup::of(class))
    }

    /// Whether its machines are to be had in every zone of the table.
    fn is_sold_wherever(&self, loaded: &Loaded) -> bool {
        match self {
            Self::Aws { zones, .. } => zones.is_empty() || loaded.zones.iter().all(|zone| zones.contains(zone)),
            Self::Azure(_) => true,
        }
    }

    fn has_windows(&self) -> bool {
        matches!(self, Self::Aws { setup, .. } if setup.os != aws::Os::Linux)
    }

    /// The types as it makes them; none where they are those of the table.
    fn types(&self, loaded: &Loaded) -> Result<Option<Vec<Arc<CatalogType>>>, Damaged> {
        let types = match self {
            Self::Aws { setup, zones } => {
                let sold = loaded.zones.iter();
                let zones: Vec<String> = sold
                    .filter(|zone| zones.is_empty() || zones.contains(zone))
                    .cloned()
                    .collect();
                if *setup == aws::Setup::default() && zones == loaded.zones {
                    return Ok(None);
                }
                aws::of_class(loaded, setup, &zones)?
            }
            Self::Azure(setup) if *setup == azure::Setup::default() => return Ok(None),
            Self::Azure(setup) => azure::of_class(loaded, setup)?,
        };
        Ok(Some(types))
    }
}

impl Loaded {
    /// The same where NodePools have machines as their node classes make them. Of a class that nobody has read the
    /// defaults hold, and what is assumed says so.
    pub fn of_classes<'p>(
        mut self,
        pools: impl IntoIterator<Item = (&'p NodePool, Option<NodeClass>)>,
    ) -> Result<Self, Damaged> {
        let mut known: Vec<(NodeClass, Option<Vec<_>>)> = Vec::new();
        let mut unknown: Vec<NodePoolName> = Vec::new();
        let mut has_windows = false;
        for (pool, class) in pools {
            let types = if let Some(class) = class {
                has_windows |= class.has_windows();
                self.as_made_by(class, &mut known)?
            } else {
                unknown.push(pool.name());
                let is_windows = self.source == Source::Aws && asks_for_windows(pool);
                has_windows |= is_windows;
                is_windows.then(|| sorted(with_windows(&self.catalog.instance_types)))
            };
            if let Some(types) = types {
                self.catalog.node_pool_variants.insert(pool.name(), types);
            }
        }
        if !known.is_empty() {
            self.assume_defaults_of(&unknown);
        }
        if let ([(class, Some(_))], []) = (known.as_slice(), unknown.as_slice())
            && class.is_sold_wherever(&self)
        {
            // What all have is nobody's own: it is kept, and read, once.
            let all = std::mem::take(&mut self.catalog.node_pool_variants);
            self.take_for_all(all.into_values().next().unwrap_or_default());
        }
        if has_windows {
            self.assumed.push(WINDOWS_PRICES.to_owned());
        }
        Ok(self)
    }

    /// Types of a class, made once for all pools that have it.
    fn as_made_by(
        &self,
        class: NodeClass,
        known: &mut Vec<(NodeClass, Option<Vec<Arc<CatalogType>>>)>,
    ) -> Result<Option<Vec<Arc<CatalogType>>>, Damaged> {
        if let Some((_, types)) = known.iter().find(|(it, _)| *it == class) {
            return Ok(types.clone());
        }
        let types = class.types(self)?.map(sorted);
        known.push((class, types.clone()));
        Ok(types)
    }

    /// The catalogue has these types instead of those of their names.
    fn take_for_all(&mut self, types: Vec<Arc<CatalogType>>) {
        let by_name: BTreeMap<_, _> = types.into_iter().map(|entry| (entry.name.clone(), entry)).collect();
        for entry in &mut self.catalog.instance_types {
            if let Some(own) = by_name.get(&entry.name) {
                *entry = Arc::clone(own);
            }
        }
    }

    /// Of these NodePools only the defaults are known.
    fn assume_defaults_of(&mut self, pools: &[NodePoolName]) {
        let is_about_them = |text: &String| [aws::CLASS_DEFAULTS, azure::CLASS_DEFAULTS].contains(&text.as_str());
        let Some(at) = self.assumed.iter().position(is_about_them) else {
            return;
        };
        let defaults = self.assumed.remove(at);
        if !pools.is_empty() {
            let pools: Vec<&str> = pools.iter().map(NodePoolName::as_str).collect();
            let of = if pools.len() == 1 { "NodePool" } else { "NodePools" };
            let told = format!("{defaults}, of {of} {}: the class was not read", pools.join(", "));
            self.assumed.insert(at, told);
        }
    }
}

/// A class as its provider reads it; without its status if that is what nobody understands.
fn understood<T: DeserializeOwned>(class: &Value) -> Option<T> {
    T::deserialize(class).ok().or_else(|| {
        let mut class = class.clone();
        class.as_object_mut()?.remove("status");
        T::deserialize(class).ok()
    })
}

/// As a catalogue wants what a pool describes in its own way.
fn sorted(mut types: Vec<Arc<CatalogType>>) -> Vec<Arc<CatalogType>> {
    types.sort_by(|one, other| one.name.cmp(&other.name));
    types
}
