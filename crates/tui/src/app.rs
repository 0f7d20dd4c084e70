//! What is on the screen and how it got there: a state that events change and frames are drawn from.

mod asking;
mod command;
mod keys;
mod lists;
mod prompt;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use ledger::Record;
use ratatui_core::layout::Rect;

pub(crate) use self::prompt::{Asked, Prompt};
use crate::{
    ahead::Ahead,
    answer::{Answer, Question},
    choice::{Choices, Sort, SortKey},
    figure,
    listing::{Cursor, Group, Listing},
    picture::{Picture, PodLine, differences},
    theme::{Look, Role},
};

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// The terminal has another size.
    Resize(u16, u16),
    /// A key was pressed.
    Key(Press),
    /// The mouse did something.
    Mouse(Mouse),
    /// There is a new snapshot.
    Picture(Arc<Picture>),
    /// The engine looked ahead.
    Ahead(Arc<Ahead>),
    /// Decisions were read.
    Decisions(Vec<Record>),
    /// There are none, and this is why.
    NoDecisions(String),
    /// A question is answered, about a snapshot.
    Answer(u64, Question, Answer),
    /// The source is there and has nothing new.
    Alive,
    /// The source is not there.
    Lost {
        /// Why.
        why: String,
        /// When it is tried again.
        next_try_s: u64,
    },
    /// Time has passed.
    Tick,
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Answer a question.
    Ask(Question),
    /// Give a text to the terminal's clipboard.
    Copy(String),
    /// End.
    Quit,
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A sign.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Esc,
    /// Tabulator.
    Tab,
    /// Takes back a sign.
    Backspace,
    /// Arrow.
    Up,
    /// Arrow.
    Down,
    /// Arrow.
    Left,
    /// Arrow.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the beginning.
    Home,
    /// To the end.
    End,
}

/// A key with what is held down beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Press {
    /// The key.
    pub key: Key,
    /// Control is held.
    pub ctrl: bool,
}

impl From<Key> for Press {
    fn from(key: Key) -> Self {
        Self { key, ctrl: false }
    }
}

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mouse {
    /// A click at a column and a line.
    Click(u16, u16),
    /// Up.
    WheelUp,
    /// Down.
    WheelDown,
}

/// Where the cluster is seen from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A cluster, as it changes.
    Live,
    /// Files, which do not change.
    Dump {
        /// When they were opened.
        opened_at: Timestamp,
    },
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Screen {
    /// All nodes.
    Nodes,
    /// All pools.
    Pools,
    /// What is done next.
    Plan,
    /// Pods that wait.
    Pending,
    /// Decisions.
    Timeline,
    /// Money by pool.
    Cost,
    /// One node.
    Node(String),
    /// Text that answers a question.
    Text {
        /// What it is called.
        title: String,
        /// What was asked.
        question: Question,
    },
}

/// What lies over the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Overlay {
    Help,
    WhatIf(Vec<String>),
}

/// Of which time prices are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Unit {
    #[default]
    Hour,
    Day,
    Month,
}

/// A question, and its answer once there is one.
#[derive(Debug)]
pub(crate) struct Slot {
    asked_ms: u64,
    is_open: bool,
    serial: u64,
    pub(crate) answer: Option<Answer>,
}

/// The list of nodes.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    pub(crate) listing: Listing,
    pub(crate) cursor: Cursor,
    pub(crate) sort: Sort,
    pub(crate) group: Group,
    pub(crate) marked: BTreeSet<String>,
    pub(crate) unit: Unit,
    /// Which of the chosen resources is on the second bar.
    pub(crate) second: usize,
    /// When nodes were first seen that were not there at first.
    pub(crate) new: BTreeMap<String, u64>,
}

/// The decisions.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// Newest first.
    pub(crate) records: Vec<Record>,
    /// Why there are none.
    pub(crate) note: String,
    /// Which of them show.
    pub(crate) shown: Vec<usize>,
    pub(crate) cursor: Cursor,
    /// How long a time shows.
    pub(crate) span_s: i64,
    /// By how much the window ends before now.
    pub(crate) back_s: i64,
    /// Which of them `f` chose.
    pub(crate) narrowed: Narrowed,
    /// Reason and pool of the decision that was under the cursor when `f` began to choose.
    pub(crate) like: Option<(String, String)>,
}

/// Which decisions show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Narrowed {
    #[default]
    All,
    Acted,
    Refused,
    Reason(String),
    Pool(String),
}

