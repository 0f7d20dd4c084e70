//! What kubectl makes of the server: the commands people use, on a cluster of stand-ins.
//!
//! Without a kubectl on the PATH the test says so and proves nothing.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::Value;
use simulator::{ApiServer, Standins, http};

/// A cluster with quick kubelets, which a thread of its own serves for as long as the test lives.
struct Cluster {
    folder: tempfile::TempDir,
    server: ApiServer,
    _stop: mpsc::Sender<()>,
}

impl Cluster {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = ApiServer::new(jiff_now());
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/crds");
        let mut files: Vec<_> = fs::read_dir(crds).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in files {
            let text = fs::read_to_string(file).unwrap();
            let definition: Value = serde_saphyr::from_str(&text).unwrap();
            server.create(definition).unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let config = http::kubeconfig(listener.local_addr().unwrap());
        fs::write(folder.path().join("config"), config).unwrap();
        let (stop, stopped) = mpsc::channel::<()>();
        let served = server.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let standins = Standins {
                    node_ready_after: Some(Duration::from_millis(300)),
                    pod_runs_after: Some(Duration::from_millis(100)),
                    pod_ends_after: Duration::from_millis(100),
                    ..Standins::all()
                };
                let _running = standins.start(&served);
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let serving = tokio::spawn(http::serve(served, listener));
                tokio::task::spawn_blocking(move || stopped.recv()).await.unwrap().ok();
                serving.abort();
            });
        });
        Self {
            folder,
            server,
            _stop: stop,
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(self.folder.path().join("config"))
            .arg("--cache-dir")
            .arg(self.folder.path().join("cache"))
            .args(arguments);
        command
    }

    /// Runs a command; what it said, and whether it succeeded.
    fn run(&self, line: &str) -> (bool, String) {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = self.command(&arguments).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }

    /// Runs a command that succeeds.
    fn ok(&self, line: &str) -> String {
        let (is_ok, said) = self.run(line);
        assert!(is_ok, "kubectl {line}: {said}");
        said
    }

    /// Runs a command that fails.
    fn refused(&self, line: &str) -> String {
        let (is_ok, said) = self.run(line);
        assert!(!is_ok, "kubectl {line}: {said}");
        said
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Begins a command that goes on.
    fn begin(&self, line: &str) -> Child {
        let arguments: Vec<&str> = line.split(' ').collect();
        let mut command = self.command(&arguments);
        command.stdout(Stdio::piped()).spawn().unwrap()
    }
}

#[allow(clippy::disallowed_methods, reason = "kubectl lives in the time of people")]
fn jiff_now() -> impl Fn() -> jiff::Timestamp {
    jiff::Timestamp::now
}

#[allow(clippy::print_stdout, reason = "a skipped test says so")]
fn has_kubectl() -> bool {
    let found = Command::new("kubectl").args(["version", "--client"]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: there is no kubectl on the PATH");
    }
    found
}

const NODE: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kwok.x-k8s.io/node: fake, kubernetes.io/hostname: n1}}
status:
  capacity: {cpu: '8', memory: 16Gi, pods: '110'}
  allocatable: {cpu: '8', memory: 16Gi, pods: '110'}
";

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: 'nginx:1', ports: [{containerPort: 80}], resources: {requests: {cpu: 100m}}}]}
";

const POOL: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
";

