//! How a call is made: in its turn, within a deadline, and once more where that can do no harm.
//!
//! A call waits for its turn first (a wait that is known beforehand, and refused when it is too long). From then on
//! everything, repetitions included, happens within one deadline.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, header};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube_client::client::Body;
use serde_json::Value;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout_at},
};

use super::{
    MayWrite, Options,
    error::{ApiError, with_causes},
    observe::{Counters, Counts, Nobody, Observation, Observer},
    server_time::ServerTime,
    target::Target,
};
use crate::{
    random::Random,
    rate::{Rate, TokenBucket},
};

/// How long the answer to a question may take.
const READ: Duration = Duration::from_secs(10);
/// How long a change may take; webhooks may answer late.
const WRITE: Duration = Duration::from_secs(30);
/// How long a call may wait for its turn.
const TURN: Duration = Duration::from_mins(1);
/// How often one call is repeated.
const RETRIES: u32 = 3;
/// How often all calls together are repeated: when nothing works, asking again does not help.
const RETRY_RATE: Rate = Rate {
    per_second: 10.0,
    burst: 50,
};
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Requests under way at a time. HTTP/1.1 needs a connection for each, and a connection costs a TLS handshake.
const AT_ONCE: usize = 64;

pub(super) struct Transport {
    client: kube_client::Client,
    user_agent: HeaderValue,
    deadline: Option<Duration>,
    turns: Option<TokenBucket>,
    retries: TokenBucket,
    slots: Semaphore,
    random: Random,
    observer: Arc<dyn Observer>,
    may_write: Option<MayWrite>,
    counters: Counters,
    server_time: ServerTime,
}

/// What is asked.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) body: Option<&'a Value>,
    pub(super) content_type: &'a str,
    pub(super) repeat: Repeat,
}

/// Whether a call that may have reached the server can be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It could happen twice, or its answer is the point, as with an eviction.
    Never,
    /// Twice is the same as once.
    Freely,
    /// The object's name keeps it from being created twice; who made it is to be found out.
    Named,
}

impl<'a> Call<'a> {
    pub(super) fn new(method: Method, path: &'a str, body: Option<&'a Value>, content_type: &'a str) -> Self {
        let repeat = Repeat::of(&method, path, body);
        Self {
            method,
            path,
            body,
            content_type,
            repeat,
        }
    }

    fn is_write(&self) -> bool {
        self.method != Method::GET
    }

    fn fault(&self, message: String) -> ApiError {
        ApiError::transport(&self.method, self.path, message)
    }
}

impl Repeat {
    fn of(method: &Method, path: &str, body: Option<&Value>) -> Self {
        match *method {
            Method::GET | Method::PATCH | Method::DELETE => Self::Freely,
            Method::POST if name_in(body).is_some() && Target::of(path).name.is_empty() => Self::Named,
            // The second of two equal PUTs meets the version of the first: a conflict with ourselves.
            _ => Self::Never,
        }
    }
}

fn name_in(body: Option<&Value>) -> Option<&str> {
    body?
        .pointer("/metadata/name")?
        .as_str()
        .filter(|name| !name.is_empty())
}

impl Transport {
    pub(super) fn new(client: kube_client::Client, options: Options) -> Self {
        let user_agent = HeaderValue::from_str(&options.user_agent);
        Self {
            client,
            user_agent: user_agent.unwrap_or(HeaderValue::from_static("karpenter")),
            deadline: options.deadline,
            turns: options.rate.map(TokenBucket::new),
            retries: TokenBucket::new(RETRY_RATE),
            slots: Semaphore::new(AT_ONCE),
            random: options.random,
            observer: options.observer.unwrap_or_else(|| Arc::new(Nobody)),
            may_write: options.may_write,
            counters: Counters::default(),
            server_time: ServerTime::default(),
        }
    }

    pub(super) fn random(&self) -> &Random {
        &self.random
    }

    pub(super) fn counts(&self) -> Counts {
        self.counters.now()
    }

    pub(super) fn server_time(&self) -> Option<Timestamp> {
        self.server_time.now()
    }

    /// The whole answer.
    pub(super) async fn answer(&self, call: &Call<'_>) -> Result<Bytes, ApiError> {
        self.turn(call).await?;
        let limit = self.deadline.unwrap_or(if call.is_write() { WRITE } else { READ });
        let deadline = Instant::now() + limit;
        let mut retries = 0;
        let mut reached = false;
        loop {
            let attempt = timeout_at(deadline, self.once(call)).await;
            let late = || Err(call.fault(format!("no answer within {} s", limit.as_secs())));
            let error = match attempt.unwrap_or_else(|_| late()) {
                Ok(bytes) => return Ok(bytes),
                Err(error) if reached && error.is_already_exists() => return self.settle(call, error, deadline).await,
                Err(error) => error,
            };
            let Some(pause) = self
                .pause(call, &error, retries)
                .filter(|p| Instant::now() + *p < deadline)
            else {
                return Err(error);
            };
            // Told to come back later, the server has done nothing; after any other failure it may have.
            reached |= !error.is_too_many_requests();
            retries += 1;
            self.counters.retries.raise();
            sleep(pause).await;
            self.turn(call).await?;
        }
    }

    /// Opens an answer that goes on; the caller reads and bounds it.
    pub(super) async fn open(&self, path: &str) -> Result<Body, ApiError> {
        let call = Call::new(Method::GET, path, None, "application/json");
        self.turn(&call).await?;
        let opening = async {
            let (status, headers, body) = self.send(&call).await?;
            if status.is_success() {
                return Ok(body);
            }
            let bytes = whole(&call, body).await?;
            Err(ApiError::status(&call.method, path, status.as_u16(), &headers, &bytes))
        };
        let opened = timeout_at(Instant::now() + WRITE, opening).await;
        opened.unwrap_or_else(|_| Err(call.fault(format!("no answer within {} s", WRITE.as_secs()))))
    }

