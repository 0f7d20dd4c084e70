//! What a label key and a label value may look like, and Kubernetes' words for what is wrong with one.

const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const NAME_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

/// What is wrong with a label key: an optional DNS subdomain and `/`, then a name. Empty if nothing is.
pub fn key_faults(key: &str) -> Vec<String> {
    let parts: Vec<&str> = key.split('/').collect();
    let (mut faults, name) = match parts[..] {
        [name] => (vec![], name),
        [prefix, name] => (prefix_faults(prefix), name),
        _ => {
            return vec![format!(
                "a valid label key {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > NAME_MAX {
        faults.push(format!("name part must be no more than {NAME_MAX} bytes"));
    }
    if !is_name(name) {
        faults.push(format!("name part {NAME}"));
    }
    faults
}

/// What is wrong with a label value. Empty if nothing is.
pub fn value_faults(value: &str) -> Vec<String> {
    let mut faults = vec![];
    if value.len() > NAME_MAX {
        faults.push(format!("must be no more than {NAME_MAX} bytes"));
    }
    if !value.is_empty() && !is_name(value) {
        faults.push(VALUE.to_owned());
    }
    faults
}

fn prefix_faults(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let mut faults = vec![];
    if prefix.len() > SUBDOMAIN_MAX {
        faults.push(format!("prefix part must be no more than {SUBDOMAIN_MAX} bytes"));
    }
    if !prefix.split('.').all(is_dns_label) {
        faults.push(format!("prefix part {SUBDOMAIN}"));
    }
    faults
}

fn is_name(name: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn is_dns_label(label: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = label.as_bytes();
    bytes.first().is_some_and(plain)
        && bytes.last().is_some_and(plain)
        && bytes.iter().all(|byte| plain(byte) || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_keys_and_values_have_no_fault() {
        for key in [
            "team",
            "a",
            "A.b_c-9",
            "example.com/team",
            "a-1.b/X",
            &format!("{}/x", "a".repeat(253)),
        ] {
            assert_eq!(key_faults(key), Vec::<String>::new(), "{key}");
        }
        for value in ["", "a", "v1.2_3-x", &"x".repeat(63)] {
            assert_eq!(value_faults(value), Vec::<String>::new(), "{value}");
        }
    }

    #[test]
    fn malformed_keys_are_told_what_is_wrong() {
        let cases = [
            (
                "",
                vec!["name part must be non-empty".to_owned(), format!("name part {NAME}")],
            ),
            ("-a", vec![format!("name part {NAME}")]),
            ("/a", vec!["prefix part must be non-empty".to_owned()]),
            ("Example.com/a", vec![format!("prefix part {SUBDOMAIN}")]),
            ("example..com/a", vec![format!("prefix part {SUBDOMAIN}")]),
            (
                &"n".repeat(64),
                vec!["name part must be no more than 63 bytes".to_owned()],
            ),
            (
                &format!("{}/a", "p".repeat(254)),
                vec!["prefix part must be no more than 253 bytes".to_owned()],
            ),
        ];
        for (key, faults) in cases {
            assert_eq!(key_faults(key), faults, "{key}");
        }
    }

    #[test]
    fn malformed_values_are_told_what_is_wrong() {
        let long = "v".repeat(64);
        assert_eq!(value_faults(&long), vec!["must be no more than 63 bytes"]);
        for value in ["-", "a b", "x.", "größe"] {
            assert_eq!(value_faults(value), vec![VALUE], "{value}");
        }
    }
}
