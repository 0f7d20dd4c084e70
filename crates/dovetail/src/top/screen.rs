//! The terminal itself: taken over, drawn on, listened to, and given back as it was, also after a panic.

use std::{
    io::{Stdout, Write, stdout},
    panic,
    sync::mpsc::Sender,
    thread,
};

use anyhow::Context;
use base64::{Engine, prelude::BASE64_STANDARD};
use crossterm::{
    cursor,
    event::{
        self, DisableMouseCapture, EnableMouseCapture, Event as Happening, KeyCode, KeyEvent, KeyEventKind,
        KeyModifiers, MouseButton, MouseEventKind,
    },
    execute, terminal,
};
use ratatui_core::terminal::Terminal as Drawing;
use ratatui_crossterm::CrosstermBackend;
use tokio::signal::unix::{SignalKind, signal};
use tui::{App, Event, Key, Mouse, Press};

use super::News;

/// A terminal that was taken over; dropped, it is as before.
pub(super) struct Terminal {
    drawing: Drawing<CrosstermBackend<Stdout>>,
    has_mouse: bool,
}

impl Terminal {
    /// Takes the terminal over.
    pub(super) fn open(has_mouse: bool) -> anyhow::Result<Self> {
        give_back_on_panic(has_mouse);
        terminal::enable_raw_mode().context("the terminal cannot be switched to single keys")?;
        let mut out = stdout();
        execute!(out, terminal::EnterAlternateScreen, cursor::Hide).context("the terminal cannot be taken over")?;
        if has_mouse {
            execute!(out, EnableMouseCapture).context("the terminal has no mouse; --no-mouse does without")?;
        }
        let drawing = Drawing::new(CrosstermBackend::new(out)).context("the terminal cannot be drawn on")?;
        Ok(Self { drawing, has_mouse })
    }

    pub(super) fn size(&self) -> anyhow::Result<(u16, u16)> {
        let size = self
            .drawing
            .size()
            .context("the terminal does not say how large it is")?;
        Ok((size.width, size.height))
    }

    /// Draws a frame; what did not change is not written.
    pub(super) fn draw(&mut self, app: &mut App, now_ms: u64) -> anyhow::Result<()> {
        let drawn = self.drawing.draw(|frame| {
            tui::draw(app, frame.buffer_mut(), now_ms);
        });
        drawn.context("the terminal is gone")?;
        Ok(())
    }
}

/// Hands a text to the clipboard of whoever sits at the terminal.
pub(super) fn copy(text: &str) -> anyhow::Result<()> {
    let mut out = stdout();
    write!(out, "\x1b]52;c;{}\x07", BASE64_STANDARD.encode(text)).context("the terminal is gone")?;
    out.flush().context("the terminal is gone")
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back(self.has_mouse);
    }
}

/// Everything as it was. A terminal that is gone is no reason to complain.
fn give_back(has_mouse: bool) {
    let mut out = stdout();
    if has_mouse {
        let _ = execute!(out, DisableMouseCapture);
    }
    let _ = execute!(out, cursor::Show, terminal::LeaveAlternateScreen);
    let _ = terminal::disable_raw_mode();
}

/// A panic of the thread that draws is read on a terminal that is as it was; those of others are answers.
fn give_back_on_panic(has_mouse: bool) {
    let before = panic::take_hook();
    let drawing = thread::current().id();
    panic::set_hook(Box::new(move |about| {
        if thread::current().id() == drawing {
            give_back(has_mouse);
            before(about);
        }
    }));
}

/// Listens to keys, the mouse, the size of the window and to signals, each on a thread of its own.
pub(super) fn listen(tell: &Sender<News>) {
    let keys = tell.clone();
    thread::spawn(move || {
        loop {
            let Ok(happening) = event::read() else {
                let _ = keys.send(News::Quit);
                return;
            };
            let happened = escaped(&happening).into_iter().chain(heard(&happening));
            for event in happened {
                if keys.send(event.into()).is_err() {
                    return;
                }
            }
        }
    });
    let signals = tell.clone();
    thread::spawn(move || {
        let asked = crate::live::wait_for(async {
            let mut terminate = signal(SignalKind::terminate())?;
            let mut hang_up = signal(SignalKind::hangup())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            tokio::select! {
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
                _ = interrupt.recv() => {}
            }
            Ok(())
        });
        if asked.is_ok() {
            let _ = signals.send(News::Quit);
        }
    });
}

/// A key right after escape comes as one with Alt; nobody holds Alt here, and over slow lines people type fast.
fn escaped(happening: &Happening) -> Option<Event> {
    let Happening::Key(key) = happening else {
        return None;
    };
    let is_two = key.modifiers.contains(KeyModifiers::ALT) && key.kind != KeyEventKind::Release;
    is_two.then(|| Event::Key(Key::Esc.into()))
}

fn heard(happening: &Happening) -> Option<Event> {
    match happening {
        Happening::Key(key) => pressed(*key).map(Event::Key),
        Happening::Mouse(mouse) => {
            let mouse = match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => Mouse::Click(mouse.column, mouse.row),
                MouseEventKind::ScrollUp => Mouse::WheelUp,
                MouseEventKind::ScrollDown => Mouse::WheelDown,
                _ => return None,
            };
            Some(Event::Mouse(mouse))
        }
        Happening::Resize(width, height) => Some(Event::Resize(*width, *height)),
        _ => None,
    }
}

fn pressed(key: KeyEvent) -> Option<Press> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let known = match key.code {
        KeyCode::Char(sign) => Key::Char(sign),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Tab => Key::Tab,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    };
    Some(Press {
        key: known,
        ctrl: key.modifiers.contains(KeyModifiers::CONTROL),
    })
}
