//! Which path gives which answer.

use std::{
    convert::Infallible,
    io::Write,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, Method, Request, Response, header};
use hyper::body::{Body, Frame, SizeHint};

use super::probe::{Probes, Verdict};
use crate::{Metrics, metrics::Page, settings::MetricsProfile};

/// What a port offers.
#[derive(Debug)]
pub enum Site {
    /// `/metrics`.
    Metrics {
        /// What is counted.
        metrics: Arc<Metrics>,
        /// How much of it is shown.
        profile: MetricsProfile,
    },
    /// `/healthz`, `/readyz`, and each of their checks below them.
    Probes {
        /// Whether the process is to be restarted.
        healthz: Probes,
        /// Whether it does its work.
        readyz: Probes,
    },
}

impl Site {
    pub(super) fn answer<B>(&self, request: &Request<B>) -> Response<Answer> {
        let path = request.uri().path().trim_end_matches('/');
        let query = request.uri().query().unwrap_or_default();
        match self {
            Self::Metrics { metrics, profile } if path == "/metrics" => {
                let is_zipped = accepts_gzip(request.headers());
                let answer = match *request.method() {
                    Method::HEAD => Answer::Page(None),
                    _ if is_zipped => Answer::Zipped(Zipped::new(metrics.page(*profile))),
                    _ => Answer::Page(Some(metrics.page(*profile))),
                };
                let mut response = respond(200, "text/plain; version=0.0.4; charset=utf-8", answer);
                if is_zipped {
                    let gzip = header::HeaderValue::from_static("gzip");
                    response.headers_mut().insert(header::CONTENT_ENCODING, gzip);
                }
                response
            }
            Self::Metrics { .. } => text(None),
            Self::Probes { healthz, readyz } => {
                text(probe(path, query, "/healthz", healthz).or_else(|| probe(path, query, "/readyz", readyz)))
            }
        }
    }
}

/// Whether who asks can read gzip: it is named, and not refused with a weight of zero.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_refused = |weight: &str| {
            weight
                .strip_prefix("q=")
                .is_some_and(|weight| weight.parse() == Ok(0.0))
        };
        parts.next() == Some("gzip") && !parts.any(is_refused)
    })
}

/// A page that is compressed as it is written.
#[derive(Debug)]
pub(super) struct Zipped {
    page: Page,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Zipped {
    fn new(page: Page) -> Self {
        let encoder = GzEncoder::new(Vec::new(), Compression::fast());
        Self {
            page,
            encoder: Some(encoder),
        }
    }

    fn next(&mut self) -> Option<Bytes> {
        while let Some(mut encoder) = self.encoder.take() {
            let Some(piece) = self.page.next() else {
                return encoder.finish().ok().map(Bytes::from);
            };
            // Writing to memory does not fail.
            let _ = encoder.write_all(piece.as_bytes());
            let written = std::mem::take(encoder.get_mut());
            self.encoder = Some(encoder);
            if !written.is_empty() {
                return Some(written.into());
            }
        }
        None
    }
}

fn probe(path: &str, query: &str, root: &str, probes: &Probes) -> Option<Verdict> {
    let rest = path.strip_prefix(root)?;
    match rest.strip_prefix('/') {
        None if rest.is_empty() => Some(probes.all(query)),
        None => None,
        Some(name) => probes.one(name),
    }
}

fn text(verdict: Option<Verdict>) -> Response<Answer> {
    let (status, text) = verdict.unwrap_or((404, "404 page not found\n".to_owned()));
    respond(status, "text/plain; charset=utf-8", Answer::Text(Some(text)))
}

fn respond(status: u16, content_type: &'static str, answer: Answer) -> Response<Answer> {
    let mut response = Response::new(answer);
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        header::HeaderValue::from_static("nosniff"),
    );
    response
}

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Answer {
    /// Said at once.
    Text(Option<String>),
    /// Written as it is sent.
    Page(Option<Page>),
    /// Written and compressed as it is sent.
    Zipped(Zipped),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match self.get_mut() {
            Self::Text(text) => text.take().map(Bytes::from),
            Self::Page(page) => page.as_mut().and_then(Page::next).map(Bytes::from),
            Self::Zipped(page) => page.next(),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    /// How long a page will be nobody knows before it is written.
    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Self::Page(None) => SizeHint::with_exact(0),
            Self::Page(Some(_)) | Self::Zipped(_) => SizeHint::default(),
        }
    }
}
