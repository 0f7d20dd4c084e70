//! Which CustomResourceDefinitions are compared, and where do upstream's and ours come from?

use std::fs;

use anyhow::{Context, Result};
use api::provider::Provider;
use rig::{Client, gomod};
use serde::Deserialize;
use serde_json::Value;

const KARPENTER: (&str, &str) = ("sigs.k8s.io/karpenter", "v1.15.0");
const KARPENTER_AWS: (&str, &str) = ("github.com/aws/karpenter-provider-aws", "v1.14.1");

/// CRDs that are installed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CrdSet {
    /// The plain kinds, without any provider's rules.
    Core,
    /// With the simulated provider's label rules and node class.
    Kwok,
    /// With the AWS provider's.
    Aws,
    /// With the Azure provider's.
    Azure,
}

impl CrdSet {
    /// Upstream's CRDs as YAML, from its published Go module; none for Azure, whose module is not published.
    pub fn upstream(self) -> Result<Option<String>> {
        let ((module, version), folders): (_, &[_]) = match self {
            Self::Core => (KARPENTER, &["pkg/apis/crds"]),
            Self::Kwok => (KARPENTER, &["kwok/charts/crds", "kwok/apis/crds"]),
            Self::Aws => (KARPENTER_AWS, &["pkg/apis/crds"]),
            Self::Azure => return Ok(None),
        };
        let module = gomod::dir(module, version)?;
        let mut documents = Vec::new();
        for folder in folders {
            let folder = module.join(folder);
            for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
                let file = entry?.path();
                documents.push(fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?);
            }
        }
        Ok(Some(documents.join("\n---\n")))
    }

    /// Our CRDs of the same set (JSON, which is YAML).
    pub fn ours(self) -> Result<String> {
        let providers: &[_] = match self {
            Self::Core => &[],
            Self::Kwok => &[Provider::Kwok],
            Self::Aws => &[Provider::Aws],
            Self::Azure => &[Provider::Azure],
        };
        let documents = api::crds::installation(providers);
        let documents = documents
            .iter()
            .map(serde_json::to_string)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(documents.join("\n---\n"))
    }
}

/// What users and tools see of an installed CRD besides its schema: names, versions, columns, subresources.
pub fn outline(client: &Client, crd: &str) -> Result<Value> {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd}");
    let mut spec = client.get(&path)?.with_context(|| format!("{crd} is not installed"))?["spec"].take();
    for version in spec["versions"].as_array_mut().into_iter().flatten() {
        version["schema"].take();
        for column in version["additionalPrinterColumns"].as_array_mut().into_iter().flatten() {
            column["description"].take();
        }
    }
    Ok(spec)
}
