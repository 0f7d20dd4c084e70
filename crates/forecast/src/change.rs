//! What is changed on the copy: a node gone, a zone down, other prices, other manifests, more or fewer replicas.

use std::{collections::BTreeSet, sync::Arc};

use api::{
    annotations::{NODEPOOL_HASH, NODEPOOL_HASH_VERSION},
    karpenter::NODEPOOL_HASH_VERSION as HASH_VERSION,
    labels::{CAPACITY_TYPE, CAPACITY_TYPE_SPOT, ZONE},
};
use model::{
    object::{List, Map, NodeClassReference, NodeName, NodePool, NodeSelectorRequirement, Text},
    requirement::{Operator, RequirementSpec},
    snapshot::{Catalog, CatalogOffering, CatalogType, Objects, Snapshot},
};
use serde_json::Value;

use crate::{
    field::{self, Astray},
    workload::{self, Workload},
};

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A node goes.
    RemoveNode(String),
    /// A zone goes down: its nodes go, and nothing can be launched there. A unique ending such as `b` will do.
    ZoneDown(String),
    /// Spot costs more or less: `+40%`, `-0.01`.
    SpotPrice(String),
    /// An instance family is taken from all NodePools, or added where they name families.
    Family(Direction, String),
    /// A workload has other replicas.
    Scale(Workload, u32),
    /// Manifests are applied.
    Apply(Box<Objects>),
    /// A field of a NodePool has another value; the path begins at the object: `spec.limits.cpu`.
    Set {
        /// Which.
        node_pool: String,
        /// The field.
        path: String,
        /// Its value.
        value: Value,
    },
}

/// Taken or added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Taken.
    Without,
    /// Added.
    With,
}

/// A change that does not fit the cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}")]
pub struct Misfit {
    /// What was asked.
    pub what: String,
    /// Why that cannot be.
    pub why: String,
    /// What to ask instead.
    pub next: String,
}

impl Misfit {
    pub(crate) fn new(what: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
            next: next.into(),
        }
    }
}

/// A cluster after changes, before anybody reacted to them.
#[derive(Debug, Clone)]
pub struct Changed {
    /// The cluster.
    pub snapshot: Snapshot,
    /// Nodes that go because of the changes; they are still in the snapshot.
    pub removed: BTreeSet<NodeName>,
    /// What was changed, in words.
    pub said: Vec<String>,
    /// What had to be taken for granted.
    pub assumed: Vec<String>,
}

/// Applies changes, one after the other.
pub fn changed(snapshot: &Snapshot, changes: &[Change]) -> Result<Changed, Misfit> {
    let mut changed = Changed {
        snapshot: snapshot.clone(),
        removed: BTreeSet::new(),
        said: Vec::new(),
        assumed: Vec::new(),
    };
    for change in changes {
        changed.apply(change)?;
    }
    Ok(changed)
}

impl Changed {
    fn apply(&mut self, change: &Change) -> Result<(), Misfit> {
        match change {
            Change::RemoveNode(name) => self.remove_node(name),
            Change::ZoneDown(zone) => self.zone_down(zone),
            Change::SpotPrice(by) => self.spot_price(by),
            Change::Family(direction, family) => self.family(*direction, family),
            Change::Scale(workload, replicas) => {
                let scaled = workload::scaled(&self.snapshot, workload, *replicas)?;
                self.said.push(scaled.said);
                self.assumed.extend(scaled.assumed);
                self.snapshot = scaled.snapshot;
                Ok(())
            }
            Change::Apply(objects) => self.apply_objects(objects),
            Change::Set { node_pool, path, value } => self.set(node_pool, path, value),
        }
    }

    fn remove_node(&mut self, wanted: &str) -> Result<(), Misfit> {
        let nodes = self.snapshot.objects().nodes.iter();
        let names: Vec<NodeName> = nodes.map(|node| node.name()).collect();
        let exact = names.iter().find(|name| name.as_str() == wanted);
        let mut begins = names.iter().filter(|name| name.as_str().starts_with(wanted));
        let name = match (exact, begins.next(), begins.next()) {
            (Some(name), ..) | (None, Some(name), None) => name.clone(),
            (None, Some(one), Some(other)) => {
                let why = format!("{one}, {other} and perhaps others begin with it");
                return Err(Misfit::new(format!("which node is {wanted}"), why, "name it in full"));
            }
            (None, None, _) => {
                let known: Vec<&str> = names.iter().map(NodeName::as_str).take(5).collect();
                let why = format!("there are {} nodes: {} …", names.len(), known.join(", "));
                return Err(Misfit::new(
                    format!("no node {wanted}"),
                    why,
                    "kubectl get nodes lists them",
                ));
            }
        };
        self.said.push(format!("node {name} gone"));
        self.removed.insert(name);
        Ok(())
    }

