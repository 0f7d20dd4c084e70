//! Where is the oracle? Builds the Go program in `bench/reference` on first use and keeps it in the cache, keyed by its
//! source, so that a change of it is never missed and `cargo clean` does not cost minutes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Result, io};
use crate::{build, cache, gomod};

/// The program's path; builds it (minutes, the first time) when no build of this source is in the cache.
pub fn program() -> Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/reference");
    let dir = cache::root()?.join(format!("reference/{:016x}", digest(&source)?));
    cache::once(&dir, |partial| compile(&source, partial))?;
    Ok(dir.join("reference"))
}

fn compile(source: &Path, into: &Path) -> Result<()> {
    let out = into.join("reference").to_string_lossy().into_owned();
    let flags = [("GOFLAGS", "-mod=readonly -buildvcs=false -trimpath")];
    build::announced("the reference, from upstream's module", || {
        gomod::go(source, ["build", "-o", &out, "."], &flags).map(drop)
    })
}

/// FNV-1a over the names and contents of everything Go reads, in name order.
fn digest(source: &Path) -> Result<u64> {
    let mut files: Vec<PathBuf> = fs::read_dir(source)
        .map_err(io("list", source))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|ext| ["go", "mod", "sum"].iter().any(|known| ext == *known))
        })
        .collect();
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for byte in name.bytes().chain(fs::read(&file).map_err(io("read", &file))?) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_source_is_another_program() {
        let tmp = tempfile::tempdir().unwrap();
        fs::write(tmp.path().join("main.go"), "package main").unwrap();
        let before = digest(tmp.path()).unwrap();
        fs::write(tmp.path().join("README"), "not read by Go").unwrap();
        assert_eq!(digest(tmp.path()).unwrap(), before);
        fs::write(tmp.path().join("main.go"), "package main // changed").unwrap();
        assert_ne!(digest(tmp.path()).unwrap(), before);
    }
}
