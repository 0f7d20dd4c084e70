//! What is typed after a colon: where to go, or a question as the command line has it. Nothing that writes is taken.

use super::{App, Effect, Screen};
use crate::{answer::Question, choice::Sort};

/// Verbs that only read.
const READS: [&str; 13] = [
    "status",
    "why",
    "explain",
    "plan",
    "whatif",
    "cost",
    "budgets",
    "decisions",
    "history",
    "lint",
    "drift",
    "doctor",
    "version",
];
/// Verbs that write, or do not end.
const WRITES: [&str; 8] = [
    "pause",
    "resume",
    "run",
    "crds",
    "demo",
    "simulate",
    "top",
    "completion",
];

impl App {
    /// Does what was typed.
    pub(super) fn command(&mut self, text: &str, now_ms: u64) -> Vec<Effect> {
        let words = words(text);
        let Some(first) = words.first().map(String::as_str) else {
            return Vec::new();
        };
        let screen = match (first, words.len()) {
            ("q" | "quit" | "exit", _) => return vec![Effect::Quit],
            ("nodes" | "no" | "node" | "1", 1) => Some(Screen::Nodes),
            ("pools" | "np" | "nodepools" | "2", 1) => Some(Screen::Pools),
            ("moves" | "3", 1) => Some(Screen::Plan),
            ("pending" | "po" | "pods" | "4", 1) => Some(Screen::Pending),
            ("timeline" | "5", 1) => Some(Screen::Timeline),
            ("money" | "6", 1) => Some(Screen::Cost),
            _ => None,
        };
        if let Some(screen) = screen {
            return self.go(screen);
        }
        match first {
            "help" => self.overlay = Some(super::Overlay::Help),
            "sort" => match Sort::read(words.get(1).map_or("", String::as_str)) {
                Ok(sort) => {
                    self.nodes.sort = sort;
                    self.relist();
                }
                Err(why) => self.say(why, now_ms),
            },
            verb if READS.contains(&verb) && words.iter().any(|word| word == "--fix" && verb == "doctor") => {
                self.say("top changes nothing: type it in a shell", now_ms);
            }
            verb if READS.contains(&verb) => return self.run(&words, now_ms),
            verb if WRITES.contains(&verb) => {
                self.say(format!("top changes nothing: type dovetail {verb} in a shell"), now_ms);
            }
            other => {
                let near = insight::nearest(other, &READS);
                let near = match near {
                    insight::Found::One(near) | insight::Found::None(Some(near)) => format!(": {near}?"),
                    _ => String::new(),
                };
                self.say(format!("no command {other}{near}"), now_ms);
            }
        }
        Vec::new()
    }

    pub(super) fn run(&mut self, words: &[String], now_ms: u64) -> Vec<Effect> {
        let question = Question::Command {
            words: words.to_vec(),
            width: self.text_width(),
        };
        // What was asked before may have another answer now.
        self.answers.remove(&question);
        self.show_text(words.join(" "), question, now_ms)
    }

    pub(super) fn show_text(&mut self, title: String, question: Question, now_ms: u64) -> Vec<Effect> {
        let effect = self.ask(question.clone(), now_ms);
        self.scroll = 0;
        self.overlay = None;
        self.screens.push(Screen::Text { title, question });
        effect.into_iter().collect()
    }

    /// How wide texts are.
    pub(super) fn text_width(&self) -> u16 {
        self.size.0.saturating_sub(2).clamp(60, 160)
    }
}

/// Words as a shell has them, with both kinds of quotes.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut is_word) = (Vec::new(), String::new(), None, false);
    for sign in text.chars() {
        match (quote, sign) {
            (Some(open), sign) if sign == open => quote = None,
            (None, '\'' | '"') => (quote, is_word) = (Some(sign), true),
            (None, ' ' | '\t') => {
                if is_word || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            (_, sign) => word.push(sign),
        }
    }
    if is_word || !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        let text = "whatif  --set 'a b' \"\" --scale x=1";
        assert_eq!(words(text), ["whatif", "--set", "a b", "", "--scale", "x=1"]);
        assert!(words("   ").is_empty());
    }
}
