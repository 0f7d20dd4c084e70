//! `dovetail lint` as a user runs it: on the manifests the project began with, on clean and on broken input.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

const MISSION: &str = "examples/lint/mission";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn lint(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command
        .current_dir(root())
        .arg("lint")
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn findings(arguments: &[&str]) -> Vec<Value> {
    let output = lint(&[arguments, &["-o", "json"]].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    document["findings"].as_array().unwrap().clone()
}

#[test]
fn the_manifests_the_project_began_with_show_all_their_mistakes() {
    let found = findings(&["-f", MISSION]);
    let found: Vec<(String, String)> = found
        .iter()
        .map(|one| {
            let text = |field: &str| one[field].as_str().unwrap().to_owned();
            (text("code"), text("object"))
        })
        .collect();
    let expected = [
        ("NC01", "ec2nodeclass/default"),
        ("WL03", "deployment/spot-workload"),
        ("NP03", "nodepool/batch"),
        ("NP03", "nodepool/general"),
        ("NP04", "nodepool/general"),
        ("NP05", "nodepool/batch"),
        ("NP08", "nodepool/general"),
        ("NP13", "nodepool/general"),
        ("WL01", "fragment"),
        ("WL02", "deployment/spot-workload"),
        ("WL12", "scaledobject/app-scaler"),
        ("PD04", "pdb/app-pdb"),
        ("IN01", "helm values"),
        ("NP06", "nodepool/batch"),
        ("NP07", "nodepool/general"),
        ("NP10", "nodepool/batch"),
        ("NP16", "nodepool/batch"),
        ("BU06", "nodepool/batch"),
        ("BU06", "nodepool/general"),
        ("IN02", "helm values"),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(code, object)| ((*code).to_owned(), (*object).to_owned()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn the_first_line_says_what_was_read_and_how_much_was_found() {
    let output = lint(&["-f", MISSION]);
    let shown = text(&output.stdout);
    let first = "examples/lint/mission: 7 objects, 1 Helm values file, 1 fragment; 2 errors, 11 warnings, 7 notes.";
    assert_eq!(shown.lines().next(), Some(first), "{shown}");
    assert_eq!(output.status.code(), Some(3), "an error was found");
}

#[test]
fn a_finding_in_full_names_the_line_the_reason_and_the_change() {
    let shown = text(&lint(&["--explain", "NC01", "-f", MISSION]).stdout);
    let lines: Vec<&str> = shown.lines().collect();
    let place = "NC01 error  examples/lint/mission/eks-nodeclass.yaml:8  EC2NodeClass/default";
    assert!(lines[0].starts_with(place), "{shown}");
    assert!(
        shown.contains("  fix   -    - alias: \"al2023\"  # Amazon Linux 2023\n"),
        "{shown}"
    );
    assert!(
        shown.contains("        +    - alias: \"al2023@v20261110\"  # Amazon Linux 2023\n"),
        "{shown}"
    );
    assert_eq!(lines.last(), Some(&"  see   docs/lint/NC01.md"));
}

#[test]
fn the_exit_code_follows_what_the_caller_calls_a_failure() {
    let cases = [
        (vec!["-f", MISSION, "--ignore", "NC01,WL03"], Some(0)),
        (
            vec!["-f", MISSION, "--ignore", "NC01,WL03", "--fail-on", "warning"],
            Some(3),
        ),
        (
            vec!["-f", "examples/lint/mission/aks-monitoring.yaml", "--fail-on", "note"],
            Some(0),
        ),
        (vec!["-f", MISSION, "--ignore", "NC99"], Some(2)),
    ];
    for (arguments, code) in cases {
        assert_eq!(lint(&arguments).status.code(), code, "{arguments:?}");
    }
}

#[test]
fn nothing_found_is_said_with_what_was_looked_at() {
    let shown = text(&lint(&["examples/lint/mission/aks-monitoring.yaml"]).stdout);
    assert_eq!(shown, "No findings in 1 object; 54 rules looked at.\n");
}

#[test]
fn broken_yaml_is_told_in_three_lines_with_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pool.yaml");
    fs::write(&path, "kind: NodePool\nmetadata:\n  name: [\n").unwrap();
    let output = lint(&["-f", path.to_str().unwrap()]);
    let told = text(&output.stderr);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!((output.status.code(), lines.len()), (Some(1), 3), "{told}");
    assert!(
        lines[0].starts_with("error   ") && lines[0].contains("pool.yaml:"),
        "{told}"
    );
    assert!(
        lines[1].starts_with("why     ") && lines[2].starts_with("next    "),
        "{told}"
    );
}

#[test]
fn the_template_of_a_chart_in_a_directory_is_left_out_and_told_of() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("a.yaml"),
        "{{- if .Values.x }}\nkind: NodePool\n{{- end }}\n",
    )
    .unwrap();
    fs::write(
        directory.path().join("b.yaml"),
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    )
    .unwrap();
    let output = lint(&["-f", directory.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        text(&output.stderr).contains("a.yaml is the template of a chart"),
        "{output:?}"
    );
}

#[test]
fn sarif_has_the_rules_the_lines_and_fixes_as_replacements() {
    let output = lint(&["-f", MISSION, "-o", "sarif"]);
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &log["runs"][0];
    assert_eq!(log["version"], "2.1.0");
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert_eq!((rules.len(), results.len()), (54, 20));
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"];
        assert!(
            place["region"]["startLine"].as_u64().is_some_and(|line| line > 0),
            "{result}"
        );
        assert!(place["artifactLocation"]["uri"].as_str().unwrap().starts_with(MISSION));
    }
    let alias = results.iter().find(|result| result["ruleId"] == "NC01").unwrap();
    let replacement = &alias["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(replacement["deletedRegion"]["startLine"], 8);
    let inserted = replacement["insertedContent"]["text"].as_str().unwrap();
    assert!(inserted.contains("al2023@v20261110"), "{inserted}");
}

#[test]
fn github_shows_each_finding_beside_its_line() {
    let shown = text(&lint(&["-f", MISSION, "-o", "github"]).stdout);
    let first = shown.lines().next().unwrap();
    let start =
        "::error file=examples/lint/mission/eks-nodeclass.yaml,line=8,title=NC01 ami-alias::EC2NodeClass/default";
    assert!(first.starts_with(start), "{first}");
    assert_eq!(shown.lines().count(), 20);
}

#[test]
fn manifests_come_from_standard_input_and_from_markdown_too() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    let mut child = command
        .args(["lint", "-f", "-", "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let class = fs::read(root().join("examples/lint/mission/eks-nodeclass.yaml")).unwrap();
    child.stdin.take().unwrap().write_all(&class).unwrap();
    let output = child.wait_with_output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["findings"][0]["code"], "NC01");
    assert_eq!(document["findings"][0]["line"], 8);

    let directory = tempfile::tempdir().unwrap();
    let page = format!("# A page\n\n```yaml\n{}```\n", text(&class));
    fs::write(directory.path().join("README.md"), page).unwrap();
    let found = findings(&["-f", directory.path().to_str().unwrap()]);
    assert_eq!((&found[0]["code"], &found[0]["line"]), (&"NC01".into(), &11.into()));
}

#[test]
fn a_rule_is_explained_without_any_manifest() {
    let output = lint(&["--explain", "np04"]);
    let shown = text(&output.stdout);
    assert!(shown.starts_with("NP04 warning  spot-only\n"), "{shown}");
    assert_eq!(output.status.code(), Some(0));
    let unknown = text(&lint(&["--explain", "NP4"]).stderr);
    assert!(
        unknown.contains("error   no rule NP4") && unknown.contains("is the nearest"),
        "{unknown}"
    );
}

#[test]
fn the_example_cluster_is_looked_at_as_a_whole() {
    let output = lint(&["--from", "examples/plan", "-o", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(document["source"]["type"], "dump");
    assert!(document["summary"]["objects"].as_u64().unwrap() > 0);
}

#[test]
fn a_pool_for_windows_has_the_types_of_one_for_linux() {
    let directory = tempfile::tempdir().unwrap();
    let pool = |os: &str| {
        format!(
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: {os}}}\nspec:\n  template:\n    spec:\n      \
             nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}\n      requirements:\n      \
             - {{key: kubernetes.io/os, operator: In, values: [{os}]}}\n---\n"
        )
    };
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: w, namespace: shop}\nspec:\n  nodeSelector: {kubernetes.io/os: windows}\n  \
               containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]\n";
    let file = directory.path().join("pools.yaml");
    let codes = |text: String| -> Vec<String> {
        fs::write(&file, text).unwrap();
        let found = findings(&["-f", file.to_str().unwrap()]);
        found
            .iter()
            .map(|one| one["code"].as_str().unwrap().to_owned())
            .collect()
    };
    let both = codes(pool("windows") + &pool("linux") + pod);
    assert!(
        !both.contains(&"NP09".to_owned()) && !both.contains(&"WL03".to_owned()),
        "{both:?}"
    );
    let linux = codes(pool("linux") + pod);
    assert!(linux.contains(&"WL03".to_owned()), "{linux:?}");
}
