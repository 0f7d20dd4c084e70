//! What does the API server know of a kind before it has seen an object of it?

use std::{collections::BTreeMap, sync::Arc};

use crate::{Resource, definition::Definition};

/// How a kind behaves.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "a table of yes and no")]
pub(crate) struct Facts {
    pub(crate) kind: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    /// The preferred one first. None where nobody has said.
    pub(crate) versions: Vec<String>,
    pub(crate) is_namespaced: bool,
    /// A subresource of its own, which the main one does not write.
    pub(crate) has_status: bool,
    pub(crate) has_scale: bool,
    pub(crate) has_generation: bool,
    pub(crate) is_built_in: bool,
    /// Deletion answers with the object rather than with a Status.
    pub(crate) returns_deleted: bool,
    /// A custom resource whose definition was given.
    pub(crate) definition: Option<Arc<Definition>>,
}

impl Facts {
    pub(crate) fn list_kind(&self) -> String {
        match &self.definition {
            Some(definition) => definition.list_kind.clone(),
            None => format!("{}List", self.kind),
        }
    }
}

/// Group, version, plural, kind, letters and short names. Letters: (n)amespaced, (s)tatus, (g)eneration, deletion
/// (r)eturns the object, s(c)ale, in the category (a)ll.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const BUILT_IN: &[Row] = &[
    ("", "v1", "configmaps", "ConfigMap", "n", "cm"),
    ("", "v1", "endpoints", "Endpoints", "n", "ep"),
    ("", "v1", "events", "Event", "n", "ev"),
    ("", "v1", "limitranges", "LimitRange", "n", "limits"),
    ("", "v1", "namespaces", "Namespace", "s", "ns"),
    ("", "v1", "nodes", "Node", "s", "no"),
    (
        "",
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        "nsr",
        "pvc",
    ),
    ("", "v1", "persistentvolumes", "PersistentVolume", "sr", "pv"),
    ("", "v1", "pods", "Pod", "nsgra", "po"),
    ("", "v1", "podtemplates", "PodTemplate", "ngr", ""),
    (
        "",
        "v1",
        "replicationcontrollers",
        "ReplicationController",
        "nsgca",
        "rc",
    ),
    ("", "v1", "resourcequotas", "ResourceQuota", "nsr", "quota"),
    ("", "v1", "secrets", "Secret", "n", ""),
    ("", "v1", "serviceaccounts", "ServiceAccount", "nr", "sa"),
    ("", "v1", "services", "Service", "nsra", "svc"),
    (
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "sg",
        "crd,crds",
    ),
    ("apps", "v1", "controllerrevisions", "ControllerRevision", "n", ""),
    ("apps", "v1", "daemonsets", "DaemonSet", "nsga", "ds"),
    ("apps", "v1", "deployments", "Deployment", "nsgca", "deploy"),
    ("apps", "v1", "replicasets", "ReplicaSet", "nsgca", "rs"),
    ("apps", "v1", "statefulsets", "StatefulSet", "nsgca", "sts"),
    (
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        "nsa",
        "hpa",
    ),
    ("batch", "v1", "cronjobs", "CronJob", "nsga", "cj"),
    ("batch", "v1", "jobs", "Job", "nsga", ""),
    ("coordination.k8s.io", "v1", "leases", "Lease", "n", ""),
    ("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", "ng", ""),
    ("events.k8s.io", "v1", "events", "Event", "n", "ev"),
    ("networking.k8s.io", "v1", "ingressclasses", "IngressClass", "g", ""),
    ("networking.k8s.io", "v1", "ingresses", "Ingress", "nsg", "ing"),
    (
        "networking.k8s.io",
        "v1",
        "networkpolicies",
        "NetworkPolicy",
        "ng",
        "netpol",
    ),
    ("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", "", ""),
    (
        "policy",
        "v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        "nsg",
        "pdb",
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "clusterrolebindings",
        "ClusterRoleBinding",
        "",
        "",
    ),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", "", ""),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "rolebindings",
        "RoleBinding",
        "n",
        "",
    ),
    ("rbac.authorization.k8s.io", "v1", "roles", "Role", "n", ""),
    ("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", "gr", ""),
    ("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", "nsr", ""),
    (
        "resource.k8s.io",
        "v1",
        "resourceclaimtemplates",
        "ResourceClaimTemplate",
        "nr",
        "",
    ),
    ("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", "gr", ""),
    ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", "g", "pc"),
    ("storage.k8s.io", "v1", "csidrivers", "CSIDriver", "r", ""),
    ("storage.k8s.io", "v1", "csinodes", "CSINode", "r", ""),
    ("storage.k8s.io", "v1", "storageclasses", "StorageClass", "r", "sc"),
    (
        "storage.k8s.io",
        "v1",
        "volumeattachments",
        "VolumeAttachment",
        "sr",
        "",
    ),
];

