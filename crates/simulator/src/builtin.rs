//! What are the types of Kubernetes' own kinds? Generated from the crate that declares them; how their lists are merged
//! is not part of it and stands here.

use std::{
    collections::BTreeMap,
    sync::{Mutex, OnceLock, PoisonError},
};

use k8s_openapi::{
    api::{
        apps::v1 as apps, autoscaling::v2 as autoscaling, batch::v1 as batch, coordination::v1 as coordination,
        core::v1 as core, discovery::v1 as discovery, events::v1 as events, networking::v1 as networking,
        node::v1 as node, policy::v1 as policy, rbac::v1 as rbac, resource::v1 as resource,
        scheduling::v1 as scheduling, storage::v1 as storage,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use crate::{
    Resource,
    schema::{List, Schema, Types},
};

/// The types by their full names, and the name of the type of every kind.
struct Known {
    types: BTreeMap<String, Value>,
    kinds: BTreeMap<Resource, String>,
}

macro_rules! kinds {
    ($generator:ident, $($group:literal $plural:literal $kind:ty;)+) => {
        [$({
            $generator.subschema_for::<$kind>();
            (Resource::new($group, $plural), <$kind as JsonSchema>::schema_name().into_owned())
        }),+].into()
    };
}

fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut generator = generator();
        let kinds = kinds! { generator,
            "" "configmaps" core::ConfigMap;
            "" "endpoints" core::Endpoints;
            "" "events" core::Event;
            "" "limitranges" core::LimitRange;
            "" "namespaces" core::Namespace;
            "" "nodes" core::Node;
            "" "persistentvolumeclaims" core::PersistentVolumeClaim;
            "" "persistentvolumes" core::PersistentVolume;
            "" "pods" core::Pod;
            "" "podtemplates" core::PodTemplate;
            "" "replicationcontrollers" core::ReplicationController;
            "" "resourcequotas" core::ResourceQuota;
            "" "secrets" core::Secret;
            "" "serviceaccounts" core::ServiceAccount;
            "" "services" core::Service;
            "apiextensions.k8s.io" "customresourcedefinitions" apiextensions::CustomResourceDefinition;
            "apps" "controllerrevisions" apps::ControllerRevision;
            "apps" "daemonsets" apps::DaemonSet;
            "apps" "deployments" apps::Deployment;
            "apps" "replicasets" apps::ReplicaSet;
            "apps" "statefulsets" apps::StatefulSet;
            "autoscaling" "horizontalpodautoscalers" autoscaling::HorizontalPodAutoscaler;
            "batch" "cronjobs" batch::CronJob;
            "batch" "jobs" batch::Job;
            "coordination.k8s.io" "leases" coordination::Lease;
            "discovery.k8s.io" "endpointslices" discovery::EndpointSlice;
            "events.k8s.io" "events" events::Event;
            "networking.k8s.io" "ingressclasses" networking::IngressClass;
            "networking.k8s.io" "ingresses" networking::Ingress;
            "networking.k8s.io" "networkpolicies" networking::NetworkPolicy;
            "node.k8s.io" "runtimeclasses" node::RuntimeClass;
            "policy" "poddisruptionbudgets" policy::PodDisruptionBudget;
            "rbac.authorization.k8s.io" "clusterrolebindings" rbac::ClusterRoleBinding;
            "rbac.authorization.k8s.io" "clusterroles" rbac::ClusterRole;
            "rbac.authorization.k8s.io" "rolebindings" rbac::RoleBinding;
            "rbac.authorization.k8s.io" "roles" rbac::Role;
            "resource.k8s.io" "deviceclasses" resource::DeviceClass;
            "resource.k8s.io" "resourceclaims" resource::ResourceClaim;
            "resource.k8s.io" "resourceclaimtemplates" resource::ResourceClaimTemplate;
            "resource.k8s.io" "resourceslices" resource::ResourceSlice;
            "scheduling.k8s.io" "priorityclasses" scheduling::PriorityClass;
            "storage.k8s.io" "csidrivers" storage::CSIDriver;
            "storage.k8s.io" "csinodes" storage::CSINode;
            "storage.k8s.io" "storageclasses" storage::StorageClass;
            "storage.k8s.io" "volumeattachments" storage::VolumeAttachment;
        };
        let types = generator.take_definitions(true).into_iter().collect();
        Known { types, kinds }
    })
}

fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::openapi3().with(|settings| settings.transforms.clear());
    settings.into_generator()
}

/// The schema of a built-in kind, made when it is first asked for.
pub(crate) fn schema(resource: &Resource) -> Option<&'static Schema> {
    static MADE: Mutex<BTreeMap<Resource, &'static Schema>> = Mutex::new(BTreeMap::new());
    let name = known().kinds.get(resource)?;
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(schema) = made.get(resource) {
        return Some(schema);
    }
    // One per kind and process, for as long as the process lives.
    let schema: &'static Schema = Box::leak(Box::new(Schema::of_type(name, known())));
    made.insert(resource.clone(), schema);
    Some(schema)
}

/// The schema of what every object has.
pub(crate) fn metadata() -> Schema {
    static TYPES: OnceLock<Known> = OnceLock::new();
    let known = TYPES.get_or_init(|| {
        let mut generator = generator();
        generator.subschema_for::<ObjectMeta>();
        Known {
            types: generator.take_definitions(true).into_iter().collect(),
            kinds: BTreeMap::new(),
        }
    });
    Schema::of_type(&ObjectMeta::schema_name(), known)
}

/// The type of what every object has.
pub(crate) fn metadata_name() -> String {
    ObjectMeta::schema_name().into_owned()
}

/// The name of the type of a built-in kind.
pub(crate) fn type_name(resource: &Resource) -> Option<&'static str> {
    known().kinds.get(resource).map(String::as_str)
}

/// A type and how its lists are merged, as OpenAPI documents show it.
pub(crate) fn shown(name: &str) -> Option<Value> {
    let mut shown = known().types.get(name)?.clone();
    let short = short(name);
    if ATOMIC.contains(&(short, "")) {
        shown["x-kubernetes-map-type"] = json!("atomic");
    }
    for (field, property) in shown["properties"].as_object_mut().into_iter().flatten() {
        if ATOMIC.contains(&(short, field)) {
            property["x-kubernetes-map-type"] = json!("atomic");
        }
        if SETS.contains(&(short, field)) {
            property["x-kubernetes-list-type"] = json!("set");
            property["x-kubernetes-patch-strategy"] = json!("merge");
        }
        if let Some((_, _, keys)) = MAPS.iter().find(|(of, name, _)| *of == short && name == field) {
            let keys: Vec<&str> = keys.split(',').collect();
            property["x-kubernetes-list-type"] = json!("map");
            property["x-kubernetes-patch-merge-key"] = json!(keys[0]);
            property["x-kubernetes-patch-strategy"] = json!("merge");
            property["x-kubernetes-list-map-keys"] = json!(keys);
        }
        // A reference with company is written as the real server writes it.
        if let Some(reference) = property.get("$ref").cloned() {
            let fields = crate::write::fields(property);
            fields.remove("$ref");
            fields.insert("allOf".to_owned(), json!([{"$ref": reference}]));
        }
    }
    Some(shown)
}

impl Types for Known {
    fn named(&self, name: &str) -> Option<&Value> {
        self.types.get(name)
    }

    fn list(&self, name: &str, field: &str) -> List {
        let short = short(name);
        if SETS.contains(&(short, field)) {
            return List::Set;
        }
        let keys = MAPS.iter().find(|(of, name, _)| *of == short && *name == field);
        keys.map_or(List::Atomic, |(_, _, keys)| {
            List::Map(keys.split(',').map(str::to_owned).collect())
        })
    }

