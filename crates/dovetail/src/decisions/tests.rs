//! What people and programs read of a few decisions, from a file of lines and from ConfigMaps in a dump.

use std::{fs, path::Path};

use clap::Parser;
use ledger::{Action, ENTRY, Id, Inputs, Lift, Money, Offer, Phase, Record, Target, Usd, lines, name_of, write_shard};
use serde_json::{Value, json};

use super::*;
use crate::reply::Format as Reply;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn at(text: &str) -> Timestamp {
    format!("2026-11-16T{text}Z").parse().unwrap()
}

fn launch() -> Record {
    let id = Id::of("launch", ["general-x7k2p"]);
    let mut record = Record::new(id, Action::Launch, Phase::Done, "Provisioned", at("15:37:27"));
    record.pool = "general".to_owned();
    record.nodes = 1;
    record.targets = vec![Target {
        node: "ip-10-0-16-29".to_owned(),
        claim: "general-x7k2p".to_owned(),
        instance_type: "m7g.2xlarge".to_owned(),
        zone: "1c".to_owned(),
        capacity: "spot".to_owned(),
        usd_h: Some(Usd(129_600_000)),
        comes: true,
    }];
    record.money = Some(Money {
        before_usd_h: Usd(0),
        after_usd_h: Usd(129_600_000),
    });
    record.options = vec![
        Offer {
            offer: "m7g.2xlarge spot in 1c".to_owned(),
            usd_h: Some(Usd(129_600_000)),
            verdict: "chosen".to_owned(),
        },
        Offer {
            offer: "m6g.2xlarge spot in 1a".to_owned(),
            usd_h: Some(Usd(131_000_000)),
            verdict: "fits; dearer".to_owned(),
        },
    ];
    record.pods = vec!["web/storefront-1".to_owned()];
    record.pod_count = 6;
    record.step("planned", at("15:37:27"));
    record.step("created", at("15:37:28"));
    record.step("ready", at("15:38:03"));
    record.inputs = Inputs {
        digest: "681c9413edfd1d19".to_owned(),
        pods: 652,
        nodes: 59,
        offers: 2715,
        engine: "0.9.0".to_owned(),
        took_ms: 6,
    };
    record
}

fn kept() -> Record {
    let id = Id::of("keep", ["DoNotDisrupt", "ip-10-0-2-84"]);
    let mut record = Record::new(id, Action::Keep, Phase::Done, "DoNotDisrupt", at("15:29:36"));
    record.last_seen = at("15:41:00");
    record.count = 70;
    record.pool = "data".to_owned();
    record.nodes = 1;
    record.pod_count = 2;
    record.targets = vec![Target {
        node: "ip-10-0-2-84".to_owned(),
        ..Target::default()
    }];
    record.detail = "do-not-disrupt, without an end".to_owned();
    record.forgone_usd_h = Some(Usd(579_600_000));
    record.lift = Some(Lift {
        object: "Pod data/pg-notifications-8".to_owned(),
        change: "take the annotation karpenter.sh/do-not-disrupt off".to_owned(),
    });
    record
}

fn deleted() -> Record {
    let id = Id::of("delete", ["batch-spot-q2hvf"]);
    let mut record = Record::new(id, Action::Delete, Phase::Done, "Empty", at("15:35:20"));
    record.pool = "batch-spot".to_owned();
    record.nodes = 1;
    record.targets = vec![Target {
        node: "ip-10-0-4-93".to_owned(),
        claim: "batch-spot-q2hvf".to_owned(),
        instance_type: "c6i.8xlarge".to_owned(),
        ..Target::default()
    }];
    record.money = Some(Money {
        before_usd_h: Usd(515_100_000),
        after_usd_h: Usd(0),
    });
    record
}

fn all() -> Vec<Record> {
    vec![kept(), deleted(), launch()]
}

fn asked(path: &Path, more: &[&str]) -> anyhow::Result<Answer> {
    let path = path.to_string_lossy();
    let line = ["decisions"]
        .into_iter()
        .chain(more.iter().copied())
        .chain(["--from", &*path]);
    answer(&Line::try_parse_from(line).unwrap().args)
}

fn said(path: &Path, more: &[&str]) -> String {
    asked(path, more).unwrap().text
}

