//! Seeded workloads: the same inputs for us and for the reference.
