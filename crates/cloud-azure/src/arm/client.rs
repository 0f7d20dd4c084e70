//! One request: its token, its repetitions, its count.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use runtime::{Clock, Metrics, random::Random};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::{sync::Mutex, time::Instant};

use super::{Credential, Environment, Failure, Token, Transport};

/// How often a request is repeated.
const RETRIES: u32 = 3;
/// The wait before the first repetition; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(800);
/// No wait is longer: who asks for more is told so.
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// A token is renewed when it is good for no longer than this.
const RENEW_BEFORE: Duration = Duration::from_mins(5);
/// How long the first token may take.
const FIRST_TOKEN: Duration = Duration::from_secs(5);
/// What may stand in a query as it is.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What a client is made of.
pub struct ArmParts {
    /// The network.
    pub transport: Arc<dyn Transport>,
    /// Who we are.
    pub credential: Arc<dyn Credential>,
    /// Who may read images of another tenant, for requests about machines.
    pub auxiliary: Option<Arc<dyn Credential>>,
    /// Which Azure.
    pub environment: Environment,
    /// Our subscription.
    pub subscription: String,
    /// The time.
    pub clock: Clock,
    /// For waits.
    pub random: Random,
    /// What is counted.
    pub metrics: Option<Arc<Metrics>>,
}

/// A client of Azure Resource Manager. Clones are the same client.
#[derive(Clone)]
pub struct Arm(Arc<Inner>);

struct Inner {
    parts: ArmParts,
    token: Mutex<Option<Token>>,
    auxiliary: Mutex<Option<Token>>,
}

/// Requests that boot images.
const ABOUT_MACHINES: [&str; 4] = ["PutVM", "GetVM", "PatchVM", "DeleteVM"];

/// A request.
pub(super) struct Asked {
    /// Its name in metrics and errors.
    pub(super) action: &'static str,
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) body: Option<Vec<u8>>,
    /// Beside those that every request has.
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) is_authorized: bool,
}

