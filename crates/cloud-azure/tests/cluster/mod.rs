//! What a cluster is, whichever Azure it runs on: its API server, its settings, a class that is judged, claims and a pool.

use api::{azure::AKSNodeClass, provider::Provider};
use cloud::LaunchToken;
use cloud_azure::Controller;
use model::object::{NodeClaim, NodePool};
use runtime::{Clock, Settings, settings::AzureSettings};
use serde_json::{Value, json};
use simulator::ApiServer;

pub(crate) const POOL: &str = "general";

/// An API server that knows our kinds.
pub(crate) fn server(clock: &Clock) -> ApiServer {
    let told = clock.clone();
    let server = ApiServer::new(move || told.now());
    for definition in api::crds::installation(&[Provider::Azure]) {
        server.create(serde_json::to_value(definition).unwrap()).unwrap();
    }
    server
}

/// The settings of an installation, but for where in Azure it is.
pub(crate) fn settings(place: impl FnOnce(&mut AzureSettings)) -> Settings {
    let mut settings = Settings::default();
    let azure = &mut settings.azure;
    "https://c.hcp.example:443".clone_into(&mut azure.cluster_endpoint);
    "Y2E=".clone_into(&mut azure.cluster_ca_bundle);
    "abcdef.0123456789abcdef".clone_into(&mut azure.kubelet_bootstrap_token);
    "ssh-rsa key".clone_into(&mut azure.ssh_public_key);
    place(azure);
    settings
}

/// A class with the schema's defaults, but for what is said otherwise.
pub(crate) fn create_class(server: &ApiServer, name: &str, spec: &Value) {
    let mut whole = json!({"osDiskSizeGB": 128, "imageFamily": "Ubuntu"});
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    let class = json!({"apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass",
        "metadata": {"name": name}, "spec": whole});
    server.create(class).unwrap();
}

pub(crate) fn class(server: &ApiServer, name: &str) -> Value {
    server.get("AKSNodeClass", name).unwrap_or_default()
}

/// Looks until the class is settled: the hash is written beside the status, so the first look may have to give way.
pub(crate) async fn settle(server: &ApiServer, controller: &Controller, name: &str) -> Value {
    for _ in 0..5 {
        let before = class(server, name);
        let seen: AKSNodeClass = serde_json::from_value(before.clone()).unwrap();
        let _ = controller.reconcile(&seen).await;
        if class(server, name) == before {
            break;
        }
    }
    class(server, name)
}

pub(crate) fn token(claim: &NodeClaim, attempt: u32) -> LaunchToken {
    LaunchToken {
        claim: claim.metadata.uid.clone(),
        attempt,
    }
}

/// A claim of the pool with these requirements.
pub(crate) fn claim_for(name: &str, requirements: &Value) -> NodeClaim {
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": {"karpenter.sh/nodepool": POOL}},
        "spec": {
            "nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"},
            "requirements": requirements,
            "resources": {"requests": {"cpu": "1"}},
            // As the API server fills it in.
            "expireAfter": "720h",
        },
    }))
    .unwrap()
}

/// A claim for one size as one kind of capacity.
pub(crate) fn sized(name: &str, size: &str, kind: &str) -> NodeClaim {
    let one = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    let kind = one("karpenter.sh/capacity-type", kind);
    claim_for(name, &json!([one("node.kubernetes.io/instance-type", size), kind]))
}

/// A claim for whatever there is.
pub(crate) fn any(name: &str) -> NodeClaim {
    let kinds = json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}]);
    claim_for(name, &kinds)
}

pub(crate) fn pool() -> NodePool {
    let reference = json!({"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"});
    let spec = json!({"template": {"spec": {"nodeClassRef": reference, "requirements": []}}});
    serde_json::from_value(json!({"metadata": {"name": POOL}, "spec": spec})).unwrap()
}
