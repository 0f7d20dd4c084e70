//! What does a machine run when it boots, so that it joins the cluster? The text of its user data, by image family.
//!
//! What a user wrote in `spec.userData` is kept, and what nodes need to join is merged into it in the family's own format.

mod al2;
mod al2023;
mod bottlerocket;
mod flags;
mod mime;
mod windows;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use api::aws::{AmiFamily, KubeletConfiguration};
use model::object::Taint;

/// What a machine must know.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bootstrap {
    /// The cluster's name.
    pub(crate) cluster_name: String,
    /// Where its API server answers.
    pub(crate) cluster_endpoint: String,
    /// The authority of that server's certificate, in base64.
    pub(crate) ca_bundle: Option<String>,
    /// The addresses of its services; only AL2023 needs them.
    pub(crate) cluster_cidr: Option<String>,
    /// Kubelet settings, `maxPods` and `clusterDNS` filled in.
    pub(crate) kubelet: KubeletConfiguration,
    /// Taints the node registers with.
    pub(crate) taints: Vec<Taint>,
    /// Labels the node registers with.
    pub(crate) labels: BTreeMap<String, String>,
    /// What the user wrote.
    pub(crate) custom: Option<String>,
    /// Local disks become one array.
    pub(crate) raid0: bool,
    /// The Bottlerocket release knows by itself what to bind to local disks.
    pub(crate) has_default_mounts: bool,
}

/// User data that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UserDataError {
    /// AL2023 cannot do without the addresses of services.
    #[error("resolving cluster CIDR")]
    NoClusterCidr,
    /// The certificate authority is not base64.
    #[error("CLUSTER_CA_BUNDLE is not base64: {0}; give the PEM file's base64, as DescribeCluster returns it")]
    CaBundle(String),
    /// What the user wrote is no MIME archive, though it begins like one.
    #[error("spec.userData begins like a MIME archive but is none: {0}")]
    Mime(String),
    /// What the user wrote is no TOML.
    #[error("spec.userData of a Bottlerocket node class must be TOML: {0}")]
    Toml(String),
    /// A setting the user wrote has the wrong form.
    #[error("spec.userData: {0}")]
    Setting(String),
    /// It cannot be written down.
    #[error("writing user data, {0}")]
    Write(String),
}

/// The user data, not yet in base64.
pub(crate) fn render(family: &AmiFamily, bootstrap: &Bootstrap) -> Result<String, UserDataError> {
    match family {
        AmiFamily::AL2023 => al2023::render(bootstrap),
        AmiFamily::Bottlerocket => bottlerocket::render(bootstrap),
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => Ok(windows::render(bootstrap)),
        AmiFamily::Custom => Ok(bootstrap.custom.clone().unwrap_or_default()),
        // A family this release does not know boots as upstream's default does.
        AmiFamily::AL2 | AmiFamily::Other(_) => al2::render(bootstrap),
    }
}

/// Whether a Bottlerocket image of this version knows what to bind to local disks. `latest` does.
pub(crate) fn bottlerocket_has_default_mounts(version: &str) -> bool {
    if version == api::aws::Alias::LATEST {
        return true;
    }
    let version = version.trim_start_matches('v');
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= (1, 46),
        _ => false,
    }
}
