//! Amazon EC2: a drop-in for Karpenter's provider for EKS.
//!
//! Two sides share this crate. The read side says what there is: node classes and what they resolve to ([`node_class`]),
//! instance types with prices and shortages ([`offers`]), what has drifted. The launch side makes and removes machines
//! ([`launch`], [`instance`]) and hears of their end ([`interruption`]). What each asks of the other is in [`border`].

mod background;
mod border;
mod clients;
mod cluster;
mod drift;
mod failure;
mod instance;
mod interruption;
mod launch;
mod node_class;
pub mod offers;
mod provider;
mod reads;
mod reservation_ends;
mod zonal_shift;

pub use border::{
    ClusterFacts, Describes, Freshness, MachineFacts, Machines, PlacementGroupFacts, Reads, Rehearsal,
    RehearsalFailure, ReservationNote, Shortage, SubnetFacts, TypeFacts, images_of_types,
};
pub use clients::{ClientError, ClientOptions, Clients};
pub use failure::Failure;
pub use instance::{Ec2Machines, MachineOptions};
pub use interruption::{Unreadable, read_message};
pub use node_class::Controller;
pub use provider::Aws;
pub use reads::{Parts, ReadSide};
