//! Whole objects: created, changed, applied, deleted.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Answer, Request, Said};
use crate::{
    Failure, Resource, Verb,
    address::Key,
    apply::{self, Writer},
    builtin, complete,
    kind::Facts,
    metadata, patch,
    schema::{Problem, Schema},
    store::Store,
    write::{self, Deletion, Origin, Part},
};

/// What accepts patches of a kind.
const PATCHES: &str = "application/json-patch+json, application/merge-patch+json";

/// What a kind of object must be like. Objects of built-in kinds are looked at only when strangers bring them.
pub(super) fn schema<'a>(
    facts: &'a Facts,
    resource: &Resource,
    version: &str,
    is_stranger: bool,
) -> Option<&'a Schema> {
    match &facts.definition {
        Some(definition) => definition.version(version).map(|version| &version.schema),
        None if is_stranger && facts.is_built_in => builtin::schema(resource),
        None => None,
    }
}

impl Request {
    pub(super) fn create(&self, store: &mut Store, now: Timestamp) -> Answer {
        let mut object = self.body.clone();
        self.decode(store, &mut object)?;
        self.create_decoded(store, object, None, now)
    }

    fn create_decoded(&self, store: &mut Store, object: Value, applier: Option<&Writer>, now: Timestamp) -> Answer {
        let (resource, namespace) = (&self.address.resource, self.address.key().0);
        if self.is_stranger {
            lives(store, &namespace)?;
        }
        let facts = store.kinds.facts(resource);
        let schema = schema(&facts, resource, &self.address.version, self.is_stranger);
        let api_version = self.address.api_version();
        let is_named = |field: &str| object["metadata"][field].as_str().is_some_and(|name| !name.is_empty());
        if facts.definition.is_some() && !is_named("name") && !is_named("generateName") {
            self.check(&facts, schema, &mut object.clone(), None)?;
        }
        // Nobody owns what admission adds.
        let said = if self.is_stranger { object.clone() } else { Value::Null };
        let check = |object: &mut Value, _: &Value| {
            self.check(&facts, schema, object, None)?;
            if self.is_stranger && applier.is_none() {
                apply::note_creation(&said, object, &self.writer(""), schema, now);
            }
            Ok(())
        };
        let named = (resource, api_version.as_str());
        let created = write::create_checked(store, named, &namespace, object, Origin::Request, now, check)?;
        Ok((201, Said::Kept(created)))
    }

    pub(super) fn update(&self, store: &mut Store, now: Timestamp) -> Answer {
        let mut wanted = self.body.clone();
        self.decode(store, &mut wanted)?;
        self.names_match(&wanted)?;
        let updated = self.write(store, Part::Main, wanted, now)?;
        Ok((200, Said::Kept(self.as_asked(store, &updated))))
    }

    /// The name of an object that replaces another is that of the path.
    fn names_match(&self, wanted: &Value) -> Result<(), Failure> {
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        let asked = self.address.name.as_deref().unwrap_or_default();
        if name.is_empty() && self.is_stranger {
            return Err(Failure::bad_request(&format!(
                "the name of the object ({asked} based on URL) was undeterminable: name must be provided"
            )));
        }
        if !name.is_empty() && name != asked {
            return Err(Failure::bad_request(&format!(
                "the name of the object ({name}) does not match the name on the URL ({asked})"
            )));
        }
        Ok(())
    }

    pub(super) fn patch(&self, store: &mut Store, now: Timestamp) -> Answer {
        if self.content_type == "application/apply-patch+yaml" {
            return self.apply(store, Part::Main, now);
        }
        let mut wanted = self.patched(store)?;
        self.decode(store, &mut wanted)?;
        let patched = self.write(store, Part::Main, wanted, now)?;
        Ok((200, Said::Kept(self.as_asked(store, &patched))))
    }

    /// The object as a patch would have it.
    pub(super) fn patched(&self, store: &Store) -> Result<Value, Failure> {
        let is_built_in = store.kinds.facts(&self.address.resource).is_built_in;
        // What cannot be read is refused before anything is looked up.
        self.patch_value(&mut Value::Null, is_built_in)
            .or_else(|failure| if failure.code == 415 { Err(failure) } else { Ok(()) })?;
        let found = store.get(&self.address.resource, &self.address.key())?;
        let mut wanted = (**found).clone();
        wanted["apiVersion"] = json!(self.address.api_version());
        self.patch_value(&mut wanted, is_built_in)?;
        Ok(wanted)
    }

