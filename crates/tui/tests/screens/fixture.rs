//! The cluster of the fixture, and somebody who presses keys and looks at the screen.

use std::{
    path::PathBuf,
    sync::{Arc, LazyLock},
};

use catalogue::Source;
use insight::Prices;
use ledger::Record;
use model::{
    dump,
    snapshot::{Snapshot, Title as Named},
};
use ratatui_core::{backend::TestBackend, buffer::Cell, terminal::Terminal};
use tui::{
    Ahead, Answer, App, Choices, Depth, Drawn, Effect, Event, Key, Look, Picture, Place, Press, Question, Title,
    answered, draw,
};

/// Milliseconds at which everything has arrived.
pub(crate) const NOW: u64 = 10_000;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The fixture, at 15:42 UTC, with AWS' prices.
pub(crate) static SNAPSHOT: LazyLock<Arc<Snapshot>> = LazyLock::new(|| {
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at: "2026-11-16T15:42:00Z".parse().unwrap(),
    };
    let path = root().join("crates/dovetail/tests/fixtures/prod-us");
    let (raw, _) = dump::read([dump::Source::Path(path)], options).unwrap();
    let zones = ["us-east-1a", "us-east-1b", "us-east-1c"].map(str::to_owned);
    let loaded = catalogue::load(Source::Aws, Some("us-east-1"), &zones).unwrap();
    let title = Named {
        taken_at: "2026-11-16T15:42:00Z".parse().unwrap(),
        ..raw.title().clone()
    };
    let (settings, objects) = (raw.settings().clone(), raw.objects().clone());
    Arc::new(Snapshot::sharing(
        title,
        settings.into(),
        objects,
        loaded.catalog.into(),
    ))
});

static PRICES: LazyLock<Arc<Prices>> = LazyLock::new(|| Arc::new(Prices::of(&SNAPSHOT)));
static AHEAD: LazyLock<Arc<Ahead>> = LazyLock::new(|| Arc::new(Ahead::of(&picture(1, &Choices::default()), 1)));

pub(crate) fn title() -> Title {
    Title {
        cluster: "prod-us".into(),
        kubernetes: "v1.33.2-eks-7f2c".into(),
        region: "us-east-1".into(),
        leader: Some("dovetail-7c9f-4kz".into()),
        prices_of: "2026-07-20".into(),
    }
}

pub(crate) fn picture(serial: u64, choices: &Choices) -> Arc<Picture> {
    pictured(serial, &SNAPSHOT, choices)
}

pub(crate) fn pictured(serial: u64, snapshot: &Arc<Snapshot>, choices: &Choices) -> Arc<Picture> {
    let prices = Arc::clone(&PRICES);
    Arc::new(Picture::of(serial, Arc::clone(snapshot), prices, title(), choices))
}

fn decisions() -> Vec<Record> {
    let (records, unread) = ledger::read_lines(include_str!("decisions.jsonl"));
    assert_eq!(unread, 0);
    records
}

/// An object as the program writes it; short enough to be read here.
fn written(question: &Question) -> Option<String> {
    let text = match question {
        Question::Object {
            is_described: false, ..
        } => include_str!("node.yaml"),
        Question::Object { is_described: true, .. } => include_str!("node-described.txt"),
        Question::Events { .. } => include_str!("node-events.txt"),
        _ => return None,
    };
    Some(text.to_owned())
}

/// Somebody in front of a screen. Questions are answered at once.
pub(crate) struct Person {
    pub(crate) app: App,
    pub(crate) now: u64,
    pub(crate) choices: Choices,
    /// What was to be done besides answering.
    pub(crate) done: Vec<Effect>,
    pub(crate) asked: Vec<Question>,
    size: (u16, u16),
}

impl Person {
    /// Who knows nothing yet.
    pub(crate) fn before(choices: Choices, place: Place, look: Look) -> Self {
        Self {
            app: App::new(place, choices.clone(), look),
            now: 0,
            choices,
            done: Vec::new(),
            asked: Vec::new(),
            size: (120, 36),
        }
    }

    pub(crate) fn with(choices: Choices) -> Self {
        let mut person = Self::before(choices, Place::Live, Look::best(Depth::Mono, false));
        person.now = NOW - 400;
        let picture = picture(1, &person.choices);
        person.give(Event::Picture(picture));
        person.give(Event::Ahead(Arc::clone(&AHEAD)));
        person.give(Event::Decisions(decisions()));
        person.now = NOW;
        person
    }

