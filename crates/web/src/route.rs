//! Which path gives which answer.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Limited};
use insight::{
    View,
    outlook::Reach,
    why::{node::NodeExplanation, pod::PodExplanation, pool::NodePoolExplanation},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};

use crate::{
    Access, Asked, Refused, Verdict,
    asset::Asset,
    desk::{Desk, Trouble},
    guard::{self, Hosts},
    hub::Watcher,
};

/// What a question may be long.
const LONGEST: usize = 16 << 10;
/// How long it may take to be asked.
const ASKING: Duration = Duration::from_secs(10);
/// So often a silent stream says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// A watcher that does not read for so long is gone.
const UNREAD: Duration = Duration::from_secs(30);
/// Pods whose way is followed to explain a pool.
const MOST_FOLLOWED: usize = 24;

/// What the port offers.
pub(crate) struct Site {
    pub(crate) desk: Desk,
    pub(crate) access: Access,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Said at once.
    Whole(Option<Bytes>),
    /// Said as it happens.
    Stream(mpsc::Receiver<Bytes>),
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(events) => events
                .poll_recv(context)
                .map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

impl Site {
    /// Answers a request.
    pub(crate) async fn answer<B>(self: Arc<Self>, request: Request<B>) -> Response<Reply>
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let mut response = match self.admit(&head).await {
            Ok(()) => self.route(&head, body).await,
            Err(refused) => refused,
        };
        guard::protect(response.headers_mut());
        response
    }

    /// Nothing when the request may be answered.
    async fn admit(&self, head: &Parts) -> Result<(), Response<Reply>> {
        let hosts = match self.access {
            Access::ThisMachine => Hosts::Loopback,
            Access::Reviewed(_) => Hosts::Any,
        };
        guard::check(head, hosts).map_err(|(code, why)| failure(code, why, "", ""))?;
        let Access::Reviewed(gate) = &self.access else {
            return Ok(());
        };
        // The files are the same for everybody; the cluster is not.
        if !head.uri.path().starts_with("/api/") {
            return Ok(());
        }
        let authorization = head.headers.get(header::AUTHORIZATION);
        let authorization = authorization.and_then(|value| value.to_str().ok());
        match gate.verdict(authorization).await {
            Verdict::Allowed => Ok(()),
            Verdict::Unknown => Err(failure(
                StatusCode::UNAUTHORIZED,
                "the cluster does not know this token",
                "the page shows what is in the cluster, so it asks who you are",
                "kubectl create token NAME -n NAMESPACE",
            )),
            Verdict::Forbidden => Err(failure(
                StatusCode::FORBIDDEN,
                "this token may not list nodepools.karpenter.sh",
                "who may read NodePools may read the page",
                "bind its bearer to a role with list on nodepools.karpenter.sh",
            )),
            Verdict::Unanswered => Err(failure(
                StatusCode::SERVICE_UNAVAILABLE,
                "the token could not be reviewed",
                "the API server did not answer, or the controller may not ask it",
                "kubectl apply -f deploy/page.yaml",
            )),
        }
    }

    async fn route<B>(&self, head: &Parts, body: B) -> Response<Reply>
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = head.uri.path();
        if let Some(asset) = Asset::at(path).filter(|_| head.method != Method::POST) {
            return file(asset, head);
        }
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let is_post = head.method == Method::POST;
        match (is_post, parts.as_slice()) {
            (false, ["api", "document"]) => {
                self.desk.glance().await;
                match self.desk.hub().text() {
                    Some(text) => said(StatusCode::OK, "application/json", text),
                    None => failure(StatusCode::SERVICE_UNAVAILABLE, "nothing was seen yet", "", "ask again"),
                }
            }
            (false, ["api", "stream"]) => self.stream(head),
            (false, ["api", "why", "node", name]) => self.why_node((*name).to_owned()).await,
            (false, ["api", "why", "pod", namespace, name]) => {
                self.why_pod((*namespace).to_owned(), (*name).to_owned()).await
            }
            (false, ["api", "why", "nodepool", name]) => self.why_pool((*name).to_owned()).await,
            (false, ["api", "decision", id]) => self.decision((*id).to_owned()).await,
            (true, ["api", "whatif"]) => self.whatif(body).await,
            (true, ["api", "demo", act]) => self.act(act, body).await,
            _ => failure(StatusCode::NOT_FOUND, "there is nothing here", path, "open /"),
        }
    }

    fn stream(&self, head: &Parts) -> Response<Reply> {
        let last = head.headers.get("last-event-id").and_then(|value| value.to_str().ok());
        let Some(watcher) = self.desk.hub().watch(last) else {
            return failure(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many watch already",
                "",
                "close a page",
            );
        };
        let (events, received) = mpsc::channel(1);
        tokio::spawn(tell(watcher, events));
        let mut response = Response::new(Reply::Stream(received));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    async fn why_node(&self, name: String) -> Response<Reply> {
        let asked = name.clone();
        let answer = self.desk.ask(move |seen, prices, _| {
            let view = View::priced(&seen.snapshot, prices);
            let machine = view.machine(&asked)?;
            let reach = Reach::for_machines(view.machines.len(), 1);
            Some(document(&NodeExplanation::of(&view, machine, reach)))
        });
        found(answer.await, "node", &name)
    }

    async fn why_pod(&self, namespace: String, name: String) -> Response<Reply> {
        let asked = format!("{namespace}/{name}");
        let answer = self.desk.ask(move |seen, prices, _| {
            let view = View::priced(&seen.snapshot, prices);
            let pods = &seen.snapshot.objects().pods;
            let pod = pods.iter().find(|pod| {
                let metadata = &pod.metadata;
                *metadata.namespace == *namespace && *metadata.name == *name
            })?;
            Some(document(&PodExplanation::of(&view, pod, &packing::Options::default())))
        });
        found(answer.await, "pod", &asked)
    }

    async fn why_pool(&self, name: String) -> Response<Reply> {
        let asked = name.clone();
        let answer = self.desk.ask(move |seen, prices, _| {
            let view = View::priced(&seen.snapshot, prices);
            let pool = seen.snapshot.objects().node_pools.find("", &asked)?;
            let options = packing::Options::default();
            let plan = packing::plan(&seen.snapshot, &options);
            let waiting = plan.unplaced.iter().take(MOST_FOLLOWED);
            let waiting: Vec<_> = waiting.map(|it| it.pod.metadata.key()).collect();
            let explanations = if waiting.is_empty() {
                Vec::new()
            } else {
                packing::explain::explain(&seen.snapshot, &options, &waiting)
            };
            Some(document(&NodePoolExplanation::of(&view, pool, &explanations)))
        });
        found(answer.await, "NodePool", &name)
    }

    async fn decision(&self, id: String) -> Response<Reply> {
        let answer = self.desk.recall(|seen, answers| {
            let record = seen.decisions.iter().find(|record| record.id.to_string() == id)?;
            Some(document(&answers.decision(record)))
        });
        found(answer.await, "decision", &id)
    }

    async fn whatif<B>(&self, body: B) -> Response<Reply>
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let asked: Asked = match read(body).await {
            Ok(asked) => asked,
            Err(refused) => return refused,
        };
        let answer = self
            .desk
            .ask(move |seen, _, answers| answers.whatif(&seen.snapshot, &asked).map(|tree| document(&tree)));
        match answer.await {
            Ok(Ok(text)) => said(StatusCode::OK, "application/json", text),
            Ok(Err(refused)) => refusal(StatusCode::UNPROCESSABLE_ENTITY, &refused),
            Err(trouble) => troubled(&trouble),
        }
    }

    async fn act<B>(&self, act: &str, body: B) -> Response<Reply>
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        #[derive(Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        struct Argument {
            argument: Option<u32>,
        }
        let Argument { argument } = match read(body).await {
            Ok(argument) => argument,
            Err(refused) => return refused,
        };
        match timeout(ASKING, self.desk.eye().act(act, argument)).await {
            Ok(Ok(text)) => said(StatusCode::OK, "application/json", document(&json!({"said": text}))),
            Ok(Err(why)) => failure(StatusCode::UNPROCESSABLE_ENTITY, &why, "", ""),
            Err(_) => troubled(&Trouble::Failed),
        }
    }
}

