//! Terraform files are written as `terraform fmt` writes them.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "tf") {
            found.push(path);
        }
    }
}

#[test]
fn every_file_of_terraform_is_in_canonical_form() {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../terraform"), &mut found);
    assert!(found.len() >= 8, "{found:?}");
    let hclfmt = rig::tool::hclfmt().unwrap();
    let mut differ = Vec::new();
    for path in &found {
        let output = Command::new(&hclfmt).arg(path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", path.display());
        if output.stdout != fs::read(path).unwrap() {
            differ.push(path);
        }
    }
    assert!(
        differ.is_empty(),
        "`terraform fmt -recursive terraform` changes {differ:?}"
    );
}
