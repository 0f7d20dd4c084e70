//! Rules on how the controller is installed, IN01 to IN05.

use catalogue::Source;
use model::vocabulary::ValueId;
use serde_json::Value;

use crate::{
    finding::Found,
    supply::allows,
    world::{Install, World},
};

/// The namespace whose leases and service accounts have a priority level of their own.
const SYSTEM: &str = "kube-system";
/// So many minor releases behind is old.
const BEHIND: u64 = 3;

pub(crate) fn namespace(world: &World) -> Vec<Found> {
    let found = world.installs.iter().filter_map(|install| {
        let (namespace, path) = install.namespace.as_ref()?;
        let is_outside = namespace != SYSTEM && !has_flow_schema(world, namespace) && install.replicas != Some(0);
        is_outside.then(|| {
            let text = format!("namespace {namespace} has no system API priority; kube-system, or a FlowSchema");
            Found::new(install.document, path, text)
                .fix("kube-system, or a FlowSchema that gives the service account's leases the level leader-election")
                .replacing(namespace, SYSTEM)
        })
    });
    found.collect()
}

/// Whether a FlowSchema is about service accounts of a namespace.
fn has_flow_schema(world: &World, namespace: &str) -> bool {
    let schemas = world.documents.iter().map(|document| &document.value);
    let rules = schemas
        .filter(|value| value["kind"] == "FlowSchema")
        .flat_map(|schema| schema["spec"]["rules"].as_array().into_iter().flatten());
    let mut subjects = rules.flat_map(|rule| rule["subjects"].as_array().into_iter().flatten());
    subjects.any(|subject| subject["serviceAccount"]["namespace"] == *namespace)
}

/// Major and minor of a version.
fn minor(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.trim_start_matches('v').split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(crate) fn old_chart(world: &World) -> Vec<Found> {
    let current = minor(api::KARPENTER_VERSION);
    let found = world.installs.iter().filter_map(|install| {
        let (version, path) = install.version.as_ref()?;
        let ((major, now), (old_major, old)) = (current?, minor(version)?);
        let is_old = old_major < major || (old_major == major && old + BEHIND < now);
        // Our own releases count from 0.
        (is_old && old_major > 0).then(|| {
            let text = format!(
                "chart {version} is {} behind {}",
                behind(major, now, old_major, old),
                api::KARPENTER_VERSION
            );
            Found::new(install.document, path, text)
        })
    });
    found.collect()
}

fn behind(major: u64, now: u64, old_major: u64, old: u64) -> String {
    if old_major < major {
        return "a major release".to_owned();
    }
    format!("{} minor releases", now - old)
}

pub(crate) fn no_queue(world: &World) -> Vec<Found> {
    let is_spot = |pool: &&crate::world::Pool| {
        let supply = world.supply(pool);
        pool.source == Some(Source::Aws)
            && supply.is_some_and(|supply| allows(&pool.requirements, ValueId::SPOT, &supply.vocabulary))
    };
    let spot: Vec<_> = world
        .pools
        .iter()
        .filter(is_spot)
        .map(|pool| &*pool.pool.metadata.name)
        .collect();
    let Some(first) = spot.first() else { return Vec::new() };
    let lacks = |install: &&Install| install.queue.as_deref() == Some("") && install.replicas != Some(0);
    let found = world.installs.iter().filter(lacks).map(|install| {
        let path = if install.is_values {
            crate::document::join(&install.values_at, "settings.interruptionQueue")
        } else {
            format!("{}.containers", install.values_at)
        };
        let text = format!("no interruption queue, and nodepool/{first} buys spot: its nodes vanish without notice");
        Found::new(install.document, path, text)
    });
    found.collect()
}

/// Labels that machines of a node group have.
const OF_GROUPS: [&str; 3] = [
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "kops.k8s.io/instancegroup",
];

pub(crate) fn two_scalers(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    let acting = world
        .installs
        .iter()
        .filter(|install| !install.is_values && install.replicas != Some(0));
    let mut first: Option<&Install> = None;
    for install in acting {
        let namespace = |install: &Install| {
            install
                .namespace
                .as_ref()
                .map(|(name, _)| name.clone())
                .unwrap_or_default()
        };
        match first {
            Some(other) if namespace(other) != namespace(install) => {
                let text = format!(
                    "a second controller, beside the one in namespace {}: each has a Lease of its own, so both act",
                    namespace(other)
                );
                found.push(Found::new(install.document, "metadata.namespace", text).fix("scale one of them to 0"));
            }
            Some(_) => {}
            None => first = Some(install),
        }
    }
    let shared = world
        .nodes
        .iter()
        .find(|node| node.node_pool().is_some() && OF_GROUPS.iter().any(|key| node.metadata.labels.get(key).is_some()));
    let Some(node) = shared else { return found };
    let documents = world.documents.iter().enumerate();
    for (at, _) in documents.filter(|(_, document)| is_cluster_autoscaler(&document.value)) {
        let text = format!(
            "cluster-autoscaler runs, and node {} is of a NodePool and of a node group: both scale it",
            node.metadata.name
        );
        found.push(Found::new(at, "spec.replicas", text));
    }
    found
}

fn is_cluster_autoscaler(value: &Value) -> bool {
    let containers = value["spec"]["template"]["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten();
    let mut images = containers.filter_map(|container| container["image"].as_str());
    value["kind"] == "Deployment"
        && value["spec"]["replicas"].as_i64() != Some(0)
        && images.any(|image| image.contains("/cluster-autoscaler:") || image.contains("/cluster-autoscaler@"))
}

pub(crate) fn own_nodes(world: &World) -> Vec<Found> {
    let may = |install: &&Install| !install.keeps_off_own_nodes && install.replicas != Some(0);
    let found = world.installs.iter().filter(may).map(|install| {
        let path = if install.is_values {
            crate::document::join(&install.values_at, "affinity")
        } else {
            install.values_at.clone()
        };
        let text = "nothing keeps the controller off nodes it manages itself: it may remove its own";
        Found::new(install.document, path, text)
    });
    found.collect()
}
