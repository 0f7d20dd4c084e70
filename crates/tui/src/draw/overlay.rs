//! What lies over a screen: what would come of removing nodes, and which keys there are.

use insight::{Dollars, rule::Class};
use ratatui_core::layout::Rect;

use crate::{
    answer::{Answer, Question, WhatIf},
    app::App,
    canvas::{Canvas, Line},
    figure,
    theme::Role,
};

const WIDTH: u16 = 78;
/// Lines of an answer, so that the frame does not jump when it comes.
const LEAST: u16 = 8;
/// Of nodes that come and of pods that find no place so many are named.
const NAMED: usize = 2;

fn centred(area: Rect, height: u16) -> Rect {
    let height = height.min(area.height);
    Rect::new(
        area.x + (area.width - WIDTH) / 2,
        area.y + (area.height - height) / 2,
        WIDTH,
        height,
    )
}

const KEYS: [&str; 18] = [
    "j k ↑ ↓ pgup pgdn g G  move       enter  open          esc  back",
    "1 nodes 2 pools 3 plan p pending t timeline 6 cost     tab  next screen",
    "w  why, full text      x  what if removed    space  mark for x",
    "/  filter: words, pool=data zone=b cpu<40 mem>90 $>0.5 age>7d",
    "   held drifted going waits spot od notready; ! negates",
    "s  sort next|$|cpu|mem|age|name   S  reverse    C M A N P  by column",
    "b  group by pool, zone, type, none      $  hour, day, month",
    "r  other resource in the second bar     z  freeze the screen",
    "c  copy what is here, or its change     y  yaml   d  describe   e  events",
    ":  go (nodes pools moves pending timeline money) or ask (status why plan",
    "   whatif cost budgets drift lint doctor); :sort LABEL=dsc",
    "in a node  [ ] other node     pending  a all pools, f what-if with the fix",
    "in time  ← → move, + - zoom, n this node only, e csv",
    "   f only acted, only refused, this reason, this pool, all",
    "T  theme: default, colour-blind, high-contrast, mono      q ctrl-c  quit",
    "NEXT: a move · held by pod, PDB, policy, budget · waits until · draining",
    "bars are requests over allocatable; full is good (blue), empty is orange",
    "top never changes the cluster",
];

pub(super) fn help(canvas: &mut Canvas<'_>, area: Rect) {
    canvas.dim();
    let place = centred(area, u16::try_from(KEYS.len() + 2).unwrap_or(20));
    let inside = canvas.frame(place, "keys", "esc");
    for (at, line) in (0..).zip(KEYS) {
        let line = if canvas.is_ascii() {
            line.replace("↑ ↓", "up down").replace("← →", "left right")
        } else {
            line.to_owned()
        };
        canvas.text(inside.x, inside.y + at, inside.right(), Role::Plain, &line);
    }
}

pub(super) fn what_if(app: &App, canvas: &mut Canvas<'_>, area: Rect, now_ms: u64, names: &[String]) {
    canvas.dim();
    let title = match names {
        [only] => format!("what if {} were removed", figure::short_name(only)),
        several => format!("what if {} nodes were removed", several.len()),
    };
    let is_ascii = canvas.is_ascii();
    let intro = if app.is_stale(now_ms) {
        "From the last snapshot, which is stale. A question only: nothing changes."
    } else {
        "A question: top changes nothing. Pods that wait have nodes on both sides."
    };
    let mut lines: Vec<Line> = Vec::new();
    match app.answer(&Question::Remove(names.to_vec()), now_ms) {
        Ok(Answer::Removal(found)) => table(&mut lines, found, is_ascii),
        Ok(Answer::Failed(why)) => lines.push((Role::Stop, why.clone()).into()),
        Ok(_) => {}
        Err(wait) => lines.push((Role::Secondary, wait.to_owned()).into()),
    }
    lines.extend(rules(app, names, now_ms));
    let height = u16::try_from(lines.len()).unwrap_or_default().max(LEAST) + 6;
    let inside = canvas.frame(centred(area, height), &title, "esc");
    canvas.text(inside.x, inside.y, inside.right(), Role::Secondary, intro);
    let room = usize::from(inside.height.saturating_sub(3));
    for (at, line) in (1..).zip(lines.iter().take(room)) {
        canvas.line(inside.x, inside.y + at, inside.right(), line);
    }
    let keys = "w why   c copy as a command   space in the list marks more nodes";
    canvas.text(inside.x, inside.bottom() - 2, inside.right(), Role::Secondary, keys);
    let first = names.first().map(String::as_str).unwrap_or_default();
    let command = format!("kubectl delete node {first} does it; it drains, PDBs hold");
    let command = figure::cut_end(&command, usize::from(inside.width), is_ascii);
    canvas.text(inside.x, inside.bottom() - 1, inside.right(), Role::Command, &command);
}

