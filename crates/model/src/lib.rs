//! The nouns every decision is made of.

pub mod bitset;
pub mod pod_requests;
pub mod quantity;
pub mod requirement;
pub mod resources;
pub mod vocabulary;
