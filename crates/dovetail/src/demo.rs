//! `dovetail demo`: a cluster in this process, with the real controllers, to play with.

mod act;
mod eye;
mod lease;
mod opening;
mod screen;
mod summary;

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc, Mutex as StdMutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, bail};
use catalogue::Source;
use cloud_sim::Rules;
use jiff::Timestamp;
use runtime::{Clock, Settings};
use scenario::{Fullness, Life, Pace, Pool, Scenario, Setup, Speed, Tally, Workload, World};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::{Mutex, mpsc::UnboundedSender, oneshot},
    task::JoinSet,
    time::Instant,
};

use self::{screen::Notice, summary::Summary};
use web::{Access, Mode, Title};

use crate::{
    document, page, simulate,
    terminal::{Presentation, aside},
};

/// Start a cluster in this process and watch the autoscaler work in it: no cloud, no containers, no root.
///
/// The controllers are the real ones; the API server, the scheduler, the kubelets and the cloud are simulated. kubectl and
/// any other client can speak to it. Everything is gone when it ends.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Whose instance types and prices; aws, or what the scenario says.
    #[arg(long, value_enum)]
    cloud: Option<Cloud>,
    /// Tell a story: a name of `dovetail simulate`, or a file.
    #[arg(long, value_name = "NAME|FILE")]
    scenario: Option<PathBuf>,
    /// How many times faster than the wall time passes, such as 60x.
    #[arg(long, default_value = "1x", value_name = "TIMES", value_parser = times)]
    speed: u32,
    /// Of everything that chance decides: boot times, spot prices, names.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Begin with so many nodes …
    #[arg(long, default_value_t = 0)]
    nodes: u64,
    /// … and so many pods on them.
    #[arg(long, default_value_t = 0)]
    pods: u64,
    /// Serve the cluster's API on this port; 0: any that is free.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Serve the page on this port; 0: any that is free.
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    page_port: u16,
    /// Write the kubeconfig here.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// End by itself after so many seconds of the wall.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// How to print what it came to; as a document it is all that is printed, and where the cluster is goes to standard error.
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
pub(crate) enum Cloud {
    Aws,
    Azure,
    Kwok,
}

impl From<Cloud> for Source {
    fn from(cloud: Cloud) -> Self {
        match cloud {
            Cloud::Aws => Self::Aws,
            Cloud::Azure => Self::Azure,
            Cloud::Kwok => Self::Kwok,
        }
    }
}

/// The most a demo is hurried: beyond it the machine cannot follow anyway.
const FASTEST: u32 = 3600;

fn times(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('x').unwrap_or(text).parse::<u32>().ok();
    number
        .filter(|times| (1..=FASTEST).contains(times))
        .ok_or_else(|| format!("{text:?} is not a speed: write 1x to {FASTEST}x"))
}

/// Runs until Ctrl-C.
pub(crate) fn answer(args: &Args) -> anyhow::Result<ExitCode> {
    if args.pods > 0 && args.nodes == 0 {
        bail!("--pods {} needs nodes to run on: add --nodes N", args.pods);
    }
    let pace = Pace { times: args.speed };
    let speed = Speed::new(pace);
    let ended = scenario::at_speed(&speed, run(args, speed.clone())).context("starting the demo's clock")?;
    ended.map(|()| ExitCode::SUCCESS)
}

/// What the parts of a demo share.
pub(crate) struct Demo {
    pub(crate) world: World,
    pub(crate) tally: Mutex<Tally>,
    pub(crate) began: Instant,
    /// How fast time passes.
    pub(crate) speed: Speed,
    /// What happened last, in words.
    said: StdMutex<Option<(Timestamp, String)>>,
    /// Things that people did so far.
    numbers: AtomicU32,
}

impl Demo {
    /// What happened last, in words.
    fn said(&self) -> Option<(Timestamp, String)> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Something happens.
    fn say(&self, what: &str) {
        let said = (self.world.clock.now(), what.to_owned());
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
    }

    /// A number for something new.
    fn next_number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }
}

