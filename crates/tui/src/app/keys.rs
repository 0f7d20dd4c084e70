//! What keys and the mouse do, screen by screen.

use super::{App, Asked, Effect, Key, Mouse, Narrowed, Overlay, Press, Screen, Unit};
use crate::{
    answer::{Answer, Question},
    choice::SortKey,
    listing::{Cursor, Entry},
};

/// A second click so soon opens.
const DOUBLE_MS: u64 = 400;
/// Lines that the wheel moves by.
const WHEEL: isize = 3;
/// Spans of time that decisions show of.
const SPANS: [i64; 7] = [900, 1800, 3600, 7200, 21_600, 86_400, 604_800];

/// Screens that tab goes through.
const ROUND: [Screen; 6] = [
    Screen::Nodes,
    Screen::Pools,
    Screen::Plan,
    Screen::Pending,
    Screen::Timeline,
    Screen::Cost,
];

impl App {
    pub(super) fn pressed(&mut self, press: Press, now_ms: u64) -> Vec<Effect> {
        if let Some(prompt) = self.prompt.take() {
            return self.typed(press, prompt, now_ms);
        }
        if press.ctrl {
            return match press.key {
                Key::Char('c') => vec![Effect::Quit],
                Key::Char('d') => self.moved(half(self.page)),
                Key::Char('u') => self.moved(-half(self.page)),
                Key::Char('a') => {
                    self.overlay = Some(Overlay::Help);
                    Vec::new()
                }
                _ => Vec::new(),
            };
        }
        match self.overlay.clone() {
            Some(Overlay::Help) => {
                if matches!(press.key, Key::Esc | Key::Enter | Key::Char('?' | 'q')) {
                    self.overlay = None;
                }
                Vec::new()
            }
            Some(Overlay::WhatIf(names)) => self.in_what_if(press.key, &names, now_ms),
            None => self.in_screen(press.key, now_ms),
        }
    }

    fn in_what_if(&mut self, key: Key, names: &[String], now_ms: u64) -> Vec<Effect> {
        match key {
            Key::Esc | Key::Char('x' | 'q') => self.overlay = None,
            Key::Char('w') => {
                let name = names.first().cloned().unwrap_or_default();
                return self.why(vec!["node".to_owned(), name], now_ms);
            }
            Key::Char('c') => {
                let removed: Vec<String> = names.iter().map(|name| format!("--remove-node {name}")).collect();
                return self.copy(format!("dovetail whatif {}", removed.join(" ")), now_ms);
            }
            _ => {}
        }
        Vec::new()
    }

    fn in_screen(&mut self, key: Key, now_ms: u64) -> Vec<Effect> {
        let page = isize::try_from(self.page.max(1)).unwrap_or(10);
        match key {
            Key::Char('q') => return vec![Effect::Quit],
            Key::Esc => self.back(),
            Key::Up | Key::Char('k') => return self.moved(-1),
            Key::Down | Key::Char('j') => return self.moved(1),
            Key::PageUp => return self.moved(-page),
            Key::PageDown => return self.moved(page),
            Key::Home | Key::Char('g') => return self.moved(isize::MIN),
            Key::End | Key::Char('G') => return self.moved(isize::MAX / 2),
            Key::Char('?') => self.overlay = Some(Overlay::Help),
            Key::Char(':') => self.open_prompt(Asked::Command),
            Key::Char('/') => self.open_prompt(Asked::Filter),
            Key::Char('T') => {
                let name = self.look.turn();
                self.say(format!("theme {name}"), now_ms);
            }
            Key::Char('z') => return self.freeze(now_ms),
            Key::Tab => {
                let here = ROUND.iter().position(|screen| screen == self.screen());
                let next = here.map_or(0, |at| (at + 1) % ROUND.len());
                return self.go(ROUND[next].clone());
            }
            Key::Char(sign @ '1'..='6') => {
                let at = sign.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
                return self.go(ROUND[at.unwrap_or(1).saturating_sub(1)].clone());
            }
            Key::Char('p') => return self.go(Screen::Pending),
            Key::Char('t') => return self.go(Screen::Timeline),
            Key::Enter => return self.open(now_ms),
            Key::Char('w') => return self.why_here(now_ms),
            Key::Char('x') => return self.what_if(now_ms),
            Key::Char('c') => return self.copy_here(now_ms),
            Key::Char('y') => return self.object_here(false, now_ms),
            Key::Char('d') => return self.object_here(true, now_ms),
            Key::Char('e') => return self.events_here(now_ms),
            other => return self.in_one(other, now_ms),
        }
        Vec::new()
    }