    fn zone_down(&mut self, wanted: &str) -> Result<(), Misfit> {
        let zones = zones(self.snapshot.catalog());
        let fits = |zone: &&String| zone.as_str() == wanted || zone.ends_with(wanted);
        let mut found = zones.iter().filter(fits);
        let exact = zones.iter().find(|zone| *zone == wanted);
        let zone = match (exact, found.next(), found.next()) {
            (Some(zone), ..) | (None, Some(zone), None) => zone.clone(),
            _ => {
                let known: Vec<&str> = zones.iter().map(String::as_str).collect();
                let why = format!("zones with offers are {}", known.join(", "));
                return Err(Misfit::new(format!("no one zone {wanted}"), why, "name one of them"));
            }
        };
        let in_zone = |labels: &Map<Text>| labels.get(ZONE).is_some_and(|it| **it == *zone);
        let nodes = self.snapshot.objects().nodes.iter();
        let lost = nodes.filter(|node| in_zone(&node.metadata.labels));
        self.removed.extend(lost.map(|node| node.name()));
        self.offers(|offering| {
            if names(offering, ZONE).is_some_and(|values| values.contains(&zone)) {
                offering.available = false;
            }
        });
        self.said.push(format!("zone {zone} down"));
        Ok(())
    }

    fn spot_price(&mut self, by: &str) -> Result<(), Misfit> {
        let dollar = model::price::Price::from_picos(1);
        if dollar.adjusted(by).is_err() {
            let why = "a change of price is a signed percentage or amount";
            return Err(Misfit::new(format!("spot price {by}"), why, "--spot-price +40%"));
        }
        self.offers(|offering| {
            let is_spot = |values: &[String]| values.iter().any(|value| value == CAPACITY_TYPE_SPOT);
            if names(offering, CAPACITY_TYPE).is_some_and(is_spot)
                && let Ok(price) = offering.price.adjusted(by)
            {
                offering.price = price;
            }
        });
        self.said.push(format!("spot {by}"));
        Ok(())
    }

    fn family(&mut self, direction: Direction, family: &str) -> Result<(), Misfit> {
        let keys = ["/instance-family", "/sku-family"];
        let labels = &self.snapshot.catalog().well_known_labels;
        let Some(key) = labels
            .iter()
            .find(|key| keys.iter().any(|end| key.ends_with(end)))
            .cloned()
        else {
            let why = "the catalogue has no label for families";
            return Err(Misfit::new(
                format!("instance family {family}"),
                why,
                "change a NodePool with -f",
            ));
        };
        let known = families(self.snapshot.catalog(), &key);
        if !known.contains(family) {
            let near: Vec<&String> = known
                .iter()
                .filter(|it| it.starts_with(&family[..1.min(family.len())]))
                .collect();
            let near: Vec<&str> = near.iter().map(|it| it.as_str()).take(12).collect();
            let why = format!("the catalogue has no such family; near it are {}", near.join(", "));
            return Err(Misfit::new(
                format!("instance family {family}"),
                why,
                "name one of them",
            ));
        }
        let pools: Vec<_> = self.snapshot.objects().node_pools.iter().cloned().collect();
        for pool in pools {
            let mut after = NodePool::clone(&pool);
            let spec = &mut after.spec.template.spec;
            spec.requirements = match direction {
                Direction::Without => without_family(&spec.requirements, &key, family),
                Direction::With => with_family(&spec.requirements, &key, family),
            };
            self.replace_pool(after);
        }
        let word = if direction == Direction::With {
            "with"
        } else {
            "without"
        };
        self.said.push(format!("{word} instance family {family}"));
        Ok(())
    }

    fn apply_objects(&mut self, objects: &Objects) -> Result<(), Misfit> {
        let objects = &workload::in_a_namespace(objects);
        let mut names = Vec::new();
        for pool in objects.node_pools.iter() {
            names.push(format!("NodePool {}", pool.metadata.name));
            self.replace_pool(NodePool::clone(pool));
        }
        for workload in workload::applied(objects) {
            names.push(workload.to_string());
            let scaled = workload::replaced(&self.snapshot, objects, &workload)?;
            self.assumed.extend(scaled.assumed);
            self.snapshot = scaled.snapshot;
        }
        let others = workload::others(objects);
        names.extend(others);
        self.snapshot = self.snapshot.overlaid(|into| workload::overlay(into, objects));
        if names.is_empty() {
            let why = "they hold no NodePool, workload, Pod, budget or overlay";
            return Err(Misfit::new(
                "the files change nothing",
                why,
                "name files with such manifests",
            ));
        }
        self.said.push(format!("{} applied", names.join(", ")));
        Ok(())
    }

