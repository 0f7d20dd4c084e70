//! `dovetail prices` as a user runs it: on a catalogue alone, on a dump, and with prices of one's own.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

const FIXTURE: &[&str] = &["--from", "crates/dovetail/tests/fixtures/prod-us"];

fn prices(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .arg("prices")
        .args(arguments)
        .env("KUBECONFIG", "nowhere")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn offers(arguments: &[&str]) -> Vec<Value> {
    let output = prices(&[arguments, &["-o", "json"]].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    document["offers"].as_array().unwrap().clone()
}

#[test]
fn a_catalogue_that_is_named_needs_no_cluster() {
    for catalogue in ["aws", "azure", "kwok"] {
        let output = prices(&["--catalogue", catalogue]);
        assert!(output.status.success(), "{catalogue}: {}", text(&output.stderr));
        assert!(
            text(&output.stdout).contains("the cheapest is"),
            "{}",
            text(&output.stdout)
        );
    }
}

#[test]
fn offers_come_the_cheapest_first_and_only_as_asked_for() {
    let found = offers(&[
        "--catalogue",
        "aws",
        "--type",
        "m7g",
        "--capacity",
        "spot",
        "--cpu",
        "4",
        "--memory",
        "16",
    ]);
    assert!(found.len() > 3);
    for pair in found.windows(2) {
        assert!(pair[0]["usd_h"].as_f64() <= pair[1]["usd_h"].as_f64(), "{pair:?}");
    }
    for offer in &found {
        assert!(offer["instance_type"].as_str().unwrap().starts_with("m7g."), "{offer}");
        assert_eq!(offer["capacity_type"], "spot");
        assert!(
            offer["vcpu"].as_u64() >= Some(4) && offer["memory_mib"].as_u64() >= Some(16 * 1024),
            "{offer}"
        );
    }
    assert_eq!(
        found[0]["instance_type"], "m7g.xlarge",
        "which has 16 GiB, whatever its nodes see of them"
    );
}

#[test]
fn labels_choose_as_kubectl_has_them() {
    let found = offers(&[
        "--catalogue",
        "azure",
        "-l",
        "kubernetes.io/arch=arm64,karpenter.sh/capacity-type=on-demand",
    ]);
    assert!(!found.is_empty());
    let is_meant = |offer: &Value| offer["arch"] == "arm64" && offer["capacity_type"] == "on-demand";
    assert!(found.iter().all(is_meant));
}

#[test]
fn several_types_and_zones_may_stand_behind_one_flag() {
    let found = offers(&[
        "--catalogue",
        "aws",
        "--type",
        "m7g.large,c7g.large",
        "--zone",
        "us-east-1a,us-east-1b",
    ]);
    let places: BTreeSet<_> = found
        .iter()
        .map(|it| (it["instance_type"].as_str().unwrap(), it["zone"].as_str().unwrap()))
        .collect();
    assert_eq!(places.len(), 4, "{places:?}");
}

#[test]
fn a_pool_leaves_what_it_may_buy() {
    let all = offers(FIXTURE);
    let of_pool = offers(&[FIXTURE, &["--pool", "batch-spot"]].concat());
    assert!(!of_pool.is_empty() && of_pool.len() < all.len());
    assert!(of_pool.iter().all(|offer| offer["capacity_type"] == "spot"));
    let unknown = prices(&[FIXTURE, &["--pool", "batch-spto"]].concat());
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("batch-spot is the nearest"));
}

#[test]
fn rows_for_a_spreadsheet_are_prices_to_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prices.csv");
    let rows = text(&prices(&["--catalogue", "aws", "--type", "m7g.large", "-o", "csv"]).stdout);
    let dearer = rows.replace("spot,us-east-1a,0.03264,", "spot,us-east-1a,0.05,");
    assert_ne!(rows, dearer, "{rows}");
    fs::write(&file, dearer).unwrap();
    let file = file.to_str().unwrap();
    let found = offers(&[
        "--catalogue",
        "aws",
        "--type",
        "m7g.large",
        "--capacity",
        "spot",
        "--prices",
        file,
    ]);
    let of_zone = |zone: &str| found.iter().find(|offer| offer["zone"] == zone).unwrap()["usd_h"].clone();
    assert_eq!(of_zone("us-east-1a"), 0.05);
    assert_eq!(of_zone("us-east-1b"), 0.03264);
}

#[test]
fn nothing_found_is_an_answer_and_with_exit_code_a_no() {
    let output = prices(&[
        "--catalogue",
        "aws",
        "--type",
        "m7g.large",
        "--cpu",
        "64",
        "--exit-code",
    ]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text(&output.stdout).starts_with("None of 8,070 offers is as asked for."),
        "{output:?}"
    );
}

#[test]
fn prices_of_today_are_had_by_a_command_that_names_the_region() {
    let aws = text(&prices(&["pull", "--catalogue", "aws", "--region", "eu-west-1"]).stdout);
    assert!(aws.contains("describe-spot-price-history --region eu-west-1 "), "{aws}");
    let kwok = prices(&["pull", "--catalogue", "kwok"]);
    assert_eq!(kwok.status.code(), Some(1));
    assert_eq!(text(&kwok.stderr).lines().count(), 3);
}

#[test]
fn rows_are_sorted_before_they_are_cut() {
    let largest = text(
        &prices(&[
            "--catalogue",
            "aws",
            "--sort-by",
            "-vcpu",
            "--limit",
            "1",
            "--no-headers",
        ])
        .stdout,
    );
    let row = largest.lines().nth(1).unwrap_or_default();
    let cores: u64 = row
        .split_whitespace()
        .nth(1)
        .and_then(|cores| cores.parse().ok())
        .unwrap_or_default();
    assert!(cores > 400, "{largest}");
}

#[test]
fn a_zone_that_nobody_sells_in_is_told_with_those_there_are() {
    let output = prices(&["--catalogue", "aws", "--zone", "eu-west-1a"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("zones are us-east-1a, us-east-1b, us-east-1c"));
}

#[test]
fn a_type_that_nobody_sells_is_told_with_the_nearest_there_is() {
    for (wrong, near) in [("m7gg", "m7g"), ("m7g.2xlrge", "m7g.2xlarge")] {
        let output = prices(&["--catalogue", "aws", "--type", wrong]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(&format!("{near} is the nearest")), "{told}");
    }
}
