//! One decision: what, to whom, why, for how much, what else was possible, and how it went.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use model::price::Price;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Id;

/// Of long lists so many are kept; the rest is counted.
pub const MOST_LISTED: usize = 10;
/// Longer texts are cut.
const LONGEST: usize = 400;
/// Hours of a month.
const MONTH: i64 = 730;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// A node is launched.
    Launch,
    /// Nodes go, others come first.
    Replace,
    /// Nodes go.
    Delete,
    /// A node is rebooted.
    Reboot,
    /// Pods get no node, or a pool's nodes do not go.
    Refuse,
    /// A node stays.
    Keep,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It was found and nothing was done yet.
    Planned,
    /// It was begun.
    UnderWay,
    /// It is over, as planned; a refusal always is.
    Done,
    /// It was given up.
    Aborted,
}

/// Money, in billionths of a dollar; written as dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(pub i64);

impl Usd {
    /// Dollars, for people and programs.
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// What an hour's price comes to in a month.
    #[must_use]
    pub fn monthly(self) -> Self {
        Self(self.0.saturating_mul(MONTH))
    }

    /// A difference in pico-dollars.
    pub fn from_picos(picos: i128) -> Self {
        Self(i64::try_from(picos / 1000).unwrap_or(if picos < 0 { i64::MIN } else { i64::MAX }))
    }
}

impl From<Price> for Usd {
    fn from(price: Price) -> Self {
        Self::from_picos(i128::from(price.picos()))
    }
}

impl std::ops::Sub for Usd {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self((f64::deserialize(deserializer)? * 1e9).round() as i64))
    }
}

/// A node, or what is to become one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Target {
    /// The node; empty while there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Its NodeClaim.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub claim: String,
    /// Its instance type.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub instance_type: String,
    /// Its zone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// `spot`, `on-demand` or `reserved`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub capacity: String,
    /// What it costs an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_h: Option<Usd>,
    /// True for what comes, false for what is there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub comes: bool,
}

/// What an hour costs before and after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Money {
    /// Before.
    pub before_usd_h: Usd,
    /// After.
    pub after_usd_h: Usd,
}

impl Money {
    /// By how much the spend changes; less than nothing when it falls.
    pub fn delta(self) -> Usd {
        self.after_usd_h - self.before_usd_h
    }
}

/// How the policy Balanced judged it, in permille.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score {
    /// What is saved, of what the pool costs.
    pub saving_permille: i64,
    /// What is disturbed, of what there is to disturb.
    pub disruption_permille: i64,
    /// Whether it is worth it.
    pub approved: bool,
}

/// One of the things that could have been done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// What.
    pub offer: String,
    /// What it costs an hour, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_h: Option<Usd>,
    /// What became of it.
    pub verdict: String,
}

/// Something that happened on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What.
    pub step: String,
    /// When.
    pub at: Timestamp,
}

/// The smallest change that lifts a refusal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lift {
    /// What to change.
    pub object: String,
    /// How.
    pub change: String,
}

/// What it was decided on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inputs {
    /// Of the versions of all objects, the catalogue and the settings; sixteen hexadecimal digits.
    pub digest: String,
    /// How many pods there were.
    pub pods: usize,
    /// How many nodes.
    pub nodes: usize,
    /// How many ways to have an instance type.
    pub offers: usize,
    /// The version of the engine.
    pub engine: String,
    /// How long the decision took.
    pub took_ms: u64,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its id.
    pub id: Id,
    /// When it was taken; for what is found again, first taken.
    pub time: Timestamp,
    /// When it was last found again, or went on.
    pub last_seen: Timestamp,
    /// How often it was found.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub count: u64,
    /// What.
    pub action: Action,
    /// How far it has come.
    pub phase: Phase,
    /// Why, in one word.
    pub reason: String,
    /// The NodePool.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pool: String,
    /// In a few words: what is not in the other fields.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The first of the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
    /// How many nodes go or stay.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nodes: usize,
    /// What it costs and saves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// What is forgone by a refusal, an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgone_usd_h: Option<Usd>,
    /// How it was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// What was chosen, then what was not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Offer>,
    /// The first of the pods, as `namespace/name`, or with a place as `namespace/name → node`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<String>,
    /// How many pods there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pod_count: usize,
    /// How it went.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// What would lift a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lift: Option<Lift>,
    /// What it was decided on.
    #[serde(default)]
    pub inputs: Inputs,
}