    fn set(&mut self, name: &str, path: &str, value: &Value) -> Result<(), Misfit> {
        let what = format!("nodepool/{name}.{path}");
        let Some(pool) = self.snapshot.objects().node_pools.find("", name) else {
            let pools = self.snapshot.objects().node_pools.iter();
            let known: Vec<String> = pools.map(|pool| pool.metadata.name.to_string()).collect();
            let why = format!("there is no NodePool {name}; there are {}", known.join(", "));
            return Err(Misfit::new(what, why, "--set nodepool/NAME.spec.limits.cpu=100"));
        };
        let steps = field::steps(path).map_err(|astray| unknown_field(&what, &astray))?;
        let mut document = serde_json::to_value(&**pool).unwrap_or_default();
        let Some(place) = at(&mut document, &steps) else {
            let why = "a part of the path is inside a value that has no such field or entry";
            return Err(Misfit::new(what, why, "kubectl explain nodepool.spec tells the fields"));
        };
        *place = value.clone();
        let read: NodePool = serde_json::from_value(document).map_err(|error| {
            Misfit::new(
                &*what,
                error.to_string(),
                "kubectl explain nodepool.spec tells the fields and their types",
            )
        })?;
        self.replace_pool(read);
        self.said.push(format!("{what} = {value}"));
        Ok(())
    }

    /// A pool is changed or new. Nodes that it no longer describes drift, so they go.
    fn replace_pool(&mut self, mut pool: NodePool) {
        let before = self.snapshot.node_pool(&pool.name()).cloned();
        if let Some(before) = &before {
            pool.metadata = before.metadata.clone();
            pool.status = before.status.clone();
        } else {
            pool.status.conditions = ready();
        }
        match hash(&pool) {
            Some(hash) => stamp(&mut pool, &hash),
            None => self
                .assumed
                .push(format!("the hash of NodePool {} is not known", pool.metadata.name)),
        }
        let drifts = |claim: &&Arc<model::object::NodeClaim>| disruption::drift_from_pool(&pool, claim).is_some();
        let had = |claim: &&Arc<model::object::NodeClaim>| {
            let before = before.as_ref();
            before.is_some_and(|before| disruption::drift_from_pool(before, claim).is_some())
        };
        let name = pool.name();
        let claims = self.snapshot.claims_of_pool(&name);
        let drifted = claims.filter(drifts).filter(|claim| !had(claim));
        let nodes: Vec<NodeName> = drifted
            .filter_map(|claim| self.snapshot.node_of_claim(claim))
            .map(|node| node.name())
            .collect();
        self.removed.extend(nodes);
        let class_before = before.as_ref().and_then(|before| class_of(before));
        if class_before != class_of(&pool) {
            self.offer_as_others_of(&pool);
        }
        self.snapshot = self.snapshot.with_node_pool(pool);
    }

    /// A pool with another node class is offered what other pools of that class are: what the class makes of machines.
    fn offer_as_others_of(&mut self, pool: &NodePool) {
        let (own, catalog) = (pool.name(), self.snapshot.catalog());
        let others = &self.snapshot.objects().node_pools;
        let is_alike = |other: &&Arc<NodePool>| other.name() != own && class_of(other) == class_of(pool);
        let alike = others.iter().find(is_alike).map(|other| other.name());
        let types = alike.as_ref().and_then(|it| catalog.node_pool_instance_types.get(it));
        let variants = alike.as_ref().and_then(|it| catalog.node_pool_variants.get(it));
        let (types, variants) = (types.cloned(), variants.cloned());
        let mut catalog = catalog.clone();
        catalog.node_pool_instance_types.remove(&own);
        catalog.node_pool_variants.remove(&own);
        let types = types.map(|types| (own.clone(), types));
        catalog.node_pool_instance_types.extend(types);
        catalog.node_pool_variants.extend(variants.map(|types| (own, types)));
        let (title, settings) = (self.snapshot.title().clone(), self.snapshot.settings().clone());
        self.snapshot = Snapshot::new(title, settings, self.snapshot.objects().clone(), catalog);
    }

    /// Changes every offering of the catalogue.
    fn offers(&mut self, change: impl Fn(&mut CatalogOffering)) {
        let changed = |entry: &Arc<CatalogType>| {
            let mut entry = CatalogType::clone(entry);
            entry.offerings.iter_mut().for_each(&change);
            Arc::new(entry)
        };
        let catalog = self.snapshot.catalog();
        let variants = catalog.node_pool_variants.iter();
        let catalog = Catalog {
            instance_types: catalog.instance_types.iter().map(&changed).collect(),
            node_pool_variants: variants
                .map(|(pool, own)| (pool.clone(), own.iter().map(&changed).collect()))
                .collect(),
            ..catalog.clone()
        };
        let (title, settings) = (self.snapshot.title().clone(), self.snapshot.settings().clone());
        self.snapshot = Snapshot::new(title, settings, self.snapshot.objects().clone(), catalog);
    }
}

