//! Which kinds are watched, and how they reach the state.
