//! How much heap a large cluster takes: 100,000 running pods on 5,000 nodes, read from JSON of the size API servers send.
//! Alone in its binary: the allocator counts every thread.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and may print"
)]

use std::{alloc::System, collections::BTreeSet, fmt::Write};

use jiff::Timestamp;
use model::{
    object::{Node, NodeClaim, NodeName, Object, Pod},
    sharing::Sharing,
};
use state::{State, Tracked};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NODES: usize = 5_000;
const PODS_PER_NODE: usize = 20;
const PODS: usize = NODES * PODS_PER_NODE;
/// Of the pods on each node, so many belong to DaemonSets: their specs differ from node to node.
const DAEMONS_PER_NODE: usize = 3;
const REPLICAS: usize = 20;
const LIMIT_MB: usize = 150;

#[test]
fn hundred_thousand_pods_on_five_thousand_nodes_fit_in_150_mb() {
    let mut json = String::with_capacity(64 * 1024);
    let region = Region::new(ALLOCATOR);
    let mut state = State::default();
    // As in the product, each watch has a pool of its own.
    let mut pools = [Sharing::default(), Sharing::default(), Sharing::default()];
    let [pods, nodes, claims] = &mut pools;
    let mut measured = Vec::new();
    let megabytes = || {
        let change = region.change();
        (change.bytes_allocated - change.bytes_deallocated) / 1_000_000
    };
    fold::<Node>(&mut state, nodes, NODES, &mut json, write_node);
    measured.push(("nodes", megabytes()));
    fold::<NodeClaim>(&mut state, claims, NODES, &mut json, write_claim);
    measured.push(("claims", megabytes()));
    fold::<Pod>(&mut state, pods, PODS, &mut json, write_pod);
    measured.push(("pods", megabytes()));
    let snapshot = state.snapshot(Timestamp::UNIX_EPOCH);
    let on_one = snapshot.pods_on_node(&NodeName::from(node_name(7).as_str())).count();
    measured.push(("snapshot, indexed", megabytes()));
    // One pod in ten changes while the old snapshot is still in use.
    for at in (0..PODS).step_by(10) {
        json.clear();
        write_pod_version(&mut json, at, 40_000_000);
        state.apply(Pod::from_json(json.as_bytes(), pods).unwrap());
    }
    let second = state.snapshot(Timestamp::UNIX_EPOCH);
    measured.push(("old and new snapshot", megabytes()));
    drop(snapshot);

    println!("MB of heap, one after the other: {measured:?}");
    let sizes = (
        state.all::<Pod>().len(),
        state.all::<Node>().len(),
        second.objects().len(),
        on_one,
    );
    assert_eq!(sizes, (PODS, NODES, PODS + 2 * NODES, PODS_PER_NODE));
    for (when, megabytes) in measured {
        assert!(
            megabytes < LIMIT_MB,
            "{megabytes} MB with {when}, the limit is {LIMIT_MB}"
        );
    }
}

/// Takes in so many objects as a list does, each read from its own JSON.
fn fold<T: Tracked>(
    state: &mut State,
    pool: &mut Sharing,
    count: usize,
    json: &mut String,
    write: impl Fn(&mut String, usize),
) {
    let mut named = BTreeSet::new();
    for at in 0..count {
        json.clear();
        write(json, at);
        let object = T::from_json(json.as_bytes(), pool).unwrap();
        named.insert(object.metadata().key());
        state.apply(object);
    }
    state.end_list::<T>(&named, &"30000000".into());
}

fn node_name(at: usize) -> String {
    format!("ip-10-{}-{}-17.eu-central-1.compute.internal", at / 256, at % 256)
}

fn uid(seed: usize) -> String {
    let mixed = seed.wrapping_mul(2_654_435_761) % 0xffff_ffff;
    format!("{mixed:08x}-7a43-4c0f-9d1b-{seed:012x}")
}

fn provider_id(at: usize) -> String {
    format!("aws:///eu-central-1a/i-{at:017x}")
}

