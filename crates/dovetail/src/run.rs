//! `dovetail run`: the autoscaler in a cluster.
//!
//! Two threads that wait. On the edge: the lease and the probes, which must answer whatever else happens. In the middle:
//! watches, state and controllers. Plans are computed on threads of their own. Losing the lease ends a term: everything
//! that acts is dropped, and the next term begins with an empty state.

mod choice;
mod edge;
mod namespace;
mod page;
mod telling;
mod term;

use std::{
    path::Path,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context;
use controllers::{Keeper, flight::Flight};
use notify::Teller;
use runtime::{Clock, Metrics, Settings, log};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

use self::edge::Edge;

/// Run the autoscaler: launch nodes for pods that find none, remove nodes that are to go.
///
/// Flags and environment variables are Karpenter's: `dovetail run --log-level=debug` and `LOG_LEVEL=debug dovetail run` are
/// the same. Without a command, but with Karpenter's flags or environment, `dovetail` runs too: it drops into Karpenter's
/// Deployment.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Args {
    /// Karpenter's flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAG")]
    pub(crate) flags: Vec<String>,
}

/// Variables of which any says that Karpenter's Deployment started us.
const DEPLOYED: &[&str] = &[
    "KUBERNETES_SERVICE_HOST",
    "KARPENTER_SERVICE",
    "FEATURE_GATES",
    "METRICS_PORT",
    "HEALTH_PROBE_PORT",
    "LEADER_ELECTION_NAMESPACE",
    "SYSTEM_NAMESPACE",
];

/// A variable of the environment.
#[expect(clippy::disallowed_methods, reason = "this is where the environment comes in")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Whether a command line without a command is Karpenter's: it has its flags, or only its environment.
pub(crate) fn is_meant(args: &[String]) -> bool {
    let asks = |arg: &String| matches!(arg.as_str(), "-h" | "--help" | "-V" | "--version");
    match args.first() {
        Some(first) => first.starts_with('-') && !asks(first),
        None => DEPLOYED.iter().any(|name| variable(name).is_some()),
    }
}

/// Runs until a signal asks for the end.
pub(crate) fn answer(args: &Args) -> anyhow::Result<ExitCode> {
    if args.flags.iter().any(|flag| flag == "--help" || flag == "-h") {
        print_usage();
        return Ok(ExitCode::SUCCESS);
    }
    let (settings, notices) = Settings::parse(args.flags.iter().cloned(), variable)?;
    choice::check(&settings)?;
    let clock = Clock::system();
    log::start(&settings, env!("CARGO_PKG_VERSION"), clock.clone(), variable)?;
    for notice in notices {
        tracing::info!("{notice}");
    }
    let process = Process {
        keeper: Arc::default(),
        known: Arc::default(),
        flight: flight(&settings)?,
        teller: telling::teller(&settings, &clock)?,
        settings: Arc::new(settings),
        metrics: Arc::new(Metrics::default()),
        clock,
    };
    process.metrics.set_build(env!("CARGO_PKG_VERSION"), "unknown");
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        karpenter = api::KARPENTER_VERSION,
        "starting dovetail"
    );
    let edge = Edge::start(&process)?;
    let page = page::start(&process)?;
    let middle = Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let ended = middle.block_on(async {
        tokio::select! {
            ended = term::terms(&process, &edge) => ended,
            asked = stop_asked() => asked,
        }
    });
    // While the lease is still ours, and not for long: somebody waits for us to be gone.
    middle.block_on(process.tell_last());
    middle.block_on(process.keep_decisions());
    drop(page);
    // Whatever acts ends here; only then may somebody else lead.
    drop(middle);
    edge.stop();
    if let Some(flight) = &process.flight {
        flight.finish();
    }
    ended.map(|()| ExitCode::SUCCESS)
}

/// What all parts of the process share.
#[derive(Clone)]
struct Process {
    settings: Arc<Settings>,
    metrics: Arc<Metrics>,
    clock: Clock,
    /// Who keeps the decisions of the term under way.
    keeper: Arc<Mutex<Option<Arc<Keeper>>>>,
    /// What the term under way knows of the cluster, for the page.
    known: page::Known,
    /// What decisions are made on, if that is recorded.
    flight: Option<Arc<Flight>>,
    /// Who is told of decisions, if anybody is.
    teller: Option<Arc<Teller>>,
}

/// How long the last decisions may take to be kept, and to be told.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl Process {
    /// Writes down what was decided since it last was.
    async fn keep_decisions(&self) {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(keeper) = keeper {
            let kept = tokio::time::timeout(LAST_WORDS, keeper.save(true)).await;
            if kept.is_err() {
                tracing::error!("the last decisions could not be kept in time");
            }
        }
    }
}

fn flight(settings: &Settings) -> anyhow::Result<Option<Arc<Flight>>> {
    let path = settings.flight_recorder.as_str();
    if path.is_empty() {
        return Ok(None);
    }
    let flight =
        Flight::start(Path::new(path)).with_context(|| format!("--flight-recorder {path:?} cannot be written"))?;
    Ok(Some(Arc::new(flight)))
}

/// How we name ourselves to the API server: upstream's name, so that audit rules and field managers stay the same.
const USER_AGENT: &str = concat!("karpenter/", env!("CARGO_PKG_VERSION"));

async fn stop_asked() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping: the lease is given back");
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this is what was asked for")]
fn print_usage() {
    println!("{}", runtime::settings::usage());
}
