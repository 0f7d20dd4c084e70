//! `dovetail page`: the page of a cluster or a dump, on this machine; and what every page of ours has in common.

use std::{
    net::TcpListener,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context;
use async_trait::async_trait;
use ledger::Record;
use model::snapshot::Snapshot;
use serde_json::Value;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    time::Instant,
};
use web::{Access, Answers, Asked, Eye, Mode, Page, Refused, Seen, Title};

use crate::{
    budgets, decisions,
    live::wait_for,
    source::{self, Input, Needs, Origin, SourceArgs},
    whatif,
};

/// Show a cluster or a dump as a page in the browser, on this machine only.
///
/// The page is read-only. It has the fleet as a map, what it costs and could, pending pods with what stops them, budgets,
/// and what-ifs. The page of a running controller (--page-port) and of the demo have its decisions too.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Serve it on this port; 0: any that is free.
    #[arg(long, default_value_t = 0)]
    port: u16,
    #[command(flatten)]
    source: SourceArgs,
}

/// Days that a calendar of budgets shows.
const DAYS: u8 = 7;
/// How old what was read of a cluster may be.
const FRESH: Duration = Duration::from_secs(15);

/// Answers as the command line does.
pub(crate) struct CommandLine;

impl Answers for CommandLine {
    fn what(&self, record: &Record) -> String {
        decisions::what(record)
    }

    fn decision(&self, record: &Record) -> Value {
        decisions::document(record)
    }

    fn budgets(&self, snapshot: &Snapshot) -> Vec<(String, Value)> {
        budgets::by_pool(snapshot, DAYS)
    }

    fn whatif(&self, snapshot: &Snapshot, asked: &Asked) -> Result<Value, Refused> {
        whatif::for_page(snapshot, asked)
    }
}

/// Starts the page of a cluster.
pub(crate) fn start(listener: TcpListener, access: Access, title: Title, eye: Arc<dyn Eye>) -> anyhow::Result<Page> {
    let epoch = format!("{:x}", runtime::Clock::system().now().as_millisecond());
    let settings = web::Settings {
        listener,
        access,
        title,
        epoch,
        eye,
        answers: Arc::new(CommandLine),
    };
    Page::start(settings).context("starting the page")
}

pub(crate) fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Runs until Ctrl-C.
pub(crate) fn answer(args: &Args) -> anyhow::Result<ExitCode> {
    let input = source::read(&args.source, Needs::Decisions)?;
    let listener = TcpListener::bind(("127.0.0.1", args.port))
        .with_context(|| format!("port {} cannot be opened; --port chooses another", args.port))?;
    let address = listener.local_addr()?;
    let place = input
        .catalogue
        .as_ref()
        .map(|offers| format!("{} {}", offers.name, offers.region));
    // Of a dump the last part of its path says most.
    let name = input.origin.name().trim_end_matches('/');
    let name = name.rsplit('/').next().unwrap_or(name);
    let is_live = matches!(input.origin, Origin::Live { .. });
    let title = Title {
        cluster: name.to_owned(),
        place: place.unwrap_or_default().trim().to_owned(),
        mode: Mode::Dump,
        version: version(),
        acts: Vec::new(),
    };
    let eye = Reader {
        source: is_live.then(|| args.source.clone()),
        last: Arc::new(Mutex::new((seen(&input), Instant::now()))),
    };
    let _page = start(listener, Access::ThisMachine, title, Arc::new(eye))?;
    print(&format!("page     http://{address}\n\nCtrl-C ends it.\n"));
    wait_for(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn seen(input: &Input) -> Seen {
    Seen {
        snapshot: input.snapshot.clone(),
        decisions: Vec::new(),
        stage: None,
    }
}

#[expect(clippy::print_stdout, reason = "where the page is")]
fn print(text: &str) {
    println!("{text}");
}

/// Looks at what was read, and reads a cluster again when that is old.
struct Reader {
    /// What to read again; none for a dump.
    source: Option<SourceArgs>,
    last: Arc<Mutex<(Seen, Instant)>>,
}

#[async_trait]
impl Eye for Reader {
    async fn look(&self) -> Result<Seen, String> {
        let (seen, at) = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(source) = self.source.clone().filter(|_| at.elapsed() >= FRESH) else {
            return Ok(seen);
        };
        // Reading waits on a runtime of its own.
        let (tell, told) = oneshot::channel();
        std::thread::spawn(move || {
            let read = source::read(&source, Needs::Decisions);
            let _ = tell.send(
                read.map(|input| self::seen(&input))
                    .map_err(|error| format!("{error:#}")),
            );
        });
        let seen = told.await.map_err(|_| "reading the cluster stopped".to_owned())??;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = (seen.clone(), Instant::now());
        Ok(seen)
    }
}
