//! What time is it at the API server? It says so with every answer; in between the time goes on by a clock that nobody
//! sets. Timestamps of objects are the server's, so this is what they are compared with when the machine's clock is wrong.

use std::sync::{Mutex, PoisonError};

use http::{HeaderMap, header};
use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use tokio::time::Instant;

/// The last the server said, and when.
#[derive(Debug, Default)]
pub(super) struct ServerTime(Mutex<Option<(Timestamp, Instant)>>);

impl ServerTime {
    /// Takes in an answer's date, in whole seconds.
    pub(super) fn take_in(&self, headers: &HeaderMap) {
        static PARSER: DateTimeParser = DateTimeParser::new();
        let date = headers.get(header::DATE).and_then(|date| date.to_str().ok());
        if let Some(date) = date.and_then(|date| PARSER.parse_timestamp(date).ok()) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((date, Instant::now()));
        }
    }

    /// The server's time, up to a second late; none before it has said anything.
    pub(super) fn now(&self) -> Option<Timestamp> {
        let (date, heard) = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        date.saturating_add(heard.elapsed()).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_servers_time_goes_on_from_its_last_answer() {
        let time = ServerTime::default();
        assert_eq!(time.now(), None);
        let mut headers = HeaderMap::new();
        time.take_in(&headers);
        assert_eq!(time.now(), None, "an answer without a date");
        headers.insert(header::DATE, "Tue, 17 Nov 2026 00:52:19 GMT".parse().unwrap());
        time.take_in(&headers);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(time.now(), Some("2026-11-17T00:52:22Z".parse().unwrap()));
        headers.insert(header::DATE, "yesterday".parse().unwrap());
        time.take_in(&headers);
        assert_eq!(time.now(), Some("2026-11-17T00:52:22Z".parse().unwrap()));
    }
}
