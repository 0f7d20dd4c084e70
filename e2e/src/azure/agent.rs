//! Who joins the cluster for a machine of the double's? An agent that does what AKS's provisioning scripts and kubelet do at
//! the first boot: it reads the custom data, and registers a node with the labels and taints that it names. kwok plays its
//! kubelet from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use arm::{Double, VmState};
use base64::{Engine, engine::general_purpose::STANDARD};
use rig::Client;
use serde_json::{Map, Value, json};

use super::{BOOTSTRAP_TOKEN, CERTIFICATE, ENDPOINT, provider_id};

/// Azure says nobody that a machine runs: it is looked at.
const TICK: Duration = Duration::from_millis(100);

/// The agent; dropping it ends it.
pub(super) struct Agent {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    pub(super) fn start(client: Client, azure: Arc<Double>) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut joined = BTreeSet::new();
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = join_all(&client, &azure, &mut joined) {
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
fn join_all(client: &Client, azure: &Double, joined: &mut BTreeSet<String>) -> Result<()> {
    for machine in azure.vms() {
        if machine.state == "Succeeded" && !joined.contains(&machine.name) {
            let node = node(&machine, &azure.setup().region).with_context(|| format!("{machine:?}"))?;
            client.post("/api/v1/nodes", &node)?;
            joined.insert(machine.name);
        }
    }
    Ok(())
}

/// The node as kubelet registers it.
fn node(machine: &VmState, region: &str) -> Result<Value> {
    if machine.machine {
        return node_of_aks(machine, region);
    }
    let data = machine.request["properties"]["osProfile"]["customData"].as_str();
    let script = STANDARD.decode(data.context("no custom data")?)?;
    let variables = variables(&String::from_utf8(script)?);
    let variable = |name: &str| variables.get(name).map_or("", String::as_str);
    let host = ENDPOINT.trim_start_matches("https://").trim_end_matches(":443");
    for (name, value) in [
        ("API_SERVER_NAME", host),
        ("KUBE_CA_CRT", CERTIFICATE),
        ("TLS_BOOTSTRAP_TOKEN", BOOTSTRAP_TOKEN),
        ("LOCATION", region),
    ] {
        ensure!(variable(name) == value, "{name} is {:?}", variable(name));
    }
    let flags = flags(variable("KUBELET_FLAGS"));
    let flag = |name: &str| flags.get(name).map_or("", String::as_str);
    let labels = labels(machine, region, variable("KUBELET_NODE_LABELS"));
    let (capacity, allocatable) = resources(&labels, &flags)?;
    Ok(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": machine.name, "labels": labels},
        "spec": {"providerID": provider_id(machine), "taints": taints(flag("--register-with-taints"))?},
        "status": {"capacity": capacity, "allocatable": allocatable, "nodeInfo": node_info(variable("KUBERNETES_VERSION"))},
    }))
}

/// The node of a machine of an agent pool: AKS knows how it boots, and says of it what it was told and what it decides.
fn node_of_aks(machine: &VmState, region: &str) -> Result<Value> {
    let told = &machine.machine_request["properties"]["kubernetes"];
    let given = told["nodeLabels"].as_object().cloned().unwrap_or_default();
    let is_aks = |key: &String| key.starts_with("kubernetes.azure.com/");
    ensure!(!given.keys().any(is_aks), "AKS sets these itself: {given:?}");
    let pairs = given
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    let mut labels = labels(machine, region, &pairs.collect::<Vec<_>>().join(","));
    labels.insert("kubernetes.azure.com/mode".to_owned(), json!("user"));
    let taints_told = told["nodeInitializationTaints"].as_array();
    let taints_told: Vec<&str> = taints_told.into_iter().flatten().filter_map(Value::as_str).collect();
    let pods = told["maxPods"].as_u64().unwrap_or(250).to_string();
    let reserved = [
        ("--max-pods", pods.as_str()),
        ("--kube-reserved", "cpu=100m,memory=1843Mi"),
    ];
    let (capacity, allocatable) = resources(
        &labels,
        &reserved.map(|(flag, value)| (flag.to_owned(), value.to_owned())).into(),
    )?;
    let version = told["orchestratorVersion"].as_str().context("no orchestratorVersion")?;
    Ok(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": machine.name, "labels": labels},
        "spec": {"providerID": provider_id(machine), "taints": taints(&taints_told.join(","))?},
        "status": {"capacity": capacity, "allocatable": allocatable, "nodeInfo": node_info(version)},
    }))
}

