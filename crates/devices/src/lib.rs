//! Which devices satisfy a pod's claims, on which instance types, and what does that ask of the node?
//!
//! Dynamic resource allocation with structured parameters, as upstream does it when `ignoreDRARequests` is false: every
//! attempt to place a pod with claims is a depth-first search per instance type, over the devices drivers have published
//! and those the type will come with. An [`Allocator`] belongs to one planning run. It is asked freely and from any
//! number of threads ([`Allocator::allocate`] changes nothing) and told of every placement ([`Allocator::commit`]).
//!
//! # How the solver calls it
//!
//! Once per run, when device requests are not ignored. `nodes` are the nodes of the run that are initialised; `moving`
//! are the UIDs of pods on nodes that go away, and of the candidates' pods in a simulation. The vocabulary must be the
//! run's own, before requirements are encoded at a fixed width.
//!
//! ```
//! # use std::collections::BTreeSet;
//! # use devices::*;
//! # use model::{object::{NodeName, Pod, Uid}, snapshot::Snapshot, vocabulary::Vocabulary};
//! fn start(snapshot: &Snapshot, nodes: &BTreeSet<NodeName>, moving: Vec<Uid>, vocabulary: &mut Vocabulary) -> Allocator {
//!     Allocator::new(snapshot, nodes, moving, vocabulary)
//! }
//!
//! /// Once per pod that refers to claims. An error is the pod's error in every attempt of the run.
//! fn resolve(allocator: &Allocator, pod: &Pod) -> Result<Vec<ClaimId>, String> {
//!     allocator.claims_of(pod)
//! }
//! ```
//!
//! An instance type's [`TypeId`] is found once by name ([`Allocator::type_id`]); it does not depend on the NodePool.
//! Types that come with equal devices are searched once for all of them, so a host of hundreds of types costs as many
//! searches as it has kinds of devices.
//!
//! A NodeClaim, for each volume alternative: after the volume's requirements are merged the devices are searched for,
//! with the claim's **stored** requirements and **all** its options, without this pod's keys and without the volume
//! filter. What the devices ask is merged; after the instance-type filter only types remain that have the devices.
//!
//! ```
//! # use devices::*;
//! # use model::{requirement::{Requirements, UndefinedLabels}, vocabulary::Vocabulary};
//! # struct NodeClaim { number: u32, stored: Requirements, options: Vec<TypeId> }
//! # fn filter(options: &[TypeId], _: &Requirements) -> Result<Vec<TypeId>, String> { Ok(options.to_vec()) }
//! fn can_add(
//!     claim: &NodeClaim, mut merged: Requirements, claims: &[ClaimId], allocator: &Allocator, vocabulary: &Vocabulary,
//! ) -> Result<(Vec<TypeId>, Allocation), String> {
//!     let host = Host {
//!         id: HostId::Claim(claim.number), // its own for the whole run, however claims are sorted
//!         node_name: None,
//!         requirements: &claim.stored,
//!         types: &claim.options,
//!         has_templates: true,
//!     };
//!     let allocation = allocator
//!         .allocate(&host, claims, vocabulary) // Err(DraError::Exhausted) ends the whole run instead
//!         .map_err(|error| format!("allocating dynamic resources, {error}"))?;
//!     merged
//!         .compatible(&allocation.requirements, UndefinedLabels::AllowedIfWellKnown, vocabulary)
//!         .map_err(|error| format!("incompatible dynamic resource requirements, {error}"))?;
//!     merged.add_all(&allocation.requirements, vocabulary);
//!     // … topology, then the instance-type filter …
//!     let mut remaining = filter(&claim.options, &merged)?;
//!     remaining.retain(|it| allocation.types.contains(it)); // both are in option order: merge them where it is hot
//!     if remaining.is_empty() {
//!         return Err("no instance type satisfies both scheduling and dynamic resource requirements".to_owned());
//!     }
//!     // … reserved offerings …
//!     Ok((remaining, allocation))
//! }
//!
//! /// When the pod is added: devices of types that were filtered out are free again. Types that a later pod without
//! /// claims filters out keep their devices, as upstream has it.
//! fn add(allocation: Allocation, remaining: &[TypeId], allocator: &mut Allocator, vocabulary: &Vocabulary) {
//!     allocator.commit(allocation, remaining, vocabulary);
//! }
//! ```
//!
//! A node, after everything else of a volume alternative held: what the devices ask is *not* merged. The type is the
//! one its labels name among those its NodePool offers in this run, or [`TypeId::UNLISTED`].
//!
//! ```
//! # use devices::*;
//! # use model::{requirement::Requirements, vocabulary::Vocabulary};
//! # struct Node { at: u32, name: String, stored: Requirements, offered: Option<TypeId>, is_initialized: bool }
//! fn can_take(
//!     node: &Node, claims: &[ClaimId], allocator: &mut Allocator, vocabulary: &Vocabulary,
//! ) -> Result<(), DraError> {
//!     let types = [node.offered.unwrap_or(TypeId::UNLISTED)];
//!     let host = Host {
//!         id: HostId::Node(node.at),
//!         node_name: Some(&node.name), // None while only the NodeClaim exists
//!         requirements: &node.stored,
//!         types: &types,
//!         has_templates: !node.is_initialized,
//!     };
//!     let allocation = allocator.allocate(&host, claims, vocabulary)?;
//!     // … and when the pod is added:
//!     allocator.commit(allocation, &types, vocabulary);
//!     Ok(())
//! }
//! ```
//!
//! At the end [`Allocator::requested_drivers`] is the annotation of each NodeClaim, and [`Allocator::allocations`] says
//! which devices each claim got, by the type its node may become.
//!
//! # Where it differs from upstream
//!
//! - Pools are searched in the order of driver and name; upstream's order is random.
//! - A search ends after a counted number of steps instead of five seconds; both end the run.
//! - A claim that several moving pods share is allocated anew once. Upstream allocates it for each of them and panics.
//! - Whether a device matches is asked of the device. Upstream remembers the answer by name from type to type;
//!   [`Allocator::matching_by_name`] does so too, for comparisons.
//! - Expressions are not type-checked; the API server has done that when it let the claim in.

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
