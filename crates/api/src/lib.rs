//! What users write and read: the Karpenter v1 API as Rust types.
// kube's schema derive repeats each struct inside a function, where `pub` reaches nobody.
#![allow(unreachable_pub)]
// Every printer column of a kind has a type.
#![allow(clippy::duplicated_attributes)]

mod absent_spec;
pub mod annotations;
pub mod autoscaling;
pub mod aws;
pub mod azure;
pub mod condition;
pub mod crds;
pub mod duration;
pub mod finalizers;
pub mod hash;
#[cfg(test)]
mod hash_vectors;
pub mod image_requirement;
pub mod karpenter;
pub mod kwok;
pub mod labels;
mod open_enum;
mod pattern;
pub mod provider;
pub mod quantity;
pub mod taints;
pub mod time;

/// The release of Karpenter core whose API this crate is.
pub const KARPENTER_VERSION: &str = "v1.15.0";
