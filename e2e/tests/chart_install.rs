//! What do Helm and an API server make of the charts? Rendered with every set of values, held against Karpenter's own
//! chart, tried on a real API server, and installed there over an installation of Karpenter and back.
//!
//! Needs Go: Helm is built from its module on first use, and Karpenter's chart is read from its own.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of a test fails as the test does"
)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use rig::{Client, Cluster, client::media};
use serde_json::{Value, json};
use tempfile::TempDir;

const CHART: &str = "charts/dovetail";
const VALUES: [&str; 3] = ["minimal", "karpenter", "every-option"];
/// For AKS, where Karpenter has another chart.
const AZURE: &str = "azure";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn values(name: &str) -> String {
    format!("{CHART}/ci/{name}-values.yaml")
}

/// Karpenter's chart for AWS, as it is published.
fn upstream() -> &'static str {
    static DIR: OnceLock<String> = OnceLock::new();
    DIR.get_or_init(|| {
        let module = rig::gomod::dir("github.com/aws/karpenter-provider-aws", "v1.14.1").unwrap();
        module.join("charts/karpenter").display().to_string()
    })
}

/// Runs Helm in the root of the repository, with a home of its own.
fn helm(home: &Path, kubeconfig: Option<&Path>, args: &[&str]) -> Output {
    let mut command = Command::new(rig::tool::helm().unwrap());
    command
        .args(args)
        .current_dir(root())
        .env_remove("KUBECONFIG")
        .env("HELM_CACHE_HOME", home.join("cache"))
        .env("HELM_CONFIG_HOME", home.join("config"))
        .env("HELM_DATA_HOME", home.join("data"));
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    command.output().unwrap()
}

/// What Helm says when all goes well.
fn said(args: &[&str], output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "helm {args:?}: {wrong}\n{text}");
    text
}

/// The objects a chart makes.
fn rendered(release: &str, namespace: &str, chart: &str, more: &[&str]) -> Vec<Value> {
    let home = TempDir::new().unwrap();
    let mut args = vec!["template", release, chart, "--namespace", namespace];
    args.extend(["--api-versions", "monitoring.coreos.com/v1"]);
    args.extend(more);
    let text = said(&args, &helm(home.path(), None, &args));
    rig::manifest::documents(chart, &text).unwrap()
}

/// `Kind namespace/name`.
fn key(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!(
        "{} {}/{}",
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name")
    )
}

fn by_key(objects: Vec<Value>) -> BTreeMap<String, Value> {
    objects.into_iter().map(|object| (key(&object), object)).collect()
}

#[test]
fn helm_has_nothing_to_object_to() {
    let home = TempDir::new().unwrap();
    for name in VALUES.into_iter().chain([AZURE]) {
        let file = values(name);
        let args = ["lint", "--strict", CHART, "-f", &file];
        said(&args, &helm(home.path(), None, &args));
    }
    let args = ["lint", "--strict", "charts/dovetail-crd"];
    said(&args, &helm(home.path(), None, &args));
}

