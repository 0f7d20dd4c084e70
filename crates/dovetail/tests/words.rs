//! How the program is called: completion, manual pages, as a plugin of kubectl, and words it does not know.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(arguments)
        .output()
        .unwrap()
}

fn shown(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_shell_gets_something_to_complete_with() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = shown(&["completion", shell]);
        assert!(script.contains("doctor") && script.contains("fail-on"), "{shell}");
    }
}

#[test]
fn the_manual_has_a_page_for_the_whole_and_for_each_command() {
    assert!(shown(&["man"]).contains(".TH dovetail 1"));
    let page = shown(&["man", "lint"]);
    assert!(
        page.contains(".TH dovetail-lint 1") && page.contains("fail\\-on"),
        "{page}"
    );
    let directory = tempfile::tempdir().unwrap();
    let paths = shown(&["man", "--directory", directory.path().to_str().unwrap()]);
    assert!(
        paths.lines().count() > 5 && directory.path().join("dovetail-drift.1").exists(),
        "{paths}"
    );
}

#[test]
fn an_unknown_word_is_answered_with_the_nearest_one() {
    let output = run(&["lnt"]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("'lint'"), "{told}");
    let output = run(&["man", "lnt"]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.ends_with("next    lint is the nearest\n"), "{told}");
}

#[test]
fn kubectl_sees_usage_in_its_own_words() {
    let directory = tempfile::tempdir().unwrap();
    let plugin = directory.path().join("kubectl-dovetail");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_dovetail"), &plugin).unwrap();
    let output = Command::new(&plugin).args(["lint", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("Usage: kubectl dovetail lint"), "{help}");
    assert!(shown(&["lint", "--help"]).contains("Usage: dovetail lint"));
}
