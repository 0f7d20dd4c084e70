//! What the kwok provider adds: its NodeClass.

mod node_class;

pub use self::node_class::{KWOKNodeClass, KWOKNodeClassSpec, KWOKNodeClassStatus};