impl Narrowed {
    pub(crate) fn takes(&self, record: &Record) -> bool {
        match self {
            Self::All => true,
            Self::Acted => record.is_acted(),
            Self::Refused => !record.is_acted(),
            Self::Reason(reason) => record.reason == *reason,
            Self::Pool(pool) => record.pool == *pool,
        }
    }

    /// What comes after it; `like` are reason and pool of the decision one started from.
    fn following(&self, like: Option<&(String, String)>) -> Self {
        match (self, like) {
            (Self::All, _) => Self::Acted,
            (Self::Acted, _) => Self::Refused,
            (Self::Refused, Some((reason, _))) => Self::Reason(reason.clone()),
            (Self::Reason(_), Some((_, pool))) if !pool.is_empty() => Self::Pool(pool.clone()),
            _ => Self::All,
        }
    }
}

/// Where things are on the screen, for the mouse.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hits {
    pub(crate) list: Rect,
    pub(crate) top: usize,
    pub(crate) headings: Vec<(u16, u16, u16, SortKey)>,
}

/// How the source fares.
#[derive(Debug, Default)]
struct Contact {
    /// When it was last heard of.
    heard_ms: Option<u64>,
    /// Since when it is not there, why, and when it is tried again.
    lost: Option<(u64, String, u64)>,
    /// That it is there again, until when that is said.
    again: Option<(String, u64)>,
}

/// What is on the screen.
#[derive(Debug)]
pub struct App {
    pub(crate) place: Place,
    pub(crate) choices: Choices,
    pub(crate) look: Look,
    pub(crate) size: (u16, u16),
    pub(crate) picture: Option<Arc<Picture>>,
    taken_ms: u64,
    frozen: Option<(u64, Option<Arc<Picture>>)>,
    pub(crate) ahead: Option<Arc<Ahead>>,
    contact: Contact,
    pub(crate) screens: Vec<Screen>,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) prompt: Option<Prompt>,
    notice: Option<(String, u64)>,
    pub(crate) answers: BTreeMap<Question, Slot>,
    /// What was typed to filter nodes, pending pods, decisions.
    pub(crate) filters: [String; 3],
    pub(crate) nodes: Nodes,
    pub(crate) pods: (Vec<PodLine>, Cursor),
    pub(crate) pools: Cursor,
    pub(crate) plan: Cursor,
    pub(crate) pending: (Vec<usize>, Cursor),
    pub(crate) timeline: Timeline,
    /// The first line of a text that shows.
    pub(crate) scroll: usize,
    /// Lines of lists that show, as of the last frame.
    pub(crate) page: usize,
    pub(crate) hits: Hits,
    clicked: Option<(u64, u16)>,
}

/// Answers are not asked again before so long, however fast snapshots come.
const PATIENCE_MS: u64 = 10_000;
/// Nobody is told that something is computed when it is there at once.
const SOON_MS: u64 = 150;
/// How long something is said.
const SAID_MS: u64 = 4_000;
/// How long new rows are marked.
pub(crate) const NEW_MS: u64 = 5_000;
const OLD_MS: u64 = 5_000;
const STALE_MS: u64 = 30_000;

impl App {
    /// Nothing is known yet.
    pub fn new(place: Place, choices: Choices, look: Look) -> Self {
        let nodes = Nodes {
            sort: choices.sort.clone(),
            second: 1,
            ..Nodes::default()
        };
        Self {
            place,
            choices,
            look,
            size: (80, 24),
            picture: None,
            taken_ms: 0,
            frozen: None,
            ahead: None,
            contact: Contact::default(),
            screens: vec![Screen::Nodes],
            overlay: None,
            prompt: None,
            notice: None,
            answers: BTreeMap::new(),
            filters: [const { String::new() }; 3],
            nodes,
            pods: (Vec::new(), Cursor::default()),
            pools: Cursor::default(),
            plan: Cursor::default(),
            pending: (Vec::new(), Cursor::default()),
            timeline: Timeline {
                records: Vec::new(),
                note: "reading decisions…".to_owned(),
                shown: Vec::new(),
                cursor: Cursor::default(),
                span_s: 2 * 3600,
                back_s: 0,
                narrowed: Narrowed::All,
                like: None,
            },
            scroll: 0,
            page: 10,
            hits: Hits::default(),
            clicked: None,
        }
    }