/// An answer that says yes.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Arm {
    /// A client. Nothing is asked yet.
    pub fn new(parts: ArmParts) -> Self {
        Self(Arc::new(Inner {
            parts,
            token: Mutex::default(),
            auxiliary: Mutex::default(),
        }))
    }

    /// Gets a first token: who cannot will not be able to later.
    pub async fn check(&self) -> Result<(), Failure> {
        match tokio::time::timeout(FIRST_TOKEN, self.token()).await {
            Ok(token) => token.map(drop),
            Err(_) => Err(Failure::unanswered(format!(
                "no token was given within {} s",
                FIRST_TOKEN.as_secs()
            ))),
        }
    }

    /// Our subscription.
    pub fn subscription(&self) -> &str {
        &self.0.parts.subscription
    }

    /// Which Azure.
    pub fn environment(&self) -> &Environment {
        &self.0.parts.environment
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.0.parts.clock.now()
    }

    /// An address of Resource Manager's; the version of the API comes first in the query.
    pub(super) fn url(&self, path: &str, version: &str, query: &[(&str, &str)]) -> String {
        let mut url = format!("{}{path}?api-version={version}", self.environment().endpoint);
        for (key, value) in query {
            url.push_str(&format!("&{}={}", encoded(key), encoded(value)));
        }
        url
    }

    /// Asks for something and reads it.
    pub(super) async fn get<T: DeserializeOwned>(&self, action: &'static str, url: String) -> Result<T, Failure> {
        let answer = self.ask(action, Method::GET, url, None::<&()>).await?;
        read(action, &answer.body)
    }

    /// Sends something.
    pub(super) async fn ask(
        &self,
        action: &'static str,
        method: Method,
        url: String,
        body: Option<&impl Serialize>,
    ) -> Result<Answer, Failure> {
        self.ask_with(action, method, url, body, Vec::new()).await
    }

    /// Sends something, with headers of its own.
    pub(super) async fn ask_with(
        &self,
        action: &'static str,
        method: Method,
        url: String,
        body: Option<&impl Serialize>,
        headers: Vec<(&'static str, String)>,
    ) -> Result<Answer, Failure> {
        let body = body.map(serde_json::to_vec).transpose();
        let body =
            body.map_err(|error| Failure::unanswered(format!("{action}: the request cannot be written: {error}")))?;
        let asked = Asked {
            action,
            method,
            url,
            body,
            headers,
            is_authorized: true,
        };
        self.send(&asked).await
    }

    /// Sends a request, again if it may help.
    pub(super) async fn send(&self, asked: &Asked) -> Result<Answer, Failure> {
        let (mut retries, mut has_renewed) = (0, false);
        loop {
            let failure = match self.attempt(asked).await {
                Ok(answer) if answer.status < 400 => return Ok(answer),
                // A token may have been taken back before its time.
                Ok(answer) if answer.status == 401 && asked.is_authorized && !has_renewed => {
                    has_renewed = true;
                    *self.0.token.lock().await = None;
                    continue;
                }
                Ok(answer) => {
                    let after = retry_after(&answer.headers, self.now());
                    Failure::of_answer(answer.status, &answer.body, after)
                }
                Err(failure) => failure,
            };
            let may_help = failure
                .status
                .is_none_or(|status| matches!(status, 408 | 429 | 500 | 502 | 503 | 504));
            let wait = failure.retry_after.unwrap_or_else(|| self.backoff(retries));
            if !may_help || retries == RETRIES || wait > LONGEST_WAIT {
                return Err(failure);
            }
            retries += 1;
            tracing::debug!(action = asked.action, error = %failure, wait = ?wait, "asking Azure again");
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&self, asked: &Asked) -> Result<Answer, Failure> {
        let mut request = Request::builder()
            .method(asked.method.clone())
            .uri(&asked.url)
            .header("accept", "application/json")
            .header("user-agent", concat!("karpenter-aks/v", env!("CARGO_PKG_VERSION")));
        if asked.is_authorized {
            let token = self.token().await?;
            request = request.header("authorization", format!("Bearer {}", token.secret));
        }
        if let Some(credential) = &self.0.parts.auxiliary
            && ABOUT_MACHINES.contains(&asked.action)
        {
            let token = self.held(&self.0.auxiliary, credential).await?;
            request = request.header("x-ms-authorization-auxiliary", format!("Bearer {}", token.secret));
        }
        if asked.body.is_some() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in &asked.headers {
            request = request.header(*name, value);
        }
        let request = request
            .body(Bytes::from(asked.body.clone().unwrap_or_default()))
            .map_err(|error| Failure::unanswered(format!("{}: {} is no address: {error}", asked.action, asked.url)))?;
        let began = Instant::now();
        let answer = self.0.parts.transport.send(request).await;
        let status = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
        self.count(asked.action, status, began.elapsed());
        let (head, body) = answer
            .map_err(|error| Failure::unanswered(format!("{}: {error}", asked.action)))?
            .into_parts();
        Ok(Answer {
            status,
            headers: head.headers,
            body,
        })
    }

    fn count(&self, action: &str, status: u16, took: Duration) {
        if let Some(metrics) = &self.0.parts.metrics {
            let status = status.to_string();
            metrics.azure_request_total.inc([action, &status]);
            metrics
                .azure_request_duration_seconds
                .observe([action, &status], took.as_secs_f64());
        }
    }

    async fn token(&self) -> Result<Token, Failure> {
        self.held(&self.0.token, &self.0.parts.credential).await
    }

    /// The token that is held, or a new one where it is about to expire.
    async fn held(&self, held: &Mutex<Option<Token>>, credential: &Arc<dyn Credential>) -> Result<Token, Failure> {
        let mut held = held.lock().await;
        let renew_at = self.now().saturating_add(RENEW_BEFORE).unwrap_or(Timestamp::MAX);
        let is_good = |token: &&Token| token.expires_at > renew_at || token.expires_at == Timestamp::MAX;
        if let Some(token) = held.as_ref().filter(is_good) {
            return Ok(token.clone());
        }
        let token = credential.token().await?;
        *held = Some(token.clone());
        Ok(token)
    }

    /// 0.8 s, then 2.4 s, then 5.6 s, each a little shorter or longer.
    fn backoff(&self, retries: u32) -> Duration {
        let wait = FIRST_WAIT * (2u32.saturating_pow(retries + 1) - 1);
        wait.mul_f64(0.8 + 0.5 * self.0.parts.random.fraction())
            .min(LONGEST_WAIT)
    }
}

/// Reads an answer.
pub(super) fn read<T: DeserializeOwned>(action: &str, body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        Failure::with_code(
            "InvalidResponse",
            format!("{action}: the answer cannot be read: {error}"),
        )
    })
}

pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, QUERY).to_string()
}

