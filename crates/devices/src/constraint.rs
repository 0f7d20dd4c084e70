//! What must the devices of a claim have in common?
//!
//! The first device pins the value. A device without the attribute may still do when its provider promised that it
//! will share the value with another; a constraint that was pinned one way refuses devices of the other way.

use model::object::{DeviceAttribute, Text};

use crate::{
    binding::Bindings,
    claim::RequestName,
    device::{Identity, Offer},
    id::KindId,
};

/// An attribute that must have the same value on all devices of some requests.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MatchAttribute {
    pub(crate) attribute: Text,
    /// `request` or `request/alternative`; all of the claim when empty.
    pub(crate) requests: Vec<Text>,
}

impl MatchAttribute {
    /// A constraint that names a request is about all its alternatives.
    pub(crate) fn applies_to(&self, request: &RequestName) -> bool {
        self.requests.is_empty()
            || self
                .requests
                .iter()
                .any(|name| **name == *request.parent || **name == *request.to_string())
    }
}

/// What the devices so far have made of a [`MatchAttribute`].
#[derive(Debug, Default)]
pub(crate) struct Pin<'a> {
    /// The value, unless it is known only by a promise.
    value: Option<&'a DeviceAttribute>,
    devices: Vec<Identity>,
}

impl<'a> Pin<'a> {
    /// Takes another device, unless that breaks the constraint.
    pub(crate) fn add(
        &mut self,
        constraint: &MatchAttribute,
        offer: &'a Offer,
        bindings: &Bindings,
        kind: KindId,
    ) -> bool {
        let value = offer.attribute(&constraint.attribute);
        let fits = match (self.devices.first(), self.value, value) {
            (None, _, Some(_)) => true,
            (None, _, None) => bindings.has(kind, &constraint.attribute, offer.identity),
            (Some(_), Some(pinned), Some(value)) => is_equal(pinned, value),
            (Some(first), None, None) => bindings.binds(kind, &constraint.attribute, *first, offer.identity),
            (Some(_), ..) => false,
        };
        if fits {
            self.value = value;
            self.devices.push(offer.identity);
        }
        fits
    }

    /// Gives the last device back.
    pub(crate) fn remove(&mut self) {
        self.devices.pop();
        if self.devices.is_empty() {
            self.value = None;
        }
    }
}

/// Values of different kinds differ, and values that are lists are never equal.
fn is_equal(one: &DeviceAttribute, other: &DeviceAttribute) -> bool {
    if let (Some(one), Some(other)) = (&one.string, &other.string) {
        return one == other;
    }
    if let (Some(one), Some(other)) = (one.int, other.int) {
        return one == other;
    }
    if let (Some(one), Some(other)) = (one.bool, other.bool) {
        return one == other;
    }
    matches!((&one.version, &other.version), (Some(one), Some(other)) if one == other)
}
