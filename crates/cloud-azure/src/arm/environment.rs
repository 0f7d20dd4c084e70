//! Which Azure: where its Resource Manager is, for whom tokens are, and who gives them.

use runtime::settings::AzureSettings;
use serde::Deserialize;

/// A cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Resource Manager's address, without a slash at the end.
    pub endpoint: String,
    /// Whom tokens are for.
    pub audience: String,
    /// Who gives tokens, without a slash at the end.
    pub authority: String,
    /// Where retail prices are; none where nobody publishes any.
    pub pricing: Option<String>,
    /// The extension that AKS bills by exists here.
    pub has_billing_extension: bool,
}

/// What keeps a cloud from being known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// No such name.
    #[error("ARM_CLOUD {0:?} is not known; it is AzurePublicCloud, AzureChinaCloud or AzureUSGovernmentCloud")]
    Name(String),
    /// A name and a file.
    #[error("ARM_CLOUD and AZURE_ENVIRONMENT_FILEPATH are both set; set only one")]
    Both,
    /// The file.
    #[error("AZURE_ENVIRONMENT_FILEPATH {path:?}: {problem}")]
    File {
        /// The path.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EnvironmentFile {
    resource_manager_endpoint: String,
    active_directory_endpoint: String,
    token_audience: String,
}

const PUBLIC_PRICES: &str = "https://prices.azure.com";

impl Environment {
    /// The cloud that the settings name.
    pub fn of(settings: &AzureSettings) -> Result<Self, EnvironmentError> {
        let mut environment = match (settings.cloud.as_str(), settings.environment_filepath.as_str()) {
            (name, "") => Self::named(name)?,
            ("", path) => Self::of_file(path)?,
            _ => return Err(EnvironmentError::Both),
        };
        let given = |text: &str| (!text.is_empty()).then(|| text.trim_end_matches('/').to_owned());
        if let Some(endpoint) = given(&settings.arm_endpoint) {
            environment.endpoint = endpoint;
        }
        if let Some(authority) = given(&settings.authority_host) {
            environment.authority = authority;
        }
        if let Some(pricing) = given(&settings.pricing_endpoint) {
            environment.pricing = Some(pricing);
        }
        Ok(environment)
    }

    fn named(name: &str) -> Result<Self, EnvironmentError> {
        let (endpoint, authority) = match name.to_ascii_lowercase().as_str() {
            "" | "azurepubliccloud" | "azurecloud" => {
                ("https://management.azure.com", "https://login.microsoftonline.com")
            }
            "azurechinacloud" => ("https://management.chinacloudapi.cn", "https://login.chinacloudapi.cn"),
            "azureusgovernmentcloud" | "azureusgovernment" => (
                "https://management.usgovcloudapi.net",
                "https://login.microsoftonline.us",
            ),
            _ => return Err(EnvironmentError::Name(name.to_owned())),
        };
        let is_public = endpoint == "https://management.azure.com";
        Ok(Self {
            endpoint: endpoint.to_owned(),
            audience: endpoint.to_owned(),
            authority: authority.to_owned(),
            pricing: is_public.then(|| PUBLIC_PRICES.to_owned()),
            has_billing_extension: true,
        })
    }

    fn of_file(path: &str) -> Result<Self, EnvironmentError> {
        let failed = |problem: String| EnvironmentError::File {
            path: path.to_owned(),
            problem,
        };
        if !std::path::Path::new(path).is_absolute() {
            return Err(failed("it must be an absolute path".to_owned()));
        }
        let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        let file: EnvironmentFile = serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            endpoint: file.resource_manager_endpoint.trim_end_matches('/').to_owned(),
            audience: file.token_audience,
            authority: file.active_directory_endpoint.trim_end_matches('/').to_owned(),
            pricing: None,
            has_billing_extension: false,
        })
    }

    /// What a token is asked for.
    pub fn scope(&self) -> String {
        format!("{}/.default", self.audience)
    }

    /// Whether its Resource Manager is on this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.endpoint.split_once("://").map_or("", |(_, rest)| rest);
        let host = host.split(['/', '?']).next().unwrap_or_default();
        let host = host.strip_prefix('[').map_or_else(
            || host.split(':').next().unwrap_or_default(),
            |rest| rest.split(']').next().unwrap_or_default(),
        );
        matches!(host, "localhost" | "127.0.0.1" | "::1")
    }

    /// Whether an address that an answer names is Resource Manager's, so that it may be given a token.
    pub fn trusts(&self, url: &str) -> bool {
        let authority = |url: &str| -> Option<(String, String)> {
            let (scheme, rest) = url.split_once("://")?;
            Some((scheme.to_owned(), rest.split(['/', '?']).next()?.to_ascii_lowercase()))
        };
        match (authority(&self.endpoint), authority(url)) {
            (Some((scheme, ours)), Some((other, host))) => {
                scheme == other && (host == ours || host.ends_with(&format!(".{ours}")))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clouds_are_known_by_upstreams_names() {
        let settings = |cloud: &str| AzureSettings {
            cloud: cloud.to_owned(),
            ..AzureSettings::default()
        };
        let endpoint = |cloud| Environment::of(&settings(cloud)).map(|it| it.endpoint);
        assert_eq!(endpoint(""), Ok("https://management.azure.com".to_owned()));
        assert_eq!(
            endpoint("AzureChinaCloud"),
            Ok("https://management.chinacloudapi.cn".to_owned())
        );
        assert_eq!(endpoint("Moon"), Err(EnvironmentError::Name("Moon".to_owned())));
    }

    #[test]
    fn only_resource_manager_is_given_tokens() {
        let environment = Environment::of(&AzureSettings::default()).unwrap();
        assert!(environment.trusts("https://management.azure.com/subscriptions/1"));
        assert!(environment.trusts("https://eastus.management.azure.com/operations/1?x=y"));
        assert!(!environment.trusts("http://management.azure.com/"));
        assert!(!environment.trusts("https://evilmanagement.azure.com.example/"));
    }

    #[test]
    fn a_double_on_this_machine_is_known_as_such() {
        let at = |endpoint: &str| Environment {
            endpoint: endpoint.to_owned(),
            ..Environment::of(&AzureSettings::default()).unwrap()
        };
        assert!(at("http://127.0.0.1:8080").is_loopback());
        assert!(at("http://[::1]:8080").is_loopback());
        assert!(!at("http://127.0.0.1.example").is_loopback());
        assert!(!at("https://management.azure.com").is_loopback());
    }
}