fn once() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_once(count: &u64) -> bool {
    *count == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A text of bounded length.
pub fn cut(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(LONGEST);
    format!("{}…", text.get(..end).unwrap_or_default())
}

impl Record {
    /// A decision of which only the most important is known.
    pub fn new(id: Id, action: Action, phase: Phase, reason: &str, time: Timestamp) -> Self {
        Self {
            id,
            time,
            last_seen: time,
            count: 1,
            action,
            phase,
            reason: reason.to_owned(),
            pool: String::new(),
            detail: String::new(),
            targets: Vec::new(),
            nodes: 0,
            money: None,
            forgone_usd_h: None,
            score: None,
            options: Vec::new(),
            pods: Vec::new(),
            pod_count: 0,
            steps: Vec::new(),
            lift: None,
            inputs: Inputs::default(),
        }
    }

    /// Whether something was done, or is being done.
    pub fn is_acted(&self) -> bool {
        let is_act = !matches!(self.action, Action::Refuse | Action::Keep);
        is_act && matches!(self.phase, Phase::UnderWay | Phase::Done)
    }

    /// Whether something was not done, or given up.
    pub fn is_refused(&self) -> bool {
        matches!(self.action, Action::Refuse | Action::Keep) || self.phase == Phase::Aborted
    }

    /// What came of it, in one word.
    pub fn word(&self) -> &'static str {
        match (self.action, self.phase) {
            (Action::Refuse, _) => "refused",
            (Action::Keep, _) => "kept",
            (_, Phase::Planned) => "planned",
            (_, Phase::Aborted) => "aborted",
            (Action::Launch, Phase::UnderWay) => "launching",
            (Action::Launch, Phase::Done) => "launched",
            (Action::Replace, Phase::UnderWay) => "replacing",
            (Action::Replace, Phase::Done) => "replaced",
            (Action::Delete, Phase::UnderWay) => "deleting",
            (Action::Delete, Phase::Done) => "deleted",
            (Action::Reboot, Phase::UnderWay) => "rebooting",
            (Action::Reboot, Phase::Done) => "rebooted",
        }
    }

    /// Notes a step, once.
    pub fn step(&mut self, step: &str, at: Timestamp) {
        if self.steps.iter().all(|known| known.step != step) {
            self.steps.push(Step {
                step: step.to_owned(),
                at,
            });
        }
        self.last_seen = self.last_seen.max(at);
    }

    /// How long it took from the plan to a step.
    pub fn took_to(&self, step: &str) -> Option<SignedDuration> {
        let begun = self.steps.first()?.at;
        let step = self.steps.iter().find(|known| known.step == step)?;
        Some(step.at.duration_since(begun))
    }

    /// The nodes that are there already.
    pub fn there(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(|target| !target.comes)
    }

    /// The nodes that come.
    pub fn coming(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(|target| target.comes)
    }

    /// Whether a node or claim of this name is concerned.
    pub fn concerns(&self, name: &str) -> bool {
        self.targets
            .iter()
            .any(|target| target.node == name || target.claim == name)
    }

    /// About how many bytes it takes, written down.
    pub(crate) fn weight(&self) -> usize {
        let targets = self.targets.iter().map(|target| {
            let texts = [
                &target.node,
                &target.claim,
                &target.instance_type,
                &target.zone,
                &target.capacity,
            ];
            80 + texts.iter().map(|text| text.len()).sum::<usize>()
        });
        let options = self
            .options
            .iter()
            .map(|offer| 40 + offer.offer.len() + offer.verdict.len());
        let steps = self.steps.iter().map(|step| 50 + step.step.len());
        let pods = self.pods.iter().map(|pod| 4 + pod.len());
        let lift = self
            .lift
            .as_ref()
            .map_or(0, |lift| 30 + lift.object.len() + lift.change.len());
        let lists: usize = targets.chain(options).chain(steps).chain(pods).sum();
        320 + lists + lift + self.reason.len() + self.pool.len() + self.detail.len()
    }
}

impl fmt::Display for Target {
    /// `m7g.2xlarge spot in 1c`, as far as it is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.instance_type.is_empty() {
            "a node"
        } else {
            &self.instance_type
        };
        f.write_str(name)?;
        if !self.capacity.is_empty() {
            write!(f, " {}", self.capacity)?;
        }
        if !self.zone.is_empty() {
            write!(f, " in {}", self.zone)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let mut record = Record::new(
            Id::of("delete", ["a"]),
            Action::Delete,
            Phase::UnderWay,
            "Underutilized",
            at(7),
        );
        record.money = Some(Money {
            before_usd_h: Usd(158_500_000),
            after_usd_h: Usd(0),
        });
        record.targets.push(Target {
            claim: "a".to_owned(),
            usd_h: Some(Usd(158_512_345)),
            ..Target::default()
        });
        record.step("planned", at(7));
        record.step("tainted", at(8));
        record.step("tainted", at(9));
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record, "{text}");
        assert_eq!(record.took_to("tainted"), Some(SignedDuration::from_secs(1)));
        assert!(record.weight() >= text.len(), "{} of {text}", record.weight());
    }

    #[test]
    fn what_is_under_way_is_an_act_and_what_was_given_up_is_none() {
        let cases = [
            (Action::Launch, Phase::UnderWay, true, false, "launching"),
            (Action::Delete, Phase::Done, true, false, "deleted"),
            (Action::Replace, Phase::Aborted, false, true, "aborted"),
            (Action::Replace, Phase::Planned, false, false, "planned"),
            (Action::Refuse, Phase::Done, false, true, "refused"),
            (Action::Keep, Phase::Done, false, true, "kept"),
        ];
        for (action, phase, acted, refused, word) in cases {
            let record = Record::new(Id::of("", []), action, phase, "", at(0));
            let found = (record.is_acted(), record.is_refused(), record.word());
            assert_eq!(found, (acted, refused, word), "{action:?} {phase:?}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        let long = "ä".repeat(500);
        assert_eq!(cut(&long).chars().count(), 201);
        assert_eq!(cut("short"), "short");
    }
}