/// How long an answer asks us to wait: in milliseconds, in seconds, or until a date.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let millis = text("retry-after-ms").or_else(|| text("x-ms-retry-after-ms"));
    if let Some(millis) = millis.and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let after = text("retry-after")?;
    if let Ok(seconds) = after.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(after).ok()?.timestamp();
    Duration::try_from(date.duration_since(now)).ok()
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "called with literals")]

    use std::{
        collections::VecDeque,
        sync::{
            Mutex as Lock,
            atomic::{AtomicU32, Ordering},
        },
    };

    use async_trait::async_trait;
    use http::Response;
    use serde_json::json;

    use super::*;
    use crate::arm::{TransportError, operation::Operation};

    /// Answers from a script, and notes what it was asked and when.
    #[derive(Default)]
    pub(in crate::arm) struct Scripted {
        answers: Lock<VecDeque<Option<Response<Bytes>>>>,
        pub(in crate::arm) asked: Lock<Vec<String>>,
        tokens: AtomicU32,
    }

    impl Scripted {
        pub(in crate::arm) fn say(&self, status: u16, headers: &[(&str, &str)], body: Value) {
            let mut answer = Response::builder().status(status);
            for (key, value) in headers {
                answer = answer.header(*key, *value);
            }
            let body = if body.is_null() {
                String::new()
            } else {
                body.to_string()
            };
            self.answers
                .lock()
                .unwrap()
                .push_back(Some(answer.body(body.into()).unwrap()));
        }

        fn lose(&self) {
            self.answers.lock().unwrap().push_back(None);
        }

        pub(in crate::arm) fn asked(&self) -> Vec<String> {
            self.asked.lock().unwrap().clone()
        }
    }

    #[async_trait]
    impl Transport for Scripted {
        async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
            let path = request.uri().path_and_query().unwrap().to_string();
            self.asked.lock().unwrap().push(format!("{} {path}", request.method()));
            let answer = self.answers.lock().unwrap().pop_front();
            match answer {
                Some(Some(answer)) => Ok(answer),
                Some(None) => Err(TransportError("connection reset".to_owned())),
                None => panic!("the script is over: {path}"),
            }
        }
    }

    #[async_trait]
    impl Credential for Scripted {
        async fn token(&self) -> Result<Token, Failure> {
            self.tokens.fetch_add(1, Ordering::SeqCst);
            Ok(Token {
                secret: "t".to_owned(),
                expires_at: Timestamp::MAX,
            })
        }
    }

    pub(in crate::arm) fn client(script: &Arc<Scripted>) -> Arm {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        Arm::new(ArmParts {
            transport: Arc::clone(script) as Arc<dyn Transport>,
            credential: Arc::clone(script) as Arc<dyn Credential>,
            auxiliary: None,
            environment: Environment {
                endpoint: "http://arm.example".to_owned(),
                audience: "http://arm.example".to_owned(),
                authority: String::new(),
                pricing: None,
                has_billing_extension: true,
            },
            subscription: "sub".to_owned(),
            clock,
            random: Random::seeded(1),
            metrics: None,
        })
    }

    async fn get(arm: &Arm) -> Result<Value, Failure> {
        arm.get("test", arm.url("/x", "1", &[])).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_repeated_three_times_and_then_given_up() {
        let script = Arc::new(Scripted::default());
        let arm = client(&script);
        script.lose();
        script.say(503, &[], json!({"error": {"code": "Busy", "message": "later"}}));
        script.say(429, &[("retry-after", "7")], Value::Null);
        script.say(
            500,
            &[],
            json!({"error": {"code": "InternalServerError", "message": "no"}}),
        );
        let began = Instant::now();
        assert_eq!(get(&arm).await.unwrap_err().code, "InternalServerError");
        let waited = began.elapsed();
        // 0.8 s and 2.4 s, each between 0.8 and 1.3 times that, and the seven seconds it was told.
        assert!((9.56..11.2).contains(&waited.as_secs_f64()), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_not_repeated() {
        let script = Arc::new(Scripted::default());
        let arm = client(&script);
        script.say(
            404,
            &[],
            json!({"error": {"code": "ResourceNotFound", "message": "no"}}),
        );
        assert!(get(&arm).await.unwrap_err().is_not_found());
        assert_eq!(script.asked(), ["GET /x?api-version=1"]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_for_more_than_a_minute_of_patience_is_told_to_the_caller() {
        let script = Arc::new(Scripted::default());
        let arm = client(&script);
        script.say(429, &[("retry-after", "300")], Value::Null);
        assert_eq!(get(&arm).await.unwrap_err().retry_after, Some(Duration::from_mins(5)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_asked_for_once_and_anew_when_it_is_refused() {
        let script = Arc::new(Scripted::default());
        let arm = client(&script);
        script.say(200, &[], json!(1));
        script.say(401, &[], Value::Null);
        script.say(200, &[], json!(2));
        get(&arm).await.unwrap();
        assert_eq!(get(&arm).await, Ok(json!(2)));
        assert_eq!(script.tokens.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn waits_are_read_in_every_form() {
        let header = |name: &'static str, value: &'static str| {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
            retry_after(&headers, Timestamp::UNIX_EPOCH)
        };
        assert_eq!(header("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        assert_eq!(header("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(
            header("retry-after", "Thu, 01 Jan 1970 00:00:09 GMT"),
            Some(Duration::from_secs(9))
        );
        assert_eq!(header("retry-after", "soon"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn all_three_kinds_of_long_running_operation_are_followed_to_their_end() {
        let url = || "http://arm.example/r?api-version=1".to_owned();
        let script = Arc::new(Scripted::default());
        let arm = client(&script);
        let begin = |arm: Arm| async move {
            let answer = arm.ask("test", Method::PUT, url(), Some(&json!({}))).await.unwrap();
            Operation::begun("test", &Method::PUT, &url(), &answer, Timestamp::UNIX_EPOCH)
        };
        // Azure-AsyncOperation, which fails with status 200.
        script.say(
            201,
            &[
                ("azure-asyncoperation", "http://arm.example/op/1"),
                ("retry-after", "1"),
            ],
            json!({}),
        );
        script.say(200, &[], json!({"status": "InProgress"}));
        script.say(
            200,
            &[],
            json!({"status": "Failed", "error": {"code": "ZonalAllocationFailed", "message": "full"}}),
        );
        let operation = begin(arm.clone()).await.unwrap();
        let failed = arm.finish(operation, Duration::from_mins(1)).await.unwrap_err();
        assert_eq!(failed.code, "ZonalAllocationFailed");
        // Location.
        script.say(202, &[("location", "http://arm.example/op/2")], Value::Null);
        script.say(202, &[], Value::Null);
        script.say(204, &[], Value::Null);
        let operation = begin(arm.clone()).await.unwrap();
        assert_eq!(arm.finish(operation, Duration::from_mins(1)).await, Ok(()));
        // The resource itself.
        script.say(201, &[], json!({"properties": {"provisioningState": "Creating"}}));
        script.say(200, &[], json!({"properties": {"provisioningState": "Creating"}}));
        script.say(200, &[], json!({"properties": {"provisioningState": "Succeeded"}}));
        let operation = begin(arm.clone()).await.unwrap();
        assert_eq!(arm.finish(operation, Duration::from_mins(1)).await, Ok(()));
        // Over at once.
        script.say(200, &[], json!({"properties": {"provisioningState": "Succeeded"}}));
        let operation = begin(arm.clone()).await.unwrap();
        assert_eq!(arm.finish(operation, Duration::from_mins(1)).await, Ok(()));
        // Never over.
        script.say(201, &[("azure-asyncoperation", "http://arm.example/op/3")], json!({}));
        for _ in 0..3 {
            script.say(200, &[], json!({"status": "InProgress"}));
        }
        let operation = begin(arm.clone()).await.unwrap();
        let over = arm.finish(operation, Duration::from_secs(7)).await.unwrap_err();
        assert_eq!(over.code, "OperationTimedOut");
    }

    #[tokio::test(start_paused = true)]
    async fn an_operation_elsewhere_is_not_given_our_token() {
        let script = Arc::new(Scripted::default());
        let arm = client(&script);
        script.say(202, &[("location", "http://elsewhere.example/op")], Value::Null);
        let answer = arm
            .ask("test", Method::PUT, arm.url("/r", "1", &[]), Some(&json!({})))
            .await
            .unwrap();
        let operation = Operation::begun(
            "test",
            &Method::PUT,
            "http://arm.example/r",
            &answer,
            Timestamp::UNIX_EPOCH,
        );
        let refused = arm
            .finish(operation.unwrap(), Duration::from_mins(1))
            .await
            .unwrap_err();
        assert!(refused.message.contains("elsewhere.example"), "{refused}");
    }
}
