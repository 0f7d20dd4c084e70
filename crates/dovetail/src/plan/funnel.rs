//! The way of a pod without a place as a picture: how many instance types each condition leaves, which one leaves none, and
//! the smallest change that would let it in.

use std::fmt::Write;

use insight::funnel::{Funnel, Step};
use unicode_width::UnicodeWidthStr;

use crate::terminal::{Role, Screen, bar, cut_in_the_middle, grouped, hanging, hourly, monthly};

const BAR: usize = 20;
/// Columns of a step besides name, note and bar.
const AROUND: usize = 32;
/// Notes narrower than this tell little.
const LEAST_NOTE: usize = 40;
const MOST_NAME: usize = 24;

/// The picture, a line for each condition that leaves fewer.
pub(crate) fn render(funnel: &Funnel, screen: &Screen) -> String {
    way(&funnel.node_pool, &funnel.steps, screen) + &rest(funnel, screen)
}

/// How far a pod comes in one pool.
pub(crate) fn way(node_pool: &str, steps: &[Step], screen: &Screen) -> String {
    let mut text = format!("   pool {node_pool}\n");
    let columns = Columns::of(steps, screen);
    let most = steps.first().map_or(0, |step| step.left);
    let mut before = most;
    for step in steps {
        let is_stop = step.left == 0 && before > 0;
        let role = if is_stop { Role::Stop } else { Role::Plain };
        let line = columns.line(step, before, most, screen);
        let _ = writeln!(text, "{}", screen.paint(role, line.trim_end()));
        before = step.left;
    }
    let stop = steps.iter().find(|step| step.left == 0);
    if let Some(stop) = stop.filter(|stop| brief(&stop.note).width() > columns.note) {
        text.push_str(&hanging("   stops at      ", brief(&stop.note), screen.text_width()));
    }
    text
}

fn rest(funnel: &Funnel, screen: &Screen) -> String {
    let width = screen.text_width();
    let mut text = String::new();
    if !funnel.other_pools.is_empty() {
        let pools = funnel
            .other_pools
            .iter()
            .map(|pool| format!("{}: {}", pool.node_pool, brief(&pool.why)));
        text.push_str(&hanging(
            "   other pools   ",
            &pools.collect::<Vec<_>>().join("; "),
            width,
        ));
    }
    if let Some(fix) = &funnel.fix {
        let price = fix
            .usd_h
            .map(|price| format!(", about +{}, +{}", hourly(price), monthly(price)));
        let line = format!("{}{}", fix.text, price.unwrap_or_default());
        text.push_str(&hanging("   smallest fix  ", &line, width));
        for line in &fix.patch {
            let role = if line.starts_with('+') { Role::Good } else { Role::Plain };
            let _ = writeln!(text, "     {}", screen.paint(role, line));
        }
    }
    for other in &funnel.other_fixes {
        text.push_str(&hanging("   or            ", other, width));
    }
    if let Some(words) = funnel
        .fix
        .as_ref()
        .map(|fix| &fix.whatif)
        .filter(|words| !words.is_empty())
    {
        let command = format!("dovetail whatif {}", words.join(" "));
        text.push_str(&hanging("   check first   ", &command, width));
    }
    // What keeps a whole NodePool out is no matter of the pod, and is told there.
    if funnel.fix.is_none() && funnel.stops_at().is_some_and(|step| step.name == "pool state") {
        let command = format!("dovetail why nodepool {}", funnel.node_pool);
        text.push_str(&hanging("   look at       ", &command, width));
    }
    text
}

/// How wide the parts of a step are.
struct Columns {
    name: usize,
    note: usize,
    has_bars: bool,
}

impl Columns {
    /// Bars go before notes are cut short.
    fn of(steps: &[Step], screen: &Screen) -> Self {
        let name = steps.iter().map(|step| step.name.width()).max().unwrap_or_default();
        let name = name.min(MOST_NAME);
        let note = steps.iter().map(|step| brief(&step.note).width()).max();
        let note = note.unwrap_or_default();
        let room = screen.text_width().saturating_sub(name + AROUND);
        let has_bars = screen.has_bars() && room >= BAR + note.min(LEAST_NOTE);
        let room = if has_bars { room - BAR } else { room };
        Self {
            name,
            note: note.min(room),
            has_bars,
        }
    }

