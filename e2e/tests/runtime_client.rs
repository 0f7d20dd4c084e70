//! Does the client of `runtime` get along with a real API server? Watches across broken connections and compactions,
//! conflicts, a Lease between two replicas, and events as `kubectl` would show them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "the whole file is a test")]

use std::{
    collections::BTreeSet,
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use model::object::{Node, Object, ObjectKey, Pod};
use rig::Cluster;
use runtime::{
    Api, Clock, Event, EventKind, Patch, Recorder, Resource,
    api::{self, Options},
    event,
    lease::{Election, Elector, Leader, Leadership},
    random::Random,
    watch::{Belief, Observed, Watched, follow},
};
use serde_json::{Value, json};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc, watch},
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};

const EVENTS: &str = "/api/v1/namespaces/default/events";
const JSON: &str = "application/json";
const LIMIT: Duration = Duration::from_mins(5);

fn cluster() -> Cluster {
    Cluster::builder().api_server_only().start().unwrap()
}

async fn connected(kubeconfig: PathBuf) -> Api {
    let options = Options {
        random: Random::from_system(),
        ..Options::new("karpenter/1.15.0")
    };
    api::connect(Some(kubeconfig), options).await.unwrap()
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"from": "test"}}})
}

async fn get(api: &Api, path: &str) -> Value {
    let bytes = api.call(http::Method::GET, path, None, JSON).await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn writes_meet_conflicts_and_errors_say_what_is_wrong() {
    let cluster = cluster();
    let api = connected(cluster.kubeconfig()).await;
    let created: Node = api.create("", &node("a")).await.unwrap();
    assert!(
        api.create::<Node>("", &node("a"))
            .await
            .unwrap_err()
            .is_already_exists()
    );
    let key = created.metadata().key();
    let labelled =
        |version: &Value| Patch::Merge(json!({"metadata": {"resourceVersion": version, "labels": {"x": "1"}}}));
    let version = get(&api, "/api/v1/nodes/a").await["metadata"]["resourceVersion"].clone();
    api.patch::<Node>(&key, None, &labelled(&version)).await.unwrap();
    let stale = api.patch::<Node>(&key, None, &labelled(&version)).await.unwrap_err();
    assert!(stale.is_conflict(), "{stale}");
    let managers = get(&api, "/api/v1/nodes/a").await["metadata"]["managedFields"].clone();
    assert!(
        managers
            .as_array()
            .unwrap()
            .iter()
            .all(|entry| entry["manager"] == "karpenter")
    );
    let gone = api.get::<Pod>(&ObjectKey::new("default", "none")).await.unwrap_err();
    assert!(gone.is_not_found() && !gone.is_missing_kind(), "{gone}");
    let path = "/apis/karpenter.sh/v1/nodepools";
    let missing = api.call(http::Method::GET, path, None, JSON).await.unwrap_err();
    assert!(missing.is_missing_kind(), "{missing}");
}

#[tokio::test]
async fn a_list_of_several_pages_is_followed_by_every_change() {
    let cluster = cluster();
    let client = cluster.client().clone();
    spawn_blocking(move || {
        for number in 0..1100 {
            let name = format!("map-{number:04}");
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
            client.post("/api/v1/namespaces/default/configmaps", &map).unwrap();
        }
    })
    .await
    .unwrap();
    let api = connected(cluster.kubeconfig()).await;
    let mut seen = followed(api.clone(), Resource::new("v1", "ConfigMap"));
    let listed = seen.listed().await;
    assert_eq!(listed.iter().filter(|name| name.starts_with("map-")).count(), 1100);
    let path = "/api/v1/namespaces/default/configmaps/map-0007";
    api.call(http::Method::DELETE, path, None, JSON).await.unwrap();
    assert_eq!(seen.next().await, "-map-0007");
}

/// Events are watched straight from etcd, so compaction makes the server forget where we were.
#[tokio::test]
async fn a_watch_that_a_compaction_left_behind_lists_again() {
    let cluster = cluster();
    let proxy = Proxy::start(&cluster).await;
    let mut seen = followed(connected(proxy.kubeconfig.clone()).await, Resource::new("v1", "Event"));
    seen.listed().await;
    let direct = connected(cluster.kubeconfig()).await;
    post_event(&direct, "first").await;
    assert_eq!(seen.next().await, "+first");
    proxy.cut();
    assert!(seen.next().await.starts_with("failed: "));
    post_event(&direct, "second").await;
    let last = post_event(&direct, "third").await;
    direct
        .call(http::Method::DELETE, &format!("{EVENTS}/first"), None, JSON)
        .await
        .unwrap();
    compact(&cluster, last).await;
    proxy.mend();
    let mut listed = seen.listed().await;
    listed.retain(|name| !name.starts_with("kubernetes."));
    assert_eq!(listed, BTreeSet::from(["second".to_owned(), "third".to_owned()]));
    post_event(&direct, "fourth").await;
    assert_eq!(seen.next().await, "+fourth");
}

#[tokio::test]
async fn two_replicas_share_a_lease_and_the_second_follows_at_once_when_the_first_stops() {
    let cluster = cluster();
    let api = connected(cluster.kubeconfig()).await;
    let one = replica(&api, "one");
    await_leading(&one.leader).await;
    let two = replica(&api, "two");
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election";
    let held = get(&api, lease).await["spec"].clone();
    assert_eq!(held["holderIdentity"], "one");
    assert_eq!(
        (&held["leaseDurationSeconds"], &held["leaseTransitions"]),
        (&json!(15), &json!(0))
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_ne!(get(&api, lease).await["spec"]["renewTime"], held["renewTime"]);
    assert_eq!((one.leader.epoch_now(), two.leader.epoch_now()), (Some(0), None));
    one.stop.notify_one();
    one.task.await.unwrap();
    assert_eq!(get(&api, lease).await["spec"]["holderIdentity"], "");
    await_leading(&two.leader).await;
    assert_eq!(get(&api, lease).await["spec"]["leaseTransitions"], 1);
    one.events.await.unwrap();
    let events = get(&api, "/api/v1/namespaces/kube-system/events").await["items"].clone();
    let said = events.as_array().unwrap().iter();
    let said: BTreeSet<(&str, &str)> = said
        .filter(|event| event["source"]["component"] == "one")
        .map(|event| (event["reason"].as_str().unwrap(), event["message"].as_str().unwrap()))
        .collect();
    let expected = [
        ("LeaderElection", "one became leader"),
        ("LeaderElection", "one stopped leading"),
    ];
    assert_eq!(said, BTreeSet::from(expected));
}

#[tokio::test]
async fn repeated_events_are_one_object_with_a_count() {
    let cluster = cluster();
    let api = connected(cluster.kubeconfig()).await;
    let node: Node = api.create("", &node("a")).await.unwrap();
    let (recorder, events) = Recorder::new(100);
    for message in ["Finalized one", "Finalized one", "Finalized two"] {
        let event = Event::new(&node, EventKind::Normal, "Finalized", message.to_owned());
        recorder.publish(event.deduped_by(Vec::new()));
    }
    drop(recorder);
    timeout(LIMIT, event::record(api.clone(), Clock::system(), events))
        .await
        .unwrap();
    let items = get(&api, EVENTS).await["items"].clone();
    let shown = |event: &Value| {
        let object = &event["involvedObject"];
        json!([
            event["type"],
            event["reason"],
            event["message"],
            event["count"],
            event["source"]["component"],
            object["kind"],
            object["name"],
            object["apiVersion"],
            object["uid"] == json!(node.metadata().uid.to_string()),
        ])
    };
    let mut shown: Vec<Value> = items.as_array().unwrap().iter().map(shown).collect();
    shown.sort_by_key(ToString::to_string);
    let line = |message: &str, count: u32| {
        json!([
            "Normal",
            "Finalized",
            message,
            count,
            "karpenter",
            "Node",
            "a",
            "v1",
            true
        ])
    };
    assert_eq!(shown, [line("Finalized one", 2), line("Finalized two", 1)]);
}

/// What a watch saw, in words.
struct Seen(mpsc::UnboundedReceiver<Observed<Value>>);

fn followed(api: Api, resource: Resource) -> Seen {
    let (sender, seen) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let watched = Watched {
            resource,
            read: Box::new(|json: &[u8]| serde_json::from_slice(json)),
            key: |object: &Value| {
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
                ObjectKey::new(&text("namespace"), &text("name"))
            },
        };
        let see = |observed| {
            drop(sender.send(observed));
            Belief::Taken
        };
        follow(&api, watched, see).await;
    });
    Seen(seen)
}

