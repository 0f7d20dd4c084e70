//! Small clusters with devices, and a stand-in for the solver that places claims on hosts one after the other.

use std::{collections::BTreeSet, sync::Arc};

use devices::{Allocation, Allocator, ClaimId, Host, HostId, TypeId};
use model::{
    object::{DeviceClass, NodeName, Pod, ResourceClaim, ResourceSlice, Uid},
    requirement::{Operator, RequirementSpec, Requirements},
    snapshot::{Catalog, CatalogType, Objects, Settings, Snapshot, Table, Title},
    vocabulary::Vocabulary,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) const GPU: &str = "gpu.example.com";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";

/// A cluster in the making.
#[derive(Default)]
pub(crate) struct Cluster {
    slices: Vec<Value>,
    claims: Vec<Value>,
    classes: Vec<Value>,
    types: Vec<Value>,
    nodes: BTreeSet<NodeName>,
    moving: Vec<Uid>,
}

impl Cluster {
    /// With the classes `gpu`, `nic` and `any`.
    pub(crate) fn new() -> Self {
        let driver = |name: &str| json!([{ "cel": { "expression": format!("device.driver == \"{name}\"") } }]);
        Self::default()
            .class("gpu", &driver(GPU))
            .class("nic", &driver("nic.example.com"))
            .class("any", &json!([]))
    }

    pub(crate) fn class(mut self, name: &str, selectors: &Value) -> Self {
        self.classes
            .push(json!({ "metadata": { "name": name }, "spec": { "selectors": selectors } }));
        self
    }

    /// Publishes a slice that no node owns.
    pub(crate) fn slice(mut self, spec: Value) -> Self {
        let name = format!("slice-{:03}", self.slices.len());
        self.slices.push(json!({ "metadata": { "name": name }, "spec": spec }));
        self
    }

    /// Publishes a slice of a node, which only it can use.
    pub(crate) fn node_slice(mut self, node: &str, mut spec: Value) -> Self {
        spec["nodeName"] = json!(node);
        spec["allNodes"] = json!(null);
        let name = format!("slice-{:03}", self.slices.len());
        let owner = json!([{ "apiVersion": "v1", "kind": "Node", "name": node, "uid": "u" }]);
        self.slices
            .push(json!({ "metadata": { "name": name, "ownerReferences": owner }, "spec": spec }));
        self
    }

    /// An initialised node that stays.
    pub(crate) fn node(mut self, name: &str) -> Self {
        self.nodes.insert(name.into());
        self
    }

    /// An instance type and the slices it comes with.
    pub(crate) fn instance_type(self, name: &str, templates: &Value) -> Self {
        self.bound_instance_type(name, templates, &json!([]))
    }

    pub(crate) fn bound_instance_type(mut self, name: &str, templates: &Value, bindings: &Value) -> Self {
        let resources = json!({ "resourceSliceTemplates": templates, "attributeBindings": bindings });
        self.types.push(json!({ "name": name, "dynamicResources": resources }));
        self
    }

    /// A claim in the namespace `default`.
    pub(crate) fn claim(self, name: &str, devices: Value) -> Self {
        self.held_claim(name, devices, json!({}))
    }

    /// A claim that asks for some devices of class `gpu`.
    pub(crate) fn gpus(self, name: &str, count: u32) -> Self {
        self.claim(name, json!({ "requests": [exactly("gpu", "gpu", count)] }))
    }

    pub(crate) fn held_claim(mut self, name: &str, devices: Value, status: Value) -> Self {
        let metadata = json!({ "namespace": "default", "name": name });
        self.claims
            .push(json!({ "metadata": metadata, "spec": { "devices": devices }, "status": status }));
        self
    }

    pub(crate) fn moving(mut self, pod: &str) -> Self {
        self.moving.push(pod.into());
        self
    }

    pub(crate) fn run(self) -> Run {
        let snapshot = self.snapshot();
        let mut vocabulary = Vocabulary::new();
        let allocator = Allocator::new(&snapshot, &self.nodes, self.moving, &mut vocabulary);
        Run { allocator, vocabulary }
    }

    fn snapshot(&self) -> Snapshot {
        let objects = Objects {
            resource_slices: table::<ResourceSlice>(&self.slices),
            resource_claims: table::<ResourceClaim>(&self.claims),
            device_classes: table::<DeviceClass>(&self.classes),
            ..Objects::default()
        };
        let types = self.types.iter();
        let catalog = Catalog {
            instance_types: types.map(|it| Arc::new(read::<CatalogType>(it))).collect(),
            ..Catalog::default()
        };
        let title = Title {
            name: String::new(),
            taken_at: jiff::Timestamp::UNIX_EPOCH,
            origin: String::new(),
        };
        Snapshot::new(title, Settings::default(), objects, catalog)
    }
}

