//! Events people read with `kubectl describe`: upstream's source, reasons and messages, said once.

mod correlate;
mod recent;
mod recorder;
mod sink;

use std::time::Duration;

use ledger::Id;
use model::object::{Object, ResourceVersion, Text, Uid};

pub use recorder::Recorder;
pub use sink::record;

/// Whether an event is good news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// All is well.
    Normal,
    /// Something needs a look.
    Warning,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Group and version.
    pub api_version: Text,
    /// Kind.
    pub kind: Text,
    /// Empty for cluster-scoped kinds.
    pub namespace: Text,
    /// Name.
    pub name: Text,
    /// Identity.
    pub uid: Uid,
    /// As of when.
    pub resource_version: ResourceVersion,
}

impl EventKind {
    fn text(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl Reference {
    /// A reference to an object.
    pub fn to<T: Object>(object: &T) -> Self {
        let metadata = object.metadata();
        Self {
            api_version: T::API_VERSION.into(),
            kind: T::KIND.into(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
        }
    }
}

/// A budget of events per second that all events of a sort share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bucket {
    /// `Nominated`.
    Nominated,
    /// `InsufficientCapacityError` on pods.
    InsufficientCapacity,
}

/// Who says what controllers say.
const COMPONENT: &str = "karpenter";

/// Something that happened to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// To what.
    pub object: Reference,
    /// Good or bad.
    pub kind: EventKind,
    /// In one word.
    pub reason: Text,
    /// In a sentence.
    pub message: String,
    /// Said again with equal values within `quiet`, it is not repeated. Empty: always said.
    pub dedupe: Vec<String>,
    /// How long it is not repeated.
    pub quiet: Duration,
    /// The budget it draws on.
    pub bucket: Option<Bucket>,
    /// Who says it.
    pub component: Text,
    /// The decision it tells of; written as an annotation, so that the message stays upstream's.
    pub decision: Option<Id>,
}

impl Event {
    /// An event that is not repeated within two minutes for the same object.
    pub fn new<T: Object>(object: &T, kind: EventKind, reason: &str, message: String) -> Self {
        Self::about(Reference::to(object), kind, reason, message).deduped_by(vec![object.metadata().uid.to_string()])
    }

    /// An event about anything that can be named. It is said each time.
    pub fn about(object: Reference, kind: EventKind, reason: &str, message: String) -> Self {
        Self {
            object,
            kind,
            reason: reason.into(),
            message,
            dedupe: Vec::new(),
            quiet: Duration::from_mins(2),
            bucket: None,
            component: COMPONENT.into(),
            decision: None,
        }
    }

    /// Told of a decision, if there is one.
    #[must_use]
    pub fn decided(mut self, decision: impl Into<Option<Id>>) -> Self {
        self.decision = decision.into();
        self
    }

    /// Said by somebody else than the controllers.
    #[must_use]
    pub fn said_by(mut self, component: &str) -> Self {
        self.component = component.into();
        self
    }

    /// With other values to tell repetitions by.
    #[must_use]
    pub fn deduped_by(mut self, values: Vec<String>) -> Self {
        self.dedupe = values;
        self
    }

    /// Not repeated for this long.
    #[must_use]
    pub fn quiet_for(mut self, quiet: Duration) -> Self {
        self.quiet = quiet;
        self
    }

    /// Drawing on a shared budget.
    #[must_use]
    pub fn within(mut self, bucket: Bucket) -> Self {
        self.bucket = Some(bucket);
        self
    }
}