async fn run(args: &Args, speed: Speed) -> anyhow::Result<()> {
    let story = args.scenario.as_deref().map(simulate::read_one).transpose()?;
    let source = source(args, story.as_ref())?;
    let setup = Setup {
        source,
        rules: Rules {
            seed: args.seed,
            price_step: Some(Duration::from_mins(10)),
            ..Rules::default()
        },
        settings: Settings::default(),
        start: Clock::system().now_in_seconds(),
        is_checked: true,
    };
    let world = World::new(&setup).context("reading the catalogue of the cloud")?;
    let mut changes = world.server.changes();
    let demo = Arc::new(Demo {
        world,
        tally: Mutex::default(),
        began: Instant::now(),
        speed,
        said: StdMutex::default(),
        numbers: AtomicU32::new(0),
    });
    match &story {
        Some(story) => scenario::furnish(story, &demo.world).map_err(anyhow::Error::msg)?,
        None => furnish(&demo.world, source, args)?,
    }
    let api = listen("--port", args.port).await?;
    let page = listen("--page-port", args.page_port).await?;
    let screen = args.presentation.screen();
    let opening = opening::Opening::new(args, source, &api, &page, scalable(&demo.world.server))?;
    let mut tasks = JoinSet::new();
    tasks.spawn(lease::hold(demo.world.server.clone()));
    tasks.spawn(simulator::http::serve(demo.world.server.clone(), api));
    let (window, asked) = eye::window();
    let _page = page::start(page.into_std()?, Access::ThisMachine, title(source), Arc::new(window))?;
    tasks.spawn(eye::answer(Arc::clone(&demo), asked));
    let counting = Arc::clone(&demo);
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    let telling = tell.clone();
    tasks.spawn(async move {
        while let Some(change) = changes.recv().await {
            let now = counting.world.clock.now();
            counting.tally.lock().await.see(&change, now);
            if let Some(notice) = screen::notice(&change, &counting.world) {
                let _ = tell.send((now, notice));
            }
        }
    });
    let is_shown = args.output == Format::Table;
    if is_shown {
        screen::print(&opening.text(&screen));
    } else {
        aside(&opening.text(&screen));
    }
    let mut life = Life::begin(&demo.world);
    let end = Instant::now() + Duration::from_hours(24 * 365);
    tokio::select! {
        biased;
        asked = stop_asked(args) => asked?,
        () = life.until(&demo.world, end) => {}
        () = screen::show(&demo, told, screen), if is_shown => {}
        () = play(story.as_ref(), &demo, &telling) => {}
    }
    let summary = Summary::of(&demo).await;
    screen::print(&match args.output {
        Format::Table => summary.text(),
        Format::Json => document::json(&summary.document(args.seed))?,
        Format::Yaml => document::yaml(&summary.document(args.seed))?,
    });
    Ok(())
}

/// Tells the story, if there is one, and then waits with everybody else.
async fn play(story: Option<&Scenario>, demo: &Demo, tell: &UnboundedSender<(Timestamp, Notice)>) {
    if let Some(story) = story {
        scenario::tell(story, &demo.world, |said| {
            demo.say(said);
            let _ = tell.send((demo.world.clock.now(), Notice::story(said)));
        })
        .await;
    }
    std::future::pending::<()>().await;
}

fn source(args: &Args, story: Option<&Scenario>) -> anyhow::Result<Source> {
    match (args.cloud, story) {
        (Some(cloud), _) => Ok(cloud.into()),
        (None, Some(story)) => story.source().map_err(anyhow::Error::msg),
        (None, None) => Ok(Source::Aws),
    }
}

/// What the demo begins with.
const SHOP: &str = include_str!("demo/shop.yaml");

/// The example to begin with: a shop in three pools; or as many nodes of one pool as are asked for.
fn furnish(world: &World, source: Source, args: &Args) -> anyhow::Result<()> {
    if args.nodes == 0 {
        let shop = Scenario::read("shop.yaml", SHOP).map_err(|flaws| {
            let flaws: Vec<String> = flaws.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("{}", flaws.join("; "))
        })?;
        return scenario::furnish(&shop, world).map_err(anyhow::Error::msg);
    }
    let pool = Pool {
        name: "default".to_owned(),
        ..Pool::default()
    };
    let web = Workload {
        name: "web".to_owned(),
        replicas: 5,
        cpu: "500m".to_owned(),
        memory: "1Gi".to_owned(),
        ..Workload::default()
    };
    let mut manifests = vec![scenario::node_class(source), pool.manifest(source)];
    manifests.extend(web.manifests(world.keeper));
    for manifest in manifests {
        world
            .server
            .create(manifest)
            .map_err(|failure| anyhow::anyhow!("{}", failure.message))?;
    }
    scenario::prefill(world, &pool, args.nodes, args.pods, Fullness::Full)?;
    Ok(())
}

async fn listen(flag: &str, port: u16) -> anyhow::Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", port))
        .await
        .with_context(|| format!("port {port} cannot be opened; {flag} chooses another, {flag} 0 any that is free"))
}

/// What a person is told to scale: the shop's front, or whatever a story has.
fn scalable(server: &simulator::ApiServer) -> Option<String> {
    let all = server.objects("Deployment");
    let names = || all.iter().filter_map(|one| one["metadata"]["name"].as_str());
    let found = names().find(|name| *name == "web").or_else(|| names().next());
    found.map(ToOwned::to_owned)
}

async fn stop_asked(args: &Args) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let limit = wall(args.seconds);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = limit => {}
    }
    Ok(())
}

/// Waits so many seconds of the wall, whose time passes here however fast the cluster's does; for ever without a number.
async fn wall(seconds: Option<u64>) {
    let Some(seconds) = seconds else {
        return std::future::pending().await;
    };
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(seconds));
        let _ = tell.send(());
    });
    let _ = told.await;
}

fn title(source: Source) -> Title {
    let region = source.priced_regions().first().copied().unwrap_or_default();
    Title {
        cluster: "demo".to_owned(),
        place: format!("{} {region}", source.name()).trim_end().to_owned(),
        mode: Mode::Demo,
        version: page::version(),
        acts: act::acts(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_number_of_times() {
        assert_eq!([times("60x"), times("1")], [Ok(60), Ok(1)]);
        for wrong in ["0x", "fast", "", "1.5x", "100000x"] {
            assert!(times(wrong).is_err(), "{wrong:?}");
        }
    }
}
