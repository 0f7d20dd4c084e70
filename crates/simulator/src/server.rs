//! The API server: what clients of it speak to, and what a test sees and does behind their backs.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response, request::Parts};
use http_body_util::BodyExt;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use kube_client::client::Body;
use serde_json::Value;
use tokio::sync::{
    Notify,
    mpsc::{UnboundedReceiver, unbounded_channel},
    oneshot,
};

use crate::{
    Change, Failure, Fault, Logged, RequestFacts, Resource, Verb,
    address::{Address, Key},
    discovery, pod,
    reply::Reply,
    request::{self, refusal},
    store::{Backup, Store},
    write::{self, Deletion, Origin, Part},
};

type Faults = Box<dyn FnMut(&RequestFacts) -> Fault + Send>;

/// An API server in this process. Clones are the same server.
#[derive(Clone)]
pub struct ApiServer {
    state: Arc<Mutex<State>>,
    faults: Arc<Mutex<Option<Faults>>>,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    crash: Arc<Notify>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) watch_lag: Duration,
    log: Vec<Logged>,
    requests: u64,
    writes: u64,
}

impl ApiServer {
    /// An empty cluster whose time the clock tells.
    pub fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            state: Arc::default(),
            faults: Arc::default(),
            clock: Arc::new(clock),
            crash: Arc::default(),
        }
    }

    /// A client. Each is a process of its own: when a fault kills it, all its calls hang for ever, those of others do not.
    /// To be made inside a runtime.
    pub fn client(&self) -> kube_client::Client {
        kube_client::Client::new(self.line(false), "default")
    }

    /// What a client outside this process speaks through.
    pub(crate) fn stranger(&self) -> Line {
        self.line(true)
    }

    fn line(&self, is_stranger: bool) -> Line {
        Line {
            server: self.clone(),
            is_dead: Arc::default(),
            is_stranger,
        }
    }

    /// What goes wrong from now on. The hook may look at the server and must not change it.
    pub fn set_faults(&self, faults: impl FnMut(&RequestFacts) -> Fault + Send + 'static) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(faults));
    }

    /// Nothing goes wrong from now on.
    pub fn clear_faults(&self) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits until a fault has killed a client.
    pub async fn crashed(&self) {
        self.crash.notified().await;
    }

    /// Watches begun from now on see changes this much later.
    pub fn set_watch_lag(&self, lag: Duration) {
        self.lock().watch_lag = lag;
    }

    /// How many changes are remembered for those who resume a watch.
    pub fn keep_history(&self, changes: usize) {
        self.lock().store.keep_history(changes);
    }

    /// Forgets everything that happened until now.
    pub fn compact(&self) {
        self.lock().store.compact();
    }

    /// What the store holds now, to be set back to.
    pub fn backup(&self) -> Backup {
        self.lock().store.backup()
    }

    /// Sets the store back, as a restore of etcd from a backup does: versions go backwards, and what came since never was.
    pub fn restore(&self, backup: &Backup) {
        self.lock().store.restore(backup);
    }

    /// Ends every open watch.
    pub fn drop_watches(&self) {
        self.lock().store.watchers.clear();
    }

    /// Every request answered so far, in order.
    pub fn log(&self) -> Vec<Logged> {
        self.lock().log.clone()
    }

    /// How many writes clients have asked for so far.
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    /// Every change from now on, as it happens.
    pub fn changes(&self) -> UnboundedReceiver<Change> {
        let (sender, receiver) = unbounded_channel();
        self.lock().store.listeners.push(sender);
        receiver
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Creates an object as it is given, status and all. A pod without a namespace is put into `default`.
    pub fn create(&self, object: Value) -> Result<Arc<Value>, Failure> {
        let now = self.now();
        let mut state = self.lock();
        let api_version = object["apiVersion"].as_str().unwrap_or("v1").to_owned();
        let kind = object["kind"].as_str().unwrap_or_default();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let resource = state.store.kinds.resource(Some(group), kind);
        let is_namespaced = state.store.kinds.facts(&resource).is_namespaced;
        let namespace = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => namespace,
            None if is_namespaced => "default",
            None => "",
        };
        let namespace = namespace.to_owned();
        let named = (&resource, api_version.as_str());
        write::create(&mut state.store, named, &namespace, object, Origin::Test, now)
    }

    /// An object: of a kind as in its manifest, `namespace/name` or `name`.
    pub fn get(&self, kind: &str, key: &str) -> Option<Value> {
        let state = self.lock();
        let resource = state.store.kinds.resource(None, kind);
        let found = state.store.find(&resource, &split(key));
        found.map(|object| (**object).clone())
    }

    /// An object as the store holds it: looking costs nothing.
    pub fn object(&self, kind: &str, key: &str) -> Option<Arc<Value>> {
        let state = self.lock();
        let resource = state.store.kinds.resource(None, kind);
        state.store.find(&resource, &split(key)).cloned()
    }

    /// All objects of a kind, by namespace and name.
    pub fn list(&self, kind: &str) -> Vec<Value> {
        let state = self.lock();
        let resource = state.store.kinds.resource(None, kind);
        state.store.all(&resource).map(|object| (**object).clone()).collect()
    }

    /// All objects of a kind, by namespace and name, as the store holds them: looking costs nothing.
    pub fn objects(&self, kind: &str) -> Vec<Arc<Value>> {
        let state = self.lock();
        let resource = state.store.kinds.resource(None, kind);
        state.store.all(&resource).cloned().collect()
    }

    /// Changes an object, status and all.
    pub fn update(&self, kind: &str, key: &str, change: impl FnOnce(&mut Value)) -> Result<Arc<Value>, Failure> {
        let mut state = self.lock();
        let resource = state.store.kinds.resource(None, kind);
        let key = split(key);
        let mut wanted = (**state.store.get(&resource, &key)?).clone();
        change(&mut wanted);
        write::update(&mut state.store, &resource, &key, Part::Whole, wanted)
    }

    /// Deletes an object as a user would: finalizers and grace are respected.
    pub fn delete(&self, kind: &str, key: &str) -> Result<(), Failure> {
        self.end(kind, key, &Deletion::default())
    }

    /// Deletes an object without grace, as a kubelet does when a pod has ended. Finalizers are respected.
    pub fn delete_now(&self, kind: &str, key: &str) -> Result<(), Failure> {
        let deletion = Deletion {
            grace_seconds: Some(0),
            ..Deletion::default()
        };
        self.end(kind, key, &deletion)
    }

    fn end(&self, kind: &str, key: &str, deletion: &Deletion) -> Result<(), Failure> {
        let now = self.now();
        let mut state = self.lock();
        let resource = state.store.kinds.resource(None, kind);
        write::delete(&mut state.store, &resource, &split(key), deletion, now).map(drop)
    }

    /// Tells of a custom resource before there is an object of it.
    pub fn define(&self, resource: &Resource, kind: &str, is_namespaced: bool) {
        self.lock().store.kinds.learn(resource, kind, is_namespaced);
    }

    pub(crate) fn all(&self, resource: &Resource) -> Vec<Arc<Value>> {
        self.lock().store.all(resource).cloned().collect()
    }

    /// An object as it is now.
    pub(crate) fn current(&self, resource: &Resource, key: &Key) -> Option<Arc<Value>> {
        self.lock().store.find(resource, key).cloned()
    }

    pub(crate) fn all_of(&self, group: &str, kind: &str) -> Vec<Arc<Value>> {
        let resource = self.lock().store.kinds.resource(Some(group), kind);
        self.all(&resource)
    }

    pub(crate) fn everything(&self) -> Vec<Arc<Value>> {
        self.lock().store.everything().cloned().collect()
    }

    pub(crate) fn bind(&self, pod: &str, binding: &Value) -> Result<(), Failure> {
        let now = self.now();
        pod::bind(&mut self.lock().store, &split(pod), binding, now)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request, and asks what goes wrong with it.
    fn judge(&self, head: &Parts, request: &request::Request) -> Fault {
        let facts = {
            let mut state = self.lock();
            state.requests += 1;
            state.writes += u64::from(request.verb.is_write());
            RequestFacts {
                number: state.requests,
                write: request.verb.is_write().then_some(state.writes),
                verb: request.verb,
                resource: request.address.resource.clone(),
                namespace: request.address.namespace.clone().unwrap_or_default(),
                name: request.address.name.clone().unwrap_or_default(),
                subresource: request.address.subresource.clone().unwrap_or_default(),
                agent: agent(head).to_owned(),
            }
        };
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.as_mut().map_or(Fault::None, |faults| faults(&facts))
    }

    /// Answers a request; none when whoever asked is dead.
    async fn answer(&self, line: &Line, head: Parts, body: Body) -> Option<Result<Response<Reply>, std::io::Error>> {
        if line.is_dead.load(Ordering::Relaxed) {
            return None;
        }
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return Some(Err(std::io::Error::other(error.to_string()))),
        };
        if let Some(page) = self.page(&head) {
            return Some(Ok(request::leaf(page)));
        }
        let request = match request::Request::read(&head, &body, line.is_stranger) {
            Ok(request) => request,
            Err(failure) => return Some(Ok(refusal(&failure))),
        };
        let fault = self.judge(&head, &request);
        match fault {
            Fault::Fail(code) => {
                self.note(&head, request.verb, code);
                return Some(Ok(refusal(&Failure::injected(code))));
            }
            Fault::Unreachable => {
                return Some(Err(std::io::Error::other("network is unreachable (injected fault)")));
            }
            Fault::CrashBefore => {
                line.die();
                return None;
            }
            Fault::Delay(time) => tokio::time::sleep(time).await,
            Fault::DropWatches => self.drop_watches(),
            Fault::CompactHistory => self.compact(),
            Fault::None | Fault::LoseAnswer | Fault::CrashAfter => {}
        }
        let response = self.apply(&head, request);
        match fault {
            Fault::LoseAnswer => Some(Err(std::io::Error::other("connection reset by peer (injected fault)"))),
            Fault::CrashAfter => {
                line.die();
                None
            }
            _ => Some(Ok(response)),
        }
    }

    /// What is asked for, if it is none of a resource.
    fn page(&self, head: &Parts) -> Option<discovery::Page> {
        if head.method != http::Method::GET || Address::parse(head.uri.path()).is_some() {
            return None;
        }
        let accept = head.headers.get("accept").and_then(|value| value.to_str().ok());
        discovery::page(&self.lock().store.kinds, head.uri.path(), accept.unwrap_or_default())
    }

    fn apply(&self, head: &Parts, request: request::Request) -> Response<Reply> {
        let verb = request.verb;
        let now = self.now();
        let mut response = request.serve(&self.state, &self.clock);
        let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&now);
        if let Some(date) = date.ok().and_then(|date| date.parse().ok()) {
            response.headers_mut().insert(http::header::DATE, date);
        }
        self.note(head, verb, response.status().as_u16());
        response
    }

    fn note(&self, head: &Parts, verb: Verb, code: u16) {
        let logged = Logged {
            at: self.now(),
            user_agent: agent(head).to_owned(),
            verb,
            path: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            code,
        };
        self.lock().log.push(logged);
    }
}

