//! What does `kubectl get -o json` print of a large cluster? Made up, seeded, with all the fields that decisions do not read:
//! a reader is as slow as the text is long.
//!
//! The cluster runs on EKS: four NodePools, nodes of a dozen types that are mostly full, four DaemonSets, Deployments of some
//! hundred replicas, budgets of pods, and a few pods that wait, each kind of them for a reason of its own.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json, ser::PrettyFormatter};

use crate::rng::Rng;

/// How large.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Nodes.
    pub nodes: usize,
    /// Pods, those of DaemonSets and those that wait included.
    pub pods: usize,
    /// Which of such clusters.
    pub seed: u64,
}

/// A type of machine: name, cores, MiB, architecture.
type Machine = (&'static str, u64, u64, &'static str);

const MACHINES: [Machine; 12] = [
    ("m6i.2xlarge", 8, 30_310, "amd64"),
    ("m7g.2xlarge", 8, 30_310, "arm64"),
    ("m7g.4xlarge", 16, 60_620, "arm64"),
    ("m6i.4xlarge", 16, 60_620, "amd64"),
    ("c6a.4xlarge", 16, 30_310, "amd64"),
    ("c7g.4xlarge", 16, 30_310, "arm64"),
    ("c6i.8xlarge", 32, 60_620, "amd64"),
    ("m6a.4xlarge", 16, 60_620, "amd64"),
    ("r6i.2xlarge", 8, 60_620, "amd64"),
    ("r6i.4xlarge", 16, 121_241, "amd64"),
    ("r7g.2xlarge", 8, 60_620, "arm64"),
    ("m7i.4xlarge", 16, 60_620, "amd64"),
];

/// Name, taint, policy, share of the nodes in percent, share of spot in percent.
const POOLS: [(&str, Option<&str>, &str, usize, u64); 4] = [
    ("general", None, "Balanced", 60, 80),
    ("batch", Some("batch"), "WhenEmptyOrUnderutilized", 20, 100),
    ("data", Some("data"), "WhenEmpty", 15, 0),
    ("web", None, "WhenEmptyOrUnderutilized", 5, 50),
];

const DAEMONS: [(&str, &str, u64, u64); 4] = [
    ("kube-system", "aws-node", 50, 64),
    ("kube-system", "kube-proxy", 100, 64),
    ("kube-system", "ebs-csi-node", 30, 120),
    ("observability", "otel-agent", 100, 256),
];

const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];
/// When it was printed.
pub const TAKEN_AT: &str = "2026-11-16T15:42:00Z";

/// Pods of one workload: pool, millicores, MiB.
struct Workload {
    namespace: String,
    name: String,
    hash: String,
    pool: usize,
    cpu_m: u64,
    memory_mib: u64,
}

struct Node {
    name: String,
    claim: String,
    pool: usize,
    machine: Machine,
    zone: &'static str,
    capacity_type: &'static str,
    cpu_m_left: u64,
    memory_left: u64,
}

/// A pod that is going to be printed.
struct Planned {
    namespace: String,
    name: String,
    owner_kind: &'static str,
    owner: String,
    tolerates: Option<&'static str>,
    selects: Option<(&'static str, &'static str)>,
    /// The name of its node.
    node: Option<String>,
    cpu_m: u64,
    memory_mib: u64,
}

/// The objects, one by one, in the order kubectl prints them.
struct Printer<'w, W: Write> {
    out: &'w mut W,
    is_first: bool,
}

impl<W: Write> Printer<'_, W> {
    fn object(&mut self, object: &Value) -> io::Result<()> {
        let start: &[u8] = if self.is_first { b"\n        " } else { b",\n        " };
        self.is_first = false;
        self.out.write_all(start)?;
        // Within the list the object is indented by two steps more than alone.
        let mut text = Vec::new();
        let formatter = PrettyFormatter::with_indent(b"    ");
        object
            .serialize(&mut serde_json::Serializer::with_formatter(&mut text, formatter))
            .map_err(io::Error::other)?;
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if at > 0 {
                self.out.write_all(b"\n        ")?;
            }
            self.out.write_all(line)?;
        }
        Ok(())
    }
}

