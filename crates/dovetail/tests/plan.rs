//! `dovetail plan` as a user runs it: on the example cluster, and on dumps that lack something.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

const NODE_POOL: &str = r"
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      requirements: []
      nodeClassRef: {group: example.com, kind: OtherNodeClass, name: default}
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn plan(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command.current_dir(root()).arg("plan").args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    plan(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What the example answers as JSON.
fn document(more: &[&str]) -> Value {
    let arguments = [
        &["--from", "examples/plan", "-o", "json", "--at", "2026-11-16T15:42:00Z"],
        more,
    ]
    .concat();
    serde_json::from_slice(&run(&arguments).stdout).unwrap()
}

fn strings(value: &Value) -> Vec<String> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.as_str().unwrap().to_owned())
        .collect()
}

/// Runs on a directory with these files, and returns what the error says.
fn error_of(files: &[(&str, &str)], more: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(directory.path().join(name), content).unwrap();
    }
    let path = directory.path().to_str().unwrap();
    let output = run(&[&["--from", path], more].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    text(&output.stderr).replace(path, "DIR")
}

#[test]
fn the_example_is_printed_as_a_table_for_two_widths() {
    for width in ["80", "120"] {
        let output = run(&[
            "--from",
            "examples/plan",
            "--packing",
            "faithful",
            "--pods",
            "--width",
            width,
        ]);
        let path = root().join(format!("crates/dovetail/tests/golden/example-plan-{width}.txt"));
        let golden = fs::read_to_string(&path).unwrap_or_default();
        let refresh = format!(
            "to accept: cargo run -q -- plan --from examples/plan --packing faithful --pods --width {width} > {}",
            path.display()
        );
        assert_eq!(text(&output.stdout), golden, "{refresh}");
    }
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for width in [80, 100, 120] {
        let output = run(&["--from", "examples/plan", "--width", &width.to_string(), "--ascii"]);
        for line in text(&output.stdout).lines() {
            // A single word is never broken: it may be something to copy.
            let is_one_word = !line.trim_start().contains(' ');
            assert!(line.len() <= width || is_one_word, "{width}: {line}");
        }
    }
}

#[test]
fn every_waiting_pod_is_on_one_node_or_pending() {
    let document = document(&[]);
    let lists = ["new_nodes", "existing_nodes", "pending"].map(|part| document[part].as_array().unwrap().clone());
    let pods: Vec<String> = lists.iter().flatten().flat_map(|part| strings(&part["pods"])).collect();
    let distinct: BTreeSet<_> = pods.iter().collect();
    assert_eq!((pods.len(), distinct.len()), (22, 22));
    assert_eq!(document["pods"]["waiting"], 22);
}

