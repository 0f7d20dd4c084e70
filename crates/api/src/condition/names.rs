//! Condition types and reasons.
