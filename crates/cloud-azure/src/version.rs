//! Versions of Kubernetes, compared as numbers.

/// Major, minor, patch.
pub(crate) type Version = (u64, u64, u64);

/// `1.34.1` of `v1.34.1`, `1.34.1-aks` or `1.34.1+build`.
pub(crate) fn parse(text: &str) -> Option<Version> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let text = text.split(['-', '+']).next()?;
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?))
}

/// The minor version; none where it cannot be read.
pub(crate) fn minor(text: &str) -> Option<u64> {
    parse(text).map(|(_, minor, _)| minor)
}

/// Whether a version is `1.minor` or later. What cannot be read is not.
pub(crate) fn is_at_least(text: &str, minor: u64) -> bool {
    parse(text).is_some_and(|version| version >= (1, minor, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        assert_eq!(parse("v1.34.10-aks+x"), Some((1, 34, 10)));
        assert_eq!(parse("1.34"), Some((1, 34, 0)));
        assert_eq!(parse("latest"), None);
        assert!(is_at_least("1.34.0", 34) && !is_at_least("1.9.9", 34));
    }
}