    pub(super) fn patch_value(&self, value: &mut Value, is_built_in: bool) -> Result<(), Failure> {
        match self.content_type.as_str() {
            "application/merge-patch+json" => patch::merge(value, &self.body),
            "application/json-patch+json" => patch::json(value, &self.body)?,
            "application/strategic-merge-patch+json" if is_built_in => patch::strategic(value, &self.body),
            _ => {
                let strategic = if is_built_in {
                    ", application/strategic-merge-patch+json"
                } else {
                    ""
                };
                return Err(Failure::unsupported_patch(&format!(
                    "{PATCHES}{strategic}, application/apply-patch+yaml"
                )));
            }
        }
        Ok(())
    }

    /// Server-side apply: creates what is not there.
    pub(super) fn apply(&self, store: &mut Store, part: Part, now: Timestamp) -> Answer {
        let subresource = self.address.subresource.as_deref().unwrap_or_default();
        if self.query.get("fieldManager").is_none() {
            return Err(Failure::refused(
                "meta.k8s.io",
                "PatchOptions",
                "",
                &[Problem::required("fieldManager", "is required for apply patch")],
            ));
        }
        let mut config = self.body.clone();
        if config["metadata"]
            .get("managedFields")
            .is_some_and(|said| *said != json!([]))
        {
            return Err(Failure::bad_request("metadata.managedFields must be nil"));
        }
        self.decode_part(store, &mut config)?;
        let (resource, key) = (&self.address.resource, self.address.key());
        let live = store.find(resource, &key).cloned();
        let facts = store.kinds.facts(resource);
        let schema = schema(&facts, resource, &self.address.version, true);
        let writer = self.writer(subresource);
        let before = live.as_deref().cloned().unwrap_or_default();
        if live.is_none() && part == Part::Status {
            return Err(Failure::not_found(resource, &key));
        }
        if part == Part::Status {
            write::fields(&mut config)
                .retain(|field, _| ["apiVersion", "kind", "metadata", "status"].contains(&&**field));
        } else if facts.has_status {
            write::fields(&mut config).remove("status");
        }
        let force = self.query.is_set("force");
        let mut wanted = apply::apply(&before, &config, &writer, force, schema, now)?;
        if live.is_none() {
            wanted["metadata"]["name"] = json!(key.1);
            self.default(&facts, schema, &mut wanted);
            return self.create_decoded(store, wanted, Some(&writer), now);
        }
        self.default(&facts, schema, &mut wanted);
        let check = |after: &mut Value, before: &Value| self.check(&facts, schema, after, Some(before));
        let applied = write::update_checked(store, resource, &key, part, wanted, check)?;
        Ok((200, Said::Kept(self.as_asked(store, &applied))))
    }

    /// Writes a part of an object, once it is checked.
    pub(super) fn write(
        &self,
        store: &mut Store,
        part: Part,
        wanted: Value,
        now: Timestamp,
    ) -> Result<Arc<Value>, Failure> {
        let (resource, key) = (&self.address.resource, self.address.key());
        let facts = store.kinds.facts(resource);
        let schema = schema(&facts, resource, &self.address.version, self.is_stranger);
        let subresource = self.address.subresource.as_deref().unwrap_or_default();
        let check = |after: &mut Value, before: &Value| {
            self.check(&facts, schema, after, Some(before))?;
            let has_owners = before["metadata"]["managedFields"].is_array();
            if self.is_stranger || has_owners {
                apply::note_update(before, after, &self.writer(subresource), schema, now);
            }
            Ok(())
        };
        write::update_checked(store, resource, &key, part, wanted, check)
    }

    /// Reads an object as its kind: what is unknown goes, what is left out comes.
    pub(super) fn decode(&self, store: &Store, object: &mut Value) -> Result<(), Failure> {
        self.decode_part(store, object)?;
        let facts = store.kinds.facts(&self.address.resource);
        let schema = schema(&facts, &self.address.resource, &self.address.version, self.is_stranger);
        self.default(&facts, schema, object);
        Ok(())
    }

