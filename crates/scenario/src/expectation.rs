//! How a story must end, in sentences that people and we can read.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;

use crate::{Tally, World, ground::text, time};

/// A sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expectation {
    /// As it was written.
    pub(crate) sentence: String,
    what: What,
    /// When it must hold.
    pub(crate) when: When,
}

/// When something must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    AtTheEnd,
    At(Duration),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    AllPodsRun(Option<String>),
    Nodes(Bound),
    MostNodes(u64),
    Zones(u64),
    NoNodeIn(String),
    LongestWait(Duration),
    Waiting(u64),
    WaitingIsExplained,
    Bill(u128),
    Hourly(u128),
    Evicted(Bound),
    Disrupted(Bound),
    NotDisruptedBetween(Duration, Duration),
    Launched(Bound),
    Taken(Bound),
    Capacity(Bound, String),
    Image(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    AtMost(u64),
    AtLeast(u64),
}

impl Bound {
    fn miss(self, count: u64, what: &str) -> Option<String> {
        match self {
            Self::AtMost(most) if count > most => Some(format!("{count} {what}, at most {most} should be")),
            Self::AtLeast(least) if count < least => Some(format!("{count} {what}, at least {least} should be")),
            _ => None,
        }
    }
}

/// Every form a sentence may have.
pub(crate) const FORMS: [&str; 16] = [
    "all pods run [WHEN]",
    "all pods of NAME run [WHEN]",
    "at most|at least N nodes [WHEN]",
    "never more than N nodes",
    "nodes in at least N zones [WHEN]",
    "no node in ZONE [WHEN]",
    "no pod waits longer than TIME",
    "N pods wait [WHEN]",
    "every waiting pod is explained [WHEN]",
    "the bill is at most $X [WHEN]",
    "an hour costs at most $X [WHEN]",
    "at most|at least N pods are evicted [WHEN]",
    "at most|at least N nodes are disrupted|launched|taken [WHEN]",
    "at most|at least N nodes are spot|on-demand [WHEN]",
    "no node is disrupted between TIME and TIME",
    "every node runs image NAME [WHEN]",
];

/// What is known when a sentence is judged.
pub(crate) struct Scene<'a> {
    pub(crate) world: &'a World,
    pub(crate) tally: &'a Tally,
    pub(crate) began: Timestamp,
}

impl Expectation {
    /// Reads a sentence.
    pub(crate) fn read(sentence: &str) -> Result<Self, String> {
        let wrong = || {
            let forms: Vec<String> = FORMS.iter().map(|form| format!("  {form}")).collect();
            format!(
                "{sentence:?} is no sentence that can be checked; the forms are, with WHEN being `at the end`, `by 10m` or `at 10m`:\n{}",
                forms.join("\n")
            )
        };
        let words: Vec<&str> = sentence.trim_end_matches('.').split_whitespace().collect();
        let (words, when) = match words.as_slice() {
            [rest @ .., "by" | "at", time] if !rest.is_empty() && time::parse(time).is_ok() => {
                (rest, When::At(time::parse(time)?))
            }
            [rest @ .., "at", "the", "end"] | rest => (rest, When::AtTheEnd),
        };
        let what = What::read(words).ok_or_else(wrong)?;
        Ok(Self {
            sentence: sentence.to_owned(),
            what,
            when,
        })
    }

    /// Why it does not hold now; none when it does.
    pub(crate) fn miss(&self, scene: &Scene<'_>) -> Option<String> {
        self.what.miss(scene).map(|why| format!("{}: {why}", self.sentence))
    }
}

fn number(word: &str) -> Option<u64> {
    if word == "no" { Some(0) } else { word.parse().ok() }
}

fn bound(words: [&str; 3]) -> Option<Bound> {
    match words {
        ["at", "most", count] => Some(Bound::AtMost(number(count)?)),
        ["at", "least", count] => Some(Bound::AtLeast(number(count)?)),
        _ => None,
    }
}

/// `$1.25` in 10⁻¹² dollars.
fn picos(word: &str) -> Option<u128> {
    let price: model::price::Price = word.strip_prefix('$')?.parse().ok()?;
    Some(u128::from(price.picos()))
}