    /// Waits until we may ask.
    async fn turn(&self, call: &Call<'_>) -> Result<(), ApiError> {
        let Some(turns) = &self.turns else {
            return Ok(());
        };
        let Some(wait) = turns.reserve(TURN) else {
            self.counters.refused.raise();
            let limit = TURN.as_secs();
            return Err(call.fault(format!(
                "not sent: so many calls wait for their turn that it would take more than {limit} s; raise \
                 --kube-client-qps and --kube-client-burst if the API server can bear it"
            )));
        };
        if !wait.is_zero() {
            self.counters.waited.raise();
            self.observer.waited(wait.as_secs_f64());
            sleep(wait).await;
        }
        Ok(())
    }

    async fn once(&self, call: &Call<'_>) -> Result<Bytes, ApiError> {
        let _slot = self
            .slots
            .acquire()
            .await
            .map_err(|error| call.fault(error.to_string()))?;
        let (status, headers, body) = self.send(call).await?;
        let bytes = whole(call, body).await?;
        if status.is_success() {
            return Ok(bytes);
        }
        Err(ApiError::status(
            &call.method,
            call.path,
            status.as_u16(),
            &headers,
            &bytes,
        ))
    }

    async fn send(&self, call: &Call<'_>) -> Result<(http::StatusCode, HeaderMap, Body), ApiError> {
        if call.is_write() && self.may_write.as_ref().is_some_and(|may_write| !may_write()) {
            return Err(ApiError::not_leading(&call.method, call.path));
        }
        let request = self.request(call)?;
        let counter = if call.is_write() {
            &self.counters.writes
        } else {
            &self.counters.reads
        };
        counter.raise();
        let mut observed = Observed::new(self, call);
        let response = self
            .client
            .send(request)
            .await
            .map_err(|error| call.fault(with_causes(&error)))?;
        let (head, body) = response.into_parts();
        observed.code = Some(head.status.as_u16());
        self.server_time.take_in(&head.headers);
        Ok((head.status, head.headers, body))
    }

    fn request(&self, call: &Call<'_>) -> Result<Request<Body>, ApiError> {
        let bytes = call.body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        Request::builder()
            .method(call.method.clone())
            .uri(call.path)
            .header(header::CONTENT_TYPE, call.content_type)
            .header(header::ACCEPT, "application/json")
            // The server names the field manager after it: `karpenter`, as upstream's.
            .header(header::USER_AGENT, self.user_agent.clone())
            .body(Body::from(bytes))
            .map_err(|error| call.fault(error.to_string()))
    }

    /// How long to wait before the call is made again, if it is.
    fn pause(&self, call: &Call<'_>, error: &ApiError, retries: u32) -> Option<Duration> {
        if call.repeat == Repeat::Never || retries >= RETRIES || !error.is_passing() || !self.retries.try_take() {
            return None;
        }
        let pause = self.random.jittered(FIRST_PAUSE * 2u32.pow(retries), 1.0);
        let asked = Duration::from_secs(error.retry_after_seconds.unwrap_or_default());
        Some(pause.max(asked))
    }

    /// The name is taken after a creation whose answer was lost. It is ours if all that we sent is there; who must know
    /// more sends something that nobody else would.
    async fn settle(&self, call: &Call<'_>, error: ApiError, deadline: Instant) -> Result<Bytes, ApiError> {
        let (Some(sent), Some(name)) = (call.body, name_in(call.body)) else {
            return Err(error);
        };
        let path = format!("{}/{name}", call.path);
        let look = Call::new(Method::GET, &path, None, call.content_type);
        let Ok(Ok(found)) = timeout_at(deadline, self.once(&look)).await else {
            return Err(error);
        };
        match serde_json::from_slice::<Value>(&found) {
            Ok(object) if holds(&object, sent) => Ok(found),
            _ => Err(error),
        }
    }
}

/// All of `part` is in `whole`, which may have more: defaults, status, who else wrote.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, value)| whole.get(key).map_or(value.is_null(), |found| holds(found, value))),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| holds(whole, part))
        }
        (whole, part) => whole == part,
    }
}

async fn whole(call: &Call<'_>, body: Body) -> Result<Bytes, ApiError> {
    let collected = body.collect().await;
    collected
        .map(http_body_util::Collected::to_bytes)
        .map_err(|error| call.fault(with_causes(&error)))
}

/// Tells the observer when the request is over, also when it is given up.
struct Observed<'a> {
    transport: &'a Transport,
    call: &'a Call<'a>,
    began: Instant,
    code: Option<u16>,
}

impl<'a> Observed<'a> {
    fn new(transport: &'a Transport, call: &'a Call<'a>) -> Self {
        Self {
            transport,
            call,
            began: Instant::now(),
            code: None,
        }
    }
}

impl Drop for Observed<'_> {
    fn drop(&mut self) {
        let target = Target::of(self.call.path);
        let verb = match target.verb(&self.call.method) {
            "create" => "CREATE",
            "update" => "UPDATE",
            "patch" => "PATCH",
            "delete" => "DELETE",
            "watch" => "WATCH",
            "list" => "LIST",
            _ => "GET",
        };
        self.transport.observer.requested(&Observation {
            method: self.call.method.as_str(),
            verb,
            group: target.group,
            version: target.version,
            resource: target.resource,
            subresource: target.subresource,
            code: self.code,
            seconds: self.began.elapsed().as_secs_f64(),
        });
    }
}