/// The node class of a pool.
fn class_of(pool: &NodePool) -> Option<&NodeClassReference> {
    pool.spec.template.spec.node_class_ref.as_ref()
}

fn unknown_field(what: &str, astray: &Astray) -> Misfit {
    let Astray { word, within, known } = astray;
    if known.is_empty() {
        let why = format!("{within} has no {word} in it");
        return Misfit::new(what, why, "kubectl explain nodepool.spec tells the fields");
    }
    let why = format!("a NodePool has no {within}.{word}: there is {}", known.join(", "));
    Misfit::new(what, why, format!("--set nodepool/NAME.{within}.FIELD=VALUE"))
}

/// What is at the end of a path; what an object does not have yet is made.
fn at<'a>(document: &'a mut Value, steps: &[String]) -> Option<&'a mut Value> {
    steps.iter().try_fold(document, |place, part| match place {
        Value::Array(items) => items.get_mut(part.parse::<usize>().ok()?),
        Value::Null | Value::Object(_) => Some(&mut place[part.as_str()]),
        _ => None,
    })
}

/// The values an offering names for a label.
fn names<'a>(offering: &'a CatalogOffering, key: &str) -> Option<&'a [String]> {
    let wanted = |it: &&RequirementSpec| it.key == key && it.operator == Operator::In;
    offering.requirements.iter().find(wanted).map(|it| it.values.as_slice())
}

fn zones(catalog: &Catalog) -> BTreeSet<String> {
    let offerings = catalog.instance_types.iter().flat_map(|entry| &entry.offerings);
    let zones = offerings.filter_map(|offering| names(offering, ZONE));
    zones.flatten().cloned().collect()
}

fn families(catalog: &Catalog, key: &str) -> BTreeSet<String> {
    let requirements = catalog.instance_types.iter().flat_map(|entry| &entry.requirements);
    let families = requirements.filter(|it| it.key == key).flat_map(|it| &it.values);
    families.cloned().collect()
}

fn without_family(
    requirements: &List<NodeSelectorRequirement>,
    key: &Text,
    family: &str,
) -> List<NodeSelectorRequirement> {
    let excluded = NodeSelectorRequirement {
        key: key.clone(),
        operator: "NotIn".into(),
        values: vec![family.into()].into(),
        min_values: None,
    };
    requirements.iter().cloned().chain([excluded]).collect()
}

/// Where a pool names the families it takes, it takes this one too; where it excludes it, no longer.
fn with_family(
    requirements: &List<NodeSelectorRequirement>,
    key: &Text,
    family: &str,
) -> List<NodeSelectorRequirement> {
    let widened = requirements.iter().map(|it| {
        let mut it = it.clone();
        if it.key != *key {
            return it;
        }
        let has = it.values.iter().any(|value| **value == *family);
        match (&*it.operator, has) {
            ("In", false) => it.values = it.values.iter().cloned().chain([Text::from(family)]).collect(),
            ("NotIn", true) => it.values = it.values.iter().filter(|value| ***value != *family).cloned().collect(),
            _ => {}
        }
        it
    });
    let is_meant = |it: &NodeSelectorRequirement| !(*it.operator == *"NotIn" && it.values.is_empty());
    widened.filter(is_meant).collect()
}

fn hash(pool: &NodePool) -> Option<String> {
    let metadata = serde_json::json!({ "name": pool.metadata.name });
    let spec = serde_json::to_value(&pool.spec).ok()?;
    let read: api::karpenter::NodePool =
        serde_json::from_value(serde_json::json!({ "metadata": metadata, "spec": spec })).ok()?;
    Some(read.hash())
}

fn stamp(pool: &mut NodePool, hash: &str) {
    let keys = [NODEPOOL_HASH, NODEPOOL_HASH_VERSION];
    let others = pool.metadata.annotations.iter();
    let others = others.filter(|(key, _)| !keys.contains(&&**key)).cloned();
    let stamps = [(NODEPOOL_HASH, hash), (NODEPOOL_HASH_VERSION, HASH_VERSION)];
    let stamps = stamps.map(|(key, value)| (Text::from(key), Text::from(value)));
    pool.metadata.annotations = Map::from_pairs(others.chain(stamps).collect());
}

/// A new pool is taken to be ready: its node class exists.
fn ready() -> List<model::object::Condition> {
    let condition = model::object::Condition {
        kind: "Ready".into(),
        status: model::object::ConditionStatus::True,
        reason: "Ready".into(),
        ..model::object::Condition::default()
    };
    vec![condition].into()
}
