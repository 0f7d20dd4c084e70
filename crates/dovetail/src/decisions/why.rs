//! `dovetail why ID`: one decision in full: what, why, what else was possible, on which inputs.

use ledger::{
    Action, Found, Id, NotAnId, Phase, Prefix, Record,
    words::{hourly, lasting, monthly_change},
};

use super::{
    csv::ratio,
    report,
    shelf::{Shelf, ShelfArgs},
    what,
};
use crate::{
    answer::Answer,
    document,
    failure::Failure,
    reply::Format,
    terminal::{Presentation, Screen, Zone, counted, grouped, hanging},
};

/// Answers for the decision whose id begins so.
pub(crate) fn why(text: &str, shelf: &ShelfArgs, format: Format, presentation: Presentation) -> anyhow::Result<Answer> {
    let prefix: Prefix = text.parse().map_err(|error: NotAnId| {
        Failure::new(
            error.to_string(),
            "ids are in logs, events and NodeClaims",
            "dovetail decisions",
        )
    })?;
    let shelf = shelf.read()?;
    let record = match shelf.ring.find(&prefix) {
        Found::One(record) => record,
        Found::Several(records) => return Err(several(text, &records, &shelf, presentation.screen().zone).into()),
        Found::None => return Err(none(text, &shelf, presentation.screen().zone).into()),
    };
    let screen = presentation.screen();
    let text = match format {
        Format::Json => document::json(&shelf.envelope("Decision", report::one(record, true)))?,
        Format::Yaml => document::yaml(&shelf.envelope("Decision", report::one(record, true)))?,
        Format::Name => format!("{}\n", record.id),
        _ => render(record, &shelf, &screen),
    };
    Ok(Answer {
        text,
        notes: shelf.closing(&screen),
        ..Answer::default()
    })
}

fn digits(shelf: &Shelf) -> usize {
    Id::digits_needed(shelf.ring.iter().map(|record| record.id))
}

fn none(text: &str, shelf: &Shelf, zone: Zone) -> Failure {
    let oldest = shelf.ring.iter().map(|record| record.time).min();
    let since = oldest.map_or(String::new(), |time| {
        format!(" back to {}", zone.to_the_second(time, shelf.now))
    });
    let held = grouped(shelf.ring.len() as u128);
    Failure::new(
        format!("no decision {text} in {}", shelf.name),
        format!("it holds {held} decisions{since}; it is not among them"),
        "check the cluster; dovetail decisions --since 30d --node N finds an id by its node",
    )
}

fn several(text: &str, records: &[&Record], shelf: &Shelf, zone: Zone) -> Failure {
    let digits = digits(shelf);
    let lines: Vec<String> = records
        .iter()
        .take(10)
        .map(|record| {
            let (id, time) = (record.id.short(digits), zone.to_the_second(record.time, shelf.now));
            format!("{id}  {time}  {} {}", record.word(), what(record))
        })
        .collect();
    Failure::usage(
        format!("{text} begins {}", counted(records.len(), "decision")),
        lines.join("\n        "),
        format!("write at least {digits} digits"),
    )
}

/// What happened, as the first line says it.
fn sentence(record: &Record, id: &str, shelf: &Shelf, zone: Zone) -> String {
    let time = zone.to_the_second(record.time, shelf.now);
    let pool = if record.pool.is_empty() {
        String::new()
    } else {
        format!(" ({})", record.pool)
    };
    let verb = match (record.action, record.phase) {
        (Action::Keep, _) => "did not disturb",
        (Action::Refuse, _) => "refused:",
        (Action::Replace, Phase::Aborted) => "did not replace",
        (Action::Delete, Phase::Aborted) => "did not delete",
        (Action::Launch, Phase::Aborted) => "did not bring up",
        (Action::Reboot, Phase::Aborted) => "did not reboot",
        _ => record.word(),
    };
    let what = what(record);
    let money = record
        .money
        .filter(|_| record.is_acted() || record.phase == Phase::Planned);
    let money = money.map(|money| format!(". {}", monthly_change(money.delta())));
    let forgone = record.forgone_usd_h.filter(|_| record.is_refused());
    let forgone = forgone.map(|usd| format!(". Forgoes ({})", monthly_change(usd).trim_start_matches('+')));
    let again = match record.count {
        1 => String::new(),
        count => format!(
            ", found {} times, last {}",
            grouped(count),
            zone.to_the_second(record.last_seen, shelf.now)
        ),
    };
    format!(
        "{id}  {time}  {verb} {what}{pool}, {}{again}{}",
        record.reason,
        money.or(forgone).unwrap_or_default()
    )
}

