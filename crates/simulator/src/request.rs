//! How a request is answered.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Response, request::Parts};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    Failure, Verb,
    address::{self, Address},
    discovery::Page,
    patch, pod,
    reply::{Promises, Reply, Watching},
    selector::Selector,
    server::State,
    store::{Pages, Store},
    watch::{self, Terms, is_in},
    write::{self, Deletion, Origin, Part},
};

/// A request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// When.
    pub at: Timestamp,
    /// Who asked.
    pub user_agent: String,
    /// For what.
    pub verb: Verb,
    /// Of what, with the query.
    pub path: String,
    /// The answer.
    pub code: u16,
}

/// A request as the server reads it.
pub(crate) struct Request {
    pub(crate) verb: Verb,
    pub(crate) address: Address,
    query: String,
    content_type: String,
    body: Value,
}

impl Request {
    pub(crate) fn read(head: &Parts, body: &Bytes) -> Result<Self, Failure> {
        let address = Address::parse(head.uri.path()).ok_or_else(Failure::page_not_found)?;
        let query = head.uri.query().unwrap_or_default().to_owned();
        let verb = match (&head.method, &address.name) {
            (&Method::GET, _) if address::query(&query)("watch").is_some_and(|watch| watch != "false") => Verb::Watch,
            (&Method::GET, None) => Verb::List,
            (&Method::GET, Some(_)) => Verb::Get,
            (&Method::POST, None) => Verb::Create,
            (&Method::POST, Some(_)) if address.subresource.is_some() => Verb::Create,
            (&Method::PUT, Some(_)) => Verb::Update,
            (&Method::PATCH, Some(_)) => Verb::Patch,
            (&Method::DELETE, Some(_)) => Verb::Delete,
            _ => return Err(Failure::method_not_allowed()),
        };
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body).map_err(|error| Failure::bad_request(&error.to_string()))?
        };
        let content_type = head.headers.get("content-type").and_then(|value| value.to_str().ok());
        Ok(Self {
            verb,
            address,
            query,
            content_type: content_type.unwrap_or("application/json").to_owned(),
            body,
        })
    }

    /// Does what is asked, and answers.
    pub(crate) fn serve(self, state: &Arc<Mutex<State>>, now: Timestamp) -> Response<Reply> {
        let answer = match self.verb {
            Verb::Watch => return self.watch(state),
            _ => self.answer(&mut state.lock().unwrap_or_else(PoisonError::into_inner).store, now),
        };
        match answer {
            Ok((code, body)) => whole(code, &body),
            Err(failure) => refusal(&failure),
        }
    }

    fn answer(&self, store: &mut Store, now: Timestamp) -> Result<(u16, Value), Failure> {
        let (resource, key) = (&self.address.resource, &self.address.key());
        match (self.verb, self.address.subresource.as_deref()) {
            (Verb::Get, None | Some("status")) => Ok((200, (**store.get(resource, key)?).clone())),
            (Verb::List, None) => self.list(store),
            (Verb::Create, None) => {
                let named = (resource, self.address.api_version());
                let body = self.body.clone();
                let created = write::create(store, (named.0, &named.1), &key.0, body, Origin::Request, now)?;
                Ok((201, (*created).clone()))
            }
            (Verb::Create, Some("eviction")) => pod::evict(store, key, &self.body, now).map(|()| success()),
            (Verb::Create, Some("binding")) => pod::bind(store, key, &self.body, now).map(|()| success()),
            (Verb::Update, part) => {
                let updated = write::update(store, resource, key, part_of(store, self, part)?, self.body.clone())?;
                Ok((200, (*updated).clone()))
            }
            (Verb::Patch, part) => {
                let part = part_of(store, self, part)?;
                let wanted = self.patched(store)?;
                let patched = write::update(store, resource, key, part, wanted)?;
                Ok((200, (*patched).clone()))
            }
            (Verb::Delete, None) => self.delete(store, now),
            _ => Err(Failure::page_not_found()),
        }
    }

    fn patched(&self, store: &Store) -> Result<Value, Failure> {
        let is_built_in = store.kinds.facts(&self.address.resource).is_built_in;
        let mut wanted = (**store.get(&self.address.resource, &self.address.key())?).clone();
        match self.content_type.as_str() {
            "application/merge-patch+json" => patch::merge(&mut wanted, &self.body),
            "application/json-patch+json" => patch::json(&mut wanted, &self.body)?,
            "application/strategic-merge-patch+json" if is_built_in => patch::strategic(&mut wanted, &self.body),
            _ => {
                let strategic = if is_built_in {
                    "application/strategic-merge-patch+json, "
                } else {
                    ""
                };
                return Err(Failure::unsupported_patch(&format!(
                    "application/json-patch+json, application/merge-patch+json, {strategic}application/apply-patch+yaml"
                )));
            }
        }
        Ok(wanted)
    }

    fn delete(&self, store: &mut Store, now: Timestamp) -> Result<(u16, Value), Failure> {
        let mut deletion = Deletion::of(&self.body);
        if let Some(seconds) = address::query(&self.query)("gracePeriodSeconds") {
            deletion.grace_seconds = seconds.parse().ok();
        }
        let (resource, key) = (&self.address.resource, &self.address.key());
        let (object, gone) = write::delete(store, resource, key, &deletion, now)?;
        if !gone || store.kinds.facts(resource).returns_deleted {
            return Ok((200, (*object).clone()));
        }
        let mut details = json!({"name": key.1, "kind": resource.plural, "uid": object["metadata"]["uid"]});
        if !resource.group.is_empty() {
            details["group"] = json!(resource.group);
        }
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
        Ok((200, status))
    }

    fn selector(&self) -> Selector {
        let query = address::query(&self.query);
        Selector::parse(query("labelSelector").as_deref(), query("fieldSelector").as_deref())
    }

    fn list(&self, store: &mut Store) -> Result<(u16, Value), Failure> {
        let query = address::query(&self.query);
        let limit = query("limit")
            .and_then(|limit| limit.parse().ok())
            .filter(|limit| *limit > 0);
        let (page, offset) = match query("continue") {
            Some(token) => continued(store, &token)?,
            None => (self.find(store), 0),
        };
        let end = limit.map_or(page.items.len(), |limit: usize| (offset + limit).min(page.items.len()));
        let facts = store.kinds.facts(&self.address.resource);
        let shown = |object: &Arc<Value>| {
            let mut item = (**object).clone();
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
            if self.selector().is_everything() {
                metadata["remainingItemCount"] = json!(left);
            }
            let token = store.identity();
            metadata["continue"] = json!(format!("{token}.{end}"));
            store.pages.insert(token, page);
        }
        let list = json!({
            "kind": format!("{}List", facts.kind), "apiVersion": self.address.api_version(),
            "metadata": metadata, "items": items,
        });
        Ok((200, list))
    }

    fn find(&self, store: &Store) -> Pages {
        let selector = self.selector();
        let namespace = self.address.namespace.as_deref();
        let chosen = |object: &&Arc<Value>| is_in(namespace, object) && selector.chooses(object);
        Pages {
            version: store.version,
            items: store.all(&self.address.resource).filter(chosen).cloned().collect(),
        }
    }

    fn watch(self, state: &Arc<Mutex<State>>) -> Response<Reply> {
        let query = address::query(&self.query);
        let since = query("resourceVersion").and_then(|version| version.parse().ok());
        let timeout = query("timeoutSeconds").and_then(|seconds| seconds.parse().ok());
        let mut selector = self.selector();
        if let Some(name) = &self.address.name {
            selector = Selector::parse(None, Some(&format!("metadata.name={name}")));
        }
        let lines = {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let terms = Terms {
                selector,
                since: since.filter(|version| *version > 0),
                lag: state.watch_lag,
            };
            watch::open(&mut state.store, &self.address, terms)
        };
        let has_bookmarks = query("allowWatchBookmarks").is_some_and(|wanted| wanted == "true");
        let promises = Promises {
            has_bookmarks,
            since: since.unwrap_or_default(),
            timeout: Duration::from_secs(timeout.unwrap_or(1800)),
        };
        let watching = Watching::new(lines, Arc::clone(state), self.address, &promises);
        respond(200, None, Reply::Watch(Box::new(watching)))
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

/// Which part of an object a path writes; there is no status of kinds without one.
fn part_of(store: &Store, request: &Request, subresource: Option<&str>) -> Result<Part, Failure> {
    match subresource {
        None => Ok(Part::Main),
        Some("status") if store.kinds.facts(&request.address.resource).has_status => Ok(Part::Status),
        Some(_) => Err(Failure::page_not_found()),
    }
}

fn success() -> (u16, Value) {
    (
        201,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    )
}

fn whole(code: u16, body: &Value) -> Response<Reply> {
    respond(code, None, Reply::Whole(Some(Bytes::from(body.to_string()))))
}

pub(crate) fn refusal(failure: &Failure) -> Response<Reply> {
    let body = Bytes::from(failure.status().to_string());
    respond(failure.code, failure.retry_after(), Reply::Whole(Some(body)))
}

/// A page that is none of a resource.
pub(crate) fn leaf(page: Page) -> Response<Reply> {
    let (bytes, media) = match page {
        Page::Json(value, media) => (Bytes::from(value.to_string()), media),
        Page::Text(text) => (Bytes::from_static(text.as_bytes()), "text/plain; charset=utf-8"),
    };
    let mut response = respond(200, None, Reply::Whole(Some(bytes)));
    response
        .headers_mut()
        .insert("content-type", http::HeaderValue::from_static(media));
    response
}

fn respond(code: u16, retry_after: Option<u64>, body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert("content-type", http::HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        headers.insert("retry-after", seconds.into());
    }
    response
}
