//! What a receiver reads: a CloudEvent, a message of Slack, a card of Teams.

use std::str::FromStr;

use jiff::Timestamp;
use ledger::Id;
use serde_json::{Value, json};

use crate::digest::{Digest, Line};

/// Longer lines are cut: Slack refuses sections of more than 3,000 characters, and a message has eleven lines.
const LONGEST_LINE: usize = 240;

/// How a message is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// A CloudEvent 1.0 in structured mode, for programs.
    #[default]
    CloudEvents,
    /// A message for an incoming webhook of Slack.
    Slack,
    /// An adaptive card for a workflow of Teams.
    Teams,
}

/// A format that nobody writes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no format: write cloudevents, slack or teams")]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        match text {
            "cloudevents" => Ok(Self::CloudEvents),
            "slack" => Ok(Self::Slack),
            "teams" => Ok(Self::Teams),
            _ => Err(UnknownFormat(text.to_owned())),
        }
    }
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its media type.
    pub content_type: &'static str,
    /// Its text.
    pub body: Value,
}

impl Format {
    /// What the receiver at this host reads.
    pub fn of_host(host: &str) -> Self {
        let teams = [".webhook.office.com", ".logic.azure.com", ".powerplatform.com"];
        if host == "hooks.slack.com" || host == "hooks.slack-gov.com" {
            Self::Slack
        } else if teams.iter().any(|end| host.ends_with(end)) {
            Self::Teams
        } else {
            Self::CloudEvents
        }
    }

    /// A digest, written so.
    pub fn message(self, digest: &Digest<'_>, now: Timestamp) -> Message {
        let (content_type, body) = match self {
            Self::CloudEvents => ("application/cloudevents+json", cloud_event(digest, now)),
            Self::Slack => ("application/json", slack(digest)),
            Self::Teams => ("application/json", teams(digest)),
        };
        Message { content_type, body }
    }
}

/// One event for all decisions of a message. A message that is sent again has the same id.
fn cloud_event(digest: &Digest<'_>, now: Timestamp) -> Value {
    let parts: Vec<String> = digest
        .records
        .iter()
        .map(|record| format!("{} {} {}", record.id, record.word(), record.last_seen))
        .collect();
    json!({
        "specversion": "1.0",
        "id": Id::of("digest", parts.iter().map(String::as_str)).to_string(),
        "source": format!("/dovetail/{}", digest.cluster),
        "type": "dovetail.decisions.v1",
        "time": now.to_string(),
        "datacontenttype": "application/json",
        "data": {
            "cluster": digest.cluster,
            "summary": digest.summary,
            "decisions": digest.records,
            "dropped": digest.dropped,
        },
    })
}

fn slack(digest: &Digest<'_>) -> Value {
    let lines: Vec<String> = digest
        .lines
        .iter()
        .map(|line| format!("• *{}* {} `{}`", line.word, escaped(&cut(line)), line.record.id))
        .collect();
    let head = format!("*{}* · {}", escaped(&digest.cluster), escaped(&digest.summary));
    let mut blocks = vec![section(&head), section(&lines.join("\n"))];
    let rest = [digest.rest(), "`dovetail why <id>` tells why".to_owned()];
    let rest: Vec<&str> = rest
        .iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    blocks.push(json!({
        "type": "context",
        "elements": [{"type": "mrkdwn", "text": rest.join(" · ")}],
    }));
    // The text is what a notification and a screen reader say.
    json!({"text": format!("{}: {}", digest.cluster, digest.summary), "blocks": blocks})
}

fn section(text: &str) -> Value {
    json!({"type": "section", "text": {"type": "mrkdwn", "text": text}})
}