fn render(record: &Record, shelf: &Shelf, screen: &Screen) -> String {
    let id = record.id.short(digits(shelf));
    let width = screen.text_width();
    let mut text = hanging("", &sentence(record, &id, shelf, screen.zone), width);
    let mut part = |name: &str, lines: Vec<String>| {
        for (at, line) in lines.into_iter().enumerate() {
            let start = if at == 0 {
                format!("  {name:<10} ")
            } else {
                " ".repeat(13)
            };
            text.push_str(&if line.contains("  ") {
                format!("{start}{line}\n")
            } else {
                hanging(&start, &line, width)
            });
        }
    };
    let is_said = matches!(record.action, Action::Keep | Action::Refuse) || record.phase == Phase::Aborted;
    let is_of_pods = record.action == Action::Refuse && record.nodes == 0;
    if !record.detail.is_empty() && (is_of_pods || !is_said) {
        part("because", vec![record.detail.clone()]);
    }
    part("score", score(record).into_iter().collect());
    part("options", options(record));
    part("steps", steps(record, screen).into_iter().collect());
    if let Some(lift) = &record.lift {
        part("would need", vec![format!("{}: {}", lift.object, lift.change)]);
    }
    part("nodes", nodes(record));
    part("pods", pods(record, screen));
    part("inputs", inputs(record).into_iter().collect());
    if record.action != Action::Refuse || record.nodes > 0 {
        part(
            "again",
            vec![format!(
                "dovetail replay --id {id} --record DIR, where --flight-recorder DIR was set"
            )],
        );
    }
    text
}

fn score(record: &Record) -> Option<String> {
    let score = record.score?;
    let percent = |permille: i64| format!("{}.{}%", permille / 10, (permille % 10).abs());
    let value = match score.disruption_permille {
        0 => "no disruption".to_owned(),
        disruption => format!("{:.2}", ratio(score.saving_permille, disruption)),
    };
    let verdict = if score.approved { "" } else { ", too little" };
    Some(format!(
        "saves {} of the pool's spend for {} of its disruption: {value}, needs 0.50 (Balanced){verdict}",
        percent(score.saving_permille),
        percent(score.disruption_permille)
    ))
}

fn options(record: &Record) -> Vec<String> {
    let widest = record.options.iter().map(|offer| offer.offer.chars().count()).max();
    let widest = widest.unwrap_or(0).min(60);
    let line = |offer: &ledger::Offer| {
        let mark = if offer.verdict == "chosen" { "> " } else { "  " };
        let price = offer.usd_h.map(hourly).unwrap_or_default();
        format!("{mark}{:<widest$}  {price:>10}  {}", offer.offer, offer.verdict)
    };
    record.options.iter().map(line).collect()
}

fn steps(record: &Record, screen: &Screen) -> Option<String> {
    let begun = record.steps.first()?.at;
    let told: Vec<String> = record
        .steps
        .iter()
        .map(|step| format!("{} {}", step.step, lasting(step.at.duration_since(begun))))
        .collect();
    Some(told.join(&format!(" {} ", screen.arrow())))
}

fn nodes(record: &Record) -> Vec<String> {
    if record.nodes <= 1 {
        return Vec::new();
    }
    let mut lines: Vec<String> = record
        .there()
        .map(|target| {
            format!(
                "{}  {target}",
                if target.node.is_empty() {
                    &target.claim
                } else {
                    &target.node
                }
            )
        })
        .collect();
    let left = record.nodes.saturating_sub(lines.len());
    if left > 0 {
        lines.push(format!("and {left} more"));
    }
    lines
}

fn pods(record: &Record, screen: &Screen) -> Vec<String> {
    let mut lines: Vec<String> = record.pods.iter().map(|pod| pod.replace('→', screen.arrow())).collect();
    let left = record.pod_count.saturating_sub(lines.len());
    if left > 0 && !lines.is_empty() {
        lines.push(format!("and {} more", grouped(left as u128)));
    } else if left > 0 {
        lines.push(counted(left, "pod"));
    }
    lines
}

fn inputs(record: &Record) -> Option<String> {
    let inputs = &record.inputs;
    if inputs.digest.is_empty() {
        return None;
    }
    Some(format!(
        "{}, {}, {}, {}, engine {}, {} ms",
        inputs.digest,
        counted(inputs.pods, "pod"),
        counted(inputs.nodes, "node"),
        counted(inputs.offers, "offer"),
        inputs.engine,
        inputs.took_ms
    ))
}
