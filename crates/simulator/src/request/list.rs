//! Many objects: lists in pages, and watches.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::Response;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Answer, Form, Request, Said, respond};
use crate::{
    Failure,
    kind::Facts,
    reply::{Promises, Reply, Watching},
    schema::Problem,
    selector::Selector,
    server::State,
    store::{Pages, Store},
    table::Layout,
    watch::{self, Terms, View, is_in},
    write,
};

/// Fields that objects of a kind can be chosen by, beside name and namespace.
fn selectable(group: &str, plural: &str) -> &'static [&'static str] {
    match (group, plural) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        ("", "nodes") => &["spec.unschedulable"],
        ("", "namespaces") => &["status.phase"],
        ("", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("", "secrets") => &["type"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("", "replicationcontrollers") | ("apps", "replicasets") => &["status.replicas"],
        ("batch", "jobs") => &["status.successful"],
        _ => &[],
    }
}

impl Request {
    fn selector(&self, facts: &Facts) -> Result<Selector, Failure> {
        let selector = Selector::parse(self.query.get("labelSelector"), self.query.get("fieldSelector"));
        if !self.is_stranger {
            return Ok(selector);
        }
        if let Some(flaw) = self.query.get("labelSelector").and_then(Selector::flaw) {
            return Err(Failure::bad_request(&flaw));
        }
        let defined = facts
            .definition
            .as_ref()
            .and_then(|one| one.version(&self.address.version));
        let known = selectable(&self.address.resource.group, &self.address.resource.plural);
        let is_known = |field: &str| {
            let defined = defined.is_some_and(|version| version.selectable.iter().any(|one| one == field));
            field == "metadata.name"
                || (field == "metadata.namespace" && (facts.is_namespaced || facts.is_built_in))
                || known.contains(&field)
                || defined
        };
        if let Some(field) = selector.fields().find(|field| !is_known(field)) {
            let message = if known.is_empty() && facts.is_built_in {
                format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            } else {
                format!("field label not supported: {field}")
            };
            return Err(Failure::bad_request(&message));
        }
        Ok(selector)
    }

    pub(super) fn list(&self, store: &mut Store) -> Answer {
        let limit = self.query.get("limit").and_then(|limit| limit.parse().ok());
        let limit = limit.filter(|limit| *limit > 0);
        let facts = store.kinds.facts(&self.address.resource);
        let (page, offset) = match self.query.get("continue") {
            Some(token) => continued(store, token)?,
            None => (self.find(store)?, 0),
        };
        let end = limit.map_or(page.items.len(), |limit: usize| (offset + limit).min(page.items.len()));
        let shown = |object: &Arc<Value>| {
            let mut item = (*self.as_asked(store, object)).clone();
            if facts.is_built_in {
                write::fields(&mut item).retain(|field, _| field != "kind" && field != "apiVersion");
            }
            item
        };
        let items: Vec<Value> = page.items[offset..end].iter().map(shown).collect();
        let mut metadata = json!({"resourceVersion": page.version.to_string()});
        if !facts.is_built_in {
            metadata["continue"] = json!("");
        }
        let left = page.items.len() - end;
        if left > 0 {
            if self.selector(&facts)?.is_everything() {
                metadata["remainingItemCount"] = json!(left);
            }
            let token = store.identity();
            metadata["continue"] = json!(format!("{token}.{end}"));
            store.pages.insert(token, page);
        }
        let list = json!({
            "kind": facts.list_kind(), "apiVersion": self.address.api_version(),
            "metadata": metadata, "items": items,
        });
        Ok((200, Said::Made(list)))
    }

    /// What a list is about, at the version it asks for.
    pub(super) fn find(&self, store: &Store) -> Result<Pages, Failure> {
        let facts = store.kinds.facts(&self.address.resource);
        let selector = self.selector(&facts)?;
        let namespace = self.address.namespace.as_deref();
        let chosen = |object: &Arc<Value>| is_in(namespace, object) && selector.chooses(object);
        if self.query.get("resourceVersion").is_none() && self.query.get("resourceVersionMatch").is_some() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            let problem = Problem::new("FieldValueForbidden", "resourceVersionMatch", None, why);
            return Err(Failure::refused("meta.k8s.io", "ListOptions", "", &[problem]));
        }
        let wanted: Option<u64> = self
            .query
            .get("resourceVersion")
            .and_then(|version| version.parse().ok());
        let is_exact = self.query.get("resourceVersionMatch") == Some("Exact");
        if let Some(wanted) = wanted.filter(|wanted| *wanted > store.version) {
            return Err(Failure::too_new(wanted, store.version));
        }
        if let Some(version) = wanted.filter(|_| is_exact) {
            let mut items = store.at(&self.address.resource, version)?;
            items.retain(chosen);
            return Ok(Pages { version, items });
        }
        let items = store.all(&self.address.resource).filter(|object| chosen(object));
        Ok(Pages {
            version: store.version,
            items: items.cloned().collect(),
        })
    }

    pub(super) fn watch(
        self,
        state: &Arc<Mutex<State>>,
        clock: &Arc<dyn Fn() -> Timestamp + Send + Sync>,
    ) -> Result<Response<Reply>, Failure> {
        let since: Option<u64> = self
            .query
            .get("resourceVersion")
            .and_then(|version| version.parse().ok());
        let timeout = self
            .query
            .get("timeoutSeconds")
            .and_then(|seconds| seconds.parse().ok());
        let has_bookmarks = self
            .query
            .get("allowWatchBookmarks")
            .is_some_and(|wanted| wanted == "true");
        let begins_with_all = self.query.is_set("sendInitialEvents");
        let lines = {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let facts = state.store.kinds.facts(&self.address.resource);
            if !state
                .store
                .kinds
                .is_served(&self.address.resource, &self.address.version)
            {
                return Err(Failure::page_not_found());
            }
            let mut selector = self.selector(&facts)?;
            if let Some(name) = &self.address.name {
                selector = Selector::parse(None, Some(&format!("metadata.name={name}")));
            }
            let terms = Terms {
                selector,
                since: since.filter(|version| *version > 0 && !begins_with_all),
                lag: state.watch_lag,
                view: self.view(&facts, clock),
                tells_of_start: begins_with_all && has_bookmarks,
            };
            watch::open(&mut state.store, &self.address, terms)
        };
        let promises = Promises {
            has_bookmarks,
            since: since.unwrap_or_default(),
            timeout: Duration::from_secs(timeout.unwrap_or(1800)),
        };
        let watching = Watching::new(lines, Arc::clone(state), self.address, &promises);
        Ok(respond(200, None, Reply::Watch(Box::new(watching))))
    }

    fn view(&self, facts: &Facts, clock: &Arc<dyn Fn() -> Timestamp + Send + Sync>) -> View {
        match self.form {
            Form::Plain => View::Whole,
            Form::Metadata => View::Metadata,
            Form::Table => {
                let layout = Layout::of(&self.address.resource, &self.address.version, facts);
                View::table(layout, self.include(), Arc::clone(clock))
            }
        }
    }
}

/// The rest of a list, from where its token says.
fn continued(store: &mut Store, token: &str) -> Result<(Pages, usize), Failure> {
    let position = token
        .split_once('.')
        .and_then(|(page, offset)| Some((page.parse::<u64>().ok()?, offset.parse::<usize>().ok()?)));
    let found = position.and_then(|(page, offset)| {
        let page = store.pages.get(&page)?;
        let page = Pages {
            version: page.version,
            items: page.items.clone(),
        };
        Some((page, offset))
    });
    found.ok_or_else(|| {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start \
                       a new list without the continue parameter.";
        Failure::expired(message.to_owned())
    })
}
