//! How does a claim become a machine? What may be launched, what Azure is asked for, and what follows from a refusal.

mod aks_machine;
mod bootstrap;
pub(crate) mod choice;
mod gpu_driver;
mod kubelet;
mod labels;
mod machine;
mod network;
mod node_settings;
mod provision;
mod readiness;
pub(crate) mod refusal;
pub(crate) mod tags;

pub(crate) use self::{
    aks_machine::{AksMachineRequest, aks_machine, node_image_version},
    bootstrap::{Boot, Bootstrap, scripted},
    choice::{Chosen, choose},
    labels::{allowed_taints, node_labels},
    machine::{MachineRequest, machine},
    network::{Interface, interface},
    provision::{Provision, hydrated, provision_values},
    readiness::{check_ready, missing_class},
};
