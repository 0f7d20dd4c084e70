//! What commands that only read answer about a cluster: to people at two widths, to programs, and live.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::mpsc,
    thread,
};

use serde_json::Value;
use simulator::{ApiServer, http};

const FIXTURE: &str = "crates/dovetail/tests/fixtures/prod-us";
const NOW: &str = "2026-11-16T15:42:00Z";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn dovetail(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command.current_dir(root()).args(arguments).output().unwrap()
}

/// Asks about the fixture.
fn ask(arguments: &[&str]) -> Output {
    dovetail(&[arguments, &["--from", FIXTURE, "--at", NOW]].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn document(arguments: &[&str]) -> Value {
    let output = ask(&[arguments, &["-o", "json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

/// Questions of every kind.
const QUESTIONS: [(&str, &str); 20] = [
    ("status", "status"),
    ("plan", "plan"),
    ("cost", "cost"),
    ("cost-namespace", "cost --by namespace"),
    ("cost-type", "cost --by type"),
    ("pod-limit", "why pod shop/checkout-api-next"),
    ("pod-label", "why pod ml/llm-embed"),
    ("pod-taint", "why pod data/pg-audit-0"),
    ("pod-on-its-way", "why pod analytics/feature-store"),
    ("pod-running", "why pod data/pg-notifications-8"),
    ("node-held", "why node ip-10-0-2-84"),
    ("node-pdb", "why node ip-10-0-15-206"),
    ("node-goes", "why node ip-10-0-165-138"),
    ("node-foreign", "why node ip-10-0-0-7"),
    ("pool-limit", "why nodepool general"),
    ("pool-not-ready", "why nodepool batch-arm"),
    ("whatif-zone", "whatif --zone-down b --at-once"),
    ("node-came", "why node ip-10-0-2-84 --came"),
    ("node-stays", "why node ip-10-0-2-84 --stays"),
    ("prices-pool", "prices --pool general --cpu 8 --limit 6"),
];

/// A single word is never broken: it may be something to copy; nor is a patch.
fn fits(line: &str, width: usize) -> bool {
    let is_one_word = !line.trim_start().contains(' ');
    let is_patch = line.trim_start().starts_with(['-', '+']) || line.trim_end().ends_with(':');
    line.chars().count() <= width || is_one_word || is_patch
}

/// `tests/golden` holds what every question is answered at both widths; `DOVETAIL_WRITE_PAGES=1` writes what is answered now.
#[test]
fn answers_are_those_that_were_read_by_eye_and_no_line_is_wider_than_the_screen() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let is_asked = std::env::var("DOVETAIL_WRITE_PAGES").is_ok();
    let mut stale = Vec::new();
    for (name, question) in QUESTIONS {
        for width in [80, 120] {
            let words: Vec<&str> = question.split(' ').collect();
            let answer = text(&ask(&[&words[..], &["--width", &width.to_string()]].concat()).stdout);
            for line in answer.lines() {
                // What-if's remarks are not broken or dropped on narrow screens yet.
                assert!(
                    fits(line, width) || name == "whatif-zone",
                    "{question} at {width}: {line}"
                );
            }
            let file = folder.join(format!("{name}-{width}.txt"));
            if is_asked {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&file, &answer).unwrap();
            } else if fs::read_to_string(&file).unwrap_or_default() != answer {
                stale.push(format!("{} should read:\n{answer}", file.display()));
            }
        }
    }
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}

#[test]
fn ascii_is_ascii() {
    for question in ["status", "plan", "why node ip-10-0-2-84"] {
        let words: Vec<&str> = question.split(' ').collect();
        let answer = text(&ask(&[&words[..], &["--width", "80", "--ascii"]].concat()).stdout);
        let others: String = answer.chars().filter(|sign| !sign.is_ascii()).collect();
        assert_eq!(others.replace('…', ""), "", "{answer}");
    }
}

#[test]
fn what_some_pods_cost_is_their_share_however_it_is_split() {
    let all = document(&["cost", "--by", "label:team"]);
    let row = all["by"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "shop");
    let expected = row.unwrap()["usd_mo"].as_f64().unwrap();
    for by in ["pool", "zone", "capacity", "type", "namespace", "label:team"] {
        let some = document(&["cost", "--by", by, "-l", "team=shop"]);
        let rows = some["by"]["rows"].as_array().unwrap();
        let sum: f64 = rows.iter().map(|row| row["usd_mo"].as_f64().unwrap()).sum();
        assert!((sum - expected).abs() < 0.01, "{by}: {sum} of {expected}");
        assert!((some["selected"]["usd_mo"].as_f64().unwrap() - expected).abs() < 0.01);
    }
    let none = ask(&["cost", "-l", "team=nobody"]);
    assert_eq!(none.status.code(), Some(1), "{}", text(&none.stderr));
}

#[test]
fn rows_are_sorted_and_headings_left_out_as_asked() {
    let pools = |arguments: &[&str]| {
        let answer = text(&ask(&[&["cost", "--width", "200"], arguments].concat()).stdout);
        answer
            .lines()
            .skip(1)
            .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let by_name = pools(&["--sort-by", "pool", "--no-headers"]);
    assert_eq!(by_name[..2], ["batch-spot", "data"], "{by_name:?}");
    assert!(pools(&[]).contains(&"POOL".to_owned()));
    let unknown = ask(&["cost", "--sort-by", "colour"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        text(&unknown.stderr).contains("why     columns are POOL, "),
        "{}",
        text(&unknown.stderr)
    );
}

#[test]
fn times_are_printed_in_the_zone_that_is_asked_for() {
    let answer = text(&ask(&["status", "--tz", "America/New_York"]).stdout);
    assert!(
        answer.lines().next().unwrap().ends_with("Mon 16 Nov 10:42:00 EST"),
        "{answer}"
    );
    let held = text(&ask(&["why", "node", "ip-10-0-2-84", "--tz", "America/New_York"]).stdout);
    assert!(
        held.contains("until Fri 21:00 EST"),
        "the window that opens on Saturday at 02:00 UTC: {held}"
    );
    assert_eq!(ask(&["status", "--tz", "Nowhere/Land"]).status.code(), Some(2));
}

#[test]
fn who_watches_is_told_again_when_the_dump_changes() {
    use std::io::{BufRead, BufReader};
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(root().join(FIXTURE)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(["status", "-w", "-o", "json", "--at", NOW, "--from"])
        .arg(folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    let (tell, told) = mpsc::channel::<String>();
    thread::spawn(move || {
        for line in lines.lines().map_while(Result::ok) {
            tell.send(line).ok();
        }
    });
    let next = || -> Value {
        let line = told.recv_timeout(std::time::Duration::from_mins(5)).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let before = next();
    let pods = fs::read_to_string(folder.path().join("pods.yaml")).unwrap();
    let fewer: Vec<&str> = pods
        .lines()
        .filter(|line| !line.contains("ml/llm-embed") && !line.contains("\"llm-embed"))
        .collect();
    fs::write(folder.path().join("pods.yaml"), fewer.join("\n")).unwrap();
    let after = next();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        after["pods"]["pending"].as_u64() < before["pods"]["pending"].as_u64(),
        "{after}"
    );
}

#[test]
fn commitments_lower_what_is_paid_and_what_removing_a_node_saves() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("commitments.yaml");
    fs::write(
        &file,
        "kind: Commitments\nreservations:\n- {name: data, instanceType: r6i.4xlarge, count: 9, usdPerHour: 0.5}\n",
    )
    .unwrap();
    let path = file.to_str().unwrap();
    let (plain, committed) = (document(&["cost"]), document(&["cost", "--commitments", path]));
    let number = |of: &Value, key: &str| of[key].as_f64().unwrap();
    assert!(
        number(&committed, "spend_usd_h") < number(&plain, "spend_usd_h"),
        "{committed}"
    );
    assert!(committed["saved"]["commitments_usd_mo"].as_f64().unwrap() > 0.0);
    assert_eq!(committed["commitments"][0]["committed_usd_h"], 4.5);
    let held = document(&["why", "node", "ip-10-0-2-84", "--commitments", path]);
    assert_eq!(held["lifting_usd_mo"], Value::Null, "the reservation is paid anyway");
    fs::write(
        &file,
        "reservations:\n- {name: data, instanceType: r6i.4xlarge, count: 0, usdPerHour: 1, colour: red}\n",
    )
    .unwrap();
    let refused = ask(&["cost", "--commitments", path]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("colour"), "{}", text(&refused.stderr));
}

#[test]
fn a_window_adds_up_what_ran_and_without_decisions_there_is_none() {
    use ledger::{Action, Money, Phase, Record, Target, Usd};
    let none = ask(&["cost", "--window", "24h"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(
        text(&none.stderr).starts_with("error   no history\nwhy     the ledger lives in the controller's decisions")
    );
    let mut record = Record::new(
        "6c5900000000".parse().unwrap(),
        Action::Delete,
        Phase::Done,
        "Empty",
        "2026-11-16T03:42:00Z".parse().unwrap(),
    );
    record.pool = "general".to_owned();
    record.targets = vec![Target {
        claim: "general-gone".to_owned(),
        usd_h: Some(Usd(1_000_000_000)),
        ..Target::default()
    }];
    record.money = Some(Money {
        before_usd_h: Usd(1_000_000_000),
        after_usd_h: Usd(0),
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("decisions.json");
    let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dovetail-decisions-0", "namespace": "kube-system"},
        "binaryData": {ledger::ENTRY: ledger::write_shard(1, &[record]).0}});
    fs::write(&file, map.to_string()).unwrap();
    let window = |arguments: &[&str]| {
        let from = [
            &[
                "cost",
                "--window",
                "24h",
                "--at",
                NOW,
                "--from",
                FIXTURE,
                file.to_str().unwrap(),
            ],
            arguments,
        ]
        .concat();
        dovetail(&from)
    };
    let output = window(&["-o", "json"]);
    let cost: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let of = |key: &str| cost["window"][key].as_f64().unwrap();
    assert!(
        (of("saved_by_consolidation_usd") - 12.0).abs() < 1e-6,
        "for twelve hours: {}",
        cost["window"]
    );
    let general = cost["window"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "general")
        .unwrap();
    assert!(
        general["spent_usd"].as_f64().unwrap() > 12.0,
        "the node that went was paid for until then"
    );
    assert!(of("spent_usd") > 12.0 && of("saved_by_spot_usd") > 0.0);
    let csv = text(&window(&["-o", "csv"]).stdout);
    assert!(
        csv.starts_with("hour,pool,spent_usd,") && csv.lines().count() > 24,
        "{csv}"
    );
    let by_team = text(&window(&["--by", "label:team", "-o", "csv"]).stdout);
    assert!(by_team.starts_with("label:team,spent_usd\n"), "{by_team}");
}

#[test]
fn dumps_of_two_times_say_what_other_plans_would_have_cost() {
    let folder = tempfile::tempdir().unwrap();
    for (name, hour) in [("1542", "15"), ("1642", "16")] {
        let look = folder.path().join(name);
        fs::create_dir(&look).unwrap();
        for entry in fs::read_dir(root().join(FIXTURE)).unwrap() {
            let entry = entry.unwrap();
            let objects = fs::read_to_string(entry.path()).unwrap();
            let later = objects.replace("2026-11-16T15:", &format!("2026-11-16T{hour}:"));
            fs::write(look.join(entry.file_name()), later).unwrap();
        }
    }
    let output = dovetail(&["observe", "-o", "json", "--from", folder.path().to_str().unwrap()]);
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let spent = |whose: &str| seen[whose]["spent_usd"].as_f64().unwrap();
    let status = document(&["status"]);
    let now = status["money"]["spend_usd_h"].as_f64().unwrap();
    assert!(
        (spent("theirs") - now).abs() < 1e-6,
        "an hour at the rate of now: {seen}"
    );
    assert!(spent("ours") < spent("theirs"), "there is something to gain: {seen}");
    assert_eq!(
        (&seen["looks"], &seen["batches"]["all"], &seen["launches"]),
        (&2.into(), &1.into(), &0.into())
    );
    let one = dovetail(&["observe", "--from", FIXTURE]);
    assert_eq!(one.status.code(), Some(1));
    assert!(text(&one.stderr).starts_with("error   nothing to compare\n"));
}

#[test]
fn a_pipe_gets_numbers_without_bars_or_colours_and_colour_can_be_asked_for() {
    let plain = text(&ask(&["status"]).stdout);
    assert!(!plain.contains('█') && !plain.contains('\u{1b}'), "{plain}");
    let coloured = text(&ask(&["status", "--color", "always", "--width", "120"]).stdout);
    assert!(
        coloured.contains("\u{1b}[37m█"),
        "a bar that is half full is white: {coloured}"
    );
}

#[test]
fn the_parts_of_the_spend_add_up() {
    let status = document(&["status"]);
    let number = |value: &Value| value.as_f64().unwrap();
    let pools = status["pools"].as_array().unwrap();
    let sum: f64 = pools.iter().map(|pool| number(&pool["spend_usd_h"])).sum();
    assert!((sum - number(&status["money"]["spend_usd_h"])).abs() < 1e-9);
    let money = &status["money"];
    let above = &money["above_bound"];
    let parts: f64 = ["planned", "held", "drag", "rounding"]
        .iter()
        .map(|part| number(&above[format!("{part}_usd_mo")]))
        .sum();
    assert!((parts - number(&above["total_usd_mo"])).abs() < 1e-6, "{above}");
    assert!(number(&money["bound_usd_h"]) > 0.0 && number(&money["bound_usd_h"]) <= number(&money["spend_usd_h"]));
    let saved = &money["saved"];
    let difference = number(&money["baseline_usd_mo"]) - number(&money["spend_usd_mo"]);
    assert!((number(&saved["total_usd_mo"]) - difference).abs() < 1e-6);
    assert_eq!(
        (&status["fleet"]["nodes"], &status["fleet"]["unmanaged"]),
        (&15.into(), &1.into())
    );
}

#[test]
fn shares_of_namespaces_and_idle_add_up_to_the_spend() {
    for by in ["namespace", "label:team", "pool", "type", "zone", "capacity"] {
        let cost = document(&["cost", "--by", by]);
        let rows = cost["by"]["rows"].as_array().unwrap();
        let sum: f64 = rows.iter().map(|row| row["usd_h"].as_f64().unwrap()).sum();
        let spend = cost["spend_usd_h"].as_f64().unwrap();
        assert!((sum - spend).abs() < 1e-6, "{by}: {sum} of {spend}");
    }
    let csv = text(&ask(&["cost", "--by", "namespace", "--format", "csv"]).stdout);
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(columns.iter().all(|count| *count == 15), "{csv}");
    assert!(csv.starts_with("namespace,nodes,pods,"), "{csv}");
}

#[test]
fn a_blocked_pod_is_told_where_it_stops_and_what_lets_it_in() {
    let why = document(&["why", "pod", "shop/checkout-api-next"]);
    assert_eq!(
        (&why["kind"], &why["state"]),
        (&"PodExplanation".into(), &"Blocked".into())
    );
    assert_eq!(why["funnel"]["node_pool"], "general");
    let fix = why["funnel"]["fix"]["text"].as_str().unwrap();
    assert!(!fix.is_empty());
    let patch = text(&ask(&["why", "pod", "shop/checkout-api-next", "--fix"]).stdout);
    assert!(patch.contains("spec:") && !patch.contains("+ "), "{patch}");
    let on_its_way = document(&["why", "pod", "analytics/feature-store"]);
    assert_eq!(on_its_way["state"], "OnItsWay");
    assert_eq!(on_its_way["launch"]["pool"], "batch-spot");
    assert_eq!(
        document(&["why", "pod", "web/storefront-"])["state"],
        "FitsExisting",
        "the one that waits"
    );
}

#[test]
fn a_held_node_names_every_rule_and_what_lifting_them_is_worth() {
    let why = document(&["why", "node", "ip-10-0-2-84"]);
    let rules: Vec<&str> = why["stays"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stay| stay["rule"].as_str().unwrap())
        .collect();
    assert_eq!(rules[..3], ["ProtectedPod", "OnlyWhenEmpty", "Budget"], "{rules:?}");
    assert_eq!(
        why["stays"][2]["lifts_at"], "2026-11-21T02:00:00Z",
        "the window of Saturday"
    );
    let worth = why["lifting_usd_mo"].as_f64().unwrap();
    let delta = why["if_removed"]["delta_usd_mo"].as_f64().unwrap();
    assert!(worth > 0.0 && (worth + delta).abs() < 1e-6, "{worth} {delta}");
    let pdb = document(&["why", "node", "ip-10-0-15-206"]);
    assert_eq!(pdb["stays"][0]["by"], "pdb data/pg-orders-pdb");
}

#[test]
fn the_plan_moves_what_pays_and_says_what_holds_the_rest() {
    let plan = document(&["plan"]);
    let moves = plan["moves"].as_array().unwrap();
    let targets: Vec<&str> = moves
        .iter()
        .flat_map(|step| step["targets"].as_array().unwrap())
        .map(|target| target["node"].as_str().unwrap())
        .collect();
    assert!(
        targets.contains(&"ip-10-0-165-138.ec2.internal"),
        "it is empty: {targets:?}"
    );
    for step in moves {
        assert!(step["delta_usd_mo"].as_f64().unwrap() <= 0.0, "{step}");
        assert_eq!(step["id"].as_str().unwrap().len(), 12);
    }
    let held: Vec<&str> = plan["held"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kept| kept["rule"].as_str().unwrap())
        .collect();
    for rule in ["PodBudgets", "ProtectedPod", "DoNotDisrupt"] {
        assert!(held.contains(&rule), "{rule} in {held:?}");
    }
    let waits = plan["waits"].as_array().unwrap();
    let drifted = waits.iter().find(|kept| kept["reason"] == "Drifted").unwrap();
    assert_eq!(
        (drifted["targets"].as_array().unwrap().len(), &drifted["lifts_at"]),
        (2, &"2026-11-17T03:00:00Z".into())
    );
    assert_eq!(document(&["plan"]), plan, "equal inputs give equal answers");
}

#[test]
fn a_no_is_an_exit_code_only_when_asked_for() {
    let code = |arguments: &[&str]| ask(arguments).status.code();
    assert_eq!(code(&["why", "pod", "ml/llm-embed"]), Some(0));
    assert_eq!(code(&["why", "pod", "ml/llm-embed", "--exit-code"]), Some(3));
    assert_eq!(code(&["why", "node", "ip-10-0-2-84", "--exit-code"]), Some(3));
    assert_eq!(code(&["why", "node", "ip-10-0-165-138", "--exit-code"]), Some(0));
    assert_eq!(code(&["why", "colour", "red"]), Some(2));
    assert_eq!(code(&["cost", "--by", "colour"]), Some(2));
    assert_eq!(code(&["why", "pod", "no-such-pod"]), Some(1));
}

#[test]
fn a_name_that_is_none_gets_the_nearest_one() {
    let error = |arguments: &[&str]| text(&ask(arguments).stderr);
    let pool = error(&["why", "np", "genral"]);
    let expected = "error   no nodepool genral\n\
                    why     5 nodepools looked through; the nearest is general\n\
                    next    dovetail why nodepool general\n";
    assert_eq!(pool, expected);
    let pod = error(&["why", "pod", "default/checkout-api-next"]);
    assert!(
        pod.contains("\nnext    dovetail why pod shop/checkout-api-next-"),
        "{pod}"
    );
    let named_once = "error   no pod checkout-api-next in namespace default\n";
    assert!(pod.starts_with(named_once), "{pod}");
    let several = error(&["why", "node", "ip-10-0-1"]);
    assert!(
        several.starts_with("error   ") && several.contains("begin with ip-10-0-1"),
        "{several}"
    );
}

#[test]
fn quiet_is_the_first_line_and_nothing_else() {
    let output = ask(&["why", "nodepool", "general", "-q"]);
    assert_eq!(text(&output.stdout).lines().count(), 1);
    assert_eq!(text(&output.stderr), "");
}

/// The fixture on an API server of its own, which a thread serves for as long as this lives.
struct Live {
    folder: tempfile::TempDir,
    _stop: mpsc::Sender<()>,
}

impl Live {
    fn start(leave_out: &[&str]) -> Self {
        let server = ApiServer::new(|| NOW.parse().unwrap());
        let mut crds: Vec<_> = fs::read_dir(root().join("crates/api/crds"))
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        crds.sort();
        for file in crds {
            let definition: Value = serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap();
            server.create(definition).unwrap();
        }
        for name in ["nodepools", "nodes", "nodeclaims", "pods", "pdbs", "daemonsets"] {
            if leave_out.contains(&name) {
                continue;
            }
            let file = root().join(FIXTURE).join(format!("{name}.yaml"));
            let list: Value = serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap();
            for object in list["items"].as_array().unwrap() {
                let mut object = object.clone();
                object["metadata"].as_object_mut().unwrap().remove("uid");
                server.create(object).unwrap();
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        fs::write(
            folder.path().join("config"),
            http::kubeconfig(listener.local_addr().unwrap()),
        )
        .unwrap();
        let (stop, stopped) = mpsc::channel::<()>();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let serving = tokio::spawn(http::serve(server, listener));
                tokio::task::spawn_blocking(move || stopped.recv()).await.unwrap().ok();
                serving.abort();
            });
        });
        Self { folder, _stop: stop }
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        let config = self.folder.path().join("config");
        dovetail(&[arguments, &["--kubeconfig", config.to_str().unwrap()]].concat())
    }
}

#[test]
fn a_live_cluster_and_its_dump_are_the_same_fleet() {
    let live = Live::start(&[]);
    let output = live.ask(&["status", "-o", "json"]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    assert_eq!(
        (&status["source"]["type"], &status["cluster"]),
        (&"live".into(), &"dovetail".into())
    );
    let dumped = document(&["status"]);
    for part in ["fleet", "pods"] {
        let count = |of: &Value| {
            (
                of[part]["nodes"].clone(),
                of[part]["vcpu"].clone(),
                of[part]["running"].clone(),
            )
        };
        assert_eq!(count(&status), count(&dumped), "{part}");
    }
    assert_eq!(status["money"]["spend_usd_h"], dumped["money"]["spend_usd_h"]);
    let notes = text(&live.ask(&["why", "node", "ip-10-0-2-84"]).stderr);
    assert!(notes.starts_with("source   live dovetail"), "{notes}");
    assert!(
        notes.contains("not installed, so there are none:") || !notes.contains("may not be listed"),
        "{notes}"
    );
    let plan = live.ask(&["plan", "-o", "json"]);
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!(plan["pods"]["waiting"], 6);
}

#[test]
fn a_cluster_nobody_answers_for_is_exit_code_4_in_three_lines() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    // A port that was free a moment ago, so that nobody listens.
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    fs::write(&config, http::kubeconfig(free)).unwrap();
    let config = config.to_str().unwrap();
    let output = dovetail(&["status", "--kubeconfig", config]);
    assert_eq!(output.status.code(), Some(4));
    let said = text(&output.stderr);
    assert!(
        said.starts_with("error   cannot reach the API server of dovetail\nwhy     "),
        "{said}"
    );
    assert!(said.contains("\nnext    "), "{said}");
    let output = dovetail(&["plan", "--kubeconfig", config, "--context", "elsewhere"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("elsewhere"));
}
