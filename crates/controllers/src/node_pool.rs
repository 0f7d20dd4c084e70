//! NodePools: readiness, validation, hash, counts, registration health.
