//! Where bytes come from: files, directories and streams, gzipped or not.

use std::{
    fs, io,
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    blocks, document,
    fault::{Fault, Place},
    parse::Reading,
    tar,
};

/// Something to read.
pub enum Source {
    /// A file, an archive of files (tar, gzipped or not), or a directory of files named `*.json`, `*.yaml`, `*.yml`, each
    /// also with `.gz`.
    Path(PathBuf),
    /// Anything else, under a name for messages.
    Stream(String, Box<dyn Read>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Stream(name, _) => f.debug_tuple("Stream").field(name).finish(),
        }
    }
}

const DUMP_EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

pub(super) fn open(source: Source, reading: &mut Reading) {
    match source {
        Source::Stream(name, reader) => take(&name, reader, reading),
        Source::Path(path) if path.is_dir() => open_directory(&path, reading),
        Source::Path(path) => open_file(&path, reading),
    }
}

/// Reads a directory and those below it in the order of names, so that the same tree gives the same snapshot.
/// Symbolic links to directories are not followed, because they may lead in circles.
fn open_directory(path: &Path, reading: &mut Reading) {
    let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => return reading.fault(unreadable(&path.display().to_string(), &error)),
    };
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory {
            open_directory(&entry.path(), reading);
        } else if is_dump(&entry.path()) {
            open_file(&entry.path(), reading);
        } else {
            reading.report.ignored_files += 1;
        }
    }
}

fn is_dump(path: &Path) -> bool {
    let extension = |path: &Path| {
        path.extension()
            .and_then(|extension| extension.to_str())
            .map(str::to_ascii_lowercase)
    };
    match extension(path).as_deref() {
        Some("gz") => path.file_stem().is_some_and(|stem| is_dump(Path::new(stem))),
        Some(extension) => DUMP_EXTENSIONS.contains(&extension),
        None => false,
    }
}

fn open_file(path: &Path, reading: &mut Reading) {
    if let Some(read) = blocks::json(path) {
        reading.report.sources += 1;
        return reading.take(read);
    }
    let name = path.display().to_string();
    match fs::File::open(path) {
        Ok(file) => take(&name, file, reading),
        Err(error) => reading.fault(unreadable(&name, &error)),
    }
}

fn take(name: &str, reader: impl Read, reading: &mut Reading) {
    match slurp(reader) {
        Ok(bytes) if tar::is_archive(&bytes) => take_archive(name, &bytes, reading),
        Ok(bytes) => take_text(name, bytes, reading),
        Err(error) => {
            reading.report.sources += 1;
            reading.fault(unreadable(name, &error));
        }
    }
}

fn take_text(name: &str, bytes: Vec<u8>, reading: &mut Reading) {
    reading.report.sources += 1;
    match String::from_utf8(bytes) {
        Ok(text) => document::split(name, &text, reading),
        Err(error) => reading.fault(not_text(name, &error)),
    }
}

/// Reads the files of an archive that are named like dumps.
fn take_archive(name: &str, bytes: &[u8], reading: &mut Reading) {
    let Some(files) = tar::files(bytes) else {
        let broken = io::Error::other("the archive is damaged or cut short");
        return reading.fault(unreadable(name, &broken));
    };
    for (file, content) in files {
        if !is_dump(Path::new(&file)) {
            reading.report.ignored_files += 1;
            continue;
        }
        let name = format!("{name}:{file}");
        match slurp(content) {
            Ok(bytes) => take_text(&name, bytes, reading),
            Err(error) => reading.fault(unreadable(&name, &error)),
        }
    }
}

fn slurp(mut reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    if !bytes.starts_with(&GZIP_MAGIC) {
        return Ok(bytes);
    }
    let mut unpacked = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

fn unreadable(name: &str, error: &io::Error) -> Fault {
    let place = Place {
        source: name.into(),
        ..Place::default()
    };
    Fault::of_place(
        place,
        format_args!("cannot be read: {error}"),
        "check that it exists, is readable and complete",
    )
}

fn not_text(name: &str, error: &std::string::FromUtf8Error) -> Fault {
    let place = Place {
        source: name.into(),
        ..Place::default()
    };
    let at = error.utf8_error().valid_up_to();
    Fault::of_place(
        place,
        format_args!("is not UTF-8 text at byte {at}"),
        "write it with kubectl get -o json or -o yaml",
    )
}
