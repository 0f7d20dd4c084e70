//! Where an answer is read: how wide, whether colours and signs beyond ASCII can be shown, and what colours mean.

mod bar;
mod fill;
mod money;
mod sorting;
mod table;
mod time;
mod wrap;
mod zone;

use std::io::{BufRead, IsTerminal, Write};

pub(crate) use bar::bar;
pub(crate) use fill::filled;
pub(crate) use model::words::{counted, grouped};
pub(crate) use money::{Amount, HOURS_OF_A_MONTH, change, hourly, monthly, per_hour, percent};
pub(crate) use sorting::Sorting;
pub(crate) use table::{Align, Cell, Table};
pub(crate) use time::span;
pub(crate) use wrap::{cut_in_the_middle, hanging};
pub(crate) use zone::Zone;

/// Flags about presentation.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Presentation")]
pub(crate) struct Presentation {
    /// When to use colour; `auto` means on a terminal, unless `NO_COLOR` is set.
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    color: Colour,
    /// Draw with ASCII signs only.
    #[arg(long)]
    ascii: bool,
    /// Lay out for this many columns instead of the terminal's.
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
    /// Print tables without their headings.
    #[arg(long)]
    no_headers: bool,
    /// Sort rows by the column of this title; with `-` before it, the greatest first.
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true, value_parser = Sorting::parsed)]
    sort_by: Option<&'static Sorting>,
    /// The zone of printed times, such as Europe/Berlin, UTC or local; otherwise a terminal's own, and UTC in a pipe.
    #[arg(long, value_name = "ZONE", value_parser = Zone::parsed)]
    tz: Option<Zone>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Colour {
    #[default]
    Auto,
    Always,
    Never,
}

/// Where an answer is read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Screen {
    /// Columns; none in a pipe, where nothing is cut and no bars are drawn.
    pub(crate) width: Option<usize>,
    /// Whether colours show.
    pub(crate) has_colour: bool,
    /// Whether only ASCII signs show.
    pub(crate) is_ascii: bool,
    /// Whether tables go without their headings.
    pub(crate) is_headless: bool,
    /// By which column rows are sorted, instead of as they come.
    pub(crate) sorting: Option<&'static Sorting>,
    /// In which zone times are printed.
    pub(crate) zone: Zone,
}

/// What colour means; the meaning is always also in a word or sign.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Role {
    #[default]
    Plain,
    Heading,
    Secondary,
    Stop,
    Warn,
    /// Something to type, or to look up.
    Command,
    Good,
    Spot,
    OnDemand,
    Reserved,
    /// So many percent full: full is good.
    Fill(u32),
}

/// What the environment says about the terminal.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one fact each, as the environment has them"
)]
struct Surroundings {
    is_terminal: bool,
    columns: Option<usize>,
    no_color: bool,
    force_color: bool,
    is_dumb: bool,
    has_other_charset: bool,
    zone: Zone,
}

/// What people read lines at when the terminal does not say how wide it is.
const USUAL_WIDTH: usize = 120;

impl Presentation {
    /// The screen that standard output is.
    pub(crate) fn screen(self) -> Screen {
        self.on(Surroundings::look())
    }

    fn on(self, here: Surroundings) -> Screen {
        let on_terminal = here.is_terminal.then(|| here.columns.unwrap_or(USUAL_WIDTH));
        let wants_colour = match self.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => here.force_color || here.is_terminal && !here.no_color && !here.is_dumb,
        };
        Screen {
            width: self.width.or(on_terminal),
            has_colour: wants_colour,
            is_ascii: self.ascii || here.has_other_charset,
            is_headless: self.no_headers,
            sorting: self.sort_by,
            zone: self
                .tz
                .unwrap_or(if here.is_terminal { here.zone } else { Zone::default() }),
        }
    }
}

impl Surroundings {
    #[expect(
        clippy::disallowed_methods,
        reason = "the composition root: what the terminal is like is known only here"
    )]
    fn look() -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let charset = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        Self {
            is_terminal: std::io::stdout().is_terminal(),
            columns: columns(),
            no_color: std::env::var("NO_COLOR").is_ok(),
            force_color: set("CLICOLOR_FORCE").is_some_and(|value| value != "0"),
            is_dumb: set("TERM").is_some_and(|term| term == "dumb"),
            has_other_charset: charset.is_some_and(|name| !name.to_uppercase().replace('-', "").contains("UTF8")),
            zone: Zone::local(set("TZ").as_deref()),
        }
    }
}

