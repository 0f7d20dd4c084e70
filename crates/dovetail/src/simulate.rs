//! `dovetail simulate`: plays stories on virtual time with the real controllers, and judges how they end.

mod report;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use scenario::{Play, Profile, STORIES, Scenario, Strike, on_virtual_time, play, saved, shrink};

use self::report::Report;
use crate::{
    answer::Answer,
    document,
    failure::Failure,
    raw,
    terminal::{Presentation, aside},
};

/// Play scenarios with the real controllers in a simulated cluster, and judge how they end.
///
/// A scenario says what there is at first, what happens when, what goes wrong, and in sentences how it must end
/// (docs/scenarios.md). Beside the sentences, what must always hold is checked with every change. The exit code is 1 when
/// a run fails.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files, directories of *.yaml, or names of stories that come with the binary; none: all of those.
    #[arg(value_name = "FILE|DIR|NAME")]
    scenarios: Vec<PathBuf>,
    /// Play each with so many seeds.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// Begin no run after so many minutes of the wall.
    #[arg(long, value_name = "M")]
    minutes: Option<u64>,
    /// What goes wrong beyond what the scenarios say.
    #[arg(long, value_enum, default_value_t = Faults::Calm)]
    faults: Faults,
    /// Let the autoscaler die before and after every write and every call to the cloud, one run each.
    #[arg(long, conflicts_with_all = ["faults", "seeds"])]
    sweep: bool,
    /// Use the NodePools of this dump (kubectl get nodepools -o yaml) instead of the scenarios' own.
    #[arg(long, value_name = "DUMP")]
    from: Option<PathBuf>,
    /// Save failures here as scenarios, with as little going wrong as makes them fail.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Write down everything that happens in the first run.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Say on standard error every ten seconds how far it is.
    #[arg(long)]
    progress: bool,
    /// Run so many at a time; 0: one a core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    jobs: usize,
    /// How to answer.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    presentation: Presentation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
    Yaml,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Faults {
    /// Nothing.
    Calm,
    /// A little of everything.
    Rough,
    /// More of everything, and processes that die.
    Hostile,
}

/// How often a failure is played again to make it small.
const TRIES: usize = 300;

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let mut scenarios = read_all(&args.scenarios)?;
    if let Some(dump) = &args.from {
        let pools = pools(dump)?;
        for (_, scenario) in &mut scenarios {
            replace_pools(scenario, &pools);
        }
    }
    let report = run_all(args, &scenarios)?;
    let is_failed = report.failed > 0;
    let text = match args.output {
        Format::Table => report.table(&args.presentation.screen()),
        Format::Json => document::json(&report)?,
        Format::Yaml => document::yaml(&report)?,
    };
    Ok(Answer {
        text,
        is_failure: is_failed,
        ..Answer::default()
    })
}

/// One scenario: a file, or a name of those that come with the binary.
pub(crate) fn read_one(path: &Path) -> anyhow::Result<Scenario> {
    let mut scenarios = read_all(&[path.to_owned()])?;
    let (_, scenario) = scenarios
        .pop()
        .with_context(|| format!("{} holds no scenario", path.display()))?;
    Ok(scenario)
}

fn read_all(paths: &[PathBuf]) -> anyhow::Result<Vec<(String, Scenario)>> {
    let mut texts = Vec::new();
    if paths.is_empty() {
        texts.extend(
            STORIES
                .iter()
                .map(|story| (story.name.to_owned(), story.text.to_owned())),
        );
    }
    for path in paths {
        let story = STORIES.iter().find(|story| Path::new(story.name) == path);
        if path.is_dir() {
            for file in files(path)? {
                texts.push((file.display().to_string(), read(&file)?));
            }
        } else if let Some(story) = story.filter(|_| !path.exists()) {
            texts.push((story.name.to_owned(), story.text.to_owned()));
        } else {
            texts.push((path.display().to_string(), read(path)?));
        }
    }
    let mut flaws = Vec::new();
    let mut scenarios = Vec::new();
    for (file, text) in texts {
        match Scenario::read(&file, &text) {
            Ok(scenario) => {
                flaws.extend(rejected(&file, &scenario));
                scenarios.push((file, scenario));
            }
            Err(found) => flaws.extend(found.iter().map(ToString::to_string)),
        }
    }
    if flaws.is_empty() {
        return Ok(scenarios);
    }
    let next = "mend what is named above; docs/scenarios.md shows the format";
    Err(Failure::new("scenarios that cannot be played", flaws.join("\n        "), next).into())
}

