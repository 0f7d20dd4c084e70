//! How a request is answered.

mod list;
mod object;
mod part;

use std::{
    cell::RefCell,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Response, request::Parts};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    Failure, Verb,
    address::{Address, Query},
    apply::Writer,
    discovery::{Page, REVIEWS},
    kind::Facts,
    protobuf,
    reply::Reply,
    server::State,
    store::Store,
    table::{self, Include, Layout},
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
    query: Query,
    content_type: String,
    form: Form,
    body: Value,
    user_agent: String,
    /// Whether whoever asks is outside this process, and is told all that the real server would say.
    is_stranger: bool,
    warnings: RefCell<Vec<String>>,
}

/// In which form an answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Table,
    Metadata,
}

impl Form {
    /// The first form of an Accept header that is known.
    fn read(accept: &str) -> Self {
        for one in accept.split(',') {
            if one.contains("as=Table") {
                return Self::Table;
            }
            if one.contains("as=PartialObjectMetadata") {
                return Self::Metadata;
            }
            if one.trim().starts_with("application/json") || one.trim() == "*/*" {
                return Self::Plain;
            }
        }
        Self::Plain
    }
}

/// An answer: one that the store holds, or one made for the occasion.
enum Said {
    Kept(Arc<Value>),
    Made(Value),
}

impl Said {
    fn value(&self) -> &Value {
        match self {
            Self::Kept(value) => value,
            Self::Made(value) => value,
        }
    }
}

type Answer = Result<(u16, Said), Failure>;

impl Request {
    pub(crate) fn read(head: &Parts, body: &Bytes, is_stranger: bool) -> Result<Self, Failure> {
        let address = Address::parse(head.uri.path()).ok_or_else(Failure::page_not_found)?;
        let query = Query::parse(head.uri.query().unwrap_or_default());
        let verb = match (&head.method, &address.name) {
            (&Method::GET, _) if query.get("watch").is_some_and(|watch| watch != "false" && watch != "0") => {
                Verb::Watch
            }
            (&Method::GET, None) => Verb::List,
            (&Method::GET, Some(_)) => Verb::Get,
            (&Method::POST, None) => Verb::Create,
            (&Method::POST, Some(_)) if address.subresource.is_some() => Verb::Create,
            (&Method::PUT, Some(_)) => Verb::Update,
            (&Method::PATCH, Some(_)) => Verb::Patch,
            (&Method::DELETE, _) => Verb::Delete,
            _ => return Err(Failure::method_not_allowed()),
        };
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let content_type = header("content-type").unwrap_or("application/json");
        let content_type = content_type.split(';').next().unwrap_or_default().trim().to_owned();
        Ok(Self {
            verb,
            query,
            body: read_body(body, &content_type, is_review(&address))?,
            address,
            content_type,
            form: Form::read(header("accept").unwrap_or_default()),
            user_agent: header("user-agent").unwrap_or_default().to_owned(),
            is_stranger,
            warnings: RefCell::default(),
        })
    }

    /// Does what is asked, and answers.
    pub(crate) fn serve(
        self,
        state: &Arc<Mutex<State>>,
        clock: &Arc<dyn Fn() -> Timestamp + Send + Sync>,
    ) -> Response<Reply> {
        if self.verb == Verb::Watch {
            return self.watch(state, clock).unwrap_or_else(|failure| refusal(&failure));
        }
        let now = clock();
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let store = &mut state.store;
        if self.is_stranger
            && !is_review(&self.address)
            && !store.kinds.is_served(&self.address.resource, &self.address.version)
        {
            return nowhere();
        }
        let is_told_by_query = self.verb != Verb::Delete || self.body.is_null();
        store.is_rehearsal = is_told_by_query && self.query.get("dryRun") == Some("All");
        let answer = self.answer(store, now);
        store.is_rehearsal = false;
        let mut response = match answer {
            Ok((code, said)) => self.show(store, code, &said, now),
            Err(failure) => refusal(&failure),
        };
        drop(state);
        for warning in self.warnings.borrow().iter() {
            let text = format!("299 - {warning:?}");
            if let Ok(value) = HeaderValue::from_str(&text) {
                response.headers_mut().append("warning", value);
            }
        }
        response
    }

    fn answer(&self, store: &mut Store, now: Timestamp) -> Answer {
        let resource = &self.address.resource;
        if self.verb == Verb::Create
            && REVIEWS
                .iter()
                .any(|one| (one.0, one.2) == (&*resource.group, &*resource.plural))
        {
            return Ok((201, Said::Made(review(&self.body, &self.address))));
        }
        if !store.kinds.is_served(resource, &self.address.version) {
            return Err(Failure::page_not_found());
        }
        match (self.verb, self.address.subresource.as_deref()) {
            (Verb::List, None) => self.list(store),
            (Verb::Delete, None) if self.address.name.is_none() => self.delete_collection(store, now),
            (Verb::Get, None) => {
                let found = store.get(resource, &self.address.key())?;
                Ok((200, Said::Kept(self.as_asked(store, found))))
            }
            (Verb::Create, None) => self.create(store, now),
            (Verb::Update, None) => self.update(store, now),
            (Verb::Patch, None) => self.patch(store, now),
            (Verb::Delete, None) => self.delete(store, now),
            (_, Some(part)) => self.part(store, part, now),
            _ => Err(Failure::method_not_allowed()),
        }
    }

