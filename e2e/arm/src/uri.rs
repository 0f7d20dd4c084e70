//! How are names and values written in an address?

use std::collections::BTreeMap;

/// The parameters of a query or a form.
pub(crate) fn parameters(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (plain(name), plain(value))
        })
        .collect()
}

/// A text without its escapes.
pub(crate) fn plain(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let code = std::str::from_utf8(&digits)
                    .ok()
                    .and_then(|hex| u8::from_str_radix(hex, 16).ok());
                bytes.push(code.unwrap_or(b'%'));
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A value with escapes where an address needs them.
pub(crate) fn quoted(text: &str) -> String {
    let quote = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(quote).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_reads_the_same() {
        let text = "location eq 'east us' + 5%";
        assert_eq!(plain(&quoted(text)), text);
        assert_eq!(parameters("a=b%20c&d=e+f&%24g")["$g"], "");
    }
}