    /// Takes in what happened, at a time in milliseconds of any clock that does not go back.
    pub fn handle(&mut self, event: Event, now_ms: u64) -> Vec<Effect> {
        match event {
            Event::Resize(width, height) => self.size = (width, height),
            Event::Key(press) => return self.pressed(press, now_ms),
            Event::Mouse(mouse) => return self.mouse(mouse, now_ms),
            Event::Picture(picture) => return self.seen(picture, now_ms),
            Event::Ahead(ahead) => {
                self.ahead = Some(ahead);
                self.relist();
            }
            Event::Decisions(records) => self.decided(records),
            Event::NoDecisions(why) => self.timeline.note = why,
            Event::Answer(serial, question, answer) => self.answered(serial, question, answer),
            Event::Alive => self.heard(now_ms, None),
            Event::Lost { why, next_try_s } => {
                let since = self.contact.lost.as_ref().map_or(now_ms, |(since, ..)| *since);
                self.contact.lost = Some((since, why, now_ms + next_try_s * 1000));
            }
            Event::Tick => {}
        }
        Vec::new()
    }

    /// After how long another frame is due although nothing happens; none when none is.
    pub fn wake_in(&self, now_ms: u64) -> Option<u64> {
        let open = self.answers.values().filter(|slot| slot.is_open);
        let soon = open.filter_map(|slot| (slot.asked_ms + SOON_MS).checked_sub(now_ms).filter(|left| *left > 0));
        let said = [&self.notice, &self.contact.again];
        let said = said
            .into_iter()
            .flatten()
            .filter_map(|(_, until)| until.checked_sub(now_ms));
        let ticks = (self.place == Place::Live || self.contact.lost.is_some()).then_some(1000);
        soon.chain(said).chain(ticks).map(|left| left.max(20)).min()
    }

    fn seen(&mut self, picture: Arc<Picture>, now_ms: u64) -> Vec<Effect> {
        let before = self.picture.clone();
        self.heard(now_ms, before.as_deref().map(|before| (before, &*picture)));
        if let Some((_, held_back)) = &mut self.frozen {
            *held_back = Some(picture);
            return Vec::new();
        }
        if let Some(before) = &before {
            let (new, _) = differences(before, &picture);
            self.nodes.new.retain(|_, since| *since + NEW_MS > now_ms);
            self.nodes.new.extend(new.into_iter().map(|name| (name, now_ms)));
        }
        let serial = picture.serial;
        self.picture = Some(picture);
        self.taken_ms = now_ms;
        self.relist();
        let shown = self.questions();
        self.answers
            .retain(|question, slot| slot.is_open || slot.serial == serial || shown.contains(question));
        shown
            .into_iter()
            .filter(|question| !matches!(question, Question::Command { .. }))
            .filter_map(|question| self.ask(question, now_ms))
            .collect()
    }

    fn heard(&mut self, now_ms: u64, change: Option<(&Picture, &Picture)>) {
        self.contact.heard_ms = Some(now_ms);
        let Some((since, ..)) = self.contact.lost.take() else {
            return;
        };
        let (new, gone) = change
            .map(|(before, after)| differences(before, after))
            .unwrap_or_default();
        let away = figure::span(i64::try_from((now_ms - since) / 1000).unwrap_or_default());
        let text = format!(
            "live again after {away}, {} changed",
            figure::counted(new.len() + gone, "node")
        );
        self.contact.again = Some((text, now_ms + 5000));
    }

    fn answered(&mut self, serial: u64, question: Question, answer: Answer) {
        let asked_ms = self.answers.get(&question).map_or(0, |slot| slot.asked_ms);
        let slot = Slot {
            asked_ms,
            is_open: false,
            serial,
            answer: Some(answer),
        };
        self.answers.insert(question, slot);
    }

    /// Asks, unless the answer is there or on its way.
    pub(crate) fn ask(&mut self, question: Question, now_ms: u64) -> Option<Effect> {
        let serial = self.picture.as_ref()?.serial;
        if let Some(slot) = self.answers.get_mut(&question) {
            let is_fresh = slot.serial == serial || slot.asked_ms + PATIENCE_MS > now_ms;
            if slot.is_open || is_fresh {
                return None;
            }
            (slot.is_open, slot.asked_ms) = (true, now_ms);
        } else {
            let slot = Slot {
                asked_ms: now_ms,
                is_open: true,
                serial,
                answer: None,
            };
            self.answers.insert(question.clone(), slot);
        }
        Some(Effect::Ask(question))
    }

    /// What the screen shows the answers of.
    fn questions(&self) -> Vec<Question> {
        let mut shown = Vec::new();
        match self.screen() {
            Screen::Node(name) => shown.push(Question::Node(name.clone())),
            Screen::Text { question, .. } => shown.push(question.clone()),
            _ => {}
        }
        if let Some(Overlay::WhatIf(names)) = &self.overlay {
            shown.push(Question::Remove(names.clone()));
            shown.extend(names.first().cloned().map(Question::Node));
        }
        shown
    }

