//! Labels and annotations put over others.

use model::object::{Map, Text};

/// One map over another: where both have a key, the second wins.
pub(crate) fn overlaid(base: &Map<Text>, over: &Map<Text>) -> Map<Text> {
    Map::from_pairs(base.iter().chain(over.iter()).cloned().collect())
}

/// A map with one pair more.
pub(crate) fn with_pair(base: &Map<Text>, key: &str, value: &str) -> Map<Text> {
    overlaid(base, &Map::from_pairs(vec![(key.into(), value.into())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_on_top_wins() {
        let base = with_pair(&Map::default(), "b", "1");
        let over = with_pair(&with_pair(&Map::default(), "b", "2"), "a", "3");
        let expected = [("a".into(), "3".into()), ("b".into(), "2".into())];
        assert_eq!(*overlaid(&base, &over), expected);
    }
}