impl What {
    fn read(words: &[&str]) -> Option<Self> {
        Some(match words {
            ["all", "pods", "run"] => Self::AllPodsRun(None),
            ["all", "pods", "of", name, "run"] => Self::AllPodsRun(Some((*name).to_owned())),
            ["never", "more", "than", count, "nodes"] => Self::MostNodes(number(count)?),
            ["nodes", "in", "at", "least", count, "zones"] => Self::Zones(number(count)?),
            ["no", "node", "in", zone] => Self::NoNodeIn((*zone).to_owned()),
            ["no", "nodes"] => Self::Nodes(Bound::AtMost(0)),
            ["no", "pod", "waits", "longer", "than", limit] => Self::LongestWait(time::parse(limit).ok()?),
            [count, "pods" | "pod", "wait" | "waits"] => Self::Waiting(number(count)?),
            ["every", "waiting", "pod", "is", "explained"] => Self::WaitingIsExplained,
            ["the", "bill", "is", "at", "most", amount] => Self::Bill(picos(amount)?),
            ["an", "hour", "costs", "at", "most", amount] => Self::Hourly(picos(amount)?),
            ["every", "node", "runs", "image", name] => Self::Image((*name).to_owned()),
            ["no", "node", "is", "disrupted", "between", from, "and", to] => {
                Self::NotDisruptedBetween(time::parse(from).ok()?, time::parse(to).ok()?)
            }
            ["no", "node", "is", "disrupted"] => Self::Disrupted(Bound::AtMost(0)),
            ["no", "pod", "is", "evicted"] => Self::Evicted(Bound::AtMost(0)),
            [a, b, c, "nodes" | "node"] => Self::Nodes(bound([a, b, c])?),
            [a, b, c, "pods" | "pod", "are" | "is", "evicted"] => Self::Evicted(bound([a, b, c])?),
            [a, b, c, "nodes" | "node", "are" | "is", "disrupted"] => Self::Disrupted(bound([a, b, c])?),
            [a, b, c, "nodes" | "node", "are" | "is", "launched"] => Self::Launched(bound([a, b, c])?),
            [a, b, c, "nodes" | "node", "are" | "is", "taken"] => Self::Taken(bound([a, b, c])?),
            [a, b, c, "nodes" | "node", "are" | "is", kind @ ("spot" | "on-demand")] => {
                Self::Capacity(bound([a, b, c])?, (*kind).to_owned())
            }
            _ => return None,
        })
    }

    fn miss(&self, scene: &Scene<'_>) -> Option<String> {
        let (world, tally) = (scene.world, scene.tally);
        let nodes = tally.nodes.len() as u64;
        match self {
            Self::AllPodsRun(of) => not_running(world, of.as_deref()),
            Self::Nodes(bound) => bound.miss(nodes, "nodes are there"),
            Self::MostNodes(most) => Bound::AtMost(*most).miss(tally.most_nodes as u64, "nodes were there at a time"),
            Self::Zones(least) => {
                let mut zones: Vec<&String> = tally.nodes.values().collect();
                zones.sort_unstable();
                zones.dedup();
                Bound::AtLeast(*least).miss(zones.len() as u64, "zones have nodes")
            }
            Self::NoNodeIn(zone) => {
                let there = tally.nodes.values().filter(|there| *there == zone).count();
                (there > 0).then(|| format!("{there} nodes are in {zone}"))
            }
            Self::LongestWait(limit) => longest_wait(scene, *limit),
            Self::Waiting(count) => {
                let waiting = tally.waiting.len() as u64;
                (waiting != *count).then(|| format!("{waiting} pods wait"))
            }
            Self::WaitingIsExplained => unexplained(world),
            Self::Bill(most) => dear(world.region.bill().spent_picos, *most, "was spent"),
            Self::Hourly(most) => dear(
                u128::from(world.region.bill().hourly.picos()),
                *most,
                "is an hour's price",
            ),
            Self::Evicted(bound) => bound.miss(tally.evicted, "pods were evicted"),
            Self::Disrupted(bound) => bound.miss(tally.disruptions(), "nodes were disrupted"),
            Self::NotDisruptedBetween(from, to) => disrupted_between(scene, *from, *to),
            Self::Launched(bound) => bound.miss(world.region.bill().launched, "machines were launched"),
            Self::Taken(bound) => bound.miss(world.region.bill().taken, "machines were taken"),
            Self::Capacity(bound, kind) => {
                let machines = world.region.machines();
                let count = machines
                    .iter()
                    .filter(|machine| machine.capacity_type() == kind)
                    .count();
                bound.miss(count as u64, &format!("machines are {kind}"))
            }
            Self::Image(name) => {
                let machines = world.region.machines();
                let other = machines
                    .iter()
                    .filter(|machine| *machine.launched.image_id != **name)
                    .count();
                (other > 0).then(|| format!("{other} of {} machines run another image", machines.len()))
            }
        }
    }
}