    /// The answer to a question, or what to say while there is none.
    pub(crate) fn answer(&self, question: &Question, now_ms: u64) -> Result<&Answer, &'static str> {
        match self.answers.get(question) {
            Some(Slot {
                answer: Some(answer), ..
            }) => Ok(answer),
            Some(slot) if slot.asked_ms + SOON_MS > now_ms => Err(""),
            _ => Err("computing…"),
        }
    }

    /// The screen on top.
    pub fn screen(&self) -> &Screen {
        self.screens.last().unwrap_or(&Screen::Nodes)
    }

    /// The time in the cluster.
    pub(crate) fn now(&self, now_ms: u64) -> Option<Timestamp> {
        let picture = self.picture.as_ref()?;
        let passed = match (&self.place, &self.frozen) {
            (Place::Live, None) => now_ms.saturating_sub(self.taken_ms),
            _ => 0,
        };
        let passed = SignedDuration::from_millis(i64::try_from(passed).unwrap_or_default());
        Some(picture.taken_at.checked_add(passed).unwrap_or(picture.taken_at))
    }

    /// Whether what is shown may no longer be so.
    pub(crate) fn is_stale(&self, now_ms: u64) -> bool {
        self.place == Place::Live && (self.contact.lost.is_some() || self.silence(now_ms) > STALE_MS)
    }

    fn silence(&self, now_ms: u64) -> u64 {
        self.contact.heard_ms.map_or(0, |heard| now_ms.saturating_sub(heard))
    }

    /// How fresh it all is, in words.
    pub(crate) fn freshness(&self, now_ms: u64) -> (Role, String) {
        let seconds = |ms: u64| figure::span(i64::try_from(ms / 1000).unwrap_or_default());
        if let Some((since, _)) = &self.frozen {
            return (
                Role::Warn,
                format!("frozen for {}", seconds(now_ms.saturating_sub(*since))),
            );
        }
        if let Some((since, why, next)) = &self.contact.lost {
            let since = self.contact.heard_ms.unwrap_or(*since);
            let next = next.saturating_sub(now_ms).div_ceil(1000);
            let stale = seconds(now_ms.saturating_sub(since));
            return (Role::Stop, format!("STALE {stale}: {why}, next try in {next} s"));
        }
        let Some(picture) = &self.picture else {
            return (Role::Secondary, "reading…".to_owned());
        };
        if let Place::Dump { opened_at } = &self.place {
            let age = opened_at.duration_since(picture.taken_at).as_secs();
            let age = if age > 0 {
                format!(", {} old", figure::span(age))
            } else {
                String::new()
            };
            let time = picture.taken_at.strftime("%H:%M UTC");
            return (Role::Secondary, format!("dump of {time}{age}"));
        }
        if let Some((text, until)) = &self.contact.again
            && *until > now_ms
        {
            return (Role::Good, text.clone());
        }
        let silence = self.silence(now_ms);
        let age = format!("{}.{} s old", silence / 1000, silence % 1000 / 100);
        match silence {
            ..OLD_MS => (Role::Secondary, format!("live, {age}")),
            OLD_MS..=STALE_MS => (Role::Warn, format!("live, {age}")),
            _ => (Role::Stop, format!("STALE {}: nothing heard", seconds(silence))),
        }
    }

    pub(crate) fn say(&mut self, text: impl Into<String>, now_ms: u64) {
        self.notice = Some((text.into(), now_ms + SAID_MS));
    }

    /// What is said for a moment.
    pub(crate) fn said(&self, now_ms: u64) -> Option<&str> {
        let (text, until) = self.notice.as_ref()?;
        (*until > now_ms).then_some(text)
    }

    /// The filter of the screen on top: which one, and what was typed.
    pub(crate) fn filter_of(&self) -> Option<usize> {
        match self.screen() {
            Screen::Nodes => Some(0),
            Screen::Pending => Some(1),
            Screen::Timeline => Some(2),
            _ => None,
        }
    }

    fn freeze(&mut self, now_ms: u64) -> Vec<Effect> {
        match self.frozen.take() {
            None => {
                self.frozen = Some((now_ms, None));
                Vec::new()
            }
            Some((_, Some(picture))) => self.seen(picture, now_ms),
            Some((_, None)) => Vec::new(),
        }
    }
}
