//! How do tests talk to a cluster? Raw JSON over blocking HTTP: what is sent and what comes back can be read in the test.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, http};

use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::manifest;

/// Media types of the Kubernetes API.
pub mod media {
    /// An ordinary object.
    pub const JSON: &str = "application/json";
    /// A server-side apply.
    pub const APPLY: &str = "application/apply-patch+yaml";
    /// A JSON merge patch.
    pub const MERGE: &str = "application/merge-patch+json";
    /// A strategic merge patch (built-in kinds only).
    pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
}

/// How long a server may ask for patience.
const PATIENCE: Duration = Duration::from_secs(30);

/// An administrator's connection to one API server. Cheap to clone; may be shared between threads.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    server: String,
    token: Arc<str>,
}

/// What the API server answered, success or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The body; plain text (as of `/readyz`) arrives as a JSON string.
    pub json: Value,
}

impl Response {
    /// Whether the status is one of the 200s.
    pub fn ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The `message` of a `Status`, or the whole body.
    pub fn message(&self) -> String {
        match &self.json["message"] {
            Value::String(message) => message.clone(),
            _ => self.json.to_string(),
        }
    }
}

impl Client {
    pub(crate) fn new(server: String, token: &str, ca_pem: &str) -> Result<Self> {
        let ca = Certificate::from_pem(ca_pem.as_bytes()).map_err(|e| Error::Certificates(e.to_string()))?;
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&[ca]))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_mins(1)))
            .proxy(None)
            .build();
        Ok(Self {
            agent: Agent::new_with_config(config),
            server,
            token: token.into(),
        })
    }

    /// A connection to a server that speaks plain HTTP and asks nobody who they are, such as a simulated one.
    pub fn plain(server: String) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_mins(1)))
            .proxy(None)
            .build();
        Self {
            agent: Agent::new_with_config(config),
            server,
            token: "".into(),
        }
    }

    /// Sends one request and returns the answer whatever its status; an error means there was no answer.
    ///
    /// `path` begins with `/` and may carry a query; `content_type` is one of [`media`].
    pub fn request(&self, method: &str, path: &str, body: Option<&Value>, content_type: &str) -> Result<Response> {
        let url = format!("{}{path}", self.server);
        let failed = |source: ureq::Error| Error::Http {
            method: method.to_owned(),
            url: url.clone(),
            source: Box::new(source),
        };
        let request = http::Request::builder()
            .method(method)
            .uri(&url)
            .header("authorization", format!("Bearer {}", self.token))
            .header("accept", media::JSON)
            .header("content-type", content_type)
            .body(body.map_or_else(Vec::new, |body| body.to_string().into_bytes()))
            .map_err(|e| failed(e.into()))?;
        let mut answer = self.agent.run(request).map_err(failed)?;
        let status = answer.status().as_u16();
        let text = answer
            .body_mut()
            .with_config()
            .limit(u64::MAX)
            .read_to_string()
            .map_err(failed)?;
        let json = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Response { status, json })
    }

    /// Reads an object or a list; a missing one is `None`. A server that has just come up asks for patience until its
    /// storage is there (429), and gets it.
    pub fn get(&self, path: &str) -> Result<Option<Value>> {
        let answer = self.wait_for(path, PATIENCE, |client| {
            let answer = client.request("GET", path, None, media::JSON)?;
            Ok(if answer.status == 429 {
                Seen::NotYet(answer.message())
            } else {
                Seen::Done(answer)
            })
        })?;
        if answer.status == 404 {
            Ok(None)
        } else {
            success("GET", path, answer).map(Some)
        }
    }

    /// Creates `object` in the collection at `path`.
    pub fn post(&self, path: &str, object: &Value) -> Result<Value> {
        success("POST", path, self.request("POST", path, Some(object), media::JSON)?)
    }

    /// Replaces the object at `path`.
    pub fn put(&self, path: &str, object: &Value) -> Result<Value> {
        success("PUT", path, self.request("PUT", path, Some(object), media::JSON)?)
    }

    /// Merges `patch` into the object (or subresource) at `path`.
    pub fn patch(&self, path: &str, patch: &Value) -> Result<Value> {
        success("PATCH", path, self.request("PATCH", path, Some(patch), media::MERGE)?)
    }

    /// Applies `object` at `path` server-side, as field manager `rig`, taking over what others own.
    pub fn apply(&self, path: &str, object: &Value) -> Result<Value> {
        let path = format!("{path}?fieldManager=rig&force=true");
        success(
            "PATCH",
            &path,
            self.request("PATCH", &path, Some(object), media::APPLY)?,
        )
    }

    /// Deletes the object at `path`; one that is not there is as good as deleted.
    pub fn delete(&self, path: &str) -> Result<()> {
        let answer = self.request("DELETE", path, None, media::JSON)?;
        if answer.status == 404 {
            Ok(())
        } else {
            success("DELETE", path, answer).map(drop)
        }
    }

    /// Asks `look` until it yields something, or fails saying what it saw last. A server that is away for a moment, or
    /// not ready yet, is one more thing that passes.
    pub fn wait_for<T>(
        &self,
        what: &str,
        limit: Duration,
        mut look: impl FnMut(&Self) -> Result<Seen<T>>,
    ) -> Result<T> {
        let deadline = Deadline::within(limit);
        loop {
            let last = match look(self) {
                Ok(Seen::Done(value)) => return Ok(value),
                Ok(Seen::NotYet(last)) => last,
                Err(error) if error.is_passing() => error.to_string(),
                Err(error) => return Err(error),
            };
            deadline.pause(what, last, Duration::from_millis(50))?;
        }
    }

    /// Installs every CustomResourceDefinition in `yaml` (several documents are welcome) and waits until each is served.
    /// Returns their names.
    pub fn install_crd(&self, yaml: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for crd in manifest::documents("a CustomResourceDefinition", yaml)? {
            let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            self.apply(&crd_path(&name), &crd)?;
            names.push(name);
        }
        for name in &names {
            self.wait_for(&format!("CRD {name} being served"), Duration::from_mins(2), |client| {
                client.established(name)
            })?;
        }
        Ok(names)
    }

    /// `Established` runs ahead of the handler: only a list that answers proves that the kind is served.
    fn established(&self, name: &str) -> Result<Seen<()>> {
        let crd = self.get(&crd_path(name))?.unwrap_or_default();
        let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if !conditions.contains_condition("Established", "True") {
            return Ok(Seen::NotYet(json!(conditions).to_string()));
        }
        let spec = &crd["spec"];
        for version in spec["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|v| v["served"] == true)
        {
            let [group, version, plural] =
                [&spec["group"], &version["name"], &spec["names"]["plural"]].map(|v| v.as_str().unwrap_or_default());
            let list = self.request(
                "GET",
                &format!("/apis/{group}/{version}/{plural}?limit=1"),
                None,
                media::JSON,
            )?;
            if !list.ok() {
                return Ok(Seen::NotYet(list.message()));
            }
        }
        Ok(Seen::Done(()))
    }
}

/// What a look at the cluster yielded.
pub enum Seen<T> {
    /// What was waited for.
    Done(T),
    /// Something else, in words for the failure message.
    NotYet(String),
}

trait Conditions {
    fn contains_condition(&self, kind: &str, status: &str) -> bool;
}

impl Conditions for Vec<Value> {
    fn contains_condition(&self, kind: &str, status: &str) -> bool {
        self.iter()
            .any(|condition| condition["type"] == kind && condition["status"] == status)
    }
}

fn crd_path(name: &str) -> String {
    format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
}

fn success(method: &str, path: &str, answer: Response) -> Result<Value> {
    if answer.ok() {
        return Ok(answer.json);
    }
    Err(Error::Api {
        method: method.to_owned(),
        path: path.to_owned(),
        status: answer.status,
        message: answer.message(),
    })
}
