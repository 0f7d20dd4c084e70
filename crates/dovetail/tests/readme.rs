//! The commands of README.md that need nothing but the binary: they run, and answer what the page shows.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{fs, path::Path, process::Command};

/// A command of a `console` block, and the lines shown under it.
struct Example {
    command: String,
    shown: String,
}

fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut is_console = false;
    for line in page.lines() {
        match line.strip_prefix("$ ") {
            _ if line.starts_with("```") => is_console = line == "```console",
            Some(command) if is_console => examples.push(Example {
                command: command.split('#').next().unwrap_or_default().trim().to_owned(),
                shown: String::new(),
            }),
            None if is_console => {
                let example = examples.last_mut().unwrap();
                example.shown.push_str(line);
                example.shown.push('\n');
            }
            _ => {}
        }
    }
    examples
}

#[test]
fn the_commands_of_the_readme_answer_what_it_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("README.md")).unwrap();
    let examples = examples(&page);
    let ours = examples
        .iter()
        .filter_map(|example| Some((example, example.command.strip_prefix("cargo run -- ")?)))
        // A demo goes on until somebody ends it.
        .filter(|(_, arguments)| !arguments.starts_with("demo"));
    let mut count = 0;
    for (example, arguments) in ours {
        // A redirection belongs to the shell.
        let arguments = arguments.split('>').next().unwrap_or_default().split_whitespace();
        let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
            .current_dir(&root)
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}: {}",
            example.command,
            String::from_utf8_lossy(&output.stderr)
        );
        let answer = String::from_utf8(output.stdout).unwrap();
        if !example.shown.is_empty() {
            assert_eq!(
                answer, example.shown,
                "README.md shows another answer to: {}",
                example.command
            );
        }
        count += 1;
    }
    assert!(count >= 4, "only {count} commands found in README.md");
}