fn table(lines: &mut Vec<Line>, found: &WhatIf, is_ascii: bool) {
    let mut row = |name: &str, cells: [String; 3], remark: &str| {
        let mut line = Line::default();
        line.left(Role::Plain, name, 20, is_ascii);
        for cell in cells {
            line.right(Role::Plain, &cell, 11, is_ascii);
        }
        line.add(Role::Secondary, format!("  {remark}"));
        lines.push(line);
    };
    row("", ["BEFORE", "AFTER", "CHANGE"].map(str::to_owned), "");
    let (before, after) = found.usd_h;
    let delta = after - before;
    let nodes = found.nodes;
    let come = (nodes.1 + found.lost).saturating_sub(nodes.0);
    let remark = format!("{} lost, {come} new", found.lost);
    row("nodes", [count(nodes.0), count(nodes.1), change(nodes)], &remark);
    let hours = [figure::two_places(before), figure::two_places(after), signed_two(delta)];
    row("spend per hour", hours, "");
    let [was, is] = [before, after].map(|amount| figure::dollars(amount.monthly()));
    row("spend per month", [was, is, figure::signed(delta.monthly())], "");
    let moved = ["-".to_owned(), count(found.moved), String::new()];
    row("pods moved", moved, &lost_pods(found.gone));
    let unplaced = found.unplaced;
    let cells = [count(unplaced.0), count(unplaced.1), change(unplaced)];
    row("cannot be placed", cells, "");
    for node in found.new_nodes.iter().take(NAMED) {
        lines.push((Role::Plain, format!("new  {node}")).into());
    }
    for (pod, why) in found.stuck.iter().take(NAMED) {
        let text = figure::cut_end(&format!("x {pod}: {why}"), usize::from(WIDTH) - 4, is_ascii);
        lines.push((Role::Stop, text).into());
    }
}

fn lost_pods(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!("{} nobody makes again", figure::counted(count, "pod")),
    }
}

fn count(number: usize) -> String {
    figure::grouped(number as u128)
}

fn change((before, after): (usize, usize)) -> String {
    match after.cmp(&before) {
        std::cmp::Ordering::Less => format!("-{}", before - after),
        std::cmp::Ordering::Equal => "0".to_owned(),
        std::cmp::Ordering::Greater => format!("+{}", after - before),
    }
}

fn signed_two(amount: Dollars) -> String {
    let sign = if amount.0 > 0 { "+" } else { "" };
    format!("{sign}{}", figure::two_places(amount))
}

/// Which rules stop it today.
fn rules(app: &App, names: &[String], now_ms: u64) -> Option<Line> {
    let [only] = names else {
        return None;
    };
    let Ok(Answer::Node(why)) = app.answer(&Question::Node(only.clone()), now_ms) else {
        return None;
    };
    let stays = why.stays.iter();
    let hard = stays.filter(|stay| matches!(stay.class, Class::Held | Class::Waits));
    let words: Vec<&str> = hard.map(|stay| stay.word).collect();
    if words.is_empty() {
        return None;
    }
    let verb = if words.len() == 1 { "stops" } else { "stop" };
    let text = format!(
        "x {} {verb} this today: {} (w shows more)",
        figure::counted(words.len(), "rule"),
        words.join(", ")
    );
    Some((Role::Stop, text).into())
}