/// Writes the list. Returns a pod that waits for ever, and a node with pods on it.
pub fn write(out: &mut impl Write, size: Size) -> io::Result<(String, String)> {
    let mut rng = Rng::new(size.seed);
    out.write_all(b"{\n    \"apiVersion\": \"v1\",\n    \"items\": [")?;
    let mut printer = Printer { out, is_first: true };
    let mut nodes: Vec<Node> = (0..size.nodes).map(|at| node(at, size.nodes, &mut rng)).collect();
    for pool in POOLS {
        printer.object(&node_pool(pool))?;
    }
    printer.object(&node_class())?;
    for node in &nodes {
        printer.object(&node_object(node, &mut rng))?;
    }
    for node in &nodes {
        printer.object(&claim(node, &mut rng))?;
    }
    for (namespace, name, cpu_m, memory_mib) in DAEMONS {
        printer.object(&daemon_set(namespace, name, cpu_m, memory_mib))?;
    }
    let workloads = workloads(size.pods, &mut rng);
    for workload in &workloads {
        printer.object(&replica_set(workload))?;
    }
    for workload in workloads.iter().step_by(7) {
        printer.object(&budget(workload))?;
    }
    let mut pods: Vec<Planned> = Vec::new();
    for node in &mut nodes {
        for (namespace, name, cpu_m, memory_mib) in DAEMONS {
            (node.cpu_m_left, node.memory_left) = (node.cpu_m_left - cpu_m, node.memory_left - memory_mib);
            pods.push(Planned {
                namespace: namespace.to_owned(),
                name: format!("{name}-{}", suffix(&mut rng, 5)),
                owner_kind: "DaemonSet",
                owner: name.to_owned(),
                tolerates: None,
                selects: None,
                node: Some(node.name.clone()),
                cpu_m,
                memory_mib,
            });
        }
    }
    pods.extend(waiting());
    spread(&mut pods, &mut nodes, &workloads, size.pods, &mut rng);
    pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    for pod in &pods {
        printer.object(&pod_object(pod, &mut rng))?;
    }
    out.write_all(
        b"\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n",
    )?;
    let node = nodes.get(size.nodes / 2).map(|node| node.name.clone());
    Ok(("shop/too-large-0".to_owned(), node.unwrap_or_default()))
}

/// Round after round every node takes one more pod, until there are enough or all are full: as a scheduler that spreads
/// leaves them.
fn spread(pods: &mut Vec<Planned>, nodes: &mut [Node], workloads: &[Workload], most: usize, rng: &mut Rng) {
    let count = nodes.len();
    for at in 0..count * 200 {
        if pods.len() >= most {
            return;
        }
        let node = &mut nodes[at % count];
        let workload = rng.pick(workloads);
        // One node in twenty stays nearly empty, so that there is something to do.
        let is_kept_empty = (at % count).is_multiple_of(20) && at > 2 * count;
        let fits = workload.cpu_m <= node.cpu_m_left && workload.memory_mib <= node.memory_left;
        if is_kept_empty || !fits || POOLS[workload.pool].1 != POOLS[node.pool].1 {
            continue;
        }
        (node.cpu_m_left, node.memory_left) =
            (node.cpu_m_left - workload.cpu_m, node.memory_left - workload.memory_mib);
        let owner = format!("{}-{}", workload.name, workload.hash);
        pods.push(Planned {
            namespace: workload.namespace.clone(),
            name: format!("{owner}-{}", suffix(rng, 5)),
            owner_kind: "ReplicaSet",
            owner,
            tolerates: POOLS[workload.pool].1,
            selects: None,
            node: Some(node.name.clone()),
            cpu_m: workload.cpu_m,
            memory_mib: workload.memory_mib,
        });
    }
}

fn suffix(rng: &mut Rng, length: usize) -> String {
    const SIGNS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    (0..length).map(|_| char::from(*rng.pick(SIGNS))).collect()
}

fn uid(rng: &mut Rng) -> String {
    let (a, b) = (rng.draw(), rng.draw());
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        a >> 32,
        a & 0xffff,
        (a >> 16) & 0xfff,
        b >> 52,
        b & 0xffff_ffff_ffff
    )
}