fn not_running(world: &World, of: Option<&str>) -> Option<String> {
    let pods = world.server.objects("Pod");
    let is_meant = |pod: &&Arc<serde_json::Value>| of.is_none_or(|name| text(pod, "/metadata/labels/app") == name);
    let is_not = |pod: &&Arc<serde_json::Value>| !matches!(text(pod, "/status/phase"), "Running" | "Succeeded");
    let (all, not): (usize, usize) = {
        let meant: Vec<_> = pods.iter().filter(is_meant).collect();
        let not = meant.iter().filter(|pod| is_not(pod)).count();
        (meant.len(), not)
    };
    (not > 0).then(|| format!("{not} of {all} pods do not run"))
}

fn longest_wait(scene: &Scene<'_>, limit: Duration) -> Option<String> {
    let now = scene.world.clock.now();
    let still = scene
        .tally
        .waiting
        .values()
        .map(|since| now.duration_since(*since).as_secs());
    let longest = still.max().unwrap_or(0).max(scene.tally.longest_wait);
    let limit = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
    (longest > limit).then(|| format!("a pod waited {longest} s"))
}

fn dear(amount: u128, most: u128, what: &str) -> Option<String> {
    let cents = |picos: u128| format!("${}.{:04}", picos / 1_000_000_000_000, picos / 100_000_000 % 10_000);
    (amount > most).then(|| format!("{} {what}", cents(amount)))
}

fn disrupted_between(scene: &Scene<'_>, from: Duration, to: Duration) -> Option<String> {
    let is_between = |at: &&Timestamp| {
        let passed = Duration::try_from(at.duration_since(scene.began)).unwrap_or(Duration::ZERO);
        (from..=to).contains(&passed)
    };
    let count = scene.tally.disrupted_at.iter().filter(is_between).count();
    (count > 0).then(|| format!("{count} nodes were disrupted then"))
}

/// Pods that wait and of which no event says why.
pub(crate) fn unexplained(world: &World) -> Option<String> {
    let events = world.server.objects("Event");
    let about: std::collections::BTreeSet<&str> = events
        .iter()
        .flat_map(|event| [text(event, "/involvedObject/name"), text(event, "/regarding/name")])
        .collect();
    let pods = world.server.objects("Pod");
    let silent = pods.iter().find(|pod| {
        let is_waiting = text(pod, "/status/phase") == "Pending" && text(pod, "/spec/nodeName").is_empty();
        is_waiting && !about.contains(text(pod, "/metadata/name"))
    });
    silent.map(|pod| format!("no event says why pod {} waits", text(pod, "/metadata/name")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_can_be_read_and_other_sentences_are_answered_with_the_forms() {
        for form in FORMS {
            let written = form
                .replace("at most|at least", "at most")
                .replace("disrupted|launched|taken", "taken")
                .replace("spot|on-demand", "spot")
                .replace("[WHEN]", "by 10m")
                .replace("TIME", "5m")
                .replace("NAME", "web")
                .replace("ZONE", "test-zone-a")
                .replace("$X", "$1.25")
                .replace('N', "3");
            let read = Expectation::read(written.trim());
            assert!(read.is_ok(), "{written}: {read:?}");
        }
        let told = Expectation::read("everything is fine").unwrap_err();
        assert!(told.contains("all pods run [WHEN]"), "{told}");
    }
}
