//! Why a node came, stays or goes, for a person.

use insight::{
    Fill, Removal, State,
    fleet::NodeRow,
    rule::Class,
    why::{
        node::{NodeExplanation, PodRow},
        passing::Passing,
    },
};
use jiff::Timestamp;

use super::{history::Explained, nothing_to_fix};
use crate::{
    failure::Failure,
    terminal::{Amount, Role, Screen, bar, counted, hanging, percent, span},
};

/// Signs of a bar.
const BAR: usize = 20;
/// Pods that are named.
const MOST_PODS: usize = 6;
/// Moves that are named.
const MOST_MOVES: usize = 6;
/// A node younger than this leads with why it came.
const YOUNG: i64 = 15 * 60;

/// What of the answer is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    All,
    Came,
    Stays,
}

pub(super) fn render(explained: &Explained, now: Timestamp, part: Part, screen: &Screen) -> String {
    let why = &explained.node;
    let width = screen.text_width();
    let name = title(why);
    let first = match part {
        Part::Came => arrival(explained, &name),
        _ => sentence(why, &name, now, screen),
    };
    let mut text = hanging("", &first, width);
    text = text.replacen(&name, &screen.paint(Role::Heading, &name), 1);
    text.push_str(&hanging("  ", &facts(why), width));
    if why.node.cpu_m.allocatable > 0 && part == Part::All {
        text.push_str(&room(why, screen));
    }
    if part != Part::Stays {
        text.push_str(&origin(explained, part, screen));
        text.push_str(&notices(explained, now, screen));
    }
    if part == Part::Came {
        return text;
    }
    text.push_str(&stays(why, now, screen));
    text.push_str(&changes(why, screen));
    if part == Part::All {
        text.push_str(&line("pods", &pods(&why.pods), width));
    }
    text
}

fn line(name: &str, rest: &str, width: usize) -> String {
    hanging(&format!("  {name:10} "), rest, width)
}

/// Why it came, in a sentence.
fn arrival(explained: &Explained, name: &str) -> String {
    let why = &explained.node;
    let age = why.node.age_s.map_or("at a time nobody wrote down".to_owned(), |age| {
        format!("{} ago", span(age))
    });
    match (explained.launch(), &explained.decision, why.is_managed) {
        (_, _, false) => format!("{name} came {age}, and not from here: it has no NodeClaim of a NodePool."),
        (Some(launch), ..) => format!(
            "{name} came {age}: {} {} ({}).",
            launch.action, launch.text, launch.reason
        ),
        (None, Some(id), _) => {
            let id = crate::plan::short_id(id);
            format!("{name} came {age} by decision {id}, which this source does not hold.")
        }
        (None, None, _) => format!("{name} came {age}; nobody wrote down what for."),
    }
}

/// How it came: when, for whom, in which steps, and what else could have been bought.
fn origin(explained: &Explained, part: Part, screen: &Screen) -> String {
    let width = screen.text_width();
    let mut text = String::new();
    if let Some(came) = came(explained) {
        text.push_str(&line("came", &came, width));
    }
    let options = explained
        .launch()
        .map(|launch| launch.options.as_slice())
        .unwrap_or_default();
    for (at, option) in options.iter().enumerate().filter(|_| part == Part::Came) {
        text.push_str(&line(if at == 0 { "options" } else { "" }, option, width));
    }
    text
}

/// What the cloud said, and what was done about it.
fn notices(explained: &Explained, now: Timestamp, screen: &Screen) -> String {
    let mut text = String::new();
    for (at, notice) in explained.notices.iter().enumerate() {
        let done = match (notice.drained_at, &notice.decision) {
            (Some(done), Some(id)) => format!(
                "; drained for it at {} ({})",
                screen.zone.to_the_second(done, now),
                crate::plan::short_id(id)
            ),
            (Some(done), None) => format!("; drained for it at {}", screen.zone.to_the_second(done, now)),
            (None, _) => "; nothing was done".to_owned(),
        };
        let told = format!("{} {}{done}", screen.zone.to_the_second(notice.at, now), notice.text);
        text.push_str(&line(if at == 0 { "notices" } else { "" }, &told, screen.text_width()));
    }
    text
}