fn table<T: model::object::Object>(values: &[Value]) -> Table<T> {
    Table::new(values.iter().map(|value| Arc::new(read(value))).collect())
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

/// A slice that every node can use: the only one of its pool.
pub(crate) fn slice(pool: &str, devices: &Value) -> Value {
    json!({ "driver": GPU, "pool": { "name": pool, "generation": 1, "resourceSliceCount": 1 },
            "allNodes": true, "devices": devices })
}

/// A slice that nodes of some zones can use; one term per zone.
pub(crate) fn zonal_slice(pool: &str, zones: &[&str], devices: &Value) -> Value {
    let term = |zone: &&str| json!({ "matchExpressions": [{ "key": ZONE, "operator": "In", "values": [zone] }] });
    let terms: Vec<Value> = zones.iter().map(term).collect();
    let mut slice = slice(pool, devices);
    slice["allNodes"] = json!(null);
    slice["nodeSelector"] = json!({ "nodeSelectorTerms": terms });
    slice
}

/// What an instance type comes with.
pub(crate) fn template(devices: &Value) -> Value {
    json!([{ "driver": GPU, "pool": { "name": "node" }, "devices": devices }])
}

/// Devices `gpu-0`, `gpu-1`, and so on.
pub(crate) fn gpus(count: usize) -> Value {
    let devices: Vec<Value> = (0..count).map(|at| json!({ "name": format!("gpu-{at}") })).collect();
    json!(devices)
}

/// Devices with a string attribute each.
pub(crate) fn gpus_with(attribute: &str, values: &[&str]) -> Value {
    let device = |(at, value): (usize, &&str)| json!({ "name": format!("gpu-{at}"), "attributes": { attribute: { "string": value } } });
    let devices: Vec<Value> = values.iter().enumerate().map(device).collect();
    json!(devices)
}

pub(crate) fn exactly(name: &str, class: &str, count: u32) -> Value {
    json!({ "name": name, "exactly": { "deviceClassName": class, "allocationMode": "ExactCount", "count": count } })
}

pub(crate) fn all(name: &str, class: &str) -> Value {
    json!({ "name": name, "exactly": { "deviceClassName": class, "allocationMode": "All" } })
}

/// One alternative of a `firstAvailable` request.
pub(crate) fn alternative(name: &str, class: &str, count: u32) -> Value {
    json!({ "name": name, "deviceClassName": class, "allocationMode": "ExactCount", "count": count })
}

/// The status of a claim that has one device, held by pods.
pub(crate) fn held(pool: &str, device: &str, pods: &[&str]) -> Value {
    let result = json!({ "request": "gpu", "driver": GPU, "pool": pool, "device": device });
    let pod = |uid: &&str| json!({ "resource": "pods", "name": uid, "uid": uid });
    let reserved: Vec<Value> = pods.iter().map(pod).collect();
    json!({ "allocation": { "devices": { "results": [result] } }, "reservedFor": reserved })
}

/// A pod with claims of these names.
pub(crate) fn pod(claims: &[&str]) -> Pod {
    let claim = |name: &&str| json!({ "name": name, "resourceClaimName": name });
    let claims: Vec<Value> = claims.iter().map(claim).collect();
    read(&json!({ "metadata": { "namespace": "default", "name": "p" },
                  "spec": { "containers": [], "resourceClaims": claims } }))
}

/// Somewhere to place a pod.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'a> {
    id: HostId,
    node: Option<&'a str>,
    types: &'a [&'a str],
    zones: &'a [&'a str],
    has_templates: bool,
}

/// A NodeClaim of the run.
pub(crate) fn claim<'a>(number: u32, types: &'a [&'a str]) -> Spot<'a> {
    Spot {
        id: HostId::Claim(number),
        node: None,
        types,
        zones: &[],
        has_templates: true,
    }
}

/// A node that is initialised.
pub(crate) fn node<'a>(number: u32, name: &'a str, types: &'a [&'a str]) -> Spot<'a> {
    Spot {
        id: HostId::Node(number),
        node: Some(name),
        types,
        zones: &[],
        has_templates: false,
    }
}

impl<'a> Spot<'a> {
    pub(crate) fn in_zones(self, zones: &'a [&'a str]) -> Self {
        Self { zones, ..self }
    }

    pub(crate) fn uninitialised(self) -> Self {
        Self {
            has_templates: true,
            ..self
        }
    }
}

