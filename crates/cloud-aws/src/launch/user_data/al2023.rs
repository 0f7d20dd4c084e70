//! Amazon Linux 2023: a MIME archive whose last part is a NodeConfig for nodeadm, which lays it over the user's.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::{
    Bootstrap, UserDataError,
    flags::node_labels,
    mime::{self, Part},
};

pub(super) fn render(bootstrap: &Bootstrap) -> Result<String, UserDataError> {
    let own = node_config(bootstrap)?;
    let mut parts = custom_parts(bootstrap.custom.as_deref())?;
    parts.push(Part::new(mime::NODE_CONFIG, own));
    Ok(mime::write(&parts))
}

/// What the user wrote: the parts of an archive, a NodeConfig, or a shell script.
fn custom_parts(custom: Option<&str>) -> Result<Vec<Part>, UserDataError> {
    match custom {
        None | Some("") => Ok(Vec::new()),
        Some(text) if mime::is_archive(text) => mime::read(text).map_err(UserDataError::Mime),
        Some(text) => {
            let is_mapping = serde_saphyr::from_str::<Map<String, Value>>(text).is_ok();
            let kind = if is_mapping {
                mime::NODE_CONFIG
            } else {
                mime::SHELL_SCRIPT
            };
            Ok(vec![Part::new(kind, text.to_owned())])
        }
    }
}

fn node_config(bootstrap: &Bootstrap) -> Result<String, UserDataError> {
    let cidr = bootstrap.cluster_cidr.as_deref().filter(|cidr| !cidr.is_empty());
    let mut cluster = json!({
        "name": bootstrap.cluster_name,
        "apiServerEndpoint": bootstrap.cluster_endpoint,
        "cidr": cidr.ok_or(UserDataError::NoClusterCidr)?,
    });
    if let Some(ca) = bootstrap.ca_bundle.as_ref().filter(|ca| !ca.is_empty()) {
        STANDARD
            .decode(ca)
            .map_err(|error| UserDataError::CaBundle(error.to_string()))?;
        cluster["certificateAuthority"] = json!(ca);
    }
    let mut kubelet = json!({ "config": kubelet_config(bootstrap)? });
    if let Some(labels) = node_labels(bootstrap) {
        kubelet["flags"] = json!([labels]);
    }
    let mut spec = json!({ "cluster": cluster, "kubelet": kubelet });
    if bootstrap.raid0 {
        spec["instance"] = json!({ "localStorage": { "strategy": "RAID0" } });
    }
    let config = json!({ "apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec });
    let yaml = serde_saphyr::to_string(&config).map_err(|error| UserDataError::Write(error.to_string()))?;
    Ok(format!("# Karpenter Generated NodeConfig\n{yaml}"))
}

/// The kubelet's own configuration: all the user set, and the taints, so that nothing runs before they are there.
fn kubelet_config(bootstrap: &Bootstrap) -> Result<Value, UserDataError> {
    let write = |error: serde_json::Error| UserDataError::Write(error.to_string());
    let mut config = serde_json::to_value(&bootstrap.kubelet).map_err(write)?;
    config["registerWithTaints"] = serde_json::to_value(&bootstrap.taints).map_err(write)?;
    Ok(config)
}
