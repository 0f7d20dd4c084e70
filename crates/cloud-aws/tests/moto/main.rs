//! The launch side against moto: the suite every provider must pass, launches that go wrong half way, interruptions.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::redundant_closure_for_method_calls,
    reason = "helpers of tests: what is not as it should be ends the test"
)]

mod conformance;
mod interruption;
mod launch;
mod world;
