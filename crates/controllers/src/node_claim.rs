//! NodeClaims from launch to end.

mod ending;
pub mod lifecycle;
mod ownership;

pub use ending::Reason;
pub use ownership::Managed;
