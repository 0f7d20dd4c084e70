//! Which conditions changed between two versions of an object, which finalizers went, and what is said about it.

use api::{
    aws::EC2NodeClass,
    azure::AKSNodeClass,
    condition::{
        ConditionTypes,
        names::{nodeclaim, nodepool},
    },
    node_class::NodeClass as _,
};
use jiff::Timestamp;
use model::object::{
    BriefCondition, CapacityBuffer, Condition, ConditionStatus, List, Metadata, Node, NodeClaim, NodeClass, NodePool,
    Object, Text,
};
use runtime::{Event, EventKind, Settings, event::Reference};
use state::Transition;

use super::status::{Set, StatusFamilies};

/// A kind whose conditions are followed.
pub(super) trait Conditioned: Send + Sync + 'static {
    /// Whether upstream's deprecated families show it too.
    const IS_DEPRECATED_FORM_SHOWN: bool;

    /// Its families.
    fn set(families: &StatusFamilies) -> &Set;

    /// Who it is.
    fn about(&self) -> &Metadata;

    /// Group and version, and kind.
    fn type_of(&self) -> (&str, &str);

    /// Conditions that count as Unknown since the object's creation while they are missing.
    fn typed(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Whether it is followed under these settings.
    fn is_shown(_settings: &Settings) -> bool {
        true
    }

    /// Its conditions.
    fn seen(&self) -> Vec<Seen>;
}

/// A condition as it was seen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    pub(super) kind: Text,
    pub(super) status: ConditionStatus,
    pub(super) reason: Text,
    message: Text,
    pub(super) since: Option<Timestamp>,
}

impl From<&Condition> for Seen {
    fn from(condition: &Condition) -> Self {
        Self {
            kind: condition.kind.clone(),
            status: condition.status,
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: condition.last_transition_time,
        }
    }
}

/// A node's conditions are kept without their messages.
impl From<&BriefCondition> for Seen {
    fn from(condition: &BriefCondition) -> Self {
        Self {
            kind: condition.kind.clone(),
            status: condition.status,
            reason: condition.reason.clone(),
            message: Text::default(),
            since: condition.last_transition_time,
        }
    }
}

fn all<'a, C>(conditions: &'a List<C>) -> Vec<Seen>
where
    Seen: From<&'a C>,
{
    conditions.iter().map(Seen::from).collect()
}

/// What a kind of Kubernetes or of core says about itself.
macro_rules! is_object {
    ($families:ident) => {
        fn set(families: &StatusFamilies) -> &Set {
            &families.$families
        }

        fn about(&self) -> &Metadata {
            self.metadata()
        }

        fn type_of(&self) -> (&str, &str) {
            (Self::API_VERSION, Self::KIND)
        }
    };
}

impl Conditioned for NodeClaim {
    const IS_DEPRECATED_FORM_SHOWN: bool = true;

    is_object!(node_claims);

    fn typed(&self) -> Vec<&'static str> {
        nodeclaim::TYPES.all().collect()
    }

    fn seen(&self) -> Vec<Seen> {
        all(&self.status.conditions)
    }
}

impl Conditioned for NodePool {
    const IS_DEPRECATED_FORM_SHOWN: bool = true;

    is_object!(node_pools);

    fn typed(&self) -> Vec<&'static str> {
        nodepool::TYPES.all().collect()
    }

    fn seen(&self) -> Vec<Seen> {
        all(&self.status.conditions)
    }
}

impl Conditioned for Node {
    const IS_DEPRECATED_FORM_SHOWN: bool = false;

    is_object!(nodes);

    fn seen(&self) -> Vec<Seen> {
        all(&self.status.conditions)
    }
}

impl Conditioned for CapacityBuffer {
    const IS_DEPRECATED_FORM_SHOWN: bool = true;

    is_object!(capacity_buffers);

    fn is_shown(settings: &Settings) -> bool {
        settings.decisions.feature_gates.capacity_buffer
    }

    fn seen(&self) -> Vec<Seen> {
        all(&self.status.conditions)
    }
}

/// A node class says itself of which provider it is.
impl Conditioned for NodeClass {
    const IS_DEPRECATED_FORM_SHOWN: bool = true;

    fn set(families: &StatusFamilies) -> &Set {
        &families.node_classes
    }

