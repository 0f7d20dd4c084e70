//! Which object is meant by a name as people type it: in full, in part, or nearly.

/// What a name comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<T> {
    /// This one.
    One(T),
    /// Several begin like it.
    Several(Vec<T>),
    /// None; the nearest name, where one is near.
    None(Option<T>),
}

/// The name that is meant: exactly this one, or the only one that begins so. `names` are sorted.
pub fn nearest<'a>(wanted: &str, names: &[&'a str]) -> Found<&'a str> {
    if let Some(exact) = names.iter().find(|name| **name == wanted) {
        return Found::One(exact);
    }
    let begins: Vec<&str> = names.iter().copied().filter(|name| name.starts_with(wanted)).collect();
    match begins.as_slice() {
        [only] => Found::One(only),
        [] => Found::None(closest(wanted, names)),
        _ => Found::Several(begins),
    }
}

/// The name that takes the fewest letters to change, if that is a third of them at most.
fn closest<'a>(wanted: &str, names: &[&'a str]) -> Option<&'a str> {
    let most = wanted.chars().count().max(3) / 3;
    let contains = names.iter().find(|name| name.contains(wanted)).copied();
    let by_distance = || {
        let distances = names.iter().map(|name| (distance(wanted, name), *name));
        distances
            .filter(|(distance, _)| *distance <= most)
            .min()
            .map(|(_, name)| name)
    };
    contains.or_else(by_distance)
}

/// How many letters to add, take away or change.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, letter) in a.chars().enumerate() {
        let mut before = at;
        row[0] = at + 1;
        for (place, other) in b.iter().enumerate() {
            let changed = before + usize::from(letter != *other);
            before = row[place + 1];
            row[place + 1] = changed.min(before + 1).min(row[place] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_full_by_its_beginning_or_by_what_is_near_it() {
        let names = ["batch-spot", "data", "general", "general-arm"];
        assert_eq!(nearest("general", &names), Found::One("general"));
        assert_eq!(nearest("da", &names), Found::One("data"));
        assert_eq!(nearest("gen", &names), Found::Several(vec!["general", "general-arm"]));
        assert_eq!(nearest("genral", &names), Found::None(Some("general")));
        assert_eq!(nearest("spot", &names), Found::None(Some("batch-spot")));
        assert_eq!(nearest("zzzzzz", &names), Found::None(None));
        assert_eq!(nearest("nope", &["done"]), Found::None(None), "two letters of four");
    }
}