fn node(at: usize, of: usize, rng: &mut Rng) -> Node {
    let share = at * 100 / of.max(1);
    let mut sum = 0;
    let pool = POOLS.iter().position(|pool| {
        sum += pool.3;
        share < sum
    });
    let pool = pool.unwrap_or_default();
    let machine = if pool == 2 {
        *rng.pick(&MACHINES[8..11])
    } else {
        *rng.pick(&MACHINES)
    };
    let is_spot = rng.chance(POOLS[pool].4);
    Node {
        name: format!("ip-10-{}-{}-{}.ec2.internal", at / 65_536, at / 256 % 256, at % 256),
        claim: format!("{}-{}", POOLS[pool].0, suffix(rng, 5)),
        pool,
        machine,
        zone: ZONES[at % 3],
        capacity_type: if is_spot { "spot" } else { "on-demand" },
        cpu_m_left: machine.1 * 1000 - 110,
        memory_left: machine.2 - 1_500,
    }
}

fn node_pool((name, taint, policy, _, spot): (&str, Option<&str>, &str, usize, u64)) -> Value {
    let capacity: &[&str] = match spot {
        0 => &["on-demand"],
        100 => &["spot"],
        _ => &["spot", "on-demand"],
    };
    let mut template = json!({
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "expireAfter": "720h",
        "requirements": [
            {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
            {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["5"]},
            {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": ["33"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity}
        ]
    });
    if let Some(taint) = taint {
        template["taints"] = json!([{"key": "workload", "value": taint, "effect": "NoSchedule"}]);
    }
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": name, "uid": format!("pool-{name}"), "resourceVersion": "41", "creationTimestamp": "2026-09-14T08:00:00Z", "generation": 3},
        "spec": {
            "template": {"spec": template},
            "disruption": {"consolidationPolicy": policy, "consolidateAfter": "2m", "budgets": [{"nodes": "10%"}]},
            "limits": {"cpu": "200000"}
        },
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-09-14T08:00:00Z"}]}
    })
}

fn node_class() -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
        "metadata": {"name": "default", "uid": "class", "resourceVersion": "40", "creationTimestamp": "2026-09-14T08:00:00Z"},
        "spec": {"amiSelectorTerms": [{"alias": "al2023@v20261110"}], "role": "node",
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "big"}}], "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "big"}}]},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-09-14T08:00:00Z"}]}
    })
}

fn labels(node: &Node) -> Value {
    let (machine, cores, memory, arch) = node.machine;
    let (family, size) = machine.split_once('.').unwrap_or_default();
    json!({
        "beta.kubernetes.io/arch": arch, "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": arch, "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": node.name, "node.kubernetes.io/instance-type": machine, "beta.kubernetes.io/instance-type": machine,
        "topology.kubernetes.io/region": "us-east-1", "topology.kubernetes.io/zone": node.zone, "topology.k8s.aws/zone-id": "use1-az1",
        "karpenter.sh/nodepool": POOLS[node.pool].0, "karpenter.sh/capacity-type": node.capacity_type,
        "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
        "karpenter.k8s.aws/instance-family": family, "karpenter.k8s.aws/instance-size": size,
        "karpenter.k8s.aws/instance-category": &family[..1], "karpenter.k8s.aws/instance-generation": &family[1..2],
        "karpenter.k8s.aws/instance-cpu": cores.to_string(), "karpenter.k8s.aws/instance-memory": (memory + 1_500).to_string(),
        "karpenter.k8s.aws/instance-hypervisor": "nitro", "karpenter.k8s.aws/instance-encryption-in-transit-supported": "true",
        "karpenter.k8s.aws/ec2nodeclass": "default", "k8s.io/cloud-provider-aws": "f3a6e1b5e7d8c9a0"
    })
}

fn amounts(node: &Node) -> (Value, Value) {
    let (_, cores, memory, _) = node.machine;
    let capacity = json!({"cpu": cores.to_string(), "memory": format!("{memory}Mi"), "pods": "110", "ephemeral-storage": "20Gi", "hugepages-1Gi": "0", "hugepages-2Mi": "0"});
    let allocatable = json!({"cpu": format!("{}m", cores * 1000 - 110), "memory": format!("{}Mi", memory - 1_500), "pods": "110", "ephemeral-storage": "18Gi", "hugepages-1Gi": "0", "hugepages-2Mi": "0"});
    (capacity, allocatable)
}

fn provider_id(node: &Node) -> String {
    let letters: u64 = node
        .name
        .bytes()
        .fold(7, |sum, byte| sum.wrapping_mul(131) + u64::from(byte));
    format!("aws:///{}/i-{:017x}", node.zone, letters & 0xf_ffff_ffff_ffff)
}

