//! How is our binary run on EKS as far as this machine can play it: a real control plane, moto as AWS, and machines that
//! join as nodes?

mod agent;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use rig::client::Seen;
use rig::moto::Moto;
use rig::{Client, Cluster, Process};
use serde::Deserialize;
use serde_json::{Value, json};

use self::agent::Agent;
use crate::autoscaler::{
    self, LIMIT, apply_manifest, apply_placed, apply_role, await_all_ready, await_lead, bare_cluster, claims,
    forget_leader, nodes, start,
};
use crate::crd_set::CrdSet;

/// Where it all happens.
pub const REGION: &str = "us-west-2";
/// The cluster's name, and its queue's, as the user's document has them.
pub const CLUSTER: &str = "eks-cluster-dev";
/// The release of images that `examples/aws` asks for.
const RELEASE: &str = "v20261110";
const CLASSES: &str = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses";
const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
/// What spot costs, in every zone: nothing else is sold as spot.
const SPOT: [(&str, f64); 10] = [
    ("c5.large", 0.0336),
    ("c5.xlarge", 0.0672),
    ("c5.2xlarge", 0.1344),
    ("m5.large", 0.0384),
    ("m5.xlarge", 0.0768),
    ("m5.2xlarge", 0.1536),
    ("m6g.large", 0.0308),
    ("m6g.xlarge", 0.0616),
    ("r5.large", 0.0504),
    ("r6g.large", 0.0403),
];
const ZONES: [&str; 4] = ["us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"];

/// A cluster and an AWS.
pub struct World {
    /// The control plane.
    pub cluster: Cluster,
    /// AWS.
    pub moto: Arc<Moto>,
    _agent: Agent,
}

/// What moto has.
#[derive(Debug, Clone, Deserialize)]
pub struct Look {
    /// How often CreateFleet was asked for.
    pub fleets: u64,
    /// How many of these requests are held.
    pub held: u64,
    /// Every machine, those that are gone too.
    pub instances: Vec<Machine>,
    /// The launch templates.
    pub templates: Vec<Template>,
    /// The instance profiles.
    pub profiles: Vec<Profile>,
    /// How many messages each queue holds.
    pub messages: BTreeMap<String, u64>,
}

impl Look {
    /// In few words.
    pub fn brief(&self) -> String {
        let machine = |it: &Machine| {
            let kind = if it.spot { "spot" } else { "on-demand" };
            format!("{} {} {kind} {} {}", it.id, it.instance_type, it.zone, it.state)
        };
        let machines: Vec<String> = self.instances.iter().map(machine).collect();
        format!(
            "{} fleets, {} held, {} templates, {} profiles, messages {:?}, {machines:?}",
            self.fleets,
            self.held,
            self.templates.len(),
            self.profiles.len(),
            self.messages
        )
    }

    /// The machines that run.
    pub fn running(&self) -> impl Iterator<Item = &Machine> {
        self.instances.iter().filter(|it| it.is_running())
    }

    /// A machine by its ID.
    pub fn machine(&self, id: &str) -> Option<&Machine> {
        self.instances.iter().find(|it| it.id == id)
    }
}

/// A machine.
#[derive(Debug, Clone, Deserialize)]
pub struct Machine {
    /// `i-…`
    pub id: String,
    /// `running`, `terminated`, …
    pub state: String,
    /// Its type.
    #[serde(rename = "type")]
    pub instance_type: String,
    /// Its zone.
    pub zone: String,
    /// Whether it is a spot instance.
    pub spot: bool,
    /// Its private DNS name.
    pub dns: String,
    /// What it booted from.
    pub image: String,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// The launch template it was launched from.
    pub template: String,
    /// The instance profile of that template.
    pub profile: String,
    /// What it was told at its first boot.
    pub user_data: String,
    /// Its CPUs.
    pub vcpus: u64,
    /// Its memory.
    pub memory_mib: u64,
    /// `x86_64` or `arm64`.
    pub arch: String,
}

impl Machine {
    fn is_running(&self) -> bool {
        self.state == "running"
    }

    /// As nodes and claims name it.
    pub fn provider_id(&self) -> String {
        format!("aws:///{}/{}", self.zone, self.id)
    }

    /// A tag's value; empty when it has no such tag.
    pub fn tag(&self, key: &str) -> &str {
        self.tags.get(key).map_or("", String::as_str)
    }
}

