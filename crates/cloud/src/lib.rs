//! What a cloud must do for us, and how it says that it could not.
//!
//! A provider launches, lists and deletes machines, and says what it could launch at which price. It holds no opinion
//! on which machine is wanted. Everything it is asked may be asked again: after a crash, a lost answer, a new leader.

#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod error;
mod fenced;
mod interruptions;
mod launch;
mod metered;
mod notice;
mod provider;
#[cfg(any(test, feature = "testing"))]
pub mod reference;
mod repair;
mod sweep;
mod unavailable;

pub use error::{CloudError, UnavailableOffering};
pub use fenced::{Fenced, MayAct};
pub use interruptions::{Interruptions, OfferingKey, Rate};
pub use launch::{Instance, LaunchToken, Launched, described_requests};
pub use metered::{Call, CallObserver, Metered};
pub use notice::{Meant, Notice, NoticeKind};
pub use provider::{CloudProvider, HookResult, NodeClassKind, RegistrationHook};
pub use repair::{InvalidRepairPolicies, RepairAction, RepairPolicies, RepairPolicy};
pub use sweep::{Findings, GRACE, Held, Sweep};
pub use unavailable::{BELIEVED, UnavailableOfferings};
