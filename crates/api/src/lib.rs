//! What users write and read: the Karpenter v1 API as Rust types.
//!
//! | to find | look in |
//! |---|---|
//! | a kind | [`karpenter`], [`autoscaling`], [`aws`], [`azure`], [`kwok`], one folder per API group |
//! | the CRDs made from the kinds | [`crds`] |
//! | a word with a meaning | [`labels`], [`annotations`], [`taints`], [`finalizers`], [`condition::names`] |
//! | which labels users may use | [`labels::rules`]; in CRDs, `crds::label_rules` |
//! | what all node classes have | [`node_class`] |
//! | when a condition changes | [`condition::set`] |
//! | what makes a node drift | `hash` methods of the kinds, over [`hash`] |
//! | how a field is written | [`duration`], [`quantity`], [`time`] |
//!
//! There is no client, clock or environment here.
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
pub mod node_class;
mod open_enum;
mod pattern;
pub mod provider;
pub mod quantity;
pub mod taints;
pub mod time;

/// The release of Karpenter core whose API this crate is.
pub const KARPENTER_VERSION: &str = "v1.15.0";
