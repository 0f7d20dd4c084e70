//! Who may act? Only a process that leads at this very moment.

use std::sync::Arc;

use runtime::lease::Leader;

use crate::mutation::{self, Mutation};

/// Asked right before every write and every call that changes the cloud.
pub fn fence(leader: &Leader) -> Arc<dyn Fn() -> bool + Send + Sync> {
    let leader = leader.clone();
    Arc::new(move || leader.epoch_now().is_some() || mutation::has(Mutation::IgnoresFence))
}
