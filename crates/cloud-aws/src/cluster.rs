//! The cluster that machines join: its address, its certificate, its DNS, its version.

use std::sync::{Arc, Mutex, PoisonError};

use cloud::CloudError;
use http::Method;
use runtime::{Api, settings::AwsSettings};
use serde::Deserialize;

use crate::{Clients, Failure, border::ClusterFacts};

/// Kubernetes' minor versions that upstream supports.
const SUPPORTED: std::ops::RangeInclusive<u32> = 26..=36;

/// Knows the cluster.
pub(crate) struct Cluster {
    api: Api,
    eks: aws_sdk_eks::Client,
    asks_eks_for_version: bool,
    facts: Mutex<Arc<ClusterFacts>>,
}

#[derive(Deserialize)]
struct Version {
    major: String,
    minor: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Service {
    spec: ServiceSpec,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ServiceSpec {
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
}

impl Cluster {
    /// Asks everything that machines cannot be launched without.
    pub(crate) async fn connect(api: &Api, clients: &Clients, settings: &AwsSettings) -> Result<Self, CloudError> {
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        let facts = ClusterFacts {
            name: settings.cluster_name.clone(),
            endpoint: settings.cluster_endpoint.clone(),
            ca_bundle: given(&settings.cluster_ca_bundle).or_else(runtime::api::certificate_authority),
            region: clients.region.clone(),
            ..ClusterFacts::default()
        };
        let cluster = Self {
            api: api.clone(),
            eks: clients.eks.clone(),
            asks_eks_for_version: settings.eks_control_plane,
            facts: Mutex::new(Arc::new(facts)),
        };
        if settings.cluster_endpoint.is_empty() {
            let described = cluster.describe().await.map_err(|failure| {
                CloudError::Other(format!(
                    "failed to resolve cluster endpoint, {failure}; set --cluster-endpoint"
                ))
            })?;
            let endpoint = described.and_then(|it| it.endpoint).unwrap_or_default();
            cluster.change(|facts| facts.endpoint = endpoint);
        }
        cluster.refresh_version().await?;
        cluster.find_dns().await;
        Ok(cluster)
    }

    /// What is known.
    pub(crate) fn facts(&self) -> Arc<ClusterFacts> {
        Arc::clone(&self.facts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads Kubernetes' version anew.
    pub(crate) async fn refresh_version(&self) -> Result<(), CloudError> {
        let version = if self.asks_eks_for_version {
            let described = self.describe().await;
            let described =
                described.map_err(|failure| CloudError::Other(format!("validating kubernetes version, {failure}")))?;
            described.and_then(|it| it.version).unwrap_or_default()
        } else {
            self.server_version().await?
        };
        if self.facts().version != version {
            tracing::debug!(version, "discovered kubernetes version");
            let minor: Option<u32> = version.split('.').nth(1).and_then(|minor| minor.parse().ok());
            if minor.is_none_or(|minor| !SUPPORTED.contains(&minor)) {
                tracing::error!(version, "karpenter is not compatible with kubernetes version");
            }
            self.change(|facts| facts.version = version);
        }
        Ok(())
    }

    async fn server_version(&self) -> Result<String, CloudError> {
        let failed = |reason: String| {
            CloudError::Other(format!(
                "validating kubernetes version, getting kubernetes version from the kubernetes API, {reason}"
            ))
        };
        let bytes = self.api.call(Method::GET, "/version", None, "application/json").await;
        let bytes = bytes.map_err(|error| failed(error.to_string()))?;
        let version: Version = serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string()))?;
        Ok(format!("{}.{}", version.major, version.minor.trim_end_matches('+')))
    }

    /// Clusters with DNS of their own have no such Service; their node classes say what to ask.
    async fn find_dns(&self) {
        let path = "/api/v1/namespaces/kube-system/services/kube-dns";
        let address = match self.api.call(Method::GET, path, None, "application/json").await {
            Ok(bytes) => serde_json::from_slice::<Service>(&bytes)
                .map(|it| it.spec.cluster_ip)
                .ok(),
            Err(error) => {
                tracing::debug!(%error, "unable to detect the IP of the kube-dns service");
                None
            }
        };
        if let Some(address) = address.filter(|it| !it.is_empty() && it != "None") {
            tracing::debug!("kube-dns-ip" = address, "discovered kube dns");
            self.change(|facts| {
                facts.is_ipv6 = address.contains(':');
                facts.dns_ip = Some(address);
            });
        }
    }

    /// The addresses of Services, which AL2023 must be told. They never change, so they are asked for once.
    pub(crate) async fn resolve_cidr(&self) -> Result<(), Failure> {
        if self.facts().service_cidr.is_some() {
            return Ok(());
        }
        let described = self.describe().await?;
        let network = described.and_then(|it| it.kubernetes_network_config);
        let cidr = network.and_then(|it| it.service_ipv4_cidr.or(it.service_ipv6_cidr));
        let Some(cidr) = cidr.filter(|it| !it.is_empty()) else {
            return Err(Failure {
                code: String::new(),
                message: "no CIDR found for cluster".to_owned(),
                status: Some(200),
            });
        };
        self.change(|facts| facts.service_cidr = Some(cidr));
        Ok(())
    }

    /// How AWS names the cluster.
    pub(crate) async fn arn(&self) -> Result<String, Failure> {
        let described = self.describe().await?;
        Ok(described.and_then(|it| it.arn).unwrap_or_default())
    }

    async fn describe(&self) -> Result<Option<aws_sdk_eks::types::Cluster>, Failure> {
        let answer = self.eks.describe_cluster().name(&self.facts().name).send().await;
        Ok(answer.map_err(|error| Failure::of(&error))?.cluster)
    }

    fn change(&self, change: impl FnOnce(&mut ClusterFacts)) {
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = ClusterFacts::clone(&facts);
        change(&mut changed);
        *facts = Arc::new(changed);
    }
}
