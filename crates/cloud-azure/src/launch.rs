//! How does a claim become a machine? What may be launched, what Azure is asked for, and what follows from a refusal.

mod bootstrap;
pub(crate) mod choice;
mod gpu_driver;
mod kubelet;
mod labels;
mod machine;
mod network;
mod readiness;
pub(crate) mod refusal;
pub(crate) mod tags;

pub(crate) use self::{
    bootstrap::{Bootstrap, custom_data},
    choice::{Chosen, choose},
    labels::{allowed_taints, node_labels},
    machine::{MachineRequest, machine},
    network::{Interface, interface},
    readiness::{check_ready, missing_class},
};
