//! What the state keeps beside the objects: usage and counts of NodePools, promises, marks, times of pods.

mod ledger;
mod marks;
mod objects;
mod pods;
mod usage;
