//! `dovetail observe`: plans next to a live Karpenter without acting; says what its own plans would have cost.

mod look;
mod table;

use std::{
    fs,
    io::IsTerminal,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use runtime::Clock;
use serde::Serialize;

use self::look::Look;
use crate::{
    answer::Answer,
    decisions::span,
    failure::{self, Failure},
    reply::{Format, Reply, formats},
    source::{self, Input, Needs, SourceArgs},
    terminal::aside,
};

/// Plan next to a live Karpenter without acting; report the difference in nodes and dollars.
///
/// Reads the cluster every so often for a while, or takes dumps of several times: each --from is one look, or a directory that
/// holds a directory for each. At every look the pods are given the nodes that dovetail would have; what those cost until the
/// next look is compared with what runs. Nothing is written: the role in deploy/viewer.yaml is enough.
///
///     dovetail observe --for 24h --every 5m -o json > day.json
///     dovetail observe --from looks/
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// How long a cluster is observed, such as 1h or 1d.
    #[arg(long = "for", value_name = "SPAN", default_value = "1h", value_parser = span)]
    lasting: SignedDuration,
    /// How often it is looked at.
    #[arg(long, value_name = "SPAN", default_value = "1m", value_parser = span)]
    every: SignedDuration,
    /// How to print it.
    #[arg(short, long, default_value = "table", value_parser = formats(&["table", "json", "yaml"]))]
    output: Format,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    reply: Reply,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Observation {
    from: Timestamp,
    to: Timestamp,
    looks: usize,
    theirs: Fleet,
    ours: Fleet,
    /// Claims that came and went.
    launches: usize,
    removals: usize,
    batches: Batches,
    /// Seconds from being made to having a node, of pods that got one in this time: half of them, and 95 of 100, waited no longer.
    waited_p50_s: Option<i64>,
    waited_p95_s: Option<i64>,
    differences: Vec<Difference>,
}

/// A fleet over a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
struct Fleet {
    spent_usd: f64,
    mean_usd_h: f64,
    mean_nodes: f64,
}

/// Looks at which pods waited, by whose nodes for them cost less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct Batches {
    all: usize,
    same: usize,
    cheaper: usize,
    dearer: usize,
}

/// One such look.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Difference {
    time: Timestamp,
    pods: usize,
    ours_usd_h: f64,
    theirs_usd_h: f64,
    delta_usd_mo: f64,
}

/// Nodes that cost so much more or less an hour are the same.
const SAME_USD_H: f64 = 0.0005;
const MONTH: f64 = 730.0;

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let (looks, input) = if args.source.place.from.is_empty() {
        watched(args)?
    } else {
        dumped(args)?
    };
    let observation = Observation::of(&looks).ok_or_else(|| too_few(looks.len()))?;
    let mut input = input.about_moves();
    input.assumed.push(
        "every look begins with their fleet, so ours never has what an earlier plan of ours would have left".to_owned(),
    );
    args.reply
        .answer(&input, ("Observation", &observation), args.output, false, |screen| {
            table::render(&observation, screen)
        })
}

fn too_few(looks: usize) -> Failure {
    Failure::new(
        "nothing to compare",
        format!(
            "{} taken, and a difference needs two at different times",
            if looks == 1 {
                "1 look was".to_owned()
            } else {
                format!("{looks} looks were")
            }
        ),
        "observe for longer with --for, or name dumps of several times with --from",
    )
}

/// Looks at a cluster, again and again.
fn watched(args: &Args) -> anyhow::Result<(Vec<Look>, Input)> {
    let clock = Clock::system();
    let began = clock.now();
    let mut input = source::read(&args.source, Needs::Decisions)?;
    let mut looks = vec![Look::of(&input)];
    while clock.now().duration_since(began) + args.every <= args.lasting {
        thread::sleep(Duration::try_from(args.every).unwrap_or_default());
        match source::read(&args.source, Needs::Decisions) {
            Ok(next) => {
                looks.push(Look::of(&next));
                input = next;
            }
            // What a server that is away does not show is not seen; the next look spans it.
            Err(error) => aside(&format!("{}\n", failure::text(&error))),
        }
        if !args.reply.quiet && std::io::stderr().is_terminal() {
            let since = crate::terminal::span(clock.now().duration_since(began).as_secs());
            aside(&format!(
                "\robserving for {since}; {} looks. Nothing is written to the cluster. ",
                looks.len()
            ));
        }
    }
    Ok((looks, input))
}

/// Looks that were taken before.
fn dumped(args: &Args) -> anyhow::Result<(Vec<Look>, Input)> {
    let mut looks = Vec::new();
    let mut last = None;
    for path in each(&args.source.place.from) {
        let mut one = args.source.clone();
        one.place.from = vec![path];
        let input = source::read(&one, Needs::Decisions)?;
        looks.push(Look::of(&input));
        last = Some(input);
    }
    looks.sort_by_key(|look| look.at);
    let input = last.ok_or_else(|| too_few(0))?;
    Ok((looks, input))
}

/// The dumps that paths name: each is one, unless it is a directory that holds directories.
fn each(paths: &[PathBuf]) -> Vec<PathBuf> {
    let inside = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut directories: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        directories.sort();
        directories
    };
    let dumps = paths.iter().flat_map(|path| match inside(path) {
        directories if directories.is_empty() => vec![path.clone()],
        directories => directories,
    });
    dumps.collect()
}

