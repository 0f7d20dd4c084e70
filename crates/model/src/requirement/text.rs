//! How requirements read in messages; the texts are part of upstream's contract.

use super::{Operator, Requirement, Requirements};
use crate::vocabulary::{KeyId, Vocabulary};

/// Values printed before the rest is only counted.
const SHOWN_VALUES: usize = 5;

impl Requirement {
    /// `key In [a b]`, with bounds and `minValues` behind.
    pub fn text(&self, vocabulary: &Vocabulary) -> String {
        let (key, operator) = (vocabulary.key_name(self.key), self.operator());
        let mut text = match operator {
            Operator::Exists | Operator::DoesNotExist => format!("{key} {operator}"),
            _ => format!("{key} {operator} [{}]", self.value_text(vocabulary)),
        };
        let (least, most) = self.bounds();
        text.extend(least.map(|least| format!(" >={least}")));
        text.extend(most.map(|most| format!(" <={most}")));
        text.extend(self.min_values.map(|count| format!(" minValues {count}")));
        text
    }

    pub(super) fn sorted_values<'a>(&self, vocabulary: &'a Vocabulary) -> impl Iterator<Item = &'a str> {
        let mut values: Vec<_> = self
            .values()
            .map(|value| vocabulary.value_name(self.key, value))
            .collect();
        values.sort_unstable();
        values.into_iter()
    }

    fn value_text(&self, vocabulary: &Vocabulary) -> String {
        let mut shown: Vec<_> = self
            .sorted_values(vocabulary)
            .take(SHOWN_VALUES)
            .map(str::to_owned)
            .collect();
        let hidden = self.values.len().saturating_sub(SHOWN_VALUES);
        if hidden > 0 {
            shown.push(format!("and {hidden} others"));
        }
        shown.join(" ")
    }
}

impl Requirements {
    /// All requirements in alphabetical order; the hostname, a placeholder while planning, is left out.
    pub fn text(&self, vocabulary: &Vocabulary) -> String {
        let shown = self.iter().filter(|requirement| requirement.key() != KeyId::HOSTNAME);
        let mut texts: Vec<_> = shown.map(|requirement| requirement.text(vocabulary)).collect();
        texts.sort_unstable();
        texts.join(", ")
    }
}
