//! What was decided, and why: a record of every act and every refusal, found again by its id.
//!
//! Controllers write records, the command line reads them. A record's id is made of what is done to whom and not of the
//! time, so a move that is planned, planned again and carried out is one record, and a refusal that is found again and again
//! is one too. The [`Ring`] keeps the latest of them, in shards that are stored one by one.

pub mod flight;
mod id;
mod record;
mod ring;
mod shard;
pub mod words;

pub use id::{Id, NotAnId, Prefix};
pub use record::{Action, Inputs, Lift, MOST_LISTED, Money, Offer, Phase, Record, Score, Step, Target, Usd, cut};
pub use ring::{Found, Limits, Ring, Saved};
pub use shard::{ENTRY, Unreadable, lines, name_of, read_lines, read_shard, shard_text, write_shard};

/// The version of the engine that decides.
pub const ENGINE: &str = env!("CARGO_PKG_VERSION");
