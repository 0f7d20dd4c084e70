//! Which sets of labels may a selector pick, without asking each of them?

use model::object::{LabelSelector, Labels, Text};
use rustc_hash::FxHashMap;

/// Sets of labels by the labels in them.
#[derive(Debug, Default)]
pub(crate) struct LabelIndex {
    len: u32,
    by_label: FxHashMap<(Text, Text), Vec<u32>>,
}

impl LabelIndex {
    pub(crate) fn new<'a>(sets: impl IntoIterator<Item = &'a Labels>) -> Self {
        let mut index = Self::default();
        for labels in sets {
            for (key, value) in labels {
                let at = index.by_label.entry((key.clone(), value.clone())).or_default();
                at.push(index.len);
            }
            index.len += 1;
        }
        index
    }

    /// Positions of the sets that have one label the selector insists on, the rarest; all when it insists on none. In
    /// order; the selector must still be asked.
    pub(crate) fn candidates(&self, selector: Option<&LabelSelector>) -> impl Iterator<Item = u32> {
        let rarest = selector.and_then(|selector| {
            let lists = demanded(selector).map(|label| self.by_label.get(&label).map_or(&[][..], |list| &list[..]));
            lists.min_by_key(|list| list.len())
        });
        let all = rarest.map_or(0..self.len, |_| 0..0);
        rarest.unwrap_or_default().iter().copied().chain(all)
    }
}

/// Labels without which a selector picks nothing.
fn demanded(selector: &LabelSelector) -> impl Iterator<Item = (Text, Text)> {
    let exact = selector
        .match_labels
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()));
    let only = selector
        .match_expressions
        .iter()
        .filter_map(|expression| match &expression.values[..] {
            [value] if *expression.operator == *"In" => Some((expression.key.clone(), value.clone())),
            _ => None,
        });
    exact.chain(only)
}

#[cfg(test)]
mod tests {
    use model::object::LabelSelectorRequirement;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs
            .iter()
            .map(|(key, value)| (Text::from(*key), Text::from(*value)))
            .collect()
    }

    fn asked(index: &LabelIndex, selector: &LabelSelector) -> Vec<u32> {
        index.candidates(Some(selector)).collect()
    }

    #[test]
    fn a_selector_is_asked_only_about_sets_with_the_rarest_label_it_insists_on() {
        let sets = [
            labels(&[("app", "a"), ("tier", "front")]),
            labels(&[("app", "b"), ("tier", "front")]),
            labels(&[("app", "b")]),
        ];
        let index = LabelIndex::new(&sets);
        let exact = LabelSelector {
            match_labels: labels(&[("tier", "front"), ("app", "a")]),
            ..LabelSelector::default()
        };
        assert_eq!(asked(&index, &exact), [0]);
        let one_of = |values: &[&str]| LabelSelector {
            match_expressions: vec![LabelSelectorRequirement {
                key: "app".into(),
                operator: "In".into(),
                values: values.iter().map(|value| Text::from(*value)).collect::<Vec<_>>().into(),
            }]
            .into(),
            ..LabelSelector::default()
        };
        assert_eq!(asked(&index, &one_of(&["b"])), [1, 2]);
        assert_eq!(asked(&index, &one_of(&["a", "b"])), [0, 1, 2]);
        assert_eq!(asked(&index, &one_of(&["c"])), [0u32; 0]);
        assert_eq!(index.candidates(None).count(), 3);
    }
}