/// Which rules keep it, or where its pods go; and what removing it would take.
fn stays(why: &NodeExplanation, now: Timestamp, screen: &Screen) -> String {
    let width = screen.text_width();
    let mut text = String::new();
    if let Some(goes) = &why.goes {
        for step in goes.moves.iter().take(MOST_MOVES) {
            let told = format!("{} {} {}", step.pod, screen.arrow(), step.to);
            text.push_str(&line("moves", &told, width));
        }
    }
    for (at, stay) in why.stays.iter().enumerate() {
        let mark = if stay.class == Class::Worth || stay.class == Class::State {
            " "
        } else {
            "x"
        };
        let until = stay.lifts_at.map(|at| format!(", until {}", screen.zone.said(at, now)));
        let start = format!("  {:10} {mark} {:9} ", if at == 0 { "stays" } else { "" }, stay.word);
        let line = hanging(&start, &format!("{}{}", stay.text, until.unwrap_or_default()), width);
        let painted = format!("{} {}", screen.paint(Role::Stop, "x"), stay.word);
        text.push_str(&line.replacen(&format!("x {}", stay.word), &painted, 1));
    }
    if let Some(removal) = why.if_removed.as_ref().filter(|_| why.goes.is_none()) {
        text.push_str(&line("if removed", &removed(removal, why.node.usd_h.is_some()), width));
    }
    text
}

/// What the machine is called: by its claim until there is a node, and after.
fn title(why: &NodeExplanation) -> String {
    let is_claim = why.node.claim.as_ref() == Some(&why.node.name);
    format!("{}/{}", if is_claim { "nodeclaim" } else { "node" }, why.node.name)
}

fn passing(name: &str, state: State, passing: &Passing) -> String {
    let since = passing.since_s.map(|since| format!(" for {}", span(since)));
    let how = match state {
        State::Leaving => "going",
        State::Starting => "starting",
        _ => "launching",
    };
    format!("{name} has been {how}{}: {}.", since.unwrap_or_default(), passing.text)
}

fn sentence(why: &NodeExplanation, name: &str, now: Timestamp, screen: &Screen) -> String {
    if !why.is_managed {
        return format!(
            "{name} is not managed here: it has no NodeClaim of a NodePool. It is used as room for pods, never removed."
        );
    }
    if let Some(waits) = &why.passing {
        return passing(name, why.node.state, waits);
    }
    if let Some(goes) = &why.goes {
        let when = if goes.round == 1 { "now" } else { "next" };
        let instead = match goes.new_nodes.as_slice() {
            [] if goes.pods == 0 => "nothing on it needs a place".to_owned(),
            [] => "its pods go to nodes there are".to_owned(),
            [only] => format!(
                "{} {} {} comes instead",
                only.instance_type, only.capacity_type, only.zone
            ),
            several => format!("{} come instead", counted(several.len(), "node")),
        };
        return format!(
            "{name} goes {when} ({} by {}, {}): {instead}, {}/mo; {} {}.",
            goes.reason,
            goes.action,
            crate::plan::short_id(&goes.id),
            goes.delta_usd_mo.signed(),
            counted(goes.pods, "pod"),
            if goes.pods == 1 { "moves" } else { "move" }
        );
    }
    let held = why.stays.iter().filter(|stay| stay.class == Class::Held).count();
    let waits = why.stays.iter().find(|stay| stay.class == Class::Waits);
    let fill = fill_words(why.node.cpu_m);
    match (held, waits, why.lifting_usd_mo) {
        (0, Some(wait), saving) => {
            let until = wait
                .lifts_at
                .map(|at| format!(" until {}", screen.zone.said(at, now)))
                .unwrap_or_default();
            let worth = saving
                .map(|saving| format!("; {}/mo waits for it", saving.whole()))
                .unwrap_or_default();
            format!("{name} stays for now{until}: {}{worth}.", wait.text)
        }
        (0, None, _) => {
            let why_not = why
                .stays
                .first()
                .map_or("nothing plans to remove it".to_owned(), |stay| stay.text.clone());
            match why.node.age_s.filter(|age| *age < YOUNG) {
                Some(age) => format!("{name} came {} ago; {why_not}.", span(age)),
                None => format!("{name} stays: {why_not}."),
            }
        }
        (_, _, Some(saving)) => format!(
            "{name} stays{fill}: {} {} it; lifting {} is worth {}/mo.",
            counted(held, "rule"),
            if held == 1 { "keeps" } else { "keep" },
            if held == 1 { "it" } else { "them" },
            saving.whole()
        ),
        (_, _, None) => {
            let saves = why
                .if_removed
                .as_ref()
                .is_some_and(|gone| gone.delta_usd_mo < insight::Dollars::ZERO);
            format!(
                "{name} stays: {} {} it, and {}.",
                counted(held, "rule"),
                if held == 1 { "keeps" } else { "keep" },
                // A node may be dear and yet no move that is allowed may be worth what it disturbs.
                if saves {
                    "without it no move would be worth making"
                } else {
                    "removing it would save nothing"
                }
            )
        }
    }
}

