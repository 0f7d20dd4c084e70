//! Where do things live that are costly to make and may be thrown away? Outside the build directory, so that
//! `cargo clean` keeps them.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, io};

/// `$DOVETAIL_CACHE`, or `dovetail` in the user's cache folder.
pub fn root() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("DOVETAIL_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("dovetail")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/dovetail")))
        .ok_or(Error::NoCache)
}

/// Makes `dir` by calling `make` on an empty folder beside it, which then takes its place at once. Whoever else wants the
/// same folder waits; who finds it complete does nothing.
pub fn once(dir: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = dir.parent().unwrap_or(dir);
    fs::create_dir_all(parent).map_err(io("create", parent))?;
    let beside = |suffix: &str| {
        let mut name = dir.file_name().unwrap_or_default().to_owned();
        name.push(suffix);
        dir.with_file_name(name)
    };
    let lock = beside(".lock");
    let held = File::create(&lock).map_err(io("create", &lock))?;
    if held.try_lock().is_err() {
        eprintln!("rig: waiting for another process that makes {}", dir.display());
        held.lock().map_err(io("lock", &lock))?;
    }
    if dir.is_dir() {
        return Ok(());
    }
    let partial = beside(".partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(io("remove", &partial))?;
    }
    fs::create_dir_all(&partial).map_err(io("create", &partial))?;
    make(&partial)?;
    fs::rename(&partial, dir).map_err(io("rename to", dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_whose_making_failed_is_made_again_from_nothing() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("thing");
        let failed = once(&dir, |partial| {
            fs::write(partial.join("half"), "").unwrap();
            Err(Error::NoCache)
        });
        assert!(failed.is_err() && !dir.exists());
        once(&dir, |partial| {
            fs::write(partial.join("whole"), "").map_err(io("write", partial))
        })
        .unwrap();
        let names: Vec<_> = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["whole"]);
    }

    #[test]
    fn complete_folder_is_not_made_again() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("thing");
        once(&dir, |_| Ok(())).unwrap();
        once(&dir, |_| panic!("made twice")).unwrap();
    }
}