/// A launch template.
#[derive(Debug, Clone, Deserialize)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// An instance profile.
#[derive(Debug, Clone, Deserialize)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Its path.
    pub path: String,
    /// The roles in it.
    pub roles: Vec<String>,
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
        let aws = std::thread::spawn(|| -> rig::Result<Moto> {
            let moto = Moto::start()?;
            moto.seed(REGION, CLUSTER, RELEASE)?;
            moto.control(REGION, "spot-prices", &spot_prices())?;
            moto.control(REGION, "prices", &on_demand_prices())?;
            Ok(moto)
        });
        let cluster = bare_cluster()?;
        let client = cluster.client();
        client.install_crd(&CrdSet::Aws.ours()?)?;
        apply_role(client)?;
        apply_manifest(client, "deploy/rbac-aws.yaml")?;
        let moto = aws.join().map_err(|_| anyhow!("moto's thread panicked"))??;
        let moto = Arc::new(moto);
        Ok(Self {
            _agent: Agent::start(client.clone(), Arc::clone(&moto)),
            moto,
            cluster,
        })
    }

    /// The administrator's connection.
    pub fn client(&self) -> &Client {
        self.cluster.client()
    }

    /// Starts our binary as the role it ships with allows, as Karpenter's Deployment for EKS starts Karpenter.
    pub fn controller(&self, name: &str, settings: &[(&str, &str)]) -> Result<Process> {
        let kubeconfig = self.cluster.account_kubeconfig();
        let kubeconfig = kubeconfig.to_string_lossy();
        let mut all = vec![
            ("KUBECONFIG", &*kubeconfig),
            ("CLUSTER_NAME", CLUSTER),
            ("INTERRUPTION_QUEUE", CLUSTER),
            ("AWS_REGION", REGION),
            ("AWS_ENDPOINT_URL", self.moto.url()),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
        ];
        all.extend_from_slice(settings);
        forget_leader(self.client())?;
        let process = start(&self.cluster, name, &all)?;
        await_lead(self.client(), process)
    }

    /// What moto has now.
    pub fn look(&self) -> Result<Look> {
        serde_json::from_value(self.moto.look(REGION)?).context("reading what moto has")
    }

    /// Waits until moto has something.
    pub fn await_aws<T>(&self, what: &str, mut seen: impl FnMut(&Look) -> Option<T>) -> Result<T> {
        Ok(self.client().wait_for(what, LIMIT, |_| {
            let look = self.look();
            let found = look.as_ref().ok().and_then(&mut seen);
            let brief = || look.as_ref().map_or_else(ToString::to_string, Look::brief);
            Ok(found.map_or_else(|| Seen::NotYet(brief()), Seen::Done))
        })?)
    }

    /// Tells moto what goes wrong from now on.
    pub fn fault(&self, what: &str, value: &Value) -> Result<()> {
        Ok(self.moto.control(REGION, what, value)?)
    }

    /// A pool of spot and on-demand machines of these types, and the class of `examples/aws` for it.
    pub fn apply_pool(&self, name: &str, capacity_types: &[&str], types: &[&str]) -> Result<()> {
        self.apply_example("nodeclass.yaml")?;
        let pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {
                "disruption": {"consolidateAfter": "Never"},
                "template": {"spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "requirements": [
                        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"]},
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity_types},
                        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types},
                    ],
                }},
            },
        });
        self.client().apply(&format!("{POOLS}/{name}"), &pool)?;
        Ok(())
    }

    /// Applies a manifest of `examples/aws` as it is.
    pub fn apply_example(&self, file: &str) -> Result<()> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/aws").join(file);
        let yaml = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        for object in rig::manifest::documents(file, &yaml)? {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let collection = if object["kind"] == "EC2NodeClass" {
                CLASSES
            } else {
                POOLS
            };
            self.client().apply(&format!("{collection}/{name}"), &object)?;
        }
        Ok(())
    }

    /// Waits until the class and a pool are ready.
    pub fn await_pool(&self, name: &str) -> Result<()> {
        let paths = [format!("{CLASSES}/default"), format!("{POOLS}/{name}")];
        await_all_ready(self.client(), &paths)
    }

    /// The class.
    pub fn class(&self) -> Result<Value> {
        Ok(self.client().get(&format!("{CLASSES}/default"))?.unwrap_or_default())
    }

    /// Deletes Deployments, pools and the class at once, as `kubectl delete -f` does, and waits until neither the cluster
    /// nor AWS holds anything of them.
    pub fn clear(&self) -> Result<()> {
        for collection in [DEPLOYMENTS, BUDGETS, POOLS, CLASSES] {
            self.client().delete(collection)?;
        }
        self.await_nothing_left()
    }

    fn await_nothing_left(&self) -> Result<()> {
        self.client().wait_for("nothing being left", LIMIT, |client| {
            let look = self.look();
            let count = |list: &Value| list["items"].as_array().map_or(0, Vec::len);
            let classes = count(&client.get(CLASSES)?.unwrap_or_default());
            let (claims, nodes) = (
                claims(client).map_or(1, |it| it.len()),
                nodes(client).map_or(1, |it| it.len()),
            );
            let is_clear =
                |look: &Look| look.running().count() == 0 && look.templates.is_empty() && look.profiles.is_empty();
            Ok(if classes + claims + nodes == 0 && look.as_ref().is_ok_and(is_clear) {
                Seen::Done(())
            } else {
                let left = look.map(|look| (look.running().count(), look.templates, look.profiles));
                Seen::NotYet(format!(
                    "{classes} classes, {claims} claims, {nodes} nodes; instances, templates, profiles {left:?}"
                ))
            })
        })?;
        Ok(())
    }

    /// Waits until every claim has one machine and one node, and says which; fails when a machine was launched for a
    /// claim beside it.
    pub fn await_one_machine_per_claim(&self, pool: &str) -> Result<Vec<Machine>> {
        let machines = self.client().wait_for("one machine for each claim", LIMIT, |client| {
            let (look, claims, nodes) = (self.look(), claims(client), nodes(client));
            let (Ok(look), Ok(claims), Ok(nodes)) = (look, claims, nodes) else {
                return Ok(Seen::NotYet("no answer".to_owned()));
            };
            let machines: Vec<Machine> = look.running().filter(|it| it.is_of(pool)).cloned().collect();
            let ids = [
                sorted(machines.iter().map(Machine::provider_id)),
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
                .map(|it| it.tag("dovetail.dev/nodeclaim-uid").to_owned()),
        );
        ensure!(
            uids.windows(2).all(|pair| pair[0] != pair[1]),
            "two machines of a claim: {machines:?}"
        );
        Ok(machines)
    }

    /// Waits for an event with a reason whose message contains words, and returns the message.
    pub fn await_event(&self, reason: &str, words: &str) -> Result<String> {
        autoscaler::await_event(self.client(), reason, words)
    }

    /// A Deployment whose pods share a node with no other pod of such a Deployment.
    pub fn apply_spread(&self, name: &str, replicas: u64) -> Result<()> {
        autoscaler::apply_spread(self.client(), name, replicas)
    }

    /// A Deployment whose pods go where they fit.
    pub fn apply_packed(&self, name: &str, replicas: u64) -> Result<()> {
        apply_placed(self.client(), name, replicas, &json!({}))
    }

    /// Lets no more than one pod of a Deployment be away at a time.
    pub fn protect(&self, deployment: &str) -> Result<()> {
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": deployment},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": deployment}}},
        });
        self.client().apply(&format!("{BUDGETS}/{deployment}"), &budget)?;
        Ok(())
    }

    /// The end of a controller's log in the error, if there is one: its files go with the cluster.
    pub fn told<T>(&self, controller: &Process, result: Result<T>) -> Result<T> {
        autoscaler::told(controller, result)
    }
}

impl Machine {
    fn is_of(&self, pool: &str) -> bool {
        self.tag("karpenter.sh/nodepool") == pool
    }
}

/// How long a controller may take to stop.
pub const GRACE: Duration = Duration::from_secs(20);

fn spot_prices() -> Value {
    let zones = |price: f64| -> Value { ZONES.iter().map(|zone| ((*zone).to_owned(), json!(price))).collect() };
    SPOT.iter()
        .map(|(name, price)| ((*name).to_owned(), zones(*price)))
        .collect()
}

/// What on-demand costs: twice as much. A bare metal type must be among them, since AWS is asked for these apart.
fn on_demand_prices() -> Value {
    let all = SPOT.iter().chain(&[("m5.metal", 2.304)]);
    all.map(|(name, price)| ((*name).to_owned(), json!(2.0 * price)))
        .collect()
}

fn sorted(ids: impl Iterator<Item = String>) -> Vec<String> {
    let mut ids: Vec<String> = ids.collect();
    ids.sort();
    ids
}

/// A text, empty when there is none.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
