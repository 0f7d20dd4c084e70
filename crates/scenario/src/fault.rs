//! What goes wrong between the autoscaler and the rest: with its requests, its watches, its cloud, its clock, itself.
//!
//! A fault is drawn for each request by its number, and what was drawn is written down as a [`Strike`]. Strikes can be
//! played again one by one, which is how a failure is made small.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cloud_sim::{CallFacts, CallFault, Chance, Method};
use serde::{Deserialize, Serialize};
use simulator::{ApiServer, Fault, RequestFacts};

use crate::{
    World,
    process::{Dead, holder, process_of},
    time,
};

/// A stretch of a story in which something goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultLine {
    /// What.
    pub kind: Kind,
    /// From when on; from the beginning without a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// For how long.
    #[serde(rename = "for")]
    pub time: String,
    /// How often, of a thousand requests; 50 without a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_mille: Option<u32>,
    /// How far the clock is ahead; for `clock-skew`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The API server refuses: 409, 429, 500, 503, 504.
    ApiErrors,
    /// The API server does it, and its answer is lost.
    LostAnswers,
    /// The API server answers late, also to those who no longer wait.
    SlowAnswers,
    /// Watches break.
    DroppedWatches,
    /// The API server forgets its history: watches must list anew (410).
    Compaction,
    /// Sieve's stale state: watches show the past, and break so that they begin again in it.
    StaleViews,
    /// Sieve's unobserved state: what happened meanwhile is never seen.
    Unobserved,
    /// Sieve's intermediate state: the autoscaler dies before or after a write.
    Crashes,
    /// The cloud has errors of its own.
    CloudErrors,
    /// The cloud asks for patience.
    CloudThrottling,
    /// The cloud does it, and its answer is lost.
    CloudLostAnswers,
    /// The cloud answers late.
    CloudSlow,
    /// The autoscaler dies before or after a call to the cloud.
    CloudCrashes,
    /// The autoscaler's clock is wrong.
    ClockSkew,
    /// The process that leads stands still, as one that is stopped does, and then goes on.
    Pause,
    /// The process that leads does not reach the API server; the cloud it does.
    Partition,
}

impl Kind {
    /// Whether it lasts, instead of striking requests one by one.
    pub(crate) fn is_lasting(self) -> bool {
        matches!(self, Self::StaleViews | Self::ClockSkew | Self::Pause | Self::Partition)
    }
}

impl FaultLine {
    pub(crate) fn from(&self) -> Result<Duration, String> {
        self.from.as_deref().map_or(Ok(Duration::ZERO), time::parse)
    }

    pub(crate) fn until(&self) -> Result<Duration, String> {
        Ok(self.from()? + time::parse(&self.time)?)
    }

    pub(crate) fn check(&self, lasts: Duration) -> Result<(), String> {
        let until = self.until()?;
        if until > lasts {
            return Err(format!("for: {} ends after the story does", self.time));
        }
        if self.per_mille.is_some_and(|per_mille| per_mille > 1000) {
            return Err("perMille: is more than all; write 1 to 1000".to_owned());
        }
        Ok(())
    }
}

/// A fault that struck: the request it struck, counted from 1, and what it was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Strike {
    /// A request to the API server, or with `cloud` a call to the cloud.
    pub request: u64,
    /// Whether it was a call to the cloud.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cloud: bool,
    /// What.
    pub fault: String,
}

/// A request after or before which a process may die.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Counted from 1.
    pub request: u64,
    /// Whether it is a call to the cloud.
    pub cloud: bool,
    /// What it asks for.
    pub what: String,
}

impl Point {
    /// Death before it is served, and after.
    pub fn deaths(&self) -> [Strike; 2] {
        ["dies before", "dies after"].map(|fault| Strike {
            request: self.request,
            cloud: self.cloud,
            fault: fault.to_owned(),
        })
    }
}

/// How hostile a run is beyond what its story says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// Not at all.
    #[default]
    Calm,
    /// A little of everything.
    Rough,
    /// More of everything, and processes that die.
    Hostile,
}

