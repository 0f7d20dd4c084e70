//! The rig's promises: a cluster answers, several stand side by side, and none outlives the test that wanted it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "the whole file is a test"
)]

use std::env;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rig::client::Seen;
use rig::{Client, Cluster};
use serde_json::{Value, json};

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const LIMIT: Duration = Duration::from_mins(5);

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kwok-partition": "a"}}})
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "none"}]}
    })
}

fn await_phase(client: &Client, path: &str, phase: &str) {
    let look = |client: &Client| {
        let status = client.get(path)?.unwrap_or_default()["status"].clone();
        Ok(if status["phase"] == phase {
            Seen::Done(())
        } else {
            Seen::NotYet(status.to_string())
        })
    };
    client.wait_for(&format!("{path} being {phase}"), LIMIT, look).unwrap();
}

#[test]
fn pod_on_a_node_of_the_partition_is_scheduled_and_runs_and_goes_when_deleted() {
    let cluster = Cluster::builder().kwok(Vec::new()).start().unwrap();
    let client = cluster.client();
    client.post(NODES, &node("one")).unwrap();
    client.post(PODS, &pod("web")).unwrap();
    let web = format!("{PODS}/web");
    await_phase(client, &web, "Running");
    assert_eq!(client.get(&web).unwrap().unwrap()["spec"]["nodeName"], "one");
    client.delete(&web).unwrap();
    let gone = |client: &Client| {
        Ok(client
            .get(&web)?
            .map_or(Seen::Done(()), |pod| Seen::NotYet(pod.to_string())))
    };
    client.wait_for("the pod being gone", LIMIT, gone).unwrap();
}

#[test]
fn two_api_servers_side_by_side_answer_with_the_asked_version_and_share_nothing() {
    let [left, right] = [(), ()].map(|()| Cluster::builder().api_server_only().start().unwrap());
    for cluster in [&left, &right] {
        let version = cluster.client().get("/version").unwrap().unwrap();
        assert_eq!(version["gitVersion"], "v1.36.3");
    }
    left.client().post(NODES, &node("one")).unwrap();
    assert_eq!(
        left.client().get(NODES).unwrap().unwrap()["items"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    assert_eq!(
        right.client().get(NODES).unwrap().unwrap()["items"]
            .as_array()
            .map(Vec::len),
        Some(0)
    );
}

#[test]
fn installed_crd_is_served_when_the_call_returns() {
    let crd = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: gadgets.rig.test }
spec:
  group: rig.test
  scope: Cluster
  names: { plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList }
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: { spec: { type: object, properties: { size: { type: integer, default: 3, maximum: 5 } } } }
";
    let cluster = Cluster::builder().api_server_only().start().unwrap();
    let client = cluster.client();
    assert_eq!(client.install_crd(crd).unwrap(), ["gadgets.rig.test"]);
    let gadget =
        |size: Value| json!({"apiVersion": "rig.test/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": size});
    let gadgets = "/apis/rig.test/v1/gadgets";
    let refused = client
        .request(
            "POST",
            gadgets,
            Some(&gadget(json!({"size": 6}))),
            rig::client::media::JSON,
        )
        .unwrap();
    assert_eq!(
        (refused.status, &refused.json["details"]["causes"][0]["field"]),
        (422, &json!("spec.size"))
    );
    assert_eq!(
        client.post(gadgets, &gadget(json!({}))).unwrap()["spec"],
        json!({"size": 3})
    );
}

#[test]
fn dropped_cluster_leaves_neither_processes_nor_files() {
    let cluster = Cluster::builder().api_server_only().start().unwrap();
    let (pids, state) = (cluster.process_ids(), cluster.logs().parent().unwrap().to_path_buf());
    assert!(pids.iter().all(|pid| alive(*pid)) && state.exists());
    drop(cluster);
    assert!(!pids.iter().any(|pid| alive(*pid)) && !state.exists());
}

/// Set for the copy of this test binary that plays the parent.
const PARENT: &str = "RIG_TEST_PARENT";

#[test]
fn killed_parent_leaves_neither_processes_nor_files() {
    if env::var_os(PARENT).is_some() {
        return hold_a_cluster_until_killed();
    }
    let me = env::current_exe().unwrap();
    let mut parent = Command::new(me)
        .args([
            "--exact",
            "killed_parent_leaves_neither_processes_nor_files",
            "--nocapture",
        ])
        .env(PARENT, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (pids, state) = what_it_holds(BufReader::new(parent.stdout.take().unwrap()));
    assert!(
        pids.iter().all(|pid| alive(*pid)) && state.exists(),
        "{pids:?} {state:?}"
    );
    parent.kill().unwrap();
    parent.wait().unwrap();
    await_nothing_left(&pids, &state);
}

fn hold_a_cluster_until_killed() {
    let cluster = Cluster::builder().api_server_only().start().unwrap();
    let pids: Vec<_> = cluster.process_ids().iter().map(u32::to_string).collect();
    println!(
        "\nholding {} {}",
        cluster.logs().parent().unwrap().display(),
        pids.join(" ")
    );
    loop {
        sleep(Duration::from_secs(1));
    }
}

fn what_it_holds(output: impl BufRead) -> (Vec<u32>, PathBuf) {
    for line in output.lines() {
        let line = line.unwrap();
        if let Some(rest) = line.strip_prefix("holding ") {
            let mut words = rest.split(' ');
            let state = words.next().unwrap().into();
            return (words.map(|pid| pid.parse().unwrap()).collect(), state);
        }
    }
    panic!("the parent ended before it had a cluster");
}

/// There is no event for the end of somebody else's grandchild, so this one has to look.
fn await_nothing_left(pids: &[u32], state: &Path) {
    for _ in 0..600 {
        if !pids.iter().any(|pid| alive(*pid)) && !state.exists() {
            return;
        }
        sleep(Duration::from_millis(50));
    }
    let left: Vec<_> = pids.iter().filter(|pid| alive(**pid)).collect();
    panic!(
        "processes {left:?} or {} (there: {}) outlive their parent",
        state.display(),
        state.exists()
    );
}

/// A zombie counts as ended: its parent has not fetched its status yet, but it holds nothing.
fn alive(pid: u32) -> bool {
    let output = Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .output()
        .unwrap();
    let stat = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    !stat.is_empty() && !stat.starts_with('Z')
}
