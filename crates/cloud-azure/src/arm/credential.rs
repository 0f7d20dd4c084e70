//! Who are we to Azure? Tokens by workload identity, by the machine's identity, or given.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use runtime::{Clock, settings::AzureSettings};
use serde::Deserialize;

use super::{Environment, Failure, Transport};

/// No token is believed for longer, so that a long wait for an operation does not outlive it.
const LONGEST: Duration = Duration::from_hours(2);
/// Where a machine asks for its own identity's token.
const METADATA_SERVICE: &str = "http://169.254.169.254";

/// A token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// The secret.
    pub secret: String,
    /// Until when it is good.
    pub expires_at: Timestamp,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Token(good until {})", self.expires_at)
    }
}

/// Gets tokens.
#[async_trait]
pub trait Credential: Send + Sync {
    /// A new token.
    async fn token(&self) -> Result<Token, Failure>;
}

/// The credential that the settings name: a given token for a double on this machine, workload identity where a token
/// file is named, else the machine's identity.
pub fn credential(
    settings: &AzureSettings,
    environment: &Environment,
    transport: &Arc<dyn Transport>,
    clock: &Clock,
) -> Result<Arc<dyn Credential>, String> {
    if !settings.static_token.is_empty() {
        if !environment.is_loopback() {
            return Err(format!(
                "ARM_STATIC_TOKEN is for a double of Azure on this machine, and {} is not on it: \
                 take the variable away, or set ARM_ENDPOINT to an address on 127.0.0.1",
                environment.endpoint
            ));
        }
        return Ok(Arc::new(StaticToken(settings.static_token.clone())));
    }
    if settings.federated_token_file.is_empty() {
        return Ok(Arc::new(ManagedIdentity {
            transport: Arc::clone(transport),
            clock: clock.clone(),
            service: METADATA_SERVICE.to_owned(),
            audience: environment.audience.clone(),
            client_id: settings.client_id.clone(),
        }));
    }
    for (variable, value) in [
        ("AZURE_CLIENT_ID", &settings.client_id),
        ("AZURE_TENANT_ID", &settings.tenant_id),
    ] {
        if value.is_empty() {
            return Err(format!(
                "AZURE_FEDERATED_TOKEN_FILE is set, but {variable} is not: is the service account annotated with azure.workload.identity/client-id?"
            ));
        }
    }
    Ok(Arc::new(WorkloadIdentity {
        transport: Arc::clone(transport),
        clock: clock.clone(),
        authority: environment.authority.clone(),
        tenant_id: settings.tenant_id.clone(),
        client_id: settings.client_id.clone(),
        scope: environment.scope(),
        token_file: settings.federated_token_file.clone(),
    }))
}

/// A token that is given, for tests.
pub struct StaticToken(pub String);

#[async_trait]
impl Credential for StaticToken {
    async fn token(&self) -> Result<Token, Failure> {
        Ok(Token {
            secret: self.0.clone(),
            expires_at: Timestamp::MAX,
        })
    }
}

/// A service account's token, exchanged for one of Azure.
pub struct WorkloadIdentity {
    /// The network.
    pub transport: Arc<dyn Transport>,
    /// The time.
    pub clock: Clock,
    /// Who exchanges tokens.
    pub authority: String,
    /// Our tenant.
    pub tenant_id: String,
    /// Our identity.
    pub client_id: String,
    /// What for.
    pub scope: String,
    /// Where the service account's token is; the kubelet writes it anew now and then.
    pub token_file: String,
}

#[async_trait]
impl Credential for WorkloadIdentity {
    async fn token(&self) -> Result<Token, Failure> {
        let assertion = std::fs::read_to_string(&self.token_file).map_err(|error| {
            Failure::unanswered(format!(
                "AZURE_FEDERATED_TOKEN_FILE {:?} cannot be read: {error}",
                self.token_file
            ))
        })?;
        let fields = [
            ("client_id", self.client_id.as_str()),
            ("scope", self.scope.as_str()),
            ("grant_type", "client_credentials"),
            (
                "client_assertion_type",
                "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            ),
            ("client_assertion", assertion.trim()),
        ];
        let form = fields.map(|(key, value)| format!("{key}={}", encoded(value))).join("&");
        let request = Request::post(format!("{}/{}/oauth2/v2.0/token", self.authority, self.tenant_id))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "application/json")
            .body(Bytes::from(form));
        exchange(&*self.transport, request, &self.clock).await
    }
}

/// The identity of the machine we run on, from its metadata service.
pub struct ManagedIdentity {
    /// The network.
    pub transport: Arc<dyn Transport>,
    /// The time.
    pub clock: Clock,
    /// The metadata service.
    pub service: String,
    /// What for.
    pub audience: String,
    /// Which of several identities; empty for the only one.
    pub client_id: String,
}

