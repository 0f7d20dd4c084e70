//! What was said about an object, as a table: newest first, how often, by whom, and in which words.

use jiff::Timestamp;
use serde_json::Value;

use crate::terminal::{counted, span};

/// A table of events for a screen so wide, as of a time.
pub(super) fn table(mut events: Vec<Value>, now: Timestamp, width: usize) -> String {
    events.sort_by_key(|event| std::cmp::Reverse(last_seen(event)));
    let mut text = format!(
        "{:11}  {:7}  {:24} {:5}  {}\n",
        "LAST SEEN", "TYPE", "REASON", "TIMES", "OBJECT, BY, MESSAGE"
    );
    for event in &events {
        text.push_str(&line(event, now, width));
    }
    text.push_str(&format!("{}\n", counted(events.len(), "event")));
    text
}

fn line(event: &Value, now: Timestamp, width: usize) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let age = last_seen(event).map(|at| format!("{} ago", span(now.duration_since(at).as_secs())));
    let times = event["series"]["count"]
        .as_i64()
        .or(event["count"].as_i64())
        .unwrap_or(1);
    let object = word(&event["involvedObject"]["kind"]).to_lowercase();
    let by = [&event["source"]["component"], &event["reportingComponent"]];
    let by = by.into_iter().map(word).find(|by| !by.is_empty()).unwrap_or_default();
    let start = format!(
        "{:11}  {:7}  {:24} {times:>5}  {object}, {by}",
        age.unwrap_or_default(),
        word(&event["type"]),
        word(&event["reason"])
    );
    // One line of words each: a message may bring its own.
    let message = word(&event["message"]).split_whitespace().collect::<Vec<_>>().join(" ");
    // Where it is too long it goes below its line.
    if start.len() + 2 + message.len() <= width {
        return format!("{start}  {message}\n");
    }
    format!("{start}\n             {message}\n")
}

/// When it was last said. Events of the newer API say it elsewhere.
fn last_seen(event: &Value) -> Option<Timestamp> {
    let times = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["firstTimestamp"],
        &event["metadata"]["creationTimestamp"],
    ];
    times.into_iter().find_map(|time| time.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_come_newest_first_with_how_often_and_by_whom() {
        let now = "2026-11-16T15:42:00Z".parse().unwrap();
        let events = vec![
            json!({"type": "Normal", "reason": "Scheduled", "message": "on a", "eventTime": "2026-11-16T15:00:00.000001Z",
                "involvedObject": {"kind": "Pod"}, "reportingComponent": "default-scheduler"}),
            json!({"type": "Warning", "reason": "FailedScheduling", "message": "0/3 nodes:\n  too small", "count": 7,
                "lastTimestamp": "2026-11-16T15:41:48Z", "involvedObject": {"kind": "Pod"},
                "source": {"component": "karpenter"}}),
        ];
        let expected = "LAST SEEN    TYPE     REASON                   TIMES  OBJECT, BY, MESSAGE\n\
                        12s ago      Warning  FailedScheduling             7  pod, karpenter  0/3 nodes: too small\n\
                        41m 59s ago  Normal   Scheduled                    1  pod, default-scheduler  on a\n2 events\n";
        assert_eq!(table(events.clone(), now, 120), expected);
        let narrow = table(events, now, 78);
        assert!(
            narrow.contains("pod, karpenter\n             0/3 nodes: too small\n"),
            "{narrow}"
        );
    }
}
