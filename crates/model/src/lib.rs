//! The nouns every decision is made of.

pub mod bitset;
pub mod dump;
pub mod object;
pub mod quantity;
pub mod resources;
pub mod sharing;
pub mod snapshot;