/// What may differ from the Deployment of Karpenter's chart: the image, its arguments, the environment, which is compared by
/// itself, and the port of the page, which Karpenter has not.
fn comparable(deployment: &Value) -> Value {
    let mut spec = deployment["spec"].clone();
    if spec["template"]["metadata"]["annotations"].is_null() {
        spec["template"]["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("annotations");
    }
    let container = spec["template"]["spec"]["containers"][0].as_object_mut().unwrap();
    for field in ["image", "args", "env"] {
        container.remove(field);
    }
    if let Some(ports) = container.get_mut("ports").and_then(Value::as_array_mut) {
        ports.retain(|port| port["name"] != "page");
    }
    spec
}

fn environment(deployment: &Value) -> BTreeMap<String, Value> {
    let all = deployment
        .pointer("/spec/template/spec/containers/0/env")
        .and_then(Value::as_array)
        .unwrap();
    let pairs = all.iter().map(|one| {
        let what = if one["value"].is_null() {
            &one["valueFrom"]
        } else {
            &one["value"]
        };
        (one["name"].as_str().unwrap().to_owned(), what.clone())
    });
    pairs.collect()
}

fn gates(text: &Value) -> Vec<String> {
    let mut gates: Vec<String> = text.as_str().unwrap().split(',').map(str::to_owned).collect();
    gates.sort();
    gates
}

#[test]
fn a_release_called_karpenter_has_everything_karpenters_chart_makes() {
    // Karpenter's own values.yaml is a values file, too. Its image is the one thing that cannot mean ours.
    let home = TempDir::new().unwrap();
    let theirs = fs::read_to_string(Path::new(upstream()).join("values.yaml")).unwrap();
    let whole = home.path().join("whole.yaml");
    fs::write(&whole, theirs).unwrap();
    let whole = whole.display().to_string();
    let ours_alone = [
        "--set",
        "controller.image.repository=example.com/dovetail",
        "--set",
        "dovetail.flightRecorder.enabled=false",
    ];
    let named = ["--set", "settings.clusterName=dev"];
    let sets = VALUES.map(values).into_iter().chain([whole]);
    for file in sets {
        let given = [&["-f", &file][..], &named].concat();
        let theirs = by_key(rendered("karpenter", "karpenter", upstream(), &given));
        let ours = by_key(rendered(
            "karpenter",
            "karpenter",
            CHART,
            &[&given[..], &ours_alone].concat(),
        ));
        assert!(theirs.len() >= 10, "{:?}", theirs.keys());
        for (key, upstream) in &theirs {
            let object = ours
                .get(key)
                .unwrap_or_else(|| panic!("{file}: no {key} among {:?}", ours.keys()));
            assert_eq!(
                object["metadata"]["annotations"], upstream["metadata"]["annotations"],
                "{file}: {key}"
            );
            match upstream["kind"].as_str().unwrap() {
                "Deployment" => {
                    assert_eq!(comparable(object), comparable(upstream), "{file}");
                    same_environment(&file, &environment(object), &environment(upstream));
                }
                // Their rules are ours: deploy/rbac.yaml.
                "ClusterRole" | "Role" if !key.ends_with("-admin") && !key.ends_with("-dns") => {}
                _ => {
                    for field in ["spec", "rules", "roleRef", "subjects", "automountServiceAccountToken"] {
                        assert_eq!(object[field], upstream[field], "{file}: {key}, {field}");
                    }
                }
            }
        }
    }
}

fn same_environment(file: &str, ours: &BTreeMap<String, Value>, theirs: &BTreeMap<String, Value>) {
    for (name, value) in theirs {
        let own = ours.get(name).unwrap_or_else(|| panic!("{file}: no variable {name}"));
        if name == "FEATURE_GATES" {
            let own = gates(own);
            assert!(
                gates(value).iter().all(|gate| own.contains(gate)),
                "{file}: {value} and {own:?}"
            );
        } else {
            assert_eq!(own, value, "{file}: {name}");
        }
    }
}

#[test]
fn the_controller_may_do_what_its_own_role_says() {
    let files = ["deploy/rbac.yaml", "deploy/rbac-aws.yaml", "deploy/page.yaml"];
    let roles = files.map(|file| {
        let text = fs::read_to_string(root().join(file)).unwrap();
        rig::manifest::documents(file, &text).unwrap()
    });
    let wanted = by_key(roles.concat());
    let rules = |key: &str| wanted.get(key).unwrap_or_else(|| panic!("no {key}"))["rules"].clone();
    let chart = by_key(rendered("dovetail", "scaling", CHART, &["-f", &values("minimal")]));
    let pairs = [
        ("ClusterRole /dovetail-core", "ClusterRole /dovetail-core"),
        ("ClusterRole /dovetail", "ClusterRole /dovetail-aws"),
        ("Role scaling/dovetail", "Role kube-system/dovetail-lease"),
        ("Role scaling/dovetail-known", "Role kube-system/dovetail-aws-known"),
        ("Role kube-system/dovetail-dns", "Role kube-system/dovetail-dns"),
        ("Role scaling/dovetail-decisions", "Role kube-system/dovetail-decisions"),
        (
            "Role kube-node-lease/dovetail-node-leases",
            "Role kube-node-lease/dovetail-node-leases",
        ),
    ];
    for (ours, proved) in pairs {
        assert_eq!(
            chart.get(ours).unwrap_or_else(|| panic!("no {ours}"))["rules"],
            rules(proved),
            "{ours}"
        );
    }
    assert!(
        !chart.contains_key("ClusterRole /dovetail-pin"),
        "pods are bound only where that is asked for"
    );
    let every = by_key(rendered("dovetail", "scaling", CHART, &["-f", &values("every-option")]));
    assert_eq!(
        every["ClusterRole /node-scaler-pin"]["rules"],
        rules("ClusterRole /dovetail-pin")
    );
    assert_eq!(
        every["ClusterRole /node-scaler-deletion-cost"]["rules"],
        rules("ClusterRole /dovetail-deletion-cost")
    );
    assert!(!chart.contains_key("ClusterRole /dovetail-page"), "no page, no reviews");
    assert_eq!(
        every["ClusterRole /node-scaler-page"]["rules"],
        rules("ClusterRole /dovetail-page")
    );
    let variables = environment(&every["Deployment scaling/node-scaler"]);
    assert_eq!(variables["PAGE_PORT"], "8090");
    assert_eq!(
        variables["NOTIFY_URL"],
        json!({"secretKeyRef": {"name": "webhook", "key": "address"}}),
        "a URL that is a secret stays in its Secret"
    );
    assert_eq!(variables["NOTIFY_ON"], "refused,aborted");
    assert!(
        !every.contains_key("Role scaling/node-scaler-decisions"),
        "no records, no role for them"
    );
    let added = every["ClusterRole /node-scaler-core"]["rules"].as_array().unwrap();
    assert_eq!(added.last().unwrap()["apiGroups"], json!(["example.com"]));
}

#[test]
fn on_aks_the_controller_may_do_what_its_own_role_says_wherever_it_is_installed() {
    let file = "deploy/rbac-azure.yaml";
    let roles = rig::manifest::documents(file, &fs::read_to_string(root().join(file)).unwrap()).unwrap();
    let wanted = by_key(roles);
    let chart = by_key(rendered("dovetail", "scaling", CHART, &["-f", &values(AZURE)]));
    let pairs = [
        ("ClusterRole /dovetail", "ClusterRole /dovetail-azure"),
        ("Role scaling/dovetail-known", "Role kube-system/dovetail-azure-known"),
        ("Role kube-system/dovetail-dns", "Role kube-system/dovetail-azure-dns"),
    ];
    for (ours, proved) in pairs {
        assert_eq!(chart[ours]["rules"], wanted[proved]["rules"], "{ours}");
    }
    // SYSTEM_NAMESPACE is where the controller runs, and there it looks for the maintenance window.
    let beside_us = chart["Role scaling/dovetail-known"]["rules"].to_string();
    assert!(beside_us.contains("upcoming-maintenance-window"), "{beside_us}");
}

#[test]
fn karpenters_values_for_aks_make_an_environment_that_has_everything_once() {
    let objects = rendered("karpenter", "scaling", CHART, &["-f", &values(AZURE)]);
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let variables = environment(deployment);
    assert_eq!(variables["CLOUD"], "azure");
    assert_eq!(variables["CLUSTER_NAME"], "aks-cluster-dev");
    assert_eq!(variables["ADDITIONAL_TAGS"], "cost-center=7,team=platform");
    let listed = deployment.pointer("/spec/template/spec/containers/0/env").unwrap();
    assert_eq!(listed.as_array().unwrap().len(), variables.len(), "{listed}");
    assert!(!variables.contains_key("INTERRUPTION_QUEUE") && !variables.contains_key("AWS_FEATURE_GATES"));
    let pod = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(pod["azure.workload.identity/use"], "true");
}

#[test]
fn every_binding_is_for_an_account_and_a_role_that_exist() {
    let outside = [
        "--set",
        "serviceAccount.create=false",
        "--set",
        "serviceAccount.name=given",
    ];
    for (file, more) in [
        (values("minimal"), &[][..]),
        (values("every-option"), &[]),
        (values(AZURE), &[]),
        (values("minimal"), &outside),
    ] {
        let objects = by_key(rendered("dovetail", "scaling", CHART, &[&["-f", &file], more].concat()));
        let account = objects
            .keys()
            .find_map(|key| key.strip_prefix("ServiceAccount scaling/"));
        let account = account.unwrap_or("given");
        let bindings = objects.values().filter(|object| !object["roleRef"].is_null());
        let mut count = 0;
        for binding in bindings {
            let namespace = binding["metadata"]["namespace"].as_str().unwrap_or_default();
            let role = &binding["roleRef"];
            let named = format!(
                "{} {namespace}/{}",
                role["kind"].as_str().unwrap(),
                role["name"].as_str().unwrap()
            );
            assert!(objects.contains_key(&named), "{named} does not exist");
            let subject = json!([{"kind": "ServiceAccount", "name": account, "namespace": "scaling"}]);
            assert_eq!(binding["subjects"], subject, "{named}");
            count += 1;
        }
        assert!(count >= 5, "{count} bindings");
        let pod = &objects.values().find(|object| object["kind"] == "Deployment").unwrap()["spec"]["template"]["spec"];
        assert_eq!(pod["serviceAccountName"], account);
    }
}

#[test]
fn pods_are_of_no_use_to_whoever_breaks_into_them() {
    for name in VALUES {
        let objects = rendered("dovetail", "kube-system", CHART, &["-f", &values(name)]);
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let context = &container["securityContext"];
        assert_eq!(context["runAsNonRoot"], true, "{name}");
        assert_eq!(context["readOnlyRootFilesystem"], true, "{name}");
        assert_eq!(context["allowPrivilegeEscalation"], false, "{name}");
        assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}), "{name}");
    }
}

