//! `dovetail lint`, `drift` and `doctor` against an API server, here the simulator's.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use simulator::ApiServer;

/// An API server with the CRDs, for as long as the test lives.
struct Cluster {
    server: ApiServer,
    kubeconfig: PathBuf,
    _directory: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Self {
        Self::with_clock(Timestamp::now)
    }

    fn with_clock(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let server = ApiServer::new(clock);
        for definition in api::crds::installation(&api::provider::Provider::ALL) {
            server.create(serde_json::to_value(definition).unwrap()).unwrap();
        }
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("kubeconfig");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        fs::write(&kubeconfig, simulator::http::kubeconfig(listener.local_addr().unwrap())).unwrap();
        let serving = server.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                simulator::http::serve(serving, listener).await;
            });
        });
        Self {
            server,
            kubeconfig,
            _directory: directory,
        }
    }

    fn ask(&self, command: &str) -> (Option<i32>, Value) {
        let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
            .args([command, "-o", "json", "--kubeconfig"])
            .arg(&self.kubeconfig)
            .output()
            .unwrap();
        let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output.status.code(), document)
    }
}

fn pool() -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"}, "spec": {
        "template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]}},
        "disruption": {"consolidateAfter": "5m"}}})
}

fn lease(renewed: Timestamp) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "karpenter-leader-election", "namespace": "kube-system"},
        "spec": {"holderIdentity": "dovetail-1_a", "leaseDurationSeconds": 600, "renewTime": renewed.to_string()}})
}

#[test]
fn a_cluster_is_linted_as_a_whole() {
    let cluster = Cluster::start();
    cluster.server.create(pool()).unwrap();
    let (_, document) = cluster.ask("lint");
    assert_eq!(document["source"]["type"], "live");
    assert_eq!(document["cluster"], document["source"]["name"]);
    let codes: Vec<&str> = document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["code"].as_str().unwrap())
        .collect();
    assert!(codes.contains(&"NP04") && codes.contains(&"NP02"), "{codes:?}");
}

#[test]
fn the_doctor_asks_for_crds_permissions_the_lease_and_the_clock() {
    let cluster = Cluster::start();
    cluster.server.create(lease(Timestamp::now())).unwrap();
    let (_, document) = cluster.ask("doctor");
    let state = |id: &str| {
        let checks = document["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["id"] == id);
        check
            .map(|check| check["state"].as_str().unwrap().to_owned())
            .unwrap_or_default()
    };
    assert_eq!(state("D01"), "ok", "{document:#}");
    assert_eq!(state("D03"), "ok", "{document:#}");
    assert_eq!(state("D04"), "ok", "{document:#}");
    assert!(["ok", "skipped"].contains(&state("D02").as_str()), "{document:#}");
}

#[test]
fn no_leader_and_a_missing_crd_stop() {
    let cluster = Cluster::start();
    cluster
        .server
        .delete("CustomResourceDefinition", "nodeclaims.karpenter.sh")
        .unwrap();
    let (code, document) = cluster.ask("doctor");
    assert_eq!(code, Some(3));
    let told = document["checks"].to_string();
    assert!(told.contains("nodeclaims.karpenter.sh is not installed"), "{told}");
    assert!(told.contains("no controller has ever led"), "{told}");
}

#[test]
fn a_cluster_that_does_not_answer_is_told_in_three_lines() {
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    // A port that was free a moment ago, and has nobody behind it.
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    fs::write(&kubeconfig, simulator::http::kubeconfig(address)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(["lint", "--kubeconfig"])
        .arg(&kubeconfig)
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert_eq!(told.lines().count(), 3, "{told}");
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "app", "image": "app", "env": [{"name": "TOKEN", "value": "s3cret"}],
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "lastTransitionTime": "2026-11-17T10:00:00Z"}]}})
}

