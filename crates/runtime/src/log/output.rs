//! Where lines go: the standard outputs, or a file.

use std::{
    fs::{File, OpenOptions},
    io::{self, IsTerminal, Write},
    sync::{Mutex, PoisonError},
};

use super::{LogError, line::Line};

/// One place lines go to.
#[derive(Debug)]
pub(super) struct Output {
    sink: Sink,
    form: Form,
}

#[derive(Debug)]
enum Sink {
    Stdout,
    Stderr,
    File(Mutex<File>),
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Json,
    Text { is_coloured: bool },
}

impl Output {
    /// Opens a path as zap knows them: `stdout`, `stderr`, a file or its URL.
    pub(super) fn open(path: &str, is_plain: bool) -> Result<Self, LogError> {
        let (sink, is_terminal) = match path {
            "stdout" => (Sink::Stdout, io::stdout().is_terminal()),
            "stderr" => (Sink::Stderr, io::stderr().is_terminal()),
            file => (Sink::File(Mutex::new(append(file)?)), false),
        };
        let form = if is_terminal {
            Form::Text { is_coloured: !is_plain }
        } else {
            Form::Json
        };
        Ok(Self { sink, form })
    }

    /// Writes a line at once. A line that cannot be written is lost: there is nobody left to tell.
    pub(super) fn write(&self, line: &Line<'_>) {
        let text = match self.form {
            Form::Json => line.json(),
            Form::Text { is_coloured } => line.text(is_coloured),
        };
        let _ = match &self.sink {
            Sink::Stdout => io::stdout().lock().write_all(text.as_bytes()),
            Sink::Stderr => io::stderr().lock().write_all(text.as_bytes()),
            Sink::File(file) => file
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .write_all(text.as_bytes()),
        };
    }
}

fn append(path: &str) -> Result<File, LogError> {
    let plain = path.strip_prefix("file://").unwrap_or(path);
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(plain)
        .map_err(|source| LogError::Open {
            path: path.to_owned(),
            source,
        })
}
