//! The nouns every decision is made of.

pub mod bitset;
pub mod digest;
pub mod dump;
pub mod eviction;
pub mod host_port;
pub mod instance_type;
pub mod object;
pub mod pdb;
pub mod plan;
pub mod pod_requests;
pub mod price;
pub mod quantity;
pub mod requirement;
pub mod reservation;
pub mod resources;
pub mod sharing;
pub mod snapshot;
pub mod taint;
pub mod vocabulary;
pub mod volume;
pub mod words;
