//! What becomes of a request? It is checked against the contract, done, and its answer is checked, too.

use std::{collections::BTreeMap, sync::Mutex, sync::PoisonError};

use anyhow::Result;
use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    Setup,
    allocation::{self, Wish},
    answer::{Answer, Refusal},
    contract::{Contract, Found, Unknown},
    knob::{Effect, Knob},
    ledger::{Call, Violation},
    request::Asked,
    uri,
    world::World,
};

/// A request as it came.
pub(crate) struct Incoming {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// What goes back, and how much later.
pub(crate) struct Reply {
    /// Nothing: the connection is dropped.
    pub(crate) answer: Option<Answer>,
    pub(crate) millis: u64,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self {
            answer: Some(answer),
            millis: 0,
        }
    }
}

/// The contract and the world it is kept in.
pub(crate) struct Service {
    contract: Contract,
    world: Mutex<World>,
}

impl Service {
    pub(crate) fn new(setup: Setup, url: String) -> Result<Self> {
        Ok(Self {
            contract: Contract::load()?,
            world: Mutex::new(World::new(setup, url)?),
        })
    }

    /// Looks at the world or changes it; what was due by now has happened.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let now = world.now();
        world.settle(now);
        look(&mut world)
    }

    pub(crate) fn answer(&self, incoming: &Incoming) -> Reply {
        let query = uri::parameters(&incoming.query);
        let parts: Vec<&str> = incoming.path.trim_matches('/').split('/').collect();
        self.with(|world| {
            let now = world.now();
            match (incoming.method.as_str(), parts.as_slice()) {
                (_, ["_double", "vms", vm, "metadata", "scheduledevents"]) => {
                    let start = (incoming.method == "POST").then(|| serde_json::from_slice(&incoming.body).ok());
                    let start: Option<Value> = start.flatten();
                    world
                        .scheduled_events(vm, &query, &incoming.headers, start.as_ref(), now)
                        .into()
                }
                (_, ["_double", rest @ ..]) => control(world, rest, incoming).into(),
                ("POST", [tenant, "oauth2", "v2.0", "token"]) => {
                    let form = String::from_utf8_lossy(&incoming.body);
                    world.federated_token(tenant, &form, now).into()
                }
                ("GET", ["metadata", "identity", "oauth2", "token"]) => {
                    world.managed_token(&query, &incoming.headers, now).into()
                }
                _ => Visit {
                    contract: &self.contract,
                    world,
                    incoming,
                    query: &query,
                    now,
                }
                .answer(),
            }
        })
    }
}

/// What `/_double` answers: state, ledger and knobs.
fn control(world: &mut World, path: &[&str], incoming: &Incoming) -> Answer {
    let shown = |value: Result<Value, serde_json::Error>| match value {
        Ok(value) => Answer::ok(value),
        Err(error) => Answer::new(500, json!({"error": error.to_string()})),
    };
    match (incoming.method.as_str(), path) {
        ("GET", ["state"]) => shown(serde_json::to_value(world.state())),
        ("GET", ["violations"]) => shown(serde_json::to_value(&world.ledger.violations)),
        ("GET", ["calls"]) => shown(serde_json::to_value(&world.ledger.calls)),
        ("GET", ["setup"]) => shown(serde_json::to_value(&world.setup)),
        ("POST", [knob]) => {
            let body: Result<Value, _> = serde_json::from_slice(&incoming.body);
            let knob = body.and_then(|body| serde_json::from_value::<Knob>(json!({ *knob: body })));
            let turned = knob
                .map_err(|error| error.to_string())
                .and_then(|knob| world.turn(knob));
            match turned {
                Ok(()) => Answer::ok(json!({})),
                Err(why) => Answer::new(400, json!({"error": why})),
            }
        }
        _ => Answer::new(404, json!({"error": "no such page of the double"})),
    }
}

/// One request on its way.
struct Visit<'a> {
    contract: &'a Contract,
    world: &'a mut World,
    incoming: &'a Incoming,
    query: &'a BTreeMap<String, String>,
    now: Timestamp,
}