/// An answer, without what says where it comes from.
fn of_itself(args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(args)
        .args(["-o", "json", "--catalogue", "aws", "--region", "us-east-1"])
        .output()
        .unwrap();
    let mut answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    // How long a pod waits is counted to when one looks.
    for passing in ["source", "as_of", "assumed", "cluster", "prices", "since_s"] {
        answer.as_object_mut().unwrap().remove(passing);
    }
    answer
}

#[test]
fn a_snapshot_answers_as_its_cluster_does_and_tells_no_secrets() {
    let cluster = Cluster::start();
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"password": "s3cret"},
        "metadata": {"name": "theirs", "namespace": "default"}});
    for object in [pool(), pod("waits"), lease(Timestamp::now()), theirs] {
        cluster.server.create(object).unwrap();
    }
    let kubeconfig = cluster.kubeconfig.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json.gz");
    let file = file.to_str().unwrap();
    let taken = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(["snapshot", "--redact", "--kubeconfig", kubeconfig, "-o", file])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(taken.status.success() && told.contains("0 nodes, 1 pod, "), "{told}");
    assert!(
        told.contains(&format!("next    dovetail status --from {file}")),
        "{told}"
    );

    for question in [&["plan"][..], &["why", "pod/waits"]] {
        let live = of_itself(&[question, &["--kubeconfig", kubeconfig]].concat());
        assert_eq!(of_itself(&[question, &["--from", file]].concat()), live, "{question:?}");
    }
    let text = std::io::read_to_string(flate2::read::GzDecoder::new(fs::File::open(file).unwrap())).unwrap();
    assert!(
        text.contains("karpenter-leader-election") && !text.contains("s3cret"),
        "{text}"
    );
}

#[test]
fn a_snapshot_says_how_kubectl_would_make_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(["snapshot", "--script"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("kubectl get nodes,pods,nodepools"), "{text}");
}

impl Cluster {
    /// Runs a command and says how it ended and what it printed.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
            .args(arguments)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}

#[test]
fn crds_of_a_cluster_that_has_ours_are_the_same() {
    let cluster = Cluster::start();
    let (code, text, error) = cluster.run(&["crds", "--diff", "--exit-code"]);
    assert_eq!(code, Some(0), "{text}{error}");
    assert!(text.contains("CRDs are as this program has them."), "{text}");
}

/// The CRD of NodePools with a rule less and a field more.
fn other_pools(cluster: &Cluster) {
    let name = "nodepools.karpenter.sh";
    let mut definition = cluster.server.get("CustomResourceDefinition", name).unwrap();
    let spec = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"]["weight"]["maximum"] = json!(1000);
    spec["properties"]["colour"] = json!({"type": "string"});
    definition["metadata"] = json!({"name": name});
    cluster.server.delete("CustomResourceDefinition", name).unwrap();
    cluster.server.create(definition).unwrap();
}

#[test]
fn crds_are_compared_field_by_field_and_applied_after_a_yes() {
    let cluster = Cluster::start();
    other_pools(&cluster);
    cluster
        .server
        .delete("CustomResourceDefinition", "nodeoverlays.karpenter.sh")
        .unwrap();
    let mut heavy = pool();
    heavy["spec"]["weight"] = json!(500);
    cluster.server.create(heavy).unwrap();

    let (code, text, error) = cluster.run(&["crds", "--diff", "--exit-code"]);
    assert_eq!(code, Some(3), "{text}{error}");
    for wanted in [
        "nodeoverlays.karpenter.sh",
        "not installed",
        "stricter  spec.weight: maximum 1000 becomes 100",
        "stricter  spec.colour: the field goes",
        "refuses   general as it is: spec.weight:",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }

    let (code, text, error) = cluster.run(&["crds", "--apply"]);
    assert_eq!((code, text.as_str()), (Some(0), "nothing was written\n"), "{error}");
    let (code, text, error) = cluster.run(&["crds", "--apply", "--yes"]);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(
        text,
        "nodeoverlays.karpenter.sh installed\nnodepools.karpenter.sh applied\n"
    );
    let (code, text, _) = cluster.run(&["crds", "--diff", "--exit-code"]);
    assert_eq!(code, Some(0), "{text}");
}

