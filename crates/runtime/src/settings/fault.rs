//! What is wrong with the settings: faults that stop the start, with upstream's words where it has some, and notices
//! about what is used otherwise than it was meant.

/// Why the controller does not start. Upstream's text where upstream fails too.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// `--help` was asked for; print [`crate::settings::usage`] and end well.
    #[error("flag: help requested")]
    Help,
    /// Not the form of a flag.
    #[error("parsing flags, bad flag syntax: {0}")]
    Syntax(String),
    /// No such flag.
    #[error("parsing flags, flag provided but not defined: -{flag}{}", suggestion.map(|known| format!("; did you mean --{known}?")).unwrap_or_default())]
    UnknownFlag {
        /// As given.
        flag: String,
        /// The known flag most like it.
        suggestion: Option<&'static str>,
    },
    /// A flag at the end without its value.
    #[error("parsing flags, flag needs an argument: -{0}")]
    MissingValue(&'static str),
    /// A value that a flag cannot have.
    #[error("parsing flags, invalid value {value:?} for flag -{flag}: {reason}")]
    Value {
        /// Which flag.
        flag: &'static str,
        /// As given.
        value: String,
        /// What is wrong.
        reason: String,
    },
    /// A switch that is neither `true` nor `false`.
    #[error(
        "parsing flags, invalid boolean value {value:?} for -{flag}: {value:?} is not a valid value, must be true or false"
    )]
    Switch {
        /// Which flag.
        flag: &'static str,
        /// As given.
        value: String,
    },
    /// A choice that does not exist.
    #[error(
        "validating cli flags / env vars, invalid {variable} {value:?}{}",
        choices_of(choices)
    )]
    Choice {
        /// The environment variable of the option.
        variable: &'static str,
        /// As given.
        value: String,
        /// What can be chosen.
        choices: &'static [&'static str],
    },
    /// A number too large or too small for its purpose.
    #[error("validating cli flags / env vars, invalid {variable} {value:?}, must be {must}")]
    Range {
        /// The environment variable of the option.
        variable: &'static str,
        /// As given.
        value: String,
        /// What it must be.
        must: &'static str,
    },
    /// A setting of a provider that cannot be. Upstream's words.
    #[error("validating options, {0}")]
    Provider(String),
    /// Feature gates that cannot be read.
    #[error("parsing feature gates, {0}")]
    FeatureGates(String),
    /// A scheduler configuration that cannot be used.
    #[error("parsing scheduler config, {0}")]
    SchedulerConfig(String),
}

fn choices_of(choices: &[&str]) -> String {
    let named: Vec<String> = choices
        .iter()
        .filter(|choice| !choice.is_empty())
        .map(|choice| format!("{choice:?}"))
        .collect();
    format!(", must be one of {}", named.join(", "))
}

/// Something about the settings that is worth a line in the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// An environment variable that cannot be read; the default is used, as upstream does.
    #[error(
        "environment variable {variable} has the value {value:?}, which is not {expected}; using the default {default}"
    )]
    Variable {
        /// Which variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        expected: &'static str,
        /// What is used instead.
        default: String,
    },
    /// A feature gate that does not exist; it is ignored, as upstream does.
    #[error("feature gate {gate:?} is not known and is ignored{}", suggestion.map(|known| format!("; did you mean {known}?")).unwrap_or_default())]
    Gate {
        /// As given.
        gate: String,
        /// The known gate most like it.
        suggestion: Option<&'static str>,
    },
    /// Arguments that are no flags; they are ignored, with all that follows them, as upstream does.
    #[error("argument {0:?} is not a flag: it and all arguments after it are ignored")]
    Stray(String),
    /// `--enable-profiling`
    #[error("--enable-profiling has no effect: there is no Go profiler to serve")]
    NoProfiler,
}

/// The known name most like a misspelt one; none when nothing is alike.
pub(super) fn closest(misspelt: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let near = |name: &&'static str| distance(misspelt, name);
    known
        .min_by_key(near)
        .filter(|name| distance(misspelt, name) <= misspelt.len() / 3)
}

/// How many letters must be changed, added or dropped to make one text of the other.
fn distance(one: &str, two: &str) -> usize {
    let mut row: Vec<usize> = (0..=two.chars().count()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = at;
        let mut left = at + 1;
        for (other, cell) in two.chars().zip(row.iter_mut().skip(1)) {
            let changed = diagonal + usize::from(letter != other);
            diagonal = *cell;
            left = changed.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
