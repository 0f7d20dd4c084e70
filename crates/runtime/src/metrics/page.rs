//! What `/metrics` answers: all families by name, written piece by piece, so that a large cluster does not have to fit
//! into memory a second time as text.

use std::{borrow::Cow, fmt, iter::Peekable, vec};

use super::{family::About, text};
use crate::settings::MetricsProfile;

/// A piece is sent once it is this long.
const PIECE: usize = 64 * 1024;

/// Writes some samples; true when there are more.
pub type Draw = Box<dyn FnMut(&mut String) -> bool + Send>;

/// One family's part of the page.
pub struct Sheet {
    about: About,
    draw: Draw,
}

impl fmt::Debug for Sheet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sheet")
            .field("about", &self.about)
            .finish_non_exhaustive()
    }
}

impl Sheet {
    /// Samples already written.
    pub fn of(about: About, samples: String) -> Self {
        let mut samples = Some(samples);
        let draw = move |out: &mut String| {
            out.push_str(&samples.take().unwrap_or_default());
            false
        };
        Self::drawn(about, Box::new(draw))
    }

    /// Samples written as they are sent.
    pub fn drawn(about: About, draw: Draw) -> Self {
        Self { about, draw }
    }

    /// The samples of each of many things, written as they are sent.
    pub fn each<T: Send + 'static>(
        about: About,
        mut things: impl Iterator<Item = T> + Send + 'static,
        write: impl Fn(&About, &T, &mut String) + Send + 'static,
    ) -> Self {
        let own = about.clone();
        let draw = move |out: &mut String| {
            let next = things.next();
            if let Some(thing) = &next {
                write(&own, thing, out);
            }
            next.is_some()
        };
        Self::drawn(about, Box::new(draw))
    }
}

/// Gives sheets beside those of the families that [`crate::Metrics`] keeps.
pub trait Source: Send + Sync {
    /// What there is to show, now. What the profile does not show need not be given.
    fn sheets(&self, profile: MetricsProfile) -> Vec<Sheet>;
}

/// The page: an iterator over its pieces.
#[derive(Debug)]
pub struct Page {
    sheets: Peekable<vec::IntoIter<Sheet>>,
    /// The family that was told last. Sheets of one family may be several.
    told: Cow<'static, str>,
}

impl Page {
    /// A page of what a profile shows of these sheets.
    pub fn new(mut sheets: Vec<Sheet>, profile: MetricsProfile) -> Self {
        sheets.retain(|sheet| sheet.about.profile <= profile);
        sheets.sort_by(|one, two| one.about.name.cmp(&two.about.name));
        Self {
            sheets: sheets.into_iter().peekable(),
            told: Cow::default(),
        }
    }
}

impl Iterator for Page {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut piece = String::new();
        while piece.len() < PIECE
            && let Some(sheet) = self.sheets.peek_mut()
        {
            let before = piece.len();
            let is_told = self.told == sheet.about.name;
            if !is_told {
                text::header(&mut piece, &sheet.about.name, sheet.about.help, sheet.about.kind.name());
            }
            let told = piece.len();
            let more = (sheet.draw)(&mut piece);
            if piece.len() == told {
                piece.truncate(before);
            } else if !is_told {
                self.told = sheet.about.name.clone();
            }
            if !more {
                self.sheets.next();
            }
        }
        (!piece.is_empty()).then_some(piece)
    }
}