/// Says something on standard error. Whoever closed it, as `2>&1 | head` does, has heard enough.
pub(crate) fn aside(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Says what will be written, and asks; what cannot be asked is not agreed to.
pub(crate) fn agreed(asks: &str) -> std::io::Result<bool> {
    aside(&format!("{asks} Continue? [y/N] "));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

impl Screen {
    /// The text in the colour of its role.
    pub(crate) fn paint(&self, role: Role, text: &str) -> String {
        match code(role) {
            Some(code) if self.has_colour && !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }

    /// Whether bars are drawn.
    pub(crate) fn has_bars(&self) -> bool {
        self.width.is_some()
    }

    /// Columns for running text.
    pub(crate) fn text_width(&self) -> usize {
        self.width.unwrap_or(usize::MAX)
    }

    /// The sign for «becomes».
    pub(crate) fn arrow(&self) -> &'static str {
        if self.is_ascii { "->" } else { "→" }
    }
}

fn code(role: Role) -> Option<&'static str> {
    match role {
        Role::Plain => None,
        Role::Heading => Some("1"),
        Role::Secondary => Some("2"),
        Role::Stop => Some("1;31"),
        Role::Good => Some("32"),
        Role::Reserved => Some("35"),
        Role::Fill(..=20) => Some("31"),
        Role::OnDemand | Role::Warn | Role::Fill(21..=40) => Some("33"),
        Role::Fill(41..=60) => Some("37"),
        Role::Command | Role::Fill(61..=80) => Some("36"),
        Role::Spot | Role::Fill(_) => Some("34"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal() -> Surroundings {
        Surroundings {
            is_terminal: true,
            columns: Some(100),
            zone: Zone::local(Some("Asia/Tokyo")),
            ..Surroundings::default()
        }
    }

    fn flags(color: Colour) -> Presentation {
        Presentation {
            color,
            ..Presentation::default()
        }
    }

    #[test]
    fn colour_needs_a_terminal_that_wants_it() {
        let pipe = Surroundings::default();
        let no_color = Surroundings {
            no_color: true,
            ..terminal()
        };
        let dumb = Surroundings {
            is_dumb: true,
            ..terminal()
        };
        let forced = Surroundings {
            force_color: true,
            ..pipe
        };
        let cases = [
            (Colour::Auto, terminal(), true),
            (Colour::Auto, pipe, false),
            (Colour::Auto, no_color, false),
            (Colour::Auto, dumb, false),
            (Colour::Auto, forced, true),
            (Colour::Always, no_color, true),
            (Colour::Never, forced, false),
        ];
        for (color, here, expected) in cases {
            assert_eq!(flags(color).on(here).has_colour, expected, "{color:?} {here:?}");
        }
    }

    #[test]
    fn a_pipe_has_no_width_unless_one_is_given() {
        let pipe = Surroundings::default();
        assert_eq!(flags(Colour::Auto).on(pipe).width, None);
        assert_eq!(flags(Colour::Auto).on(terminal()).width, Some(100));
        let given = Presentation {
            width: Some(80),
            ..flags(Colour::Auto)
        };
        assert_eq!(given.on(pipe).width, Some(80));
    }

    #[test]
    fn times_are_the_terminals_own_and_in_a_pipe_in_utc() {
        let zone = |flags: Presentation, here: Surroundings| flags.on(here).zone;
        assert_eq!(zone(flags(Colour::Auto), terminal()), Zone::local(Some("Asia/Tokyo")));
        assert_eq!(zone(flags(Colour::Auto), Surroundings::default()), Zone::default());
        let asked = Presentation {
            tz: Zone::parsed("Europe/Berlin").ok(),
            ..flags(Colour::Auto)
        };
        assert_eq!(zone(asked, terminal()), Zone::parsed("Europe/Berlin").unwrap());
    }
}
