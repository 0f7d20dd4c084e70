//! `dovetail top`: the fleet on a terminal, live or from a dump. Threads read, look ahead and answer; this one only draws.

mod answers;
mod event;
mod follow;
mod latest;
mod look;
mod object;
mod place;
mod reader;
mod screen;
mod written;

use std::{
    process::ExitCode,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use insight::Prices;
use ratatui_core::{
    buffer::{Buffer, Cell},
    layout::Rect,
};
use tui::{Ahead, App, Choices, Effect, Event, Picture, Selector, Sort};

use self::{answers::Answers, latest::Latest, screen::Terminal};
use crate::{
    answer::Answer,
    failure::Failure,
    plan::threads,
    source::{self, Needs, SourceArgs},
    terminal::Presentation,
};

/// The fleet, live: nodes, reasons, pending pods, decisions.
///
/// eks-node-viewer's flags work with their meaning, and its file of defaults ~/.eks-node-viewer is read unless there is
/// ~/.config/dovetail/top. Where standard output is no terminal, the nodes are printed once. Nothing is ever written to the
/// cluster. Press ? for the keys.
///
///     dovetail top --from dump/
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Only nodes with these labels: `key`, `!key`, `key=value`, `key in (a,b)`, joined by commas.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    node_selector: Option<String>,
    /// Resources with a bar each; otherwise cpu,memory.
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',')]
    resources: Vec<String>,
    /// The order of nodes: next, creation, price, cpu, memory, pods, name or a label; with =asc or =dsc.
    #[arg(long, value_name = "KEY")]
    node_sort: Option<String>,
    /// Labels with a column each, also eks-node-viewer/node-age and its like.
    #[arg(long, value_name = "LABELS", value_delimiter = ',')]
    extra_labels: Vec<String>,
    /// Show no prices.
    #[arg(long)]
    disable_pricing: bool,
    /// Three colours for good, middling and bad values: #04B575,#FFFF00,#FF0000.
    #[arg(long, value_name = "COLOURS")]
    style: Option<String>,
    /// How often a live cluster is looked at, at most.
    #[arg(long, value_name = "SECONDS", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Leave the mouse to the terminal.
    #[arg(long)]
    no_mouse: bool,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    presentation: Presentation,
}

fn interval(text: &str) -> Result<Duration, String> {
    let bare = text
        .strip_suffix('s')
        .filter(|rest| !rest.ends_with('m'))
        .unwrap_or(text);
    let seconds = match bare.strip_suffix("ms") {
        Some(millis) => millis.parse::<f64>().ok().map(|millis| millis / 1000.0),
        None => bare.parse::<f64>().ok(),
    };
    let fits = seconds.filter(|seconds| (0.1..=3600.0).contains(seconds));
    let fits = fits.ok_or_else(|| format!("{text:?} is no interval: write 250ms, 1s or 10s"))?;
    Ok(Duration::from_secs_f64(fits))
}

/// What comes to the thread that draws.
pub(crate) enum News {
    /// Something happened.
    Event(Box<Event>),
    /// The source cannot be read at all, and never was.
    Failed(anyhow::Error),
    /// Somebody wants this to end.
    Quit,
}

