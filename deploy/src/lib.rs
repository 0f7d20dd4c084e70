//! What is an installation made of, and does it fit together? The charts, the Terraform modules and the policies are files;
//! this crate reads them the way AWS, Helm and Terraform would, so that tests can ask.

pub mod calls;
pub mod module;
pub mod policy;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file of the repository.
pub fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("reading {path}"))
}
