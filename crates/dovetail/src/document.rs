//! Documents for people and machines: JSON and YAML text of any serialisable value.

use anyhow::Context;
use serde::Serialize;
use serde_json::Value;

/// Indented JSON with a final newline.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<String> {
    let value = plain(value)?;
    Ok(format!("{}\n", serde_json::to_string_pretty(&value)?))
}

/// Block-style YAML with a final newline.
pub(crate) fn yaml(value: &impl Serialize) -> anyhow::Result<String> {
    // A rule or pattern broken over lines cannot be searched for, so long lines stay long.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let value = plain(value)?;
    serde_saphyr::to_string_with_options(&value, options).context("write YAML")
}

/// The value as JSON, with whole numbers free of a fraction: Kubernetes' types hold every bound as a float.
fn plain(value: &impl Serialize) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(value).context("convert to JSON")?;
    drop_zero_fractions(&mut value);
    Ok(value)
}

fn drop_zero_fractions(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_zero_fractions),
        Value::Object(fields) => fields.values_mut().for_each(drop_zero_fractions),
        Value::Number(number) if number.is_f64() => {
            // Printing is the exact way out of a float: a whole one ends in ".0".
            if let Some(Ok(whole)) = number.to_string().strip_suffix(".0").map(str::parse::<i64>) {
                *number = whole.into();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_lose_their_fraction_and_others_keep_it() {
        assert_eq!(
            plain(&json!({ "a": [1.0, 0.5, -3.0, 7] })).unwrap(),
            json!({ "a": [1, 0.5, -3, 7] })
        );
    }

    #[test]
    fn yaml_keeps_text_that_looks_like_something_else_as_text() {
        let texts = json!([
            "True",
            "10%",
            "0s",
            "!has(self.x)",
            "a: b",
            "# no comment",
            "",
            "1.5",
            "null",
            "'q' \"d\"",
            "@daily"
        ]);
        let written = yaml(&texts).unwrap();
        assert_eq!(serde_saphyr::from_str::<Value>(&written).unwrap(), texts, "{written}");
    }

    #[test]
    fn yaml_never_breaks_a_long_line() {
        let rule = "self.all(x, x == 'value') || ".repeat(40);
        assert_eq!(yaml(&json!({ "rule": rule.trim_end() })).unwrap().lines().count(), 1);
    }
}