impl From<Event> for News {
    fn from(event: Event) -> Self {
        Self::Event(Box::new(event))
    }
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<ExitCode> {
    let defaults = place::defaults()?;
    let choices = choices(args, &defaults)?;
    let look = look::of(
        args.presentation.screen(),
        args.style.as_deref().or(defaults.get("style")),
    )?;
    if !look::is_terminal() {
        return once(args, choices, look)?.print();
    }
    run(args, choices, look)
}

fn choices(args: &Args, defaults: &tui::Defaults) -> Result<Choices, Failure> {
    let wrong =
        |flag: &str, why: String| Failure::usage(format!("--{flag} cannot be read"), why, "dovetail top --help");
    let given = |flag: &Option<String>, name: &str| flag.clone().or_else(|| defaults.get(name).map(str::to_owned));
    let listed = |flag: &[String], name: &str| -> Vec<String> {
        let words = if flag.is_empty() {
            let text = defaults.get(name).unwrap_or_default();
            text.split(',').map(|word| word.trim().to_owned()).collect()
        } else {
            flag.to_vec()
        };
        words.into_iter().filter(|word| !word.is_empty()).collect()
    };
    let mut choices = Choices::default();
    let resources = listed(&args.resources, "resources");
    if !resources.is_empty() {
        choices.resources = resources;
    }
    choices.extra_labels = listed(&args.extra_labels, "extra-labels");
    let selector = given(&args.node_selector, "node-selector").unwrap_or_default();
    choices.selector = Selector::read(&selector).map_err(|why| wrong("node-selector", why))?;
    if let Some(sort) = given(&args.node_sort, "node-sort") {
        choices.sort = Sort::read(&sort).map_err(|why| wrong("node-sort", why))?;
    }
    let is_disabled = args.disable_pricing || defaults.get("disable-pricing") == Some("true");
    choices.has_prices = !is_disabled;
    Ok(choices)
}

/// Columns of the list where there is no terminal.
const PRINTED: u16 = 160;
/// Lines around the list.
const AROUND: usize = 12;

/// The list of nodes, once.
fn once(args: &Args, choices: Choices, look: tui::Look) -> anyhow::Result<Answer> {
    let input = source::read(&args.source, Needs::Decisions)?.about_moves();
    let title = place::title(&input);
    let screen = args.presentation.screen();
    let snapshot = Arc::new(input.snapshot.clone());
    let prices = Arc::new(Prices::of(&snapshot));
    let picture = Arc::new(Picture::of(1, snapshot, prices, title, &choices));
    let ahead = Arc::new(Ahead::of(&picture, threads()));
    let lines = picture.rows.len() + choices.resources.len() + AROUND;
    let width = screen
        .width
        .and_then(|width| u16::try_from(width).ok())
        .unwrap_or(PRINTED)
        .max(80);
    let height = u16::try_from(lines).unwrap_or(u16::MAX).max(24);
    let mut app = App::new(
        place::kind(&args.source),
        choices,
        tui::Look {
            depth: tui::Depth::Mono,
            palette: tui::Palette::Mono,
            ..look
        },
    );
    app.handle(Event::Resize(width, height), 0);
    app.handle(Event::Picture(picture), 0);
    app.handle(Event::Ahead(ahead), 0);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    tui::draw(&mut app, &mut buffer, 0);
    let rows = buffer.content().chunks(usize::from(width));
    let text = rows.map(|row| row.iter().map(Cell::symbol).collect::<String>());
    let mut lines: Vec<String> = text.map(|line| line.trim_end().to_owned()).collect();
    // The last line is about keys, which nobody can press here; and nothing is under a cursor.
    lines.pop();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let text: String = lines
        .iter()
        .map(|line| {
            format!(
                "{}\n",
                line.strip_prefix('>').map_or(line.clone(), |rest| format!(" {rest}"))
            )
        })
        .collect();
    Ok(Answer {
        text,
        notes: input.closing(&screen),
        ..Answer::default()
    })
}

/// A clock that nobody sets.
#[expect(clippy::disallowed_methods, reason = "frames are drawn by the time of the wall")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// Frames are this far apart, unless somebody presses a key.
const FRAME: Duration = Duration::from_millis(100);
/// How long the thread that draws sleeps when nothing is due.
const LONG: Duration = Duration::from_hours(1);

fn run(args: &Args, choices: Choices, look: tui::Look) -> anyhow::Result<ExitCode> {
    let (tell, told) = mpsc::channel::<News>();
    let newest: Arc<Latest<Arc<Picture>>> = Arc::default();
    answers::look_ahead(Arc::clone(&newest), tell.clone());
    reader::start(args.source.clone(), choices.clone(), args.interval, &newest, &tell);
    let mut answers = Answers::new(&args.source, look.is_ascii, &tell);
    let kind = place::kind(&args.source);
    let mut app = App::new(kind, choices, look);
    let mut terminal = Terminal::open(!args.no_mouse)?;
    screen::listen(&tell);
    drop(tell);
    let size = terminal.size()?;
    app.handle(Event::Resize(size.0, size.1), 0);
    let began = instant();
    let mut drawn_at: Option<Instant> = None;
    loop {
        let now_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let is_due = drawn_at.is_none_or(|at| at.elapsed() >= FRAME);
        if is_due {
            terminal.draw(&mut app, now_ms)?;
            drawn_at = Some(instant());
        }
        let wait = if is_due {
            app.wake_in(now_ms).map_or(LONG, Duration::from_millis)
        } else {
            FRAME
        };
        let first = match told.recv_timeout(wait) {
            Ok(news) => news,
            Err(mpsc::RecvTimeoutError::Timeout) => continue,
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(ExitCode::SUCCESS),
        };
        let now_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        for news in std::iter::once(first).chain(std::iter::from_fn(|| told.try_recv().ok())) {
            let event = match news {
                News::Event(event) => *event,
                News::Failed(error) => return Err(error),
                News::Quit => return Ok(ExitCode::SUCCESS),
            };
            if matches!(event, Event::Key(_) | Event::Mouse(_) | Event::Resize(..)) {
                drawn_at = None;
            }
            if let Event::Picture(picture) = &event {
                answers.about(picture);
            }
            for effect in app.handle(event, now_ms) {
                match effect {
                    Effect::Quit => return Ok(ExitCode::SUCCESS),
                    Effect::Copy(text) => screen::copy(&text)?,
                    Effect::Ask(question) => answers.ask(question),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_written_with_its_unit_or_in_seconds() {
        let read = |text| interval(text).map(|it| it.as_millis());
        assert_eq!([read("250ms"), read("1s"), read("2")], [Ok(250), Ok(1000), Ok(2000)]);
        for wrong in ["", "fast", "0", "-1s", "2h", "NaN"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
