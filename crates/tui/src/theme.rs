//! What colours mean, and how they look on this terminal. Meaning is always also in a word or a sign.

use ratatui_core::style::{Color, Modifier, Style};

/// What a piece of text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    #[default]
    Plain,
    Heading,
    Secondary,
    Stop,
    Warn,
    Good,
    /// An id, or something to type.
    Command,
    Spot,
    OnDemand,
    Reserved,
    /// So many percent full: full is good.
    Fill(u64),
}

impl Role {
    /// How full something is.
    pub(crate) fn fill(fill: insight::Fill) -> Self {
        Self::Fill(crate::figure::per_mille(fill).unwrap_or_default() / 10)
    }
}

/// How many colours a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// None.
    Mono,
    /// Eight, and bright ones.
    Sixteen,
    /// A cube of 216.
    Indexed,
    /// Any.
    True,
}

/// Which colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// The sixteen a terminal has names for.
    Named,
    /// Told apart by people who do not tell red from green.
    ColourBlind,
    /// None: words and signs only.
    Mono,
    /// Bright ones only, nothing dim.
    HighContrast,
}

/// A colour as eks-node-viewer writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// How everything looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// What the terminal can show.
    pub depth: Depth,
    /// What is used of it.
    pub palette: Palette,
    /// Only ASCII signs.
    pub is_ascii: bool,
    /// Colours for full, middling and empty bars, where somebody chose them.
    pub bars: Option<[Rgb; 3]>,
}

impl Look {
    /// The palette to begin with: what the terminal shows best.
    pub fn best(depth: Depth, is_ascii: bool) -> Self {
        let palette = match depth {
            Depth::Mono => Palette::Mono,
            Depth::Sixteen => Palette::Named,
            Depth::Indexed | Depth::True => Palette::ColourBlind,
        };
        Self {
            depth,
            palette,
            is_ascii,
            bars: None,
        }
    }

