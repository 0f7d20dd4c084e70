//! Who is told what was decided: a webhook, in its own words, and not more often than it likes.
//!
//! [`News`] knows which decisions are new, [`Digest`] puts them into a few words, [`Format`] into what a receiver reads, and
//! [`Teller`] sends one message a period. What cannot be sent waits for the next; nothing that decides waits for any of it.

mod digest;
mod format;
mod news;
mod teller;

pub use digest::Digest;
pub use format::{Format, Message, UnknownFormat};
pub use news::{News, UnknownWord, Wanted};
pub use teller::{Receiver, Teller, WrongAddress};
