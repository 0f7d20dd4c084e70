//! Where do two values differ? Each place on its own line, for people.

use std::collections::BTreeSet;

use serde_json::Value;

/// One line for each place where `left` and `right` hold different things; a missing value counts as `null`.
pub fn places(left: &Value, right: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", left, right, &mut lines);
    lines
}

fn compare(at: &str, left: &Value, right: &Value, lines: &mut Vec<String>) {
    match (left, right) {
        (Value::Object(l), Value::Object(r)) => {
            let keys: BTreeSet<_> = l.keys().chain(r.keys()).collect();
            for key in keys {
                let [left, right] = [l, r].map(|map| map.get(key).unwrap_or(&Value::Null));
                compare(&format!("{at}.{key}"), left, right, lines);
            }
        }
        (Value::Array(l), Value::Array(r)) if l.len() == r.len() => {
            for (index, (left, right)) in l.iter().zip(r).enumerate() {
                compare(&format!("{at}[{index}]"), left, right, lines);
            }
        }
        _ if left == right => {}
        _ => lines.push(format!("{}: {left} ≠ {right}", at.trim_start_matches('.'))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_differing_place_is_named_once() {
        let left = json!({"a": {"b": [1, 2], "same": true}, "list": [1]});
        let right = json!({"a": {"b": [1, 3], "same": true, "more": "x"}, "list": []});
        assert_eq!(
            places(&left, &right),
            ["a.b[1]: 2 ≠ 3", "a.more: null ≠ \"x\"", "list: [1] ≠ []"]
        );
    }
}
