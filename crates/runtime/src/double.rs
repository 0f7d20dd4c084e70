//! An API server for tests: a function from requests to answers, without a network.

use std::{
    collections::VecDeque,
    error::Error,
    future::Future,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{
    BodyExt, Full,
    channel::{Channel, Sender},
    combinators::UnsyncBoxBody,
};
use kube_client::client::Body;
use serde_json::Value;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;
pub(crate) type Served = Response<UnsyncBoxBody<Bytes, BoxError>>;
pub(crate) type Answer = Result<Served, BoxError>;

/// A client whose requests end in a function.
pub(crate) fn client<F, A>(serve: F) -> kube_client::Client
where
    F: FnMut(Asked) -> A + Send + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let serve = Arc::new(Mutex::new(serve));
    let service = tower::service_fn(move |request: Request<Body>| {
        let serve = Arc::clone(&serve);
        async move {
            let asked = Asked::from(request).await;
            let answer = (serve.lock().unwrap())(asked);
            answer.await
        }
    });
    kube_client::Client::new(service, "default")
}

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Method and path with query.
    pub(crate) line: String,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    pub(crate) body: Value,
}

impl Asked {
    async fn from(request: Request<Body>) -> Self {
        let (head, body) = request.into_parts();
        let header = |name: &str| head.headers[name].to_str().unwrap().to_owned();
        let bytes = body.collect().await.unwrap().to_bytes();
        Self {
            line: format!("{} {}", head.method, head.uri),
            content_type: header("content-type"),
            user_agent: header("user-agent"),
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
        }
    }
}

/// Everything that was asked, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Asked>>>);

impl Log {
    pub(crate) fn push(&self, asked: Asked) {
        self.0.lock().unwrap().push(asked);
    }

    pub(crate) fn all(&self) -> Vec<Asked> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.all().into_iter().map(|asked| asked.line).collect()
    }
}

/// What a scripted server does with a request.
pub(crate) enum Step {
    /// Answers.
    Say(u16, String),
    /// Answers, and asks to come back after seconds.
    SayLater(u16, u64),
    /// Begins an answer that the test goes on with.
    Stream(Channel<Bytes, BoxError>),
    /// Breaks the connection.
    Break,
    /// Says nothing, ever.
    Hang,
}

/// A server that answers request after request from a script, and what it was asked.
pub(crate) fn scripted(steps: impl IntoIterator<Item = Step>) -> (kube_client::Client, Log) {
    let mut steps: VecDeque<Step> = steps.into_iter().collect();
    let log = Log::default();
    let asked_log = log.clone();
    let client = client(move |asked| {
        asked_log.push(asked);
        // A script that is over leaves the asker waiting, so that a test sees what it waits for.
        let step = steps.pop_front().unwrap_or(Step::Hang);
        async move {
            match step {
                Step::Say(code, body) => Ok(answer(code, &body)),
                Step::SayLater(code, seconds) => {
                    let mut response = answer(code, "{}");
                    response.headers_mut().insert("retry-after", seconds.into());
                    Ok(response)
                }
                Step::Stream(channel) => Ok(Response::new(channel.boxed_unsync())),
                Step::Break => Err("connection reset by peer".into()),
                Step::Hang => std::future::pending().await,
            }
        }
    });
    (client, log)
}

/// An answer that is all there.
pub(crate) fn answer(code: u16, body: &str) -> Served {
    let body = Full::new(Bytes::from(body.to_owned()));
    let body = body.map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(code).body(body).unwrap()
}

/// An answer that goes on, and where the test says how.
pub(crate) fn stream() -> (Sender<Bytes, BoxError>, Step) {
    let (sender, channel) = Channel::new(64);
    (sender, Step::Stream(channel))
}
