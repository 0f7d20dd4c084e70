//! Parts of objects with a path of their own: status, scale, eviction, binding, logs.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Answer, Request, Said, success};
use crate::{Failure, Resource, Verb, definition::ScalePaths, kind::Facts, pod, store::Store, write::Part};

impl Request {
    pub(super) fn part(&self, store: &mut Store, part: &str, now: Timestamp) -> Answer {
        let (resource, key) = (&self.address.resource, &self.address.key());
        let is_pod = *resource == Resource::new("", "pods");
        match (self.verb, part) {
            (_, "status") => self.status(store, now),
            (_, "scale") => self.scale(store, now),
            (Verb::Create, "eviction") if is_pod => {
                let options = &self.body["deleteOptions"]["dryRun"];
                store.is_rehearsal |= options.as_array().is_some_and(|all| all.contains(&json!("All")));
                pod::evict(store, key, &self.body, now).map(|()| success())
            }
            (Verb::Create, "binding") if is_pod => pod::bind(store, key, &self.body, now).map(|()| success()),
            (Verb::Get, "log") if is_pod => {
                store.get(resource, key)?;
                Err(Failure::bad_request(
                    "no logs here: this cluster is simulated, so the containers of its pods do not run and write nothing",
                ))
            }
            (_, "exec" | "attach" | "portforward" | "proxy") if is_pod => {
                store.get(resource, key)?;
                Err(Failure::bad_request(&format!(
                    "no {part} here: this cluster is simulated, so the containers of its pods do not run"
                )))
            }
            _ => Err(Failure::page_not_found()),
        }
    }

    fn status(&self, store: &mut Store, now: Timestamp) -> Answer {
        let facts = store.kinds.facts(&self.address.resource);
        let has_status = match &facts.definition {
            Some(definition) => definition
                .version(&self.address.version)
                .is_some_and(|version| version.has_status),
            None => facts.has_status,
        };
        if !has_status {
            // A read of what is not there fails in its own way; kinds nobody defined show the object.
            return Err(Failure::page_not_found());
        }
        let wanted = match self.verb {
            Verb::Get => {
                let found = store.get(&self.address.resource, &self.address.key())?;
                return Ok((200, Said::Kept(self.as_asked(store, found))));
            }
            Verb::Patch if self.content_type == "application/apply-patch+yaml" => {
                return self.apply(store, Part::Status, now);
            }
            Verb::Patch => {
                let mut wanted = self.patched(store)?;
                self.decode(store, &mut wanted)?;
                wanted
            }
            Verb::Update => {
                let mut wanted = self.body.clone();
                self.decode(store, &mut wanted)?;
                wanted
            }
            _ => return Err(Failure::method_not_allowed()),
        };
        let written = self.write(store, Part::Status, wanted, now)?;
        Ok((200, Said::Kept(self.as_asked(store, &written))))
    }

    fn scale(&self, store: &mut Store, now: Timestamp) -> Answer {
        let facts = store.kinds.facts(&self.address.resource);
        let paths = scale_paths(&facts, &self.address.version).ok_or_else(Failure::page_not_found)?;
        let object = store.get(&self.address.resource, &self.address.key())?.clone();
        if self.verb == Verb::Get && !facts.is_built_in && object.pointer(&paths.wanted).is_none() {
            let why = format!(
                "the spec replicas field {:?} does not exist",
                paths.wanted.replace('/', ".")
            );
            return Err(Failure {
                code: 500,
                reason: "InternalError".to_owned(),
                message: format!("Internal error occurred: {why}"),
                details: Some(json!({"causes": [{"message": why}]})),
            });
        }
        let shown = scale_of(&object, &paths, facts.is_built_in);
        let scale = match self.verb {
            Verb::Get => return Ok((200, Said::Made(shown))),
            Verb::Update => self.body.clone(),
            Verb::Patch => {
                let mut scale = shown;
                self.patch_value(&mut scale, true)?;
                scale
            }
            _ => return Err(Failure::method_not_allowed()),
        };
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        if replicas < 0 && facts.is_built_in {
            let why = format!("Invalid value: {replicas}: must be greater than or equal to 0");
            let name = self.address.name.as_deref().unwrap_or_default();
            return Err(Failure::invalid(
                "autoscaling",
                "Scale",
                name,
                ["FieldValueInvalid", "spec.replicas", &why],
            ));
        }
        let mut wanted = (*object).clone();
        set(&mut wanted, &paths.wanted, json!(replicas));
        let version = scale["metadata"]["resourceVersion"]
            .as_str()
            .filter(|version| !version.is_empty());
        match version {
            Some(version) => wanted["metadata"]["resourceVersion"] = json!(version),
            None => drop(crate::write::fields(&mut wanted["metadata"]).remove("resourceVersion")),
        }
        let written = self.write(store, Part::Main, wanted, now)?;
        Ok((200, Said::Made(scale_of(&written, &paths, facts.is_built_in))))
    }
}

fn scale_paths(facts: &Facts, version: &str) -> Option<ScalePaths> {
    match &facts.definition {
        Some(definition) => definition.version(version)?.scale.clone(),
        None => facts.has_scale.then(|| ScalePaths {
            wanted: "/spec/replicas".to_owned(),
            current: "/status/replicas".to_owned(),
            selector: None,
        }),
    }
}

fn scale_of(object: &Value, paths: &ScalePaths, is_built_in: bool) -> Value {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let selector = if is_built_in {
        labels(&object["spec"]["selector"])
    } else {
        let path = paths.selector.as_deref().unwrap_or_default();
        let found = object.pointer(path).filter(|_| !path.is_empty());
        found.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {}, "status": {"replicas": number(&paths.current)},
    });
    match number(&paths.wanted) {
        0 => {}
        wanted => scale["spec"]["replicas"] = json!(wanted),
    }
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}

/// A label selector as a query would have it.
fn labels(selector: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let map = selector.get("matchLabels").unwrap_or(selector);
    let pairs = map.as_object().into_iter().flatten();
    let mut all: Vec<String> = pairs
        .filter(|(_, value)| value.is_string())
        .map(|(key, value)| format!("{key}={}", text(value)))
        .collect();
    for one in selector["matchExpressions"].as_array().into_iter().flatten() {
        let values = one["values"].as_array().into_iter().flatten().map(text);
        let values = values.collect::<Vec<_>>().join(",");
        let key = text(&one["key"]);
        all.push(match one["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("Exists") => key,
            _ => format!("!{key}"),
        });
    }
    all.join(",")
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for step in pointer.split('/').filter(|step| !step.is_empty()) {
        place = crate::write::fields(place)
            .entry(step.to_owned())
            .or_insert(Value::Null);
    }
    *place = value;
}
