//! What the runs came to, for people and for programs.

use std::{fmt::Write, time::Duration};

use scenario::{Outcome, Scenario};
use serde::Serialize;

use super::Job;
use crate::terminal::{Align, Cell, Role, Screen, Table, counted, grouped};

/// What the runs came to.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) runs: usize,
    pub(super) failed: usize,
    pub(super) runs_per_minute: u64,
    pub(super) seconds: f64,
    pub(super) scenarios: Vec<Row>,
    pub(super) failures: Vec<Failed>,
    /// When it was last said how far it is.
    #[serde(skip)]
    told: Duration,
}

/// What the runs of one scenario came to.
#[derive(Debug, Default, Serialize)]
pub(super) struct Row {
    name: String,
    runs: usize,
    failed: usize,
    /// The most over all runs.
    nodes: usize,
    pods: u64,
    evicted: u64,
    disrupted: u64,
    longest_wait_seconds: i64,
    deaths: usize,
    faults: usize,
    /// The mean, in dollars.
    spent: f64,
}

/// A run that failed.
#[derive(Debug, Serialize)]
pub(super) struct Failed {
    #[serde(skip)]
    pub(super) at: usize,
    pub(super) scenario: String,
    pub(super) seed: u64,
    /// Where the process died, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) death: Option<String>,
    pub(super) failures: Vec<String>,
    /// As which file, with so many faults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) saved: Option<(String, usize)>,
}

impl Report {
    pub(super) fn new(scenarios: &[(String, Scenario)]) -> Self {
        let row = |(_, scenario): &(String, Scenario)| Row {
            name: scenario.name.clone(),
            ..Row::default()
        };
        Self {
            runs: 0,
            failed: 0,
            runs_per_minute: 0,
            seconds: 0.0,
            scenarios: scenarios.iter().map(row).collect(),
            failures: Vec::new(),
            told: Duration::ZERO,
        }
    }

    /// Whether nothing was said for ten seconds.
    pub(super) fn is_time_to_tell(&mut self, now: Duration) -> bool {
        let is_time = now.saturating_sub(self.told) >= Duration::from_secs(10);
        if is_time {
            self.told = now;
        }
        is_time
    }

    /// How far it is.
    pub(super) fn so_far(&self, all: usize, time: Duration) -> String {
        let (faults, deaths) = self.scenarios.iter().fold((0, 0), |(faults, deaths), row| {
            (faults + row.faults, deaths + row.deaths)
        });
        let minute = self.runs as u128 * 60_000 / time.as_millis().max(1);
        format!(
            "{:>6} s  {} of {all} runs, {} failed, {faults} faults, {deaths} deaths, {minute} a minute",
            time.as_secs(),
            self.runs,
            self.failed
        )
    }

    pub(super) fn add(&mut self, job: &Job, file: &str, ran: anyhow::Result<Outcome>, saved: Option<(String, usize)>) {
        let at = job.at;
        let outcome = ran.unwrap_or_else(|error| Outcome {
            failures: vec![format!("{error:#}")],
            ..Outcome::default()
        });
        self.runs += 1;
        let is_failed = !outcome.failures.is_empty();
        self.failed += usize::from(is_failed);
        if let Some(row) = self.scenarios.get_mut(at) {
            row.add(&outcome);
        }
        if is_failed {
            self.failures.push(Failed {
                at,
                scenario: file.to_owned(),
                seed: job.seed,
                death: job
                    .death
                    .as_ref()
                    .map(|(death, what)| format!("{} request {}: {what}", death.fault, death.request)),
                failures: outcome.failures,
                saved,
            });
            self.failures.sort_by_key(|failed| (failed.at, failed.seed));
        }
    }

    pub(super) fn took(&mut self, time: Duration) {
        self.seconds = (time.as_secs_f64() * 100.0).round() / 100.0;
        let millis = time.as_millis().max(1);
        self.runs_per_minute = u64::try_from(self.runs as u128 * 60_000 / millis).unwrap_or(u64::MAX);
    }

    pub(super) fn table(&self, screen: &Screen) -> String {
        let mut table = Table::default();
        table.column("", Align::Left);
        table.column("SCENARIO", Align::Left);
        for title in [
            "RUNS",
            "FAILED",
            "NODES",
            "PODS",
            "EVICTED",
            "DISRUPTED",
            "LONGEST WAIT",
            "FAULTS",
            "DEATHS",
            "SPENT",
        ] {
            table.column(title, Align::Right);
        }
        for row in &self.scenarios {
            table.row(row.cells());
        }
        let mut text = table.render(screen);
        for failed in &self.failures {
            let _ = writeln!(
                text,
                "\n{} seed {}{}",
                screen.paint(Role::Stop, &format!("failed  {}", failed.scenario)),
                failed.seed,
                failed
                    .death
                    .as_ref()
                    .map(|death| format!(", {death}"))
                    .unwrap_or_default()
            );
            for failure in &failed.failures {
                let _ = writeln!(text, "        {failure}");
            }
            if let Some((saved, faults)) = &failed.saved {
                let _ = writeln!(text, "        saved as {saved} with {}", counted(*faults, "fault"));
            }
        }
        let _ = writeln!(
            text,
            "\n{}, {} failed, in {:.1} s: {} a minute",
            counted(self.runs, "run"),
            self.failed,
            self.seconds,
            grouped(u128::from(self.runs_per_minute)),
        );
        text
    }
}

impl Row {
    fn add(&mut self, outcome: &Outcome) {
        let tally = &outcome.tally;
        #[expect(clippy::cast_precision_loss, reason = "money to be looked at")]
        let (spent, runs) = (outcome.spent_picos as f64 / 1e12, self.runs as f64);
        self.spent = (self.spent * runs + spent) / (runs + 1.0);
        self.runs += 1;
        self.failed += usize::from(!outcome.failures.is_empty());
        self.nodes = self.nodes.max(tally.most_nodes);
        self.pods = self.pods.max(tally.pods_ever);
        self.evicted = self.evicted.max(tally.evicted);
        self.disrupted = self.disrupted.max(tally.disruptions());
        self.longest_wait_seconds = self.longest_wait_seconds.max(tally.longest_wait);
        self.deaths += outcome.deaths;
        self.faults += outcome.strikes.len();
    }

    fn cells(&self) -> Vec<Cell> {
        let sign = match (self.runs, self.failed) {
            (0, _) => Cell::new(Role::Secondary, "-"),
            (_, 0) => Cell::new(Role::Good, "ok"),
            _ => Cell::new(Role::Stop, "x"),
        };
        vec![
            sign,
            self.name.clone().into(),
            self.runs.to_string().into(),
            self.failed.to_string().into(),
            self.nodes.to_string().into(),
            self.pods.to_string().into(),
            self.evicted.to_string().into(),
            self.disrupted.to_string().into(),
            format!("{} s", self.longest_wait_seconds).into(),
            self.faults.to_string().into(),
            self.deaths.to_string().into(),
            format!("${:.2}", self.spent).into(),
        ]
    }
}