    /// Keys that mean something on one screen only.
    fn in_one(&mut self, key: Key, now_ms: u64) -> Vec<Effect> {
        match self.screen().clone() {
            Screen::Nodes => self.in_nodes(key),
            Screen::Node(name) => return self.in_node(key, &name, now_ms),
            Screen::Timeline => self.in_timeline(key, now_ms),
            Screen::Pending => return self.in_pending(key, now_ms),
            _ => {}
        }
        Vec::new()
    }

    fn in_pending(&mut self, key: Key, now_ms: u64) -> Vec<Effect> {
        let pod = self.pending.1.name.clone();
        if pod.is_empty() {
            return Vec::new();
        }
        match key {
            Key::Char('a') => self.run(&["why", "pod", &pod, "--all-pools"].map(str::to_owned), now_ms),
            Key::Char('f') => {
                let words = self.pending_whatif();
                if words.is_empty() {
                    self.say("no what-if tries this change; c copies it", now_ms);
                    return Vec::new();
                }
                let words: Vec<String> = std::iter::once("whatif".to_owned()).chain(words).collect();
                self.run(&words, now_ms)
            }
            _ => Vec::new(),
        }
    }

    fn in_nodes(&mut self, key: Key) {
        let nodes = &mut self.nodes;
        match key {
            Key::Char('s') => {
                nodes.sort.key = nodes.sort.key.following();
                nodes.sort.is_reversed = false;
            }
            Key::Char('C') => nodes.sort.turn_to(SortKey::Cpu),
            Key::Char('M') => nodes.sort.turn_to(SortKey::Memory),
            Key::Char('A') => nodes.sort.turn_to(SortKey::Creation),
            Key::Char('N') => nodes.sort.turn_to(SortKey::Name),
            Key::Char('P') => nodes.sort.turn_to(SortKey::Price),
            Key::Char('S') => nodes.sort.is_reversed = !nodes.sort.is_reversed,
            Key::Char('b') => nodes.group = nodes.group.following(),
            Key::Char('$') => {
                nodes.unit = match nodes.unit {
                    Unit::Hour => Unit::Day,
                    Unit::Day => Unit::Month,
                    Unit::Month => Unit::Hour,
                };
            }
            Key::Char('r') => {
                let most = self.choices.resources.len().max(1);
                nodes.second = if nodes.second + 1 < most { nodes.second + 1 } else { 0 };
            }
            Key::Char(' ') => {
                let name = nodes.cursor.name.clone();
                let is_node = self
                    .picture
                    .as_ref()
                    .is_some_and(|picture| picture.row(&name).is_some());
                if is_node && !nodes.marked.remove(&name) {
                    nodes.marked.insert(name);
                }
                self.move_by(1);
                return;
            }
            _ => return,
        }
        self.relist();
    }

    fn in_node(&mut self, key: Key, name: &str, now_ms: u64) -> Vec<Effect> {
        let by = match key {
            Key::Char('[') | Key::Left => -1,
            Key::Char(']') | Key::Right => 1,
            _ => return Vec::new(),
        };
        let Some(picture) = self.picture.clone() else {
            return Vec::new();
        };
        let rows = self.nodes.listing.entries.iter().filter_map(|entry| match entry {
            Entry::Row(at) => picture.rows.get(*at).map(|row| row.node.name.as_str()),
            Entry::Group(..) => None,
        });
        let names: Vec<&str> = rows.collect();
        let here = names.iter().position(|other| *other == name).unwrap_or_default();
        let Some(next) = names.get(here.saturating_add_signed(by)) else {
            return Vec::new();
        };
        let next = (*next).to_owned();
        self.nodes.cursor.name.clone_from(&next);
        self.nodes.cursor.is_held = true;
        self.nodes.cursor.settle(self.nodes.listing.names(&picture));
        self.screens.pop();
        self.open_node(next, now_ms)
    }

