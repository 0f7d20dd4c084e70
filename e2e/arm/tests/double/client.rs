//! What speaks to the double in these tests: a plain HTTP client, and bodies as the provider sends them.

use std::collections::BTreeMap;

use arm::{Double, Setup, knob::Knob};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

pub(crate) const COMPUTE: &str = "2025-04-01";
pub(crate) const NETWORK: &str = "2022-01-01";
pub(crate) const AKS: &str = "2026-01-02-preview";

/// An answer.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

impl Got {
    pub(crate) fn code(&self) -> &str {
        let nested = self.body["error"]["code"].as_str();
        nested.or_else(|| self.body["code"].as_str()).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// A double and someone who asks it.
pub(crate) struct Azure {
    pub(crate) double: Double,
    pub(crate) token: String,
}

impl Azure {
    /// One whose clock stands.
    pub(crate) async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        let setup = setup.still_at("2026-11-17T12:00:00Z".parse().unwrap());
        let double = Double::start(setup).await.unwrap();
        Self {
            double,
            token: "any".to_owned(),
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "so that json! is written where it is used")]
    pub(crate) fn turn(&self, knob: &str, body: Value) {
        let knob: Knob = serde_json::from_value(json!({ knob: body })).unwrap();
        self.double.turn(knob).unwrap();
    }

    /// Sends a request as it is; none when the connection was dropped.
    pub(crate) async fn raw(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Option<Got> {
        let address = self.double.url().trim_start_matches("http://").to_owned();
        let target = target.trim_start_matches(&self.double.url()).replace(' ', "%20");
        let stream = TcpStream::connect(&address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(target).header("host", address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body: Full<Bytes> = Full::new(Bytes::from(body.to_owned()));
        let response = sender.send_request(request.body(body).unwrap()).await.ok()?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let headers = head.headers.iter();
        Some(Got {
            status: head.status.as_u16(),
            headers: headers
                .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
                .collect(),
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        })
    }

    pub(crate) async fn try_call(&self, method: &str, target: &str, body: Option<&Value>) -> Option<Got> {
        let bearer = format!("Bearer {}", self.token);
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("user-agent", "test"),
        ];
        let body = body.map(Value::to_string).unwrap_or_default();
        self.raw(method, target, &headers, &body).await
    }

    pub(crate) async fn call(&self, method: &str, target: &str, body: Option<&Value>) -> Got {
        self.try_call(method, target, body).await.expect("an answer")
    }

    pub(crate) async fn get(&self, target: &str) -> Got {
        self.call("GET", target, None).await
    }

    pub(crate) async fn put(&self, target: &str, body: &Value) -> Got {
        self.call("PUT", target, Some(body)).await
    }

    pub(crate) fn node_group(&self) -> String {
        self.double.setup().group_id(&self.double.setup().node_group)
    }

    pub(crate) fn vm(&self, name: &str) -> String {
        let group = self.node_group();
        format!("{group}/providers/Microsoft.Compute/virtualMachines/{name}?api-version={COMPUTE}")
    }

    pub(crate) fn nic(&self, name: &str) -> String {
        let group = self.node_group();
        format!("{group}/providers/Microsoft.Network/networkInterfaces/{name}?api-version={NETWORK}")
    }

    pub(crate) fn extension(&self, vm: &str, name: &str) -> String {
        self.vm(vm).replace('?', &format!("/extensions/{name}?"))
    }

    pub(crate) fn in_group(&self, rest: &str, version: &str) -> String {
        format!("{}/providers/{rest}?api-version={version}", self.node_group())
    }

    pub(crate) fn in_subscription(&self, rest: &str, version: &str) -> String {
        let subscription = &self.double.setup().subscription;
        format!("/subscriptions/{subscription}/{rest}?api-version={version}")
    }

    pub(crate) fn in_pool(&self, rest: &str) -> String {
        let setup = self.double.setup();
        format!(
            "{}/providers/Microsoft.ContainerService/managedClusters/{}/agentPools/{}{rest}?api-version={AKS}",
            setup.group_id(&setup.cluster_group),
            setup.cluster,
            setup.pool
        )
    }

    pub(crate) fn pool_id(&self, balancer: &str, pool: &str) -> String {
        let group = self.node_group();
        format!("{group}/providers/Microsoft.Network/loadBalancers/{balancer}/backendAddressPools/{pool}")
    }

    pub(crate) fn identity(&self, name: &str) -> String {
        let group = self.double.setup().group_id(&self.double.setup().cluster_group);
        format!("{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}")
    }

    pub(crate) fn nic_body(&self, name: &str) -> Value {
        let pools =
            ["kubernetes", "aksOutboundBackendPool"].map(|pool| json!({"id": self.pool_id("kubernetes", pool)}));
        json!({
            "location": "eastus",
            "tags": tags(),
            "properties": {
                "enableAcceleratedNetworking": true, "enableIPForwarding": false,
                "ipConfigurations": [{"name": name, "properties": {
                    "primary": true, "privateIPAllocationMethod": "Dynamic",
                    "subnet": {"id": self.double.setup().subnet_id()}, "loadBalancerBackendAddressPools": pools,
                }}],
            },
        })
    }

    pub(crate) fn vm_body(&self, name: &str) -> Value {
        let nic = format!(
            "{}/providers/Microsoft.Network/networkInterfaces/{name}",
            self.node_group()
        );
        let image = "/CommunityGalleries/AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2/images/2204gen2containerd/versions/\
                     202512.18.0";
        let identity = self.identity("kubelet");
        let key = json!({"path": "/home/azureuser/.ssh/authorized_keys", "keyData": "ssh-rsa AAAA"});
        json!({
            "location": "eastus",
            "tags": tags(),
            "zones": ["1"],
            "identity": {"type": "UserAssigned", "userAssignedIdentities": {identity: {}}},
            "properties": {
                "hardwareProfile": {"vmSize": "Standard_D4s_v5"},
                "storageProfile": {
                    "osDisk": {"name": name, "diskSizeGB": 128, "createOption": "FromImage", "deleteOption": "Delete"},
                    "imageReference": {"communityGalleryImageId": image},
                },
                "networkProfile": {"networkInterfaces": [
                    {"id": nic, "properties": {"primary": true, "deleteOption": "Delete"}},
                ]},
                "osProfile": {
                    "adminUsername": "azureuser", "computerName": name, "customData": "IyEvYmluL2Jhc2g=",
                    "linuxConfiguration": {"disablePasswordAuthentication": true, "ssh": {"publicKeys": [key]}},
                },
                "priority": "Regular",
            },
        })
    }

    pub(crate) fn spot_body(&self, name: &str) -> Value {
        let mut body = self.vm_body(name);
        body["properties"]["priority"] = json!("Spot");
        body["properties"]["evictionPolicy"] = json!("Delete");
        body["properties"]["billingProfile"] = json!({"maxPrice": -1});
        body
    }

    /// Makes a network interface.
    pub(crate) async fn make_nic(&self, name: &str) {
        let got = self.put(&self.nic(name), &self.nic_body(name)).await;
        assert_eq!(got.status, 201, "{got:?}");
    }

    /// Makes a network interface and asks for its virtual machine.
    pub(crate) async fn ask_vm(&self, name: &str, body: &Value) -> Got {
        self.make_nic(name).await;
        self.put(&self.vm(name), body).await
    }

    /// Makes both.
    pub(crate) async fn make_vm(&self, name: &str) {
        let got = self.ask_vm(name, &self.vm_body(name)).await;
        assert_eq!(got.status, 201, "{got:?}");
    }

    /// Nothing broke the contract.
    pub(crate) fn assert_clean(&self) {
        assert_eq!(self.double.violations(), []);
    }
}

pub(crate) fn tags() -> Value {
    json!({
        "karpenter.azure.com_cluster": "dovetail", "compute.aks.billing": "linux", "karpenter.sh_nodepool": "default",
    })
}

pub(crate) fn machine_body(size: &str) -> Value {
    json!({
        "zones": ["1"],
        "properties": {
            "nodeImageVersion": "AKSUbuntu-2204gen2containerd-202512.18.0",
            "hardware": {"vmSize": size},
            "operatingSystem": {"osType": "Linux", "osSKU": "Ubuntu2204", "osDiskSizeGB": 128, "osDiskType": "Managed"},
            "kubernetes": {"orchestratorVersion": "1.33.0", "nodeLabels": {"a": "b"}, "nodeTaints": [], "maxPods": 250},
            "mode": "User", "priority": "Regular", "security": {"sshAccess": "LocalUser"},
            "tags": {"karpenter.sh_nodepool": "default", "karpenter.azure.com_aksmachine_nodeclaim": "default-abc"},
        },
    })
}

/// What the node bootstrapping service is told.
pub(crate) fn provision_values() -> Value {
    json!({
        "provisionProfile": {
            "name": "", "vmSize": "Standard_D4s_v5", "osType": 2, "osSku": 1, "storageProfile": "ManagedDisks",
            "distro": "aks-ubuntu-containerd-22.04-gen2", "orchestratorVersion": "1.33.0", "vnetCidrs": [],
            "vnetSubnetID": "/subnet", "mode": 2, "architecture": "x64", "maxPods": 250, "customNodeLabels": {"a": "b"},
        },
        "provisionHelperValues": {"skuCPU": 4, "skuMemory": 16},
    })
}
