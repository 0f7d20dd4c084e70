//! Which image definitions does a family stand for, and in which order are they preferred?

use api::{
    azure::{AKSNodeClass, ImageFamily},
    image_requirement::ImageRequirement,
    karpenter::Operator,
    labels::{ARCH, azure::SKU_HYPERV_GENERATION},
};

use crate::{class::Class, version};

/// A family with its release, as it follows from the class and from Kubernetes' version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    Ubuntu2004,
    Ubuntu2204,
    Ubuntu2404,
    AzureLinux2,
    AzureLinux3,
}

/// A line of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    arch: &'static str,
    generation: &'static str,
}

/// Where images of a family are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gallery {
    pub(crate) community: &'static str,
    pub(crate) resource_group: &'static str,
    pub(crate) name: &'static str,
}

const UBUNTU: Gallery = Gallery {
    community: "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2",
    resource_group: "AKS-Ubuntu",
    name: "AKSUbuntu",
};
const AZURE_LINUX: Gallery = Gallery {
    community: "AKSAzureLinux-f7c7cda5-1c9a-4bdc-a222-9614c968580b",
    resource_group: "AKS-AzureLinux",
    name: "AKSAzureLinux",
};

const fn amd64(name: &'static str, generation: &'static str) -> Definition {
    Definition {
        name,
        arch: "amd64",
        generation,
    }
}

const fn arm64(name: &'static str) -> Definition {
    Definition {
        name,
        arch: "arm64",
        generation: "2",
    }
}

impl Release {
    /// What a class boots with a version of Kubernetes.
    pub(crate) fn of(class: &AKSNodeClass, kubernetes: &str) -> Self {
        let asked = Class(class);
        match &class.spec.image_family {
            Some(ImageFamily::Ubuntu2204) => Self::Ubuntu2204,
            Some(ImageFamily::Ubuntu2404) => Self::Ubuntu2404,
            Some(ImageFamily::AzureLinux) if version::is_at_least(kubernetes, 32) => Self::AzureLinux3,
            Some(ImageFamily::AzureLinux) => Self::AzureLinux2,
            _ if asked.is_fips() && !asked.is_trusted_launch() => Self::Ubuntu2004,
            _ if asked.is_trusted_launch() => Self::Ubuntu2204,
            _ if version::is_at_least(kubernetes, 34) => Self::Ubuntu2404,
            _ => Self::Ubuntu2204,
        }
    }

    /// As the label `os-sku-effective` has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ubuntu2004 => "Ubuntu2004",
            Self::Ubuntu2204 => "Ubuntu2204",
            Self::Ubuntu2404 => "Ubuntu2404",
            Self::AzureLinux2 => "AzureLinux2",
            Self::AzureLinux3 => "AzureLinux3",
        }
    }

    pub(crate) fn gallery(self) -> Gallery {
        match self {
            Self::AzureLinux2 | Self::AzureLinux3 => AZURE_LINUX,
            _ => UBUNTU,
        }
    }

    /// Its definitions, the preferred first.
    pub(crate) fn definitions(self, is_fips: bool, is_trusted: bool) -> &'static [Definition] {
        match (self, is_fips, is_trusted) {
            (Self::Ubuntu2204, true, true) => const { &[amd64("2204gen2fipsTLcontainerd", "2")] },
            (Self::Ubuntu2204, false, true) => const { &[amd64("2204gen2TLcontainerd", "2")] },
            (Self::Ubuntu2204, false, false) => {
                const {
                    &[
                        amd64("2204gen2containerd", "2"),
                        amd64("2204containerd", "1"),
                        arm64("2204gen2arm64containerd"),
                    ]
                }
            }
            (Self::Ubuntu2404, false, true) => const { &[amd64("2404gen2TLcontainerd", "2")] },
            (Self::Ubuntu2404, false, false) => {
                const {
                    &[
                        amd64("2404gen2containerd", "2"),
                        amd64("2404containerd", "1"),
                        arm64("2404gen2arm64containerd"),
                    ]
                }
            }
            (Self::Ubuntu2004, true, _) => {
                const { &[amd64("2004gen2fipscontainerd", "2"), amd64("2004fipscontainerd", "1")] }
            }
            (Self::AzureLinux2, true, _) => const { &[amd64("V2gen2fips", "2"), amd64("V2fips", "1")] },
            (Self::AzureLinux2, false, true) => const { &[amd64("V2gen2TL", "2")] },
            (Self::AzureLinux2, false, false) => {
                const { &[amd64("V2gen2", "2"), amd64("V2", "1"), arm64("V2gen2arm64")] }
            }
            (Self::AzureLinux3, true, _) => {
                const { &[amd64("V3gen2fips", "2"), amd64("V3fips", "1"), arm64("V3gen2arm64fips")] }
            }
            (Self::AzureLinux3, false, true) => const { &[amd64("V3gen2TL", "2")] },
            (Self::AzureLinux3, false, false) => {
                const { &[amd64("V3gen2", "2"), amd64("V3", "1"), arm64("V3gen2arm64")] }
            }
            (Self::Ubuntu2204 | Self::Ubuntu2404, true, _) | (Self::Ubuntu2004, false, _) => &[],
        }
    }
}

