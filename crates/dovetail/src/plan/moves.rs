//! What happens to the nodes there are, as a table: moves now and then, what waits and for what, what a rule holds.

use insight::{
    Dollars, NewNode,
    launch::Report,
    outlook::{Kept, Move, Outlook, Target},
};
use jiff::Timestamp;

use crate::terminal::{Align, Amount, Cell, Role, Screen, Table, counted, cut_in_the_middle, hanging, percent};

/// Rows of what is held, unless all are asked for.
const MOST_ROWS: usize = 12;
/// Digits of an id that are shown.
const DIGITS: usize = 4;

/// The whole answer: a sentence, nodes for pods that wait, and what happens to those there are.
pub(super) fn joined(
    launches: &str,
    report: &Report,
    outlook: &Outlook,
    now: Timestamp,
    with_all: bool,
    screen: &Screen,
) -> String {
    let rest = rendered(outlook, now, with_all, screen);
    let sentence = hanging("", &sentence(outlook, report, now, screen), screen.text_width());
    if report.pods.waiting == 0 {
        return if rest.is_empty() {
            sentence
        } else {
            format!("{sentence}\n{rest}")
        };
    }
    if outlook.total.nodes == 0 {
        return launches.to_owned();
    }
    let gap = if rest.is_empty() { "" } else { "\n" };
    format!("{launches}\n{sentence}{gap}{rest}")
}

/// What is the case with the nodes there are.
fn sentence(outlook: &Outlook, report: &Report, now: Timestamp, screen: &Screen) -> String {
    let total = &outlook.total;
    let nodes = counted(total.nodes, "node");
    if let Some(first) = outlook.paused.first().filter(|_| outlook.moves.is_empty()) {
        let until = first.until.map_or("until resumed".to_owned(), |until| {
            format!("until {}", screen.zone.said(until, now))
        });
        return format!(
            "Voluntary moves of {} are paused {until}: {:?}. Provisioning goes on.",
            counted(outlook.paused.len(), "NodePool"),
            first.reason
        );
    }
    let mut parts = Vec::new();
    if !outlook.moves.is_empty() {
        let verb = if outlook.moves.len() == 1 { "comes" } else { "come" };
        let more = if total.is_cut { " (more may follow)" } else { "" };
        let worth = worth(total.delta_usd_mo);
        parts.push(format!(
            "{} {verb} now and next, {worth}{more}",
            counted(outlook.moves.len(), "move")
        ));
    }
    let waiting: usize = outlook.waits.iter().map(|kept| kept.targets.len()).sum();
    if waiting > 0 {
        let verb = if waiting == 1 { "waits" } else { "wait" };
        parts.push(format!(
            "{} {verb} for a time{}",
            counted(waiting, "node"),
            forgone(total.waiting_usd_mo)
        ));
    }
    if total.held_nodes > 0 {
        let verb = if total.held_nodes == 1 { "is" } else { "are" };
        parts.push(format!(
            "{} {verb} held{}",
            counted(total.held_nodes, "node"),
            forgone(total.held_usd_mo)
        ));
    }
    if outlook.moves.is_empty() {
        let pods = if report.pods.waiting == 0 { "no pod waits, " } else { "" };
        let head = format!("Nothing to move: {nodes}, {pods}no move would save more than it disturbs");
        parts.insert(0, head);
    }
    let mut text = parts.join("; ");
    text.push('.');
    text
}

fn worth(delta: Dollars) -> String {
    match delta.0 {
        ..0 => format!("saving {}/mo", (-delta).whole()),
        0 => "at no cost".to_owned(),
        _ => format!("costing {}/mo", delta.whole()),
    }
}

fn forgone(saving: Dollars) -> String {
    if saving == Dollars::ZERO {
        return String::new();
    }
    format!(" ({}/mo)", saving.whole())
}

/// What is shown; narrow screens show less.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// Columns for the nodes.
    target: usize,
    has_pool: bool,
    /// Pods, and what is waited for.
    has_remarks: bool,
}

const WIDE: Layout = Layout {
    target: usize::MAX,
    has_pool: true,
    has_remarks: true,
};
const POOLLESS: Layout = Layout {
    has_pool: false,
    ..WIDE
};
const MIDDLE: Layout = Layout { target: 40, ..POOLLESS };
const NARROW: Layout = Layout {
    target: 21,
    has_remarks: false,
    ..POOLLESS
};

/// A row for each move, each group that waits, each that is held; and what it comes to.
fn rendered(outlook: &Outlook, now: Timestamp, with_all: bool, screen: &Screen) -> String {
    if outlook.moves.is_empty() && outlook.waits.is_empty() && outlook.held.is_empty() {
        return String::new();
    }
    let layouts = [WIDE, POOLLESS, MIDDLE, NARROW];
    let width = screen.text_width();
    let tables = layouts.map(|layout| table(outlook, now, with_all, layout, screen));
    let fitting = tables.iter().find(|table| table.width() <= width);
    let table = fitting.or(tables.last()).map(|table| table.render(screen));
    let mut text = table.unwrap_or_default();
    text.push_str(&legend(outlook, now, screen));
    let total = &outlook.total;
    if !outlook.moves.is_empty() {
        let saved = (total.usd_h - total.usd_h_after).or_nothing();
        let share = percent(saved.size().picos(), total.usd_h.size().picos());
        let line = format!(
            "{}, {}, {}/mo; {share} less than now",
            counted(total.nodes_after, "node"),
            total.usd_h_after.an_hour(),
            total.usd_h_after.monthly().whole()
        );
        text.push_str(&hanging("after all moves  ", &line, width));
    }
    if total.not_looked_at > 0 {
        let line = format!(
            "{} were not looked at within this answer's work",
            counted(total.not_looked_at, "node")
        );
        text.push_str(&hanging("partial  ", &line, width));
    }
    text
}