/// What an API server would say of a story's manifests: how one goes that it rejects nobody can know.
fn rejected(file: &str, scenario: &Scenario) -> Vec<String> {
    if scenario.manifests.is_empty() {
        return Vec::new();
    }
    let admission = raw::admission();
    let mut flaws = Vec::new();
    for (at, manifest) in scenario.manifests.iter().enumerate() {
        flaws.extend(admission.objections(manifest).into_iter().map(|objection| {
            let field = format!("{file}: manifests[{at}].{}", objection.field);
            format!("{field}: {}", objection.text)
        }));
    }
    flaws
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).map_err(|error| {
        let names: Vec<&str> = STORIES.iter().map(|story| story.name).collect();
        Failure::new(
            format!("cannot read {}", path.display()),
            error.to_string(),
            format!("name a file, a directory, or one of {}", names.join(", ")),
        )
        .into()
    })
}

fn files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| format!("read directory {}", directory.display()))?;
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_yaml).collect();
    files.sort();
    if files.is_empty() {
        let why = format!("no file in {} ends in .yaml", directory.display());
        return Err(Failure::new(
            "nothing to play",
            why,
            "name a directory with scenarios, such as scenarios",
        )
        .into());
    }
    Ok(files)
}

/// The NodePools of a dump, as their users wrote them.
fn pools(dump: &Path) -> anyhow::Result<Vec<serde_json::Value>> {
    let raw = raw::of_files(&[dump.to_owned()])?;
    raw::accepted(&raw, &raw::admission())?;
    let pools: Vec<serde_json::Value> = raw.of_kind("NodePool").cloned().collect();
    if pools.is_empty() {
        let next = "kubectl get nodepools -o yaml > nodepools.yaml";
        return Err(Failure::new(
            format!("no NodePool in {}", dump.display()),
            "nothing could be launched",
            next,
        )
        .into());
    }
    Ok(pools)
}

/// The dump's pools instead of the scenario's, on the cloud that their node class names.
fn replace_pools(scenario: &mut Scenario, pools: &[serde_json::Value]) {
    let kind = pools
        .first()
        .and_then(|pool| pool["spec"]["template"]["spec"]["nodeClassRef"]["kind"].as_str());
    if let Some(source) = kind.and_then(catalogue::Source::of_node_class) {
        source.name().clone_into(&mut scenario.cloud);
    }
    scenario.pools.clear();
    scenario.filled = None;
    for pool in pools {
        let mut pool = pool.clone();
        let annotations = pool["metadata"]["annotations"].take();
        pool["metadata"] = serde_json::json!({"name": pool["metadata"]["name"]});
        if annotations.is_object() {
            pool["metadata"]["annotations"] = annotations;
        }
        pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] = serde_json::json!("default");
        if let Some(pool) = pool.as_object_mut() {
            pool.remove("status");
        }
        scenario.manifests.push(pool);
    }
}

#[expect(clippy::disallowed_methods, reason = "how many runs a minute is what is measured")]
fn run_all(args: &Args, scenarios: &[(String, Scenario)]) -> anyhow::Result<Report> {
    let began = std::time::Instant::now();
    let jobs = Jobs::new(args, scenarios)?;
    if let Some(directory) = &args.save {
        fs::create_dir_all(directory).with_context(|| format!("create directory {}", directory.display()))?;
    }
    let next = AtomicUsize::new(0);
    let report = Mutex::new(Report::new(scenarios));
    let threads = match args.jobs {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        jobs => jobs,
    };
    let limit = args.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            scope.spawn(|| {
                while limit.is_none_or(|limit| began.elapsed() < limit)
                    && let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
                    && let Some((file, scenario)) = scenarios.get(job.at)
                {
                    let ran = run(args, scenario, &job);
                    // Saved at once: what a run of hours has found is there also if it is stopped.
                    let kept = ran.as_ref().ok().filter(|outcome| !outcome.failures.is_empty());
                    let kept = kept.and_then(|outcome| save(args, scenario, &job, outcome));
                    let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
                    report.add(&job, file, ran, kept);
                    if args.progress && report.is_time_to_tell(began.elapsed()) {
                        aside(&format!("{}\n", report.so_far(jobs.len(), began.elapsed())));
                    }
                }
            });
        }
    });
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.took(began.elapsed());
    if let (Some(file), Some((_, scenario))) = (&args.log, scenarios.first()) {
        let how = Play {
            is_written: true,
            ..how(args, scenario, args.seed)
        };
        let outcome = on_virtual_time(play(scenario, &how))??;
        fs::write(file, outcome.log).with_context(|| format!("write {}", file.display()))?;
    }
    Ok(report)
}