fn node_object(node: &Node, rng: &mut Rng) -> Value {
    let (capacity, allocatable) = amounts(node);
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({"type": kind, "status": status, "reason": reason, "message": format!("kubelet says that {kind} is {status}"),
            "lastHeartbeatTime": "2026-11-16T15:40:11Z", "lastTransitionTime": "2026-11-10T09:00:36Z"})
    };
    let mut spec = json!({"providerID": provider_id(node), "podCIDR": "10.244.0.0/24"});
    if let Some(taint) = POOLS[node.pool].1 {
        spec["taints"] = json!([{"key": "workload", "value": taint, "effect": "NoSchedule"}]);
    }
    let images: Vec<Value> = (0..20)
        .map(|at| json!({"names": [format!("registry.example.com/team-{at}/service@sha256:{:064x}", rng.draw()), format!("registry.example.com/team-{at}/service:v1.{at}.0")], "sizeBytes": rng.between(10_000_000, 900_000_000)}))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": node.name, "uid": uid(rng), "resourceVersion": rng.between(1_000_000, 9_000_000).to_string(),
            "creationTimestamp": "2026-11-10T09:00:00Z", "labels": labels(node),
            "annotations": {"alpha.kubernetes.io/provided-node-ip": "10.0.12.34", "csi.volume.kubernetes.io/nodeid": "{\"ebs.csi.aws.com\":\"i-0123456789abcdef0\"}",
                "karpenter.k8s.aws/ec2nodeclass-hash": "4012513481623584108", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4",
                "karpenter.sh/nodepool-hash": "12345678901234567890", "karpenter.sh/nodepool-hash-version": "v3",
                "node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true"},
            "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": node.claim, "uid": uid(rng), "blockOwnerDeletion": true}]},
        "spec": spec,
        "status": {"addresses": [{"address": "10.0.12.34", "type": "InternalIP"}, {"address": node.name, "type": "Hostname"}, {"address": node.name, "type": "InternalDNS"}],
            "capacity": capacity, "allocatable": allocatable,
            "conditions": [condition("MemoryPressure", "False", "KubeletHasSufficientMemory"), condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"), condition("Ready", "True", "KubeletReady")],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}, "images": images,
            "nodeInfo": {"architecture": node.machine.3, "bootID": uid(rng), "containerRuntimeVersion": "containerd://1.7.27", "kernelVersion": "6.1.141-155.222.amzn2023.x86_64",
                "kubeProxyVersion": "v1.33.4-eks-e386d34", "kubeletVersion": "v1.33.4-eks-e386d34", "machineID": uid(rng), "operatingSystem": "linux", "osImage": "Amazon Linux 2023.8.20250715", "systemUUID": uid(rng)}}
    })
}

fn claim(node: &Node, rng: &mut Rng) -> Value {
    let (capacity, allocatable) = amounts(node);
    let holds = |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": 1, "lastTransitionTime": "2026-11-10T09:00:40Z"});
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": node.claim, "uid": uid(rng), "resourceVersion": rng.between(1_000_000, 9_000_000).to_string(), "creationTimestamp": "2026-11-10T08:59:20Z", "generation": 1,
            "labels": labels(node), "finalizers": ["karpenter.sh/termination"],
            "annotations": {"karpenter.k8s.aws/ec2nodeclass-hash": "4012513481623584108", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4", "karpenter.sh/nodepool-hash": "12345678901234567890", "karpenter.sh/nodepool-hash-version": "v3"},
            "ownerReferences": [{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": POOLS[node.pool].0, "uid": format!("pool-{}", POOLS[node.pool].0), "blockOwnerDeletion": true}]},
        "spec": {"expireAfter": "720h", "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": [POOLS[node.pool].0]}, {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": MACHINES.map(|it| it.0)}],
            "resources": {"requests": {"cpu": "3", "memory": "8Gi", "pods": "9"}}},
        "status": {"providerID": provider_id(node), "nodeName": node.name, "imageID": "ami-0123456789abcdef0", "capacity": capacity, "allocatable": allocatable,
            "lastPodEventTime": "2026-11-16T09:12:00Z",
            "conditions": [holds("Launched"), holds("Registered"), holds("Initialized"), holds("Ready"), holds("Consolidatable")]}
    })
}

fn daemon_set(namespace: &str, name: &str, cpu_m: u64, memory_mib: u64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"namespace": namespace, "name": name, "uid": format!("ds-{name}"), "resourceVersion": "99", "creationTimestamp": "2026-09-14T08:00:00Z"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}, "spec": {
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": "registry.example.com/agent:v1", "resources": {"requests": {"cpu": format!("{cpu_m}m"), "memory": format!("{memory_mib}Mi")}}}]}}}
    })
}