    fn about(&self) -> &Metadata {
        &self.metadata
    }

    fn type_of(&self) -> (&str, &str) {
        (&self.api_version, &self.kind)
    }

    fn typed(&self) -> Vec<&'static str> {
        let types = match &*self.kind {
            EC2NodeClass::KIND => api::aws::condition::TYPES,
            AKSNodeClass::KIND => api::azure::condition::TYPES,
            _ => ConditionTypes::ready(&[]),
        };
        types.all().collect()
    }

    fn seen(&self) -> Vec<Seen> {
        all(&self.status.conditions)
    }
}

/// A condition that came to another status.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shift {
    /// What it was before; none when it was not there.
    pub(super) from: Option<Seen>,
    pub(super) to: Seen,
}

impl Shift {
    /// How long the condition had the status it left; none when it is not known.
    pub(super) fn seconds(&self) -> Option<f64> {
        let from = self.from.as_ref()?.since?;
        Some(self.to.since?.duration_since(from).as_secs_f64())
    }

    fn text(&self) -> Option<String> {
        let from = status_name(self.from.as_ref()?.status);
        let (to, reason, kind) = (status_name(self.to.status), &self.to.reason, &self.to.kind);
        let mut text = format!("Status condition transitioned, Type: {kind}, Status: {from} -> {to}, Reason: {reason}");
        if !self.to.message.is_empty() {
            text = format!("{text}, Message: {}", self.to.message);
        }
        Some(text)
    }
}

/// As the API writes it.
pub(super) fn status_name(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    }
}

/// What is new about an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct News {
    pub(super) shifts: Vec<Shift>,
    finalized: Vec<Text>,
    /// How long the object took to go, if it has just gone.
    pub(super) terminated_after: Option<f64>,
}

impl News {
    /// The events that tell it, never taken for repetitions.
    pub(super) fn events<T: Conditioned>(&self, object: &T) -> Vec<Event> {
        let say = |reason: &str, message| Event::about(reference(object), EventKind::Normal, reason, message);
        let shifted = self
            .shifts
            .iter()
            .filter_map(|shift| Some(say(&shift.to.kind, shift.text()?)));
        let finalized = self
            .finalized
            .iter()
            .map(|finalizer| say("Finalized", format!("Finalized {finalizer}")));
        finalized.chain(shifted).collect()
    }
}

fn reference<T: Conditioned>(object: &T) -> Reference {
    let ((api_version, kind), metadata) = (object.type_of(), object.about());
    Reference {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
    }
}

/// What a change of an object brings.
pub(super) fn of<T: Conditioned>(change: &Transition<T>, now: Timestamp) -> News {
    let before = change.before.as_deref();
    let Some(after) = change.after.as_deref() else {
        return gone(before, now);
    };
    let (known, seen) = (before.map(conditions), conditions(after));
    let shifts = seen.into_iter().filter_map(|to| {
        let from = known.iter().flatten().find(|known| known.kind == to.kind).cloned();
        let was = from.as_ref().map_or(ConditionStatus::Unknown, |from| from.status);
        (was != to.status).then_some(Shift { from, to })
    });
    let finalizers = before.map_or_else(List::default, |before| before.about().finalizers.clone());
    let kept = &after.about().finalizers;
    News {
        shifts: shifts.collect(),
        finalized: finalizers.iter().filter(|old| !kept.contains(old)).cloned().collect(),
        terminated_after: None,
    }
}

fn gone<T: Conditioned>(last: Option<&T>, now: Timestamp) -> News {
    let Some(metadata) = last.map(Conditioned::about) else {
        return News::default();
    };
    let since = metadata.deletion_timestamp;
    News {
        shifts: Vec::new(),
        finalized: metadata.finalizers.to_vec(),
        terminated_after: since.map(|since| now.duration_since(since).as_secs_f64()),
    }
}

/// An object's conditions, those that are missing but expected as Unknown since its creation.
fn conditions<T: Conditioned>(object: &T) -> Vec<Seen> {
    let mut seen = object.seen();
    for kind in object.typed() {
        if seen.iter().all(|known| *known.kind != *kind) {
            seen.push(Seen {
                kind: kind.into(),
                status: ConditionStatus::Unknown,
                reason: Text::default(),
                message: Text::default(),
                since: object.about().creation_timestamp,
            });
        }
    }
    seen
}
