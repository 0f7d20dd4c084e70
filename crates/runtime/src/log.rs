//! What happens, one line each: upstream's zap JSON, so that whatever reads Karpenter's log reads ours.
//!
//! ```text
//! {"level":"INFO","time":"2026-11-16T10:00:00.000Z","logger":"controller","message":"launched nodeclaim","commit":"abc1234","controller":"nodeclaim.lifecycle","NodeClaim":{"name":"x"},"provider-id":"kwok://x"}
//! ```
//!
//! Fields keep the names they are given; those of enclosing spans come first, outermost first, and an inner field hides
//! an outer one of its name. A dot nests: `"NodeClaim.name" = %name` becomes `"NodeClaim":{"name":…}`, and
//! `"Pod.name"`, `"Pod.namespace"` side by side become one object, as upstream's references look. Give numbers and
//! booleans plainly, texts with `%`, durations and lists with `?`.
//!
//! On a terminal the same is said in a line for people, coloured unless `NO_COLOR` is set. Nothing is added to what
//! callers say, so no secret gets in that nobody logs; libraries are heard from info upwards only.

mod fields;
mod line;
mod output;
mod sampler;
mod spans;

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    level_filters::LevelFilter,
    span::{Attributes, Id, Record},
    subscriber::Interest,
};

use self::{fields::Fields, line::Line, output::Output, sampler::Sampler, spans::Spans};
use crate::{Clock, Settings};

/// Whose lines are shown from the chosen level upwards; all others' from info upwards at most.
const OWN: &[&str] = &[
    "api",
    "cloud",
    "controllers",
    "dovetail",
    "model",
    "packing",
    "runtime",
    "state",
];

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file cannot be written.
    #[error(
        "cannot write the log to {path:?}: {source}; set LOG_OUTPUT_PATHS to stdout, stderr or a file that can be written"
    )]
    Open {
        /// As configured.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else has taken the log already.
    #[error("the log is set up already")]
    Taken,
}

/// Takes the log of the whole process, from now on.
pub fn start(
    settings: &Settings,
    commit: &str,
    clock: Clock,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<(), LogError> {
    let is_plain = environment("NO_COLOR").is_some_and(|value| !value.is_empty());
    let outputs = settings
        .log_output_paths
        .iter()
        .map(|path| Output::open(path, is_plain))
        .collect::<Result<_, _>>()?;
    let log = Log::new(&settings.log_level, commit, clock, outputs);
    tracing::subscriber::set_global_default(log).map_err(|_| LogError::Taken)
}

/// Writes every event, with the fields of its spans.
struct Log {
    level: LevelFilter,
    /// Where in the code a line comes from is said at debug only.
    is_placed: bool,
    commit: String,
    clock: Clock,
    spans: Spans,
    sampler: Mutex<Sampler>,
    outputs: Vec<Output>,
}

impl Log {
    fn new(level: &str, commit: &str, clock: Clock, outputs: Vec<Output>) -> Self {
        let filter = match level {
            "debug" => LevelFilter::DEBUG,
            "error" => LevelFilter::ERROR,
            _ => LevelFilter::INFO,
        };
        Self {
            level: filter,
            is_placed: level == "debug",
            commit: commit.to_owned(),
            clock,
            spans: Spans::default(),
            sampler: Mutex::default(),
            outputs,
        }
    }

    fn is_shown(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target().split("::").next().unwrap_or_default();
        let level = *metadata.level();
        level <= self.level && (level <= Level::INFO || OWN.contains(&target))
    }
}

impl Subscriber for Log {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.is_shown(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.is_shown(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.spans.open(span)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.spans.record(span, values);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let now = self.clock.now();
        let own = Fields::of_event(event);
        let level = *event.metadata().level();
        let is_kept = {
            let mut sampler = self.sampler.lock().unwrap_or_else(PoisonError::into_inner);
            sampler.keeps(level, own.message(), now)
        };
        if !is_kept {
            return;
        }
        let mut fields = self.spans.fields(event);
        fields.extend(own);
        let line = Line {
            level,
            time: now,
            place: self.is_placed.then(|| event.metadata()).and_then(line::place),
            commit: &self.commit,
            fields: &fields,
        };
        for output in &self.outputs {
            output.write(&line);
        }
    }

    fn enter(&self, span: &Id) {
        self.spans.enter(span);
    }

    fn exit(&self, span: &Id) {
        self.spans.exit(span);
    }

    fn clone_span(&self, span: &Id) -> Id {
        self.spans.hold(span);
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        self.spans.release(&span)
    }
}

#[cfg(test)]
mod tests;
