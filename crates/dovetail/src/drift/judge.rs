//! Is a node still what its NodePool and its NodeClass ask for, today and after a change?

use std::collections::BTreeMap;

use api::{
    annotations::{NODEPOOL_HASH, NODEPOOL_HASH_VERSION, aws, azure},
    condition::names::nodeclaim::{DRIFTED, LAUNCHED},
};
use model::{
    object::{NodeClaim, NodePool, Pod, condition},
    requirement::{Operator, RequirementSpec, Requirements, UndefinedLabels},
    vocabulary::Vocabulary,
};
use serde_json::Value;

use crate::{
    failure::Failure,
    raw::{self, Raw},
};

/// What of a cluster drift is about.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    pub(super) pools: BTreeMap<String, NodePool>,
    pub(super) claims: Vec<NodeClaim>,
    /// Pools and classes as they are written, by kind and name.
    written: BTreeMap<(String, String), Value>,
    /// The same before a change, completed as the API server would: a dump by hand may lack what it writes.
    before: BTreeMap<(String, String), Value>,
    /// Pods by node.
    pods: BTreeMap<String, usize>,
    /// What could not be compared, a sentence each.
    pub(super) unknown: Vec<String>,
}

/// How a node differs from what is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Drift {
    /// One word, as upstream has it.
    pub(super) why: String,
    pub(super) detail: String,
    /// Whether the controller has said so already: what it has not marked `status` does not count, and `plan` does not move.
    pub(super) is_marked: bool,
}

impl Drift {
    fn new(why: &str, detail: impl Into<String>) -> Self {
        Self {
            why: why.to_owned(),
            detail: detail.into(),
            is_marked: false,
        }
    }
}

/// Kinds of node classes whose drift hash we know.
const CLASSES: [&str; 2] = ["EC2NodeClass", "AKSNodeClass"];

impl Fleet {
    pub(super) fn read(raw: &Raw) -> Self {
        let mut fleet = Self::default();
        for document in &raw.documents {
            fleet.take(&document.value);
        }
        fleet
    }

    fn take(&mut self, value: &Value) {
        let kind = value["kind"].as_str().unwrap_or_default();
        let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match kind {
            "NodePool" if value["apiVersion"] == "karpenter.sh/v1" => {
                if let Ok(pool) = serde_json::from_value(value.clone()) {
                    self.pools.insert(name.clone(), pool);
                }
                self.written.insert((kind.to_owned(), name), value.clone());
            }
            "NodeClaim" => {
                let claim: Result<NodeClaim, _> = serde_json::from_value(value.clone());
                // What is not there yet, or on its way out, does not roll.
                let is_there = |claim: &NodeClaim| {
                    claim.node_pool().is_some()
                        && !claim.metadata.is_deleting()
                        && condition::holds(&claim.status.conditions, LAUNCHED)
                };
                self.claims.extend(claim.ok().filter(is_there));
            }
            "Pod" => {
                let Ok(pod) = serde_json::from_value::<Pod>(value.clone()) else {
                    return;
                };
                if let Some(node) = pod.node_name.as_ref().filter(|_| pod.is_reschedulable()) {
                    *self.pods.entry(node.to_string()).or_default() += 1;
                }
            }
            kind if CLASSES.contains(&kind) => {
                self.written.insert((kind.to_owned(), name), value.clone());
            }
            _ => {}
        }
    }