fn workloads(pods: usize, rng: &mut Rng) -> Vec<Workload> {
    const CPU: [u64; 6] = [100, 250, 500, 500, 1000, 1500];
    let count = (pods / 120).max(8);
    let workload = |at: usize| {
        // As many of a pool's as it has nodes, roughly.
        let pool = match rng.below(20) {
            0..=12 => 0,
            13..=16 => 1,
            _ => 2,
        };
        let cpu_m = *rng.pick(&CPU);
        Workload {
            namespace: format!("team-{:02}", at % 60),
            name: format!("service-{at:04}"),
            hash: suffix(rng, 9),
            pool,
            cpu_m,
            memory_mib: cpu_m * rng.between(1, 4),
        }
    };
    (0..count).map(workload).collect()
}

fn replica_set(workload: &Workload) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"namespace": workload.namespace, "name": format!("{}-{}", workload.name, workload.hash), "uid": format!("rs-{}", workload.name), "resourceVersion": "77",
            "labels": {"app": workload.name, "pod-template-hash": workload.hash},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": workload.name, "uid": format!("deploy-{}", workload.name), "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"replicas": 100, "selector": {"matchLabels": {"app": workload.name, "pod-template-hash": workload.hash}}, "template": {"metadata": {"labels": {"app": workload.name}}, "spec": {"containers": [{"name": "main"}]}}},
        "status": {"replicas": 100}
    })
}

fn budget(workload: &Workload) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"namespace": workload.namespace, "name": workload.name, "uid": format!("pdb-{}", workload.name), "resourceVersion": "55", "creationTimestamp": "2026-09-14T08:00:00Z"},
        "spec": {"maxUnavailable": "10%", "selector": {"matchLabels": {"app": workload.name}}},
        "status": {"disruptionsAllowed": 9, "currentHealthy": 100, "desiredHealthy": 90, "expectedPods": 100, "observedGeneration": 1}
    })
}

/// Pods that wait: too large for any type, for a label that nobody has, for a taint, and some that get a node.
fn waiting() -> Vec<Planned> {
    let mut pods = Vec::new();
    for (owner, count, cpu_m, tolerates, selects) in [
        ("too-large", 2, 90_000, None, None),
        ("elsewhere", 2, 500, None, Some(("example.com/rack", "r1"))),
        ("next", 30, 1_000, None, None),
        ("report", 10, 2_000, Some("batch"), None),
    ] {
        pods.extend((0..count).map(|at| Planned {
            namespace: "shop".to_owned(),
            name: format!("{owner}-{at}"),
            owner_kind: "StatefulSet",
            owner: owner.to_owned(),
            tolerates,
            selects,
            node: None,
            cpu_m,
            memory_mib: cpu_m,
        }));
    }
    pods
}

