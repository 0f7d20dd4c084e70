//! How is our binary run on AKS as far as this machine can play it: a real control plane, the double of Resource Manager,
//! and machines that join as nodes?

mod agent;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use arm::knob::{Knob, Reset, TokenRule};
use arm::{Double, Setup, VmState};
use rig::client::Seen;
use rig::{Client, Cluster, Process};
use serde_json::{Value, json};

use self::agent::Agent;
use crate::autoscaler::{
    LIMIT, apply_manifest, apply_role, await_all_ready, await_lead, bare_cluster, claims, forget_leader, nodes, start,
};
use crate::crd_set::CrdSet;

/// The operation that makes a machine of an agent pool.
pub const PUT_MACHINE: &str = "Machines_CreateOrUpdate";
/// The operation that makes a virtual machine.
pub const PUT_VM: &str = "VirtualMachines_CreateOrUpdate";
/// How long a controller may take to stop.
pub const GRACE: Duration = Duration::from_secs(20);
/// What nodes join with.
const BOOTSTRAP_TOKEN: &str = "abcdef.0123456789abcdef";
const ENDPOINT: &str = "https://dovetail.hcp.example:443";
const CERTIFICATE: &str = "Y2VydGlmaWNhdGU=";
const CLASSES: &str = "/apis/karpenter.azure.com/v1beta1/aksnodeclasses";
const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
/// What is remembered of Azure beside the Lease.
const KNOWN: &str = "/api/v1/namespaces/kube-system/configmaps/dovetail-azure-known";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A cluster and an Azure.
pub struct World {
    /// The control plane.
    pub cluster: Cluster,
    /// Azure.
    pub azure: Arc<Double>,
    /// What a service account's token is exchanged from.
    token_file: PathBuf,
    _agent: Agent,
}

/// Starts a double on a thread of its own.
fn start_azure() -> Result<Double> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let setup = Setup {
        // Azure keeps the interface of a machine that it could not allocate for three minutes; the sweep that takes it
        // afterwards is shown where time is the test's (cloud-azure, tests/double).
        reserved_seconds: 0,
        ..Setup::default()
    };
    let double = runtime.block_on(Double::start(setup))?;
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    let only_issued = TokenRule {
        only_issued: Some(true),
        ..TokenRule::default()
    };
    double.turn(Knob::Token(only_issued))?;
    Ok(double)
}