#[test]
fn kubectl_reads_what_there_is() {
    if !has_kubectl() {
        return;
    }
    let cluster = Cluster::start();
    cluster.ok(&format!("apply -f {}", cluster.file("node.yaml", NODE)));
    cluster.ok(&format!("apply -f {}", cluster.file("pool.yaml", POOL)));
    cluster.ok("wait --for=condition=Ready node/n1 --timeout=20s");
    let wide = cluster.ok("get nodes,nodepools -o wide");
    let titles = ["INTERNAL-IP", "OS-IMAGE", "CONTAINER-RUNTIME", "NODECLASS", "WEIGHT"];
    assert!(titles.iter().all(|title| wide.contains(title)), "{wide}");
    assert!(
        wide.contains("node/n1   Ready") && wide.contains("nodepool.karpenter.sh/general"),
        "{wide}"
    );
    let sorted = cluster.ok("get nodes --sort-by=.metadata.name");
    assert!(sorted.contains("n1"), "{sorted}");
    let resources = cluster.ok("api-resources");
    for kind in ["NodeClaim", "EC2NodeClass", "PodDisruptionBudget", "deploy "] {
        assert!(resources.contains(kind), "{kind}: {resources}");
    }
    let explained = cluster.ok("explain nodepool.spec.disruption");
    assert!(
        explained.contains("budgets") && explained.contains("consolidateAfter"),
        "{explained}"
    );
    let explained = cluster.ok("explain deployment.spec.strategy.rollingUpdate.maxSurge");
    assert!(explained.contains("IntOrString"), "{explained}");
    let described = cluster.ok("describe node n1");
    assert!(
        described.contains("KubeletReady") && described.contains("Non-terminated Pods:"),
        "{described}"
    );
    assert_eq!(cluster.ok("auth can-i create pods").trim(), "yes");
    assert!(cluster.refused("top nodes").contains("Metrics API not available"));
    assert!(cluster.refused("get gadgets").contains("doesn't have a resource type"));
    assert_eq!(cluster.ok("get nodes -l kubernetes.io/hostname!=n1,!x -o name"), "");
    let mut unread = cluster.command(&["get", "pods", "-l", "app in (web"]);
    let said = String::from_utf8(unread.output().unwrap().stderr).unwrap();
    assert!(said.contains("found '', expected: ',' or ')'"), "{said}");
}

#[test]
fn kubectl_changes_things_and_is_refused_what_is_wrong() {
    if !has_kubectl() {
        return;
    }
    let cluster = Cluster::start();
    let pool = cluster.file("pool.yaml", POOL);
    assert!(cluster.ok(&format!("apply -f {pool}")).contains("created"));
    assert!(cluster.ok(&format!("apply -f {pool}")).contains("unchanged"));
    let wrong = cluster.file(
        "wrong.yaml",
        &POOL.replace("spec:\n  template", "spec:\n  nope: 1\n  template"),
    );
    let said = cluster.refused(&format!("apply -f {wrong}"));
    assert!(
        said.contains("strict decoding error: unknown field \"spec.nope\""),
        "{said}"
    );
    let wrong = cluster.file("wrong.yaml", &POOL.replace("operator: In", "operator: Near"));
    let said = cluster.refused(&format!("apply -f {wrong}"));
    assert!(
        said.contains("Unsupported value: \"Near\": supported values: \"In\""),
        "{said}"
    );
    let moved = cluster.file("moved.yaml", &POOL.replace("KWOKNodeClass", "Other"));
    let said = cluster.refused(&format!("apply -f {moved}"));
    assert!(said.contains("nodeClassRef.kind is immutable"), "{said}");
    let said = cluster.ok(&format!(
        "apply --dry-run=server -f {}",
        cluster.file("d.yaml", DEPLOYMENT)
    ));
    assert!(said.contains("created (server dry run)"), "{said}");
    assert!(cluster.refused("get deploy web").contains("not found"));
    let edited = {
        let mut command = cluster.command(&["edit", "nodepool", "general"]);
        command.env("KUBE_EDITOR", "sed -i s/amd64/arm64/").output().unwrap()
    };
    assert!(edited.status.success(), "{edited:?}");
    let values = cluster.ok("get nodepool general -o jsonpath={.spec.template.spec.requirements[0].values}");
    assert_eq!(values, "[\"arm64\"]");
    assert!(cluster.ok("label nodepool general team=a").contains("labeled"));
    assert!(cluster.ok("delete nodepool general").contains("deleted"));
}

