//! When do two refusals say the same? Upstream lists some things in the order of a Go map; those orders are taken out.

/// A refusal with everything put in one order that upstream puts in none: alternatives, typo hints, lists of labels.
pub fn in_one_order(message: &str) -> String {
    let message = without_typo_hints(message);
    let mut parts: Vec<String> = message.split("; ").map(unprefixed).map(sorted_labels).collect();
    parts.sort();
    parts.join("; ")
}

/// Of several labels that do not suit, the first to be told carries the prefix; which one that is, is up to chance.
fn unprefixed(part: &str) -> &str {
    part.strip_prefix("incompatible requirements, ").unwrap_or(part)
}

/// A refusal without what chance decides: pods in each domain and the claim's own, which depend on where other pods went,
/// and which of several labels that no node has is named.
pub fn without_counts(message: &str) -> String {
    let part = |part: &str| {
        if part.starts_with("label \"") && part.contains("\" does not have known values") {
            return "label does not have known values".to_owned();
        }
        without_pods(part)
    };
    let parts: Vec<String> = message.split("; ").map(part).collect();
    parts.join("; ")
}

fn without_pods(part: &str) -> String {
    match (part.split_once("(counts = "), part.split_once("podDomains = ")) {
        (Some((before, _)), Some((_, after))) => {
            let domains = after.split(", nodeDomains = ").next().unwrap_or_default();
            format!("{before}(podDomains = {domains}")
        }
        _ => part.to_owned(),
    }
}

/// Which label a typo hint names is up to chance; that there is one is not.
fn without_typo_hints(message: &str) -> String {
    let mut rest = message;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once("(typo of \"") {
        kept.push_str(before);
        kept.push_str("(typo?)");
        rest = after.split_once("\"?)").map_or("", |(_, rest)| rest);
    }
    kept + rest
}

/// `label(s)=[k2 k1]` with its labels sorted.
fn sorted_labels(part: &str) -> String {
    let Some((before, rest)) = part.split_once("(label(s)=[") else {
        return part.to_owned();
    };
    let Some((labels, after)) = rest.split_once(']') else {
        return part.to_owned();
    };
    let mut labels: Vec<&str> = labels.split(' ').collect();
    labels.sort_unstable();
    format!("{before}(label(s)=[{}]{after}", labels.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_that_upstream_leaves_to_chance_are_taken_out() {
        let cases = [
            ("b; a", "a; b"),
            ("incompatible requirements, key b; key a", "key a; key b"),
            (
                "label \"zone\" does not have known values (typo of \"topology.kubernetes.io/zone\"?)",
                "label \"zone\" does not have known values (typo?)",
            ),
            (
                "minValues requirement is not met for label(s) (label(s)=[k2 k1]), requirements=x",
                "minValues requirement is not met for label(s) (label(s)=[k1 k2]), requirements=x",
            ),
        ];
        for (said, meant) in cases {
            assert_eq!(in_one_order(said), meant);
        }
    }

    #[test]
    fn counts_of_pods_elsewhere_can_be_left_out() {
        let said = "x; unsatisfiable topology constraint for spread, key=zone (counts = a: 1, podDomains = zone Exists, nodeDomains = zone In [a]";
        let meant = "x; unsatisfiable topology constraint for spread, key=zone (podDomains = zone Exists";
        assert_eq!(without_counts(said), meant);
    }

    #[test]
    fn which_of_several_unknown_labels_is_named_can_be_left_out() {
        let said = |label: &str| format!("label {label:?} does not have known values; no instance type met");
        assert_eq!(without_counts(&said("team")), without_counts(&said("env")));
        assert_ne!(without_counts(&said("team")), without_counts("no instance type met"));
    }
}
