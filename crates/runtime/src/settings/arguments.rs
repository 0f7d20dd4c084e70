//! The command line in the syntax of Go's flag package: `-flag value`, `--flag=value`, a bare `--switch`.

use std::collections::BTreeMap;

use super::{
    Notice, SettingsError,
    fault::closest,
    gates,
    options::{self, Kind},
};

/// What the command line says.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// By flag; of a flag given twice the last value counts.
    pub(super) flags: BTreeMap<&'static str, String>,
    pub(super) notices: Vec<Notice>,
}

impl Given {
    /// Notices about feature gates that do not exist, wherever the gates come from.
    pub(super) fn unknown_gates(&self, environment: impl Fn(&str) -> Option<String>) -> Vec<Notice> {
        let gates = self
            .flags
            .get(gates::FLAG)
            .cloned()
            .or_else(|| environment(gates::VARIABLE));
        gates.map(|gates| gates::unknown(&gates)).unwrap_or_default()
    }
}

pub(super) fn read(mut arguments: impl Iterator<Item = String>) -> Result<Given, SettingsError> {
    let mut given = Given::default();
    while let Some(argument) = arguments.next() {
        let dashes = argument.bytes().take(2).take_while(|byte| *byte == b'-').count();
        if argument == "--" {
            given.notices.extend(arguments.next().map(Notice::Stray));
            break;
        }
        let Some(text) = argument.get(dashes..).filter(|text| dashes > 0 && !text.is_empty()) else {
            given.notices.push(Notice::Stray(argument));
            break;
        };
        if text.starts_with(['-', '=']) {
            return Err(SettingsError::Syntax(argument));
        }
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let (flag, value) = one(name, value, &mut arguments)?;
        given.flags.insert(flag, value);
    }
    Ok(given)
}

/// A flag and its value, which may be the next argument.
fn one(
    name: &str,
    value: Option<String>,
    rest: &mut impl Iterator<Item = String>,
) -> Result<(&'static str, String), SettingsError> {
    if name == "h" || name == "help" {
        return Err(SettingsError::Help);
    }
    let Some(option) = options::ALL.iter().find(|option| option.flag == name) else {
        let flags = options::ALL.iter().map(|option| option.flag);
        return Err(SettingsError::UnknownFlag {
            flag: name.to_owned(),
            suggestion: closest(name, flags),
        });
    };
    let value = match (value, &option.kind) {
        (Some(value), _) => value,
        (None, Kind::Switch(_)) => "true".to_owned(),
        (None, _) => rest.next().ok_or(SettingsError::MissingValue(option.flag))?,
    };
    Ok((option.flag, value))
}
