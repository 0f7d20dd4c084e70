//! A scenario as people write it: what there is at first, what happens when, what goes wrong, how it must end.

use std::{collections::BTreeSet, fmt, time::Duration};

use catalogue::Source;
use cloud_sim::Rules;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Pool, Workload,
    action::Step,
    expectation::Expectation,
    fault::{FaultLine, Kind as FaultKind, Strike},
    time,
};

/// What is wrong with a scenario: where, what was written, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The file.
    pub file: String,
    /// The field, or the line.
    pub field: String,
    /// What is wrong with it, and what would be right.
    pub message: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.file, self.field, self.message)
    }
}

impl std::error::Error for Flaw {}

/// A scenario.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Whose catalogue: `aws`, `azure` or `kwok`, which is what it is without a word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cloud: String,
    /// How long it takes, such as `1h`.
    pub lasts: String,
    /// What time it is at first; midnight of 2026-01-05, a Monday, without a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// How the cloud behaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<RegionWords>,
    /// How many processes of the autoscaler there are, which elect a leader with a lease; without a word there is one,
    /// which asks nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u8>,
    /// Flags of `dovetail run`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Pools there are from the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<Pool>,
    /// Workloads there are from the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<Workload>,
    /// Any other objects there are from the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<Value>,
    /// Nodes of the first pool there are from the beginning, and pods on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filled: Option<Filled>,
    /// What happens when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// What goes wrong meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultLine>,
    /// Exactly what goes wrong, request by request; a saved failure has these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strikes: Vec<Strike>,
    /// The seed a saved failure was seen with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How it must end, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<String>,
}

/// Nodes and pods there are from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filled {
    /// Nodes.
    pub nodes: u64,
    /// Pods on them.
    pub pods: u64,
}

/// How the cloud behaves, where it differs from [`Rules::default`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegionWords {
    /// From launch to joining: `20s-40s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// From deletion to gone: `5s-20s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<String>,
    /// For how long reads do not show a new machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_lag: Option<String>,
    /// How often spot prices take a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_step: Option<String>,
    /// How long before it takes a spot machine back the cloud says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// How many cores may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_cpu: Option<u64>,
    /// How many launches a minute are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches_per_minute: Option<u32>,
}

impl Scenario {
    /// Reads a scenario and checks all of it. `file` names it in what is said.
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<Flaw>> {
        let scenario: Self = serde_saphyr::from_str(text).map_err(|error| {
            vec![Flaw {
                file: file.to_owned(),
                field: "YAML".to_owned(),
                message: format!("{error}; docs/scenarios.md shows the format"),
            }]
        })?;
        let flaws = scenario.flaws(file);
        if flaws.is_empty() { Ok(scenario) } else { Err(flaws) }
    }

    fn flaws(&self, file: &str) -> Vec<Flaw> {
        let mut found: Vec<(String, String)> = Vec::new();
        let mut check = |field: String, result: Result<(), String>| {
            if let Err(message) = result {
                found.push((field, message));
            }
        };
        check("lasts".to_owned(), self.lasts().map(drop));
        check("cloud".to_owned(), self.source().map(drop));
        check("region".to_owned(), self.rules(0).map(drop));
        check("flags".to_owned(), self.settings().map(drop));
        let lasts = self.lasts().unwrap_or(Duration::MAX);
        for (number, step) in self.steps.iter().enumerate() {
            check(format!("steps[{number}]"), step.check(self, lasts));
        }
        for (number, fault) in self.faults.iter().enumerate() {
            check(format!("faults[{number}]"), fault.check(lasts));
        }
        for (number, sentence) in self.expect.iter().enumerate() {
            check(format!("expect[{number}]"), Expectation::read(sentence).map(drop));
        }
        if self.replicas.is_some_and(|replicas| !(1..=5).contains(&replicas)) {
            check("replicas".to_owned(), Err("write 1 to 5".to_owned()));
        }
        let needs_two = |fault: &FaultLine| fault.kind == FaultKind::Partition && self.replicas.is_none();
        if let Some(number) = self.faults.iter().position(needs_two) {
            let message = "nobody has a lease who could be cut off from it; add replicas: 2".to_owned();
            check(format!("faults[{number}].kind"), Err(message));
        }
        if self.filled.is_some() && self.pools.is_empty() {
            check(
                "filled".to_owned(),
                Err("there is no pool to fill; add one under pools".to_owned()),
            );
        }
        for (number, workload) in self.workloads.iter().enumerate() {
            let time = workload
                .runs_for
                .as_deref()
                .map_or(Ok(()), |text| time::parse(text).map(drop));
            check(format!("workloads[{number}].runsFor"), time);
        }
        let flaw = |(field, message)| Flaw {
            file: file.to_owned(),
            field,
            message,
        };
        found.into_iter().map(flaw).collect()
    }