/// The kinds that are known.
#[derive(Debug)]
pub(crate) struct Kinds {
    known: BTreeMap<Resource, Arc<Facts>>,
    /// Whether definitions were given, so that what nobody defined is not served.
    has_definitions: bool,
}

impl Default for Kinds {
    fn default() -> Self {
        let fact = |(group, version, plural, kind, letters, short): &Row| {
            let facts = Facts {
                kind: (*kind).to_owned(),
                singular: kind.to_lowercase(),
                short_names: words(short),
                categories: words(if letters.contains('a') { "all" } else { "" }),
                versions: vec![(*version).to_owned()],
                is_namespaced: letters.contains('n'),
                has_status: letters.contains('s'),
                has_scale: letters.contains('c'),
                has_generation: letters.contains('g'),
                is_built_in: true,
                returns_deleted: letters.contains('r'),
                definition: None,
            };
            (Resource::new(group, plural), Arc::new(facts))
        };
        Self {
            known: BUILT_IN.iter().map(fact).collect(),
            has_definitions: false,
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(',')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

impl Kinds {
    /// What is known of a resource. One never heard of is a custom one, whose kind nobody has said yet.
    pub(crate) fn facts(&self, resource: &Resource) -> Arc<Facts> {
        match self.known.get(resource) {
            Some(facts) => Arc::clone(facts),
            None => Arc::new(custom(&resource.plural, false)),
        }
    }

    /// Whether a version of a resource is served. While no definition was given, everything is: tests of controllers
    /// need no definitions.
    pub(crate) fn is_served(&self, resource: &Resource, version: &str) -> bool {
        match self.known.get(resource) {
            Some(facts) => facts.versions.is_empty() || facts.versions.iter().any(|known| known == version),
            None => !self.has_definitions,
        }
    }

    /// All that is known, by group and plural.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Resource, &Arc<Facts>)> {
        self.known.iter()
    }

    /// Learns the kind of a custom resource from its first object.
    pub(crate) fn learn(&mut self, resource: &Resource, kind: &str, is_namespaced: bool) {
        if !self.known.contains_key(resource) {
            self.known
                .insert(resource.clone(), Arc::new(custom(kind, is_namespaced)));
        }
    }

    /// Learns all of a custom resource from its definition.
    pub(crate) fn define(&mut self, definition: Definition) {
        self.has_definitions = true;
        let resource = definition.resource.clone();
        let has_status = definition.served().any(|version| version.has_status);
        let has_scale = definition.served().any(|version| version.scale.is_some());
        let facts = Facts {
            kind: definition.kind.clone(),
            singular: definition.singular.clone(),
            short_names: definition.short_names.clone(),
            categories: definition.categories.clone(),
            versions: definition.served().map(|version| version.name.clone()).collect(),
            is_namespaced: definition.is_namespaced,
            has_status,
            has_scale,
            has_generation: true,
            is_built_in: false,
            returns_deleted: false,
            definition: Some(Arc::new(definition)),
        };
        self.known.insert(resource, Arc::new(facts));
    }

    /// Forgets a custom resource.
    pub(crate) fn undefine(&mut self, resource: &Resource) {
        self.known.remove(resource);
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
        singular: kind.to_lowercase(),
        short_names: Vec::new(),
        categories: Vec::new(),
        versions: Vec::new(),
        is_namespaced,
        has_status: true,
        has_scale: false,
        has_generation: true,
        is_built_in: false,
        returns_deleted: false,
        definition: None,
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