    /// The fleet as it is after manifests were applied, completed as the API server would.
    pub(super) fn with(&self, change: &Raw) -> Result<Self, Failure> {
        let admission = raw::admission();
        raw::accepted(change, &admission)?;
        let mut after = Self {
            pools: self.pools.clone(),
            written: self.written.clone(),
            ..Self::default()
        };
        for value in after.written.values_mut() {
            *value = admission.completed(value);
        }
        after.before = after.written.clone();
        let mut applied = 0;
        for document in &change.documents {
            let value = &document.value;
            let is_ours = matches!(
                value["kind"].as_str(),
                Some("NodePool" | "EC2NodeClass" | "AKSNodeClass")
            );
            if !is_ours {
                continue;
            }
            let mut value = admission.completed(value);
            let key = (
                value["kind"].as_str().unwrap_or_default().to_owned(),
                value["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            );
            // What the cloud answered stays until it is asked again.
            if let Some(before) = self.written.get(&key) {
                value["status"] = before["status"].clone();
            }
            after.take(&value);
            applied += 1;
        }
        if applied == 0 {
            return Err(Failure::new(
                format!("no change in {}", change.name),
                "it has no NodePool, EC2NodeClass or AKSNodeClass",
                "give the manifests as they are to be applied",
            ));
        }
        for ((kind, name), value) in &after.written {
            let before = self.written.get(&(kind.clone(), name.clone()));
            if kind == "EC2NodeClass" && before.is_some_and(|before| images_unknown(before, value)) {
                after.unknown.push(format!(
                    "EC2NodeClass {name} selects images by name or tags: which ones only the cloud knows, so their nodes count as they are"
                ));
            }
        }
        Ok(after)
    }

    /// How many claims a pool has.
    pub(super) fn claims_of(&self, pool: &str) -> usize {
        let of_pool = |claim: &&NodeClaim| claim.node_pool().is_some_and(|of| *of.as_str() == *pool);
        self.claims.iter().filter(of_pool).count()
    }

    /// How many pods would move with a claim's node.
    pub(super) fn pods_on(&self, claim: &NodeClaim) -> usize {
        let node = claim
            .status
            .node_name
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        self.pods.get(&node).copied().unwrap_or(0)
    }

    /// How a claim has drifted today: by the controller's own word, or by what it would see.
    pub(super) fn drift(&self, claim: &NodeClaim) -> Option<Drift> {
        if let Some(said) = claim
            .condition(DRIFTED)
            .filter(|_| condition::holds(&claim.status.conditions, DRIFTED))
        {
            return Some(Drift {
                is_marked: true,
                ..Drift::new(&said.reason, &*said.message)
            });
        }
        let pool = self.pools.get(claim.node_pool()?.as_str())?;
        let stale = |keys: (&str, &str), annotations: &dyn Fn(&str) -> Option<String>| {
            let own = |key: &str| claim.metadata.annotations.get(key).map(ToString::to_string);
            let hashes = (annotations(keys.0)?, own(keys.0)?);
            let versions = (annotations(keys.1)?, own(keys.1)?);
            (versions.0 == versions.1 && hashes.0 != hashes.1).then_some(())
        };
        let of_pool = |key: &str| pool.metadata.annotations.get(key).map(ToString::to_string);
        if stale((NODEPOOL_HASH, NODEPOOL_HASH_VERSION), &of_pool).is_some() {
            let detail = format!("template of NodePool {} has changed", pool.metadata.name);
            return Some(Drift::new("NodePoolDrifted", detail));
        }
        if let Some(class) = self.class_of(pool) {
            let annotation = |key: &str| class["metadata"]["annotations"][key].as_str().map(str::to_owned);
            let keys = [
                (aws::EC2NODECLASS_HASH, aws::EC2NODECLASS_HASH_VERSION),
                (azure::AKSNODECLASS_HASH, azure::AKSNODECLASS_HASH_VERSION),
            ];
            if keys.into_iter().any(|keys| stale(keys, &annotation).is_some()) {
                return Some(Drift::new("NodeClassDrift", class_changed(class)));
            }
            if let Some(drift) = image_drift(class, claim) {
                return Some(drift);
            }
        }
        requirement_drift(pool, claim)
    }

    /// How a claim that has not drifted would drift, if the fleet it is in became this one.
    pub(super) fn drift_from(&self, before: &Self, claim: &NodeClaim) -> Option<Drift> {
        let name = claim.node_pool()?.to_string();
        let (was, is) = (before.pools.get(&name)?, self.pools.get(&name)?);
        let key = ("NodePool".to_owned(), name.clone());
        if pool_hash(self.before.get(&key)?) != pool_hash(self.written.get(&key)?) {
            return Some(Drift::new(
                "NodePoolDrifted",
                format!("template of NodePool {name} would change"),
            ));
        }
        let old_class = class_key(was).and_then(|key| self.before.get(&key));
        if let (Some(was), Some(is)) = (old_class, self.class_of(is)) {
            if class_hash(was) != class_hash(is) {
                return Some(Drift::new("NodeClassDrift", class_changed(is)));
            }
            if was["spec"] != is["spec"]
                && let Some(drift) = image_would_drift(is, claim)
            {
                return Some(drift);
            }
        }
        requirement_drift(is, claim)
    }

    fn class_of(&self, pool: &NodePool) -> Option<&Value> {
        self.written.get(&class_key(pool)?)
    }
}

fn class_key(pool: &NodePool) -> Option<(String, String)> {
    let class = pool.spec.template.spec.node_class_ref.as_ref()?;
    Some((class.kind.to_string(), class.name.to_string()))
}

fn class_changed(class: &Value) -> String {
    let name = class["metadata"]["name"].as_str().unwrap_or_default();
    format!("{} {name} has changed", class["kind"].as_str().unwrap_or_default())
}

/// The hash of a pool's template; what a controller wrote on it has no part in that.
fn pool_hash(written: &Value) -> Option<String> {
    let pool: api::karpenter::NodePool = serde_json::from_value(without_status(written)).ok()?;
    Some(pool.hash())
}

fn without_status(written: &Value) -> Value {
    let mut object = written.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    object
}

/// The hash of a class. The cluster's certificate is part of the controller's own; it is the same before and after.
fn class_hash(class: &Value) -> Option<String> {
    match class["kind"].as_str()? {
        "EC2NodeClass" => {
            let class: api::aws::EC2NodeClass = serde_json::from_value(without_status(class)).ok()?;
            Some(class.hash(None))
        }
        "AKSNodeClass" => {
            let class: api::azure::AKSNodeClass = serde_json::from_value(without_status(class)).ok()?;
            Some(class.hash())
        }
        _ => None,
    }
}

/// The images that a class's status names, with their names.
fn images(class: &Value) -> Vec<(&str, &str)> {
    let images = class["status"]["amis"].as_array().into_iter().flatten();
    let image = images.filter_map(|image| Some((image["id"].as_str()?, image["name"].as_str().unwrap_or_default())));
    image.collect()
}

fn image_drift(class: &Value, claim: &NodeClaim) -> Option<Drift> {
    let known = images(class);
    let own = &*claim.status.image_id;
    let is_known = known.is_empty() || own.is_empty() || known.iter().any(|(id, _)| *id == own);
    (!is_known).then(|| Drift::new("AMIDrift", format!("runs {own}, which the class no longer selects")))
}

/// Whether the terms of an image selector have changed to something only the cloud can resolve.
fn images_unknown(before: &Value, after: &Value) -> bool {
    let terms = |class: &Value| class["spec"]["amiSelectorTerms"].clone();
    let is_resolvable = |term: &Value| term["alias"].is_string() || term["id"].is_string();
    let after = terms(after);
    terms(before) != after && !after.as_array().into_iter().flatten().all(is_resolvable)
}

/// By the images known so far: those that a changed selector still selects.
fn image_would_drift(class: &Value, claim: &NodeClaim) -> Option<Drift> {
    let own = &*claim.status.image_id;
    let terms = class["spec"]["amiSelectorTerms"].as_array()?;
    let known = images(class);
    let own_name = known.iter().find(|(id, _)| *id == own).map_or("", |(_, name)| *name);
    if own.is_empty() || known.is_empty() {
        return None;
    }
    let keeps = |term: &Value| match (term["id"].as_str(), term["alias"].as_str()) {
        (Some(id), _) => id == own,
        (_, Some(alias)) => match alias.split_once('@') {
            Some((_, "latest")) | None => true,
            // Images carry their release in their names.
            Some((_, version)) => own_name.contains(version),
        },
        // Only the cloud knows.
        _ => true,
    };
    (!terms.iter().any(keeps)).then(|| {
        let shown = if own_name.is_empty() { own } else { own_name };
        Drift::new(
            "AMIDrift",
            format!("runs {shown}, which the class would no longer select"),
        )
    })
}

/// The claim's labels must be what the pool requires; one that is missing is not.
fn requirement_drift(pool: &NodePool, claim: &NodeClaim) -> Option<Drift> {
    let mut vocabulary = Vocabulary::new();
    let specs = pool.spec.template.spec.requirements.iter().map(|one| {
        let values: Vec<_> = one.values.iter().map(AsRef::as_ref).collect();
        RequirementSpec::new(&one.key, one.operator.parse().unwrap_or(Operator::Exists), &values)
    });
    let specs: Vec<_> = specs.collect();
    let wanted = Requirements::from_specs(&specs, &mut vocabulary);
    let labels = claim.metadata.labels.iter().map(|(key, value)| (&**key, &**value));
    let labels = Requirements::from_labels(labels, &mut vocabulary);
    let unmet = labels.compatible(&wanted, UndefinedLabels::Denied, &vocabulary).err()?;
    Some(Drift::new("RequirementsDrifted", unmet.to_string()))
}