    fn line(&self, step: &Step, before: usize, most: usize, screen: &Screen) -> String {
        let is_stop = step.left == 0 && before > 0;
        let lost = match before - step.left.min(before) {
            0 => String::new(),
            lost => format!("-{}", grouped(lost as u128)),
        };
        let bar = if self.has_bars {
            shrinking(step.left, most, screen)
        } else {
            String::new()
        };
        format!(
            "   {} {:name$}  {:note$}  {bar}{:>7}  {lost:>7}{}",
            if is_stop { "x" } else { " " },
            cut_in_the_middle(&step.name, self.name, screen.is_ascii),
            cut_in_the_middle(brief(&step.note), self.note, screen.is_ascii),
            grouped(step.left as u128),
            if is_stop { "  stops" } else { "" },
            name = self.name,
            note = self.note,
        )
    }
}

/// A condition without the part of its path that its name says.
pub(crate) fn brief(note: &str) -> &str {
    let note = note
        .strip_prefix("NodePool spec.template.spec.requirements ")
        .unwrap_or(note);
    let note = note.strip_prefix("NodePool spec.").unwrap_or(note);
    note.strip_prefix("Pod spec.").unwrap_or(note)
}

/// Bars are the square root of the count, because most of a catalogue goes at the first step.
fn shrinking(left: usize, most: usize, screen: &Screen) -> String {
    let root = |count: usize| (count as u64 * 1_000_000).isqrt();
    bar(root(left), root(most), BAR, screen.is_ascii)
}

#[cfg(test)]
mod tests {
    use insight::funnel::{Fix, RuledOut};

    use super::*;

    fn step(name: &str, note: &str, left: usize) -> Step {
        Step {
            name: name.into(),
            note: note.into(),
            left,
        }
    }

    fn funnel() -> Funnel {
        Funnel {
            node_pool: "general".into(),
            steps: vec![
                step("catalogue", "priced in us-east-1", 1345),
                step("arch", "amd64 by nodeSelector", 246),
                step("zone", "any", 246),
                step("pool limit", "limits.cpu 256, in use 252", 0),
            ],
            other_pools: vec![RuledOut {
                node_pool: "data".into(),
                why: "taint workload=data is not tolerated".into(),
            }],
            fix: Some(Fix {
                text: "NodePool/general: raise limits.cpu by 12".into(),
                patch: vec!["-     cpu: \"256\"".into(), "+     cpu: \"268\"".into()],
                usd_h: Some("0.2448".parse().unwrap()),
                whatif: vec!["--set".into(), "nodepool/general.spec.limits.cpu=268".into()],
            }),
            other_fixes: vec!["pod: lower the cpu request of container c from 4 to 3".into()],
        }
    }

    #[test]
    fn a_funnel_shows_where_it_closes_and_what_opens_it() {
        let screen = Screen {
            width: Some(100),
            ..Screen::default()
        };
        let expected = r#"   pool general
     catalogue   priced in us-east-1         ████████████████████  1,345
     arch        amd64 by nodeSelector       ████████▌░░░░░░░░░░░    246   -1,099
     zone        any                         ████████▌░░░░░░░░░░░    246
   x pool limit  limits.cpu 256, in use 252  ░░░░░░░░░░░░░░░░░░░░      0     -246  stops
   other pools   data: taint workload=data is not tolerated
   smallest fix  NodePool/general: raise limits.cpu by 12, about +$0.2448/h, +$179/mo
     -     cpu: "256"
     +     cpu: "268"
   or            pod: lower the cpu request of container c from 4 to 3
   check first   dovetail whatif --set nodepool/general.spec.limits.cpu=268
"#;
        assert_eq!(render(&funnel(), &screen), expected);
        assert_eq!(
            funnel().stops_at(),
            Some(&step("pool limit", "limits.cpu 256, in use 252", 0))
        );
    }
}
