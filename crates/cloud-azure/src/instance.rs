//! Our machines: what Azure says about them, how they are launched, listed and ended.

mod aks_list;
mod aks_machines;
mod aks_watch;
mod batch;
mod boot;
mod facts;
mod giving_up;
mod graph;
mod in_place;
mod interfaces;
mod machines;
mod plan;
mod watch;

pub(crate) use self::{
    aks_list::AksList,
    aks_machines::AksMachines,
    in_place::update_in_place,
    interfaces::sweep_interfaces,
    machines::Machines,
    plan::{not_found, tell_missing},
};