fn how(args: &Args, scenario: &Scenario, seed: u64) -> Play {
    Play {
        seed: scenario.seed.unwrap_or(seed),
        profile: match args.faults {
            Faults::Calm => Profile::Calm,
            Faults::Rough => Profile::Rough,
            Faults::Hostile => Profile::Hostile,
        },
        ..Play::default()
    }
}

/// A run to be made.
#[derive(Debug, Clone)]
struct Job {
    at: usize,
    seed: u64,
    /// Where the process dies, and what it was about to do or had just done.
    death: Option<(Strike, String)>,
}

/// All runs to be made, in order.
enum Jobs {
    /// Every scenario with a seed, then with the next.
    Seeds { first: u64, seeds: u64, scenarios: usize },
    /// These.
    Deaths(Vec<Job>),
}

impl Jobs {
    fn new(args: &Args, scenarios: &[(String, Scenario)]) -> anyhow::Result<Self> {
        if !args.sweep {
            return Ok(Self::Seeds {
                first: args.seed,
                seeds: args.seeds,
                scenarios: scenarios.len(),
            });
        }
        let mut jobs = Vec::new();
        for (at, (_, scenario)) in scenarios.iter().enumerate() {
            let calm = Job {
                at,
                seed: args.seed,
                death: None,
            };
            for point in run(args, scenario, &calm)?.points {
                let deaths = point.deaths().map(|death| Job {
                    death: Some((death, point.what.clone())),
                    ..calm.clone()
                });
                jobs.extend(deaths);
            }
        }
        Ok(Self::Deaths(jobs))
    }

    fn len(&self) -> usize {
        match self {
            Self::Seeds { seeds, scenarios, .. } => usize::try_from(*seeds).unwrap_or(usize::MAX) * scenarios,
            Self::Deaths(jobs) => jobs.len(),
        }
    }

    fn get(&self, number: usize) -> Option<Job> {
        match self {
            Self::Seeds { first, scenarios, .. } => (number < self.len()).then(|| Job {
                at: number % scenarios,
                seed: first + u64::try_from(number / scenarios).unwrap_or(u64::MAX),
                death: None,
            }),
            Self::Deaths(jobs) => jobs.get(number).cloned(),
        }
    }
}

fn run(args: &Args, scenario: &Scenario, job: &Job) -> anyhow::Result<scenario::Outcome> {
    let how = Play {
        strikes: job.death.clone().map(|(death, _)| vec![death]),
        ..how(args, scenario, job.seed)
    };
    let played = on_virtual_time(play(scenario, &how)).context("starting a runtime")?;
    Ok(played?)
}

/// Saves a failure with as little going wrong as makes it fail. Says where, or why not.
fn save(args: &Args, scenario: &Scenario, job: &Job, failed: &scenario::Outcome) -> Option<(String, usize)> {
    let directory = args.save.as_ref()?;
    let how = how(args, scenario, job.seed);
    let strikes = shrink(scenario, &how, failed, TRIES);
    let count = strikes.len();
    let mut small = saved(scenario, &how, failed, strikes);
    small.name = match &job.death {
        None => format!("{}-{}", scenario.name, job.seed),
        Some((death, _)) => format!("{}-{}-{}", scenario.name, job.seed, death.request),
    };
    let path = directory.join(format!("{}.yaml", small.name));
    let written = document::yaml(&small).and_then(|text| fs::write(&path, text).context("writing"));
    match written {
        Ok(()) => Some((path.display().to_string(), count)),
        Err(error) => Some((
            format!("nothing, as {} cannot be written: {error:#}", path.display()),
            count,
        )),
    }
}
