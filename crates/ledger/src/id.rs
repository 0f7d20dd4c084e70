//! By what is a decision known? Twelve hexadecimal digits made of its action and its targets.

use std::{fmt, str::FromStr};

use model::digest::Digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The identity of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

/// Digits of an id.
const DIGITS: usize = 12;
/// Fewer digits name too many decisions.
const LEAST: usize = 4;

/// A text that is no id and no beginning of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no decision's id: write 4 to 12 hexadecimal digits")]
pub struct NotAnId(pub String);

impl Id {
    /// The id of doing something to somebody.
    pub fn of<'a>(action: &str, targets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut digest = Digest::default();
        digest.text(action);
        for target in targets {
            digest.text(target);
        }
        Self(digest.finish() >> 16)
    }

    /// Its first digits.
    pub fn short(self, digits: usize) -> String {
        let text = self.to_string();
        text.get(..digits.clamp(LEAST, DIGITS)).unwrap_or(&text).to_owned()
    }

    /// How many digits tell it from another.
    fn shared_with(self, other: Self) -> usize {
        let bits = (self.0 ^ other.0).leading_zeros().saturating_sub(16);
        usize::try_from(bits / 4).unwrap_or(DIGITS)
    }

    /// The fewest digits, at least four, that tell each of these from all others.
    pub fn digits_needed(ids: impl IntoIterator<Item = Self>) -> usize {
        let mut ids: Vec<Self> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        let neighbours = ids.iter().zip(ids.iter().skip(1));
        let needed = neighbours.map(|(one, other)| one.shared_with(*other) + 1);
        needed.max().unwrap_or(LEAST).clamp(LEAST, DIGITS)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:0DIGITS$x}", self.0))
    }
}

impl FromStr for Id {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let prefix: Prefix = text.parse()?;
        if text.len() == DIGITS {
            Ok(prefix.from)
        } else {
            Err(NotAnId(text.to_owned()))
        }
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// The first digits of an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// The first id that begins so.
    pub(crate) from: Id,
    /// The last.
    pub(crate) to: Id,
}

impl Prefix {
    /// Whether a text could be meant as an id at all.
    pub fn is_meant(text: &str) -> bool {
        text.parse::<Self>().is_ok()
    }
}

impl Prefix {
    /// Whether an id begins so.
    pub fn holds(&self, id: Id) -> bool {
        (self.from..=self.to).contains(&id)
    }
}

impl FromStr for Prefix {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let wrong = || NotAnId(text.to_owned());
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || !(LEAST..=DIGITS).contains(&text.len()) {
            return Err(wrong());
        }
        let number = u64::from_str_radix(text, 16).map_err(|_| wrong())?;
        let open = 4 * (DIGITS - text.len());
        let from = number << open;
        Ok(Self {
            from: Id(from),
            to: Id(from | ((1 << open) - 1)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_twelve_digits_and_reads_back() {
        for targets in [vec![], vec!["a"], vec!["a", "b"]] {
            let id = Id::of("delete", targets);
            let text = id.to_string();
            assert_eq!(text.len(), 12);
            assert_eq!(text.parse(), Ok(id));
            assert_eq!(serde_json::from_str::<Id>(&format!("\"{text}\"")).unwrap(), id);
        }
    }

    #[test]
    fn what_is_done_and_to_whom_make_the_id() {
        let ids = [
            Id::of("delete", ["a"]),
            Id::of("replace", ["a"]),
            Id::of("delete", ["b"]),
            Id::of("delete", ["a", "b"]),
        ];
        for (at, one) in ids.iter().enumerate() {
            assert!(ids.iter().skip(at + 1).all(|other| other != one));
        }
        assert_eq!(Id::of("delete", ["a"]), ids[0]);
    }

    #[test]
    fn four_to_twelve_hexadecimal_digits_may_be_an_id_and_nothing_else() {
        for text in ["6c59", "6C59", "681c9413edfd"] {
            assert!(Prefix::is_meant(text), "{text}");
        }
        for text in ["", "6c5", "6c5g", "681c9413edfd1", "web-1", "+6c5", "-6c59"] {
            assert!(!Prefix::is_meant(text), "{text}");
        }
    }

    #[test]
    fn ids_are_shown_as_short_as_tells_them_apart() {
        let ids = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Id>>();
        assert_eq!(Id::digits_needed(ids(&["6c5900000000", "7f3a00000000"])), 4);
        assert_eq!(Id::digits_needed(ids(&["6c5900000000", "6c5980000000"])), 5);
        assert_eq!(Id::digits_needed(ids(&["6c5900000000", "6c5900000001"])), 12);
        assert_eq!(Id::digits_needed(ids(&["6c5900000000", "6c5900000000"])), 4);
        assert_eq!(ids(&["6c5980000000"])[0].short(5), "6c598");
    }
}