#[test]
fn settings_that_are_false_or_zero_are_handed_on() {
    let objects = rendered("dovetail", "kube-system", CHART, &["-f", &values("every-option")]);
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let environment = environment(deployment);
    assert_eq!(environment["IGNORE_DRA_REQUESTS"], "false");
    assert_eq!(environment["VM_MEMORY_OVERHEAD_PERCENT"], "0");
    assert_eq!(environment["DECISION_RECORDS"], "false");
    assert_eq!(
        environment["SCHEDULER_CONFIG"],
        "podTopologySpread:\n  defaultConstraints: []\n"
    );
    assert_eq!(
        gates(&environment["FEATURE_GATES"]),
        [
            "CapacityBuffer=true",
            "NodeOverlay=true",
            "NodeRepair=true",
            "PodDeletionCostManagement=true",
            "ReservedCapacity=false",
            "SpotToSpotConsolidation=true",
            "StaticCapacity=true",
            "TerminateFirstDrift=true",
            "TerminateFirstRepair=true",
        ]
    );
}

#[test]
fn outside_kube_system_the_api_server_is_told_how_urgent_the_lease_is() {
    let schemas = |namespace: &str| {
        let objects = rendered("dovetail", namespace, CHART, &["-f", &values("minimal")]);
        let schemas = objects.into_iter().filter(|object| object["kind"] == "FlowSchema");
        schemas
            .map(|object| object["spec"]["priorityLevelConfiguration"]["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(schemas("karpenter"), ["leader-election", "workload-high"]);
    assert_eq!(schemas("kube-system"), Vec::<Value>::new());
}

#[test]
fn values_that_cannot_be_meant_are_refused_by_name() {
    let home = TempDir::new().unwrap();
    let named = "settings.clusterName=dev";
    let cases = [
        (&["--set", ""][..], "settings.clusterName is empty"),
        (&["--set", named, "--set", "replicas=two"], "replicas"),
        (&["--set", named, "--set", "logLevel=loud"], "logLevel"),
        (
            &["--set", named, "--set", "settings.batchMaxDuration=soon"],
            "batchMaxDuration",
        ),
        (
            &["--set", named, "--set", "settings.clusterEndpoint=example.com"],
            "clusterEndpoint",
        ),
        (&["--set", named, "--set", "dovetail.steering=left"], "steering"),
        (&["--set", named, "--set", "dovetail.cloud=moon"], "cloud"),
        (
            &["--set", named, "--set", "dovetail.cloud=azure"],
            "settings.clusterEndpoint are needed on AKS",
        ),
        (
            &[
                "--set",
                named,
                "--set",
                "controller.image.repository=public.ecr.aws/karpenter/controller",
            ],
            "is Karpenter's controller",
        ),
    ];
    for (given, word) in cases {
        let args = [&["template", "dovetail", CHART][..], given].concat();
        let output = helm(home.path(), None, &args);
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && wrong.contains(word), "{given:?}: {wrong}");
    }
}

#[test]
fn the_crd_chart_makes_the_crds_and_nothing_that_is_not_asked_for() {
    let names = |more: &[&str]| {
        let crds = rendered("dovetail-crd", "karpenter", "charts/dovetail-crd", more);
        for crd in &crds {
            assert_eq!(crd["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
            let name = crd["metadata"]["name"].as_str().unwrap();
            let (plural, group) = name.split_once('.').unwrap();
            let path = root().join(format!("crates/api/crds/{group}_{plural}.yaml"));
            let source = rig::manifest::documents(name, &fs::read_to_string(path).unwrap())
                .unwrap()
                .remove(0);
            // Also numbers: a template language may turn large ones into floats.
            assert_eq!(crd["spec"], source["spec"], "{name}");
        }
        crds.iter()
            .map(|crd| crd["metadata"]["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let aws = [
        "capacitybuffers.autoscaling.x-k8s.io",
        "ec2nodeclasses.karpenter.k8s.aws",
        "nodeclaims.karpenter.sh",
        "nodeoverlays.karpenter.sh",
        "nodepools.karpenter.sh",
    ];
    assert_eq!(names(&[]), aws);
    let all = names(&["--set", "nodeClasses.azure=true", "--set", "nodeClasses.kwok=true"]);
    assert_eq!(all.len(), 7, "{all:?}");
}

/// Where an object lives on an API server.
fn path(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let version = text("/apiVersion");
    let prefix = if version.contains('/') { "/apis" } else { "/api" };
    let namespace = match text("/metadata/namespace") {
        "" => String::new(),
        name => format!("/namespaces/{name}"),
    };
    let kind = text("/kind").to_lowercase();
    let plural = if kind.ends_with('s') { "es" } else { "s" };
    format!(
        "{prefix}/{version}{namespace}/{kind}{plural}/{}",
        text("/metadata/name")
    )
}

fn make_namespace(client: &Client, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    client.apply(&format!("/api/v1/namespaces/{name}"), &object).unwrap();
}

#[test]
fn an_api_server_takes_every_object_of_every_set_of_values() {
    let cluster = Cluster::builder().api_server_only().start().unwrap();
    let client = cluster.client();
    make_namespace(client, "scaling");
    let mut count = 0;
    let crds = ["--set", "nodeClasses.azure=true", "--set", "nodeClasses.kwok=true"];
    let mut objects = rendered("dovetail-crd", "scaling", "charts/dovetail-crd", &crds);
    for name in VALUES.into_iter().chain([AZURE]) {
        objects.extend(rendered("dovetail", "scaling", CHART, &["-f", &values(name)]));
    }
    // This API server does not know the kind; its shape is that of Karpenter's chart.
    objects.retain(|object| object["kind"] != "ServiceMonitor");
    for object in &objects {
        let path = format!(
            "{}?dryRun=All&fieldManager=test&force=true&fieldValidation=Strict",
            path(object)
        );
        let answer = client.request("PATCH", &path, Some(object), media::APPLY).unwrap();
        assert!(answer.ok(), "{}: {}", key(object), answer.message());
        count += 1;
    }
    assert!(count >= 50, "{count} objects");
}

#[test]
fn an_api_server_takes_the_examples_and_not_the_class_they_were_made_from() {
    let cluster = Cluster::builder().api_server_only().start().unwrap();
    let client = cluster.client();
    for crd in ["karpenter.sh_nodepools", "karpenter.k8s.aws_ec2nodeclasses"] {
        let yaml = fs::read_to_string(root().join(format!("crates/api/crds/{crd}.yaml"))).unwrap();
        client.install_crd(&yaml).unwrap();
    }
    let dry_run = |file: &Path| {
        let text = fs::read_to_string(file).unwrap();
        let objects = rig::manifest::documents(&file.display().to_string(), &text).unwrap();
        let answers = objects.into_iter().map(|mut object| {
            let is_plain = !object["apiVersion"].as_str().unwrap().starts_with("karpenter");
            if is_plain {
                object["metadata"]["namespace"] = json!("default");
            }
            let path = format!("{}?dryRun=All&fieldManager=test&fieldValidation=Strict", path(&object));
            (
                key(&object),
                client.request("PATCH", &path, Some(&object), media::APPLY).unwrap(),
            )
        });
        answers.collect::<Vec<_>>()
    };
    let mut count = 0;
    for entry in fs::read_dir(root().join("examples/aws")).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|extension| extension == "yaml") {
            for (key, answer) in dry_run(&file) {
                assert!(answer.ok(), "{key}: {}", answer.message());
                count += 1;
            }
        }
    }
    assert_eq!(count, 8, "a class, three pools, three workloads and a budget");
    let [(_, answer)] = &dry_run(&root().join("examples/lint/mission/eks-nodeclass.yaml"))[..] else {
        panic!("one object");
    };
    assert_eq!(answer.status, 422, "{}", answer.message());
}

#[test]
fn on_aks_the_charts_install_and_all_they_made_but_the_crds_goes_with_them() {
    const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/karpenter/deployments/karpenter";
    const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/aksnodeclasses.karpenter.azure.com";
    let cluster = Cluster::builder().api_server_only().start().unwrap();
    let client = cluster.client();
    let home = TempDir::new().unwrap();
    let kubeconfig = cluster.kubeconfig();
    let run = |args: &[&str]| said(args, &helm(home.path(), Some(&kubeconfig), args));
    let place = ["--namespace", "karpenter", "--create-namespace"];
    let of_azure = ["--set", "nodeClasses.azure=true", "--set", "nodeClasses.aws=false"];
    run(&[
        &["install", "dovetail-crd", "charts/dovetail-crd"][..],
        &of_azure,
        &place,
    ]
    .concat());
    let file = values(AZURE);
    run(&[&["install", "karpenter", CHART, "--skip-crds", "-f", &file][..], &place].concat());
    assert!(client.get(CRD).unwrap().is_some());
    let deployment = client.get(DEPLOYMENT).unwrap().unwrap();
    let account = "/api/v1/namespaces/karpenter/serviceaccounts/karpenter";
    let account = client.get(account).unwrap().unwrap();
    assert_eq!(
        account["metadata"]["annotations"]["azure.workload.identity/client-id"],
        "00000000-0000-0000-0000-000000000002"
    );
    assert_eq!(
        deployment["spec"]["template"]["spec"]["serviceAccountName"],
        account["metadata"]["name"]
    );
    run(&["uninstall", "karpenter", "--namespace", "karpenter"]);
    run(&["uninstall", "dovetail-crd", "--namespace", "karpenter"]);
    assert!(client.get(DEPLOYMENT).unwrap().is_none());
    assert!(client.get(CRD).unwrap().is_some(), "the classes must stay");
}

#[test]
fn one_upgrade_swaps_the_controller_and_one_rollback_swaps_it_back() {
    const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/karpenter/deployments/karpenter";
    const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.karpenter.sh";
    let cluster = Cluster::builder().api_server_only().start().unwrap();
    let client = cluster.client();
    let home = TempDir::new().unwrap();
    let kubeconfig = cluster.kubeconfig();
    let run = |args: &[&str]| said(args, &helm(home.path(), Some(&kubeconfig), args));
    let image = || {
        let deployment = client.get(DEPLOYMENT).unwrap().unwrap();
        let image = deployment
            .pointer("/spec/template/spec/containers/0/image")
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned();
        (deployment["metadata"]["uid"].clone(), image)
    };
    let place = ["--namespace", "karpenter", "--create-namespace"];

    // Karpenter, with its CRDs as its chart leaves them: nobody's.
    let crds = Path::new(upstream()).join("../../pkg/apis/crds");
    for entry in fs::read_dir(crds).unwrap() {
        client
            .install_crd(&fs::read_to_string(entry.unwrap().path()).unwrap())
            .unwrap();
    }
    let file = values("karpenter");
    run(&[&["install", "karpenter", upstream(), "-f", &file][..], &place].concat());
    let (uid, theirs) = image();
    assert!(theirs.contains("karpenter/controller"), "{theirs}");

    run(&[
        &[
            "install",
            "dovetail-crd",
            "charts/dovetail-crd",
            "--take-ownership",
            "--force-conflicts",
        ][..],
        &place,
    ]
    .concat());
    let told = run(&[
        &[
            "upgrade",
            "karpenter",
            CHART,
            "--skip-crds",
            "--reset-then-reuse-values",
        ][..],
        &["--set", "controller.image.repository=example.com/dovetail"],
        &place,
    ]
    .concat());
    assert_eq!(
        image(),
        (
            uid.clone(),
            format!("example.com/dovetail:{}", env!("CARGO_PKG_VERSION"))
        )
    );
    assert!(
        told.contains("WARNING: values that this chart does not know") && told.contains("  webhook\n"),
        "{told}"
    );

    run(&["rollback", "karpenter", "1", "--namespace", "karpenter"]);
    assert_eq!(image(), (uid, theirs));

    run(&["uninstall", "dovetail-crd", "--namespace", "karpenter"]);
    assert!(
        client.get(CRD).unwrap().is_some(),
        "the CRDs, and with them all NodePools, must stay"
    );
}
