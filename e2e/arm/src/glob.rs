//! Does a name fit a pattern in which a star stands for anything?

/// Case matters not, as for every name in ARM.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_ascii_lowercase(), name.to_ascii_lowercase());
    let Some((head, mut rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut left) = name.strip_prefix(head) else {
        return false;
    };
    while let Some((middle, later)) = rest.split_once('*') {
        let Some(at) = left.find(middle) else {
            return false;
        };
        left = &left[at + middle.len()..];
        rest = later;
    }
    left.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(fits("*", ""));
        assert!(fits("VirtualMachines_*", "virtualmachines_Get"));
        assert!(fits("a*b*c", "a-b-b-c"));
        assert!(fits("Standard_D*_v5", "Standard_D4s_v5"));
        assert!(!fits("Standard_D*_v5", "Standard_D4s_v4"));
        assert!(!fits("a", "ab"));
        assert!(!fits("ab*b", "ab"));
    }
}
