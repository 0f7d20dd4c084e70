//! Why? Of a pod, a node or a pool: what is the case, what it comes from, and the smallest change that helps.

pub mod node;
pub mod passing;
pub mod pod;
pub mod pool;
