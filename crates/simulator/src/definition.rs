//! What does a CustomResourceDefinition say of its resource?

use serde_json::{Value, json};

use crate::{Resource, schema::Schema};

/// A custom resource.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) resource: Resource,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) is_namespaced: bool,
    versions: Vec<Version>,
}

/// A version of it.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    is_served: bool,
    pub(crate) has_status: bool,
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) columns: Vec<Value>,
    /// As it was written, for those who want to read it.
    pub(crate) text: Value,
    pub(crate) schema: Schema,
    pub(crate) selectable: Vec<String>,
}

/// Where the numbers of the scale subresource are, as JSON pointers.
#[derive(Debug, Clone)]
pub(crate) struct ScalePaths {
    pub(crate) wanted: String,
    pub(crate) current: String,
    pub(crate) selector: Option<String>,
}

/// The resource of the definitions themselves.
pub(crate) fn definitions() -> Resource {
    Resource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

impl Definition {
    /// Reads a CustomResourceDefinition.
    pub(crate) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let names = &spec["names"];
        let kind = text(&names["kind"]);
        let or = |value: &Value, other: String| match value.as_str() {
            Some(text) if !text.is_empty() => text.to_owned(),
            _ => other,
        };
        let versions = spec["versions"].as_array().into_iter().flatten();
        let mut versions: Vec<Version> = versions.map(Version::read).collect();
        versions.sort_by_key(|version| priority(&version.name));
        Self {
            resource: Resource::new(&text(&spec["group"]), &text(&names["plural"])),
            list_kind: or(&names["listKind"], format!("{kind}List")),
            singular: or(&names["singular"], kind.to_lowercase()),
            short_names: texts(&names["shortNames"]),
            categories: texts(&names["categories"]),
            is_namespaced: spec["scope"] == "Namespaced",
            versions,
            kind,
        }
    }

    /// The versions that are served, the preferred one first.
    pub(crate) fn served(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| version.is_served)
    }

    /// A version that is served.
    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.served().find(|version| version.name == name)
    }
}

impl Version {
    fn read(version: &Value) -> Self {
        let schema = &version["schema"]["openAPIV3Schema"];
        let scale = version["subresources"].get("scale").map(|scale| ScalePaths {
            wanted: pointer(&text(&scale["specReplicasPath"])),
            current: pointer(&text(&scale["statusReplicasPath"])),
            selector: scale["labelSelectorPath"].as_str().map(pointer),
        });
        let selectable = version["selectableFields"].as_array().into_iter().flatten();
        Self {
            name: text(&version["name"]),
            is_served: version["served"].as_bool().unwrap_or(false),
            has_status: version["subresources"].get("status").is_some(),
            scale,
            columns: version["additionalPrinterColumns"]
                .as_array()
                .cloned()
                .unwrap_or_default(),
            text: schema.clone(),
            schema: Schema::of_resource(schema),
            selectable: selectable
                .map(|field| text(&field["jsonPath"]).trim_start_matches('.').to_owned())
                .collect(),
        }
    }
}

/// Completes a definition as the server does when it accepts one.
pub(crate) fn accept(object: &mut Value, now: &Value) {
    let spec = &object["spec"];
    let kind = text(&spec["names"]["kind"]);
    let mut names = spec["names"].clone();
    if names["listKind"].as_str().unwrap_or_default().is_empty() {
        names["listKind"] = json!(format!("{kind}List"));
    }
    if names["singular"].as_str().unwrap_or_default().is_empty() {
        names["singular"] = json!(kind.to_lowercase());
    }
    let versions = spec["versions"].as_array().into_iter().flatten();
    let stored: Vec<Value> = versions
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    object["spec"]["names"] = names.clone();
    if object["spec"]["conversion"].is_null() {
        object["spec"]["conversion"] = json!({"strategy": "None"});
    }
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now});
    object["status"] = json!({
        "acceptedNames": names,
        "storedVersions": stored,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    });
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// A JSON path of plain steps (`.spec.replicas`) as a JSON pointer.
fn pointer(path: &str) -> String {
    path.replace('.', "/")
}

/// Stable versions before betas before alphas, newer ones first; anything else last, by name.
fn priority(version: &str) -> (u8, std::cmp::Reverse<u64>, std::cmp::Reverse<u64>, String) {
    let parsed = version.strip_prefix('v').and_then(|rest| {
        let (major, stage, minor) = if let Some((major, minor)) = rest.split_once("beta") {
            (major, 1, minor)
        } else if let Some((major, minor)) = rest.split_once("alpha") {
            (major, 2, minor)
        } else {
            (rest, 0, "0")
        };
        Some((stage, major.parse().ok()?, minor.parse().ok()?))
    });
    match parsed {
        Some((stage, major, minor)) => (stage, std::cmp::Reverse(major), std::cmp::Reverse(minor), String::new()),
        None => (3, std::cmp::Reverse(0), std::cmp::Reverse(0), version.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_come_first_and_newer_before_older() {
        let mut names = ["v1alpha1", "odd", "v1", "v2beta1", "v2", "v2beta2"];
        names.sort_by_key(|name| priority(name));
        assert_eq!(names, ["v2", "v1", "v2beta2", "v2beta1", "v1alpha1", "odd"]);
    }
}