impl Profile {
    /// What goes wrong, until the story's last third, which must be calm.
    pub(crate) fn lines(self, lasts: Duration) -> Vec<FaultLine> {
        let kinds: &[(Kind, u32)] = match self {
            Self::Calm => &[],
            Self::Rough => &[
                (Kind::ApiErrors, 30),
                (Kind::LostAnswers, 10),
                (Kind::SlowAnswers, 10),
                (Kind::DroppedWatches, 5),
                (Kind::CloudErrors, 20),
                (Kind::CloudLostAnswers, 20),
            ],
            Self::Hostile => &[
                (Kind::ApiErrors, 60),
                (Kind::LostAnswers, 30),
                (Kind::SlowAnswers, 30),
                (Kind::DroppedWatches, 10),
                (Kind::Compaction, 5),
                (Kind::Unobserved, 5),
                (Kind::Crashes, 15),
                (Kind::CloudErrors, 50),
                (Kind::CloudThrottling, 30),
                (Kind::CloudLostAnswers, 50),
                (Kind::CloudSlow, 50),
                (Kind::CloudCrashes, 20),
            ],
        };
        let line = |(kind, per_mille): &(Kind, u32)| FaultLine {
            kind: *kind,
            from: None,
            time: time::text(lasts / 2),
            per_mille: Some(*per_mille),
            seconds: None,
        };
        kinds.iter().map(line).collect()
    }

    /// Of a hostile profile every third seed has two replicas, of which the leader stands still or is cut off at times.
    pub(crate) fn contest(self, seed: u64, lasts: Duration) -> Option<Vec<FaultLine>> {
        if self != Self::Hostile || !seed.is_multiple_of(3) {
            return None;
        }
        let chance = Chance::new(seed ^ 0x1ea5e);
        let line = |(number, kind): (usize, Kind)| {
            let thing = number.to_string();
            let from = chance.of("from", &thing).between(
                Duration::from_secs(20),
                (lasts / 2).saturating_sub(Duration::from_mins(1)),
            );
            let time = chance
                .of("time", &thing)
                .between(Duration::from_secs(5), Duration::from_secs(45));
            FaultLine {
                kind,
                from: Some(time::text(from)),
                time: time::text(time),
                per_mille: None,
                seconds: None,
            }
        };
        let kinds = [Kind::Pause, Kind::Partition, Kind::Pause, Kind::Pause];
        Some(kinds.into_iter().enumerate().map(line).collect())
    }
}

/// The faults of a run.
#[derive(Clone)]
pub(crate) struct Engine {
    chance: Chance,
    active: Arc<Mutex<Vec<FaultLine>>>,
    struck: Arc<Mutex<Vec<Strike>>>,
    points: Arc<Mutex<Vec<Point>>>,
    /// The process that does not reach the API server.
    cut: Arc<Mutex<Option<String>>>,
    /// Exactly these, instead of what is drawn.
    exact: Option<Arc<BTreeMap<(bool, u64), String>>>,
}

/// Called with every request before it is served.
pub(crate) type Listen = Arc<dyn Fn(&RequestFacts) + Send + Sync>;

impl Engine {
    pub(crate) fn new(seed: u64, exact: Option<&[Strike]>) -> Self {
        let index = |strikes: &[Strike]| {
            let pairs = strikes.iter().map(|it| ((it.cloud, it.request), it.fault.clone()));
            Arc::new(pairs.collect())
        };
        Self {
            chance: Chance::new(seed ^ 0xfa17),
            active: Arc::default(),
            struck: Arc::default(),
            points: Arc::default(),
            cut: Arc::default(),
            exact: exact.map(index),
        }
    }

