//! What does an API server say to a case, with everything left out that differs from run to run?

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Context, Result};
use rig::client::media;
use rig::{Client, Response};
use serde_json::{Value, json};

use crate::corpus::{Case, Request, Verdict};

const FOR_SHOW: &str = "?dryRun=All&fieldValidation=Strict";

/// In place of an HTTP status: the object that was to be changed could not be made in the first place.
const NOT_BEGUN: u16 = 0;

/// An answer, fit for comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The HTTP status, or 0 when the object that was to be changed could not be made.
    pub status: u16,
    /// Why it refused.
    pub causes: BTreeSet<Cause>,
    /// The object it made, `null` if it refused.
    pub object: Value,
}

/// One reason for a refusal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    /// The field blamed, empty when the refusal is about the whole.
    pub field: String,
    /// The machine's word for it.
    pub reason: String,
    /// The words for people.
    pub message: String,
}

impl Answer {
    /// The verdict, unless the server failed to give one.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.status {
            200..300 => Some(Verdict::Valid),
            400 | 422 => Some(Verdict::Invalid),
            404 => Some(Verdict::Unserved),
            _ => None,
        }
    }

    /// In what the answer departs from what the case states, in words.
    pub fn departure(&self, case: &Case) -> Option<String> {
        if self.verdict() != Some(case.expect) {
            return Some(format!("stated {:?}", case.expect));
        }
        if let Some(field) = case
            .field
            .as_ref()
            .filter(|field| !self.causes.iter().any(|c| &c.field == *field))
        {
            return Some(format!("stated to blame {field}"));
        }
        if let Some(message) = case
            .message
            .as_ref()
            .filter(|m| !self.causes.iter().any(|c| c.message.contains(*m)))
        {
            return Some(format!("stated to say {message:?}"));
        }
        let (path, stated) = case
            .becomes
            .iter()
            .find(|(path, stated)| path.get(&self.object) != *stated)?;
        Some(format!("stated {path} = {stated}, found {}", path.get(&self.object)))
    }

    fn new(response: Response) -> Self {
        let Response { status, json } = response;
        if (200..300).contains(&status) {
            return Self {
                status,
                causes: BTreeSet::new(),
                object: without_noise(json),
            };
        }
        let detailed = json["details"]["causes"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let whole = [json!({"reason": json["reason"], "message": json.get("message").unwrap_or(&json)})];
        let causes = if detailed.is_empty() { &whole } else { detailed };
        Self {
            status,
            causes: causes.iter().map(Cause::new).collect(),
            object: Value::Null,
        }
    }
}

impl Cause {
    fn new(cause: &Value) -> Self {
        let [field, reason, message] = ["field", "reason", "message"].map(|k| cause[k].as_str().unwrap_or_default());
        Self {
            field: field.to_owned(),
            reason: reason.to_owned(),
            message: in_one_order(message),
        }
    }
}

/// The values of an enum are a set; the server lists them in the order of the schema.
fn in_one_order(message: &str) -> String {
    const LIST: &str = "supported values: ";
    let Some((before, values)) = message.split_once(LIST) else {
        return message.to_owned();
    };
    let values: BTreeSet<&str> = values.split(", ").collect();
    format!("{before}{LIST}{}", values.into_iter().collect::<Vec<_>>().join(", "))
}

/// Ownership of fields stays in: it shows which lists are merged and which are replaced.
fn without_noise(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| !["uid", "resourceVersion", "creationTimestamp"].contains(&key.as_str()));
    }
    for owned in object["metadata"]["managedFields"].as_array_mut().into_iter().flatten() {
        owned["time"].take();
    }
    object
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            NOT_BEGUN => write!(f, "no to the object that the case begins with")?,
            status => write!(f, "{status}")?,
        }
        for Cause { field, reason, message } in &self.causes {
            write!(f, "\n        {field} {reason}: {message}")?;
        }
        Ok(())
    }
}

/// Asks the server about `case`. `number` makes the names of stored objects differ between cases.
pub fn ask(client: &Client, case: &Case, number: usize) -> Result<Answer> {
    let version = &case.object["apiVersion"];
    let version = version.as_str().context("the object has no apiVersion")?;
    let collection = format!("/apis/{version}/{}", case.kind.collection());
    if case.request == Request::Create {
        let response = send(client, "POST", &format!("{collection}{FOR_SHOW}"), &case.object)?;
        return Ok(Answer::new(response));
    }
    let name = format!("case-{number}");
    let mut begin = identified(&case.object, &name, &Value::Null);
    begin["status"].take();
    let begun = send(client, "POST", &format!("{collection}?fieldValidation=Strict"), &begin)?;
    if !begun.ok() {
        let refusal = Answer::new(begun);
        return Ok(Answer {
            status: NOT_BEGUN,
            ..refusal
        });
    }
    let place = format!("{collection}/{name}");
    let response = go_on(client, case, &place, &name, &begun.json["metadata"]["resourceVersion"])?;
    Ok(Answer::new(response))
}

/// The second request of a case that begins with a stored object.
fn go_on(client: &Client, case: &Case, place: &str, name: &str, version: &Value) -> Result<Response> {
    let (path, body) = match &case.request {
        Request::Create | Request::Store => return Ok(client.request("GET", place, None, media::JSON)?),
        Request::Update(object) => (format!("{place}{FOR_SHOW}"), identified(object, name, version)),
        Request::Status => (
            format!("{place}/status{FOR_SHOW}"),
            identified(&case.object, name, version),
        ),
        Request::Scale(size) => (format!("{place}/scale?dryRun=All"), scale(name, *size)),
    };
    send(client, "PUT", &path, &body)
}

fn send(client: &Client, method: &str, path: &str, body: &Value) -> Result<Response> {
    Ok(client.request(method, path, Some(body), media::JSON)?)
}

fn identified(object: &Value, name: &str, version: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["name"] = json!(name);
    object["metadata"]["resourceVersion"] = version.clone();
    object
}

fn scale(name: &str, replicas: i64) -> Value {
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": {"replicas": replicas}})
}
