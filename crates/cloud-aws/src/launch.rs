//! How does a claim become a machine? What may be launched, from which template, with which request, and what follows
//! from the answer.

mod choice;
mod fleet;
mod plan;
mod readiness;
pub(crate) mod refusal;
mod rehearsal;
mod subnets;
pub(crate) mod tags;
mod template;
mod templates;
mod user_data;

pub(crate) use self::{
    choice::{Reservation, ReservationKind},
    plan::{Answer, Given, Launcher, Outcome, no_such_class},
    readiness::check_ready,
    template::EFA,
};