impl Seen {
    /// The next thing seen, besides beginnings of lists and what the API server says about itself.
    async fn any(&mut self) -> Observed<Value> {
        loop {
            let seen = timeout(LIMIT, self.0.recv()).await.unwrap().unwrap();
            let own = |object: &Value| {
                object["metadata"]["name"]
                    .as_str()
                    .is_some_and(|name| name.starts_with("kubernetes."))
            };
            if !matches!(&seen, Observed::Applied(object) if own(object)) && !matches!(seen, Observed::Listing) {
                return seen;
            }
        }
    }

    async fn next(&mut self) -> String {
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
        match self.any().await {
            Observed::Applied(object) => format!("+{}", name(&object)),
            Observed::Deleted(object) => format!("-{}", name(&object)),
            Observed::Listing => "listing".to_owned(),
            Observed::Listed { .. } => "listed".to_owned(),
            Observed::Failed(error) => format!("failed: {error}"),
        }
    }

    /// The names of the next whole list.
    async fn listed(&mut self) -> BTreeSet<String> {
        loop {
            if let Observed::Listed { named, .. } = self.any().await {
                return named.iter().map(|key| key.name.to_string()).collect();
            }
        }
    }
}

/// Posts an event and returns its version.
async fn post_event(api: &Api, name: &str) -> String {
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": "a", "namespace": "default"}, "reason": "Test", "type": "Normal",
    });
    let bytes = api.call(http::Method::POST, EVENTS, Some(&event), JSON).await.unwrap();
    let created: Value = serde_json::from_slice(&bytes).unwrap();
    created["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

/// Lets etcd forget everything before a version.
async fn compact(cluster: &Cluster, version: String) {
    let etcd = cluster.process_ids().into_iter().find_map(etcd_address).unwrap();
    let script = format!(r#"{{"revision":"{version}","physical":true}}"#);
    let request = format!(
        "POST /v3/kv/compaction HTTP/1.1\r\nhost: {etcd}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{script}",
        script.len()
    );
    let answer = spawn_blocking(move || {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(&etcd).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    let answer = answer.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Where a process listens, if it is etcd.
fn etcd_address(process: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).into_owned();
    let argument = line
        .split('\0')
        .find_map(|part| part.strip_prefix("--listen-client-urls=http://"));
    argument.map(str::to_owned)
}

/// A connection to the API server that can be cut.
struct Proxy {
    kubeconfig: PathBuf,
    open: watch::Sender<bool>,
    _folder: tempfile::TempDir,
}

impl Proxy {
    async fn start(cluster: &Cluster) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let text = fs::read_to_string(cluster.kubeconfig()).unwrap();
        let (_, rest) = text.split_once("https://127.0.0.1:").unwrap();
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let ours = listener.local_addr().unwrap().port();
        fs::write(
            &kubeconfig,
            text.replace(&format!("127.0.0.1:{port}"), &format!("127.0.0.1:{ours}")),
        )
        .unwrap();
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().unwrap()));
        let (open, state) = watch::channel(true);
        tokio::spawn(async move {
            loop {
                let (incoming, _) = listener.accept().await.unwrap();
                tokio::spawn(forward(incoming, server, state.clone()));
            }
        });
        Self {
            kubeconfig,
            open,
            _folder: folder,
        }
    }

    fn cut(&self) {
        self.open.send_replace(false);
    }

    fn mend(&self) {
        self.open.send_replace(true);
    }
}

async fn forward(mut incoming: TcpStream, server: SocketAddr, mut open: watch::Receiver<bool>) {
    if !*open.borrow() {
        return;
    }
    let mut outgoing = TcpStream::connect(server).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut incoming, &mut outgoing) => {}
        _ = open.wait_for(|open| !open) => {}
    }
}

struct Replica {
    leader: Leader,
    stop: Arc<Notify>,
    task: JoinHandle<()>,
    events: JoinHandle<()>,
}

fn replica(api: &Api, name: &str) -> Replica {
    let (recorder, events) = Recorder::new(100);
    let election = Election::new("kube-system", "karpenter-leader-election", name.to_owned());
    let (elector, leader) = Elector::new(api.clone(), Clock::system(), recorder, election);
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    Replica {
        leader,
        stop,
        task: tokio::spawn(elector.run(async move { stopped.notified().await })),
        events: tokio::spawn(event::record(api.clone(), Clock::system(), events)),
    }
}

async fn await_leading(leader: &Leader) {
    let mut changes = leader.changes();
    let leads = changes.wait_for(|leadership| matches!(leadership, Leadership::Leading { .. }));
    timeout(LIMIT, leads).await.unwrap().unwrap();
}
