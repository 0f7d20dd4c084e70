//! How much of each resource: what objects carry, and what the engine computes with.
//!
//! [`ResourceList`] is the API's map (cpu, memory, pods, …), sparse and sorted. [`Resources`] is the same amounts as a
//! dense vector over a [`ResourceDictionary`], so that the engine adds and compares without looking names up.
//! Both follow upstream's resource arithmetic, in which "absent" and "zero" differ in exactly two places: subtracting
//! leaves resources alone that the left side does not name, and a minimum drops what one side does not name.

mod dense;
mod dictionary;
mod list;
mod name;

#[cfg(test)]
mod tests;

pub use dense::Resources;
pub use dictionary::{ResourceDictionary, ResourceId};
pub use list::ResourceList;
pub use name::ResourceName;