    /// An object under the version that was asked for: all versions of a kind have the same fields here.
    fn as_asked(&self, store: &Store, object: &Arc<Value>) -> Arc<Value> {
        let has_versions = store.kinds.facts(&self.address.resource).versions.len() > 1;
        if !has_versions || object["apiVersion"].as_str() == Some(&self.address.api_version()) {
            return Arc::clone(object);
        }
        let mut shown = (**object).clone();
        shown["apiVersion"] = json!(self.address.api_version());
        Arc::new(shown)
    }

    fn writer(&self, part: &str) -> Writer {
        let agent = self.user_agent.split('/').next().unwrap_or_default();
        Writer {
            manager: self.query.get("fieldManager").unwrap_or(agent).to_owned(),
            api_version: self.address.api_version(),
            subresource: part.to_owned(),
        }
    }

    fn show(&self, store: &Store, code: u16, said: &Said, now: Timestamp) -> Response<Reply> {
        let value = said.value();
        if self.form == Form::Plain || value["kind"] == "Status" || self.address.subresource.is_some() {
            return whole(code, value);
        }
        let facts = store.kinds.facts(&self.address.resource);
        whole(code, &self.formed(&facts, value, now))
    }

    /// An answer in the form that was asked for.
    fn formed(&self, facts: &Facts, value: &Value, now: Timestamp) -> Value {
        let items = value["items"].as_array().filter(|_| value["kind"] == facts.list_kind());
        if self.form == Form::Metadata {
            return match items {
                Some(items) => {
                    let items: Vec<Value> = items.iter().map(table::partial).collect();
                    json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                        "metadata": value["metadata"], "items": items})
                }
                None => table::partial(value),
            };
        }
        let layout = Layout::of(&self.address.resource, &self.address.version, facts);
        let one = std::slice::from_ref(value);
        let metadata = match items {
            Some(_) => value["metadata"].clone(),
            None => json!({"resourceVersion": value["metadata"]["resourceVersion"]}),
        };
        let objects = items.map_or(one, Vec::as_slice).iter();
        layout.table(objects, &metadata, self.include(), true, now)
    }

    fn include(&self) -> Include {
        match self.query.get("includeObject") {
            Some("None") => Include::Nothing,
            Some("Object") => Include::Object,
            _ => Include::Metadata,
        }
    }

    fn warn(&self, text: String) {
        self.warnings.borrow_mut().push(text);
    }
}

fn is_review(address: &Address) -> bool {
    let resource = &address.resource;
    let is_it = |one: &(&str, &str, &str, &str)| (one.0, one.2) == (&*resource.group, &*resource.plural);
    REVIEWS.iter().any(is_it)
}

fn read_body(body: &Bytes, content_type: &str, is_review: bool) -> Result<Value, Failure> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    if content_type == "application/vnd.kubernetes.protobuf" {
        // Whatever is asked in a review, the answer is yes.
        return if is_review {
            Ok(Value::Null)
        } else {
            protobuf::read(body).map_err(|error| Failure::bad_request(&error))
        };
    }
    let json = serde_json::from_slice(body);
    if !content_type.ends_with("yaml") {
        return json.map_err(|error| Failure::bad_request(&error.to_string()));
    }
    json.or_else(|_| {
        let text = String::from_utf8_lossy(body);
        serde_saphyr::from_str(&text).map_err(|error| Failure::bad_request(&format!("error decoding YAML: {error}")))
    })
}

/// Who asks may do everything, and is nobody in particular.
fn review(asked: &Value, address: &Address) -> Value {
    let mut answer = asked.clone();
    let kind = REVIEWS
        .iter()
        .find(|one| one.2 == address.resource.plural)
        .map(|one| one.3);
    answer["apiVersion"] = json!(address.api_version());
    answer["kind"] = json!(kind);
    answer["status"] = match address.resource.plural.as_str() {
        "selfsubjectreviews" => json!({"userInfo": {"username": "system:anonymous", "groups": ["system:masters"]}}),
        "selfsubjectrulesreviews" => {
            json!({"incomplete": false, "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]})
        }
        _ => json!({"allowed": true, "reason": "everybody may do everything here"}),
    };
    answer
}

fn success() -> (u16, Said) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    (201, Said::Made(status))
}

fn whole(code: u16, body: &Value) -> Response<Reply> {
    respond(code, None, Reply::Whole(Some(Bytes::from(body.to_string()))))
}

pub(crate) fn refusal(failure: &Failure) -> Response<Reply> {
    let body = Bytes::from(failure.status().to_string());
    respond(failure.code, failure.retry_after(), Reply::Whole(Some(body)))
}

/// What nothing is at says no more than that.
fn nowhere() -> Response<Reply> {
    let mut response = leaf(Page::Text("404 page not found\n"));
    *response.status_mut() = http::StatusCode::NOT_FOUND;
    response
}

/// A page that is none of a resource.
pub(crate) fn leaf(page: Page) -> Response<Reply> {
    let (bytes, media) = match page {
        Page::Json(value, media) => (Bytes::from(value.to_string()), media),
        Page::Text(text) => (Bytes::from_static(text.as_bytes()), "text/plain; charset=utf-8"),
    };
    let mut response = respond(200, None, Reply::Whole(Some(bytes)));
    let media = HeaderValue::from_static(media);
    response.headers_mut().insert("content-type", media);
    response
}

fn respond(code: u16, retry_after: Option<u64>, body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        headers.insert("retry-after", seconds.into());
    }
    response
}