    /// Stands between the autoscaler and the world.
    pub(crate) fn install(&self, world: &World, listen: Listen) {
        let (api, dead) = (self.clone(), Arc::clone(&world.dead));
        world.server.set_faults(move |facts| {
            let process = process_of(&facts.agent);
            if process.is_some_and(|process| api.is_cut(process)) {
                return Fault::Unreachable;
            }
            listen(facts);
            let fault = api.api_fault(facts);
            if let (Fault::CrashBefore | Fault::CrashAfter, Some(process)) = (fault, process) {
                bury(&dead, process);
            }
            fault
        });
        let (cloud, dead) = (self.clone(), Arc::clone(&world.dead));
        world.region.set_faults(move |facts| {
            let fault = cloud.cloud_fault(facts);
            if matches!(fault, CallFault::CrashBefore | CallFault::CrashAfter) {
                bury(&dead, &facts.who);
            }
            fault
        });
    }

    /// What goes wrong from now on.
    pub(crate) fn set(&self, lines: Vec<FaultLine>, world: &World) {
        let has = |kind: Kind| lines.iter().any(|line| line.kind == kind);
        set_views(&world.server, has(Kind::StaleViews));
        let skew = lines.iter().find(|line| line.kind == Kind::ClockSkew);
        world.set_clock_ahead(skew.map_or(0, |line| line.seconds.unwrap_or(300)));
        let mut cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        if !has(Kind::Partition) {
            *cut = None;
        } else if cut.is_none() {
            *cut = holder(world);
            // Its open watches break with everybody's; the others begin theirs again at once.
            world.server.drop_watches();
        }
        drop(cut);
        *self.active.lock().unwrap_or_else(PoisonError::into_inner) = lines;
    }

    fn is_cut(&self, process: &str) -> bool {
        let cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        cut.as_deref() == Some(process)
    }

    /// What struck so far.
    pub(crate) fn struck(&self) -> Vec<Strike> {
        self.struck.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where a process might have died.
    pub(crate) fn points(&self) -> Vec<Point> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn pass(&self, request: u64, cloud: bool, what: String) {
        let mut points = self.points.lock().unwrap_or_else(PoisonError::into_inner);
        points.push(Point { request, cloud, what });
    }

    fn draw(&self, is_cloud: bool, number: u64, fits: impl Fn(Kind) -> bool) -> Option<(Kind, u64)> {
        let active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        active.iter().filter(|line| fits(line.kind)).find_map(|line| {
            let thing = format!("{:?} {is_cloud} {number}", line.kind);
            let strikes = self.chance.of("strikes", &thing).happens(line.per_mille.unwrap_or(50));
            strikes.then(|| (line.kind, self.chance.of("how", &thing).number()))
        })
    }

    fn note(&self, is_cloud: bool, request: u64, fault: &str) {
        self.struck.lock().unwrap_or_else(PoisonError::into_inner).push(Strike {
            request,
            cloud: is_cloud,
            fault: fault.to_owned(),
        });
    }

    fn word(&self, is_cloud: bool, number: u64, drawn: impl FnOnce() -> Option<String>) -> Option<String> {
        let word = match &self.exact {
            Some(exact) => exact.get(&(is_cloud, number)).cloned(),
            None => drawn(),
        };
        if let Some(word) = &word {
            self.note(is_cloud, number, word);
        }
        word
    }

    fn api_fault(&self, facts: &RequestFacts) -> Fault {
        // Events only tell; a process that dies telling shows nothing that another death does not.
        let is_write = facts.write.is_some() && facts.resource.plural != "events";
        if is_write {
            let what = format!("{:?} {} {}", facts.verb, facts.resource.plural, facts.subresource);
            self.pass(facts.number, false, what);
        }
        let word = self.word(false, facts.number, || {
            let (kind, how) = self.draw(false, facts.number, |kind| is_for_api(kind, is_write))?;
            Some(api_word(kind, how, is_write))
        });
        word.map_or(Fault::None, |word| api_fault(&word))
    }

    fn cloud_fault(&self, facts: &CallFacts) -> CallFault {
        if matches!(facts.method, Method::Create | Method::Delete) {
            self.pass(facts.number, true, format!("{:?}", facts.method));
        }
        let word = self.word(true, facts.number, || {
            let (kind, how) = self.draw(true, facts.number, is_for_cloud)?;
            Some(cloud_word(kind, how))
        });
        word.map_or(CallFault::None, |word| cloud_fault(&word))
    }
}

fn bury(dead: &Dead, process: &str) {
    let mut dead = dead.lock().unwrap_or_else(PoisonError::into_inner);
    dead.push(process.to_owned());
}

fn set_views(server: &ApiServer, are_stale: bool) {
    server.set_watch_lag(if are_stale {
        Duration::from_secs(20)
    } else {
        Duration::ZERO
    });
    if are_stale {
        server.drop_watches();
    }
}

fn is_for_api(kind: Kind, is_write: bool) -> bool {
    match kind {
        Kind::ApiErrors
        | Kind::SlowAnswers
        | Kind::DroppedWatches
        | Kind::Compaction
        | Kind::Unobserved
        | Kind::StaleViews => true,
        Kind::LostAnswers | Kind::Crashes => is_write,
        _ => false,
    }
}

fn is_for_cloud(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::CloudErrors | Kind::CloudThrottling | Kind::CloudLostAnswers | Kind::CloudSlow | Kind::CloudCrashes
    )
}