impl World {
    /// The one of this process, for one journey at a time. It dies with the process.
    pub fn alone() -> Result<MutexGuard<'static, Self>> {
        static WORLD: OnceLock<Result<Mutex<World>, String>> = OnceLock::new();
        let world = WORLD.get_or_init(|| Self::start().map(Mutex::new).map_err(|error| format!("{error:#}")));
        match world {
            // A journey that failed leaves its traces, and the next one says so if they disturb it.
            Ok(world) => Ok(world.lock().unwrap_or_else(PoisonError::into_inner)),
            Err(error) => Err(anyhow!("{error}")),
        }
    }

    fn start() -> Result<Self> {
        let cluster = bare_cluster()?;
        let client = cluster.client();
        client.install_crd(&CrdSet::Azure.ours()?)?;
        apply_role(client)?;
        apply_manifest(client, "deploy/rbac-azure.yaml")?;
        let token_file = cluster.logs().join("federated-token");
        fs::write(&token_file, "a service account's token")?;
        let azure = Arc::new(start_azure()?);
        Ok(Self {
            _agent: Agent::start(client.clone(), Arc::clone(&azure)),
            token_file,
            azure,
            cluster,
        })
    }

    /// The administrator's connection.
    pub fn client(&self) -> &Client {
        self.cluster.client()
    }

    /// Starts our binary as the roles it ships with allow, as Karpenter's Deployment for AKS starts Karpenter, with
    /// workload identity.
    pub fn controller(&self, name: &str) -> Result<Process> {
        self.controller_with(name, &[])
    }

    /// The same, where AKS makes the machines in one of its modes.
    pub fn controller_of_aks(&self, name: &str, mode: &str) -> Result<Process> {
        let setup = self.azure.setup();
        let more = [
            ("PROVISION_MODE", mode),
            ("USE_SIG", "true"),
            ("SIG_SUBSCRIPTION_ID", &setup.subscription),
            ("AKS_MACHINES_POOL_NAME", &setup.pool),
        ];
        self.controller_with(name, &more)
    }

    fn controller_with(&self, name: &str, more: &[(&str, &str)]) -> Result<Process> {
        let setup = self.azure.setup();
        let (kubeconfig, token_file) = (self.cluster.account_kubeconfig(), self.token_file.to_string_lossy());
        let (url, subnet) = (self.azure.url(), setup.subnet_id());
        let settings = [
            ("KUBECONFIG", &*kubeconfig.to_string_lossy()),
            ("CLUSTER_NAME", &setup.cluster),
            ("CLUSTER_ENDPOINT", ENDPOINT),
            ("CLUSTER_CA_BUNDLE", CERTIFICATE),
            ("KUBELET_BOOTSTRAP_TOKEN", BOOTSTRAP_TOKEN),
            ("SSH_PUBLIC_KEY", "ssh-rsa AAAA"),
            ("VNET_SUBNET_ID", &subnet),
            ("AZURE_NODE_RESOURCE_GROUP", &setup.node_group),
            ("ARM_SUBSCRIPTION_ID", &setup.subscription),
            ("ARM_RESOURCE_GROUP", &setup.cluster_group),
            ("LOCATION", &setup.region),
            ("AZURE_TENANT_ID", &setup.tenant),
            ("AZURE_CLIENT_ID", "22222222-3333-4444-5555-666666666666"),
            ("AZURE_FEDERATED_TOKEN_FILE", &*token_file),
            ("AZURE_AUTHORITY_HOST", &url),
            ("ARM_ENDPOINT", &url),
            ("AZURE_PRICING_ENDPOINT", &url),
        ];
        forget_leader(self.client())?;
        let process = start(&self.cluster, name, &[&settings, more].concat())?;
        await_lead(self.client(), process)
    }

    /// Waits until Azure has something.
    pub fn await_azure<T>(&self, what: &str, mut seen: impl FnMut(&Double) -> Option<T>) -> Result<T> {
        Ok(self.client().wait_for(what, LIMIT, |_| {
            let found = seen(&self.azure);
            Ok(found.map_or_else(|| Seen::NotYet(brief(&self.azure)), Seen::Done))
        })?)
    }

    /// A pool of these sizes and kinds of capacity, and the class of `examples/azure` for it.
    pub fn apply_pool(&self, name: &str, capacity_types: &[&str], sizes: &[&str]) -> Result<()> {
        self.apply_example("nodeclass.yaml")?;
        let pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {
                "disruption": {"consolidateAfter": "Never"},
                "template": {"spec": {
                    "nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"},
                    "requirements": [
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity_types},
                        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": sizes},
                    ],
                }},
            },
        });
        self.client().apply(&format!("{POOLS}/{name}"), &pool)?;
        self.await_pools(&[name])
    }

    /// Applies a manifest of `examples/azure` as it is.
    pub fn apply_example(&self, file: &str) -> Result<()> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../examples/azure")
            .join(file);
        let yaml = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        for object in rig::manifest::documents(file, &yaml)? {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let collection = match object["kind"].as_str() {
                Some("AKSNodeClass") => CLASSES,
                Some("NodePool") => POOLS,
                Some("Deployment") => DEPLOYMENTS,
                Some("PodDisruptionBudget") => BUDGETS,
                other => anyhow::bail!("{file} has a {other:?}"),
            };
            self.client().apply(&format!("{collection}/{name}"), &object)?;
        }
        Ok(())
    }

    /// Waits until the class and pools are ready.
    pub fn await_pools(&self, names: &[&str]) -> Result<()> {
        let pools = names.iter().map(|name| format!("{POOLS}/{name}"));
        let all: Vec<String> = [format!("{CLASSES}/default")].into_iter().chain(pools).collect();
        await_all_ready(self.client(), &all)
    }

    /// Lets a Deployment have so many pods.
    pub fn scale(&self, deployment: &str, replicas: u64) -> Result<()> {
        let patch = json!({"spec": {"replicas": replicas}});
        self.client().patch(&format!("{DEPLOYMENTS}/{deployment}"), &patch)?;
        Ok(())
    }

    /// Deletes Deployments, pools and the class at once, as `kubectl delete -f` does.
    pub fn delete_all(&self) -> Result<()> {
        for collection in [DEPLOYMENTS, BUDGETS, POOLS, CLASSES] {
            self.client().delete(collection)?;
        }
        Ok(())
    }

    /// Takes all faults back, deletes everything that is still there, and waits until nothing is left.
    pub fn clear(&self) -> Result<()> {
        self.azure.turn(Knob::Reset(Reset {}))?;
        self.delete_all()?;
        // Pools would take them along, later.
        self.client().delete(CLAIMS)?;
        self.await_nothing_left()
    }

    /// Waits until neither the cluster nor Azure holds anything of pools, class and claims.
    pub fn await_nothing_left(&self) -> Result<()> {
        self.client().wait_for("nothing being left", LIMIT, |client| {
            let classes = client.get(CLASSES)?.unwrap_or_default();
            let classes = classes["items"].as_array().map_or(0, Vec::len);
            let (claims, nodes) = (
                claims(client).map_or(1, |it| it.len()),
                nodes(client).map_or(1, |it| it.len()),
            );
            let azure = &self.azure;
            let is_clear = azure.vms().is_empty() && azure.nics().is_empty() && azure.disks().is_empty();
            Ok(if classes + claims + nodes == 0 && is_clear {
                Seen::Done(())
            } else {
                let left = brief(azure);
                Seen::NotYet(format!("{classes} classes, {claims} claims, {nodes} nodes; {left}"))
            })
        })?;
        Ok(())
    }

    /// Lets the next journey begin without what the controllers of this one have learnt: they must have ended.
    pub fn forget(&self) -> Result<()> {
        Ok(self.client().delete(KNOWN)?)
    }

    /// Waits until every claim has one machine and one node, and says which; every machine has one interface and one disk,
    /// and none is left over.
    pub fn await_one_machine_per_claim(&self) -> Result<Vec<VmState>> {
        let machines = self.client().wait_for("one machine for each claim", LIMIT, |client| {
            let (machines, claims, nodes) = (self.azure.vms(), claims(client), nodes(client));
            let (Ok(claims), Ok(nodes)) = (claims, nodes) else {
                return Ok(Seen::NotYet("no answer".to_owned()));
            };
            let ids = [
                sorted(machines.iter().map(provider_id)),
                sorted(claims.iter().map(|it| text(&it["status"]["providerID"]))),
                sorted(nodes.iter().map(|it| text(&it["spec"]["providerID"]))),
            ];
            Ok(if !machines.is_empty() && ids.iter().all(|it| *it == ids[0]) {
                Seen::Done(machines)
            } else {
                Seen::NotYet(format!("machines, claims and nodes {ids:?}"))
            })
        })?;
        let uids = sorted(
            machines
                .iter()
                .map(|it| tag(it, "dovetail.dev_nodeclaim-uid").to_owned()),
        );
        ensure!(
            uids.windows(2).all(|pair| pair[0] != pair[1]),
            "two machines of a claim: {machines:?}"
        );
        let (nics, disks, left) = (self.azure.nics(), self.azure.disks(), self.azure.leftovers());
        // What AKS makes beside a machine is its own affair.
        let ours = machines.iter().filter(|it| !it.machine).count();
        ensure!(
            nics.len() == ours && disks.len() == ours && left.is_empty(),
            "{}",
            brief(&self.azure)
        );
        Ok(machines)
    }
}