fn second(at: usize) -> String {
    format!(
        "2026-11-{:02}T{:02}:{:02}:{:02}Z",
        1 + at % 14,
        at / 3600 % 24,
        at / 60 % 60,
        at % 60
    )
}

fn write_pod(out: &mut String, at: usize) {
    write_pod_version(out, at, 10_000_000);
}

fn write_pod_version(out: &mut String, at: usize, base: usize) {
    let (node, slot) = (at / PODS_PER_NODE, at % PODS_PER_NODE);
    let is_daemon = slot < DAEMONS_PER_NODE;
    let app = if is_daemon { 100_000 + slot } else { at / REPLICAS };
    let (owner_kind, hash) = if is_daemon {
        ("DaemonSet", "5f7c9d8b4")
    } else {
        ("ReplicaSet", "6d4cf56db6")
    };
    let affinity = if is_daemon {
        let name = node_name(node);
        format!(
            r#""affinity":{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":{{"nodeSelectorTerms":[{{"matchFields":[{{"key":"metadata.name","operator":"In","values":["{name}"]}}]}}]}}}}}},"#
        )
    } else {
        String::new()
    };
    let env: Vec<String> = (0..14)
        .map(|k| format!(r#"{{"name":"SETTING_NUMBER_{k}","value":"a-configured-value-{k}-of-{app}"}}"#))
        .collect();
    write!(
        out,
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"service-{app}-{hash}-x{at:07}","generateName":"service-{app}-{hash}-","namespace":"team-{ns}",
        "uid":"{uid}","resourceVersion":"{version}","generation":1,"creationTimestamp":"{created}",
        "labels":{{"app.kubernetes.io/name":"service-{app}","app.kubernetes.io/instance":"service-{app}-prod","app.kubernetes.io/managed-by":"Helm","pod-template-hash":"{hash}","team":"team-{ns}"}},
        "annotations":{{"checksum/config":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","prometheus.io/scrape":"true"}},
        "ownerReferences":[{{"apiVersion":"apps/v1","kind":"{owner_kind}","name":"service-{app}-{hash}","uid":"{owner}","controller":true,"blockOwnerDeletion":true}}],
        "managedFields":[{{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-11-01T00:00:09Z","fieldsType":"FieldsV1","fieldsV1":{{"f:status":{{"f:conditions":{{}}}}}},"subresource":"status"}}]}},
        "spec":{{{affinity}"nodeName":"{node_name}","serviceAccountName":"service-{app}","schedulerName":"default-scheduler","restartPolicy":"Always","preemptionPolicy":"PreemptLowerPriority","priority":0,"terminationGracePeriodSeconds":30,
        "containers":[{{"name":"app","image":"images.example.com/team-{ns}/service-{app}:1.{app}.3","env":[{env}],"resources":{{"requests":{{"cpu":"250m","memory":"512Mi"}},"limits":{{"memory":"512Mi"}}}},"ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}}],"volumeMounts":[{{"name":"kube-api-access-x{at:04}","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}]}},
        {{"name":"proxy","image":"images.example.com/mesh/proxy:2.0","resources":{{"requests":{{"cpu":"100m","memory":"128Mi"}},"limits":{{"cpu":"2","memory":"1Gi"}}}}}}],
        "tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}},{{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],
        "topologySpreadConstraints":[{{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{{"matchLabels":{{"app.kubernetes.io/name":"service-{app}"}}}}}}],
        "volumes":[{{"name":"config","configMap":{{"name":"service-{app}","defaultMode":420}}}},{{"name":"kube-api-access-x{at:04}","projected":{{"defaultMode":420,"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}}]}}}}]}},
        "status":{{"phase":"Running","hostIP":"10.0.0.17","podIP":"10.1.{n1}.{n2}","startTime":"{created}","qosClass":"Burstable",
        "conditions":[{{"type":"PodReadyToStartContainers","status":"True","lastProbeTime":null,"lastTransitionTime":"{ready}"}},{{"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"{created}"}},{{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"{ready}"}},{{"type":"ContainersReady","status":"True","lastProbeTime":null,"lastTransitionTime":"{ready}"}},{{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"{created}"}}],
        "containerStatuses":[{{"name":"app","ready":true,"started":true,"restartCount":0,"image":"images.example.com/service-{app}:1.{app}.3","containerID":"containerd://{at:064x}","state":{{"running":{{"startedAt":"{ready}"}}}},"lastState":{{}},"allocatedResources":{{"cpu":"250m","memory":"512Mi"}},"resources":{{"requests":{{"cpu":"250m","memory":"512Mi"}},"limits":{{"memory":"512Mi"}}}}}},
        {{"name":"proxy","ready":true,"started":true,"restartCount":0,"image":"images.example.com/mesh/proxy:2.0","containerID":"containerd://{at:064x}","state":{{"running":{{"startedAt":"{ready}"}}}},"lastState":{{}},"allocatedResources":{{"cpu":"100m","memory":"128Mi"}},"resources":{{"requests":{{"cpu":"100m","memory":"128Mi"}},"limits":{{"cpu":"2","memory":"1Gi"}}}}}}]}}}}"#,
        ns = app % 50,
        uid = uid(at),
        owner = uid(1_000_000 + app),
        version = base + at,
        created = second(at),
        ready = second(at + 7),
        node_name = node_name(node),
        n1 = node / 256,
        n2 = node % 256,
        env = env.join(","),
    )
    .unwrap();
}

/// The labels of a node and of its claim.
fn labels(at: usize) -> String {
    format!(
        r#"{{"beta.kubernetes.io/arch":"amd64","beta.kubernetes.io/os":"linux","karpenter.k8s.aws/instance-category":"m","karpenter.k8s.aws/instance-cpu":"8","karpenter.k8s.aws/instance-cpu-manufacturer":"intel","karpenter.k8s.aws/instance-ebs-bandwidth":"10000","karpenter.k8s.aws/instance-encryption-in-transit-supported":"true","karpenter.k8s.aws/instance-family":"m7i","karpenter.k8s.aws/instance-generation":"7","karpenter.k8s.aws/instance-hypervisor":"nitro","karpenter.k8s.aws/instance-memory":"32768","karpenter.k8s.aws/instance-network-bandwidth":"2500","karpenter.k8s.aws/instance-size":"2xlarge","karpenter.sh/capacity-type":"spot","karpenter.sh/initialized":"true","karpenter.sh/nodepool":"pool-{pool}","karpenter.sh/registered":"true","kubernetes.io/arch":"amd64","kubernetes.io/hostname":"{name}","kubernetes.io/os":"linux","node.kubernetes.io/instance-type":"m7i.2xlarge","topology.k8s.aws/zone-id":"euc1-az2","topology.kubernetes.io/region":"eu-central-1","topology.kubernetes.io/zone":"eu-central-1a"}}"#,
        pool = at % 5,
        name = node_name(at),
    )
}

const CAPACITY: &str = r#"{"cpu":"8","ephemeral-storage":"83873772Ki","hugepages-1Gi":"0","hugepages-2Mi":"0","memory":"32386544Ki","pods":"58"}"#;

fn write_node(out: &mut String, at: usize) {
    let condition = |kind: &str, status: &str, reason: &str| {
        format!(
            r#"{{"type":"{kind}","status":"{status}","reason":"{reason}","message":"kubelet has something to say","lastHeartbeatTime":"{now}","lastTransitionTime":"{then}"}}"#,
            now = second(at + 99),
            then = second(at),
        )
    };
    let conditions = [
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID"),
        condition("Ready", "True", "KubeletReady"),
    ];
    let images: Vec<String> = (0..50)
        .map(|image| format!(r#"{{"names":["images.example.com/some/image-{image}@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"],"sizeBytes":123456789}}"#))
        .collect();
    write!(
        out,
        r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{name}","uid":"{uid}","resourceVersion":"{version}","creationTimestamp":"{created}","labels":{labels},
        "annotations":{{"csi.volume.kubernetes.io/nodeid":"{{}}","karpenter.k8s.aws/ec2nodeclass-hash":"1234567890123456789","karpenter.k8s.aws/ec2nodeclass-hash-version":"v4","karpenter.sh/nodepool-hash":"9876543210987654321","karpenter.sh/nodepool-hash-version":"v3","node.alpha.kubernetes.io/ttl":"0"}},
        "finalizers":["karpenter.sh/termination"],"ownerReferences":[{{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","name":"pool-{pool}-x{at:05}","uid":"{claim}","blockOwnerDeletion":true}}]}},
        "spec":{{"providerID":"{id}","podCIDR":"10.2.{n1}.{n2}/24"}},
        "status":{{"capacity":{CAPACITY},"allocatable":{CAPACITY},"conditions":[{conditions}],"images":[{images}],"addresses":[{{"type":"InternalIP","address":"10.0.{n1}.{n2}"}}],
        "nodeInfo":{{"bootID":"{boot}","kubeletVersion":"v1.34.2-eks-1","osImage":"Bottlerocket OS","architecture":"amd64"}}}}}}"#,
        name = node_name(at),
        uid = uid(2_000_000 + at),
        version = 5_000_000 + at,
        created = second(at),
        labels = labels(at),
        pool = at % 5,
        claim = uid(3_000_000 + at),
        id = provider_id(at),
        conditions = conditions.join(","),
        images = images.join(","),
        boot = uid(4_000_000 + at),
        n1 = at / 256,
        n2 = at % 256,
    )
    .unwrap();
}

fn write_claim(out: &mut String, at: usize) {
    let condition = |kind: &str| {
        format!(
            r#"{{"type":"{kind}","status":"True","reason":"{kind}","message":"","lastTransitionTime":"{}","observedGeneration":1}}"#,
            second(at)
        )
    };
    let conditions = ["Launched", "Registered", "Initialized", "Ready", "Consolidatable"].map(condition);
    let types: Vec<String> = (0..60).map(|size| format!(r#""m7i.{size}xlarge""#)).collect();
    write!(
        out,
        r#"{{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","metadata":{{"name":"pool-{pool}-x{at:05}","uid":"{uid}","resourceVersion":"{version}","generation":1,"creationTimestamp":"{created}","labels":{labels},
        "annotations":{{"karpenter.k8s.aws/ec2nodeclass-hash":"1234567890123456789","karpenter.sh/nodepool-hash":"9876543210987654321","karpenter.sh/nodepool-hash-version":"v3"}},
        "finalizers":["karpenter.sh/termination"],"ownerReferences":[{{"apiVersion":"karpenter.sh/v1","kind":"NodePool","name":"pool-{pool}","uid":"{owner}","blockOwnerDeletion":true}}]}},
        "spec":{{"nodeClassRef":{{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"default"}},"expireAfter":"720h","resources":{{"requests":{{"cpu":"{cpu}m","memory":"4Gi","pods":"20"}}}},
        "requirements":[{{"key":"node.kubernetes.io/instance-type","operator":"In","values":[{types}]}},{{"key":"karpenter.sh/nodepool","operator":"In","values":["pool-{pool}"]}}]}},
        "status":{{"providerID":"{id}","nodeName":"{node}","imageID":"ami-0123456789abcdef0","capacity":{CAPACITY},"allocatable":{CAPACITY},"conditions":[{conditions}],"lastPodEventTime":"{created}"}}}}"#,
        pool = at % 5,
        uid = uid(3_000_000 + at),
        version = 6_000_000 + at,
        created = second(at),
        labels = labels(at),
        owner = uid(5_000_000 + at % 5),
        cpu = 1_000 + at % 500,
        types = types.join(","),
        id = provider_id(at),
        node = node_name(at),
        conditions = conditions.join(","),
    )
    .unwrap();
}