    fn in_timeline(&mut self, key: Key, now_ms: u64) {
        let timeline = &mut self.timeline;
        let at = SPANS.iter().position(|span| *span >= timeline.span_s).unwrap_or(3);
        match key {
            Key::Char('+' | '=') => timeline.span_s = SPANS[at.saturating_sub(1)],
            Key::Char('-') => timeline.span_s = SPANS[(at + 1).min(SPANS.len() - 1)],
            Key::Left => timeline.back_s += timeline.span_s / 4,
            Key::Right => timeline.back_s = (timeline.back_s - timeline.span_s / 4).max(0),
            Key::Char('n') => return self.this_node_only(now_ms),
            Key::Char('f') => return self.narrow(),
            _ => return,
        }
        self.relist_decisions();
    }

    /// Only what was done, only what was not, what has the reason or the pool of the one under the cursor, all again.
    fn narrow(&mut self) {
        if self.timeline.narrowed == Narrowed::All {
            let here = self.decision_here();
            self.timeline.like = here.map(|record| (record.reason.clone(), record.pool.clone()));
        }
        let timeline = &mut self.timeline;
        timeline.narrowed = timeline.narrowed.following(timeline.like.as_ref());
        self.relist_decisions();
    }

    /// Decisions about the node of the one under the cursor; pressed again, about all.
    fn this_node_only(&mut self, now_ms: u64) {
        let target = self.decision_here().and_then(|record| record.targets.first());
        let node = target.map(|target| crate::figure::short_name(&target.node).to_owned());
        let is_set = self.filter_of().is_some_and(|which| !self.filters[which].is_empty());
        match node.filter(|node| !node.is_empty()) {
            _ if is_set => self.set_filter(String::new()),
            Some(node) => self.set_filter(node),
            None => self.say("this decision is about no node that is there", now_ms),
        }
    }

    fn moved(&mut self, by: isize) -> Vec<Effect> {
        self.move_by(by);
        Vec::new()
    }

    /// A main screen. Those are not stacked: back from each leads to the nodes.
    pub(super) fn go(&mut self, screen: Screen) -> Vec<Effect> {
        self.overlay = None;
        self.screens = vec![Screen::Nodes];
        if screen != Screen::Nodes {
            self.screens.push(screen);
        }
        self.relist();
        Vec::new()
    }

    /// Clears the filter, or goes back; never ends.
    fn back(&mut self) {
        if let Some(which) = self.filter_of().filter(|which| !self.filters[*which].is_empty()) {
            self.filters[which].clear();
            self.relist();
            return;
        }
        if self.screens.len() > 1 {
            self.screens.pop();
            self.scroll = 0;
            self.relist();
        } else {
            self.nodes.marked.clear();
        }
    }

    fn open(&mut self, now_ms: u64) -> Vec<Effect> {
        match self.screen().clone() {
            Screen::Nodes | Screen::Plan => {
                let name = self.node_here().map(|row| row.node.name.clone());
                name.map(|name| self.open_node(name, now_ms)).unwrap_or_default()
            }
            Screen::Pools | Screen::Cost => {
                let name = self.pools.name.clone();
                self.go(Screen::Nodes);
                self.set_filter(format!("pool={name}"));
                Vec::new()
            }
            Screen::Node(_) => {
                let pod = self.pods.0.get(self.pods.1.at).map(|pod| pod.pod.clone());
                pod.map(|pod| self.why(vec!["pod".to_owned(), pod], now_ms))
                    .unwrap_or_default()
            }
            Screen::Pending | Screen::Timeline => self.why_here(now_ms),
            Screen::Text { .. } => Vec::new(),
        }
    }

    fn open_node(&mut self, name: String, now_ms: u64) -> Vec<Effect> {
        self.screens.push(Screen::Node(name.clone()));
        self.pods = (Vec::new(), Cursor::default());
        self.relist();
        self.ask(Question::Node(name), now_ms).into_iter().collect()
    }