    fn decode_part(&self, store: &Store, object: &mut Value) -> Result<(), Failure> {
        let facts = store.kinds.facts(&self.address.resource);
        if self.is_stranger {
            self.kinds_match(&facts, object)?;
        }
        let Some(schema) = schema(&facts, &self.address.resource, &self.address.version, self.is_stranger) else {
            return Ok(());
        };
        write::drop_nulls(object);
        let gone = schema.prune(object);
        if self.content_type == "application/apply-patch+yaml" {
            let mut wrong: Vec<String> = gone
                .iter()
                .map(|path| format!(".{path}: field not declared in schema"))
                .collect();
            wrong.extend(schema.mistyped(object, ""));
            return if wrong.is_empty() {
                Ok(())
            } else {
                Err(self.untyped(&facts, object, &wrong))
            };
        }
        if !gone.is_empty() {
            self.unknown(&facts, object, &gone)?;
        }
        if facts.is_built_in
            && let Some(problem) = schema.misfit(object)
        {
            return Err(self.undecodable(&facts, object, &problem));
        }
        Ok(())
    }

    /// What is applied must be known, every field of it.
    fn untyped(&self, facts: &Facts, object: &Value, wrong: &[String]) -> Failure {
        let why = match wrong {
            [one] => one.clone(),
            several => {
                let lines: Vec<String> = several.iter().map(|line| format!("  {line}")).collect();
                format!("errors:\n{}", lines.join("\n"))
            }
        };
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let (group, version, kind) = (&self.address.resource.group, &self.address.version, &facts.kind);
        Failure {
            code: 500,
            reason: String::new(),
            message: format!(
                "failed to create typed patch object ({namespace}/{name}; {group}/{version}, Kind={kind}): {why}"
            ),
            details: None,
        }
    }

