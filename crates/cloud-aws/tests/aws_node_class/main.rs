//! Node classes against the double of AWS and an API server in this process: conditions, reasons and messages.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails")]
#![expect(clippy::needless_pass_by_value, reason = "manifests are written where they are used")]

mod capacity;
#[path = "../double/mod.rs"]
mod double;
mod images;
mod life;
mod profiles;
mod reservation_ends;
mod selectors;
mod validation;
mod world;
mod zonal_shift;
