//! How a request leaves for somebody else than the API server, and its answer comes back: with a deadline, a bound on its
//! size, and trust in whom the system trusts.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};

use crate::api::with_causes;

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_mins(1);
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(90);
/// The largest answer that is read; Azure's list of all sizes of a region has some ten megabytes.
const LARGEST: usize = 128 << 20;

/// No answer came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransportError(pub String);

/// Carries requests.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends a request and waits for its answer.
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError>;
}

/// The network.
pub struct HyperTransport {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl HyperTransport {
    /// Trusts whom the system trusts.
    pub fn new() -> Result<Self, TransportError> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT));
        http.set_nodelay(true);
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_native_roots()
            .map_err(|error| TransportError(format!("reading the certificates that the system trusts, {error}")))?
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self { client })
    }
}

#[async_trait]
impl Transport for HyperTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let exchange = async {
            let answer = self.client.request(request.map(Full::new)).await;
            // The client's own words say only that it failed.
            let (head, body) = answer
                .map_err(|error| TransportError(with_causes(&error)))?
                .into_parts();
            let body = Limited::new(body, LARGEST).collect().await;
            let body = body.map_err(|error| TransportError(format!("reading the answer, {error}")))?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        match tokio::time::timeout(ATTEMPT, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(TransportError(format!("no answer within {} s", ATTEMPT.as_secs()))),
        }
    }
}
