//! How an answer is handed over: as a table or a document, in a line or in full, and with which exit code.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use crate::{
    answer::Answer,
    document,
    source::Input,
    terminal::{Presentation, Screen},
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
    /// Exit with 3 instead of 0 when the answer is "no".
    #[arg(long)]
    pub(crate) exit_code: bool,
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
            // Nothing is broken over lines where there is no width.
            _ if self.quiet => first_line(&rendered(&Screen { width: None, ..screen })),
            _ => rendered(&screen),
        };
        let text = if screen.is_ascii { text.replace('·', "|") } else { text };
        let notes = if self.quiet {
            String::new()
        } else {
            input.closing(&screen)
        };
        Ok(Answer {
            text,
            notes,
            is_finding: self.exit_code && is_no,
            is_failure: false,
        })
    }
}

fn first_line(text: &str) -> String {
    format!("{}\n", text.lines().next().unwrap_or_default())
}
