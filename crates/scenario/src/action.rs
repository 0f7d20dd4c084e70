//! What happens in a story at a time, and how it is done to the world.

use std::{collections::BTreeMap, time::Duration};

use cloud_sim::{Defect, Image, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Scenario, Workload, World, ground::text, time};

/// Something that happens at a time; several things may at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// When, from the beginning.
    pub at: String,
    /// In words, for whoever watches.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub say: String,
    /// Workloads have so many pods from now on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scale: BTreeMap<String, u64>,
    /// Workloads come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<Workload>,
    /// Workloads go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// Objects come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub create: Vec<Value>,
    /// Objects change: a merge patch each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patch: Vec<Patch>,
    /// Objects go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delete: Vec<Named>,
    /// The cloud takes spot machines back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<Struck>,
    /// A zone fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lose_zone: Option<Struck>,
    /// Offers are short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_short: Option<Struck>,
    /// Machines that are launched have a defect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoil: Option<Struck>,
    /// Machines boot from another image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageWords>,
    /// So many machines fail without a word, the first by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lose_machines: Option<usize>,
    /// The autoscaler is restarted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restart: bool,
}

/// A merge patch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// Of an object of this kind.
    pub kind: String,
    /// Of this name, with the namespace before a slash where there is one.
    pub name: String,
    /// What to merge into it.
    pub merge: Value,
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Its kind.
    pub kind: String,
    /// Its name, with the namespace before a slash where there is one.
    pub name: String,
}

/// Which offers something strikes, how many of a thousand, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Struck {
    /// The type; all without a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// The zone; all without a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// `spot` or `on-demand`; both without a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<String>,
    /// So many of a thousand; all without a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_mille: Option<u32>,
    /// For how long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// `never-joins`, `never-ready`, or `less-memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defect: Option<String>,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageWords {
    /// Its name.
    pub name: String,
    /// What is wrong with it: as in `spoil`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defect: Option<String>,
}

fn defect(word: &str) -> Result<Defect, String> {
    match word {
        "never-joins" => Ok(Defect::NeverJoins),
        "never-ready" => Ok(Defect::NeverReady),
        "less-memory" => Ok(Defect::LessMemory(80)),
        _ => Err(format!(
            "{word:?} is no defect; write never-joins, never-ready or less-memory"
        )),
    }
}

impl Struck {
    fn scope(&self) -> Scope {
        Scope {
            instance_type: self.instance_type.clone(),
            zone: self.zone.clone(),
            capacity_type: self.capacity_type.clone(),
        }
    }

    fn per_mille(&self) -> u32 {
        self.per_mille.unwrap_or(1000)
    }

    fn time(&self) -> Result<Duration, String> {
        time::parse(self.time.as_deref().ok_or("for: is missing; write for: 10m")?)
    }

    fn defect(&self) -> Result<Defect, String> {
        defect(
            self.defect
                .as_deref()
                .ok_or("defect: is missing; write never-joins, never-ready or less-memory")?,
        )
    }
}

impl Step {
    /// When it happens.
    pub(crate) fn at(&self) -> Result<Duration, String> {
        time::parse(&self.at)
    }

    pub(crate) fn check(&self, scenario: &Scenario, lasts: Duration) -> Result<(), String> {
        if self.at().map_err(|error| format!("at: {error}"))? > lasts {
            return Err(format!("at: {} is after the end at {}", self.at, scenario.lasts));
        }
        let known = scenario.workload_names();
        let named = self
            .scale
            .keys()
            .map(|name| ("scale", name))
            .chain(self.remove.iter().map(|name| ("remove", name)));
        for (field, name) in named {
            if !known.contains(name.as_str()) {
                let names: Vec<&str> = known.iter().copied().collect();
                let names = if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                };
                return Err(format!("{field}: there is no workload {name:?}; there are {names}"));
            }
        }
        for (field, struck) in [
            ("loseZone", &self.lose_zone),
            ("runShort", &self.run_short),
            ("spoil", &self.spoil),
        ] {
            if let Some(struck) = struck {
                struck.time().map_err(|error| format!("{field}.{error}"))?;
            }
        }
        if self.lose_zone.as_ref().is_some_and(|struck| struck.zone.is_none()) {
            return Err("loseZone.zone: is missing; write zone: test-zone-a".to_owned());
        }
        if let Some(spoil) = &self.spoil {
            spoil.defect().map_err(|error| format!("spoil.{error}"))?;
        }
        if let Some(word) = self.image.as_ref().and_then(|image| image.defect.as_deref()) {
            defect(word).map_err(|error| format!("image.defect: {error}"))?;
        }
        Ok(())
    }

    /// Does it. What is not there any more is passed by.
    pub(crate) fn act(&self, world: &World) {
        self.act_on_cluster(world);
        self.act_on_cloud(world);
    }

    fn act_on_cluster(&self, world: &World) {
        let server = &world.server;
        for (name, replicas) in &self.scale {
            let change = |set: &mut Value| set["spec"]["replicas"] = json!(replicas);
            let _ = server.update(world.keeper, &format!("default/{name}"), change);
        }
        for manifest in self
            .add
            .iter()
            .flat_map(|workload| workload.manifests(world.keeper))
            .chain(self.create.iter().cloned())
        {
            let _ = server.create(manifest);
        }
        for name in &self.remove {
            let _ = server.delete(world.keeper, &format!("default/{name}"));
            for pod in server
                .list("Pod")
                .iter()
                .filter(|pod| text(pod, "/metadata/labels/app") == name)
            {
                let _ = server.delete("Pod", &crate::ground::key(pod));
            }
        }
        for patch in &self.patch {
            let _ = server.update(&patch.kind, &patch.name, |object| merge(object, &patch.merge));
        }
        for named in &self.delete {
            let _ = server.delete(&named.kind, &named.name);
        }
    }

    fn act_on_cloud(&self, world: &World) {
        let region = &world.region;
        if let Some(struck) = &self.interrupt {
            region.interrupt(&struck.scope(), struck.per_mille());
        }
        if let Some((struck, time)) = self.lose_zone.as_ref().and_then(|it| Some((it, it.time().ok()?))) {
            region.lose_zone(struck.zone.as_deref().unwrap_or_default(), time);
        }
        if let Some((struck, time)) = self.run_short.as_ref().and_then(|it| Some((it, it.time().ok()?))) {
            region.run_short(&struck.scope(), time);
        }
        if let Some((struck, time)) = self.spoil.as_ref().and_then(|it| Some((it, it.time().ok()?)))
            && let Ok(defect) = struck.defect()
        {
            region.spoil(&struck.scope(), defect, struck.per_mille(), time);
        }
        if let Some(image) = &self.image {
            region.release(Image {
                name: image.name.clone(),
                defect: image.defect.as_deref().and_then(|word| defect(word).ok()),
            });
        }
        for machine in region.machines().iter().take(self.lose_machines.unwrap_or(0)) {
            region.lose(&machine.id);
        }
    }
}

/// JSON merge patch.
fn merge(object: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (field, value) in fields {
        if value.is_null() {
            if let Some(object) = object.as_object_mut() {
                object.remove(field);
            }
        } else {
            merge(&mut object[field], value);
        }
    }
}
