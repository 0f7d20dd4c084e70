//! What upstream's own specs of disruption ask for and the other tests do not say. `docs/conformance/disruption.md` tells
//! which spec is whose.

mod balanced;
mod budgets;
mod candidates;
mod consolidation;
mod drift;
mod emptiness;
mod repair;
mod terminate_first;