/// What kubelet says of itself: a node of another version than the cluster's would be replaced.
fn node_info(version: &str) -> Value {
    json!({
        "kubeletVersion": format!("v{version}"), "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "",
        "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "", "containerRuntimeVersion": "",
    })
}

/// What a script sets for those that it calls.
fn variables(script: &str) -> BTreeMap<String, String> {
    let pairs = script.lines().filter_map(|line| line.split_once("=\""));
    let pairs = pairs.filter_map(|(name, value)| Some((name, value.strip_suffix('"')?)));
    pairs
        .map(|(name, value)| (name.to_owned(), value.replace('\\', "")))
        .collect()
}

fn flags(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split(' ').filter_map(|flag| flag.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// `key=value:effect` or `key:effect`, with commas between.
fn taints(text: &str) -> Result<Vec<Value>> {
    let each = text.split(',').filter(|taint| !taint.is_empty()).map(|taint| {
        let (what, effect) = taint.rsplit_once(':').context("a taint without an effect")?;
        let (key, value) = what.split_once('=').unwrap_or((what, ""));
        Ok(json!({"key": key, "value": value, "effect": effect}))
    });
    each.collect()
}

/// The labels of the custom data, and those that kubelet and the cloud's node manager add.
fn labels(machine: &VmState, region: &str, text: &str) -> Map<String, Value> {
    let zone = machine
        .zone
        .as_ref()
        .map_or("0".to_owned(), |zone| format!("{region}-{zone}"));
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let mut labels: Map<String, Value> = pairs.map(|(key, value)| (key.to_owned(), json!(value))).collect();
    let own = [
        ("kubernetes.io/hostname", machine.name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("node.kubernetes.io/instance-type", machine.size.as_str()),
        ("topology.kubernetes.io/zone", zone.as_str()),
        ("topology.kubernetes.io/region", region),
        // Not an AKS node's: by it kwok knows whom it plays.
        ("kwok-partition", "a"),
    ];
    labels.extend(own.map(|(key, value)| (key.to_owned(), json!(value))));
    labels
}

/// What is there, and what kubelet leaves of it to pods. The hypervisor keeps a part of the memory that Azure sells.
fn resources(labels: &Map<String, Value>, flags: &BTreeMap<String, String>) -> Result<(Value, Value)> {
    let number = |key: &str| -> Result<u64> {
        let value = labels.get(key).and_then(Value::as_str);
        Ok(value.with_context(|| format!("no label {key}"))?.parse()?)
    };
    let (cpu, memory) = (
        1000 * number("karpenter.azure.com/sku-cpu")?,
        number("karpenter.azure.com/sku-memory")? * 95 / 100,
    );
    let pods = flags.get("--max-pods").context("no --max-pods")?;
    let kept = flags.get("--kube-reserved").context("no --kube-reserved")?;
    let kept: BTreeMap<&str, &str> = kept.split(',').filter_map(|pair| pair.split_once('=')).collect();
    let kept = |name: &str, unit: &str| -> Result<u64> {
        let amount = kept.get(name).with_context(|| format!("nothing reserved of {name}"))?;
        let number = amount.strip_suffix(unit);
        Ok(number.with_context(|| format!("{name}={amount}"))?.parse()?)
    };
    let of = |cpu: u64, memory: u64| {
        json!({
            "cpu": format!("{cpu}m"), "memory": format!("{memory}Mi"), "pods": pods, "ephemeral-storage": "100Gi",
        })
    };
    let (cpu_left, memory_left) = (cpu - kept("cpu", "m")?, memory - kept("memory", "Mi")? - 100);
    Ok((of(cpu, memory), of(cpu_left, memory_left)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_flags_and_taints_are_read_as_a_shell_and_kubelet_read_them() {
        let read = variables("set -o allexport\nA=\"b \\\"c\\\"\"\nFLAGS=\"--x=1 --y=a=b:NoSchedule,c:NoExecute\"\n");
        assert_eq!(read["A"], "b \"c\"");
        let flags = flags(&read["FLAGS"]);
        assert_eq!(flags["--x"], "1");
        let taints = taints(&flags["--y"]).unwrap();
        assert_eq!(taints[0], json!({"key": "a", "value": "b", "effect": "NoSchedule"}));
        assert_eq!(taints[1], json!({"key": "c", "value": "", "effect": "NoExecute"}));
    }
}