    fn is_atomic(&self, name: &str, field: &str) -> bool {
        ATOMIC.contains(&(short(name), field))
    }
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

/// Lists whose items are told apart by fields: type, field, keys; the first key is that of strategic merge patches.
const MAPS: &[(&str, &str, &str)] = &[
    ("AllocatedDeviceStatus", "conditions", "type"),
    ("CSINodeSpec", "drivers", "name"),
    ("Container", "env", "name"),
    ("Container", "ports", "containerPort,protocol"),
    ("Container", "volumeDevices", "devicePath"),
    ("Container", "volumeMounts", "mountPath"),
    ("ContainerStatus", "allocatedResourcesStatus", "name"),
    ("ContainerStatus", "volumeMounts", "mountPath"),
    ("CustomResourceDefinitionStatus", "conditions", "type"),
    ("DaemonSetStatus", "conditions", "type"),
    ("DeploymentStatus", "conditions", "type"),
    ("EphemeralContainer", "env", "name"),
    ("EphemeralContainer", "ports", "containerPort,protocol"),
    ("EphemeralContainer", "volumeDevices", "devicePath"),
    ("EphemeralContainer", "volumeMounts", "mountPath"),
    ("NamespaceStatus", "conditions", "type"),
    ("NodeStatus", "addresses", "type"),
    ("NodeStatus", "conditions", "type"),
    ("ObjectMeta", "ownerReferences", "uid"),
    ("PersistentVolumeClaimStatus", "conditions", "type"),
    ("PodDisruptionBudgetStatus", "conditions", "type"),
    ("PodSpec", "containers", "name"),
    ("PodSpec", "ephemeralContainers", "name"),
    ("PodSpec", "hostAliases", "ip"),
    ("PodSpec", "imagePullSecrets", "name"),
    ("PodSpec", "initContainers", "name"),
    ("PodSpec", "resourceClaims", "name"),
    ("PodSpec", "schedulingGates", "name"),
    ("PodSpec", "topologySpreadConstraints", "topologyKey,whenUnsatisfiable"),
    ("PodSpec", "volumes", "name"),
    ("PodStatus", "conditions", "type"),
    ("PodStatus", "podIPs", "ip"),
    ("PodStatus", "resourceClaimStatuses", "name"),
    ("ReplicaSetStatus", "conditions", "type"),
    ("ReplicationControllerStatus", "conditions", "type"),
    ("ResourceClaimStatus", "devices", "driver,device,pool,shareID"),
    ("ResourceClaimStatus", "reservedFor", "uid"),
    ("ResourceRequirements", "claims", "name"),
    ("ServiceAccount", "secrets", "name"),
    ("ServiceSpec", "ports", "port,protocol"),
    ("ServiceStatus", "conditions", "type"),
    ("StatefulSetStatus", "conditions", "type"),
];

/// Lists of plain values that are merged.
const SETS: &[(&str, &str)] = &[
    ("CSIDriverSpec", "volumeLifecycleModes"),
    ("NodeSpec", "podCIDRs"),
    ("ObjectMeta", "finalizers"),
    ("PodFailurePolicyOnExitCodesRequirement", "values"),
    ("UncountedTerminatedPods", "failed"),
    ("UncountedTerminatedPods", "succeeded"),
];

/// Types, and fields of types, that have one owner, whole.
const ATOMIC: &[(&str, &str)] = &[
    ("ConfigMapKeySelector", ""),
    ("EndpointAddress", ""),
    ("EndpointPort", ""),
    ("FileKeySelector", ""),
    ("LabelSelector", ""),
    ("LocalObjectReference", ""),
    ("NodeSelector", ""),
    ("NodeSelectorTerm", ""),
    ("ObjectFieldSelector", ""),
    ("ObjectReference", ""),
    ("OwnerReference", ""),
    ("PodSpec", "nodeSelector"),
    ("ReplicationControllerSpec", "selector"),
    ("ResourceFieldSelector", ""),
    ("Scheduling", "nodeSelector"),
    ("ScopeSelector", ""),
    ("SecretKeySelector", ""),
    ("SecretReference", ""),
    ("ServiceSpec", "selector"),
    ("TopologySelectorTerm", ""),
    ("TypedLocalObjectReference", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_merged_list_is_a_field_of_its_type() {
        let fields = |short_name: &str| {
            let found = known().types.iter().find(|(name, _)| short(name) == short_name);
            found.map(|(_, schema)| schema["properties"].as_object().cloned().unwrap_or_default())
        };
        let maps = MAPS.iter().map(|(of, field, _)| (*of, *field));
        let sets = SETS.iter().copied();
        for (of, field) in maps.chain(sets) {
            let found = fields(of).unwrap_or_else(|| panic!("no type {of}"));
            assert_eq!(found[field]["type"], "array", "{of}.{field}");
        }
    }

    #[test]
    fn every_built_in_kind_has_a_type() {
        let kinds = crate::kind::Kinds::default();
        for (resource, _) in kinds.all() {
            assert!(type_name(resource).is_some(), "{resource:?}");
        }
    }
}
