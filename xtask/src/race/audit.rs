//! What did a controller write? Read from the API server's audit log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::Deserialize;

/// What a controller wrote.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Writes {
    /// How often, by `verb resource`; the lease is not counted, it depends on time alone.
    pub(super) by_resource: BTreeMap<String, usize>,
    /// Seconds from kube-scheduler's last word on a pod before the last claim to that claim.
    pub(super) claims_s: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    subresource: String,
}

impl Writes {
    pub(super) fn read(log: &Path) -> Result<Self> {
        let file = File::open(log).with_context(|| format!("opening {}", log.display()))?;
        let lines = BufReader::new(file).lines().collect::<std::io::Result<Vec<_>>>()?;
        let mut parsed = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            match serde_json::from_str(line) {
                Ok(line) => parsed.push(line),
                // The server is still writing it.
                Err(_) if at + 1 == lines.len() => {}
                Err(error) => return Err(error).with_context(|| format!("reading {line}")),
            }
        }
        Ok(Self::of(&parsed))
    }

    fn of(lines: &[Line]) -> Self {
        let mut by_resource = BTreeMap::new();
        for line in lines.iter().filter(|line| line.is_ours() && line.is_write()) {
            *by_resource.entry(line.what()).or_default() += 1;
        }
        Self {
            by_resource,
            claims_s: claims_s(lines),
        }
    }
}

fn claims_s(lines: &[Line]) -> f64 {
    let claims = lines.iter().filter(|line| line.what() == "create nodeclaims");
    let Some(last) = claims.map(|line| line.stage_timestamp).max() else {
        return 0.0;
    };
    let verdicts = lines
        .iter()
        .filter(|line| line.user_agent.starts_with("kube-scheduler") && line.what() == "patch pods/status");
    let first_claim = lines
        .iter()
        .filter(|line| line.what() == "create nodeclaims")
        .map(|line| line.request_received_timestamp)
        .min();
    let before = verdicts
        .map(|line| line.stage_timestamp)
        .filter(|time| first_claim.is_some_and(|first| *time < first))
        .max();
    before.map_or(0.0, |before| last.duration_since(before).as_secs_f64())
}

impl Line {
    fn is_ours(&self) -> bool {
        self.user_agent.starts_with("karpenter")
    }

    fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete") && self.object_ref.resource != "leases"
    }

    fn what(&self) -> String {
        let ObjectRef { resource, subresource } = &self.object_ref;
        let slash = if subresource.is_empty() { "" } else { "/" };
        format!("{} {resource}{slash}{subresource}", self.verb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(agent: &str, verb: &str, resource: &str, subresource: &str, second: &str) -> Line {
        let time = format!("2026-11-16T10:00:{second}Z");
        serde_json::from_value(serde_json::json!({
            "verb": verb, "userAgent": agent, "objectRef": {"resource": resource, "subresource": subresource},
            "requestReceivedTimestamp": time, "stageTimestamp": time,
        }))
        .unwrap()
    }

    #[test]
    fn a_controllers_writes_are_counted_and_its_share_of_the_wait_is_told() {
        let lines = [
            line("kube-scheduler/v1", "patch", "pods", "status", "01.0"),
            line("kube-scheduler/v1", "patch", "pods", "status", "02.0"),
            line("karpenter/1", "list", "nodeclaims", "", "02.5"),
            line("karpenter/1", "create", "nodeclaims", "", "03.2"),
            line("karpenter/1", "create", "nodeclaims", "", "03.5"),
            line("kube-scheduler/v1", "patch", "pods", "status", "09.0"),
            line("karpenter/1", "patch", "nodeclaims", "status", "04.0"),
            line("karpenter/1", "update", "leases", "", "05.0"),
        ];
        let expected = Writes {
            by_resource: [
                ("create nodeclaims".to_owned(), 2),
                ("patch nodeclaims/status".to_owned(), 1),
            ]
            .into(),
            claims_s: 1.5,
        };
        assert_eq!(Writes::of(&lines), expected);
    }
}
