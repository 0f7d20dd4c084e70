//! What does the API server know of a kind before it has seen an object of it?

use std::collections::BTreeMap;

use crate::Resource;

/// How a kind behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a table of yes and no")]
pub(crate) struct Facts {
    pub(crate) kind: String,
    pub(crate) is_namespaced: bool,
    /// A subresource of its own, which the main one does not write.
    pub(crate) has_status: bool,
    pub(crate) has_generation: bool,
    pub(crate) is_built_in: bool,
    /// Deletion answers with the object rather than with a Status.
    pub(crate) returns_deleted: bool,
}

/// Group, plural, kind, and letters: (n)amespaced, (s)tatus, (g)eneration, deletion (r)eturns the object.
const BUILT_IN: &[(&str, &str, &str, &str)] = &[
    ("", "configmaps", "ConfigMap", "n"),
    ("", "endpoints", "Endpoints", "n"),
    ("", "events", "Event", "n"),
    ("", "limitranges", "LimitRange", "n"),
    ("", "namespaces", "Namespace", "s"),
    ("", "nodes", "Node", "s"),
    ("", "persistentvolumeclaims", "PersistentVolumeClaim", "nsr"),
    ("", "persistentvolumes", "PersistentVolume", "sr"),
    ("", "pods", "Pod", "nsgr"),
    ("", "podtemplates", "PodTemplate", "ngr"),
    ("", "replicationcontrollers", "ReplicationController", "nsg"),
    ("", "resourcequotas", "ResourceQuota", "nsr"),
    ("", "secrets", "Secret", "n"),
    ("", "serviceaccounts", "ServiceAccount", "nr"),
    ("", "services", "Service", "nsr"),
    ("apps", "controllerrevisions", "ControllerRevision", "n"),
    ("apps", "daemonsets", "DaemonSet", "nsg"),
    ("apps", "deployments", "Deployment", "nsg"),
    ("apps", "replicasets", "ReplicaSet", "nsg"),
    ("apps", "statefulsets", "StatefulSet", "nsg"),
    ("batch", "cronjobs", "CronJob", "nsg"),
    ("batch", "jobs", "Job", "nsg"),
    ("coordination.k8s.io", "leases", "Lease", "n"),
    ("events.k8s.io", "events", "Event", "n"),
    ("node.k8s.io", "runtimeclasses", "RuntimeClass", ""),
    ("policy", "poddisruptionbudgets", "PodDisruptionBudget", "nsg"),
    ("resource.k8s.io", "deviceclasses", "DeviceClass", "gr"),
    ("resource.k8s.io", "resourceclaims", "ResourceClaim", "nsr"),
    (
        "resource.k8s.io",
        "resourceclaimtemplates",
        "ResourceClaimTemplate",
        "nr",
    ),
    ("resource.k8s.io", "resourceslices", "ResourceSlice", "gr"),
    ("scheduling.k8s.io", "priorityclasses", "PriorityClass", "g"),
    ("storage.k8s.io", "csidrivers", "CSIDriver", "r"),
    ("storage.k8s.io", "csinodes", "CSINode", "r"),
    ("storage.k8s.io", "storageclasses", "StorageClass", "r"),
    ("storage.k8s.io", "volumeattachments", "VolumeAttachment", "sr"),
];

/// The kinds that are known.
#[derive(Debug)]
pub(crate) struct Kinds {
    known: BTreeMap<Resource, Facts>,
}

impl Default for Kinds {
    fn default() -> Self {
        let fact = |(group, plural, kind, letters): &(&str, &str, &str, &str)| {
            let facts = Facts {
                kind: (*kind).to_owned(),
                is_namespaced: letters.contains('n'),
                has_status: letters.contains('s'),
                has_generation: letters.contains('g'),
                is_built_in: true,
                returns_deleted: letters.contains('r'),
            };
            (Resource::new(group, plural), facts)
        };
        Self {
            known: BUILT_IN.iter().map(fact).collect(),
        }
    }
}

impl Kinds {
    /// What is known of a resource. One never heard of is a custom one, whose kind nobody has said yet.
    pub(crate) fn facts(&self, resource: &Resource) -> Facts {
        self.known
            .get(resource)
            .cloned()
            .unwrap_or_else(|| custom(&resource.plural, false))
    }

    /// Learns the kind of a custom resource from its first object.
    pub(crate) fn learn(&mut self, resource: &Resource, kind: &str, is_namespaced: bool) {
        if !self.known.contains_key(resource) {
            self.known.insert(resource.clone(), custom(kind, is_namespaced));
        }
    }

    /// The resource of a kind, of any group that has one of that name; of `group` if it is given.
    pub(crate) fn resource(&self, group: Option<&str>, kind: &str) -> Resource {
        let fits = |resource: &Resource| group.is_none_or(|group| resource.group == group);
        let known = self
            .known
            .iter()
            .find(|(resource, facts)| facts.kind == kind && fits(resource));
        match known {
            Some((resource, _)) => resource.clone(),
            None => Resource::new(group.unwrap_or_default(), &plural(kind)),
        }
    }
}

fn custom(kind: &str, is_namespaced: bool) -> Facts {
    Facts {
        kind: kind.to_owned(),
        is_namespaced,
        has_status: true,
        has_generation: true,
        is_built_in: false,
        returns_deleted: false,
    }
}

/// As the authors of custom resources form it.
fn plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    if lower.ends_with('s') || lower.ends_with('x') || lower.ends_with("ch") {
        return format!("{lower}es");
    }
    match lower.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{lower}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_leads_to_its_resource() {
        let mut kinds = Kinds::default();
        let custom = Resource::new("karpenter.kwok.sh", "kwoknodeclasses");
        kinds.learn(&custom, "KWOKNodeClass", false);
        let cases = [
            (None, "Node", Resource::new("", "nodes")),
            (Some("apps"), "DaemonSet", Resource::new("apps", "daemonsets")),
            (Some("karpenter.kwok.sh"), "KWOKNodeClass", custom.clone()),
            (None, "KWOKNodeClass", custom),
            (
                Some("karpenter.sh"),
                "NodeClaim",
                Resource::new("karpenter.sh", "nodeclaims"),
            ),
            (Some("x.io"), "Policy", Resource::new("x.io", "policies")),
        ];
        for (group, kind, resource) in cases {
            assert_eq!(kinds.resource(group, kind), resource);
        }
    }
}
