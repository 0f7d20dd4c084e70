//! The pages of docs/guide and docs/install answer what they show: their commands are run. `DOVETAIL_WRITE_PAGES=1` writes what they answer.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::{fs, path::Path, process::Command};

/// What a command of a page answers: both streams, as a terminal shows them.
fn answer(root: &Path, command: &str) -> String {
    let words = command.split_whitespace().map(|word| word.trim_matches('\''));
    let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .current_dir(root)
        .args(words)
        .output()
        .unwrap();
    assert_ne!(output.status.code(), Some(2), "{command}: {output:?}");
    // How long reading took is another number every time.
    let told = String::from_utf8(output.stderr).unwrap();
    let told = told.lines().filter(|line| !line.starts_with("source   "));
    let told: String = told.map(|line| format!("{line}\n")).collect();
    format!("{}{told}", String::from_utf8(output.stdout).unwrap())
}

/// The page with the answers of its commands as they are now. A line `…` stands for lines that are left out.
fn refreshed(root: &Path, page: &str) -> String {
    let mut text = String::new();
    let mut is_answer = false;
    for line in page.lines() {
        if let Some(command) = line.strip_prefix("$ dovetail ") {
            text.push_str(line);
            text.push('\n');
            let plain = command.split('#').next().unwrap_or_default().trim();
            text.push_str(&answer(root, plain));
            is_answer = true;
            continue;
        }
        is_answer &= !line.starts_with("```");
        if !is_answer {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[test]
fn the_guide_shows_what_the_commands_answer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let is_asked = std::env::var("DOVETAIL_WRITE_PAGES").is_ok();
    let pages = [
        "lint.md",
        "nodepool-not-ready.md",
        "consolidation-too-aggressive.md",
        "spot-not-handled.md",
        "nodes-do-not-go.md",
        "drift.md",
        "../install/aws.md",
        "nodes-not-provisioning.md",
        "costs.md",
    ];
    let mut stale = Vec::new();
    for name in pages {
        let path = root.join("docs/guide").join(name);
        let page = fs::read_to_string(&path).unwrap();
        let fresh = refreshed(&root, &page);
        if is_asked {
            fs::write(&path, &fresh).unwrap();
        } else if page != fresh {
            stale.push(format!("{name} should read:\n{fresh}"));
        }
    }
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}
