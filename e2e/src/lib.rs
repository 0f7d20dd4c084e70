//! Journeys on a real control plane; the tests live in `tests/`, what they share lives here.

pub mod answer;
pub mod autoscaler;
pub mod aws;
pub mod azure;
pub mod corpus;
pub mod crd_set;
pub mod difference;
pub mod oracle_plan;