/// How full a node is that could go; nothing where it has no room at all.
fn fill_words(cpu: Fill) -> String {
    if cpu.allocatable == 0 {
        return String::new();
    }
    format!(" although {} full", percent(cpu.requested, cpu.allocatable))
}

fn state_words(state: State) -> &'static str {
    match state {
        State::Launching => "launching",
        State::Starting => "starting",
        State::Ready => "ready",
        State::Cordoned => "cordoned",
        State::NotReady => "not ready",
        State::Leaving => "leaving",
    }
}

/// Pool, type, zone, price, age, image, claim.
fn facts(why: &NodeExplanation) -> String {
    let node = &why.node;
    let price = node.usd_h.map_or("price unknown".to_owned(), |price| {
        format!("{}, {}/mo", price.an_hour(), price.monthly().whole())
    });
    let mut parts: Vec<String> = node.pool.iter().cloned().collect();
    parts.extend(offer(node));
    parts.extend(node.zone.clone());
    parts.push(price);
    parts.extend(node.age_s.map(span));
    parts.push(state_words(node.state).to_owned());
    if node.drifted {
        parts.push("drifted".to_owned());
    }
    if !node.image.is_empty() {
        parts.push(node.image.clone());
    }
    parts.extend(node.claim.as_ref().map(|claim| format!("claim {claim}")));
    parts.join(" · ")
}

/// Type and kind of capacity, as far as they are known.
pub(super) fn offer(node: &NodeRow) -> Option<String> {
    let known: Vec<&str> = [&node.instance_type, &node.capacity_type]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    (!known.is_empty()).then(|| known.join(" "))
}

fn room(why: &NodeExplanation, screen: &Screen) -> String {
    let node = &why.node;
    let line = |name: &str, fill: Fill, words: String| {
        let share = percent(fill.requested, fill.allocatable);
        let role = Role::Fill(u32::try_from(fill.requested * 100 / fill.allocatable.max(1)).unwrap_or(100));
        let picture = if screen.has_bars() {
            let bar = bar(fill.requested, fill.allocatable, BAR, screen.is_ascii);
            format!("{} {share:>6}", screen.paint(role, &bar))
        } else {
            share
        };
        format!("  {name:10} {picture}   {words}\n")
    };
    let tenth = |amount: u64, one: u64| format!("{}.{}", amount / one, amount % one * 10 / one);
    let cpu = format!(
        "{} of {} cores",
        tenth(node.cpu_m.requested, 1000),
        tenth(node.cpu_m.allocatable, 1000)
    );
    let memory = format!(
        "{} of {} GiB, {} of {} pods",
        tenth(node.memory_mib.requested, 1024),
        tenth(node.memory_mib.allocatable, 1024),
        node.pods,
        node.pod_capacity
    );
    line("cpu", node.cpu_m, cpu) + &line("memory", node.memory_mib, memory)
}

fn came(explained: &Explained) -> Option<String> {
    let why = &explained.node;
    let age = why.node.age_s?;
    let came = &why.came;
    let by = match (&explained.decision, explained.launch()) {
        (Some(id), Some(launch)) => format!(" by {} ({} {})", crate::plan::short_id(id), launch.action, launch.text),
        (Some(id), None) => format!(" by {}", crate::plan::short_id(id)),
        (None, _) => String::new(),
    };
    let asked = if came.asked_cpu_m == 0 {
        String::new()
    } else {
        format!(
            " for pods that asked for {}.{} cores and {} GiB",
            came.asked_cpu_m / 1000,
            came.asked_cpu_m % 1000 / 100,
            came.asked_memory_mib / 1024
        )
    };
    let steps: Vec<String> = came
        .steps
        .iter()
        .map(|step| format!("{} {}", step.name, span(step.after_s)))
        .collect();
    let steps = if steps.is_empty() {
        String::new()
    } else {
        format!(": {} after the claim", steps.join(", "))
    };
    Some(format!("{} ago{by}{asked}{steps}", span(age)))
}