fn pod_object(pod: &Planned, rng: &mut Rng) -> Value {
    let Planned {
        namespace,
        name,
        owner_kind,
        owner,
        tolerates,
        selects,
        node,
        cpu_m,
        memory_mib,
    } = pod;
    let owner_kind = *owner_kind;
    let app = if owner_kind == "ReplicaSet" {
        owner.rsplit_once('-').unwrap_or_default().0
    } else {
        owner.as_str()
    };
    let mut labels =
        json!({"app": app, "app.kubernetes.io/managed-by": "Helm", "team": namespace, "version": "v1.4.2"});
    if owner_kind == "ReplicaSet" {
        labels["pod-template-hash"] = owner.rsplit_once('-').unwrap_or_default().1.into();
    }
    let mut tolerations = vec![
        json!({"effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}),
        json!({"effect": "NoExecute", "key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 300}),
    ];
    if owner_kind == "DaemonSet" {
        tolerations.push(json!({"operator": "Exists"}));
    }
    if let Some(taint) = tolerates {
        tolerations.push(json!({"effect": "NoSchedule", "key": "workload", "operator": "Equal", "value": taint}));
    }
    let image = format!("registry.example.com/{namespace}/{app}:v1.4.2");
    let mount = suffix(rng, 5);
    let created = format!(
        "2026-11-1{}T{:02}:{:02}:07Z",
        rng.between(0, 5),
        rng.below(24),
        rng.below(60)
    );
    let condition =
        |kind: &str| json!({"lastProbeTime": null, "lastTransitionTime": created, "status": "True", "type": kind});
    let status = if node.is_some() {
        json!({
            "conditions": (["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition)),
            "containerStatuses": [{"containerID": format!("containerd://{:032x}{:032x}", rng.draw(), rng.draw()), "image": image, "imageID": format!("registry.example.com/{app}@sha256:{:064x}", 7),
                "lastState": {}, "name": "main", "ready": true, "restartCount": 0, "started": true, "state": {"running": {"startedAt": created}},
                "volumeMounts": [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": format!("kube-api-access-{mount}"), "readOnly": true, "recursiveReadOnly": "Disabled"}]}],
            "hostIP": "10.0.12.34", "hostIPs": [{"ip": "10.0.12.34"}], "phase": "Running", "podIP": "10.0.99.7", "podIPs": [{"ip": "10.0.99.7"}], "qosClass": "Burstable", "startTime": created
        })
    } else {
        json!({"phase": "Pending", "qosClass": "Burstable", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastProbeTime": null,
            "message": "0/5000 nodes are available", "lastTransitionTime": "2026-11-16T15:30:00Z"}]})
    };
    let mut spec = json!({
        "containers": [{"name": "main", "image": image, "imagePullPolicy": "IfNotPresent",
            "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}, {"name": "LOG_LEVEL", "value": "info"}, {"name": "ENDPOINT", "value": "https://collector.observability.svc:4318"}],
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "readinessProbe": {"failureThreshold": 3, "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
            "resources": {"limits": {"memory": format!("{}Mi", memory_mib * 2)}, "requests": {"cpu": format!("{cpu_m}m"), "memory": format!("{memory_mib}Mi")}},
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "volumeMounts": [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": format!("kube-api-access-{mount}"), "readOnly": true}]}],
        "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority", "priority": 0, "restartPolicy": "Always", "schedulerName": "default-scheduler",
        "securityContext": {}, "serviceAccount": app, "serviceAccountName": app, "terminationGracePeriodSeconds": 30, "tolerations": tolerations,
        "volumes": [{"name": format!("kube-api-access-{mount}"), "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
            {"downwardAPI": {"items": [{"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}]}}]}}]
    });
    if let Some(node) = node {
        spec["nodeName"] = node.as_str().into();
    }
    if let Some((key, value)) = selects {
        spec["nodeSelector"] = json!({*key: value});
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"annotations": {"checksum/config": format!("{:064x}", 12_345), "prometheus.io/scrape": "true"}, "creationTimestamp": created, "generateName": format!("{owner}-"), "labels": labels,
            "name": name, "namespace": namespace,
            "ownerReferences": [{"apiVersion": "apps/v1", "blockOwnerDeletion": true, "controller": true, "kind": owner_kind, "name": owner, "uid": format!("owner-{owner}")}],
            "resourceVersion": rng.between(1_000_000, 9_000_000).to_string(), "uid": uid(rng)},
        "spec": spec, "status": status
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_a_list_with_as_many_nodes_and_pods_as_asked_for() {
        let mut text = Vec::new();
        let size = Size {
            nodes: 20,
            pods: 300,
            seed: 1,
        };
        let (pod, node) = write(&mut text, size).unwrap();
        let list: Value = serde_json::from_slice(&text).unwrap();
        let count = |kind: &str| {
            list["items"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|it| it["kind"] == kind)
                .count()
        };
        assert_eq!((count("Node"), count("NodeClaim"), count("Pod")), (20, 20, 300));
        assert!(pod.starts_with("shop/") && node.ends_with(".ec2.internal"));
        let lines = text
            .split(|byte| *byte == b'\n')
            .filter(|line| *line == b"        {")
            .count();
        assert_eq!(
            lines,
            list["items"].as_array().unwrap().len(),
            "an item begins a line of its own, as kubectl has it"
        );
    }
}