fn file(directory: &tempfile::TempDir, records: &[Record]) -> std::path::PathBuf {
    let path = directory.path().join("decisions.jsonl");
    fs::write(&path, lines(records)).unwrap();
    path
}

#[test]
fn a_list_says_how_many_and_for_how_much_and_then_shows_the_newest_first() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, &all());
    let text = said(&path, &[]);
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(
        rows[0],
        "3 in the last 2h: 2 acted, 1 refused or aborted. Consolidation -$376/mo."
    );
    assert!(rows[1].starts_with("TIME      ID    ACTION    WHAT"), "{text}");
    let launch = "launched  m7g.2xlarge spot in 1c for 6 pods, ready in 36s  Provisioned   general        6    +94.61";
    assert!(rows[2].starts_with("15:37:27  ") && rows[2].ends_with(launch), "{text}");
    assert!(
        rows[3].contains("deleted   c6i.8xlarge ip-10-0-4-93") && rows[3].ends_with("-376.02"),
        "{text}"
    );
    assert!(
        rows[4].contains("kept      ip-10-0-2-84: do-not-disrupt, without an end"),
        "{text}"
    );
    assert!(rows[4].ends_with("(423.11)"), "{text}");
}

#[test]
fn a_list_is_narrowed_by_pool_node_reason_and_what_came_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, &all());
    let cases = [
        (vec!["--pool", "data"], vec![kept()]),
        (vec!["--node", "ip-10-0-16-29"], vec![launch()]),
        (vec!["--node", "batch-spot-q2hvf"], vec![deleted()]),
        (vec!["--reason", "empty"], vec![deleted()]),
        (vec!["--acted"], vec![launch(), deleted()]),
        (vec!["--refused"], vec![kept()]),
        (vec!["--since", "4m"], vec![launch(), kept()]),
    ];
    for (flags, expected) in cases {
        let ids: String = expected.iter().map(|record| format!("{}\n", record.id)).collect();
        let flags: Vec<&str> = flags.into_iter().chain(["-o", "name"]).collect();
        assert_eq!(said(&path, &flags), ids, "{flags:?}");
    }
}

#[test]
fn where_nothing_is_left_it_is_told_whether_it_is_the_time_or_something_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, &[launch()]);
    let id = launch().id.short(4);
    assert_eq!(
        said(&path, &["--at", "2026-11-16T20:00:00Z"]),
        format!("No decision in the last 2h. The newest is {id}, 15:37:27.\n")
    );
    assert_eq!(
        said(&path, &["--reason", "Interupted"]),
        "None of 1 decision in the last 2h is as asked for. Reasons there are: Provisioned.\n"
    );
}

#[test]
fn an_export_has_a_line_of_numbers_for_each() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, &all());
    let text = said(&path, &["export"]);
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 4);
    let expected = format!(
        "{},2026-11-16T15:37:27Z,launched,true,Provisioned,general,ip-10-0-16-29,general-x7k2p,m7g.2xlarge,1c,spot,0,0.1296,94.608,6,,36000,36,",
        launch().id
    );
    assert_eq!(rows[1], expected);
}

#[test]
fn programs_get_one_envelope_with_the_summary() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, &all());
    let tree: Value = serde_json::from_str(&said(&path, &["-o", "json"])).unwrap();
    assert_eq!(
        (&tree["apiVersion"], &tree["kind"]),
        (&json!("dovetail.dev/v1alpha1"), &json!("Decisions"))
    );
    assert_eq!(tree["summary"]["acted"], 2);
    assert_eq!(tree["decisions"][0]["action"], "launched");
    assert_eq!(tree["decisions"][0]["money"]["delta_usd_mo"], 94.608);
    assert_eq!(
        tree["decisions"][0]["options"],
        Value::Null,
        "a list does without what else was possible"
    );
}

/// A dump as kubectl prints it.
fn dump(directory: &tempfile::TempDir) -> std::path::PathBuf {
    let (shard, _) = write_shard(4, &all());
    let map = |name: String, data: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"},
            "binaryData": data})
    };
    let maps = [
        map(name_of(4), json!({ ENTRY: shard })),
        map(name_of(5), json!({ ENTRY: "%%" })),
        map("kube-root-ca.crt".to_owned(), json!({})),
    ];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": maps});
    fs::write(directory.path().join("configmaps.yaml"), document::yaml(&list).unwrap()).unwrap();
    fs::write(directory.path().join("notes.txt"), "dovetail-decisions-9: {").unwrap();
    directory.path().to_owned()
}

