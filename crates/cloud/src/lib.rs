//! What a cloud must do for us, and how it says that it could not.
//!
//! A provider launches, lists and deletes machines, and says what it could launch at which price. It holds no opinion
//! on which machine is wanted. Everything it is asked may be asked again: after a crash, a lost answer, a new leader.

mod error;
mod launch;
mod provider;
mod repair;

pub use error::{CloudError, UnavailableOffering};
pub use launch::{Instance, LaunchToken, Launched};
pub use provider::{CloudProvider, HookResult, NodeClassKind, RegistrationHook};
pub use repair::{RepairAction, RepairPolicy};
