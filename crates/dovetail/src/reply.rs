//! How an answer is handed over: as a table or a document, in a line or in full, and with which exit code.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::SignedDuration;
use serde::Serialize;

use crate::{
    answer::Answer,
    document,
    failure::Failure,
    source::{Input, Origin},
    terminal::{Presentation, Screen, Sorting},
    trace,
};

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Table,
    Wide,
    Json,
    Yaml,
    Csv,
    Name,
}

const FORMATS: [(&str, Format); 6] = [
    ("table", Format::Table),
    ("wide", Format::Wide),
    ("json", Format::Json),
    ("yaml", Format::Yaml),
    ("csv", Format::Csv),
    ("name", Format::Name),
];

/// Reads the formats that a command has sense for.
pub(crate) fn formats(words: &'static [&'static str]) -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(words).map(|word| {
        let known = FORMATS.iter().find(|(name, _)| *name == word);
        known.map(|(_, format)| *format).unwrap_or_default()
    })
}

/// Flags about the answer.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Answer")]
pub(crate) struct Reply {
    /// Print the first line of the answer only.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Tell on standard error what the answer was made from; twice, how the planner came to it as well.
    #[arg(short, long, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    /// Exit with 3 instead of 0 when the answer is "no".
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// Answer again on every change: on a terminal in place, in a pipe one after the other, `-o json` a line each.
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// How often a cluster is looked at while it is watched.
    #[arg(long, value_name = "DURATION", default_value = "5s", requires = "watch")]
    pub(crate) interval: SignedDuration,
    #[command(flatten)]
    pub(crate) presentation: Presentation,
}

impl Reply {
    /// Prints an answer: `rendered` for people, the document in its envelope for programs.
    pub(crate) fn answer<T: Serialize>(
        self,
        input: &Input,
        (kind, answer): (&str, &T),
        format: Format,
        is_no: bool,
        rendered: impl FnOnce(&Screen) -> String,
    ) -> anyhow::Result<Answer> {
        let screen = self.presentation.screen();
        let text = match format {
            Format::Json => document::json(&input.envelope(kind, answer))?,
            Format::Yaml => document::yaml(&input.envelope(kind, answer))?,
            Format::Wide => rendered(&Screen {
                width: screen.width.map(|_| WIDE),
                ..screen
            }),
            // Nothing is broken over lines where there is no width.
            _ if self.quiet => first_line(&rendered(&Screen { width: None, ..screen })),
            _ => rendered(&screen),
        };
        let notes = input.closing(&screen) + &trace::of(input, self.verbose);
        let answer = self.told(text, notes)?;
        let is_live = matches!(input.origin, Origin::Live { .. });
        Ok(Answer {
            is_finding: self.exit_code && is_no,
            inputs: (self.watch && is_live).then(|| input.snapshot.inputs().digest),
            ..answer
        })
    }

    /// Hands over what is told already: all of it, or the answer line alone.
    pub(crate) fn told(self, text: String, notes: String) -> anyhow::Result<Answer> {
        let screen = self.presentation.screen();
        if let Some((column, titles)) = screen
            .sorting
            .and_then(Sorting::unknown)
            .filter(|(_, titles)| !titles.is_empty())
        {
            let why = format!("columns are {}", titles.join(", "));
            return Err(Failure::usage(format!("--sort-by: no column {column}"), why, "name one of them").into());
        }
        let is_document = is_document(&text);
        let text = match (screen.is_ascii, self.quiet && !is_document) {
            (_, true) => first_line(&text),
            (true, _) => text.replace('·', "|"),
            _ => text,
        };
        Ok(Answer {
            text,
            notes: if self.quiet { String::new() } else { notes },
            ..Answer::default()
        })
    }
}

/// Whether a text is for programs. Keys are sorted, so what it is may stand anywhere in it.
fn is_document(text: &str) -> bool {
    text.starts_with('{') || text.lines().any(|line| line.starts_with("apiVersion: dovetail.dev/"))
}

/// Columns that nothing needs.
const WIDE: usize = 1000;

fn first_line(text: &str) -> String {
    format!("{}\n", text.lines().next().unwrap_or_default())
}
