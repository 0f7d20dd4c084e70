//! The nouns every decision is made of.

pub mod bitset;
pub mod object;
pub mod pod_requests;
pub mod quantity;
pub mod resources;
pub mod sharing;