    pub(crate) fn lasts(&self) -> Result<Duration, String> {
        time::parse(&self.lasts)
    }

    /// Whose catalogue.
    pub fn source(&self) -> Result<Source, String> {
        if self.cloud.is_empty() {
            return Ok(Source::Kwok);
        }
        let found = Source::ALL.into_iter().find(|source| source.name() == self.cloud);
        found.ok_or_else(|| format!("{:?} is no cloud; write aws, azure or kwok", self.cloud))
    }

    pub(crate) fn rules(&self, seed: u64) -> Result<Rules, String> {
        let mut rules = Rules {
            seed,
            ..Rules::default()
        };
        let Some(words) = &self.region else {
            return Ok(rules);
        };
        if let Some(boot) = &words.boot {
            rules.boot = span("boot", boot)?;
        }
        if let Some(shutdown) = &words.shutdown {
            rules.shutdown = span("shutdown", shutdown)?;
        }
        if let Some(lag) = &words.read_lag {
            rules.read_lag = time::parse(lag).map_err(|error| format!("readLag: {error}"))?;
        }
        if let Some(step) = &words.price_step {
            rules.price_step = Some(time::parse(step).map_err(|error| format!("priceStep: {error}"))?);
        }
        if let Some(notice) = &words.notice {
            rules.notice = time::parse(notice).map_err(|error| format!("notice: {error}"))?;
        }
        rules.quota_cpu = words.quota_cpu;
        rules.launches_per_minute = words.launches_per_minute;
        Ok(rules)
    }

    pub(crate) fn settings(&self) -> Result<runtime::Settings, String> {
        let parsed = runtime::Settings::parse(self.flags.iter().cloned(), |_| None);
        parsed.map(|(settings, _)| settings).map_err(|error| error.to_string())
    }

    pub(crate) fn start(&self) -> Timestamp {
        const MONDAY: i64 = 1_767_571_200;
        self.start
            .unwrap_or_else(|| Timestamp::from_second(MONDAY).unwrap_or_default())
    }

    /// All workloads by name, those that steps add too.
    pub(crate) fn workload_names(&self) -> BTreeSet<&str> {
        let added = self.steps.iter().flat_map(|step| &step.add);
        let all = self.workloads.iter().chain(added);
        let mut names: BTreeSet<&str> = all.map(|workload| workload.name.as_str()).collect();
        if self.filled.is_some() {
            names.insert("resident");
        }
        names
    }
}

/// `20s-40s`
fn span(field: &str, text: &str) -> Result<(Duration, Duration), String> {
    let wrong = || format!("{field}: {text:?} is no span of times; write 20s-40s");
    let (least, most) = text.split_once('-').ok_or_else(wrong)?;
    let span = (
        time::parse(least).map_err(|_| wrong())?,
        time::parse(most).map_err(|_| wrong())?,
    );
    if span.0 > span.1 { Err(wrong()) } else { Ok(span) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flaws(text: &str) -> Vec<String> {
        let read = Scenario::read("a.yaml", text);
        read.err().into_iter().flatten().map(|flaw| flaw.to_string()).collect()
    }

    #[test]
    fn a_bad_file_is_told_with_file_field_value_and_fix() {
        let text =
            "name: a\nlasts: soon\ncloud: moon\nexpect: [pods should be happy]\nsteps:\n- {at: 5m, scale: {web: 3}}\n";
        let told = flaws(text);
        let expected = [
            "a.yaml: lasts: \"soon\" is not a time; write it as 90s, 5m or 1h30m",
            "a.yaml: cloud: \"moon\" is no cloud; write aws, azure or kwok",
            "a.yaml: steps[0]: scale: there is no workload \"web\"; there are none",
        ];
        assert_eq!(told[..3], expected);
        assert!(
            told[3].starts_with("a.yaml: expect[0]: \"pods should be happy\" is no sentence that can be checked"),
            "{}",
            told[3]
        );
    }

    #[test]
    fn an_unknown_field_is_named() {
        let told = flaws("name: a\nlasts: 1h\npoolz: []\n");
        assert!(told[0].contains("poolz"), "{told:?}");
    }
}
