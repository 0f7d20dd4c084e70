//! What node classes make of machines: a dump holds them, so disks, pods, systems and zones are theirs and not the
//! provider's defaults.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{fs, process::Command};

use serde_json::{Value, json};

fn pool(name: &str, class: (&str, &str, &str), requirements: &Value) -> Value {
    let (group, kind, class) = class;
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {"template": {"spec": {"requirements": requirements,
            "nodeClassRef": {"group": group, "kind": kind, "name": class}}}}})
}

const EC2: (&str, &str, &str) = ("karpenter.k8s.aws", "EC2NodeClass", "own");
const AKS: (&str, &str, &str) = ("karpenter.azure.com", "AKSNodeClass", "own");

fn ec2(spec: &Value, zones: &[&str]) -> Value {
    let subnet = |zone: &&str| json!({"id": format!("subnet-{zone}"), "zone": format!("us-east-1{zone}")});
    let mut class = json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "own"},
        "spec": {"amiFamily": "AL2023", "amiSelectorTerms": [{"alias": "al2023@v20251108"}], "role": "r",
            "subnetSelectorTerms": [{"id": "subnet-a"}], "securityGroupSelectorTerms": [{"id": "sg-a"}]},
        "status": {"subnets": zones.iter().map(subnet).collect::<Vec<_>>()}});
    for (key, value) in spec.as_object().unwrap() {
        class["spec"][key] = value.clone();
    }
    class
}

fn aks(spec: &Value) -> Value {
    json!({"apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass", "metadata": {"name": "own"}, "spec": spec})
}

fn pod(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "shop"}, "spec": spec})
}

fn asking(requests: &Value) -> Value {
    json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]})
}

fn asked(objects: &[Value], arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dump.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(&file, list.to_string()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(arguments)
        .args([
            if arguments[0] == "lint" { "-f" } else { "--from" },
            file.to_str().unwrap(),
        ])
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!text.contains("panicked"), "{arguments:?}: {text}");
    text
}

#[test]
fn pods_have_the_disk_that_their_ec2nodeclass_gives() {
    let disk = json!({"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "500Gi"}}]});
    let objects = |class: Value| {
        let wants = pod(&asking(&json!({"cpu": "1", "ephemeral-storage": "100Gi"})));
        [pool("general", EC2, &json!([])), class, wants]
    };
    let large = asked(&objects(ec2(&disk, &[])), &["why", "pod", "x"]);
    assert!(large.contains("nothing is in its way"), "{large}");
    assert!(!large.contains("EC2NodeClass defaults"), "{large}");
    let small = asked(&objects(ec2(&json!({}), &[])), &["why", "pod", "x"]);
    assert!(small.contains("stops at ephemeral-storage"), "{small}");
    let found = asked(&objects(ec2(&disk, &[])), &["lint"]);
    assert!(!found.contains("WL04"), "{found}");
}

#[test]
fn pods_are_as_many_as_the_kubelet_of_the_class_takes() {
    let most = json!({"kubelet": {"maxPods": 8}});
    let objects: Vec<Value> = (0..16)
        .map(|number| {
            let mut pod = pod(&asking(&json!({"cpu": "10m"})));
            pod["metadata"]["name"] = json!(format!("x-{number}"));
            pod
        })
        .chain([pool("general", EC2, &json!([])), ec2(&most, &[])])
        .collect();
    let said = asked(&objects, &["plan"]);
    assert!(said.starts_with("16 pods wait: 2 new nodes"), "{said}");
}

#[test]
fn nodes_come_only_where_the_class_has_subnets() {
    let zone = json!({"nodeSelector": {"topology.kubernetes.io/zone": "us-east-1c"}});
    let mut wants = asking(&json!({"cpu": "1"}));
    wants["nodeSelector"] = zone["nodeSelector"].clone();
    let objects = [
        pool("general", EC2, &json!([])),
        ec2(&json!({}), &["a", "b"]),
        pod(&wants),
    ];
    let said = asked(&objects, &["why", "pod", "x"]);
    assert!(said.contains("stops at zone"), "{said}");
}

#[test]
fn a_machine_where_the_class_has_no_subnet_any_more_keeps_its_price() {
    let labels = json!({"karpenter.sh/nodepool": "general", "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "m6i.xlarge", "topology.kubernetes.io/zone": "us-east-1c"});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels},
        "spec": {"providerID": "aws:///us-east-1c/i-1"},
        "status": {"allocatable": {"cpu": "4", "memory": "14Gi", "pods": "58"}, "conditions": [{"type": "Ready", "status": "True"}]}});
    let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "n", "labels": labels},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "own"}, "requirements": []},
        "status": {"nodeName": "n", "providerID": "aws:///us-east-1c/i-1"}});
    let objects = [
        pool("general", EC2, &json!([])),
        ec2(&json!({}), &["a", "b"]),
        node,
        claim,
    ];
    let said = asked(&objects, &["status", "--width", "200"]);
    assert!(said.contains("$0.1920/h"), "{said}");
}

