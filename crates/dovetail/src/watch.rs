//! `-w`: the same question again whenever its answer may have changed; on a terminal in place, in a pipe one answer after the other.

use std::{
    fs,
    io::{IsTerminal, Write},
    path::Path,
    process::ExitCode,
    thread,
    time::{Duration, SystemTime},
};

use serde_json::Value;

use crate::{answer::Answer, failure, place::Place, reply::Reply, terminal::aside};

/// Home, and everything from there on blank.
const CLEAR: &str = "\x1b[H\x1b[2J";
/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Answers once, or for as long as somebody watches.
pub(crate) fn answered(
    reply: Reply,
    place: &Place,
    answer: impl Fn() -> anyhow::Result<Answer>,
) -> anyhow::Result<ExitCode> {
    if !reply.watch {
        return answer()?.print();
    }
    // Looked at before they are read: what is written meanwhile is news.
    let mut seen = stamps(place);
    let mut shown = answer()?;
    if !show(&shown)? {
        return Ok(ExitCode::SUCCESS);
    }
    loop {
        if place.from.is_empty() {
            thread::sleep(Duration::try_from(reply.interval).unwrap_or(LOOK));
        } else {
            thread::sleep(LOOK);
            let now = stamps(place);
            if now == seen {
                continue;
            }
            seen = now;
        }
        match answer() {
            Ok(next) if is_news(&shown, &next) => {
                if !show(&next)? {
                    return Ok(ExitCode::SUCCESS);
                }
                shown = next;
            }
            Ok(_) => {}
            // A file that is being written, a server that is away: the next look may find more.
            Err(error) => aside(&format!("{}\n", failure::text(&error))),
        }
    }
}

/// Whether an answer says something else. Times pass without anything being new, so versions count where there are some.
fn is_news(shown: &Answer, next: &Answer) -> bool {
    match (shown.inputs, next.inputs) {
        (Some(before), Some(now)) => before != now,
        _ => shown.text != next.text,
    }
}

/// Shows an answer: in place of the one before, or after it; a document on a line of its own. False when nobody reads any more.
fn show(answer: &Answer) -> anyhow::Result<bool> {
    let mut out = std::io::stdout();
    let text = if out.is_terminal() {
        format!("{CLEAR}{}", answer.text)
    } else {
        on_a_line(&answer.text).unwrap_or_else(|| answer.text.clone())
    };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(false),
        other => other?,
    }
    aside(&answer.notes);
    Ok(true)
}

/// A JSON document without line breaks.
fn on_a_line(text: &str) -> Option<String> {
    let document: Value = text
        .starts_with('{')
        .then(|| serde_json::from_str(text).ok())
        .flatten()?;
    Some(format!("{document}\n"))
}

/// What tells whether files have changed.
type Stamp = (String, Option<SystemTime>, u64);

fn stamps(place: &Place) -> Vec<Stamp> {
    let mut stamps = Vec::new();
    for path in &place.from {
        stamp(path, &mut stamps);
    }
    stamps
}

fn stamp(path: &Path, stamps: &mut Vec<Stamp>) {
    let Ok(about) = fs::metadata(path) else {
        return;
    };
    if about.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            stamp(&path, stamps);
        }
        return;
    }
    stamps.push((path.display().to_string(), about.modified().ok(), about.len()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_put_on_a_line_and_a_table_is_left_alone() {
        assert_eq!(on_a_line("{\n  \"a\": 1\n}\n").as_deref(), Some("{\"a\":1}\n"));
        assert_eq!(on_a_line("POOL  NODES\n"), None);
    }

    #[test]
    fn time_alone_is_no_news_where_versions_are_known() {
        let answer = |text: &str, inputs| Answer {
            text: text.to_owned(),
            inputs,
            ..Answer::default()
        };
        assert!(!is_news(&answer("15:42", Some(1)), &answer("15:43", Some(1))));
        assert!(is_news(&answer("same", Some(1)), &answer("same", Some(2))));
        assert!(is_news(&answer("a", None), &answer("b", None)) && !is_news(&answer("a", None), &answer("a", None)));
    }

    #[test]
    fn a_file_that_is_written_again_has_another_stamp() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("dump.yaml");
        let place = Place {
            from: vec![directory.path().to_owned()],
            ..Place::default()
        };
        fs::write(&file, "a").unwrap();
        let before = stamps(&place);
        fs::write(&file, "ab").unwrap();
        assert_ne!(stamps(&place), before);
        assert_eq!(before.len(), 1);
    }
}
