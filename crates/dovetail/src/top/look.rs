//! What this terminal can show, as the environment says it.

use std::io::IsTerminal;

use tui::{Depth, Look, Palette};

use crate::{failure::Failure, terminal::Screen};

/// Whether there is a terminal at all.
pub(super) fn is_terminal() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

/// Colours, signs, and what somebody chose.
pub(super) fn of(screen: Screen, style: Option<&str>) -> Result<Look, Failure> {
    let next = "dovetail top --help";
    let depth = if screen.has_colour {
        depth(&variable("COLORTERM"), &variable("TERM"))
    } else {
        Depth::Mono
    };
    let mut look = Look::best(depth, screen.is_ascii);
    if depth != Depth::Mono {
        look.palette = match variable("DOVETAIL_THEME").as_str() {
            "" => look.palette,
            "default" => Palette::Named,
            "colour-blind" | "color-blind" => Palette::ColourBlind,
            "high-contrast" => Palette::HighContrast,
            "mono" => Palette::Mono,
            other => {
                let error = format!("DOVETAIL_THEME={other} is no theme");
                let why = "it is one of default, colour-blind, high-contrast, mono";
                return Err(Failure::usage(error, why, "unset DOVETAIL_THEME"));
            }
        };
    }
    look.bars = style
        .map(tui::style)
        .transpose()
        .map_err(|why| Failure::usage("--style cannot be read", why, next))?;
    Ok(look)
}

fn depth(colorterm: &str, term: &str) -> Depth {
    if ["truecolor", "24bit"].contains(&colorterm) || term.ends_with("-direct") {
        Depth::True
    } else if term.contains("256color") {
        Depth::Indexed
    } else {
        Depth::Sixteen
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the composition root: what the terminal is like is known only here"
)]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_says_how_many_colours_it_has() {
        assert_eq!(depth("truecolor", "xterm"), Depth::True);
        assert_eq!(depth("", "xterm-256color"), Depth::Indexed);
        assert_eq!(depth("", "linux"), Depth::Sixteen);
    }
}
