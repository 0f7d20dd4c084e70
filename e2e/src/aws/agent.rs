//! Who joins the cluster for a machine of moto's? An agent that does what nodeadm and kubelet do at the first boot: it reads
//! the user data, and registers a node with the labels and taints that it names. kwok plays its kubelet from then on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rig::Client;
use rig::moto::Moto;
use serde_json::{Map, Value, json};

use super::{CLUSTER, Look, Machine, REGION};

/// AWS says nobody that a machine runs: it is looked at.
const TICK: Duration = Duration::from_millis(100);

/// The agent; dropping it ends it.
pub(super) struct Agent {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    pub(super) fn start(client: Client, moto: Arc<Moto>) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut joined = BTreeSet::new();
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = join_all(&client, &moto, &mut joined) {
                    eprintln!("agent: {error:#}");
                }
            }
        });
        Self {
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Machines boot once: one whose node was removed does not come back.
fn join_all(client: &Client, moto: &Moto, joined: &mut BTreeSet<String>) -> Result<()> {
    let look: Look = serde_json::from_value(moto.look(REGION)?)?;
    for machine in look.running() {
        if !machine.user_data.is_empty() && !joined.contains(&machine.id) {
            client.post("/api/v1/nodes", &node(machine)?)?;
            joined.insert(machine.id.clone());
        }
    }
    Ok(())
}

/// The node as kubelet registers it.
fn node(machine: &Machine) -> Result<Value> {
    let config = node_config(&machine.user_data).with_context(|| format!("reading {}", machine.user_data))?;
    let cluster = &config["spec"]["cluster"];
    for field in ["apiServerEndpoint", "certificateAuthority", "cidr"] {
        ensure!(
            cluster[field].as_str().is_some_and(|it| !it.is_empty()),
            "nodeadm cannot join without {field}: {cluster}"
        );
    }
    ensure!(cluster["name"] == CLUSTER, "another cluster: {cluster}");
    let kubelet = &config["spec"]["kubelet"];
    let pods = kubelet["config"]["maxPods"].as_u64().context("no maxPods")?;
    let (capacity, allocatable) = resources(machine, pods);
    Ok(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": machine.dns, "labels": labels(machine, &kubelet["flags"])},
        "spec": {"providerID": machine.provider_id(), "taints": kubelet["config"]["registerWithTaints"]},
        "status": {"capacity": capacity, "allocatable": allocatable},
    }))
}

/// The labels of the user data, and those that kubelet and the cloud controller add.
fn labels(machine: &Machine, flags: &Value) -> Value {
    let arch = if machine.arch == "arm64" { "arm64" } else { "amd64" };
    let mut labels: Map<String, Value> = [
        ("kubernetes.io/hostname", machine.dns.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", arch),
        ("node.kubernetes.io/instance-type", machine.instance_type.as_str()),
        ("topology.kubernetes.io/zone", machine.zone.as_str()),
        ("topology.kubernetes.io/region", REGION),
        // Not an EKS node's: by it kwok knows whom it plays.
        ("kwok-partition", "a"),
    ]
    .map(|(key, value)| (key.to_owned(), json!(value)))
    .into_iter()
    .collect();
    let flags = flags.as_array().into_iter().flatten().filter_map(Value::as_str);
    for flag in flags.filter_map(|flag| flag.strip_prefix("--node-labels=")) {
        let pairs = flag
            .trim_matches('"')
            .split(',')
            .filter_map(|pair| pair.split_once('='));
        labels.extend(pairs.map(|(key, value)| (key.to_owned(), json!(value))));
    }
    Value::Object(labels)
}

/// What is there, and what pods get of it: kubelet's reserve on EKS's images grows with the number of pods, and the
/// hypervisor keeps a part of the memory that EC2 sells.
fn resources(machine: &Machine, pods: u64) -> (Value, Value) {
    let memory = machine.memory_mib * 95 / 100;
    let reserved = 255 + 11 * pods + 100;
    let of = |cpu: u64, memory: u64| {
        json!({
            "cpu": format!("{cpu}m"), "memory": format!("{memory}Mi"), "pods": pods.to_string(),
            "ephemeral-storage": "18Gi",
        })
    };
    let cpu = machine.vcpus * 1000;
    (
        of(cpu, memory),
        of(cpu - 60 - 5 * machine.vcpus, memory.saturating_sub(reserved)),
    )
}

/// The last part of the archive is the one that nodeadm lays over all others.
fn node_config(user_data: &str) -> Result<Value> {
    let parts = user_data
        .split("\n--")
        .filter(|part| part.contains("application/node.eks.aws"));
    let part = parts.last().context("no NodeConfig")?.replace('\r', "");
    let (_, body) = part.split_once("\n\n").context("a part without a body")?;
    Ok(serde_saphyr::from_str(body)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_config_is_found_behind_a_users_own_parts() {
        let archive = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\n\
                       Content-Type: text/x-shellscript\n\necho hello\n\n--//\n\
                       Content-Type: application/node.eks.aws\n\n# Karpenter\nkind: NodeConfig\nspec: {cluster: {name: a}}\n\n--//--\n";
        let config = node_config(archive).unwrap();
        assert_eq!(config["spec"]["cluster"]["name"], "a");
    }
}