#[test]
fn what_was_bought_in_advance_is_free_for_pools_with_a_class_of_their_own_too() {
    let plan = json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "Commitments",
        "savingsPlans": [{"name": "all", "usdPerHour": 5.0, "discountPercent": 28}]});
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("commitments.json");
    fs::write(&file, plan.to_string()).unwrap();
    let on_demand = json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]);
    let pods = ec2(&json!({"kubelet": {"maxPods": 20}}), &[]);
    let plain = pool("plain", ("karpenter.k8s.aws", "EC2NodeClass", "other"), &on_demand);
    let objects = [
        pool("general", EC2, &on_demand),
        plain,
        pods,
        pod(&asking(&json!({"cpu": "3"}))),
    ];
    let mut heavy = objects.clone();
    heavy[0]["spec"]["weight"] = json!(10);
    let said = asked(&heavy, &["plan", "--commitments", file.to_str().unwrap()]);
    assert!(said.starts_with("1 pod waits: 1 new node at $0.00"), "{said}");
}

#[test]
fn a_pod_for_windows_gets_no_node_of_a_class_of_linux() {
    let mut wants = asking(&json!({"cpu": "1"}));
    wants["nodeSelector"] = json!({"kubernetes.io/os": "windows"});
    let windows = json!({"amiFamily": "Windows2022", "amiSelectorTerms": [{"alias": "windows2022@latest"}]});
    let mut class = ec2(&windows, &[]);
    class["metadata"]["name"] = json!("windows");
    let of_windows = json!([{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}]);
    // The heavier one takes what it can have.
    let mut general = pool("general", EC2, &json!([]));
    general["spec"]["weight"] = json!(10);
    let objects = [
        general,
        pool("windows", ("karpenter.k8s.aws", "EC2NodeClass", "windows"), &of_windows),
        ec2(&json!({}), &[]),
        class,
        pod(&wants),
    ];
    let said = asked(&objects, &["why", "pod", "x"]);
    assert!(said.contains("NodePool windows, 1 pod"), "{said}");
    // Whose class nobody has read may have Windows where it asks for it; the others have not.
    let said = asked(
        &[objects[0].clone(), objects[1].clone(), objects[4].clone()],
        &["why", "pod", "x"],
    );
    assert!(said.contains("NodePool windows, 1 pod"), "{said}");
}

#[test]
fn pods_have_the_disk_that_their_aksnodeclass_gives() {
    let objects = |class: &Value| {
        let wants = pod(&asking(&json!({"cpu": "1", "ephemeral-storage": "180Gi"})));
        [pool("default", AKS, &json!([])), aks(class), wants]
    };
    let large = asked(&objects(&json!({"osDiskSizeGB": 256})), &["why", "pod", "x"]);
    assert!(large.contains("nothing is in its way"), "{large}");
    let small = asked(&objects(&json!({})), &["why", "pod", "x"]);
    // A disk of 128 GB, in the unit of what the pod asks for.
    assert!(small.contains("have up to 119.2Gi"), "{small}");
}

#[test]
fn a_class_that_was_not_read_is_assumed_to_say_nothing() {
    let other = pool("other", ("karpenter.k8s.aws", "EC2NodeClass", "elsewhere"), &json!([]));
    let objects = [pool("general", EC2, &json!([])), other, ec2(&json!({}), &[])];
    let said = asked(&objects, &["status", "--width", "400"]);
    let expected = "assumed  EC2NodeClass defaults: AL2023, 20Gi root volume, pods limited by network interfaces, of NodePool \
                    other: the class was not read";
    assert!(said.contains(expected), "{said}");
}