#[async_trait]
impl Credential for ManagedIdentity {
    async fn token(&self) -> Result<Token, Failure> {
        let mut url = format!(
            "{}/metadata/identity/oauth2/token?api-version=2018-02-01&resource={}",
            self.service,
            encoded(&self.audience)
        );
        if !self.client_id.is_empty() {
            url.push_str(&format!("&client_id={}", encoded(&self.client_id)));
        }
        let request = Request::get(url).header("metadata", "true").body(Bytes::new());
        exchange(&*self.transport, request, &self.clock).await
    }
}

/// A token for images of another tenant, from a service that may give some.
pub struct SharedGallery {
    /// The network.
    pub transport: Arc<dyn Transport>,
    /// Where the service is.
    pub server: String,
    /// What for.
    pub scope: String,
}

impl SharedGallery {
    /// The credential that the settings name; none where images are not shared.
    pub fn of(
        settings: &AzureSettings,
        environment: &Environment,
        transport: &Arc<dyn Transport>,
    ) -> Option<Arc<dyn Credential>> {
        let is_used = settings.use_sig && !settings.sig_access_token_server_url.is_empty();
        is_used.then(|| {
            Arc::new(Self {
                transport: Arc::clone(transport),
                server: settings.sig_access_token_server_url.clone(),
                scope: environment.scope(),
            }) as Arc<dyn Credential>
        })
    }
}

#[async_trait]
impl Credential for SharedGallery {
    async fn token(&self) -> Result<Token, Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Given {
            token: String,
            expires_on: Timestamp,
            #[serde(default)]
            refresh_on: Option<Timestamp>,
        }
        let failed = |why: String| Failure::unanswered(format!("asking {} for a token, {why}", self.server));
        let url = format!("{}?scope={}", self.server, encoded(&self.scope));
        let request = Request::get(url)
            .body(Bytes::new())
            .map_err(|error| failed(error.to_string()))?;
        let answer = self
            .transport
            .send(request)
            .await
            .map_err(|error| failed(error.to_string()))?;
        if !answer.status().is_success() {
            return Err(Failure::of_answer(answer.status().as_u16(), answer.body(), None));
        }
        let given: Given = serde_json::from_slice(answer.body()).map_err(|error| failed(error.to_string()))?;
        // Whoever holds it renews it five minutes before its end; no time at all is written as the year 1.
        let refresh = given.refresh_on.filter(|at| *at > Timestamp::UNIX_EPOCH);
        let refresh = refresh.and_then(|at| at.saturating_add(Duration::from_mins(5)).ok());
        Ok(Token {
            secret: given.token,
            expires_at: refresh.map_or(given.expires_on, |at| at.min(given.expires_on)),
        })
    }
}

/// Both services answer alike, but for numbers that one of them writes as text.
#[derive(Deserialize)]
struct Granted {
    access_token: String,
    #[serde(default)]
    expires_in: serde_json::Value,
}

async fn exchange(
    transport: &dyn Transport,
    request: Result<Request<Bytes>, http::Error>,
    clock: &Clock,
) -> Result<Token, Failure> {
    let request = request.map_err(|error| Failure::unanswered(format!("asking for a token, {error}")))?;
    let answer = transport.send(request).await;
    let answer = answer.map_err(|error| Failure::unanswered(format!("asking for a token, {error}")))?;
    if !answer.status().is_success() {
        return Err(refused(answer.status().as_u16(), answer.body()));
    }
    let granted: Granted = serde_json::from_slice(answer.body())
        .map_err(|error| Failure::unanswered(format!("asking for a token, the answer cannot be read: {error}")))?;
    let seconds = granted.expires_in.as_u64();
    let seconds = seconds
        .or_else(|| granted.expires_in.as_str()?.parse().ok())
        .unwrap_or(300);
    let good_for = Duration::from_secs(seconds).min(LONGEST);
    Ok(Token {
        secret: granted.access_token,
        expires_at: clock.now().saturating_add(good_for).unwrap_or(Timestamp::MAX),
    })
}