/// Slack's own signs.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn teams(digest: &Digest<'_>) -> Value {
    let mut body = vec![json!({
        "type": "TextBlock", "size": "Medium", "weight": "Bolder", "wrap": true,
        "text": format!("{} · {}", digest.cluster, digest.summary),
    })];
    let facts: Vec<Value> = digest
        .lines
        .iter()
        .map(|line| json!({"title": line.word, "value": format!("{} · {}", cut(line), line.record.id)}))
        .collect();
    body.push(json!({"type": "FactSet", "facts": facts}));
    let rest = digest.rest();
    if !rest.is_empty() {
        body.push(json!({"type": "TextBlock", "isSubtle": true, "wrap": true, "text": rest}));
    }
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard", "version": "1.4", "body": body,
            },
        }],
    })
}

fn cut(line: &Line<'_>) -> String {
    if line.text.len() <= LONGEST_LINE {
        return line.text.clone();
    }
    let end = line.text.floor_char_boundary(LONGEST_LINE);
    format!("{}…", line.text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use ledger::{Action, Phase, Record};

    use super::*;

    fn record(detail: &str) -> Record {
        let id = Id::of("keep", ["a"]);
        let mut record = Record::new(id, Action::Keep, Phase::Done, "Pdb", Timestamp::UNIX_EPOCH);
        detail.clone_into(&mut record.detail);
        record
    }

    fn written(format: Format, records: &[Record]) -> Message {
        let digest = Digest::of("prod", records.iter().collect(), 0).unwrap();
        format.message(&digest, "2026-11-17T10:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_cloud_event_has_its_required_attributes_and_whole_decisions() {
        let message = written(Format::CloudEvents, &[record("held")]);
        assert_eq!(message.content_type, "application/cloudevents+json");
        let body = message.body;
        for (attribute, expected) in [
            ("specversion", "1.0"),
            ("source", "/dovetail/prod"),
            ("type", "dovetail.decisions.v1"),
            ("time", "2026-11-17T10:00:00Z"),
        ] {
            assert_eq!(body[attribute], expected);
        }
        let decision: Record = serde_json::from_value(body["data"]["decisions"][0].clone()).unwrap();
        assert_eq!(decision, record("held"));
        assert_eq!(
            body["id"],
            written(Format::CloudEvents, &[record("held")]).body["id"],
            "told again, it is the same event"
        );
    }

    #[test]
    fn slack_gets_a_text_for_notifications_and_its_signs_escaped() {
        let body = written(Format::Slack, &[record("<pdb> & co")]).body;
        assert_eq!(body["text"], "prod: 1 kept");
        let lines = body["blocks"][1]["text"]["text"].as_str().unwrap();
        assert_eq!(
            lines,
            format!("• *kept* : &lt;pdb&gt; &amp; co (Pdb) `{}`", Id::of("keep", ["a"]))
        );
    }

    #[test]
    fn no_section_is_longer_than_slack_takes() {
        let many: Vec<Record> = (0..40)
            .map(|at| {
                let mut record = record(&"ü".repeat(400));
                record.id = Id::of("keep", [at.to_string().as_str()]);
                record
            })
            .collect();
        let body = written(Format::Slack, &many).body;
        for block in body["blocks"].as_array().unwrap() {
            let text = block["text"]["text"].as_str().unwrap_or_default();
            assert!(text.chars().count() <= 3000, "{}", text.len());
        }
    }

    #[test]
    fn teams_gets_an_adaptive_card() {
        let body = written(Format::Teams, &[record("held")]).body;
        let card = &body["attachments"][0];
        assert_eq!(card["contentType"], "application/vnd.microsoft.card.adaptive");
        assert_eq!(card["content"]["body"][0]["text"], "prod · 1 kept");
        assert_eq!(card["content"]["body"][1]["facts"][0]["title"], "kept");
    }

    #[test]
    fn the_host_says_what_it_reads() {
        assert_eq!(Format::of_host("hooks.slack.com"), Format::Slack);
        assert_eq!(Format::of_host("prod-1.westeurope.logic.azure.com"), Format::Teams);
        assert_eq!(Format::of_host("events.example.com"), Format::CloudEvents);
    }
}
