//! How does a case write a value that is too large to write out? `{$list: 101, of: …}` and its siblings.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

/// `value` with every `$list`, `$map` and `$chars` in it built; `{i}` inside counts from zero.
pub(super) fn build(value: &Value) -> Result<Value> {
    numbered(value, None)
}

fn numbered(value: &Value, number: Option<usize>) -> Result<Value> {
    match value {
        Value::Object(map) => match map.keys().find(|key| key.starts_with('$')).map(String::as_str) {
            Some("$list") => list(map),
            Some("$map") => entries(map),
            Some("$chars") => chars(map),
            Some(word) => bail!("{word} is not one of $list, $map, $chars"),
            None => map
                .iter()
                .map(|(k, v)| Ok((count(k, number), numbered(v, number)?)))
                .collect::<Result<Value>>(),
        },
        Value::Array(items) => items.iter().map(|item| numbered(item, number)).collect(),
        Value::String(text) => Ok(Value::String(count(text, number))),
        other => Ok(other.clone()),
    }
}

fn count(text: &str, number: Option<usize>) -> String {
    number.map_or_else(|| text.to_owned(), |number| text.replace("{i}", &number.to_string()))
}

fn list(map: &Map<String, Value>) -> Result<Value> {
    let of = map.get("of").context("$list needs `of`")?;
    (0..size(map, "$list")?)
        .map(|number| numbered(of, Some(number)))
        .collect()
}

fn entries(map: &Map<String, Value>) -> Result<Value> {
    let (key, value) = map
        .get("key")
        .zip(map.get("value"))
        .context("$map needs `key` and `value`")?;
    let entry = |number| match numbered(key, Some(number))? {
        Value::String(key) => Ok((key, numbered(value, Some(number))?)),
        other => bail!("a key of $map is a string, not {other}"),
    };
    (0..size(map, "$map")?).map(entry).collect()
}

fn chars(map: &Map<String, Value>) -> Result<Value> {
    let of = map
        .get("of")
        .map_or(Some("a"), Value::as_str)
        .context("`of` of $chars is a string")?;
    Ok(Value::String(of.chars().cycle().take(size(map, "$chars")?).collect()))
}

fn size(map: &Map<String, Value>, word: &str) -> Result<usize> {
    let size = map
        .get(word)
        .and_then(Value::as_u64)
        .with_context(|| format!("{word} takes a number"))?;
    Ok(usize::try_from(size)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_word_builds_its_value() {
        for (written, built) in [
            (
                json!({"$list": 2, "of": {"key": "k{i}"}}),
                json!([{"key": "k0"}, {"key": "k1"}]),
            ),
            (
                json!({"$map": 2, "key": "k{i}", "value": "v"}),
                json!({"k0": "v", "k1": "v"}),
            ),
            (json!({"$map": 1, "key": {"$chars": 3}, "value": 1}), json!({"aaa": 1})),
            (json!({"$chars": 5, "of": "ab"}), json!("ababa")),
            (json!({"plain": ["{i}"]}), json!({"plain": ["{i}"]})),
        ] {
            assert_eq!(build(&written).unwrap(), built);
        }
    }

    #[test]
    fn unknown_word_is_named() {
        assert_eq!(
            build(&json!({"$repeat": 2})).unwrap_err().to_string(),
            "$repeat is not one of $list, $map, $chars"
        );
    }
}
