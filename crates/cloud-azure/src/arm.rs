//! Azure Resource Manager: the calls we make of it, and nothing else.
//!
//! A call is a request with a token, a time limit, a few repetitions and a count; what a long-running operation comes to
//! is asked for until it is over. Everything goes through one [`Transport`], so a test answers in place of Azure.

pub(crate) mod calls;
mod client;
mod credential;
mod environment;
mod failure;
mod operation;
pub mod wire;

pub use client::{Arm, ArmParts};
pub use credential::{Credential, ManagedIdentity, SharedGallery, StaticToken, Token, WorkloadIdentity, credential};
pub use environment::{Environment, EnvironmentError};
pub use failure::{Detail, Failure};
pub use operation::Operation;
pub use runtime::egress::{HyperTransport, Transport, TransportError};
