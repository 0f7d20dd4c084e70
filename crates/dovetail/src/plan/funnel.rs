//! How far a pod without a place came: how many instance types each condition leaves, which one leaves none, and the
//! smallest change that would let it in.

use std::fmt::Write;

use model::price::Price;
use packing::explain::{self, Explanation, PoolFunnel};
use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthStr;

use super::report::usd;
use crate::terminal::{Role, Screen, bar, cut_in_the_middle, grouped, hanging, hourly, monthly};

/// The way of one pod through the NodePool where it gets furthest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Funnel {
    pub(crate) node_pool: String,
    /// In the order they are checked; the first is what there is before any condition.
    pub(crate) steps: Vec<Step>,
    /// Other NodePools, and what rules each out.
    pub(crate) other_pools: Vec<RuledOut>,
    /// The smallest change that helps.
    pub(crate) fix: Option<Fix>,
    /// Other changes that help, as sentences.
    pub(crate) other_fixes: Vec<String>,
}

/// One condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    /// What is looked at: `arch`, `zone`, `fits`, …
    pub(crate) name: String,
    /// What is asked of it.
    pub(crate) note: String,
    /// How many instance types are left.
    pub(crate) left: usize,
}

/// A NodePool the pod has no use for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RuledOut {
    pub(crate) node_pool: String,
    pub(crate) why: String,
}

/// A change that lets the pod in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fix {
    /// What to change: `NodePool/general: raise limits.cpu by 12`.
    pub(crate) text: String,
    /// Lines of YAML, each with `+`, `-` or a blank in front.
    pub(crate) patch: Vec<String>,
    /// What the node it then gets costs.
    #[serde(with = "usd::maybe")]
    pub(crate) usd_h: Option<Price>,
}

impl Fix {
    fn of(fix: &explain::Fix) -> Self {
        let texts: Vec<_> = fix.changes.iter().map(|change| change.text.as_str()).collect();
        let lines = fix.changes.iter().flat_map(|change| change.patch.lines());
        Self {
            text: texts.join("; and "),
            patch: lines.map(|line| format!("  {line}")).collect(),
            usd_h: fix.launch.as_ref().map(|launch| launch.price),
        }
    }
}

/// What there is, and every condition that leaves fewer, up to the one that leaves none.
fn steps(funnel: &PoolFunnel) -> Vec<Step> {
    let until = funnel.blocking.map_or(funnel.stages.len(), |at| at + 1);
    let mut before = usize::MAX;
    let mut steps = Vec::new();
    for stage in &funnel.stages[..until] {
        if stage.remaining < before {
            steps.push(Step {
                name: stage.constraint.name(),
                note: stage.text.clone(),
                left: stage.remaining,
            });
        }
        before = stage.remaining;
    }
    steps
}

const BAR: usize = 20;
/// Columns of a step besides name, note and bar.
const AROUND: usize = 32;
/// Notes narrower than this tell little.
const LEAST_NOTE: usize = 40;
const MOST_NAME: usize = 24;

impl Funnel {
    /// The NodePool that a change would help, or where the pod gets furthest, and what else is worth a line; none for pods that were not tried.
    pub(crate) fn of(explanation: &Explanation) -> Option<Self> {
        let pools = explanation.pools.iter();
        let fix = explanation.fixes.first();
        let helped = fix.and_then(|fix| pools.clone().find(|pool| Some(&pool.pool) == fix.node_pool.as_ref()));
        // Of pools that are equally far the heaviest, which comes first.
        let furthest = helped.or_else(|| pools.clone().rev().max_by_key(|pool| pool.progress()))?;
        let others = pools.filter(|pool| pool.pool != furthest.pool);
        let ruled_out = |pool: &PoolFunnel| RuledOut {
            node_pool: pool.pool.to_string(),
            why: pool
                .blocking_stage()
                .map_or_else(String::new, |stage| stage.text.clone()),
        };
        Some(Self {
            node_pool: furthest.pool.to_string(),
            steps: steps(furthest),
            other_pools: others.map(ruled_out).collect(),
            fix: fix.map(Fix::of),
            other_fixes: explanation.fixes.iter().skip(1).map(|fix| Fix::of(fix).text).collect(),
        })
    }

    /// The condition that leaves nothing.
    pub(crate) fn stops_at(&self) -> Option<&Step> {
        self.steps.iter().find(|step| step.left == 0)
    }

    pub(crate) fn render(&self, screen: &Screen) -> String {
        let mut text = format!("   pool {}\n", self.node_pool);
        let columns = Columns::of(&self.steps, screen);
        let most = self.steps.first().map_or(0, |step| step.left);
        let mut before = most;
        for step in &self.steps {
            let is_stop = step.left == 0 && before > 0;
            let role = if is_stop { Role::Stop } else { Role::Plain };
            let line = columns.line(step, before, most, screen);
            let _ = writeln!(text, "{}", screen.paint(role, line.trim_end()));
            before = step.left;
        }
        if let Some(stop) = self.stops_at().filter(|stop| brief(&stop.note).width() > columns.note) {
            text.push_str(&hanging("   stops at      ", brief(&stop.note), screen.text_width()));
        }
        text + &self.render_rest(screen)
    }

    fn render_rest(&self, screen: &Screen) -> String {
        let width = screen.text_width();
        let mut text = String::new();
        if !self.other_pools.is_empty() {
            let pools = self
                .other_pools
                .iter()
                .map(|pool| format!("{}: {}", pool.node_pool, brief(&pool.why)));
            text.push_str(&hanging(
                "   other pools   ",
                &pools.collect::<Vec<_>>().join("; "),
                width,
            ));
        }
        if let Some(fix) = &self.fix {
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
        for other in &self.other_fixes {
            text.push_str(&hanging("   or            ", other, width));
        }
        text
    }
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
fn brief(note: &str) -> &str {
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
            }),
            other_fixes: vec!["pod: lower the cpu request of container c from 4 to 3".into()],
        }
    }

    #[test]
    fn a_funnel_shows_where_it_closes_and_what_opens_it() {
        let screen = Screen {
            width: Some(100),
            has_colour: false,
            is_ascii: false,
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
"#;
        assert_eq!(funnel().render(&screen), expected);
        assert_eq!(
            funnel().stops_at(),
            Some(&step("pool limit", "limits.cpu 256, in use 252", 0))
        );
    }
}
