//! What is handed out beside the program fits it: Grafana boards show metrics there are, k9s asks commands there are.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Families by name, with their labels; none where the manual has a word for a set of them.
fn families() -> BTreeMap<String, Option<BTreeSet<String>>> {
    let manual = fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let rows = manual.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let quoted = |cell: &str| {
            cell.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect::<BTreeSet<_>>()
        };
        let labels = (!cells[3].contains('*')).then(|| quoted(cells[3]));
        (cells[1].trim_matches('`').to_owned(), labels)
    })
    .collect()
}

/// Every expression of every panel and variable of a board.
fn expressions(board: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![board];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("expr").and_then(Value::as_str).map(str::to_owned));
                open.extend(fields.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}

/// Names of metrics and of labels in an expression.
fn names(expression: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut metrics, mut labels) = (BTreeSet::new(), BTreeSet::new());
    let mut text = String::new();
    let (mut is_quoted, mut depth) = (false, 0_u32);
    let mut within = String::new();
    for sign in expression.chars() {
        match sign {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                text.push_str("  ");
            }
            _ if depth > 0 => within.push(sign),
            _ => text.push(sign),
        }
        if depth == 0 && !within.is_empty() {
            let keys = within.split(',').filter_map(|part| part.split(['=', '!', '~']).next());
            labels.extend(keys.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()));
            within.clear();
        }
    }
    // Times are in square brackets, labels after by.
    let mut rest = text.as_str();
    let mut bare = String::new();
    while let Some(at) = rest.find('[') {
        bare.push_str(&rest[..at]);
        rest = rest[at..].split_once(']').map_or("", |(_, after)| after);
    }
    bare.push_str(rest);
    while let Some(at) = bare.find(" by (") {
        let end = at + bare[at..].find(')').unwrap();
        labels.extend(bare[at + 5..end].split(',').map(|label| label.trim().to_owned()));
        bare.replace_range(at..=end, " ");
    }
    let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let words = bare.split(|sign| !is_name(sign)).filter(|word| word.contains('_'));
    let functions = ["histogram_quantile"];
    metrics.extend(words.filter(|word| !functions.contains(word)).map(str::to_owned));
    (metrics, labels)
}

#[test]
fn every_expression_of_every_board_is_about_metrics_and_labels_there_are() {
    let families = families();
    let boards: Vec<PathBuf> = fs::read_dir(root().join("deploy/grafana"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    assert!(boards.len() >= 3, "{boards:?}");
    for path in boards {
        let board: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let expressions = expressions(&board);
        assert!(expressions.len() >= 10, "{}", path.display());
        for expression in expressions {
            let (metrics, labels) = names(&expression);
            assert!(!metrics.is_empty(), "{expression}");
            let mut known: BTreeSet<String> = ["le", "quantile", "pod"].map(str::to_owned).into();
            let mut is_open = false;
            for metric in &metrics {
                let bare = ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|end| metric.strip_suffix(end));
                let family = families.get(metric).or_else(|| families.get(bare?));
                let family = family.unwrap_or_else(|| panic!("{}: no metric {metric} in {expression}", path.display()));
                assert!(!metric.starts_with("dovetail_"), "upstream has no {metric}");
                match family {
                    Some(labels) => known.extend(labels.iter().cloned()),
                    None => is_open = true,
                }
            }
            let unknown = labels.iter().find(|label| !is_open && !known.contains(*label));
            assert_eq!(unknown, None, "{}: {expression}", path.display());
        }
    }
}

#[test]
fn names_are_told_from_functions_labels_and_times() {
    let expression =
        r#"histogram_quantile(0.9, sum by (le, a) (rate(x_y_bucket{b="c_d", e=~"$f"}[$__rate_interval]))) / on_y"#;
    let (metrics, labels) = names(expression);
    assert_eq!(metrics.into_iter().collect::<Vec<_>>(), ["on_y", "x_y_bucket"]);
    assert_eq!(labels.into_iter().collect::<Vec<_>>(), ["a", "b", "e", "le"]);
}

#[test]
fn every_key_for_k9s_is_a_command_this_program_takes() {
    let text = fs::read_to_string(root().join("deploy/k9s/plugins.yaml")).unwrap();
    let file: Value = serde_saphyr::from_str(&text).unwrap();
    let plugins = file["plugins"].as_object().unwrap();
    let mut keys = BTreeSet::new();
    for (name, plugin) in plugins {
        for field in ["shortCut", "description", "command"] {
            assert!(plugin[field].is_string(), "{name} has no {field}");
        }
        assert!(
            plugin["scopes"].as_array().is_some_and(|scopes| !scopes.is_empty()),
            "{name}"
        );
        keys.insert(plugin["shortCut"].as_str().unwrap());
        let line = plugin["args"][1].as_str().unwrap();
        let words = line.split(" 2>&1").next().unwrap().split(' ').skip(1);
        let given = words.map(|word| if word.contains('$') { "x" } else { word });
        let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
            .args(given)
            .arg("--help")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {line}: {said}");
    }
    assert_eq!(keys.into_iter().collect::<Vec<_>>(), ["Shift-P", "Shift-W", "Shift-X"]);
}