/// Refusals of the authority have a shape of their own.
fn refused(status: u16, body: &[u8]) -> Failure {
    #[derive(Deserialize, Default)]
    struct Refusal {
        #[serde(default)]
        error: String,
        #[serde(default)]
        error_description: String,
    }
    let refusal: Refusal = serde_json::from_slice(body).unwrap_or_default();
    Failure {
        code: refusal.error,
        message: format!("no token was given: {}", refusal.error_description),
        status: Some(status),
        ..Failure::default()
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::Response;

    use super::*;
    use crate::arm::TransportError;

    /// Answers with one text, and notes what it was asked.
    struct Answers(&'static str, u16, Mutex<Vec<String>>);

    #[async_trait]
    impl Transport for Answers {
        async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
            let body = String::from_utf8_lossy(request.body()).into_owned();
            self.2
                .lock()
                .unwrap()
                .push(format!("{} {} {body}", request.method(), request.uri()));
            Ok(Response::builder().status(self.1).body(Bytes::from(self.0)).unwrap())
        }
    }

    fn at_epoch() -> Clock {
        Clock::told_by(|| Timestamp::UNIX_EPOCH)
    }

    #[tokio::test]
    async fn a_service_accounts_token_is_exchanged() {
        let file = std::env::temp_dir().join(format!("azure-token-{}", std::process::id()));
        std::fs::write(&file, "assertion\n").unwrap();
        let transport = Arc::new(Answers(
            r#"{"access_token":"t","expires_in":86399}"#,
            200,
            Mutex::default(),
        ));
        let settings = AzureSettings {
            client_id: "client".to_owned(),
            tenant_id: "tenant".to_owned(),
            federated_token_file: file.to_string_lossy().into_owned(),
            ..AzureSettings::default()
        };
        let environment = Environment::of(&settings).unwrap();
        let network = Arc::clone(&transport) as Arc<dyn Transport>;
        let token = credential(&settings, &environment, &network, &at_epoch())
            .unwrap()
            .token()
            .await
            .unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(token.secret, "t");
        // A day is more than two hours.
        assert_eq!(token.expires_at, Timestamp::from_second(7200).unwrap());
        let asked = transport.2.lock().unwrap().join("");
        assert!(
            asked.starts_with("POST https://login.microsoftonline.com/tenant/oauth2/v2.0/token "),
            "{asked}"
        );
        assert!(
            asked.contains("scope=https%3A%2F%2Fmanagement%2Eazure%2Ecom%2F%2Edefault"),
            "{asked}"
        );
        assert!(asked.ends_with("client_assertion=assertion"), "{asked}");
    }

    #[tokio::test]
    async fn a_machine_asks_its_metadata_service() {
        let transport = Arc::new(Answers(
            r#"{"access_token":"t","expires_in":"60"}"#,
            200,
            Mutex::default(),
        ));
        let settings = AzureSettings::default();
        let environment = Environment::of(&settings).unwrap();
        let network = Arc::clone(&transport) as Arc<dyn Transport>;
        let token = credential(&settings, &environment, &network, &at_epoch())
            .unwrap()
            .token()
            .await
            .unwrap();
        assert_eq!(token.expires_at, Timestamp::from_second(60).unwrap());
        let asked = transport.2.lock().unwrap().join("");
        assert!(asked.starts_with("GET http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01"));
    }

    #[tokio::test]
    async fn a_refusal_is_told_in_the_authoritys_words() {
        let body = r#"{"error":"invalid_client","error_description":"AADSTS70021: no matching federated identity"}"#;
        let transport: Arc<dyn Transport> = Arc::new(Answers(body, 401, Mutex::default()));
        let settings = AzureSettings::default();
        let environment = Environment::of(&settings).unwrap();
        let refused = credential(&settings, &environment, &transport, &at_epoch())
            .unwrap()
            .token()
            .await
            .unwrap_err();
        assert!(refused.to_string().contains("AADSTS70021"), "{refused}");
    }

    #[tokio::test]
    async fn images_of_another_tenant_are_read_with_a_token_that_is_renewed_when_it_says() {
        let body = r#"{"Token":"t","ExpiresOn":"2026-11-17T12:00:00Z","RefreshOn":"2026-11-17T11:00:00Z"}"#;
        let transport = Arc::new(Answers(body, 200, Mutex::default()));
        let settings = AzureSettings {
            use_sig: true,
            sig_access_token_server_url: "http://tokens.example/token".to_owned(),
            ..AzureSettings::default()
        };
        let environment = Environment::of(&settings).unwrap();
        let network = Arc::clone(&transport) as Arc<dyn Transport>;
        let shared = SharedGallery::of(&settings, &environment, &network).unwrap();
        let token = shared.token().await.unwrap();
        assert_eq!(token.expires_at, "2026-11-17T11:05:00Z".parse().unwrap());
        let asked = transport.2.lock().unwrap().join("");
        assert!(
            asked.starts_with("GET http://tokens.example/token?scope=https%3A%2F%2Fmanagement"),
            "{asked}"
        );
        assert!(SharedGallery::of(&AzureSettings::default(), &environment, &network).is_none());
    }

    #[test]
    fn a_given_token_goes_nowhere_but_to_this_machine() {
        let transport: Arc<dyn Transport> = Arc::new(Answers("", 200, Mutex::default()));
        let settings = AzureSettings {
            static_token: "t".to_owned(),
            ..AzureSettings::default()
        };
        let environment = Environment::of(&settings).unwrap();
        let refused = credential(&settings, &environment, &transport, &at_epoch())
            .err()
            .unwrap();
        assert!(refused.contains("ARM_STATIC_TOKEN"), "{refused}");
    }
}