    /// The next palette that this terminal can show.
    pub(crate) fn turn(&mut self) -> &'static str {
        let has_rgb = matches!(self.depth, Depth::Indexed | Depth::True);
        self.palette = match self.palette {
            _ if self.depth == Depth::Mono => Palette::Mono,
            Palette::Named if has_rgb => Palette::ColourBlind,
            Palette::Named | Palette::ColourBlind => Palette::HighContrast,
            Palette::HighContrast => Palette::Mono,
            Palette::Mono => Palette::Named,
        };
        match self.palette {
            Palette::Named => "default",
            Palette::ColourBlind => "colour-blind",
            Palette::Mono => "mono",
            Palette::HighContrast => "high-contrast",
        }
    }

    /// How text of a role looks.
    pub(crate) fn style(&self, role: Role) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let dim = plain.add_modifier(Modifier::DIM);
        if self.palette == Palette::Mono {
            return match role {
                Role::Heading | Role::Stop => bold,
                Role::Secondary => dim,
                _ => plain,
            };
        }
        match role {
            Role::Plain => plain,
            Role::Heading => bold,
            Role::Secondary if self.palette == Palette::HighContrast => plain,
            Role::Secondary => dim,
            Role::Stop => bold.fg(self.of(Color::Red, Rgb(0xb3, 0x40, 0x1f))),
            Role::Warn => plain.fg(self.of(Color::Yellow, Rgb(0xa8, 0x6b, 0x00))),
            Role::Good => plain.fg(self.of(Color::Green, Rgb(0x1b, 0x7f, 0x5c))),
            Role::Command => plain.fg(self.of(Color::Cyan, Rgb(0x2a, 0x8a, 0x9e))),
            Role::Spot => plain.fg(self.of(Color::Blue, Rgb(0x2c, 0x7f, 0xb8))),
            Role::OnDemand => plain.fg(self.of(Color::Yellow, Rgb(0xb8, 0x86, 0x0b))),
            Role::Reserved => plain.fg(self.of(Color::Magenta, Rgb(0x8e, 0x5e, 0xa2))),
            Role::Fill(percent) => plain.fg(self.fill(percent)),
        }
    }

    /// The row the cursor is on.
    pub(crate) fn cursor(&self) -> Style {
        match self.depth {
            Depth::Mono => Style::new(),
            _ => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    fn of(&self, named: Color, rgb: Rgb) -> Color {
        match self.palette {
            Palette::ColourBlind => self.rgb(rgb),
            Palette::HighContrast => bright(named),
            Palette::Named | Palette::Mono => named,
        }
    }

    /// Five steps from empty to full.
    fn fill(&self, percent: u64) -> Color {
        let step = match percent {
            ..=20 => 0,
            21..=40 => 1,
            41..=60 => 2,
            61..=80 => 3,
            _ => 4,
        };
        if let Some([full, middling, empty]) = self.bars {
            let steps = [empty, between(empty, middling), middling, between(middling, full), full];
            return self.rgb(steps[step]);
        }
        let named = [Color::Red, Color::Yellow, Color::White, Color::Cyan, Color::Blue];
        let safe = [
            Rgb(0xc8, 0x56, 0x1b),
            Rgb(0xd9, 0xa4, 0x41),
            Rgb(0x9a, 0xa0, 0xa6),
            Rgb(0x6f, 0x9e, 0xc4),
            Rgb(0x1f, 0x6f, 0xb2),
        ];
        self.of(named[step], safe[step])
    }

    fn rgb(&self, Rgb(red, green, blue): Rgb) -> Color {
        match self.depth {
            Depth::True => Color::Rgb(red, green, blue),
            Depth::Indexed => Color::Indexed(indexed(red, green, blue)),
            Depth::Mono => Color::Reset,
            Depth::Sixteen => named(red, green, blue),
        }
    }
}

fn bright(colour: Color) -> Color {
    match colour {
        Color::Red => Color::LightRed,
        Color::Yellow => Color::LightYellow,
        Color::Green => Color::LightGreen,
        Color::Cyan => Color::LightCyan,
        Color::Blue => Color::LightBlue,
        Color::Magenta => Color::LightMagenta,
        other => other,
    }
}

fn between(one: Rgb, other: Rgb) -> Rgb {
    Rgb(
        one.0.midpoint(other.0),
        one.1.midpoint(other.1),
        one.2.midpoint(other.2),
    )
}

/// The nearest colour of the cube that terminals of 256 colours have.
fn indexed(red: u8, green: u8, blue: u8) -> u8 {
    let step = |value: u8| match value {
        ..48 => 0,
        48..115 => 1,
        value => (value - 35) / 40,
    };
    16 + 36 * step(red) + 6 * step(green) + step(blue)
}

/// The nearest of the colours that have names.
fn named(red: u8, green: u8, blue: u8) -> Color {
    let most = red.max(green).max(blue);
    let is_strong = |value: u8| u16::from(value) * 3 >= u16::from(most) * 2;
    match (is_strong(red), is_strong(green), is_strong(blue)) {
        _ if most < 64 => Color::DarkGray,
        (true, true, true) => Color::White,
        (true, true, false) => Color::Yellow,
        (true, false, true) => Color::Magenta,
        (false, true, true) => Color::Cyan,
        (true, false, false) => Color::Red,
        (false, true, false) => Color::Green,
        (false, false, _) => Color::Blue,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_without_colour_gets_none_whatever_the_role() {
        let look = Look::best(Depth::Mono, false);
        for role in [Role::Stop, Role::Spot, Role::Fill(3), Role::Fill(99), Role::Command] {
            assert_eq!(look.style(role).fg, None, "{role:?}");
        }
        let mut look = look;
        assert_eq!(look.turn(), "mono");
    }

    #[test]
    fn full_is_blue_and_empty_is_red_on_sixteen_colours() {
        let look = Look::best(Depth::Sixteen, false);
        let colours = [10, 30, 50, 70, 95].map(|percent| look.style(Role::Fill(percent)).fg);
        let expected = [Color::Red, Color::Yellow, Color::White, Color::Cyan, Color::Blue];
        assert_eq!(colours, expected.map(Some));
    }

    #[test]
    fn colours_somebody_chose_run_from_bad_to_good() {
        let mut look = Look::best(Depth::True, false);
        look.bars = Some([Rgb(0, 255, 0), Rgb(255, 255, 0), Rgb(255, 0, 0)]);
        let fg = |percent| look.style(Role::Fill(percent)).fg;
        assert_eq!(fg(5), Some(Color::Rgb(255, 0, 0)));
        assert_eq!(fg(95), Some(Color::Rgb(0, 255, 0)));
        assert_eq!(fg(70), Some(Color::Rgb(127, 255, 0)));
    }

    #[test]
    fn the_palette_keeps_its_hues_on_fewer_colours() {
        assert_eq!(indexed(0x1f, 0x6f, 0xb2), 25);
        assert_eq!(named(0xc8, 0x56, 0x1b), Color::Red);
        assert_eq!(named(0x1f, 0x6f, 0xb2), Color::Blue);
        assert_eq!(named(0xd9, 0xa4, 0x41), Color::Yellow);
    }
}
