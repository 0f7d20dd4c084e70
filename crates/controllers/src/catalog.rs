//! What the cloud offers each pool, kept fresh in the state.
