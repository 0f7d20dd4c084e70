//! Where are the programs that tests hand files to? Built from their Go module on first use, kept by version.

use std::path::PathBuf;

use crate::build::announced;
use crate::error::Result;
use crate::{cache, gomod};

/// A program of a published Go module.
struct Tool {
    name: &'static str,
    package: &'static str,
    version: &'static str,
}

/// Renders and installs charts.
const HELM: Tool = Tool {
    name: "helm",
    package: "helm.sh/helm/v4/cmd/helm",
    version: "v4.3.1",
};

/// Formats HCL as `terraform fmt` does, without the rest of Terraform.
const HCLFMT: Tool = Tool {
    name: "hclfmt",
    package: "github.com/hashicorp/hcl/v2/cmd/hclfmt",
    version: "v2.25.0",
};

/// Helm. The first build takes minutes and says so on standard error.
pub fn helm() -> Result<PathBuf> {
    HELM.path()
}

/// hclfmt.
pub fn hclfmt() -> Result<PathBuf> {
    HCLFMT.path()
}

impl Tool {
    fn path(&self) -> Result<PathBuf> {
        let Self { name, package, version } = self;
        let dir = cache::root()?.join(format!("tools/{name}-{}", version.trim_start_matches('v')));
        cache::once(&dir, |partial| {
            let bin = partial.display().to_string();
            let asked = format!("{package}@{version}");
            announced(&format!("building {name}"), || {
                let args = ["install", "-trimpath", "-ldflags", "-s -w", &asked];
                gomod::go(partial, args, &[("GOBIN", &bin), ("CGO_ENABLED", "0")]).map(drop)
            })
        })?;
        Ok(dir.join(name))
    }
}