fn table(outlook: &Outlook, now: Timestamp, with_all: bool, layout: Layout, screen: &Screen) -> Table {
    let mut table = Table::default();
    table.column("ID", Align::Left);
    table.column("WHEN", Align::Left);
    table.column("ACTION", Align::Left);
    table.column("TARGET", Align::Left);
    if layout.has_pool {
        table.column("POOL", Align::Left);
    }
    table.column("REASON", Align::Left);
    table.column("$/MO", Align::Right);
    if layout.has_remarks {
        table.column("PODS", Align::Right);
        table.column("WAITS FOR", Align::Left);
    }
    for step in &outlook.moves {
        table.row(move_cells(step, layout, screen));
    }
    let kept = outlook.waits.iter().map(|kept| (kept, "wait"));
    let kept: Vec<_> = kept.chain(outlook.held.iter().map(|kept| (kept, "held"))).collect();
    let shown = if with_all { kept.len() } else { MOST_ROWS };
    for (kept, word) in kept.iter().take(shown) {
        table.row(kept_cells(kept, word, now, layout, with_all, screen));
    }
    if kept.len() > shown {
        let more = kept.iter().skip(shown).map(|(kept, _)| kept.targets.len()).sum();
        table.line(format!(
            "      {} more in other rows (--all lists them)",
            counted(more, "node")
        ));
    }
    table
}

fn move_cells(step: &Move, layout: Layout, screen: &Screen) -> Vec<Cell> {
    let when = match step.round {
        1 => "now".to_owned(),
        round => format!("then {round}"),
    };
    let coming = match step.new_nodes.as_slice() {
        [] => String::new(),
        nodes => format!(" {} {}", screen.arrow(), launches(nodes)),
    };
    let target = format!("{}{coming}", targets(&step.targets, false));
    let mut cells = vec![
        Cell::new(Role::Command, short_id(&step.id)),
        when.into(),
        step.action.into(),
        cut_in_the_middle(&target, layout.target, screen.is_ascii).into(),
    ];
    if layout.has_pool {
        cells.push(step.pools.join(", ").into());
    }
    let money = if step.delta_usd_mo.0 < 0 {
        Role::Good
    } else {
        Role::Plain
    };
    cells.extend([
        step.reason.into(),
        Cell::new(money, step.delta_usd_mo.signed()),
        step.pods.to_string().into(),
        if step.round == 1 {
            "-".into()
        } else {
            format!("round {}", step.round - 1).into()
        },
    ]);
    cells
}

fn kept_cells(kept: &Kept, word: &str, now: Timestamp, layout: Layout, with_all: bool, screen: &Screen) -> Vec<Cell> {
    let role = if word == "held" { Role::Warn } else { Role::Secondary };
    let when = kept.lifts_at.map_or("-".to_owned(), |at| screen.zone.moment(at, now));
    let mut cells = vec![
        Cell::new(role, word),
        when.into(),
        "keep".into(),
        cut_in_the_middle(&targets(&kept.targets, with_all), layout.target, screen.is_ascii).into(),
    ];
    if layout.has_pool {
        cells.push(kept.pool.clone().into());
    }
    let saving = kept
        .saving_usd_mo
        .map_or("-".to_owned(), |saving| format!("({})", saving.whole()));
    cells.extend([
        kept.rule.into(),
        saving.into(),
        kept.pods.to_string().into(),
        kept.word.into(),
    ]);
    cells
}

/// What the words in the last column stand for.
fn legend(outlook: &Outlook, now: Timestamp, screen: &Screen) -> String {
    let mut told: Vec<(&str, String)> = Vec::new();
    for kept in outlook.waits.iter().chain(&outlook.held).take(MOST_ROWS) {
        if told.iter().any(|(word, _)| *word == kept.word) {
            continue;
        }
        let until = kept.lifts_at.map(|at| format!(", until {}", screen.zone.said(at, now)));
        told.push((kept.word, format!("{}{}", kept.text, until.unwrap_or_default())));
    }
    let lines = told
        .iter()
        .map(|(word, text)| hanging(&format!("  {word:8} "), text, screen.text_width()));
    let text: String = lines.collect();
    let dimmed = text.lines().map(|line| screen.paint(Role::Secondary, line));
    dimmed.fold(String::new(), |text, line| text + &line + "\n")
}

/// Nodes in a few words: one with its type, several by name, many by number.
fn targets(targets: &[Target], with_all: bool) -> String {
    match targets {
        [] => "-".to_owned(),
        [only] => format!("{} {} {}", only.node, only.instance_type, short(&only.capacity_type)),
        [first, second] => format!("{}, {}", first.node, second.node),
        several if with_all => several
            .iter()
            .map(|target| target.node.as_str())
            .collect::<Vec<_>>()
            .join(", "),
        [first, ..] => format!("{}, first {}", counted(targets.len(), "node"), first.node),
    }
}

fn launches(nodes: &[NewNode]) -> String {
    match nodes {
        [only] => format!("{} {}", only.instance_type, short(&only.capacity_type)),
        several => counted(several.len(), "new node"),
    }
}

fn short(capacity_type: &str) -> &str {
    match capacity_type {
        "on-demand" => "od",
        other => other,
    }
}

pub(crate) fn short_id(id: &str) -> String {
    id.chars().take(DIGITS).collect()
}
