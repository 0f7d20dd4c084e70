//! Which operating system family an `EC2NodeClass` boots: said outright, or implied by an AMI alias.

use super::EC2NodeClass;
use crate::open_enum::open_enum;

open_enum! {
    /// The family of machine images, which decides the format of user data and the default disks.
    AmiFamily {
        /// Amazon Linux 2.
        AL2 = "AL2",
        /// Amazon Linux 2023.
        AL2023 = "AL2023",
        /// Bottlerocket.
        Bottlerocket = "Bottlerocket",
        /// User data is passed through untouched.
        Custom = "Custom",
        /// Windows Server 2019.
        Windows2019 = "Windows2019",
        /// Windows Server 2022.
        Windows2022 = "Windows2022",
        /// Windows Server 2025.
        Windows2025 = "Windows2025",
    }
}

impl AmiFamily {
    /// The family an alias names. `Custom` has no published images and hence no alias.
    fn from_alias(name: &str) -> Option<Self> {
        let word = Self::WORDS.iter().find(|word| word.to_lowercase() == name)?;
        Some(Self::from(*word)).filter(|family| *family != Self::Custom)
    }
}

/// A published image line and the version wanted from it, written `family@version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The image line.
    pub family: AmiFamily,
    /// A release of that line, or `latest`.
    pub version: String,
}

impl Alias {
    /// The version that follows every new release.
    pub const LATEST: &str = "latest";

    /// Reads `family@version`; the schema admits no other shape.
    ///
    /// The version is all that follows the first `@`. Upstream ends its process on a second one, which the schema lets
    /// through; here such a version finds no image, and the node class says so in its status.
    fn parse(text: &str) -> Option<Self> {
        let (family, version) = text.split_once('@')?;
        Some(Self {
            family: AmiFamily::from_alias(family)?,
            version: version.to_owned(),
        })
    }
}

impl EC2NodeClass {
    /// The alias among the AMI selector terms, of which validation allows one.
    pub fn alias(&self) -> Option<Alias> {
        self.spec
            .ami_selector_terms
            .iter()
            .find_map(|term| Alias::parse(term.alias.as_deref()?))
    }

    /// The family to boot: `spec.amiFamily`, else that of the alias. Validation makes sure that one of them is there.
    pub fn ami_family(&self) -> AmiFamily {
        self.spec
            .ami_family
            .clone()
            .or_else(|| self.alias().map(|alias| alias.family))
            .unwrap_or(AmiFamily::Custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node_class(family: Option<&str>, alias: Option<&str>) -> EC2NodeClass {
        serde_json::from_value(serde_json::json!({
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "metadata": { "name": "default" },
            "spec": {
                "subnetSelectorTerms": [],
                "securityGroupSelectorTerms": [],
                "amiSelectorTerms": [{ "alias": alias }],
                "amiFamily": family,
            },
        }))
        .unwrap()
    }

    #[test]
    fn stated_family_wins_over_the_alias_and_custom_is_the_last_resort() {
        let cases = [
            (Some("Bottlerocket"), None, AmiFamily::Bottlerocket),
            (Some("Custom"), Some("al2023@latest"), AmiFamily::Custom),
            (None, Some("al2@v20240807"), AmiFamily::AL2),
            (None, Some("al2023@latest"), AmiFamily::AL2023),
            (None, Some("bottlerocket@v1.20.0"), AmiFamily::Bottlerocket),
            (None, Some("windows2019@latest"), AmiFamily::Windows2019),
            (None, Some("windows2022@latest"), AmiFamily::Windows2022),
            (None, Some("windows2025@latest"), AmiFamily::Windows2025),
            (None, Some("custom@latest"), AmiFamily::Custom),
            (None, None, AmiFamily::Custom),
        ];
        for (family, alias, expected) in cases {
            assert_eq!(node_class(family, alias).ami_family(), expected, "{family:?} {alias:?}");
        }
    }

    #[test]
    fn alias_version_is_all_that_follows_the_first_at_sign() {
        let alias = |text| node_class(None, Some(text)).alias();
        let expected = |version: &str| {
            Some(Alias {
                family: AmiFamily::AL2023,
                version: version.to_owned(),
            })
        };
        assert_eq!(alias("al2023@v20240807"), expected("v20240807"));
        assert_eq!(alias("al2023@v1@x"), expected("v1@x"));
        assert_eq!(alias("al2023"), None);
        assert_eq!(alias("AL2023@latest"), None);
    }
}
