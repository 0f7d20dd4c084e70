//! Nodes: their hydration, drain and end.
