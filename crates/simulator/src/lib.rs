//! A cluster in a process: an API server on a tower Service, on virtual time.
//!
//! It answers as the real one does wherever a controller can tell the difference: versions, conflicts, finalizers,
//! watches, evictions. Nothing in it depends on the wall clock, on randomness or on the order of a hash map, so what a
//! test saw once it sees again.

mod address;
mod admission;
mod apply;
mod builtin;
mod complete;
mod definition;
mod discovery;
mod failure;
mod fault;
mod fieldset;
pub mod http;
mod kind;
mod metadata;
mod openapi;
mod patch;
mod pod;
mod protobuf;
mod reply;
mod request;
mod schema;
mod selector;
mod server;
mod standin;
mod store;
mod table;
mod watch;
mod write;

pub use address::Resource;
pub use admission::{Admission, Objection};
pub use failure::Failure;
pub use fault::{Fault, RequestFacts, Verb};
pub use request::Logged;
pub use server::ApiServer;
pub use standin::{Running, Standins, node_address};
pub use store::{Backup, Change, Event};
