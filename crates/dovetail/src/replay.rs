//! `dovetail replay`: a past decision once more, offline: byte for byte the same, or with your change.

mod tape;
mod with;

use std::path::PathBuf;

use controllers::flight;
use jiff::Timestamp;
use ledger::{
    Id,
    flight::{Frame, Tape},
};
use serde_json::json;

use self::tape::Sought;
use crate::{answer::Answer, document, failure::Failure, terminal::counted};

/// Run a past decision again, offline, on what the flight recorder kept: byte for byte the same, or with your change.
///
/// The controller records with --flight-recorder DIR. Ends with 3 when the answer is another one.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["id", "at"]))]
pub(crate) struct Args {
    /// The decision's id, or its first digits.
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The last decision at or before this time.
    #[arg(long, value_name = "RFC3339")]
    at: Option<Timestamp>,
    /// What the flight recorder wrote: its directory, or one of its files.
    #[arg(long, required = true, value_name = "DIR|FILE")]
    record: PathBuf,
    /// NodePools to decide with instead of those that were there.
    #[arg(long, num_args = 1.., value_name = "FILE")]
    with: Vec<PathBuf>,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
    Yaml,
}

/// A decision made again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Replayed {
    /// As it is called.
    name: String,
    at: Timestamp,
    inputs: String,
    /// The numbers of the answers then and now.
    answers: (String, String),
    pods: usize,
    nodes: usize,
    offers: usize,
    /// The first input that is not what it was.
    differing_input: Option<String>,
    engines: (String, &'static str),
    /// What was decided then and is not now, and the reverse.
    was: Vec<String>,
    is: Vec<String>,
    /// What was changed on purpose.
    with: Vec<String>,
}

impl Replayed {
    fn is_identical(&self) -> bool {
        self.answers.0 == self.answers.1 && self.differing_input.is_none()
    }
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let sought = match (&args.id, args.at) {
        (Some(id), _) => Sought::Id(id.parse().map_err(|error: ledger::NotAnId| {
            Failure::usage(
                error.to_string(),
                "ids are in logs, events and NodeClaims",
                "dovetail decisions",
            )
        })?),
        (None, at) => Sought::At(at.unwrap_or(Timestamp::MAX)),
    };
    let (frame, tape) = tape::find(&args.record, &sought)?;
    let replayed = replayed(&frame, &tape, &args.with, args.id.as_deref())?;
    let text = match args.output {
        Format::Table => render(&replayed),
        Format::Json => document::json(&tree(&replayed))?,
        Format::Yaml => document::yaml(&tree(&replayed))?,
    };
    Ok(Answer {
        text,
        is_finding: !replayed.is_identical(),
        ..Answer::default()
    })
}

fn replayed(frame: &Frame, tape: &Tape, with: &[PathBuf], id: Option<&str>) -> anyhow::Result<Replayed> {
    let whole = tape.snapshot(frame.at).map_err(|error| tape::broken(&error))?;
    let unlike = |error: flight::Unlike| {
        let next = "replay it with the version that recorded it";
        Failure::new(
            format!("cannot replay the decision of {}", frame.at),
            format!("{error}; it was recorded by version {}", frame.engine),
            next,
        )
    };
    let before = flight::again(frame, &whole).map_err(unlike)?;
    let inputs = whole.inputs();
    let objects = whole.objects();
    let mut replayed = Replayed {
        name: name(frame, id),
        at: frame.at,
        inputs: frame.inputs.clone(),
        answers: (frame.answer.clone(), before.digest.clone()),
        pods: objects.pods.len(),
        nodes: objects.nodes.len(),
        offers: whole
            .catalog()
            .instance_types
            .iter()
            .map(|entry| entry.offerings.len())
            .sum(),
        differing_input: frame.first_difference(&inputs),
        engines: (frame.engine.clone(), ledger::ENGINE),
        was: Vec::new(),
        is: Vec::new(),
        with: Vec::new(),
    };
    if !with.is_empty() {
        let (changed, words) = with::changed(&whole, with)?;
        let after = flight::again(frame, &changed).map_err(unlike)?;
        let less = |one: &flight::Answer, other: &flight::Answer| -> Vec<String> {
            let is_new = |(_, text): &&(Id, String)| other.decisions.iter().all(|(_, known)| known != text);
            one.decisions
                .iter()
                .filter(is_new)
                .map(|(_, text)| text.clone())
                .collect()
        };
        replayed.was = less(&before, &after);
        replayed.is = less(&after, &before);
        replayed.answers.1 = after.digest;
        replayed.with = words;
    }
    Ok(replayed)
}

fn name(frame: &Frame, id: Option<&str>) -> String {
    let digits = Id::digits_needed(frame.ids.iter().copied());
    match (id, frame.ids.first()) {
        (Some(id), _) => id.to_owned(),
        (None, Some(id)) => id.short(digits),
        (None, None) => frame.kind.clone(),
    }
}

fn of_what(replayed: &Replayed) -> String {
    format!(
        "{}, {}, {} at {}",
        counted(replayed.pods, "pod"),
        counted(replayed.nodes, "node"),
        counted(replayed.offers, "offer"),
        replayed.at
    )
}

fn render(replayed: &Replayed) -> String {
    let Replayed { name, answers, .. } = replayed;
    if !replayed.with.is_empty() {
        let with = replayed.with.join("; ");
        if answers.0 == answers.1 {
            return format!("{name} with {with}: the same.\n");
        }
        let mut text = format!("{name} with {with}: differs.\n");
        let nothing = vec!["nothing".to_owned()];
        for (start, lines) in [("was", &replayed.was), ("is ", &replayed.is)] {
            for line in if lines.is_empty() { &nothing } else { lines } {
                text.push_str(&format!("  {start}  {line}\n"));
            }
        }
        return text;
    }
    let from = of_what(replayed);
    if replayed.is_identical() {
        return format!(
            "{name} replayed from {from}: identical ({} → {}).\n",
            replayed.inputs, answers.1
        );
    }
    let why = match &replayed.differing_input {
        Some(input) => format!("the first input that is not as it was: {input}"),
        None if replayed.engines.0 != replayed.engines.1 => format!(
            "all inputs are as they were; it was decided by version {}, and this is {}",
            replayed.engines.0, replayed.engines.1
        ),
        None => "all inputs are as they were: the engine is not deterministic, which is a bug".to_owned(),
    };
    format!(
        "{name} replayed from {from}: differs.\n  {why}\n  answer {} then, {} now\n",
        answers.0, answers.1
    )
}

fn tree(replayed: &Replayed) -> serde_json::Value {
    json!({
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "Replay",
        "as_of": replayed.at.to_string(),
        "engine": replayed.engines.1,
        "decision": replayed.name,
        "identical": replayed.is_identical(),
        "inputs": replayed.inputs,
        "answers": [replayed.answers.0, replayed.answers.1],
        "first_differing_input": replayed.differing_input,
        "differences": { "was": replayed.was, "is": replayed.is },
        "with": replayed.with,
    })
}

#[cfg(test)]
mod tests;