impl Observation {
    /// What looks come to, each lasting until the next; none of fewer than two.
    fn of(looks: &[Look]) -> Option<Self> {
        let (first, last) = (looks.first()?, looks.last()?);
        let seconds = last.at.duration_since(first.at).as_secs();
        if seconds <= 0 {
            return None;
        }
        let mut seen = Self {
            from: first.at,
            to: last.at,
            looks: looks.len(),
            theirs: Fleet::default(),
            ours: Fleet::default(),
            launches: 0,
            removals: 0,
            batches: Batches::default(),
            waited_p50_s: None,
            waited_p95_s: None,
            differences: Vec::new(),
        };
        for pair in looks.windows(2) {
            if let [now, next] = pair {
                seen.add(now, next);
            }
        }
        seen.theirs.average(seconds);
        seen.ours.average(seconds);
        let mut waited: Vec<i64> = looks
            .iter()
            .flat_map(|look| &look.waited)
            .filter(|(_, at, _)| *at >= first.at)
            .map(|(pod, _, wait)| (pod, *wait))
            .collect::<std::collections::BTreeMap<_, _>>()
            .into_values()
            .collect();
        waited.sort_unstable();
        let share = |percent: usize| waited.get((waited.len().saturating_sub(1)) * percent / 100).copied();
        (seen.waited_p50_s, seen.waited_p95_s) = (share(50), share(95));
        seen.differences
            .sort_by(|a, b| a.delta_usd_mo.abs().total_cmp(&b.delta_usd_mo.abs()).reverse());
        Some(seen)
    }

    #[expect(clippy::cast_precision_loss, reason = "printed to two places")]
    fn add(&mut self, now: &Look, next: &Look) {
        let hours = next.at.duration_since(now.at).as_secs() as f64 / 3600.0;
        self.theirs.add(now.theirs, hours);
        self.ours.add(now.ours, hours);
        let came: Vec<_> = next
            .claims
            .iter()
            .filter(|(name, _)| !now.claims.contains_key(*name))
            .collect();
        let gone = now.claims.keys().filter(|name| !next.claims.contains_key(*name));
        self.launches += came.len();
        self.removals += gone.count();
        if now.waiting == 0 {
            return;
        }
        let theirs_usd_h: f64 = came.iter().map(|(_, usd_h)| **usd_h).sum();
        let delta = now.launch_usd_h - theirs_usd_h;
        self.batches.all += 1;
        if delta.abs() < SAME_USD_H {
            self.batches.same += 1;
            return;
        }
        *(if delta < 0.0 {
            &mut self.batches.cheaper
        } else {
            &mut self.batches.dearer
        }) += 1;
        self.differences.push(Difference {
            time: now.at,
            pods: now.waiting,
            ours_usd_h: now.launch_usd_h,
            theirs_usd_h,
            delta_usd_mo: delta * MONTH,
        });
    }
}

impl Fleet {
    #[expect(clippy::cast_precision_loss, reason = "printed to two places")]
    fn add(&mut self, (nodes, usd_h): (usize, f64), hours: f64) {
        self.spent_usd += usd_h * hours;
        self.mean_nodes += nodes as f64 * hours;
    }

    #[expect(clippy::cast_precision_loss, reason = "printed to two places")]
    fn average(&mut self, seconds: i64) {
        let hours = seconds as f64 / 3600.0;
        self.mean_usd_h = self.spent_usd / hours;
        self.mean_nodes /= hours;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn look(at: &str, theirs: (usize, f64), ours: (usize, f64), claims: &[(&str, f64)], waiting: usize) -> Look {
        Look {
            at: format!("2026-09-13T{at}Z").parse().unwrap(),
            theirs,
            ours,
            claims: claims
                .iter()
                .map(|(name, usd_h)| ((*name).to_owned(), *usd_h))
                .collect::<BTreeMap<_, _>>(),
            waiting,
            launch_usd_h: 0.1,
            waited: Vec::new(),
        }
    }

    #[test]
    fn each_look_lasts_until_the_next() {
        let looks = [
            look("10:00:00", (4, 2.0), (3, 1.0), &[("a", 1.0), ("b", 1.0)], 0),
            look("11:00:00", (2, 1.0), (2, 1.0), &[("a", 1.0)], 0),
            look("13:00:00", (9, 9.0), (9, 9.0), &[("a", 1.0)], 0),
        ];
        let seen = Observation::of(&looks).unwrap();
        assert!((seen.theirs.spent_usd - 4.0).abs() < 1e-9 && (seen.ours.spent_usd - 3.0).abs() < 1e-9);
        assert!((seen.theirs.mean_nodes - 8.0 / 3.0).abs() < 1e-9);
        assert_eq!((seen.launches, seen.removals, seen.batches.all), (0, 1, 0));
        assert!(Observation::of(&looks[..1]).is_none(), "one look has no length");
    }

    #[test]
    fn nodes_for_the_same_pods_are_compared_by_what_they_cost() {
        let waits = |at: &str, claims: &[(&str, f64)], waiting| look(at, (1, 1.0), (1, 1.0), claims, waiting);
        let looks = [
            waits("10:00:00", &[], 5),
            waits("10:01:00", &[("a", 0.1)], 3),
            waits("10:02:00", &[("a", 0.1), ("b", 0.3)], 2),
            waits("10:03:00", &[("a", 0.1), ("b", 0.3), ("c", 0.05)], 0),
        ];
        let seen = Observation::of(&looks).unwrap();
        let Batches {
            all,
            same,
            cheaper,
            dearer,
        } = seen.batches;
        assert_eq!((all, same, cheaper, dearer), (3, 1, 1, 1));
        assert_eq!(seen.launches, 3);
        assert!(
            (seen.differences[0].delta_usd_mo + 0.2 * MONTH).abs() < 1e-6,
            "the greatest first"
        );
    }
}
