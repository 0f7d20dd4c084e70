//! How events reach the API server: one after the other, tried again only while the server cannot be reached.

use std::time::Duration;

use http::Method;
use tokio::{sync::mpsc::Receiver, time::sleep};

use super::{
    Event,
    correlate::{Correlator, Written},
};
use crate::{Api, ApiError, Clock};

/// How often one event is tried, as client-go does.
const TRIES: u32 = 12;
/// Between two tries; the first wait is a random part of it.
const PAUSE: Duration = Duration::from_secs(10);

/// Writes events until there is nobody left who could publish one.
pub async fn record(api: Api, clock: Clock, mut events: Receiver<Event>) {
    let mut correlator = Correlator::new(api.random().clone());
    while let Some(event) = events.recv().await {
        tracing::debug!(
            r#type = event.kind.text(),
            object = %format_args!("{} {}/{}", event.object.kind, event.object.namespace, event.object.name),
            reason = %event.reason,
            "{}",
            event.message
        );
        if let Some(written) = correlator.correlate(&event, clock.now()) {
            write(&api, &written).await;
        }
    }
}

async fn write(api: &Api, written: &Written) {
    for tried in 1..=TRIES {
        let Err(error) = once(api, written).await else {
            return;
        };
        if error.code.is_some() {
            reject(written, &error);
            return;
        }
        tracing::error!(event = written.name, error = %error, "Unable to write event (may retry after sleeping)");
        if tried < TRIES {
            let part = if tried == 1 { api.random().fraction() } else { 1.0 };
            sleep(PAUSE.mul_f64(part)).await;
        }
    }
    tracing::error!(event = written.name, "Unable to write event (retry limit exceeded!)");
}

/// Counts on the event that is there, or makes a new one when there is none, or no longer.
async fn once(api: &Api, written: &Written) -> Result<(), ApiError> {
    let path = format!("/api/v1/namespaces/{}/events", written.namespace);
    if let Some(patch) = &written.patch {
        let item = format!("{path}/{}", written.name);
        let kind = "application/strategic-merge-patch+json";
        match api.call(Method::PATCH, &item, Some(patch), kind).await {
            Err(error) if error.is_not_found() => {}
            result => return result.map(drop),
        }
    }
    api.call(Method::POST, &path, Some(&written.object), "application/json")
        .await
        .map(drop)
}

/// The server will not have it; asking again would not change that.
fn reject(written: &Written, error: &ApiError) {
    // A lost answer, or a namespace that is going away with everything in it: nothing is amiss.
    if error.is_already_exists() || error.message.contains("because it is being terminated") {
        tracing::debug!(event = written.name, error = %error, "Server rejected event (will not retry!)");
    } else {
        tracing::error!(event = written.name, error = %error, "Server rejected event (will not retry!)");
    }
}

#[cfg(test)]
mod tests {
    use model::object::Node;

    use super::*;
    use crate::{
        double::{Asked, Step, scripted},
        event::{EventKind, Recorder},
    };

    /// Records the same event a number of times against a script; returns what was asked.
    async fn recorded(times: usize, steps: Vec<Step>) -> Vec<Asked> {
        let (client, log) = scripted(steps);
        let api = Api::new(client, "karpenter/1.15.0");
        let (recorder, events) = Recorder::new(100);
        for _ in 0..times {
            let event = Event::new(&Node::default(), EventKind::Normal, "Finalized", "words".to_owned());
            recorder.publish(event.deduped_by(Vec::new()));
        }
        drop(recorder);
        let clock = Clock::starting_at("2026-11-16T03:00:00Z".parse().unwrap());
        record(api, clock, events).await;
        log.all()
    }

    fn said(code: u16) -> Step {
        Step::Say(code, "{}".to_owned())
    }

    fn methods(asked: &[Asked]) -> Vec<&str> {
        asked
            .iter()
            .map(|asked| asked.line.split('/').next().unwrap().trim())
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_is_created_and_then_counted() {
        let asked = recorded(2, vec![said(201), said(200)]).await;
        assert_eq!(methods(&asked), ["POST", "PATCH"]);
        assert_eq!(asked[0].line, "POST /api/v1/namespaces/default/events");
        let name = asked[0].body["metadata"]["name"].as_str().unwrap();
        assert_eq!(asked[1].line, format!("PATCH /api/v1/namespaces/default/events/{name}"));
        assert_eq!(asked[1].content_type, "application/strategic-merge-patch+json");
        assert_eq!(asked[1].body["count"], 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_the_server_forgot_is_created_again_with_its_count() {
        let asked = recorded(2, vec![said(201), said(404), said(201)]).await;
        assert_eq!(methods(&asked), ["POST", "PATCH", "POST"]);
        assert_eq!(asked[2].body["count"], 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_the_server_refuses_is_dropped() {
        let asked = recorded(2, vec![said(422), said(200)]).await;
        assert_eq!(methods(&asked), ["POST", "PATCH"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_outlives_a_server_that_is_away_for_a_while() {
        let mut steps: Vec<Step> = (0..20).map(|_| Step::Break).collect();
        steps.push(said(201));
        let asked = recorded(1, steps).await;
        assert_eq!(methods(&asked), ["POST"; 21]);
    }
}