/// A run in progress.
pub(crate) struct Run {
    pub(crate) allocator: Allocator,
    pub(crate) vocabulary: Vocabulary,
}

impl Run {
    /// What an attempt to place a pod with these claims says: the types that remain, or why there are none.
    pub(crate) fn try_on(&mut self, spot: Spot<'_>, claims: &[&str]) -> Answer {
        let allocation = self.attempt(spot, claims)?;
        Ok(self.names(spot, &allocation.types))
    }

    /// What the devices ask of the host, in the way of the API.
    pub(crate) fn asked_of(&mut self, spot: Spot<'_>, claims: &[&str]) -> Result<Vec<RequirementSpec>, String> {
        let allocation = self.attempt(spot, claims)?;
        Ok(allocation.requirements.to_specs(&self.vocabulary))
    }

    /// Places a pod with these claims; all types that can have the devices remain.
    pub(crate) fn put_on(&mut self, spot: Spot<'_>, claims: &[&str]) -> Answer {
        self.put_on_keeping(spot, claims, spot.types)
    }

    /// Places a pod with these claims, while other filters keep only some types.
    pub(crate) fn put_on_keeping(&mut self, spot: Spot<'_>, claims: &[&str], kept: &[&str]) -> Answer {
        let allocation = self.attempt(spot, claims)?;
        let names = self.names(spot, &allocation.types);
        let kept = self.types(kept);
        self.allocator.commit(allocation, &kept, &self.vocabulary);
        Ok(names)
    }

    /// The devices a claim got if its host becomes the type, as `request: pool/device`; those to come are marked `*`.
    pub(crate) fn devices(&self, claim: &str, instance_type: &str) -> Vec<String> {
        let id = self.allocator.type_id(instance_type).unwrap_or(TypeId::UNLISTED);
        let mut allocations = self.allocator.allocations();
        let found = allocations.find(|(_, name, _)| name.as_ref() == claim);
        let devices = found.map(|(_, _, allocation)| allocation.devices(id));
        let text = |device: &devices::AllocatedDevice| {
            let mark = if device.is_template { "*" } else { "" };
            format!("{}: {}/{}{mark}", device.request, device.id.pool, device.id.device)
        };
        devices.into_iter().flatten().map(text).collect()
    }

    pub(crate) fn drivers(&self, host: HostId) -> Vec<String> {
        let drivers = self.allocator.requested_drivers(host);
        drivers.iter().map(ToString::to_string).collect()
    }

    fn attempt(&mut self, spot: Spot<'_>, claims: &[&str]) -> Result<Allocation, String> {
        let claims: Vec<ClaimId> = self.allocator.claims_of(&pod(claims))?;
        let mut specs = Vec::new();
        if !spot.zones.is_empty() {
            specs.push(RequirementSpec::new(ZONE, Operator::In, spot.zones));
        }
        let requirements = Requirements::from_specs(&specs, &mut self.vocabulary);
        let types = self.types(spot.types);
        let host = Host {
            id: spot.id,
            node_name: spot.node,
            requirements: &requirements,
            types: &types,
            has_templates: spot.has_templates,
        };
        self.allocator
            .allocate(&host, &claims, &self.vocabulary)
            .map_err(|error| error.to_string())
    }

    fn types(&self, names: &[&str]) -> Vec<TypeId> {
        let id = |name: &&str| self.allocator.type_id(name).unwrap_or(TypeId::UNLISTED);
        names.iter().map(id).collect()
    }

    fn names(&self, spot: Spot<'_>, types: &[TypeId]) -> Vec<String> {
        let ids = self.types(spot.types);
        let name = |id: &TypeId| {
            let at = ids.iter().position(|other| other == id)?;
            spot.types.get(at).map(ToString::to_string)
        };
        types.iter().filter_map(name).collect()
    }
}

/// The requirement that a zone constraint becomes.
pub(crate) fn zones(zones: &[&str]) -> Vec<RequirementSpec> {
    vec![RequirementSpec::new(ZONE, Operator::In, zones)]
}

/// The types that remain, or why there are none.
pub(crate) type Answer = Result<Vec<String>, String>;

/// What no host can satisfy.
pub(crate) fn nothing() -> Answer {
    Err("no instance type can satisfy the allocation".to_owned())
}

/// These types remain.
#[allow(
    clippy::unnecessary_wraps,
    reason = "it is compared with answers that may be refusals"
)]
pub(crate) fn types(names: &[&str]) -> Answer {
    Ok(names.iter().map(ToString::to_string).collect())
}