/// What a double holds, in few words.
fn brief(azure: &Double) -> String {
    let vm = |it: VmState| {
        let zone = it.zone.unwrap_or_else(|| "no zone".to_owned());
        format!("{} {} {} {zone} {}", it.name, it.size, it.capacity, it.state)
    };
    let vms: Vec<String> = azure.vms().into_iter().map(vm).collect();
    let (nics, disks, left) = (azure.nics().len(), azure.disks().len(), azure.leftovers());
    format!("{vms:?}, {nics} interfaces, {disks} disks, left over {left:?}")
}

/// A machine as nodes and claims name it: the kubelet's cloud code writes the resource group in lower case.
pub fn provider_id(machine: &VmState) -> String {
    let parts: Vec<String> = machine
        .id
        .split('/')
        .enumerate()
        .map(|(at, part)| if at == 4 { part.to_lowercase() } else { part.to_owned() })
        .collect();
    format!("azure://{}", parts.join("/"))
}

/// A tag's value; empty when it has no such tag.
pub fn tag<'a>(machine: &'a VmState, key: &str) -> &'a str {
    machine.tags.get(key).map_or("", String::as_str)
}

fn sorted(ids: impl Iterator<Item = String>) -> Vec<String> {
    let mut ids: Vec<String> = ids.collect();
    ids.sort();
    ids
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
