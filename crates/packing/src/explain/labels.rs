//! Labels and taints as people read them, and which of several names somebody may have meant.

use std::collections::BTreeSet;

use model::{
    instance_type::InstanceType,
    object::Taint,
    requirement::{Requirement, Requirements},
    vocabulary::{KeyId, Vocabulary},
};

/// `key=value:effect`
pub(super) fn taint_text(taint: &Taint) -> String {
    if taint.value.is_empty() {
        format!("{}:{}", taint.key, taint.effect)
    } else {
        format!("{}={}:{}", taint.key, taint.value, taint.effect)
    }
}

/// One requirement as a set.
pub(super) fn only(requirement: &Requirement) -> Requirements {
    let mut one = Requirements::default();
    one.replace(requirement.clone());
    one
}

/// The values a requirement asks for by name; none for those it excludes.
pub(super) fn wanted(requirement: &Requirement, vocabulary: &Vocabulary) -> Vec<String> {
    if requirement.is_complement() {
        return Vec::new();
    }
    let values = requirement.values();
    let names: BTreeSet<_> = values
        .map(|value| vocabulary.value_name(requirement.key(), value))
        .collect();
    names.into_iter().map(str::to_owned).collect()
}

/// The values of a label that types offer and a claim still admits; the claim's own when types do not know the label.
pub(super) fn offered<'a>(
    types: impl Iterator<Item = &'a InstanceType>,
    claim: &Requirements,
    key: KeyId,
    vocabulary: &Vocabulary,
) -> Vec<String> {
    let own = claim.get(key);
    let mut names = BTreeSet::new();
    for requirement in types.filter_map(|entry| entry.requirements.get(key)) {
        let values = requirement.values().filter(|_| !requirement.is_complement());
        let admitted = values.filter(|value| own.is_none_or(|own| own.admits(*value, vocabulary)));
        names.extend(admitted.map(|value| vocabulary.value_name(key, value).to_owned()));
    }
    if names.is_empty() {
        return own.map(|own| wanted(own, vocabulary)).unwrap_or_default();
    }
    names.into_iter().collect()
}

/// The name that somebody who wrote `meant` may have wanted to write: few letters differ.
pub(super) fn nearest<'a>(meant: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (meant.chars().count() / 3).min(3);
    let near = names
        .into_iter()
        .map(|name| (distance(&meant.to_lowercase(), &name.to_lowercase()), name));
    near.filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, name)| name)
}

/// How many letters must be put in, left out, replaced or swapped with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for (at, letter) in from.iter().enumerate() {
        let mut row = vec![at + 1];
        for (column, other) in to.iter().enumerate() {
            let replaced = rows[at][column] + usize::from(letter != other);
            let mut least = replaced.min(rows[at][column + 1] + 1).min(row[column] + 1);
            if at > 0 && column > 0 && *letter == to[column - 1] && from[at - 1] == *other {
                least = least.min(rows[at - 1][column - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_near_when_few_letters_differ() {
        let cases = [
            ("arm46", vec!["amd64", "arm64"], Some("arm64")),
            ("ARM64", vec!["amd64", "arm64"], Some("arm64")),
            ("us-east-1x", vec!["us-east-1a", "us-east-1b"], Some("us-east-1a")),
            ("gpu", vec!["amd64", "arm64"], None),
            ("a", vec!["b"], None),
            ("a", vec![], None),
        ];
        for (meant, names, expected) in cases {
            assert_eq!(nearest(meant, names), expected, "{meant}");
        }
    }
}
