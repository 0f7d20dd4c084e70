//! NodePools: readiness, validation, hash, counts, registration health.

mod health;

pub use health::{Health, RegistrationHealth};
