//! Where on which tape is a decision? Reads the recorder's files up to it.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use jiff::Timestamp;
use ledger::{
    Prefix,
    flight::{Broken, Frame, Tape},
};

use crate::failure::Failure;

/// Which decision.
#[derive(Debug)]
pub(super) enum Sought {
    /// The last that has to do with an id.
    Id(Prefix),
    /// The last at or before a time.
    At(Timestamp),
}

/// What is wrong with a tape.
pub(super) fn broken(error: &Broken) -> Failure {
    let next = "name another file of the recorder with --record";
    Failure::new("cannot read the flight recorder's tape", error.to_string(), next)
}

impl Sought {
    fn is_met(&self, frame: &Frame) -> bool {
        match self {
            Self::Id(prefix) => frame.ids.iter().any(|id| prefix.holds(*id)),
            Self::At(time) => frame.at <= *time,
        }
    }
}

/// The files of a recorder, oldest first.
pub(super) fn files(record: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |error: std::io::Error| {
        let next = "name the directory of --flight-recorder, or one of its files, with --record";
        Failure::new(format!("cannot read {}", record.display()), error.to_string(), next)
    };
    if !record.is_dir() {
        fs::metadata(record).map_err(cannot)?;
        return Ok(vec![record.to_owned()]);
    }
    let entries = fs::read_dir(record).map_err(cannot)?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("flight-") && name.ends_with(".jsonl.gz")
    };
    files.retain(is_ours);
    files.sort();
    if files.is_empty() {
        return Err(Failure::new(
            format!("no record in {}", record.display()),
            "it has no file flight-….jsonl.gz",
            "run the controller with --flight-recorder DIR",
        ));
    }
    Ok(files)
}

/// Plays a file; `seen` hears of each decision, with the tape standing there, and says whether to go on. A file that is
/// still being written ends where it ends.
pub(super) fn play(path: &Path, mut seen: impl FnMut(&Frame, &Tape) -> bool) -> Result<(), Failure> {
    let file = File::open(path).map_err(|error| {
        let next = "name the directory of --flight-recorder with --record";
        Failure::new(format!("cannot read {}", path.display()), error.to_string(), next)
    })?;
    let mut reader = BufReader::new(MultiGzDecoder::new(BufReader::new(file)));
    let mut tape = Tape::default();
    let mut line = String::new();
    loop {
        line.clear();
        let read = reader.read_line(&mut line);
        if !matches!(read, Ok(bytes) if bytes > 0) || !line.ends_with('\n') {
            return Ok(());
        }
        let frame = tape.read(&line).map_err(|error| broken(&error))?;
        if let Some(frame) = frame
            && !seen(&frame, &tape)
        {
            return Ok(());
        }
    }
}

/// The decision that is sought, and the tape standing where it was made.
pub(super) fn find(record: &Path, sought: &Sought) -> Result<(Frame, Tape), Failure> {
    let files = files(record)?;
    let (mut first, mut last) = (None, None);
    for path in files.iter().rev() {
        let mut met = None;
        let mut at = 0;
        play(path, |frame, _| {
            first = Some(first.map_or(frame.at, |first: Timestamp| first.min(frame.at)));
            last = Some(last.map_or(frame.at, |last: Timestamp| last.max(frame.at)));
            if sought.is_met(frame) {
                met = Some(at);
            }
            at += 1;
            true
        })?;
        // Tapes cannot be wound back, so the file is played once more, up to there.
        if let Some(met) = met {
            let mut found = None;
            let mut at = 0;
            let mut standing = Tape::default();
            replay_to(path, &mut standing, |frame| {
                let is_it = at == met;
                if is_it {
                    found = Some(frame.clone());
                }
                at += 1;
                !is_it
            })?;
            if let Some(frame) = found {
                return Ok((frame, standing));
            }
        }
    }
    let what = match sought {
        Sought::Id(_) => "this decision".to_owned(),
        Sought::At(time) => time.to_string(),
    };
    let span = match (first, last) {
        (Some(first), Some(last)) => format!("the recorder's files hold decisions from {first} to {last}"),
        _ => "the recorder's files hold no decision".to_owned(),
    };
    let next = "dovetail replay --record FILE reads a saved file; dovetail decisions names what there is";
    Err(Failure::new(format!("no inputs for {what}"), span, next))
}

fn replay_to(path: &Path, tape: &mut Tape, mut goes_on: impl FnMut(&Frame) -> bool) -> Result<(), Failure> {
    let mut kept = None;
    play(path, |frame, standing| {
        let goes_on = goes_on(frame);
        if !goes_on {
            kept = Some(standing.clone());
        }
        goes_on
    })?;
    if let Some(kept) = kept {
        *tape = kept;
    }
    Ok(())
}
