//! Prometheus' text format, version 0.0.4: how a number, a name and a sample are written.

use std::fmt::Write;

/// Writes one sample: `name{label="value",…} number`.
pub(super) fn sample<'a>(
    out: &mut String,
    name: &str,
    suffix: &str,
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    value: f64,
) {
    out.push_str(name);
    out.push_str(suffix);
    let mut open = '{';
    for (label, value) in labels {
        out.push(open);
        out.push_str(label);
        out.push_str("=\"");
        escaped(out, value, true);
        out.push('"');
        open = ',';
    }
    if open == ',' {
        out.push('}');
    }
    out.push(' ');
    number(out, value);
    out.push('\n');
}

/// Writes what a family is.
pub(super) fn header(out: &mut String, name: &str, help: &str, kind: &str) {
    out.push_str("# HELP ");
    out.push_str(name);
    out.push(' ');
    escaped(out, help, false);
    out.push_str("\n# TYPE ");
    out.push_str(name);
    out.push(' ');
    out.push_str(kind);
    out.push('\n');
}

fn escaped(out: &mut String, text: &str, quotes: bool) {
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            other => out.push(other),
        }
    }
}

/// Writes a number as Go's shortest form does, so that bounds of buckets read the same as upstream's.
pub(super) fn number(out: &mut String, value: f64) {
    if value.is_nan() {
        return out.push_str("NaN");
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
    }
    let size = value.abs();
    if size == 0.0 || (1e-4..1e6).contains(&size) {
        let _ = write!(out, "{value}");
        return;
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "{digits}e{sign}{:02}", exponent.abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (0.005, "0.005"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (999_999.0, "999999"),
            (1_000_000.0, "1e+06"),
            (2_592_000.0, "2.592e+06"),
            (1.5e-9, "1.5e-09"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ];
        for (value, text) in cases {
            let mut out = String::new();
            number(&mut out, value);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn label_values_and_help_are_escaped() {
        let mut out = String::new();
        header(&mut out, "a", "one\\two\n\"three\"", "gauge");
        sample(&mut out, "a", "", [("x", "q\"\\\n")].into_iter(), 1.0);
        assert_eq!(
            out,
            "# HELP a one\\\\two\\n\"three\"\n# TYPE a gauge\na{x=\"q\\\"\\\\\\n\"} 1\n"
        );
    }
}
