//! Azure Resource Manager in memory: as much of it as the provider asks, with its habits and its faults.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use cloud_azure::arm::{Transport, TransportError};
use http::{Method, Request, Response};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Where it is.
pub(crate) const ENDPOINT: &str = "https://arm.example";
pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-00000000000a";
pub(crate) const GROUP: &str = "MC_rg";
/// How long a machine takes to come and to go.
const TAKES: Duration = Duration::from_secs(5);

/// The state.
#[derive(Default)]
pub(crate) struct State {
    /// Machines by name, with when they are there and when they are gone.
    pub(crate) vms: BTreeMap<String, Resource>,
    /// Network interfaces by name.
    pub(crate) nics: BTreeMap<String, Resource>,
    /// Extensions by machine and name.
    pub(crate) extensions: BTreeMap<(String, String), Value>,
    operations: BTreeMap<u64, (Instant, Option<Value>)>,
    /// What was changed, in order: kind and name, and to what.
    pub(crate) changed: Vec<(String, Value)>,
    /// What machines were asked for, in order.
    pub(crate) asked: Vec<String>,
    /// Answers to requests for machines instead of machines.
    pub(crate) refusals: VecDeque<Said>,
    /// Errors that requests for machines end with after they were taken on.
    pub(crate) late_errors: VecDeque<Value>,
    /// So many answers to requests for machines do not arrive.
    pub(crate) lost: usize,
    /// So many deletions of network interfaces fail.
    pub(crate) stuck_nics: usize,
    /// Until then Resource Graph does not show what is new.
    pub(crate) hidden_until: Option<Instant>,
    pub(crate) usages: Vec<Value>,
    pub(crate) prices: Vec<Value>,
    pub(crate) image_versions: Vec<(&'static str, &'static str)>,
    /// Versions in shared galleries: family, definition, version.
    pub(crate) shared_images: Vec<(&'static str, &'static str, &'static str)>,
    /// The network security groups of the nodes.
    pub(crate) security_groups: Vec<&'static str>,
    /// The answer to questions for subnets and disk encryption sets; 200 unless said otherwise.
    pub(crate) subnet_status: Option<u16>,
    pub(crate) disk_encryption_set_status: Option<u16>,
    /// The pools of the load balancer.
    pub(crate) pools: Vec<&'static str>,
    next: u64,
}

/// A machine or an interface.
#[derive(Clone)]
pub(crate) struct Resource {
    pub(crate) body: Value,
    pub(crate) ready_at: Instant,
    pub(crate) gone_at: Option<Instant>,
    pub(crate) made_at: Instant,
}

/// Azure.
pub(crate) struct Memory(Mutex<State>);

impl Memory {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State {
            image_versions: vec![
                ("202510.01.0", "2025-10-01T00:00:00Z"),
                ("202512.18.0", "2025-12-18T00:00:00Z"),
            ],
            pools: vec!["kubernetes", "aksOutboundBackendPool"],
            security_groups: vec!["aks-agentpool-12345678-nsg", "mine"],
            ..State::default()
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.0.lock().unwrap();
        let now = Instant::now();
        let is_gone = |it: &Resource| it.gone_at.is_some_and(|at| at <= now);
        let gone: Vec<String> = state
            .vms
            .iter()
            .filter(|(_, it)| is_gone(it))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            // Disk and interface go with their machine.
            state.vms.remove(&name);
            state.nics.remove(&name);
        }
        state.nics.retain(|_, it| !is_gone(it));
        state
    }

    /// Adds a machine that somebody else made.
    pub(crate) fn add_vm(&self, name: &str, tags: Value) -> String {
        let body = json!({"location": "southcentralus", "tags": tags, "zones": ["1"],
            "properties": {"hardwareProfile": {"vmSize": "Standard_D2s_v3"}, "priority": "Regular"}});
        let now = Instant::now();
        self.lock().vms.insert(
            name.to_owned(),
            Resource {
                body,
                ready_at: now,
                gone_at: None,
                made_at: now,
            },
        );
        id("Microsoft.Compute/virtualMachines", &GROUP.to_lowercase(), name)
    }
}

pub(crate) fn id(kind: &str, group: &str, name: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/{kind}/{name}")
}

