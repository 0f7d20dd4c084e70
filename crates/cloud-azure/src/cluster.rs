//! The cluster that machines join: its certificate, its DNS, its network, its version.

use std::{sync::Arc, time::Duration};

use cloud::CloudError;
use http::Method;
use runtime::{Api, Clock, remembered::Remembered, settings::AzureSettings};
use serde::Deserialize;
use tokio::sync::OnceCell;

use crate::{
    arm::{Arm, Failure},
    ids::SubnetId,
    version,
};

/// Where cluster DNS is if nobody says.
const USUAL_DNS: &str = "10.0.0.10";
/// How long the version is believed.
pub(crate) const VERSION_BELIEVED: Duration = Duration::from_mins(15);
/// How long load balancers are believed.
const POOLS_BELIEVED: Duration = Duration::from_hours(2);
/// AKS's own load balancers.
const BALANCERS: [&str; 2] = ["kubernetes", "kubernetes-internal"];
/// Their pools for addresses that nodes do not have.
const IPV6_POOLS: [&str; 2] = ["aksOutboundBackendPool-ipv6", "kubernetes-ipv6"];

/// Knows the cluster.
pub(crate) struct Cluster {
    api: Api,
    arm: Arm,
    settings: Arc<AzureSettings>,
    pub(crate) ca_bundle: String,
    pub(crate) dns_ip: String,
    pub(crate) vnet_guid: String,
    security_group: OnceCell<SecurityGroup>,
    versions: Remembered<String>,
    pools: Remembered<Vec<String>>,
}

/// The network security group that AKS made for the nodes, and the number in its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecurityGroup {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) cluster_id: String,
}

impl SecurityGroup {
    pub(crate) fn route_table(&self) -> String {
        format!("aks-agentpool-{}-routetable", self.cluster_id)
    }
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerVersion {
    git_version: String,
}

impl Cluster {
    /// Asks everything that machines cannot be launched without.
    pub(crate) async fn connect(
        api: &Api,
        arm: &Arm,
        settings: &Arc<AzureSettings>,
        clock: &Clock,
    ) -> Result<Self, CloudError> {
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        let ca_bundle = given(&settings.cluster_ca_bundle).or_else(runtime::api::certificate_authority);
        let ca_bundle = ca_bundle.ok_or_else(|| {
            CloudError::Other("who signs the API server's certificate is not known: set CLUSTER_CA_BUNDLE".to_owned())
        })?;
        let cluster = Self {
            dns_ip: match given(&settings.dns_service_ip) {
                Some(address) => address,
                None => find_dns(api).await,
            },
            vnet_guid: match given(&settings.vnet_guid) {
                Some(guid) => guid,
                None if settings.network_plugin_mode == "overlay" => find_vnet_guid(arm, settings).await?,
                None => String::new(),
            },
            api: api.clone(),
            arm: arm.clone(),
            settings: Arc::clone(settings),
            ca_bundle,
            security_group: OnceCell::new(),
            versions: Remembered::new(clock.clone()),
            pools: Remembered::new(clock.clone()),
        };
        Ok(cluster)
    }

    /// Kubernetes' version, without a `v`.
    pub(crate) async fn version(&self) -> Result<String, String> {
        if let Some(known) = self.versions.get("") {
            return Ok(known);
        }
        let answer = self.api.call(Method::GET, "/version", None, "application/json").await;
        let answer = answer.map_err(|error| error.to_string())?;
        let read: ServerVersion = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
        let found = read
            .git_version
            .strip_prefix('v')
            .unwrap_or(&read.git_version)
            .to_owned();
        if version::parse(&found).is_none() {
            return Err(format!(
                "the API server's version {:?} cannot be read",
                read.git_version
            ));
        }
        self.versions.put("", found.clone(), VERSION_BELIEVED);
        Ok(found)
    }

    /// The one security group of the nodes. It never changes.
    pub(crate) async fn security_group(&self) -> Result<&SecurityGroup, Failure> {
        let group = &self.settings.node_resource_group;
        let found = self.security_group.get_or_try_init(|| async {
            let all = self.arm.security_groups(group).await?;
            let mut managed = all.iter().filter_map(|it| {
                let digits = it.name.strip_prefix("aks-agentpool-")?.strip_suffix("-nsg")?;
                let is_id = digits.len() == 8 && digits.chars().all(|c| c.is_ascii_digit());
                is_id.then(|| SecurityGroup {
                    id: it.id.clone(),
                    name: it.name.clone(),
                    cluster_id: digits.to_owned(),
                })
            });
            match (managed.next(), managed.next()) {
                (Some(found), None) => Ok(found),
                (None, _) => Err(Failure::with_code(
                    "SecurityGroupNotFound",
                    format!("resource group {group} has no network security group named aks-agentpool-NNNNNNNN-nsg"),
                )),
                _ => Err(Failure::with_code(
                    "SecurityGroupAmbiguous",
                    format!(
                        "resource group {group} has several network security groups named aks-agentpool-NNNNNNNN-nsg"
                    ),
                )),
            }
        });
        found.await
    }

    /// The back-end pools that nodes are members of.
    pub(crate) async fn backend_pools(&self) -> Result<Vec<String>, Failure> {
        if let Some(known) = self.pools.get("") {
            return Ok(known);
        }
        let all = self.arm.load_balancers(&self.settings.node_resource_group).await?;
        let ours = all.iter().filter(|it| BALANCERS.contains(&it.name.as_str()));
        let pools = ours.flat_map(|it| &it.properties.backend_address_pools);
        let is_for_nodes = |pool: &&crate::arm::wire::BackendPool| {
            let addresses = &pool.properties.load_balancer_backend_addresses;
            !IPV6_POOLS.contains(&pool.name.as_str()) && addresses.iter().all(|it| it.properties.ip_address.is_empty())
        };
        let ids: Vec<String> = pools.filter(is_for_nodes).map(|pool| pool.id.clone()).collect();
        self.pools.put("", ids.clone(), POOLS_BELIEVED);
        Ok(ids)
    }

    /// A pool that was submitted is gone: they are asked for anew.
    pub(crate) fn forget_pools(&self) {
        self.pools.forget(|_| true);
    }
}

async fn find_vnet_guid(arm: &Arm, settings: &AzureSettings) -> Result<String, CloudError> {
    let failed = |why: String| CloudError::Other(format!("getting VNET GUID, {why}; set VNET_GUID"));
    let subnet = SubnetId::parse(&settings.vnet_subnet_id).ok_or_else(|| {
        failed(format!(
            "VNET_SUBNET_ID {:?} is not a subnet's ARM id",
            settings.vnet_subnet_id
        ))
    })?;
    let vnet = arm.vnet(&subnet.group, &subnet.vnet).await;
    let guid = vnet
        .map_err(|failure| failed(failure.to_string()))?
        .properties
        .resource_guid;
    if guid.is_empty() {
        return Err(failed(format!("virtual network {} has no resourceGuid", subnet.vnet)));
    }
    Ok(guid)
}

async fn find_dns(api: &Api) -> String {
    let path = "/api/v1/namespaces/kube-system/services/kube-dns";
    let address = match api.call(Method::GET, path, None, "application/json").await {
        Ok(bytes) => serde_json::from_slice::<Service>(&bytes)
            .map(|it| it.spec.cluster_ip)
            .ok(),
        Err(error) => {
            tracing::debug!(%error, "unable to detect the IP of the kube-dns service");
            None
        }
    };
    let address = address.filter(|it| !it.is_empty() && it != "None");
    address.unwrap_or_else(|| USUAL_DNS.to_owned())
}
