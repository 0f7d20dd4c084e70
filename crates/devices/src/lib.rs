//! Which devices satisfy a pod's claims?

mod allocated;
mod allocator;
mod binding;
mod capacity;
mod claim;
mod constraint;
mod device;
mod host;
mod id;
mod inventory;
mod ledger;
mod pool;
mod reach;
mod search;
mod selector;
mod wish;

pub use allocator::{AllocatedDevice, Allocation, Allocator, ClaimAllocation, DraError};
pub use host::Host;
pub use id::{ClaimId, HostId, TypeId};
