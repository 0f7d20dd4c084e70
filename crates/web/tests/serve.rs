//! The page as a browser meets it: over a socket, with a cluster that changes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the whole target is a test")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use ledger::{Action, Id, Phase, Record};
use model::{
    dump::{self, Source},
    snapshot::Snapshot,
};
use serde_json::{Value, json};
use web::{Access, Answers, Asked, Eye, Mode, Page, Refused, Reviewer, Seen, Settings, Title, Verdict, access::Gate};

/// How long a test waits for the server, which answers at once.
const PATIENCE: Duration = Duration::from_secs(30);

fn snapshot(nodes: usize) -> Snapshot {
    let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general", "uid": "u"},
        "spec": {"template": {"spec": {"requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
            "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}}}}});
    let mut items = vec![pool];
    for number in 0..nodes {
        let labels = json!({"karpenter.sh/nodepool": "general", "topology.kubernetes.io/zone": "z1",
            "node.kubernetes.io/instance-type": "t", "karpenter.sh/capacity-type": "spot",
            "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"});
        let room = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
        let (name, id) = (format!("n{number}"), format!("p:///{number}"));
        items.push(
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name, "labels": labels},
            "spec": {"providerID": id}, "status": {"capacity": room, "allocatable": room}}),
        );
        items.push(json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": format!("c{number}"), "uid": format!("c{number}"),
            "labels": labels}, "spec": {"requirements": []}, "status": {"providerID": id, "nodeName": name}}));
        items.push(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("pod{number}"), "namespace": "shop", "uid": format!("pod{number}")},
            "spec": {"nodeName": name, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m", "memory": "2Gi"}}}]},
            "status": {"phase": "Running"}}));
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at: Timestamp::from_second(1_800_000_000).unwrap(),
    };
    let stream = Source::Stream("test".into(), Box::new(std::io::Cursor::new(list.into_bytes())));
    dump::read([stream], options).unwrap().0
}

struct Looking(Mutex<Result<usize, String>>);

#[async_trait]
impl Eye for Looking {
    async fn look(&self) -> Result<Seen, String> {
        let nodes = self.0.lock().unwrap().clone()?;
        let time = Timestamp::from_second(1_799_999_000).unwrap();
        let mut record = Record::new(
            Id::of("launch", ["c0"]),
            Action::Launch,
            Phase::Done,
            "Provisioned",
            time,
        );
        "general".clone_into(&mut record.pool);
        Ok(Seen {
            snapshot: snapshot(nodes),
            decisions: vec![record],
            stage: None,
        })
    }
}

struct Scripted;

impl Answers for Scripted {
    fn what(&self, record: &Record) -> String {
        format!("{} in words", record.reason)
    }
    fn decision(&self, record: &Record) -> Value {
        json!({"id": record.id.to_string()})
    }
    fn budgets(&self, _: &Snapshot) -> Vec<(String, Value)> {
        vec![("general".to_owned(), json!({"reasons": []}))]
    }
    fn whatif(&self, snapshot: &Snapshot, asked: &Asked) -> Result<Value, Refused> {
        match asked.zone_down.as_slice() {
            [zone] if zone == "z1" => Ok(json!({"nodes": snapshot.objects().nodes.len()})),
            _ => Err(Refused {
                error: "no such zone".to_owned(),
                why: String::new(),
                next: String::new(),
            }),
        }
    }
}

struct OneToken;

#[async_trait]
impl Reviewer for OneToken {
    async fn review(&self, token: &str) -> Verdict {
        match token {
            "good" => Verdict::Allowed,
            "stranger" => Verdict::Forbidden,
            _ => Verdict::Unknown,
        }
    }
}

struct Site {
    eye: Arc<Looking>,
    address: SocketAddr,
    _page: Page,
}

fn site(access: Access, nodes: usize) -> Site {
    let eye = Arc::new(Looking(Mutex::new(Ok(nodes))));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let page = Page::start(Settings {
        listener,
        access,
        title: Title {
            cluster: "test".to_owned(),
            place: String::new(),
            mode: Mode::Acting,
            version: "0".to_owned(),
            acts: Vec::new(),
        },
        epoch: "e".to_owned(),
        eye: Arc::clone(&eye) as _,
        answers: Arc::new(Scripted),
    });
    Site {
        eye,
        address,
        _page: page.unwrap(),
    }
}