/// Who asks.
fn agent(head: &Parts) -> &str {
    let agent = head.headers.get("user-agent").and_then(|value| value.to_str().ok());
    agent.unwrap_or_default()
}

fn split(key: &str) -> Key {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    (namespace.to_owned(), name.to_owned())
}

/// What one client speaks through.
#[derive(Clone)]
pub(crate) struct Line {
    server: ApiServer,
    is_dead: Arc<AtomicBool>,
    is_stranger: bool,
}

impl Line {
    /// The server's time as answers write it.
    pub(crate) fn date(&self) -> String {
        let now = self.server.now().to_zoned(jiff::tz::TimeZone::UTC);
        now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    fn die(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
        self.server.crash.notify_one();
    }
}

impl tower::Service<Request<Body>> for Line {
    type Response = Response<Reply>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Reply>, std::io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Ok(()))
    }

    /// A request is served also if whoever asked no longer waits: real servers do not take back what they were sent.
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (answer, answered) = oneshot::channel();
        let line = self.clone();
        tokio::spawn(async move {
            let (head, body) = request.into_parts();
            match line.server.answer(&line, head, body).await {
                Some(response) => drop(answer.send(response)),
                None => std::future::pending().await,
            }
        });
        Box::pin(async move {
            let lost = || std::io::Error::other("the API server is gone");
            answered.await.unwrap_or_else(|_| Err(lost()))
        })
    }
}
