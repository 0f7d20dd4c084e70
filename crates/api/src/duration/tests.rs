//! Are durations read and written as Go does?

use super::*;

#[test]
fn durations_are_read_and_printed_as_go_does() {
    let cases = [
        ("0", "0s"),
        ("0s", "0s"),
        ("-0", "0s"),
        ("+5s", "5s"),
        ("60m", "1h0m0s"),
        ("720h", "720h0m0s"),
        ("1h30m", "1h30m0s"),
        ("30m1h", "1h30m0s"),
        ("90s", "1m30s"),
        ("1.5h", "1h30m0s"),
        (".5s", "500ms"),
        ("1.s", "1s"),
        ("1500ms", "1.5s"),
        ("1us", "1\u{b5}s"),
        ("1\u{b5}s", "1\u{b5}s"),
        ("1\u{3bc}s", "1\u{b5}s"),
        ("1500ns", "1.5\u{b5}s"),
        ("999ns", "999ns"),
        ("-1m5s", "-1m5s"),
        ("0.3333333333333333333h", "20m0s"),
        ("0.100000000000000000000h", "6m0s"),
        ("9223372036854775807ns", "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
    ];
    for (text, printed) in cases {
        assert_eq!(
            text.parse::<Duration>().map(|d| d.to_string()),
            Ok(printed.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn texts_go_refuses_are_refused_with_gos_words() {
    let cases = [
        ("", r#"time: invalid duration """#),
        ("Never", r#"time: invalid duration "Never""#),
        ("-", r#"time: invalid duration "-""#),
        ("s", r#"time: invalid duration "s""#),
        (".s", r#"time: invalid duration ".s""#),
        ("3", r#"time: missing unit in duration "3""#),
        ("1h3", r#"time: missing unit in duration "1h3""#),
        ("3d", r#"time: unknown unit "d" in duration "3d""#),
        ("1h 3m", r#"time: unknown unit "h " in duration "1h 3m""#),
        ("1\u{b5}", r#"time: unknown unit "\xc2\xb5" in duration "1\xc2\xb5""#),
        ("1\"\\", r#"time: unknown unit "\"\\" in duration "1\"\\""#),
        (
            "99999999999999999999.5d",
            r#"time: invalid duration "99999999999999999999.5d""#,
        ),
        ("3000000h", r#"time: invalid duration "3000000h""#),
        (
            "9223372036854775808ns",
            r#"time: invalid duration "9223372036854775808ns""#,
        ),
        (
            "-9223372036854775809ns",
            r#"time: invalid duration "-9223372036854775809ns""#,
        ),
    ];
    for (text, message) in cases {
        assert_eq!(
            text.parse::<Duration>().map_err(|e| e.to_string()),
            Err(message.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn a_nillable_duration_is_written_back_in_its_own_words() {
    let cases = [
        ("60m", Some(3_600)),
        ("1h0m0s", Some(3_600)),
        ("0s", Some(0)),
        ("Never", None),
    ];
    for (text, seconds) in cases {
        let read: NillableDuration = serde_json::from_value(text.into()).unwrap();
        assert_eq!(read.span(), seconds.map(Duration::from_secs), "{text}");
        assert_eq!(serde_json::to_value(&read).unwrap(), text);
    }
}

#[test]
fn a_nillable_duration_made_from_a_span_is_written_in_gos_form() {
    assert_eq!(NillableDuration::from(Duration::from_secs(3_600)).to_string(), "1h0m0s");
}

#[test]
fn never_is_spelled_exactly_so() {
    assert!("never".parse::<NillableDuration>().is_err());
    assert!("".parse::<NillableDuration>().is_err());
}
