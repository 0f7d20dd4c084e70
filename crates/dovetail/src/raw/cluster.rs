//! Objects from a cluster: every kind that rules and checks look at, listed page by page.

use std::sync::Arc;

use lint::document::Document;
use runtime::{
    Api, ApiError, Clock, Resource,
    api::{Options, Whereabouts, connect_to},
};
use serde_json::Value;

use super::Raw;
use crate::{
    failure::Failure,
    live::{USER_AGENT, wait_for},
};

/// Kinds that rules and checks look at, by apiVersion.
pub(crate) const KINDS: [(&str, &str); 18] = [
    ("karpenter.sh/v1", "NodePool"),
    ("karpenter.sh/v1", "NodeClaim"),
    ("karpenter.k8s.aws/v1", "EC2NodeClass"),
    ("karpenter.azure.com/v1beta1", "AKSNodeClass"),
    ("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass"),
    ("v1", "Node"),
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("policy/v1", "PodDisruptionBudget"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("keda.sh/v1alpha1", "ScaledObject"),
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    ("apps/v1", "ReplicaSet"),
];

/// What to do where no cluster is named and a dump will do.
pub(crate) const OR_A_DUMP: &str =
    "--kubeconfig FILE and --context NAME choose one; or work from a dump with --from PATH";

/// A client of the cluster that the flags name, and what the cluster is called; `next` is what else a command can do.
pub(crate) async fn connected(place: &Whereabouts, next: &str) -> Result<(Api, String), Failure> {
    connect_to(place, Options::new(USER_AGENT))
        .await
        .map_err(|error| Failure::unreachable("cannot tell which cluster is meant", error.to_string(), next))
}

/// Everything of a cluster that rules look at.
pub(crate) fn of_cluster(place: &Whereabouts) -> anyhow::Result<Raw> {
    wait_for(async {
        let (api, name) = connected(place, OR_A_DUMP).await?;
        Ok(listed(&api, name).await?)
    })
}

/// Everything of a cluster that rules and checks look at. A kind that is not installed has no objects; one that we may
/// not list is told of.
pub(crate) async fn listed(api: &Api, name: String) -> Result<Raw, Failure> {
    let source: Arc<str> = name.as_str().into();
    let mut raw = Raw {
        name,
        is_live: true,
        ..Raw::default()
    };
    for (api_version, kind) in KINDS {
        match api.pages(&Resource::new(api_version, kind)).await {
            Ok(pages) => {
                let items = pages.iter().flat_map(|page| items(page, api_version, kind));
                raw.documents
                    .extend(items.map(|item| Document::without_lines(Arc::clone(&source), item)));
            }
            Err(error) if error.is_not_found() || error.is_missing_kind() => {}
            Err(error) if error.is_forbidden() => raw.gaps.push(format!("may not list {kind}: taken for none")),
            Err(error) => return Err(unreachable(&raw.name, &error)),
        }
    }
    raw.now = api.server_time().unwrap_or_else(|| Clock::system().now());
    Ok(raw)
}

/// The objects of a page, each with its kind written on it.
pub(crate) fn items(page: &[u8], api_version: &str, kind: &str) -> Vec<Value> {
    let mut page: Value = serde_json::from_slice(page).unwrap_or_default();
    let Value::Array(mut items) = page["items"].take() else {
        return Vec::new();
    };
    for item in &mut items {
        item["apiVersion"] = api_version.into();
        item["kind"] = kind.into();
    }
    items
}

pub(crate) fn unreachable(name: &str, error: &ApiError) -> Failure {
    Failure::unreachable(
        format!("cannot read {name}"),
        error.to_string(),
        "check that kubectl get nodes answers; or work from a dump with --from PATH",
    )
}
