//! What is a new claim called? The same when the same claim is asked for twice, by us or by another leader.

use std::fmt::Display;

/// Kubernetes' alphabet for generated names: no vowels, nothing that looks alike.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const LENGTH: usize = 5;
/// Kubernetes cuts what comes before a generated suffix at so many characters.
const LONGEST_BASE: usize = 63 - LENGTH;

/// What a claim's name is made from: its pool and those it is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameSeed(u64);

impl NameSeed {
    /// A seed of texts, in their order.
    pub(crate) fn of(parts: impl IntoIterator<Item = impl Display>) -> Self {
        let mut text = String::new();
        for part in parts {
            text.push_str(&part.to_string());
            text.push('\n');
        }
        Self(mixed(api::hash::string(&text)))
    }

    /// The name for an attempt; attempts count up where a name is taken.
    pub(crate) fn name(self, pool: &str, attempt: u32) -> String {
        let mut left = mixed(self.0.wrapping_add(u64::from(attempt)));
        let mut name = format!("{pool}-");
        name.truncate(longest_prefix(&name));
        for _ in 0..LENGTH {
            let at = usize::try_from(left % 27).unwrap_or(0);
            name.push(char::from(ALPHABET[at]));
            left /= 27;
        }
        name
    }
}

fn longest_prefix(name: &str) -> usize {
    (0..=LONGEST_BASE.min(name.len()))
        .rev()
        .find(|at| name.is_char_boundary(*at))
        .unwrap_or(0)
}

/// Spreads what little two seeds differ in over all bits (the finaliser of SplitMix64).
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn name_is_the_pool_and_five_letters_that_follow_from_the_seed() {
        let seed = NameSeed::of(["pool-uid", "pod-a"]);
        let name = seed.name("general", 0);
        let suffix = name.strip_prefix("general-").unwrap();
        assert_eq!(suffix.len(), 5);
        assert!(suffix.bytes().all(|letter| ALPHABET.contains(&letter)), "{name}");
        assert_eq!(name, NameSeed::of(["pool-uid", "pod-a"]).name("general", 0));
    }

    #[test]
    fn other_pods_and_other_attempts_have_other_names() {
        let seeds = (0..500).map(|pod| NameSeed::of(["uid".to_owned(), pod.to_string()]));
        let names: BTreeSet<String> = seeds
            .flat_map(|seed| (0..2).map(move |attempt| seed.name("p", attempt)))
            .collect();
        assert_eq!(names.len(), 1000);
    }

    #[test]
    fn name_of_a_long_pool_is_cut_to_what_a_label_holds() {
        assert_eq!(NameSeed::of(["x"]).name(&"p".repeat(80), 0).len(), 63);
    }
}