#[test]
fn kubectl_applies_on_the_server_and_hears_of_conflicts() {
    if !has_kubectl() {
        return;
    }
    let cluster = Cluster::start();
    let file = cluster.file("web.yaml", DEPLOYMENT);
    cluster.ok(&format!("apply --server-side -f {file}"));
    cluster.ok("scale deployment/web --replicas=4");
    let said = cluster.refused(&format!("apply --server-side -f {file}"));
    assert!(
        said.contains("Apply failed with 1 conflict: conflict with \"kubectl\""),
        "{said}"
    );
    assert!(said.contains(": .spec.replicas"), "{said}");
    cluster.ok(&format!("apply --server-side --force-conflicts -f {file}"));
    assert_eq!(cluster.ok("get deploy web -o jsonpath={.spec.replicas}"), "2");
    let ports = cluster.ok("get deploy web -o jsonpath={.spec.template.spec.containers[0].ports}");
    assert_eq!(ports, r#"[{"containerPort":80,"protocol":"TCP"}]"#);
}

#[test]
fn kubectl_makes_what_it_has_words_for() {
    if !has_kubectl() {
        return;
    }
    let cluster = Cluster::start();
    // kubectl 1.32 and later send these in protobuf.
    for line in [
        "create deployment web --image=nginx:1 --replicas=2 --port=80",
        "create job once --image=busybox -- true",
        "create cronjob nightly --image=busybox --schedule=@daily -- true",
        "create pdb web --selector=app=web --max-unavailable=50%",
        "create quota small --hard=pods=20,requests.cpu=4",
        "create namespace shop",
        "create configmap words --from-literal=a=b",
        "create secret generic key --from-literal=a=b",
        "create serviceaccount reader",
        "create role reader --verb=get --resource=pods",
        "create priorityclass high --value=1000",
        "create service clusterip web --tcp=80:8080",
    ] {
        cluster.ok(line);
    }
    let template = "get deploy web -o jsonpath={.spec.replicas},{.spec.template.spec.containers[0].ports[0].protocol}";
    assert_eq!(cluster.ok(template), "2,TCP");
    assert_eq!(cluster.ok("get pdb web -o jsonpath={.spec.maxUnavailable}"), "50%");
    assert_eq!(
        cluster.ok("get quota small -o jsonpath={.spec.hard}"),
        r#"{"pods":"20","requests.cpu":"4"}"#
    );
    assert_eq!(cluster.ok("get secret key -o jsonpath={.data.a}"), "Yg==");
    assert_eq!(
        cluster.ok("get svc web -o jsonpath={.spec.ports[0].targetPort}"),
        "8080"
    );
    cluster.ok("run important --image=nginx:1 --overrides={\"spec\":{\"priorityClassName\":\"high\"}}");
    assert_eq!(cluster.ok("get pod important -o jsonpath={.spec.priority}"), "1000");
}

#[test]
fn kubectl_rolls_out_drains_and_watches() {
    if !has_kubectl() {
        return;
    }
    let cluster = Cluster::start();
    cluster.ok(&format!("apply -f {}", cluster.file("node.yaml", NODE)));
    let watching = cluster.begin("get pods -w --no-headers");
    cluster.ok(&format!("apply -f {}", cluster.file("web.yaml", DEPLOYMENT)));
    let said = cluster.ok("rollout status deployment/web --timeout=30s");
    assert!(said.contains("successfully rolled out"), "{said}");
    cluster.ok("rollout restart deployment/web");
    cluster.ok("rollout status deployment/web --timeout=30s");
    let history = cluster.ok("rollout history deployment/web");
    assert!(history.contains("\n2 "), "{history}");
    cluster.ok("rollout undo deployment/web");
    cluster.ok("rollout status deployment/web --timeout=30s");
    let pods = cluster.ok("get pods -o wide --no-headers");
    assert_eq!(pods.matches("1/1   Running").count(), 2, "{pods}");
    // Those of the roll-out before may still be on their way out.
    let pod = pods.lines().find(|line| line.contains("1/1   Running")).unwrap();
    let pod = pod.split_whitespace().next().unwrap();
    let said = cluster.refused(&format!("logs {pod}"));
    assert!(said.contains("no logs here: this cluster is simulated"), "{said}");
    assert!(cluster.ok("cordon n1").contains("cordoned"));
    assert!(cluster.ok("get nodes").contains("Ready,SchedulingDisabled"));
    let said = cluster.ok("drain n1 --ignore-daemonsets --timeout=30s");
    assert!(said.contains("node/n1 drained"), "{said}");
    let waiting = cluster.ok("get pods --no-headers");
    assert_eq!(waiting.matches("Pending").count(), 2, "{waiting}");
    cluster.ok("uncordon n1");
    cluster.ok("rollout status deployment/web --timeout=30s");
    cluster.ok("delete deployment web");
    cluster.ok("wait --for=delete pod -l app=web --timeout=20s");
    let mut watching = watching;
    watching.kill().unwrap();
    let seen = watching.wait_with_output().unwrap();
    let seen = String::from_utf8(seen.stdout).unwrap();
    let told = ["Pending", "Running", "Terminating"];
    assert!(told.iter().all(|word| seen.contains(word)), "{seen}");
    assert_eq!(cluster.server.list("Pod").len(), 0);
}