impl Visit<'_> {
    fn answer(&mut self) -> Reply {
        let (contract, incoming) = (self.contract, self.incoming);
        let found = match contract.find(&incoming.method, &incoming.path, self.query) {
            Ok(found) => found,
            Err(unknown) => return self.unknown(&unknown),
        };
        let operation = found.operation;
        let mut reply = self.known(found);
        let status = reply.answer.as_ref().map_or(0, |answer| answer.status);
        if let Some(answer) = reply.answer.take() {
            let problems = contract.response_problems(operation, answer.status, answer.body.as_ref());
            self.violation("response", &operation.id, problems);
            reply.answer = Some(self.with_headers(answer, &operation.id));
        }
        let agent = self
            .incoming
            .headers
            .get("user-agent")
            .and_then(|value| value.to_str().ok());
        self.world.ledger.calls.push(Call {
            operation: operation.id.clone(),
            path: incoming.path.clone(),
            status,
            agent: agent.unwrap_or_default().to_owned(),
        });
        reply
    }

    fn unknown(&mut self, unknown: &Unknown) -> Reply {
        self.violation("request", "", vec![unknown.message.clone()]);
        let refusal = Refusal::new(unknown.status, unknown.code, unknown.message.clone());
        refusal.answer("CloudError").into()
    }

    fn violation(&mut self, side: &'static str, operation: &str, problems: Vec<String>) {
        if problems.is_empty() {
            return;
        }
        self.world.ledger.violations.push(Violation {
            side,
            operation: operation.to_owned(),
            method: self.incoming.method.clone(),
            path: self.incoming.path.clone(),
            problems,
        });
    }

    fn known(&mut self, found: Found<'_>) -> Reply {
        let operation = found.operation;
        if !operation.open
            && let Err(refusal) = self.world.tokens.check(&self.incoming.headers, self.now)
        {
            let challenge = format!(
                "Bearer error=\"invalid_token\", error_description=\"{}\"",
                refusal.message
            );
            return refusal
                .answer(&operation.error)
                .with("www-authenticate", challenge)
                .into();
        }
        if let Err(refusal) = self.world.faults.throttle(&operation.id, self.now) {
            return refusal.answer(&operation.error).into();
        }
        let body = match self.body(&found) {
            Ok(body) => body,
            Err(problems) => {
                let message = format!("The request is invalid: {}", problems.join("; "));
                self.violation("request", &operation.id, problems);
                return Refusal::bad("InvalidRequestContent", message)
                    .answer(&operation.error)
                    .into();
            }
        };
        let incoming = self.incoming;
        let asked = Asked {
            operation,
            method: &incoming.method,
            path: &incoming.path,
            named: found.named,
            query: self.query,
            headers: &incoming.headers,
            body: body.unwrap_or(Value::Null),
            now: self.now,
            doom: None,
        };
        self.faulty(asked)
    }

    /// The body, if the request keeps the contract.
    fn body(&self, found: &Found<'_>) -> Result<Option<Value>, Vec<String>> {
        let bytes = &self.incoming.body;
        let mut problems = Vec::new();
        let body = if bytes.is_empty() {
            None
        } else {
            let kind = self
                .incoming
                .headers
                .get("content-type")
                .and_then(|value| value.to_str().ok());
            if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
                problems.push(format!("content-type is {kind:?}, expected application/json"));
            }
            let parsed =
                serde_json::from_slice(bytes).map_err(|error| vec![format!("the body is no JSON: {error}")])?;
            Some(parsed)
        };
        problems.extend(self.contract.request_problems(found, self.query, body.as_ref()));
        if problems.is_empty() { Ok(body) } else { Err(problems) }
    }

    /// Does it, unless a fault is in the way.
    fn faulty(&mut self, mut asked: Asked<'_>) -> Reply {
        let wish = Wish::of(&asked.body);
        let name = asked.path.rsplit('/').next().unwrap_or_default();
        let effect = self.world.faults.spend(asked.id(), name, &wish);
        let words = |status, code: &str, message: Option<String>, world: &World| {
            let mut refusal = allocation::refusal(status, code, &wish.size, &world.setup.region);
            refusal.message = message.unwrap_or(refusal.message);
            refusal
        };
        match effect {
            Some(Effect::Sync {
                status,
                code,
                message,
                retry_after,
            }) => {
                let mut refusal = words(status, &code, message, self.world);
                refusal.retry_after = retry_after;
                self.reserve_after(&asked, &refusal);
                return refusal.answer(&asked.operation.error).into();
            }
            Some(Effect::Async { code, message }) => asked.doom = Some(words(409, &code, message, self.world)),
            Some(Effect::Refused {}) => {
                return Reply {
                    answer: None,
                    millis: 0,
                };
            }
            Some(Effect::Lost {}) => {
                self.execute(&asked);
                return Reply {
                    answer: None,
                    millis: 0,
                };
            }
            Some(Effect::Slow { millis }) => {
                let answer = Some(self.execute(&asked));
                return Reply { answer, millis };
            }
            None => {}
        }
        self.execute(&asked).into()
    }

    /// An allocation that failed keeps the network interfaces, whoever thought of the failure.
    fn reserve_after(&mut self, asked: &Asked<'_>, refusal: &Refusal) {
        let is_allocation = allocation::CODES.contains(&refusal.code.as_str());
        if asked.id() == "VirtualMachines_CreateOrUpdate" && is_allocation {
            let key = asked.key("vm");
            if let Ok(admitted) = self.world.admit(asked, &key) {
                self.world.reserve(&admitted, &key, self.now);
            }
        }
    }

    fn execute(&mut self, asked: &Asked<'_>) -> Answer {
        let answer = self.world.execute(asked).unwrap_or_else(|refusal| {
            let strange = ["InvalidQuery", "InvalidFilterInQueryString", "InvalidSkipToken"];
            if strange.contains(&refusal.code.as_str()) {
                self.violation("request", asked.id(), vec![refusal.message.clone()]);
            }
            refusal.answer(&asked.operation.error)
        });
        self.world.index(self.now);
        answer
    }

    fn with_headers(&mut self, answer: Answer, operation: &str) -> Answer {
        let id = self.world.guid();
        let (name, budget) = match self.incoming.method.as_str() {
            "GET" => ("x-ms-ratelimit-remaining-subscription-reads", 11_999),
            "DELETE" => ("x-ms-ratelimit-remaining-subscription-deletes", 14_999),
            _ => ("x-ms-ratelimit-remaining-subscription-writes", 1_199),
        };
        let left = self.world.faults.remaining(operation).unwrap_or(budget);
        let mut answer = answer
            .with("x-ms-request-id", id.clone())
            .with("x-ms-correlation-request-id", id)
            .with(name, left.to_string());
        if operation.starts_with("VirtualMachine") {
            let resource = format!("Microsoft.Compute/{operation}3Min;{left}");
            answer = answer.with("x-ms-ratelimit-remaining-resource", resource);
        }
        answer
    }
}
