//! What users write and read: the Karpenter v1 API as Rust types.

pub mod hash;