fn api_word(kind: Kind, how: u64, is_write: bool) -> String {
    match kind {
        Kind::ApiErrors => {
            let codes: &[u16] = if is_write {
                &[409, 429, 500, 503, 504]
            } else {
                &[429, 500, 503, 504]
            };
            let at = usize::try_from(how).unwrap_or(0) % codes.len();
            format!("refused {}", codes.get(at).copied().unwrap_or(500))
        }
        Kind::LostAnswers => "answer lost".to_owned(),
        Kind::SlowAnswers => format!("late {}ms", how % 8000),
        Kind::Compaction => "history forgotten".to_owned(),
        Kind::Crashes if how.is_multiple_of(2) => "dies before".to_owned(),
        Kind::Crashes => "dies after".to_owned(),
        Kind::Unobserved if how.is_multiple_of(2) => "history forgotten".to_owned(),
        _ => "watches broken".to_owned(),
    }
}

fn api_fault(word: &str) -> Fault {
    let number = |rest: &str| rest.trim_end_matches("ms").parse::<u64>().unwrap_or(0);
    match word.split_once(' ') {
        Some(("refused", code)) => Fault::Fail(code.parse().unwrap_or(500)),
        Some(("late", time)) => Fault::Delay(Duration::from_millis(number(time))),
        Some(("answer", _)) => Fault::LoseAnswer,
        Some(("history", _)) => Fault::CompactHistory,
        Some(("watches", _)) => Fault::DropWatches,
        Some(("dies", "before")) => Fault::CrashBefore,
        Some(("dies", _)) => Fault::CrashAfter,
        _ => Fault::None,
    }
}

fn cloud_word(kind: Kind, how: u64) -> String {
    match kind {
        Kind::CloudThrottling => format!("throttled {}s", 1 + how % 20),
        Kind::CloudLostAnswers => "answer lost".to_owned(),
        Kind::CloudSlow => format!("late {}s", how % 40),
        Kind::CloudCrashes if how.is_multiple_of(2) => "dies before".to_owned(),
        Kind::CloudCrashes => "dies after".to_owned(),
        _ => "refused".to_owned(),
    }
}

fn cloud_fault(word: &str) -> CallFault {
    let seconds = |rest: &str| Duration::from_secs(rest.trim_end_matches('s').parse().unwrap_or(0));
    match word.split_once(' ') {
        Some(("throttled", time)) => CallFault::Throttle(seconds(time)),
        Some(("late", time)) => CallFault::Delay(seconds(time)),
        Some(("answer", _)) => CallFault::LoseAnswer,
        Some(("dies", "before")) => CallFault::CrashBefore,
        Some(("dies", _)) => CallFault::CrashAfter,
        Some(_) | None => CallFault::Fail,
    }
}