#[test]
fn decisions_are_read_from_the_config_maps_of_a_dump_and_what_cannot_be_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let answer = asked(&dump(&directory), &["-o", "name"]).unwrap();
    assert_eq!(answer.text.lines().count(), 3);
    let notes = answer.notes;
    assert!(notes.contains("3 decisions in 1 shard back to 15:29:36"), "{notes}");
    assert!(
        notes.contains("ConfigMap dovetail-decisions-5: it is not base64"),
        "{notes}"
    );
}

fn why_of(path: &Path, id: &str, format: Reply) -> anyhow::Result<String> {
    let line = Line::try_parse_from(["decisions", "--from", &path.to_string_lossy()]).unwrap();
    let presentation = crate::terminal::Presentation::default();
    why(id, &line.args.shelf, format, presentation).map(|answer| answer.text)
}

#[test]
fn one_decision_is_told_in_full_by_its_first_digits() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, &all());
    let id = launch().id.short(4);
    let expected = format!(
        "{id}  15:37:27  launched m7g.2xlarge spot in 1c for 6 pods, ready in 36s (general), Provisioned. +$95/mo
  options    > m7g.2xlarge spot in 1c   $0.1296/h  chosen
               m6g.2xlarge spot in 1a   $0.1310/h  fits; dearer
  steps      planned 0s → created 1s → ready 36s
  pods       web/storefront-1
             and 5 more
  inputs     681c9413edfd1d19, 652 pods, 59 nodes, 2,715 offers, engine 0.9.0, 6 ms
  again      dovetail replay --id {id} --record DIR, where --flight-recorder DIR was set
"
    );
    let told = why_of(&path, &id, Reply::Table).unwrap();
    // `hanging` joins blanks; the sentence keeps its words.
    let plain = |text: &str| text.replace("  ", " ").replace('→', "->");
    assert_eq!(plain(&told), plain(&expected));
    let told = why_of(&path, &kept().id.to_string(), Reply::Table).unwrap();
    assert!(
        told.contains("found 70 times, last 15:41:00. Forgoes ($423/mo)"),
        "{told}"
    );
    assert!(
        told.contains("would need Pod data/pg-notifications-8: take the annotation"),
        "{told}"
    );
    let tree: Value = serde_json::from_str(&why_of(&path, &id, Reply::Json).unwrap()).unwrap();
    assert_eq!(tree["chosen"]["offer"], "m7g.2xlarge spot in 1c");
    assert_eq!(tree["runners_up"][0]["verdict"], "fits; dearer");
}

#[test]
fn an_id_that_is_not_there_or_is_several_is_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let mut twins = [launch(), deleted()];
    twins[0].id = "6c5900000000".parse().unwrap();
    twins[1].id = "6c5980000000".parse().unwrap();
    let path = file(&directory, &twins);
    let failed = |id: &str| {
        let error = why_of(&path, id, Reply::Table).unwrap_err();
        error.downcast::<crate::failure::Failure>().unwrap()
    };
    let several = failed("6c59");
    assert_eq!(several.code, crate::failure::Code::Usage);
    assert!(
        several.why.contains("6c590  15:37:27  launched m7g.2xlarge"),
        "{}",
        several.why
    );
    assert_eq!(several.next, "write at least 5 digits");
    let none = failed("6b9f");
    assert!(none.error.starts_with("no decision 6b9f in "), "{none}");
    assert!(none.why.contains("2 decisions back to 15:35:20"), "{none}");
    assert!(failed("web-1").error.contains("is no decision's id"));
}

#[test]
fn a_source_without_decisions_says_how_to_get_them() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("pods.yaml"), "kind: List\nitems: []\n").unwrap();
    let error = asked(directory.path(), &[]).unwrap_err().to_string();
    assert!(
        error.contains("it holds no ConfigMap dovetail-decisions-0 to -9"),
        "{error}"
    );
    assert!(
        error.contains("kubectl get configmaps -A -l app.kubernetes.io/managed-by=dovetail"),
        "{error}"
    );
}