    fn copy_here(&mut self, now_ms: u64) -> Vec<Effect> {
        let text = match self.screen() {
            Screen::Nodes | Screen::Plan => self.node_here().map(|row| row.node.name.clone()),
            Screen::Pools | Screen::Cost => Some(self.pools.name.clone()),
            Screen::Timeline => self.decision_here().map(|record| record.id.to_string()),
            Screen::Pending => self.pending_fix(),
            Screen::Node(name) => self.node_fix(name).or_else(|| Some(name.clone())),
            Screen::Text { question, .. } => match self.answer(question, now_ms) {
                Ok(Answer::Text(text)) => Some(text.clone()),
                _ => None,
            },
        };
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            return self.copy(text, now_ms);
        }
        self.say("there is nothing to copy", now_ms);
        Vec::new()
    }

    fn copy(&mut self, text: String, now_ms: u64) -> Vec<Effect> {
        let lines = text.lines().count();
        self.say(format!("copied {}", crate::figure::counted(lines, "line")), now_ms);
        vec![Effect::Copy(text)]
    }

    fn pending_fix(&self) -> Option<String> {
        let at = *self.pending.0.get(self.pending.1.at)?;
        let waits = self.ahead.as_ref()?.waiting.get(at)?;
        let fix = waits.funnel.as_ref()?.fix.as_ref()?;
        Some(format!("# {}\n{}\n", fix.text, kept(&fix.patch)))
    }

    /// The words of a what-if that tries the change that lets the pod in.
    fn pending_whatif(&self) -> Vec<String> {
        let at = self.pending.0.get(self.pending.1.at).copied();
        let waits = at.and_then(|at| self.ahead.as_ref()?.waiting.get(at));
        let fix = waits.and_then(|waits| waits.funnel.as_ref()?.fix.as_ref());
        fix.map(|fix| fix.whatif.clone()).unwrap_or_default()
    }

    fn node_fix(&self, name: &str) -> Option<String> {
        let slot = self.answers.get(&Question::Node(name.to_owned()))?;
        let Some(Answer::Node(why)) = &slot.answer else {
            return None;
        };
        let fixes = why.stays.iter().filter_map(|stay| stay.fix.as_ref());
        let text: String = fixes
            .map(|fix| format!("# {}: {}\n{}\n", fix.object, fix.change, kept(&fix.patch)))
            .collect();
        (!text.is_empty()).then_some(text)
    }

    pub(super) fn mouse(&mut self, mouse: Mouse, now_ms: u64) -> Vec<Effect> {
        if self.overlay.is_some() || self.prompt.is_some() {
            return Vec::new();
        }
        let (x, y) = match mouse {
            Mouse::WheelUp => return self.moved(-WHEEL),
            Mouse::WheelDown => return self.moved(WHEEL),
            Mouse::Click(x, y) => (x, y),
        };
        let headings = &self.hits.headings;
        let heading = headings
            .iter()
            .find(|(line, from, to, _)| *line == y && (*from..*to).contains(&x));
        if let Some((_, _, _, key)) = heading {
            self.nodes.sort.turn_to(key.clone());
            self.relist();
            return Vec::new();
        }
        let list = self.hits.list;
        if !list.contains((x, y).into()) {
            return Vec::new();
        }
        let is_double = self
            .clicked
            .is_some_and(|(at, line)| line == y && now_ms < at + DOUBLE_MS);
        self.clicked = Some((now_ms, y));
        let wanted = self.hits.top + usize::from(y - list.y);
        let here = match self.screen() {
            Screen::Nodes => self.nodes.cursor.at,
            Screen::Pools | Screen::Cost => self.pools.at,
            Screen::Plan => self.plan.at,
            Screen::Pending => self.pending.1.at,
            Screen::Timeline => self.timeline.cursor.at,
            Screen::Node(_) => self.pods.1.at,
            Screen::Text { .. } => return Vec::new(),
        };
        let by = isize::try_from(wanted).unwrap_or_default() - isize::try_from(here).unwrap_or_default();
        self.move_by(by);
        if is_double { self.open(now_ms) } else { Vec::new() }
    }
}

/// Lines of a patch that stay, without the signs in front.
fn kept(patch: &[String]) -> String {
    let lines = patch.iter().filter(|line| !line.starts_with('-'));
    let bare: Vec<&str> = lines.map(|line| line.get(2..).unwrap_or_default()).collect();
    bare.join("\n")
}

fn half(page: usize) -> isize {
    isize::try_from(page / 2).unwrap_or(1).max(1)
}
