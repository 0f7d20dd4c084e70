//! What users write and read: the Karpenter v1 API as Rust types.
// kube's schema derive repeats each struct inside a function, where `pub` reaches nobody.
#![allow(unreachable_pub)]

mod absent_spec;
pub mod aws;
pub mod azure;
pub mod condition;
pub mod crds;
pub mod duration;
pub mod hash;
pub mod image_requirement;
pub mod kwok;
mod open_enum;
pub mod provider;
pub mod quantity;
pub mod time;