#[test]
fn nothing_is_asked_of_a_node_that_it_does_not_have() {
    let document = document(&[]);
    let new = document["new_nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| &node["room"]);
    let existing = document["existing_nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| &node["after"]);
    for room in new.chain(existing) {
        for resource in ["cpu_m", "memory_mib"] {
            let amount = |what: &str| room[format!("{resource}_{what}")].as_u64().unwrap();
            assert!(amount("requested") <= amount("allocatable"), "{room}");
        }
    }
}

#[test]
fn the_total_is_the_sum_of_the_nodes_and_never_above_upstreams() {
    let document = document(&[]);
    let sum: f64 = document["new_nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["usd_h"].as_f64().unwrap())
        .sum();
    let total = document["total"]["usd_h"].as_f64().unwrap();
    assert!((sum - total).abs() < 1e-9, "{sum} and {total}");
    assert!(total <= document["total"]["upstream_usd_h"].as_f64().unwrap() + 1e-9);
}

#[test]
fn upstreams_algorithm_pays_what_the_oracle_says() {
    // `cargo xtask bench reference solve` on the same snapshot: 4 claims, 1.3248 dollars.
    let total = document(&["--packing", "faithful"])["total"].clone();
    assert_eq!(
        (total["new_nodes"].as_u64(), total["usd_h"].as_f64()),
        (Some(4), Some(1.3248))
    );
}

#[test]
fn equal_inputs_give_equal_bytes_and_yaml_says_the_same() {
    assert_eq!(document(&[]), document(&[]));
    let yaml = run(&["--from", "examples/plan", "-o", "yaml", "--at", "2026-11-16T15:42:00Z"]);
    let yaml: Value = serde_saphyr::from_str(&text(&yaml.stdout)).unwrap();
    assert_eq!(yaml, document(&[]));
}

#[test]
fn the_answer_goes_to_standard_output_and_its_origin_to_standard_error() {
    let output = run(&["--from", "examples/plan", "--width", "400"]);
    let notes = text(&output.stderr);
    let (source, assumed) = notes.split_once('\n').unwrap();
    assert!(source.starts_with("source   examples/plan: 2 nodes, "), "{source}");
    let rest = "39 objects in 5 files, read in ";
    assert!(source.contains(rest), "{source}");
    let catalogue = " s; catalogue aws us-east-1, 1,345 instance types, prices 2026-07-20 \
                     (because NodePool general uses EC2NodeClass)";
    assert!(source.ends_with(catalogue), "{source}");
    let expected = "assumed  spot costs 40% of on-demand (no spot prices in the table)\n";
    assert!(assumed.contains(expected), "{assumed}");
    assert!(!text(&output.stdout).contains("assumed"));
}

#[test]
fn a_pending_pod_is_an_exit_code_only_when_asked_for() {
    assert_eq!(run(&["--from", "examples/plan"]).status.code(), Some(0));
    assert_eq!(
        run(&["--from", "examples/plan", "--fail-on-pending"]).status.code(),
        Some(3)
    );
}

#[test]
fn standard_input_is_a_dump_like_any_other() {
    let mut child = plan(&["--from", "examples/plan/nodepools.yaml", "-", "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pods = fs::read(root().join("examples/plan/pods.yaml")).unwrap();
    child.stdin.take().unwrap().write_all(&pods).unwrap();
    let document: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(document["pods"]["waiting"], 22);
    let assumed = strings(&document["assumed"]);
    assert!(
        assumed.contains(&"no DaemonSets in the dump: nodes run none".to_owned()),
        "{assumed:?}"
    );
    assert!(
        assumed.contains(&"region us-east-1: no node says another, --region does".to_owned()),
        "{assumed:?}"
    );
}

/// As people write it: nobody has given the pool or the pods a status. The limit is what a plan must live within.
const MANIFESTS: &str = r#"
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      requirements:
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [g]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  limits: {cpu: 100}
---
apiVersion: v1
kind: Pod
metadata: {name: train-1, namespace: ml}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: "2", memory: 4Gi, nvidia.com/gpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: train-2, namespace: ml}
spec: {containers: [{name: c, image: x, resources: {limits: {cpu: "2", memory: 4Gi, nvidia.com/gpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: train-3, namespace: ml}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: "2", memory: 4Gi, nvidia.com/gpu: 1}}}]}
status: {phase: Pending}
---
apiVersion: v1
kind: Pod
metadata: {name: held, namespace: ml}
spec: {schedulingGates: [{name: later}], containers: [{name: c, image: x}]}
"#;

#[test]
fn manifests_without_a_status_are_planned_for_and_that_is_told() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("all.yaml"), MANIFESTS).unwrap();
    let output = run(&["--from", directory.path().to_str().unwrap(), "-o", "json"]);
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let types: Vec<&str> = plan["new_nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["instance_type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["g5g.xlarge"; 3], "{plan:#}");
    let assumed = strings(&plan["assumed"]).join("; ");
    for told in [
        "1 NodePool that no controller has judged has no fault: ready",
        "3 pods that kube-scheduler has not judged need a place",
    ] {
        assert!(assumed.contains(told), "{assumed}");
    }
}

#[test]
fn another_catalogue_buys_from_another_cloud() {
    let types = document(&["--catalogue", "kwok"])["source"]["instance_types"].clone();
    assert_eq!(types, 144);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("types.yaml");
    fs::write(
        &file,
        "- {name: only, capacity: {cpu: 4, memory: 8Gi, pods: 20}, offerings: []}",
    )
    .unwrap();
    let source = document(&["--catalogue", file.to_str().unwrap()])["source"].clone();
    assert_eq!(
        (source["instance_types"].as_u64(), source["catalogue"].as_str()),
        (Some(1), file.to_str())
    );
}

#[test]
fn a_directory_without_objects_says_how_to_make_a_dump() {
    let error = error_of(&[("notes.txt", "hello")], &[]);
    let expected = "error   DIR holds no object a plan can be made from\n\
                    why     read 0 files named *.yaml, *.yml or *.json, passed over 1 with other names and 0 objects of other kinds\n\
                    next    kubectl get nodes,";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_dump_without_node_pools_says_how_to_add_them() {
    let error = error_of(&[("a.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")], &[]);
    let expected = "error   no NodePool in DIR\n\
                    why     1 object read, none of kind NodePool in karpenter.sh/v1: without one nothing can be launched\n\
                    next    add them to the dump: kubectl get nodepools -o yaml > nodepools.yaml\n";
    assert_eq!(error, expected);
}

#[test]
fn a_dump_of_an_unknown_cloud_says_which_flag_names_the_catalogue() {
    let error = error_of(&[("a.yaml", NODE_POOL)], &[]);
    assert!(error.starts_with("error   no catalogue of instance types\n"), "{error}");
    assert!(
        error.contains("\nnext    say what the cloud offers: --catalogue aws|azure|kwok"),
        "{error}"
    );
}

#[test]
fn a_region_that_is_none_is_refused_by_name() {
    let error = error_of(&[("a.yaml", NODE_POOL)], &["--catalogue", "aws", "--region", "mars"]);
    let expected = "error   --region mars is not a region of aws\n\
                    why     its regions look like us-east-1; the embedded prices are of us-east-1, us-west-2, eu-west-1, us-gov-east-1, us-gov-west-1, cn-north-1\n\
                    next    --region us-east-1\n";
    assert_eq!(error, expected);
}

#[test]
fn a_bad_object_is_named_with_field_and_value() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {namespace: shop, name: cart-0}\nspec: {priority: high}\n";
    let error = error_of(&[("a.yaml", pod)], &[]);
    for part in [
        "error   cannot read DIR\n",
        "cart-0",
        "spec.priority",
        "\"high\"",
        "\nnext    mend",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn a_bad_catalogue_is_named_with_field_and_value() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("types.json");
    fs::write(&file, r#"[{ "name": "a", "offerings": [{ "price": "cheap" }] }]"#).unwrap();
    let error = error_of(&[("a.yaml", NODE_POOL)], &["--catalogue", file.to_str().unwrap()]);
    for part in [
        "cannot read the catalogue",
        "instanceTypes[0].offerings[0].price",
        "cheap",
        "docs/snapshot-file.md",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

fn deployment(replicas: &str, uid: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: inflate{uid}}}\nspec:\n  replicas: {replicas}\n  \
         selector: {{matchLabels: {{app: inflate}}}}\n  template:\n    metadata: {{labels: {{app: inflate}}}}\n    spec:\n      \
         containers: [{{name: inflate, resources: {{requests: {{cpu: 1}}}}}}]\n"
    )
}

#[test]
fn workloads_fresh_from_a_manifest_are_planned_for_as_if_their_pods_were_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("manifests.yaml");
    let planned = |workload: &str| -> Value {
        let pool = NODE_POOL.replace("kind: OtherNodeClass", "kind: KWOKNodeClass");
        fs::write(&file, pool + workload).unwrap();
        let output = run(&["--from", file.to_str().unwrap(), "-o", "json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
    };
    let fresh = planned(&deployment("5", ""));
    assert_eq!(fresh["pods"]["on_new_nodes"], 5, "{fresh:#}");
    let told = "Deployment inflate makes its 5 pods, which nobody has made yet";
    assert!(fresh["assumed"].to_string().contains(told), "{fresh:#}");

    let seen = planned(&deployment("5", ", uid: 6ba7b810-9dad-11d1-80b4-00c04fd430c8"));
    assert_eq!(
        seen["pods"]["on_new_nodes"], 0,
        "its controller makes them, or has a reason not to"
    );
    let slip = planned(&deployment("2147483647", ""));
    assert_eq!(slip["pods"]["on_new_nodes"], 0);
    assert!(
        slip["assumed"]
            .to_string()
            .contains("2147483647 pods that nobody has made: left out"),
        "{slip:#}"
    );
}

fn job(spec: &str, metadata: &str) -> String {
    format!(
        "---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: night{metadata}}}\nspec:\n  {spec}\n  template:\n    \
         spec:\n      restartPolicy: Never\n      containers: [{{name: night, resources: {{requests: {{cpu: 1}}}}}}]\n"
    )
}

#[test]
fn jobs_fresh_from_a_manifest_are_planned_for_and_those_of_a_cluster_have_their_pods() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("manifests.yaml");
    let planned = |job: &str| -> Value {
        let pool = NODE_POOL.replace("kind: OtherNodeClass", "kind: KWOKNodeClass");
        fs::write(&file, pool + job).unwrap();
        let output = run(&["--from", file.to_str().unwrap(), "-o", "json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
    };
    let fresh = planned(&job("parallelism: 4\n  completions: 3", ""));
    assert_eq!(fresh["pods"]["on_new_nodes"], 3, "{fresh:#}");
    let told = "Job night makes its 3 pods, which nobody has made yet";
    assert!(fresh["assumed"].to_string().contains(told), "{fresh:#}");

    let seen = planned(&job("parallelism: 4", ", uid: 6ba7b810-9dad-11d1-80b4-00c04fd430c8"));
    assert_eq!(seen["pods"]["on_new_nodes"], 0, "its controller makes them");
    assert!(seen["assumed"].to_string().contains("1 Job of batch/v1"), "{seen:#}");
}

#[test]
fn a_pool_of_an_old_version_is_to_be_converted_and_not_to_be_dumped_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old.yaml");
    let class = "---\napiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: default}\n\
        ---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a}]}\n";
    fs::write(
        &file,
        NODE_POOL.replace("karpenter.sh/v1", "karpenter.sh/v1beta1") + class,
    )
    .unwrap();
    let output = run(&["--from", file.to_str().unwrap()]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("next    convert what is of an old version: dovetail lint -f "),
        "{told}"
    );
}