fn claim_without_a_node() -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "general-1", "labels": {"karpenter.sh/nodepool": "general"}},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}, "requirements": []},
        "status": {"providerID": "aws:///z/i-1", "conditions": [
            {"type": "Launched", "status": "True", "reason": "Launched", "message": "", "lastTransitionTime": "2026-11-10T10:00:00Z"},
            {"type": "Registered", "status": "True", "reason": "Registered", "message": "", "lastTransitionTime": "2026-11-10T10:00:00Z"}]}})
}

#[test]
fn the_doctor_mends_what_is_safe_and_names_the_command_for_the_rest() {
    let is_past = Arc::new(AtomicBool::new(true));
    let clock = Arc::clone(&is_past);
    let cluster = Cluster::with_clock(move || {
        let past = SignedDuration::from_hours(i64::from(clock.load(Ordering::Relaxed)));
        Timestamp::now() - past
    });
    cluster.server.create(lease(Timestamp::now())).unwrap();
    cluster.server.create(claim_without_a_node()).unwrap();
    cluster
        .server
        .create(
            json!({"apiVersion": "v1", "kind": "Node", "spec": {"providerID": "aws:///z/i-2"},
            "metadata": {"name": "stray",
                "labels": {"karpenter.sh/nodepool": "general", "team": "shop"}}}),
        )
        .unwrap();
    // A node that has just come may still be claimed.
    is_past.store(false, Ordering::Relaxed);

    let (code, text, error) = cluster.run(&["doctor", "--fix"]);
    assert_eq!((code, text.as_str()), (Some(0), "nothing was written\n"), "{error}");
    assert!(error.contains("deletes NodeClaim general-1"), "{error}");
    assert!(cluster.server.get("NodeClaim", "general-1").is_some());

    let (code, text, error) = cluster.run(&["doctor", "--fix", "D10", "--yes"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(text.starts_with("D10  NodeClaim general-1 is deleted"), "{text}");
    assert!(cluster.server.get("NodeClaim", "general-1").is_none());
    let labels = || cluster.server.get("Node", "stray").unwrap()["metadata"]["labels"].clone();
    assert_eq!(
        labels()["karpenter.sh/nodepool"],
        "general",
        "only what was asked for is mended"
    );

    let (code, text, error) = cluster.run(&["doctor", "--fix", "--yes"]);
    assert_eq!(code, Some(0), "{text}{error}");
    assert_eq!(labels(), json!({"team": "shop"}), "{text}{error}");
    let (code, _, error) = cluster.run(&["doctor", "--fix", "D05", "--yes"]);
    assert_eq!(code, Some(1), "{error}");
    assert!(
        error.starts_with("error   D05 has no fix that is safe without a person\n"),
        "{error}"
    );
}

#[test]
fn what_the_cloud_said_is_read_from_a_cluster_and_kept_in_a_snapshot() {
    let cluster = Cluster::start();
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"},
        "reason": "SpotInterrupted", "involvedObject": {"kind": "NodeClaim", "name": "general-1"},
        "firstTimestamp": "2026-11-16T15:30:00Z"});
    for object in [pool(), event] {
        cluster.server.create(object).unwrap();
    }
    let said = |document: &Value| document["notices"]["machines"]["spot interruption"].clone();
    let (_, live) = cluster.ask("status");
    assert_eq!(said(&live), 1, "{live:#}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    let file = file.to_str().unwrap();
    let (code, _, error) = cluster.run(&["snapshot", "-o", file]);
    assert_eq!(code, Some(0), "{error}");
    let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(["status", "-o", "json", "--from", file])
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(said(&document), 1, "{document:#}");
    assert!(
        !document["assumed"].to_string().contains("CustomResourceDefinition"),
        "{document:#}"
    );
    let compared = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(["crds", "--diff", "--exit-code", "--from", file])
        .status()
        .unwrap();
    assert!(compared.success(), "a snapshot holds the CRDs of its cluster");
}