    /// Why an object, or what a patch makes of one, cannot be read.
    fn undecodable(&self, facts: &Facts, object: &Value, why: &str) -> Failure {
        if self.verb == Verb::Patch && self.content_type != "application/apply-patch+yaml" {
            let problem = Problem::invalid("patch", json!(object.to_string()), why);
            return Failure::refused("", "", "", &[problem]);
        }
        let (kind, version) = (&facts.kind, &self.address.version);
        Failure::bad_request(&format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
        ))
    }

    fn default(&self, facts: &Facts, schema: Option<&Schema>, object: &mut Value) {
        match schema {
            Some(schema) if !facts.is_built_in => schema.complete(object),
            Some(_) if self.is_stranger => complete::complete(&self.address.resource, object),
            _ => {}
        }
    }

    fn kinds_match(&self, facts: &Facts, object: &Value) -> Result<(), Failure> {
        let given = |field: &str| object[field].as_str().filter(|text| !text.is_empty());
        let expected = self.address.api_version();
        if let Some(version) = given("apiVersion").filter(|version| *version != expected) {
            return Err(Failure::bad_request(&format!(
                "the API version in the data ({version}) does not match the expected API version ({expected})"
            )));
        }
        let (kind, version) = (&facts.kind, &self.address.version);
        match given("kind") {
            Some(given) if given != *kind && facts.is_built_in => Err(Failure::bad_request(&format!(
                "{given} in version {version:?} cannot be handled as a {kind}: no kind {given:?} is registered for \
                 version {expected:?} in scheme"
            ))),
            Some(given) if given != *kind => {
                let problem = Problem::invalid("kind", json!(given), format!("must be {kind}"));
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                Err(Failure::refused(&self.address.resource.group, given, name, &[problem]))
            }
            None if !facts.is_built_in => {
                let text = object.to_string();
                let start: String = text.chars().take(30).collect();
                let more = if start.len() < text.len() { " ..." } else { "" };
                Err(Failure::bad_request(&format!(
                    "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in \
                     '{text}' ({start}{more})"
                )))
            }
            _ => Ok(()),
        }
    }

    fn unknown(&self, facts: &Facts, object: &Value, gone: &[String]) -> Result<(), Failure> {
        let told = |path: &String| format!("unknown field {path:?}");
        match self.query.get("fieldValidation") {
            Some("Strict") => {
                let all: Vec<String> = gone.iter().map(told).collect();
                let why = format!("strict decoding error: {}", all.join(", "));
                Err(self.undecodable(facts, object, &why))
            }
            Some("Ignore") => Ok(()),
            _ => {
                for path in gone {
                    self.warn(told(path));
                }
                Ok(())
            }
        }
    }

    /// The numbers of replicas that a definition names are numbers.
    fn check_scale(&self, facts: &Facts, object: &Value, is_status: bool) -> Option<Problem> {
        let defined = facts.definition.as_ref()?.version(&self.address.version)?;
        let paths = defined.scale.as_ref()?;
        let pointer = if is_status { &paths.current } else { &paths.wanted };
        let (value, path) = (object.pointer(pointer)?, pointer.replace('/', "."));
        match value.as_i64() {
            Some(number) if number < 0 => Some(Problem::invalid(
                &path,
                json!(number),
                "should be a non-negative integer",
            )),
            Some(_) => None,
            None => {
                let (shown, form) = match value {
                    Value::String(text) => (text.clone(), "string"),
                    Value::Bool(yes) => (yes.to_string(), "bool"),
                    Value::Number(number) => (number.to_string(), "float64"),
                    _ => return None,
                };
                let why = format!("{path} accessor error: {shown} is of the type {form}, expected int64");
                Some(Problem::invalid(&path, json!(0), why))
            }
        }
    }

    /// Whether an object may be stored.
    fn check(
        &self,
        facts: &Facts,
        schema: Option<&Schema>,
        object: &mut Value,
        before: Option<&Value>,
    ) -> Result<(), Failure> {
        let mut problems = Vec::new();
        if self.is_stranger {
            problems.extend(metadata::check(&self.address.resource, facts, object, before));
        }
        if let Some(schema) = schema.filter(|_| !facts.is_built_in) {
            let is_status = self.address.subresource.as_deref() == Some("status");
            problems.extend(self.check_scale(facts, object, is_status));
            problems = schema.check(object, before, is_status, problems);
            // What was dropped comes back as it is by default.
            schema.complete(object);
        } else if self.is_stranger {
            problems.extend(complete::check(&self.address.resource, object, before));
        }
        if problems.is_empty() {
            return Ok(());
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Err(Failure::refused(
            &self.address.resource.group,
            &facts.kind,
            name,
            &problems,
        ))
    }

    pub(super) fn delete(&self, store: &mut Store, now: Timestamp) -> Answer {
        let (resource, key) = (&self.address.resource, &self.address.key());
        let (object, gone) = self.delete_one(store, key, now)?;
        if !gone || store.kinds.facts(resource).returns_deleted {
            return Ok((200, Said::Kept(object)));
        }
        let mut details = json!({"name": key.1, "kind": resource.plural, "uid": object["metadata"]["uid"]});
        if !resource.group.is_empty() {
            details["group"] = json!(resource.group);
        }
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
        Ok((200, Said::Made(status)))
    }

    fn delete_one(&self, store: &mut Store, key: &Key, now: Timestamp) -> Result<(Arc<Value>, bool), Failure> {
        let mut deletion = Deletion::of(&self.body);
        // Options are those of the body or, without one, those of the query.
        let option = |name: &str| self.query.get(name).filter(|_| self.body.is_null());
        if let Some(seconds) = option("gracePeriodSeconds") {
            deletion.grace_seconds = seconds.parse().ok();
        }
        let is_rehearsal = self.body["dryRun"]
            .as_array()
            .is_some_and(|all| all.contains(&json!("All")));
        let policy = option("propagationPolicy").or(self.body["propagationPolicy"].as_str());
        let was_rehearsal = store.is_rehearsal;
        store.is_rehearsal |= is_rehearsal;
        let deleted = write::delete(store, &self.address.resource, key, &deletion, now);
        if let (Ok((object, _)), Some("Orphan")) = (&deleted, policy) {
            let owner = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            write::orphan(store, &owner);
        }
        store.is_rehearsal = was_rehearsal;
        deleted
    }

    pub(super) fn delete_collection(&self, store: &mut Store, now: Timestamp) -> Answer {
        let chosen = self.find(store)?.items;
        let facts = store.kinds.facts(&self.address.resource);
        let mut deleted = Vec::new();
        for object in chosen {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            let key = (text("namespace"), text("name"));
            let mut object = (*self.delete_one(store, &key, now)?.0).clone();
            if facts.is_built_in {
                write::fields(&mut object).retain(|field, _| field != "kind" && field != "apiVersion");
            }
            deleted.push(object);
        }
        let mut list = json!({
            "kind": facts.list_kind(), "apiVersion": self.address.api_version(),
            "metadata": {"resourceVersion": store.version.to_string()}, "items": deleted,
        });
        if !facts.is_built_in {
            list["metadata"]["continue"] = json!("");
        }
        Ok((200, Said::Made(list)))
    }
}

/// Namespaces that every cluster has, whether it was told of them or not.
const ALWAYS: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Whether things can be created in a namespace.
fn lives(store: &Store, namespace: &str) -> Result<(), Failure> {
    if namespace.is_empty() || ALWAYS.contains(&namespace) {
        return Ok(());
    }
    let (resource, key) = (Resource::new("", "namespaces"), (String::new(), namespace.to_owned()));
    store.get(&resource, &key).map(drop)
}