fn removed(removal: &Removal, is_priced: bool) -> String {
    let moved = removal.moves.len();
    let launched: usize = removal.new_nodes.iter().map(|node| node.pods).sum();
    let besides = if launched < moved { " and nodes there are" } else { "" };
    let new = match removal.new_nodes.as_slice() {
        [] => "nodes there are".to_owned(),
        [only] => format!(
            "one new {} {} in {} ({}){besides}",
            only.instance_type,
            only.capacity_type,
            only.zone,
            only.usd_h.an_hour()
        ),
        several => format!("{} new nodes{besides}", several.len()),
    };
    let pending = match removal.pending.as_slice() {
        [] => "none would be pending".to_owned(),
        [only] => format!("{} would be pending", only.pod),
        several => format!("{} would be pending, first {}", several.len(), several[0].pod),
    };
    let moves = match moved {
        0 => "no pod moves".to_owned(),
        1 => format!("1 pod moves to {new}"),
        several => format!("{several} pods move to {new}"),
    };
    let money = if is_priced {
        format!("{}/mo", removal.delta_usd_mo.signed())
    } else {
        "what it saves is not known".to_owned()
    };
    format!("{money}: {moves}; {pending}")
}

/// What to change, each once, as far as somebody can.
fn changes(why: &NodeExplanation, screen: &Screen) -> String {
    let held: Vec<_> = why
        .stays
        .iter()
        .filter(|stay| stay.class == Class::Held)
        .filter_map(|stay| stay.fix.as_ref())
        .collect();
    if held.is_empty() || why.lifting_usd_mo.is_none() {
        return String::new();
    }
    let mut text = hanging(
        "  smallest change ",
        &format!("{}, then it goes by itself", counted(held.len(), "edit")),
        screen.text_width(),
    );
    for fix in held {
        text.push_str(&hanging(
            "      ",
            &format!("{}: {}", fix.object, fix.change),
            screen.text_width(),
        ));
        for line in &fix.patch {
            let role = match line.chars().next() {
                Some('+') => Role::Good,
                Some('-') => Role::Stop,
                _ => Role::Plain,
            };
            text.push_str(&format!("        {}\n", screen.paint(role, line)));
        }
    }
    text
}

fn pods(pods: &[PodRow]) -> String {
    let daemons = pods.iter().filter(|pod| pod.is_daemon).count();
    let own: Vec<&PodRow> = pods.iter().filter(|pod| !pod.is_daemon).collect();
    let mut parts: Vec<String> = own
        .iter()
        .take(MOST_PODS)
        .map(|pod| {
            let cpu = format!("{}.{}", pod.cpu_m / 1000, pod.cpu_m % 1000 / 100);
            let memory = format!("{}.{}", pod.memory_mib / 1024, pod.memory_mib % 1024 * 10 / 1024);
            format!("{} {cpu} cpu {memory} GiB", pod.pod)
        })
        .collect();
    if own.len() > MOST_PODS {
        parts.push(format!("{} more", own.len() - MOST_PODS));
    }
    if daemons > 0 {
        parts.push(format!("{daemons} of DaemonSets"));
    }
    if parts.is_empty() {
        return "none".to_owned();
    }
    parts.join(" · ")
}

/// The changes that let the node go, as sentences and YAML.
pub(super) fn fix(why: &NodeExplanation) -> Result<String, Failure> {
    let fixes = why.stays.iter().filter_map(|stay| stay.fix.as_ref());
    let text = fixes.fold(String::new(), |text, fix| {
        let kept = fix.patch.iter().filter(|line| !line.starts_with('-'));
        let lines: String = kept
            .map(|line| format!("{}\n", line.get(2..).unwrap_or_default()))
            .collect();
        format!("{text}# {}: {}\n{lines}", fix.object, fix.change)
    });
    if text.is_empty() {
        return Err(nothing_to_fix(&format!("node/{}", why.node.name)));
    }
    Ok(text)
}
