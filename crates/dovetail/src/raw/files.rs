//! Objects from files: YAML, JSON and the fenced YAML of Markdown, in directories and below them, in archives, gzipped or
//! not.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use lint::document::{self, Unreadable};
use model::dump::tar;
use runtime::Clock;

use super::{Raw, time};
use crate::failure::Failure;

const READ: [&str; 4] = ["yaml", "yml", "json", "md"];
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// How a template of a chart shows itself.
const TEMPLATE: &str = "{{";
/// So many faults are told; who has more has one cause for most of them.
const TOLD: usize = 20;

/// Everything in the files and directories named, `-` standing for standard input. A text that cannot be read fails the
/// whole, unless it is the template of a chart that was met in a directory.
pub(crate) fn of_files(paths: &[PathBuf]) -> Result<Raw, Failure> {
    let mut raw = Raw::default();
    let mut unread = Vec::new();
    texts(paths, &READ, &mut |name, text, is_named| {
        let (documents, unreadable) = document::read(name, text);
        raw.documents.extend(documents);
        let is_template = !unreadable.is_empty() && text.contains(TEMPLATE);
        if is_template && !is_named {
            let gap = format!("{name} is the template of a chart: helm template renders it, and `-f -` reads that");
            raw.gaps.push(gap);
        } else {
            unread.extend(unreadable);
        }
    })?;
    if !unread.is_empty() {
        return Err(unreadable(&unread));
    }
    raw.name = paths.iter().map(|path| name(path)).collect::<Vec<_>>().join(", ");
    raw.now = time::newest(&raw.documents).unwrap_or_else(|| Clock::system().now());
    Ok(raw)
}

/// What is done with a text: its name, itself, and whether somebody named it.
type Sink<'a> = dyn FnMut(&str, &str, bool) + 'a;

/// Every text in files, directories and archives, unpacked; of directories and archives those whose names end so.
pub(crate) fn texts(paths: &[PathBuf], endings: &[&str], sink: &mut Sink<'_>) -> Result<(), Failure> {
    let mut walk = Walk { endings, sink };
    for path in paths {
        walk.path(path, true)?;
    }
    Ok(())
}

fn name(path: &Path) -> String {
    if path.as_os_str() == "-" {
        return "standard input".to_owned();
    }
    path.display().to_string()
}

struct Walk<'a, 's> {
    endings: &'a [&'a str],
    sink: &'a mut Sink<'s>,
}

impl Walk<'_, '_> {
    fn path(&mut self, path: &Path, is_named: bool) -> Result<(), Failure> {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            let read = std::io::stdin().read_to_end(&mut bytes);
            read.map_err(|error| not_read("standard input", &error))?;
            return self.bytes("standard input", bytes, is_named);
        }
        let shown = path.display().to_string();
        let fail = |error: std::io::Error| not_read(&shown, &error);
        if !path.is_dir() {
            return self.bytes(&shown, fs::read(path).map_err(fail)?, is_named);
        }
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(fail)? {
            entries.push(entry.map_err(fail)?);
        }
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            // A link to a directory may lead in a circle.
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_hidden && (is_directory || self.is_read(&entry.path())) {
                self.path(&entry.path(), false)?;
            }
        }
        Ok(())
    }

    /// The files of an archive that are named like those of a directory.
    fn archive(&mut self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let damaged = || not_read(name, &std::io::Error::other("the archive is damaged or cut short"));
        for (file, content) in tar::files(bytes).ok_or_else(damaged)? {
            if self.is_read(Path::new(&file)) {
                self.bytes(&format!("{name}:{file}"), content.to_vec(), false)?;
            }
        }
        Ok(())
    }

    fn bytes(&mut self, name: &str, bytes: Vec<u8>, is_named: bool) -> Result<(), Failure> {
        let fail = |error: std::io::Error| not_read(name, &error);
        let bytes = if bytes.starts_with(&GZIP_MAGIC) {
            let mut unpacked = Vec::new();
            let mut packed = flate2::read::MultiGzDecoder::new(bytes.as_slice());
            packed.read_to_end(&mut unpacked).map_err(fail)?;
            unpacked
        } else {
            bytes
        };
        if tar::is_archive(&bytes) {
            return self.archive(name, &bytes);
        }
        let text = String::from_utf8(bytes).map_err(|_| fail(std::io::Error::other("it is not UTF-8 text")))?;
        (self.sink)(name, &text, is_named);
        Ok(())
    }

    fn is_read(&self, path: &Path) -> bool {
        is_named_so(path, self.endings)
    }
}

fn is_named_so(path: &Path, endings: &[&str]) -> bool {
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("gz") => path
            .file_stem()
            .is_some_and(|stem| is_named_so(Path::new(stem), endings)),
        Some(extension) => endings.contains(&extension),
        None => false,
    }
}

fn not_read(name: &str, error: &std::io::Error) -> Failure {
    Failure::new(
        format!("cannot read {name}"),
        error.to_string(),
        "name files or directories of YAML, JSON or Markdown, or - for standard input",
    )
}

fn unreadable(all: &[Unreadable]) -> Failure {
    let place = |one: &Unreadable| match one.line {
        Some(line) => format!("{}:{line}", one.source),
        None => one.source.clone(),
    };
    let mut told: Vec<String> = all
        .iter()
        .take(TOLD)
        .map(|one| format!("{}: {}", place(one), one.problem))
        .collect();
    if all.len() > TOLD {
        told.push(format!("and {} more", all.len() - TOLD));
    }
    let error = match all {
        [one] => format!("{} is no YAML", place(one)),
        _ => format!("{} documents are no YAML", all.len()),
    };
    Failure::new(
        error,
        told.join("\n        "),
        "mend the line; the template of a chart is rendered first: helm template CHART | dovetail lint -f -",
    )
}
