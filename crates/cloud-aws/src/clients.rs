//! One client stack for every AWS service: region, endpoint, time-outs, retries, user agent, request metrics.

mod observed;

use std::{sync::Arc, time::Duration};

use aws_config::{AppName, BehaviorVersion, Region, SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_ec2::config::SharedCredentialsProvider;
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};
use runtime::Metrics;

use self::observed::Observed;

/// The whole of a call with its retries. The longest that upstream's HTTP client waits.
const CALL: Duration = Duration::from_mins(4);
/// One attempt. SQS answers a long poll after 20 s.
const ATTEMPT: Duration = Duration::from_mins(1);
/// Until there is a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Attempts of a call, the first among them. On top of this the SDK keeps a budget for the retries of all calls of a
/// client together, so that an outage is not answered with three times the load.
const ATTEMPTS: u32 = 3;

/// How AWS is asked; what is left out comes from the environment: variables, profile, Pod Identity, IRSA, the instance.
#[derive(Default)]
pub struct ClientOptions {
    /// Such as `us-west-2`.
    pub region: Option<String>,
    /// Instead of each service's own, as `AWS_ENDPOINT_URL` does.
    pub endpoint_url: Option<String>,
    /// Instead of the chain of sources of credentials. For tests.
    pub credentials: Option<SharedCredentialsProvider>,
    /// Where requests are counted.
    pub metrics: Option<Arc<Metrics>>,
}

impl std::fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientOptions")
            .field("region", &self.region)
            .field("endpoint_url", &self.endpoint_url)
            .finish_non_exhaustive()
    }
}

/// No region is configured anywhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// Nobody says which region this is.
    #[error("no AWS region: set AWS_REGION, or let the pod reach the instance metadata service (hop limit 2)")]
    NoRegion,
    /// Not a name that a user agent may hold.
    #[error("version {0:?} is no part of a user agent")]
    Version(String),
}

/// A client for each service that is asked.
#[derive(Debug, Clone)]
pub struct Clients {
    /// The region all but prices are asked in.
    pub region: String,
    /// Machines, images, networks.
    pub ec2: aws_sdk_ec2::Client,
    /// The cluster.
    pub eks: aws_sdk_eks::Client,
    /// Instance profiles.
    pub iam: aws_sdk_iam::Client,
    /// On-demand prices, asked in the region that serves this one's.
    pub pricing: aws_sdk_pricing::Client,
    /// Interruption messages.
    pub sqs: aws_sdk_sqs::Client,
    /// Image parameters.
    pub ssm: aws_sdk_ssm::Client,
    /// Zones to stay away from.
    pub zonal_shift: aws_sdk_arczonalshift::Client,
}

impl Clients {
    /// Clients as the environment and the options say.
    pub async fn connect(options: ClientOptions) -> Result<Self, ClientError> {
        let config = load(&options).await?;
        let region = config.region().ok_or(ClientError::NoRegion)?.to_string();
        let observed = Observed::new(options.metrics);
        let prices = Region::new(pricing_region(&region));
        Ok(Self {
            ec2: aws_sdk_ec2::Client::from_conf(
                aws_sdk_ec2::config::Builder::from(&config)
                    .interceptor(observed.clone())
                    .build(),
            ),
            eks: aws_sdk_eks::Client::from_conf(
                aws_sdk_eks::config::Builder::from(&config)
                    .interceptor(observed.clone())
                    .build(),
            ),
            iam: aws_sdk_iam::Client::from_conf(
                aws_sdk_iam::config::Builder::from(&config)
                    .interceptor(observed.clone())
                    .build(),
            ),
            pricing: aws_sdk_pricing::Client::from_conf(
                aws_sdk_pricing::config::Builder::from(&config)
                    .region(prices)
                    .interceptor(observed.clone())
                    .build(),
            ),
            sqs: aws_sdk_sqs::Client::from_conf(
                aws_sdk_sqs::config::Builder::from(&config)
                    .interceptor(observed.clone())
                    .build(),
            ),
            ssm: aws_sdk_ssm::Client::from_conf(
                aws_sdk_ssm::config::Builder::from(&config)
                    .interceptor(observed.clone())
                    .build(),
            ),
            zonal_shift: aws_sdk_arczonalshift::Client::from_conf(
                aws_sdk_arczonalshift::config::Builder::from(&config)
                    .interceptor(observed)
                    .build(),
            ),
            region,
        })
    }
}

async fn load(options: &ClientOptions) -> Result<SdkConfig, ClientError> {
    let name = format!("karpenter.sh-{}", env!("CARGO_PKG_VERSION"));
    let name = AppName::new(name.clone()).map_err(|_| ClientError::Version(name))?;
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
        .build_https();
    let timeouts = TimeoutConfig::builder()
        .operation_timeout(CALL)
        .operation_attempt_timeout(ATTEMPT)
        .connect_timeout(CONNECT)
        .build();
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(http)
        .app_name(name)
        .timeout_config(timeouts)
        .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS));
    // Left alone, the loader looks for a region with our HTTP client: variables, profile, the instance.
    if let Some(region) = &options.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(url) = &options.endpoint_url {
        loader = loader.endpoint_url(url);
    }
    if let Some(credentials) = &options.credentials {
        loader = loader.credentials_provider(credentials.clone());
    }
    Ok(loader.load().await)
}

/// Prices are served in few regions only.
fn pricing_region(region: &str) -> &'static str {
    match region.split('-').next() {
        Some("ap") => "ap-south-1",
        Some("cn") => "cn-northwest-1",
        Some("eu") => "eu-central-1",
        _ => "us-east-1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_asked_where_they_are_served() {
        let cases = [
            ("ap-northeast-2", "ap-south-1"),
            ("cn-north-1", "cn-northwest-1"),
            ("eu-west-1", "eu-central-1"),
            ("us-west-2", "us-east-1"),
            ("sa-east-1", "us-east-1"),
        ];
        for (region, expected) in cases {
            assert_eq!(pricing_region(region), expected);
        }
    }
}
