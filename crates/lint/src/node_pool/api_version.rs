//! Versions of the API that are no longer served: NP25 old-api.

use serde_json::{Value, json};

use crate::{
    finding::{Found, Severity},
    world::World,
};

/// Groups of Karpenter, and the version each is at.
const GROUPS: [(&str, &str); 3] = [
    ("karpenter.sh", "v1"),
    ("karpenter.k8s.aws", "v1"),
    ("karpenter.azure.com", "v1beta1"),
];
/// Kinds that have another name now.
const RENAMED: [(&str, &str); 3] = [
    ("Provisioner", "NodePool"),
    ("Machine", "NodeClaim"),
    ("AWSNodeTemplate", "EC2NodeClass"),
];
/// Kinds of a group that are at another version.
const OTHERWISE: [(&str, &str); 1] = [("NodeOverlay", "v1alpha1")];

pub(crate) fn old_api(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for (at, document) in world.documents.iter().enumerate() {
        let written = document.value["apiVersion"].as_str().unwrap_or_default();
        let kind = document.value["kind"].as_str().unwrap_or_default();
        let Some((group, version)) = written.split_once('/') else {
            continue;
        };
        let Some((_, current)) = GROUPS.iter().find(|(known, _)| *known == group) else {
            continue;
        };
        if version == *current || OTHERWISE.contains(&(kind, version)) {
            continue;
        }
        // Azure's provider still serves its old version, for a while.
        let is_served = (group, version) == ("karpenter.azure.com", "v1alpha2");
        let text = if is_served {
            format!("{written} is served for the time being only; {group}/{current} is the version to write")
        } else {
            format!("{written} is not served any more: {group}/{current} is")
        };
        let mut one = Found::new(at, "apiVersion", text).fix(converted(&document.value, group, current));
        if is_served {
            one = one.severity(Severity::Warning);
        }
        if kind == "AKSNodeClass" {
            one = one.replacing(written, format!("{group}/{current}"));
        }
        found.push(one);
    }
    found
}

/// The object in today's version, or what to do where that cannot be said.
fn converted(object: &Value, group: &str, current: &str) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    if let Some((_, now)) = RENAMED.iter().find(|(before, _)| *before == kind) {
        return format!(
            "{kind} is {now} of {group}/{current} today; its fields have other names: see docs/lint/NP25.md"
        );
    }
    let mut object = object.clone();
    object["apiVersion"] = json!(format!("{group}/{current}"));
    if kind == "NodePool" {
        convert_node_pool(&mut object);
    }
    if kind == "EC2NodeClass" {
        convert_node_class(&mut object);
    }
    serde_saphyr::to_string(&object).unwrap_or_default()
}

fn convert_node_pool(object: &mut Value) {
    let disruption = &mut object["spec"]["disruption"];
    if disruption["consolidationPolicy"] == "WhenUnderutilized" {
        disruption["consolidationPolicy"] = json!("WhenEmptyOrUnderutilized");
    }
    let expires = disruption
        .as_object_mut()
        .and_then(|fields| fields.remove("expireAfter"));
    if disruption.is_object() && disruption["consolidateAfter"].is_null() {
        disruption["consolidateAfter"] = json!("0s");
    }
    if disruption.is_null()
        && let Some(spec) = object["spec"].as_object_mut()
    {
        spec.remove("disruption");
    }
    let spec = &mut object["spec"]["template"]["spec"];
    if let Some(expires) = expires {
        spec["expireAfter"] = expires;
    }
    // Kubelet settings are the node class's today.
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("kubelet");
    }
    let reference = &mut spec["nodeClassRef"];
    let group = match reference["kind"].as_str() {
        Some("AKSNodeClass") => "karpenter.azure.com",
        _ => "karpenter.k8s.aws",
    };
    if let Some(fields) = reference.as_object_mut() {
        fields.remove("apiVersion");
        fields.entry("group").or_insert_with(|| json!(group));
        fields.entry("kind").or_insert_with(|| json!("EC2NodeClass"));
    }
}

/// v1 asks for image terms, which an image family alone used to stand for.
fn convert_node_class(object: &mut Value) {
    let spec = &mut object["spec"];
    let family = spec["amiFamily"].as_str().unwrap_or_default().to_lowercase();
    let is_named = matches!(
        family.as_str(),
        "al2" | "al2023" | "bottlerocket" | "windows2019" | "windows2022"
    );
    if is_named && spec["amiSelectorTerms"].is_null() {
        spec["amiSelectorTerms"] = json!([{ "alias": format!("{family}@latest") }]);
        if let Some(fields) = spec.as_object_mut() {
            fields.remove("amiFamily");
        }
    }
}
