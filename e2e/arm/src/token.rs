//! Who may ask? Tokens as workload identity and the metadata service give them, and whether one is still good.

use std::collections::{BTreeMap, BTreeSet};

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Refusal},
    knob::TokenRule,
    uri,
    world::World,
};

/// All tokens given so far.
pub(crate) struct Tokens {
    /// Each until when.
    issued: BTreeMap<String, Timestamp>,
    revoked: BTreeSet<String>,
    lifetime: SignedDuration,
    only_issued: bool,
    serial: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            issued: BTreeMap::new(),
            revoked: BTreeSet::new(),
            lifetime: SignedDuration::from_hours(24),
            only_issued: false,
            serial: 0,
        }
    }
}

impl Tokens {
    pub(crate) fn turn(&mut self, knob: &TokenRule) {
        if let Some(seconds) = knob.lifetime_seconds {
            self.lifetime = SignedDuration::from_secs(seconds);
        }
        self.only_issued = knob.only_issued.unwrap_or(self.only_issued);
        if knob.revoke {
            self.revoked.extend(self.issued.keys().cloned());
        }
    }

    fn issue(&mut self, now: Timestamp) -> String {
        self.serial += 1;
        let token = format!("double.{}.token", self.serial);
        self.issued.insert(token.clone(), now + self.lifetime);
        token
    }

    /// Refuses who has no good token.
    pub(crate) fn check(&self, headers: &HeaderMap, now: Timestamp) -> Result<(), Refusal> {
        let header = headers.get("authorization").and_then(|value| value.to_str().ok());
        let token = header
            .and_then(|header| header.strip_prefix("Bearer "))
            .filter(|token| !token.is_empty());
        let Some(token) = token else {
            let message = "Authentication failed. The 'Authorization' header is missing.";
            return Err(Refusal::new(401, "AuthenticationFailed", message));
        };
        if self.issued.get(token).is_some_and(|until| *until <= now) {
            let message = "The access token expiry UTC time is earlier than current UTC time.";
            return Err(Refusal::new(401, "ExpiredAuthenticationToken", message));
        }
        if self.revoked.contains(token) || (self.only_issued && !self.issued.contains_key(token)) {
            return Err(Refusal::new(
                401,
                "InvalidAuthenticationToken",
                "The access token is invalid.",
            ));
        }
        Ok(())
    }
}

impl World {
    /// The endpoint of workload identity: a federated token for one of ours.
    pub(crate) fn federated_token(&mut self, tenant: &str, form: &str, now: Timestamp) -> Answer {
        let form = uri::parameters(form);
        let given = |name: &str| form.get(name).map_or("", String::as_str);
        let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
        let problem = if tenant != self.setup.tenant {
            Some(("invalid_request", format!("AADSTS90002: Tenant '{tenant}' not found.")))
        } else if given("grant_type") != "client_credentials" {
            Some((
                "unsupported_grant_type",
                "AADSTS70003: The grant type is not client_credentials.".to_owned(),
            ))
        } else if given("client_id").is_empty() || !given("scope").ends_with("/.default") {
            Some((
                "invalid_request",
                "AADSTS900144: client_id and a scope with /.default are needed.".to_owned(),
            ))
        } else if given("client_assertion").is_empty() || given("client_assertion_type") != kind {
            Some((
                "invalid_client",
                "AADSTS7000218: client_assertion is missing.".to_owned(),
            ))
        } else {
            None
        };
        if let Some((error, why)) = problem {
            return Answer::new(400, json!({"error": error, "error_description": why}));
        }
        let seconds = self.tokens.lifetime.as_secs();
        let token = self.tokens.issue(now);
        Answer::ok(json!({
            "token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds, "access_token": token,
        }))
    }

    /// The endpoint of the metadata service.
    pub(crate) fn managed_token(
        &mut self,
        query: &BTreeMap<String, String>,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Answer {
        let refused = |why: &str| Answer::new(400, json!({"error": "invalid_request", "error_description": why}));
        if headers.get("metadata").is_none_or(|value| value != "true") {
            return refused("Required metadata header not specified");
        }
        let Some(resource) = query.get("resource") else {
            return refused("Required audience parameter not specified");
        };
        if !query.contains_key("api-version") {
            return refused("Required api-version parameter not specified");
        }
        let seconds = self.tokens.lifetime.as_secs();
        let token = self.tokens.issue(now);
        let until = (now + self.tokens.lifetime).as_second();
        Answer::ok(json!({
            "access_token": token, "client_id": query.get("client_id").map_or(Value::from(""), |id| json!(id)),
            "expires_in": seconds.to_string(), "expires_on": until.to_string(), "ext_expires_in": seconds.to_string(),
            "not_before": now.as_second().to_string(), "resource": resource, "token_type": "Bearer",
        }))
    }
}
