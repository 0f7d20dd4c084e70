//! Our decisions on which nodes go, beside upstream's on the same snapshot.

pub mod bench;
pub mod differential;
pub mod input;
pub mod reference;
pub mod scale_in;
