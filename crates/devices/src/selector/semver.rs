//! Semantic versions as Kubernetes reads and orders them.

use std::cmp::Ordering;

/// A semantic version; build metadata does not take part in the order and is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) major: u64,
    pub(super) minor: u64,
    pub(super) patch: u64,
    pre: Vec<Identifier>,
}

/// One part of a pre-release; numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl Version {
    /// Reads a version strictly: three numbers without leading zeros, then pre-release and build.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let major = number(parts.next()?)?;
        let minor = number(parts.next()?)?;
        let rest = parts.next()?;
        let (rest, build) = split(rest, '+');
        let (patch, pre) = split(rest, '-');
        if !build.is_none_or(|build| build.split('.').all(is_identifier)) {
            return None;
        }
        let pre = pre.map(|pre| pre.split('.').map(identifier).collect::<Option<Vec<_>>>());
        let pre = pre.map_or(Some(Vec::new()), |pre| pre)?;
        let patch = number(patch)?;
        Some(Self {
            major,
            minor,
            patch,
            pre,
        })
    }

    /// Reads a version leniently: a leading `v` and leading zeros are dropped, missing numbers are zero.
    pub(super) fn parse_normalized(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeros).collect();
        if parts.len() < 3 {
            // A suffix is only understood behind three numbers.
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return None;
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self)
            .cmp(&numbers(other))
            // A pre-release comes before its release.
            .then_with(|| self.pre.is_empty().cmp(&other.pre.is_empty()))
            .then_with(|| self.pre.cmp(&other.pre))
    }
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at)
        .map_or((text, None), |(before, after)| (before, Some(after)))
}

fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let has_leading_zero = text.len() > 1 && text.starts_with('0');
    (is_number && !has_leading_zero).then(|| text.parse().ok()).flatten()
}

fn identifier(text: &str) -> Option<Identifier> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return number(text).map(Identifier::Number);
    }
    is_identifier(text).then(|| Identifier::Word(text.to_owned()))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn without_leading_zeros(part: &str) -> String {
    let rest = part.trim_start_matches('0');
    if part.len() < 2 {
        part.to_owned()
    } else if rest.starts_with(|first: char| first.is_ascii_digit()) {
        rest.to_owned()
    } else {
        format!("0{rest}")
    }
}
