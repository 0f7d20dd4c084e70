//! Is there an AWS for tests? moto's server with our additions (`e2e/moto`), in a virtual environment of its own that is
//! made once and kept in the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::error::{Error, Result, io};
use crate::guard::Guard;
use crate::{Deadline, Process, cache, ports};

const SCRIPT: &str = include_str!("../../e2e/moto/moto_plus.py");
const SEED: &str = include_str!("../../e2e/moto/seed.py");
const REQUIREMENTS: &str = include_str!("../../e2e/moto/requirements.txt");

/// How long the server may take until it answers; it imports for seconds on a machine that does nothing else.
const START: Duration = Duration::from_mins(5);

/// A running server; dropping it ends it, and it dies with this process in any case.
pub struct Moto {
    _process: Process,
    state: TempDir,
    url: String,
}

impl Moto {
    /// Starts a server on a free port of the loopback interface.
    pub fn start() -> Result<Self> {
        let python = environment()?;
        let state = tempfile::tempdir().map_err(io("create", "a temporary folder"))?;
        let script = state.path().join("moto_plus.py");
        fs::write(&script, SCRIPT).map_err(io("write", &script))?;
        let guard = Guard::over(state.path())?;
        let [port] = ports::free::<1>()?;
        let mut command = Command::new(python);
        command
            .arg(&script)
            .args(["-H", "127.0.0.1", "-p"])
            .arg(port.to_string());
        // Whatever the shell is configured with is not for this server.
        command
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test");
        let mut process = guard.spawn("moto", &command, state.path().join("moto.log"))?;
        let url = format!("http://127.0.0.1:{port}");
        let deadline = Deadline::within(START);
        while ureq::get(format!("{url}/moto-api/")).call().is_err() {
            process.check()?;
            deadline.pause("moto's first answer", url.clone(), Duration::from_millis(200))?;
        }
        Ok(Self {
            _process: process,
            state,
            url,
        })
    }

    /// Makes what an account has before anybody launches (`e2e/moto/seed.py`), for a cluster of this name whose queue of
    /// interruptions is called the same; says what was made. `release` is one of AL2023's images.
    pub fn seed(&self, region: &str, cluster: &str, release: &str) -> Result<Value> {
        let script = self.state.path().join("seed.py");
        fs::write(&script, SEED).map_err(io("write", &script))?;
        let output = Command::new(environment()?)
            .arg(&script)
            .args([&self.url, region, cluster, cluster, release])
            .output();
        let output = output.map_err(io("run", &script))?;
        let failed = |stderr: String| Error::Python {
            command: format!("seed.py {region} {cluster}"),
            stderr,
        };
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
    }

    /// Everything there is in a region, whatever the API says of it: see the head of `moto_plus.py`.
    pub fn look(&self, region: &str) -> Result<Value> {
        let url = format!("{}/double/{region}", self.url);
        read("GET", &url, ureq::get(&url).call())
    }

    /// Tells it what goes wrong from now on, or no longer: see the head of `moto_plus.py`.
    pub fn control(&self, region: &str, what: &str, value: &Value) -> Result<()> {
        let name = format!("/moto-control/{what}");
        let body =
            json!({"Name": name, "Value": value.to_string(), "Type": "String", "Overwrite": true, "Tier": "Advanced"});
        self.call(region, "ssm", "AmazonSSM.PutParameter", &body).map(drop)
    }

    /// Puts an event on the bus, from where rules take it to the queue, as AWS does.
    pub fn emit(&self, region: &str, source: &str, kind: &str, detail: &Value) -> Result<()> {
        let entry = json!({
            "Source": source, "DetailType": kind, "Detail": detail.to_string(), "EventBusName": "default",
        });
        let entries = json!({"Entries": [entry]});
        self.call(region, "events", "AWSEvents.PutEvents", &entries).map(drop)
    }

    /// Puts a message into a queue.
    pub fn send(&self, region: &str, queue: &str, body: &str) -> Result<()> {
        let queue = format!("{}/123456789012/{queue}", self.url);
        let message = json!({"QueueUrl": queue, "MessageBody": body});
        self.call(region, "sqs", "AmazonSQS.SendMessage", &message).map(drop)
    }

    /// A call of a service that speaks JSON. It believes every signature, and reads region and service from it.
    fn call(&self, region: &str, service: &str, action: &str, body: &Value) -> Result<Value> {
        let scope = format!("test/20260101/{region}/{service}/aws4_request");
        let signature = format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0");
        let request = ureq::post(format!("{}/", self.url))
            .header("authorization", signature)
            .header("x-amz-target", action)
            .header("content-type", "application/x-amz-json-1.1");
        read("POST", action, request.send(body.to_string()))
    }

    /// Where it answers, for every service.
    pub fn url(&self) -> &str {
        &self.url
    }
}

type Answer = std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>;

fn read(method: &str, url: &str, answer: Answer) -> Result<Value> {
    let failed = |source: ureq::Error| Error::Http {
        method: method.to_owned(),
        url: url.to_owned(),
        source: Box::new(source),
    };
    let body = answer.and_then(|mut answer| answer.body_mut().with_config().limit(u64::MAX).read_to_string());
    let text = body.map_err(failed)?;
    Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Whether there is a Python to run it with.
pub fn has_python() -> bool {
    let version = Command::new("python3").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

/// The environment's interpreter. Makes the environment (a minute, the first time) when no one of these requirements is in
/// the cache.
pub fn environment() -> Result<PathBuf> {
    let dir = cache::root()?.join(format!("moto/{:016x}", digest(REQUIREMENTS)));
    cache::once(&dir, |partial| {
        let requirements = partial.join("requirements.txt");
        fs::write(&requirements, REQUIREMENTS).map_err(io("write", &requirements))?;
        python(
            Path::new("python3"),
            &["-m", "venv", "--copies", "environment"],
            partial,
        )?;
        // The folder moves to its place afterwards; an environment bears that as long as only its interpreter is called.
        let own = partial.join("environment/bin/python");
        let install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--requirement",
            "requirements.txt",
        ];
        python(&own, &install, partial)
    })?;
    Ok(dir.join("environment/bin/python"))
}

fn python(program: &Path, arguments: &[&str], dir: &Path) -> Result<()> {
    let output = Command::new(program).args(arguments).current_dir(dir).output();
    let output = output.map_err(|source| Error::Spawn {
        program: format!(
            "{} (tests of the AWS provider need Python 3.10 or newer)",
            program.display()
        ),
        source,
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Python {
        command: arguments.join(" "),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// FNV-1a.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
