//! Leaves out of an indented text what no kind reads: of a pod as kubectl prints it two thirds are indentation, and half of
//! the rest is environment, mounts, probes and the like.
//!
//! It goes by lines, without looking what stands in them. A text that is laid out otherwise than it looks comes out with
//! brackets left over, which is no JSON, and is then read the slow way, as everything unusual is.

/// Fields that are lists or objects and that nothing here reads, wherever they stand. A node's `images` are not among them:
/// node classes have such a field, too, and are kept as they are written.
const UNREAD: [&[u8]; 16] = [
    b"args",
    b"command",
    b"env",
    b"envFrom",
    b"hostIPs",
    b"lastState",
    b"lifecycle",
    b"livenessProbe",
    b"managedFields",
    b"podIPs",
    b"projected",
    b"readinessProbe",
    b"securityContext",
    b"startupProbe",
    b"state",
    b"volumeMounts",
];

/// Adds objects to a text, without their indentation and with `null` for what nothing reads.
pub(super) fn copy(objects: &[u8], thin: &mut Vec<u8>) {
    let mut rest = objects;
    while !rest.is_empty() {
        let (indent, line, after) = line(rest);
        rest = after;
        match opened(line).and_then(|(key, close)| Some((key, behind(indent, close, after)?))) {
            Some((key, behind)) => {
                thin.extend_from_slice(key);
                thin.extend_from_slice(b"null");
                rest = behind;
            }
            None => thin.extend_from_slice(line),
        }
    }
}

/// The blanks that a line begins with, the line with its end, and what follows.
fn line(text: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let (indent, rest) = text.split_at(blanks(text));
    let (line, after) = rest.split_at(line_end(rest));
    (indent, line, after)
}

/// How many blanks a text begins with. Lines are short and many, so both of these look at eight bytes at a time themselves.
fn blanks(text: &[u8]) -> usize {
    let eight = text.chunks_exact(8).take_while(|bytes| *bytes == b"        ");
    let at = 8 * eight.count();
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| **byte == b' ').count()
}

/// Where the first line of a text ends, its line break included.
fn line_end(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let (words, _) = text.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        // The lowest byte that is zero here is the first that is a line break.
        let word = u64::from_le_bytes(*word) ^ (ONES * u64::from(b'\n'));
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros != 0 {
            return 8 * at + zeros.trailing_zeros() as usize / 8 + 1;
        }
    }
    let rest = text.get(8 * words.len()..).unwrap_or_default();
    let found = rest.iter().position(|byte| *byte == b'\n');
    found.map_or(text.len(), |at| 8 * words.len() + at + 1)
}

/// A key with its colon, and what closes its value, if that begins with this line and nothing reads it.
fn opened(line: &[u8]) -> Option<(&[u8], u8)> {
    let (open, key) = line.strip_suffix(b"\n")?.split_last()?;
    let close = match open {
        b'[' => b']',
        b'{' => b'}',
        _ => return None,
    };
    let name = key.strip_prefix(b"\"")?.strip_suffix(b"\": ")?;
    UNREAD.contains(&name).then_some((key, close))
}

/// What stands behind the bracket that closes a value: the first one at its indentation.
fn behind<'t>(indent: &[u8], close: u8, text: &'t [u8]) -> Option<&'t [u8]> {
    let mut rest = text;
    loop {
        if let Some(after) = rest.strip_prefix(indent)
            && let Some((first, behind)) = after.split_first()
            && *first == close
        {
            return Some(behind);
        }
        rest = rest.get(line_end(rest)..).filter(|rest| !rest.is_empty())?;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn thinned(text: &str) -> String {
        let mut thin = Vec::new();
        copy(text.as_bytes(), &mut thin);
        String::from_utf8(thin).unwrap()
    }

    fn printed(value: &Value) -> String {
        serde_json::to_string_pretty(value).unwrap()
    }

    #[test]
    fn lines_and_blanks_end_where_they_end_wherever_that_is() {
        for at in 0..40 {
            let text = format!("{}\u{8a}\n{}", "x".repeat(at), "\n".repeat(9));
            assert_eq!(line_end(text.as_bytes()), at + 3, "{at}");
            assert_eq!(line_end("\u{b}".repeat(at).as_bytes()), at, "{at}");
            assert_eq!(blanks(format!("{}x          ", " ".repeat(at)).as_bytes()), at, "{at}");
        }
    }

    #[test]
    fn what_nothing_reads_is_null_and_the_rest_is_as_it_was() {
        let object = json!({
            "kind": "Pod",
            "metadata": {"labels": {"env": "[", "state": "a \"quoted\" {", "args": "x\": ["}, "managedFields": [{"fieldsV1": {}}]},
            "spec": {"containers": [
                {"name": "a", "env": [{"name": "A", "value": "]"}], "resources": {"requests": {"cpu": "1"}}},
                {"args": ["]", "}", "env"], "command": [], "volumeMounts": [{"name": "x"}]},
            ]},
        });
        let thin: Value = serde_json::from_str(&thinned(&printed(&object))).unwrap();
        let mut expected = object;
        expected["metadata"]["managedFields"] = Value::Null;
        expected["spec"]["containers"][0]["env"] = Value::Null;
        expected["spec"]["containers"][1]["args"] = Value::Null;
        expected["spec"]["containers"][1]["volumeMounts"] = Value::Null;
        assert_eq!(thin, expected);
    }

    #[test]
    fn a_text_that_is_not_laid_out_as_it_looks_is_no_json_afterwards() {
        let cases = [
            "{\n\"env\": [\n[\n],\n[]\n],\n\"a\": 1\n}",
            "{\n \"env\": {\n \"a\": {\n },\n \"b\": 1\n }\n}",
            "{\n  \"args\": [\n    \"a",
        ];
        for text in cases {
            assert!(serde_json::from_str::<Value>(&thinned(text)).is_err(), "{text}");
        }
    }
}
