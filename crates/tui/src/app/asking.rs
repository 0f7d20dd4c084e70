//! What is asked about the object under the cursor: why, what if it went, how it is written, what happened to it.

use super::{App, Effect, Overlay, Screen};
use crate::answer::Question;

impl App {
    /// Why, in full, about what the cursor is on.
    pub(super) fn why_here(&mut self, now_ms: u64) -> Vec<Effect> {
        let words = |kind: &str, name: &str| vec![kind.to_owned(), name.to_owned()];
        let object = match self.screen() {
            Screen::Nodes | Screen::Plan => self.node_here().map(|row| words("node", &row.node.name)),
            Screen::Node(name) => Some(words("node", name)),
            Screen::Pending => Some(words("pod", &self.pending.1.name)).filter(|words| !words[1].is_empty()),
            Screen::Pools | Screen::Cost => Some(words("nodepool", &self.pools.name)),
            Screen::Timeline => self.decision_here().map(|record| vec![record.id.to_string()]),
            Screen::Text { .. } => None,
        };
        object.map(|object| self.why(object, now_ms)).unwrap_or_default()
    }

    pub(super) fn why(&mut self, object: Vec<String>, now_ms: u64) -> Vec<Effect> {
        let title = format!("why {}", object.join(" "));
        let question = Question::Why {
            object,
            width: self.text_width(),
        };
        self.show_text(title, question, now_ms)
    }

    pub(super) fn what_if(&mut self, now_ms: u64) -> Vec<Effect> {
        let marked: Vec<String> = self.nodes.marked.iter().cloned().collect();
        let here = self
            .node_here()
            .filter(|row| row.is_managed)
            .map(|row| row.node.name.clone());
        let names = match (self.screen(), marked.is_empty(), here) {
            (Screen::Nodes, false, _) => marked,
            (_, _, Some(name)) => vec![name],
            _ => {
                self.say("only a node of a NodePool can be asked about", now_ms);
                return Vec::new();
            }
        };
        self.overlay = Some(Overlay::WhatIf(names.clone()));
        let first = names.first().cloned().map(Question::Node);
        let questions = [Some(Question::Remove(names)), first];
        questions
            .into_iter()
            .flatten()
            .filter_map(|question| self.ask(question, now_ms))
            .collect()
    }

    /// The object under the cursor, in full.
    pub(super) fn object_here(&mut self, is_described: bool, now_ms: u64) -> Vec<Effect> {
        let Some((kind, name)) = self.named_here() else {
            return match self.decision_here().map(|record| record.id.to_string()) {
                Some(id) if *self.screen() == Screen::Timeline => {
                    let more: &[&str] = if is_described { &[] } else { &["-o", "yaml"] };
                    let words = ["why", &id].into_iter().chain(more.iter().copied());
                    self.run(&words.map(str::to_owned).collect::<Vec<_>>(), now_ms)
                }
                _ => Vec::new(),
            };
        };
        let form = if is_described { "" } else { ", yaml" };
        let title = format!("{} {name}{form}", kind.to_lowercase());
        let question = Question::Object {
            kind,
            name,
            is_described,
        };
        self.show_other(title, question, now_ms)
    }

    /// Another text about an object. Between its forms one turns to and fro, and one step leads back from all of them.
    fn show_other(&mut self, title: String, question: Question, now_ms: u64) -> Vec<Effect> {
        if let Screen::Text {
            question: Question::Object { .. } | Question::Events { .. },
            ..
        } = self.screen()
        {
            self.screens.pop();
        }
        self.show_text(title, question, now_ms)
    }

    /// What the cursor is on, as the API calls it.
    pub(super) fn named_here(&self) -> Option<(&'static str, String)> {
        let named = match self.screen() {
            Screen::Nodes | Screen::Plan | Screen::Node(_) => ("Node", self.node_here()?.node.name.clone()),
            Screen::Pending => ("Pod", self.pending.1.name.clone()),
            Screen::Pools | Screen::Cost => ("NodePool", self.pools.name.clone()),
            Screen::Text { question, .. } => question.object()?,
            Screen::Timeline => return None,
        };
        Some(named).filter(|(_, name)| !name.is_empty())
    }

    /// Decisions as CSV; of everything else what was said about it.
    pub(super) fn events_here(&mut self, now_ms: u64) -> Vec<Effect> {
        if *self.screen() == Screen::Timeline {
            let since = format!("{}s", self.timeline.span_s + self.timeline.back_s);
            let words = ["decisions", "export", "--since", &since, "-o", "csv"];
            return self.run(&words.map(str::to_owned), now_ms);
        }
        let Some((kind, name)) = self.named_here() else {
            return Vec::new();
        };
        let title = format!("{} {name}, events", kind.to_lowercase());
        let width = self.text_width();
        self.show_other(title, Question::Events { kind, name, width }, now_ms)
    }
}
