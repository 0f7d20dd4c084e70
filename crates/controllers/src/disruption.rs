//! Nodes go when that is right: they are broken, empty, outdated, or cost more than they are worth.
//!
//! What goes and why is decided by the crate `disruption`, on a snapshot. Here the loop asks it, waits where upstream
//! waits, asks again on a fresh snapshot, and carries commands out: mark the nodes, bring replacements up, and only then
//! delete the claims. Whatever goes wrong before that ends in the nodes staying as they were.

mod cron_jobs;
mod deletion_cost;
mod facts;
mod marker;
mod measure;
mod memory;
mod queue;
mod reboot;
mod repair;
pub(crate) mod rounds;
mod start;
pub(crate) mod tell;

use std::sync::Arc;

use cloud::RepairPolicies;

use crate::Cluster;
pub use deletion_cost::run as run_deletion_cost;
pub(crate) use measure::snake;
use memory::Memory;
use queue::CommandQueue;
use repair::Policies;
use rounds::Rounds;

/// Runs the loop and the queue of commands under way, until the future is dropped. Without policies nothing is repaired.
pub fn run(cluster: &Arc<Cluster>, repair: Option<RepairPolicies>) -> impl Future<Output = ()> + Send + use<> {
    let memory = Arc::new(Memory::default());
    let queue = Arc::new(CommandQueue::new(Arc::clone(&memory)));
    let (work, carry_on) = crate::run(queue, Arc::clone(cluster));
    // The time of the start is a seed that no other process has, and that a simulated one has again.
    let seed = u64::try_from(cluster.now().as_nanosecond() & i128::from(u64::MAX)).unwrap_or_default();
    let rounds = Rounds::new(memory, work, repair.map(Policies::new), seed);
    let (_, ask) = crate::run(Arc::new(rounds), Arc::clone(cluster));
    async {
        tokio::join!(carry_on, ask);
    }
}
