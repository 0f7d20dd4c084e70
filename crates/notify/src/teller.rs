//! One message a period to one receiver; what it does not take is told with the next.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri, header};
use ledger::Record;
use runtime::{
    Clock,
    egress::{Transport, TransportError},
};

use crate::{Digest, Format, Message, News, Wanted};

/// A receiver that asks for patience is not left alone for longer.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// An address that cannot be told anything. It may hold a secret, so it is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the address of notifications is no URL: {0}; write https://HOST/PATH")]
pub struct WrongAddress(pub String);

/// Tells a receiver.
pub struct Teller {
    transport: Arc<dyn Transport>,
    clock: Clock,
    address: Uri,
    format: Format,
    cluster: String,
    every: Duration,
    news: Mutex<News>,
    /// What was last said of what cannot be told.
    complained: Mutex<String>,
}

/// Why a message was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Untold {
    #[error("{0}")]
    Transport(#[from] TransportError),
    #[error("it answered {status}: {text}")]
    Refused {
        status: StatusCode,
        text: String,
        pause: Duration,
    },
}

/// Whom to tell, of what, how, and how often.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// Its URL.
    pub address: String,
    /// What it reads; otherwise what its host is known to read.
    pub format: Option<Format>,
    /// What it wants to hear of.
    pub wanted: Wanted,
    /// The time from one message to the next.
    pub every: Duration,
    /// Which cluster tells.
    pub cluster: String,
}

impl Teller {
    /// Tells of what comes to be from now on.
    pub fn new(transport: Arc<dyn Transport>, clock: Clock, receiver: Receiver) -> Result<Self, WrongAddress> {
        let address: Uri = receiver
            .address
            .trim()
            .parse()
            .map_err(|error: http::uri::InvalidUri| WrongAddress(error.to_string()))?;
        let host = address
            .host()
            .ok_or_else(|| WrongAddress("it has no host".to_owned()))?;
        if !matches!(address.scheme_str(), Some("https" | "http")) {
            return Err(WrongAddress("it begins with neither https:// nor http://".to_owned()));
        }
        Ok(Self {
            format: receiver.format.unwrap_or_else(|| Format::of_host(host)),
            news: Mutex::new(News::new(receiver.wanted, clock.now())),
            transport,
            clock,
            address,
            cluster: receiver.cluster,
            every: receiver.every,
            complained: Mutex::default(),
        })
    }

    /// Tells what comes of decisions from now on, until the future is dropped.
    pub async fn run(&self, look: impl Fn() -> Vec<Record>) {
        let mut pause = self.every;
        loop {
            tokio::time::sleep(pause).await;
            pause = self.tell(&look()).await.max(self.every);
        }
    }

    /// Tells what is new among all decisions there are; how long the receiver wants to be left alone.
    pub async fn tell(&self, records: &[Record]) -> Duration {
        let Some(message) = self.next(records) else {
            return Duration::ZERO;
        };
        let problem = match self.send(&message).await {
            Ok(()) => {
                self.news.lock().unwrap_or_else(PoisonError::into_inner).clear();
                None
            }
            Err(problem) => Some(problem),
        };
        self.complain(problem.as_ref().map(ToString::to_string).unwrap_or_default());
        match problem {
            Some(Untold::Refused { pause, .. }) => pause,
            _ => Duration::ZERO,
        }
    }

    fn next(&self, records: &[Record]) -> Option<Message> {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        news.learn(records);
        let (waiting, dropped) = news.waiting();
        let digest = Digest::of(&self.cluster, waiting, dropped)?;
        Some(self.format.message(&digest, self.clock.now()))
    }

    async fn send(&self, message: &Message) -> Result<(), Untold> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.address.clone())
            .header(header::CONTENT_TYPE, message.content_type)
            .header(header::USER_AGENT, concat!("dovetail/", env!("CARGO_PKG_VERSION")))
            .body(Bytes::from(message.body.to_string()))
            .map_err(|error| TransportError(error.to_string()))?;
        let answer = self.transport.send(request).await?;
        if answer.status().is_success() {
            return Ok(());
        }
        Err(Untold::Refused {
            status: answer.status(),
            text: beginning(answer.body()),
            pause: asked_pause(&answer),
        })
    }

    /// Says once what cannot be told, and once that it can again.
    fn complain(&self, problem: String) {
        let mut complained = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        let host = self.address.host().unwrap_or_default();
        if problem.is_empty() && !complained.is_empty() {
            tracing::info!(host, "notifications are taken again");
        } else if problem != *complained {
            tracing::error!(
                host,
                error = problem,
                "notifications are not taken; they wait for the next message (--notify-url, --notify-format)"
            );
        }
        *complained = problem;
    }
}

/// Enough of an answer to see what is wrong.
fn beginning(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(200).collect()
}

fn asked_pause(answer: &Response<Bytes>) -> Duration {
    let asked = answer.headers().get(header::RETRY_AFTER);
    let seconds = asked.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Duration::from_secs(seconds.unwrap_or_default()).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests;