/// Tells a watcher what happens until it is gone.
async fn tell(mut watcher: Watcher, events: mpsc::Sender<Bytes>) {
    loop {
        let told = match timeout(HEARTBEAT, watcher.next()).await {
            Ok(Some(told)) => told,
            Ok(None) => return,
            Err(_) => ": still here\n\n".to_owned(),
        };
        if !matches!(timeout(UNREAD, events.send(told.into())).await, Ok(Ok(()))) {
            return;
        }
    }
}

/// What was sent, read as JSON.
async fn read<T, B>(body: B) -> Result<T, Response<Reply>>
where
    T: Default + for<'de> Deserialize<'de>,
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let read = timeout(ASKING, Limited::new(body, LONGEST).collect()).await;
    let Ok(Ok(read)) = read else {
        return Err(failure(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the question is too long, or took too long to arrive",
            "",
            "",
        ));
    };
    let bytes = read.to_bytes();
    if bytes.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        failure(
            StatusCode::BAD_REQUEST,
            "the question cannot be read",
            &error.to_string(),
            "",
        )
    })
}

fn document(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).unwrap_or_else(|_| "null".to_owned())
}

fn found(answer: Result<Option<String>, Trouble>, kind: &str, name: &str) -> Response<Reply> {
    match answer {
        Ok(Some(text)) => said(StatusCode::OK, "application/json", text),
        Ok(None) => failure(
            StatusCode::NOT_FOUND,
            &format!("no {kind} {name}"),
            "it is gone, or never was",
            "",
        ),
        Err(trouble) => troubled(&trouble),
    }
}

fn troubled(trouble: &Trouble) -> Response<Reply> {
    let (code, error, why) = match trouble {
        Trouble::Blind(why) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the cluster cannot be seen",
            why.as_str(),
        ),
        Trouble::Busy => (StatusCode::TOO_MANY_REQUESTS, "too many questions wait already", ""),
        Trouble::Failed => (StatusCode::GATEWAY_TIMEOUT, "there was no answer in time", ""),
    };
    failure(code, error, why, "ask again in a while")
}

fn failure(code: StatusCode, error: &str, why: &str, next: &str) -> Response<Reply> {
    let refused = Refused {
        error: error.to_owned(),
        why: why.to_owned(),
        next: next.to_owned(),
    };
    refusal(code, &refused)
}

fn refusal(code: StatusCode, refused: &Refused) -> Response<Reply> {
    said(code, "application/json", document(refused))
}

fn said(code: StatusCode, kind: &'static str, text: String) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(Some(text.into())));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn file(asset: &'static Asset, head: &Parts) -> Response<Reply> {
    let (packed, tag) = asset.packed();
    let asked = |name: header::HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok());
    let is_known = asked(header::IF_NONE_MATCH) == Some(tag);
    let is_packed = asked(header::ACCEPT_ENCODING).is_some_and(|codings| codings.contains("gzip"));
    let body = match (is_known, is_packed) {
        (true, _) => None,
        (false, true) => Some(packed.clone()),
        (false, false) => Some(Bytes::from_static(asset.text.as_bytes())),
    };
    let mut response = Response::new(Reply::Whole(body));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    // Kept, and asked for again each time: a new binary has new files under the same names.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    if is_packed && !is_known {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}
