//! What an event changed: the object before and after.

use std::sync::Arc;

use model::object::{NodeClass, Object};

use crate::state::tracked_kinds;

/// One object before and after an event. Never both absent.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition<T> {
    /// As it was; none when it is new.
    pub before: Option<Arc<T>>,
    /// As it is; none when it is gone.
    pub after: Option<Arc<T>>,
}

impl<T> Transition<T> {
    /// The object as it was last seen.
    pub fn latest(&self) -> Option<&Arc<T>> {
        self.after.as_ref().or(self.before.as_ref())
    }

    /// True when the object was not known before.
    pub fn is_new(&self) -> bool {
        self.before.is_none()
    }

    /// True when the object is gone.
    pub fn is_gone(&self) -> bool {
        self.after.is_none()
    }
}

impl<T: Object> Transition<T> {
    /// True when the object that was is no more: it is gone, or another one has taken its name.
    pub fn ends_before(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => before.metadata().uid != after.metadata().uid,
            (before, _) => before.is_some(),
        }
    }

    /// True when the object is new, gone, or its spec changed.
    pub fn changes_generation(&self) -> bool {
        let generation = |object: &Option<Arc<T>>| object.as_ref().map(|object| object.metadata().generation);
        generation(&self.before) != generation(&self.after)
    }
}

/// Somebody for whom all kinds are alike.
pub trait Visitor {
    /// What comes of it.
    type Answer;

    /// Sees a change of an object.
    fn object<T: Object>(self, change: &Transition<T>) -> Self::Answer;

    /// Sees a change of a node class.
    fn node_class(self, change: &Transition<NodeClass>) -> Self::Answer;
}

macro_rules! changes {
    ($($(#[$doc:meta])* $field:ident: $kind:ident,)*) => {
        /// What an event changed.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Change {
            $($(#[$doc])* $kind(Transition<model::object::$kind>),)*
            /// A node class of any provider.
            NodeClass(Transition<NodeClass>),
        }

        impl Change {
            /// Shows the change to somebody for whom all kinds are alike.
            pub fn show<V: Visitor>(&self, visitor: V) -> V::Answer {
                match self {
                    $(Self::$kind(transition) => visitor.object(transition),)*
                    Self::NodeClass(transition) => visitor.node_class(transition),
                }
            }
        }
    };
}
tracked_kinds!(changes);