type Said = (u16, Vec<(&'static str, String)>, Value);

fn ok(body: Value) -> Said {
    (200, Vec::new(), body)
}

fn not_found(what: &str) -> Said {
    let message = format!("The Resource '{what}' was not found.");
    (
        404,
        Vec::new(),
        json!({"error": {"code": "ResourceNotFound", "message": message}}),
    )
}

#[async_trait]
impl Transport for Memory {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        assert_eq!(request.headers()["authorization"], "Bearer test");
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        assert!(
            query.starts_with("api-version=") || path.starts_with("/operations/") || path.starts_with("/locations/"),
            "{path}?{query}"
        );
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let mut state = self.lock();
        let (status, headers, body) = state.answer(&method, &path, &query, body);
        let is_vm_put = method == Method::PUT && path.contains("/virtualMachines/") && !path.contains("/extensions/");
        if is_vm_put && state.lost > 0 {
            state.lost -= 1;
            return Err(TransportError("connection reset by peer".to_owned()));
        }
        let mut answer = Response::builder().status(status);
        for (name, value) in headers {
            answer = answer.header(name, value);
        }
        Ok(answer.body(Bytes::from(body.to_string())).unwrap())
    }
}

impl State {
    fn answer(&mut self, method: &Method, path: &str, query: &str, body: Value) -> Said {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        if let ("PATCH", [.., kind, name]) = (method.as_str(), parts.as_slice()) {
            self.changed.push((format!("{kind} {name}"), body.clone()));
        }
        match (method.as_str(), parts.as_slice()) {
            ("GET", ["operations", number]) => self.operation(number.parse().unwrap()),
            ("GET", ["locations", number]) => self.location(number.parse().unwrap()),
            ("POST", ["providers", "Microsoft.ResourceGraph", "resources"]) => self.graph(&body),
            ("GET", ["subscriptions", _, "providers", "Microsoft.Compute", "skus"]) => {
                assert_eq!(
                    query,
                    "api-version=2021-07-01&%24filter=location%20eq%20%27southcentralus%27"
                );
                let all: Value = serde_json::from_str(include_str!("../data/resource-skus.json")).unwrap();
                ok(all["southcentralus"].clone())
            }
            ("GET", [.., "usages"]) => ok(json!({"value": self.usages})),
            ("GET", [.., "communityGalleries", _, "images", _, "versions"]) => {
                let version =
                    |(name, date): &(&str, &str)| json!({"name": name, "properties": {"publishedDate": date}});
                ok(json!({"value": self.image_versions.iter().map(version).collect::<Vec<_>>()}))
            }
            (
                "GET",
                [
                    ..,
                    "Microsoft.ContainerService",
                    "locations",
                    "southcentralus",
                    "nodeImageVersions",
                ],
            ) => {
                let version =
                    |(os, sku, version): &(&str, &str, &str)| json!({"os": os, "sku": sku, "version": version});
                ok(json!({"value": self.shared_images.iter().map(version).collect::<Vec<_>>()}))
            }
            ("GET", ["api", "retail", "prices"]) => ok(json!({"Items": self.prices, "NextPageLink": null})),
            ("GET", [.., "Microsoft.Compute", "diskEncryptionSets", _]) => {
                let error = json!({"error": {"code": "AuthorizationFailed", "message": "no"}});
                (self.disk_encryption_set_status.unwrap_or(200), Vec::new(), error)
            }
            (
                method,
                [
                    _,
                    _,
                    _,
                    group,
                    _,
                    "Microsoft.Compute",
                    "virtualMachines",
                    name,
                    "extensions",
                    extension,
                ],
            ) => {
                assert_eq!(*group, GROUP);
                self.extension(method, name, extension, body)
            }
            (method, [_, _, _, group, _, "Microsoft.Compute", "virtualMachines", name]) => {
                assert_eq!(*group, GROUP);
                self.vm(method, name, query, body)
            }
            (method, [_, _, _, group, _, "Microsoft.Network", "networkInterfaces", name]) => {
                assert_eq!(*group, GROUP);
                self.nic(method, name, body)
            }
            ("GET", [.., "Microsoft.Network", "loadBalancers"]) => {
                let pool = |name: &&str| json!({"id": format!("/pools/{name}"), "name": name, "properties": {}});
                let pools: Vec<Value> = self.pools.iter().map(pool).collect();
                ok(
                    json!({"value": [{"name": "kubernetes", "properties": {"backendAddressPools": pools}},
                    {"name": "mine", "properties": {"backendAddressPools": [{"id": "/pools/mine", "name": "mine"}]}}]}),
                )
            }
            ("GET", [.., "Microsoft.Network", "networkSecurityGroups"]) => {
                let group = |name: &&str| json!({"id": format!("/nsgs/{name}"), "name": name});
                ok(json!({"value": self.security_groups.iter().map(group).collect::<Vec<_>>()}))
            }
            ("GET", [.., "virtualNetworks", _, "subnets", name]) => match self.subnet_status {
                None => ok(json!({"name": name})),
                Some(404) => not_found(name),
                Some(status) => (
                    status,
                    Vec::new(),
                    json!({"error": {"code": "Forbidden", "message": "no"}}),
                ),
            },
            ("GET", [.., "virtualNetworks", _]) => {
                ok(json!({"properties": {"resourceGuid": "00000000-0000-0000-0000-0000000000aa"}}))
            }
            _ => panic!("{method} {path}"),
        }
    }

    /// An operation that is over after a while.
    fn begin(&mut self, error: Option<Value>) -> Vec<(&'static str, String)> {
        self.next += 1;
        self.operations.insert(self.next, (Instant::now() + TAKES, error));
        vec![
            ("azure-asyncoperation", format!("{ENDPOINT}/operations/{}", self.next)),
            ("retry-after", "2".to_owned()),
        ]
    }

    fn operation(&mut self, number: u64) -> Said {
        let (over_at, error) = self.operations[&number].clone();
        ok(match error {
            _ if Instant::now() < over_at => json!({"status": "InProgress"}),
            None => json!({"status": "Succeeded"}),
            Some(error) => json!({"status": "Failed", "error": error}),
        })
    }

    /// The other style: 202 until it is over.
    fn location(&mut self, number: u64) -> Said {
        let over_at = self.operations[&number].0;
        let status = if Instant::now() < over_at { 202 } else { 204 };
        (status, Vec::new(), Value::Null)
    }

    fn vm(&mut self, method: &str, name: &str, query: &str, body: Value) -> Said {
        let now = Instant::now();
        match method {
            "GET" => match self.vms.get(name) {
                Some(vm) => ok(shown(vm, "Microsoft.Compute/virtualMachines", name)),
                None => not_found(name),
            },
            "PUT" => {
                self.asked.push(format!(
                    "{name} {} {:?}",
                    body["properties"]["hardwareProfile"]["vmSize"], body["zones"]
                ));
                if let Some(refusal) = self.refusals.pop_front() {
                    return refusal;
                }
                assert!(self.nics.contains_key(name), "{name} has no network interface");
                let late = self.late_errors.pop_front();
                if !self.vms.contains_key(name) {
                    let resource = Resource {
                        body: body.clone(),
                        ready_at: now + TAKES,
                        gone_at: None,
                        made_at: now,
                    };
                    self.vms.insert(name.to_owned(), resource);
                }
                let headers = self.begin(late);
                (201, headers, body)
            }
            "PATCH" => {
                let Some(vm) = self.vms.get_mut(name) else {
                    return not_found(name);
                };
                if body["tags"].is_object() {
                    vm.body["tags"] = body["tags"].clone();
                }
                if body["identity"].is_object() {
                    vm.body["identity"] = body["identity"].clone();
                }
                ok(body)
            }
            "DELETE" => {
                assert!(query.contains("&forceDeletion=true"), "{query}");
                let Some(vm) = self.vms.get_mut(name) else {
                    return not_found(name);
                };
                vm.gone_at.get_or_insert(now + TAKES);
                self.begin(None);
                (
                    202,
                    vec![("location", format!("{ENDPOINT}/locations/{}", self.next))],
                    Value::Null,
                )
            }
            _ => panic!("{method}"),
        }
    }

    fn nic(&mut self, method: &str, name: &str, body: Value) -> Said {
        let now = Instant::now();
        match method {
            "GET" => match self.nics.get(name) {
                Some(nic) => ok(shown(nic, "Microsoft.Network/networkInterfaces", name)),
                None => not_found(name),
            },
            "PUT" => {
                let pools =
                    body["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"].clone();
                let names = pools.as_array().cloned().unwrap_or_default();
                let gone = names.iter().find(|it| {
                    let id = it["id"].as_str().unwrap_or_default();
                    !self.pools.iter().any(|pool| id == format!("/pools/{pool}"))
                });
                if let Some(gone) = gone {
                    let message = format!("Resource {} referenced by resource was not found", gone["id"]);
                    return (
                        400,
                        Vec::new(),
                        json!({"error": {"code": "InvalidResourceReference", "message": message}}),
                    );
                }
                let resource = Resource {
                    body: body.clone(),
                    ready_at: now,
                    gone_at: None,
                    made_at: now,
                };
                self.nics.insert(name.to_owned(), resource);
                let headers = self.begin(None);
                (201, headers, body)
            }
            "PATCH" => {
                let Some(nic) = self.nics.get_mut(name) else {
                    return not_found(name);
                };
                nic.body["tags"] = body["tags"].clone();
                ok(body)
            }
            "DELETE" => {
                let Some(nic) = self.nics.get_mut(name) else {
                    return not_found(name);
                };
                if self.stuck_nics > 0 {
                    self.stuck_nics -= 1;
                    let error = json!({"error": {"code": "NicReservedForAnotherVm", "message": "180 seconds"}});
                    return (400, Vec::new(), error);
                }
                nic.gone_at.get_or_insert(now + TAKES);
                let headers = self.begin(None);
                (202, headers, Value::Null)
            }
            _ => panic!("{method}"),
        }
    }

    fn extension(&mut self, method: &str, vm: &str, name: &str, body: Value) -> Said {
        if !self.vms.contains_key(vm) {
            return not_found(vm);
        }
        let key = (vm.to_owned(), name.to_owned());
        match (method, self.extensions.get_mut(&key)) {
            ("PUT", _) => {
                self.extensions.insert(key, body.clone());
                ok(body)
            }
            (_, Some(extension)) => {
                extension["tags"] = body["tags"].clone();
                ok(body)
            }
            (_, None) => not_found(name),
        }
    }

    fn graph(&self, body: &Value) -> Said {
        assert_eq!(body["subscriptions"], json!([SUBSCRIPTION]));
        assert_eq!(body["options"]["resultFormat"], "objectArray");
        let query = body["query"].as_str().unwrap();
        assert!(query.contains("resourceGroup == \"mc_rg\""), "{query}");
        let (kind, all) = if query.contains("microsoft.compute/virtualmachines") {
            ("Microsoft.Compute/virtualMachines", &self.vms)
        } else {
            ("Microsoft.Network/networkInterfaces", &self.nics)
        };
        let now = Instant::now();
        let is_shown = |it: &Resource| {
            let is_new = self
                .hidden_until
                .is_some_and(|until| now < until && it.ready_at + TAKES > until - Duration::from_mins(10));
            it.body["tags"].get("karpenter.sh_nodepool").is_some() && !is_new
        };
        let rows = all.iter().filter(|(_, it)| is_shown(it)).map(|(name, it)| {
            let mut row = shown(it, kind, name);
            // Resource Graph does not keep the case of names.
            row["id"] = json!(id(kind, "mc_rg", &name.to_uppercase()));
            row
        });
        ok(json!({"data": rows.collect::<Vec<_>>(), "count": all.len()}))
    }
}

/// As Azure shows it.
fn shown(resource: &Resource, kind: &str, name: &str) -> Value {
    let now = Instant::now();
    let mut body = resource.body.clone();
    body["id"] = json!(id(kind, GROUP, name));
    body["name"] = json!(name);
    body["type"] = json!(kind);
    let state = match resource.gone_at {
        Some(_) => "Deleting",
        None if now < resource.ready_at => "Creating",
        None => "Succeeded",
    };
    body["properties"]["provisioningState"] = json!(state);
    let _ = resource.made_at;
    body["properties"]["timeCreated"] = json!("2026-11-17T10:00:00.1234567+00:00");
    if let Some(profile) = body["properties"].get_mut("osProfile") {
        // Secrets are not shown.
        profile.as_object_mut().unwrap().remove("customData");
    }
    body
}
