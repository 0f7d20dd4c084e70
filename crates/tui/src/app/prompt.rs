//! The line one types in: a filter that works while it is typed, or a command.

use super::{App, Effect, Key, Press};

/// A line that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) asked: Asked,
    pub(crate) text: String,
    /// What was there before.
    before: String,
}

/// What is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Which rows show.
    Filter,
    /// Where to go, or what to ask.
    Command,
}

/// Nobody types more than that.
const LONGEST: usize = 400;

impl App {
    pub(super) fn open_prompt(&mut self, asked: Asked) {
        let before = match (asked, self.filter_of()) {
            (Asked::Filter, None) => return,
            (Asked::Filter, Some(which)) => self.filters[which].clone(),
            (Asked::Command, _) => String::new(),
        };
        self.prompt = Some(Prompt {
            asked,
            text: before.clone(),
            before,
        });
    }

    /// A key while a line is typed.
    pub(super) fn typed(&mut self, press: Press, mut prompt: Prompt, now_ms: u64) -> Vec<Effect> {
        match press.key {
            Key::Esc => {
                if prompt.asked == Asked::Filter {
                    self.set_filter(prompt.before);
                }
                return Vec::new();
            }
            Key::Enter => {
                return match prompt.asked {
                    Asked::Filter => Vec::new(),
                    Asked::Command => self.command(&prompt.text, now_ms),
                };
            }
            Key::Backspace => {
                prompt.text.pop();
            }
            Key::Char('u') if press.ctrl => prompt.text.clear(),
            Key::Char('c') if press.ctrl => return vec![Effect::Quit],
            Key::Char(sign) if !press.ctrl && !sign.is_control() && prompt.text.len() < LONGEST => {
                prompt.text.push(sign);
            }
            _ => {}
        }
        if prompt.asked == Asked::Filter {
            self.set_filter(prompt.text.clone());
        }
        self.prompt = Some(prompt);
        Vec::new()
    }

    pub(super) fn set_filter(&mut self, text: String) {
        if let Some(which) = self.filter_of() {
            self.filters[which] = text;
            self.relist();
        }
    }
}
