//! Pools with a fixed number of nodes.
