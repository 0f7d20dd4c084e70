//! Differences of CRDs for people: how each fares, and what is another, field by field.

use super::{
    compare::{Change, Effect},
    diff::{Compared, Report, State},
};
use crate::terminal::{Align, Cell, Role, Screen, Table, counted, hanging};

/// Differences that are told of one definition; documents have all.
const TOLD: usize = 20;

pub(super) fn render(report: &Report, screen: &Screen) -> String {
    let width = screen.text_width();
    let mut text = hanging("", &sentence(report), width);
    let mut table = Table::default();
    table.column("CRD", Align::Left);
    table.column("VERSION", Align::Left);
    table.column("IS", Align::Left);
    table.wrap_last();
    for one in &report.definitions {
        let role = if one.state == State::Same {
            Role::Good
        } else {
            Role::Warn
        };
        table.row(vec![
            one.name.clone().into(),
            one.versions.join(", ").into(),
            Cell::new(role, state(one)),
        ]);
    }
    text.push_str(&table.render(screen));
    for one in report.differing().filter(|one| !one.changes.is_empty()) {
        text.push_str(&format!("\n{}\n", screen.paint(Role::Heading, &one.name)));
        for change in one.changes.iter().take(TOLD) {
            text.push_str(&line(change, width));
        }
        if one.changes.len() > TOLD {
            text.push_str(&format!("  and {} more; -o json has all\n", one.changes.len() - TOLD));
        }
        for refused in one.refused.iter().take(TOLD) {
            let told = format!("{} as it is: {}", refused.object, refused.why);
            text.push_str(&hanging("  refuses   ", &told, width));
        }
    }
    text
}

fn line(change: &Change, width: usize) -> String {
    let word = match change.effect {
        Effect::Stricter => "stricter",
        Effect::Looser => "looser  ",
        Effect::Other => "other   ",
    };
    hanging(
        &format!("  {word}  "),
        &format!("{}: {}", change.path, change.text),
        width,
    )
}

fn sentence(report: &Report) -> String {
    let count = |state: State| report.definitions.iter().filter(|one| one.state == state).count();
    let (differ, missing) = (count(State::Differs), count(State::Missing));
    let all = report.definitions.len();
    if differ + missing == 0 {
        return format!("{}: all {all} CRDs are as this program has them.", report.frame.name);
    }
    let missing = match missing {
        0 => String::new(),
        missing => format!(", {missing} not installed"),
    };
    let verb = if differ == 1 { "differs" } else { "differ" };
    let effect = |effect: Effect| report.definitions.iter().map(|one| one.count(effect)).sum::<usize>();
    let refused: usize = report.definitions.iter().map(|one| one.refused.len()).sum();
    format!(
        "{}: {differ} of {all} CRDs {verb} from this program's{missing}: it is stricter in {} and looser in {}, and refuses {}.",
        report.frame.name,
        counted(effect(Effect::Stricter), "place"),
        counted(effect(Effect::Looser), "place"),
        counted(refused, "object"),
    )
}

fn state(one: &Compared) -> String {
    match one.state {
        State::Same => "the same".to_owned(),
        State::Missing => "not installed".to_owned(),
        State::Differs => {
            let parts = [
                (Effect::Stricter, "stricter"),
                (Effect::Looser, "looser"),
                (Effect::Other, "other"),
            ];
            let told: Vec<String> = parts
                .iter()
                .map(|(effect, word)| (one.count(*effect), word))
                .filter(|(count, _)| *count > 0)
                .map(|(count, word)| format!("{count} {word}"))
                .collect();
            let objects = match one.objects {
                0 => "no objects".to_owned(),
                all => format!("{} of {} refused", one.refused.len(), counted(all, "object")),
            };
            format!("differs: {}; {objects}", told.join(", "))
        }
    }
}