    pub(crate) fn new() -> Self {
        Self::with(Choices::default())
    }

    pub(crate) fn ascii() -> Self {
        let mut person = Self::new();
        let mut other = Self::before(Choices::default(), Place::Live, Look::best(Depth::Mono, true));
        std::mem::swap(&mut person.app, &mut other.app);
        person.now = NOW - 400;
        person.give(Event::Picture(picture(1, &Choices::default())));
        person.give(Event::Ahead(Arc::clone(&AHEAD)));
        person.give(Event::Decisions(decisions()));
        person.now = NOW;
        person
    }

    pub(crate) fn sized(mut self, width: u16, height: u16) -> Self {
        self.resize(width, height);
        self
    }

    pub(crate) fn resize(&mut self, width: u16, height: u16) {
        self.size = (width, height);
        self.give(Event::Resize(width, height));
    }

    pub(crate) fn give(&mut self, event: Event) {
        for effect in self.app.handle(event, self.now) {
            match effect {
                Effect::Ask(question) => self.answer(question),
                other => self.done.push(other),
            }
        }
    }

    fn answer(&mut self, question: Question) {
        self.asked.push(question.clone());
        let picture = picture(1, &self.choices);
        let answer = answered(&picture, &question, 1).unwrap_or_else(|| {
            if let Some(text) = written(&question) {
                return Answer::Text(text);
            }
            let words = match &question {
                Question::Why { object, .. } => object.join(" "),
                Question::Command { words, .. } => words.join(" "),
                _ => String::new(),
            };
            Answer::Text((1..=60).map(|line| format!("line {line} of {words}\n")).collect())
        });
        self.give(Event::Answer(1, question, answer));
    }

    /// Presses keys: signs as they are, others as `<enter>`.
    pub(crate) fn press(&mut self, keys: &str) -> &mut Self {
        let mut rest = keys;
        while let Some(sign) = rest.chars().next() {
            let named = rest.strip_prefix('<').and_then(|inner| inner.split_once('>'));
            let key = match named {
                Some((name, after)) if !name.is_empty() && name.chars().all(|sign| sign.is_ascii_lowercase()) => {
                    rest = after;
                    match name {
                        "enter" => Key::Enter,
                        "esc" => Key::Esc,
                        "tab" => Key::Tab,
                        "down" => Key::Down,
                        "up" => Key::Up,
                        "left" => Key::Left,
                        "right" => Key::Right,
                        "pgdn" => Key::PageDown,
                        "end" => Key::End,
                        "back" => Key::Backspace,
                        other => panic!("no key {other}"),
                    }
                }
                _ => {
                    rest = &rest[sign.len_utf8()..];
                    Key::Char(sign)
                }
            };
            // People look before they press on, and lists scroll when they are drawn.
            self.screen();
            self.give(Event::Key(Press::from(key)));
        }
        self
    }

    /// What is on the screen, and what it took to draw it.
    pub(crate) fn drawn(&mut self) -> (String, Drawn) {
        let (width, height) = self.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let mut work = Drawn::default();
        terminal
            .draw(|frame| work = draw(&mut self.app, frame.buffer_mut(), self.now))
            .unwrap();
        let cells = terminal.backend().buffer().content().chunks(usize::from(width));
        let lines = cells.map(|row| {
            let line: String = row.iter().map(Cell::symbol).collect();
            format!("{}\n", line.trim_end())
        });
        (lines.collect(), work)
    }

    pub(crate) fn screen(&mut self) -> String {
        self.drawn().0
    }

    /// The line that holds a text.
    pub(crate) fn line(&mut self, text: &str) -> String {
        let screen = self.screen();
        let found = screen.lines().find(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("no {text:?} in\n{screen}")).to_owned()
    }

    /// The node under the cursor.
    pub(crate) fn here(&mut self) -> String {
        let screen = self.screen();
        let line = screen.lines().find(|line| line.starts_with('>'));
        let line = line.unwrap_or_else(|| panic!("no cursor in\n{screen}"));
        line[1..].split_whitespace().next().unwrap_or_default().to_owned()
    }

    /// The first word of every row of the list.
    pub(crate) fn rows(&mut self) -> Vec<String> {
        let screen = self.screen();
        let rows = screen
            .lines()
            .filter(|line| line.get(1..).is_some_and(|line| line.starts_with("ip-")));
        rows.map(|line| line[1..].split_whitespace().next().unwrap_or_default().to_owned())
            .collect()
    }
}