impl Site {
    fn open(&self, head: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = if head.to_ascii_lowercase().contains("\r\nhost:") {
            String::new()
        } else {
            format!("host: {}\r\n", self.address)
        };
        let length = body.len();
        let text = format!("{head}\r\n{host}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// The code, the head and the body of an answer.
    fn ask(&self, head: &str, body: &str) -> (u16, String, String) {
        let mut text = String::new();
        self.open(head, body).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, head.to_ascii_lowercase(), body.to_owned())
    }

    /// An answer as JSON, once the first look is done.
    fn json(&self, path: &str) -> Value {
        for _ in 0..300 {
            let (code, _, body) = self.ask(&format!("GET {path} HTTP/1.1"), "");
            if code == 200 {
                return serde_json::from_str(&body).unwrap();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{path} has no answer");
    }
}

/// The next event of a stream: its name, its id, its data.
fn event(stream: &mut BufReader<TcpStream>) -> (String, String, Value) {
    let (mut name, mut id) = (String::new(), String::new());
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended");
        let line = line.trim_end();
        if let Some(text) = line.strip_prefix("event: ") {
            text.clone_into(&mut name);
        } else if let Some(text) = line.strip_prefix("id: ") {
            text.clone_into(&mut id);
        } else if let Some(text) = line.strip_prefix("data: ") {
            return (name, id, serde_json::from_str(text).unwrap());
        }
    }
}

#[test]
fn the_document_has_every_node_with_what_is_asked_of_it() {
    let site = site(Access::ThisMachine, 3);
    let document = site.json("/api/document");
    let nodes = document["nodes"].as_object().unwrap();
    assert_eq!(nodes.keys().collect::<Vec<_>>(), ["n0", "n1", "n2"]);
    let node = &nodes["n1"];
    assert_eq!(node["cpu_m"], json!({"requested": 1500, "allocatable": 4000}));
    assert_eq!(node["memory_mib"], json!({"requested": 2048, "allocatable": 8192}));
    assert_eq!(node["cells"], json!([[1500, 2048, 0]]));
    assert_eq!((&node["pool"], &node["zone"]), (&json!("general"), &json!("z1")));
    assert_eq!(node["usd_h"], Value::Null, "nobody knows the price of this type");
    let now = &document["now"][""];
    assert_eq!(
        (&now["fleet"]["nodes"], &now["pods"]["running"]),
        (&json!(3), &json!(3))
    );
    let decisions = document["decisions"].as_object().unwrap();
    let (id, decision) = decisions.iter().next().unwrap();
    assert_eq!(decision["what"], "Provisioned in words");
    assert_eq!(site.json(&format!("/api/decision/{id}"))["id"], json!(id));
    assert_eq!(
        document["pools"]["general"]["requirements"],
        json!(["capacity-type In spot"])
    );
}

#[test]
fn a_stream_begins_with_everything_goes_on_with_changes_and_resumes() {
    let site = site(Access::ThisMachine, 1);
    let mut stream = site.open("GET /api/stream HTTP/1.1", "");
    let (name, _, whole) = event(&mut stream);
    assert_eq!(name, "snapshot");
    assert!(whole["nodes"]["n0"].is_object());
    *site.eye.0.lock().unwrap() = Ok(2);
    let mut last;
    loop {
        let (name, id, delta) = event(&mut stream);
        assert_eq!(name, "delta");
        last = id;
        if delta["set"]["nodes"]["n1"].is_object() {
            assert!(
                delta["set"]["nodes"]["n0"].is_null(),
                "what did not change is not told again"
            );
            break;
        }
    }
    *site.eye.0.lock().unwrap() = Ok(0);
    loop {
        let (_, id, delta) = event(&mut stream);
        if delta["drop"]["nodes"] == json!(["n0", "n1"]) {
            break;
        }
        last = id;
    }
    drop(stream);
    let mut again = site.open(&format!("GET /api/stream HTTP/1.1\r\nlast-event-id: {last}"), "");
    assert_eq!(event(&mut again).0, "delta");
    let mut stranger = site.open("GET /api/stream HTTP/1.1\r\nlast-event-id: other-1", "");
    assert_eq!(event(&mut stranger).0, "snapshot");
}

#[test]
fn a_cluster_that_cannot_be_seen_is_said_and_what_was_seen_stays() {
    let site = site(Access::ThisMachine, 1);
    let mut stream = site.open("GET /api/stream HTTP/1.1", "");
    assert_eq!(event(&mut stream).0, "snapshot");
    *site.eye.0.lock().unwrap() = Err("a new term begins".to_owned());
    loop {
        let (_, _, delta) = event(&mut stream);
        if delta["set"]["eye"][""]["blind"] == "a new term begins" {
            break;
        }
    }
    assert!(site.json("/api/document")["nodes"]["n0"].is_object());
    let (code, _, body) = site.ask("GET /api/why/node/n0 HTTP/1.1", "");
    assert!(code == 503 && body.contains("a new term begins"), "{code} {body}");
}

#[test]
fn without_a_token_that_is_vouched_for_there_are_files_and_no_data() {
    let access = Access::Reviewed(Arc::new(Gate::new(Arc::new(OneToken))));
    let site = site(access, 1);
    assert_eq!(site.ask("GET / HTTP/1.1\r\nhost: dovetail.example", "").0, 200);
    let code = |authorization: &str| {
        let head = format!("GET /api/why/node/n0 HTTP/1.1{authorization}");
        site.ask(&head, "").0
    };
    assert_eq!(code(""), 401);
    assert_eq!(code("\r\nauthorization: Bearer bad"), 401);
    assert_eq!(code("\r\nauthorization: Bearer stranger"), 403);
    assert_eq!(code("\r\nauthorization: Bearer good"), 200);
    for path in ["document", "stream", "why/pod/shop/pod0", "decision/0"] {
        assert_eq!(site.ask(&format!("GET /api/{path} HTTP/1.1"), "").0, 401, "{path}");
    }
    let post = "POST /api/whatif HTTP/1.1\r\ncontent-type: application/json";
    assert_eq!(site.ask(post, "{}").0, 401);
}

#[test]
fn questions_are_answered_as_the_command_line_does_and_bad_ones_are_named() {
    let site = site(Access::ThisMachine, 2);
    let why = site.json("/api/why/node/n0");
    assert_eq!(why["node"]["name"], "n0");
    assert_eq!(why["pods"][0]["pod"], "shop/pod0");
    assert_eq!(site.json("/api/why/pod/shop/pod1")["state"], "Running");
    assert_eq!(site.json("/api/why/nodepool/general")["pool"]["name"], "general");
    for path in [
        "why/node/n9",
        "why/pod/shop/none",
        "why/nodepool/none",
        "decision/ffff",
        "nonsense",
    ] {
        assert_eq!(site.ask(&format!("GET /api/{path} HTTP/1.1"), "").0, 404, "{path}");
    }
    let post = |body: &str| {
        let head = "POST /api/whatif HTTP/1.1\r\ncontent-type: application/json";
        let (code, _, body) = site.ask(head, body);
        (code, body)
    };
    assert_eq!(post(r#"{"zone_down": ["z1"]}"#), (200, r#"{"nodes":2}"#.to_owned()));
    assert_eq!(post(r#"{"zone_down": ["moon"]}"#).0, 422);
    let (code, body) = post(r#"{"delete_everything": true}"#);
    assert!(code == 400 && body.contains("delete_everything"), "{code} {body}");
    assert_eq!(post("not json").0, 400);
    assert_eq!(post(&format!("{{\"scale\": [\"{}\"]}}", "x".repeat(20_000))).0, 413);
    let act = "POST /api/demo/spot-storm HTTP/1.1\r\ncontent-type: application/json";
    let (code, _, body) = site.ask(act, "{}");
    assert!(
        code == 422 && body.contains("nothing on the page changes it"),
        "{code} {body}"
    );
}

#[test]
fn every_answer_carries_the_policy_and_files_are_kept_by_their_tag() {
    let site = site(Access::ThisMachine, 0);
    for path in ["/", "/app.js", "/style.css", "/api/nonsense", "/favicon.svg"] {
        let (_, head, _) = site.ask(&format!("GET {path} HTTP/1.1"), "");
        for header in [
            "content-security-policy: default-src 'none'",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
        ] {
            assert!(head.contains(header), "{path}: {header} is missing in\n{head}");
        }
    }
    let (code, head, body) = site.ask("GET /app.js HTTP/1.1", "");
    assert_eq!(code, 200);
    assert!(!body.is_empty() && head.contains("text/javascript"));
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let (code, _, body) = site.ask(&format!("GET /app.js HTTP/1.1\r\nif-none-match: {tag}"), "");
    assert_eq!((code, body.as_str()), (304, ""));
}