impl Definition {
    /// What a size must have to boot it, by length of the key and then the key.
    pub(crate) fn requirements(self) -> Vec<ImageRequirement> {
        let one = |key: &str, value: &str| ImageRequirement {
            key: key.to_owned(),
            operator: Operator::In,
            values: vec![value.to_owned()],
        };
        let mut all = vec![one(ARCH, self.arch), one(SKU_HYPERV_GENERATION, self.generation)];
        all.sort_by(|a, b| (a.key.len(), &a.key).cmp(&(b.key.len(), &b.key)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(spec: &str) -> AKSNodeClass {
        serde_json::from_str(&format!(
            r#"{{"apiVersion":"karpenter.azure.com/v1beta1","kind":"AKSNodeClass","metadata":{{"name":"c"}},"spec":{spec}}}"#
        ))
        .unwrap()
    }

    #[test]
    fn a_family_follows_kubernetes_and_security() {
        let cases = [
            ("{}", "1.33.2", Release::Ubuntu2204),
            ("{}", "1.34.0", Release::Ubuntu2404),
            (r#"{"imageFamily":"Ubuntu"}"#, "1.34.0", Release::Ubuntu2404),
            (r#"{"imageFamily":"Ubuntu2204"}"#, "1.34.0", Release::Ubuntu2204),
            (r#"{"imageFamily":"Ubuntu2404"}"#, "1.30.0", Release::Ubuntu2404),
            (r#"{"imageFamily":"AzureLinux"}"#, "1.31.9", Release::AzureLinux2),
            (r#"{"imageFamily":"AzureLinux"}"#, "1.32.0", Release::AzureLinux3),
            (
                r#"{"imageFamily":"Ubuntu","fipsMode":"FIPS"}"#,
                "1.34.0",
                Release::Ubuntu2004,
            ),
            (
                r#"{"imageFamily":"Ubuntu","fipsMode":"FIPS","security":{"trustedLaunch":{"vtpm":true}}}"#,
                "1.34.0",
                Release::Ubuntu2204,
            ),
            (
                r#"{"security":{"trustedLaunch":{"secureBoot":true}}}"#,
                "1.34.0",
                Release::Ubuntu2204,
            ),
        ];
        for (spec, version, expected) in cases {
            assert_eq!(Release::of(&class(spec), version), expected, "{spec} {version}");
        }
    }

    #[test]
    fn definitions_come_in_their_order_of_preference() {
        let names = |release: Release, fips, trusted| {
            release
                .definitions(fips, trusted)
                .iter()
                .map(|it| it.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(Release::Ubuntu2404, false, false),
            ["2404gen2containerd", "2404containerd", "2404gen2arm64containerd"]
        );
        assert_eq!(names(Release::Ubuntu2204, true, true), ["2204gen2fipsTLcontainerd"]);
        assert_eq!(
            names(Release::AzureLinux3, true, false),
            ["V3gen2fips", "V3fips", "V3gen2arm64fips"]
        );
        assert_eq!(names(Release::Ubuntu2404, true, false), [""; 0]);
    }

    #[test]
    fn every_release_has_its_images_plain_trusted_and_validated() {
        let names = |release: Release, fips, trusted| {
            let all = release.definitions(fips, trusted).iter();
            all.map(|it| it.name).collect::<Vec<_>>().join(" ")
        };
        let cases = [
            (
                Release::Ubuntu2204,
                false,
                false,
                "2204gen2containerd 2204containerd 2204gen2arm64containerd",
            ),
            (Release::Ubuntu2204, false, true, "2204gen2TLcontainerd"),
            (Release::Ubuntu2204, true, false, ""),
            (Release::Ubuntu2404, false, true, "2404gen2TLcontainerd"),
            (
                Release::Ubuntu2004,
                true,
                false,
                "2004gen2fipscontainerd 2004fipscontainerd",
            ),
            (Release::AzureLinux2, false, false, "V2gen2 V2 V2gen2arm64"),
            (Release::AzureLinux2, false, true, "V2gen2TL"),
            (Release::AzureLinux2, true, false, "V2gen2fips V2fips"),
            (Release::AzureLinux3, false, false, "V3gen2 V3 V3gen2arm64"),
            (Release::AzureLinux3, false, true, "V3gen2TL"),
        ];
        for (release, fips, trusted, expected) in cases {
            assert_eq!(names(release, fips, trusted), expected, "{release:?} {fips} {trusted}");
        }
    }

    #[test]
    fn fips_that_is_disabled_is_as_if_nobody_spoke_of_it() {
        for (version, release) in [("1.31.9", Release::AzureLinux2), ("1.32.0", Release::AzureLinux3)] {
            for spec in [
                r#"{"imageFamily":"AzureLinux","fipsMode":"Disabled"}"#,
                r#"{"imageFamily":"AzureLinux"}"#,
            ] {
                let class = class(spec);
                assert_eq!(Release::of(&class, version), release, "{spec}");
                assert!(!Class(&class).is_fips(), "{spec}");
            }
        }
    }

    #[test]
    fn requirements_are_sorted_by_length_of_key() {
        let keys: Vec<String> = amd64("x", "2").requirements().into_iter().map(|it| it.key).collect();
        assert_eq!(
            keys,
            ["kubernetes.io/arch", "karpenter.azure.com/sku-hyperv-generation"]
        );
    }
}
