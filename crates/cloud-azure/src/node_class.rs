//! AKSNodeClasses: what they resolve to, and whether nodes can be launched from them.

pub(crate) mod families;
mod image_choice;
pub(crate) mod images;
mod status;
mod surroundings;

use std::{sync::Arc, time::Duration};

use api::{
    azure::{AKSNodeClass, condition},
    condition::ConditionTypes,
    node_class::NodeClass,
};
use async_trait::async_trait;
use keeper::{Keeper, Objects, Step};
use runtime::{Clock, Recorder};

pub(crate) use image_choice::image_of_type;

use crate::reads::ReadSide;

/// Looks after node classes: `nodeclass.status`, `nodeclass.hash` and `nodeclass.termination` of upstream.
pub struct Controller {
    pub(crate) read: Arc<ReadSide>,
}

impl Controller {
    /// Over the read side.
    pub fn new(read: Arc<ReadSide>) -> Self {
        Self { read }
    }

    /// Looks at a class once, and says when to look again; none: when it changes.
    pub async fn reconcile(&self, class: &AKSNodeClass) -> Result<Option<Duration>, String> {
        keeper::reconcile(self, class).await
    }

    /// Follows all classes until dropped.
    pub async fn run(self: Arc<Self>) {
        keeper::run(self).await;
    }
}

#[async_trait]
impl Keeper for Controller {
    type Class = AKSNodeClass;

    fn objects(&self) -> &Objects<AKSNodeClass> {
        &self.read.objects
    }

    fn clock(&self) -> &Clock {
        &self.read.clock
    }

    fn recorder(&self) -> &Recorder {
        &self.read.recorder
    }

    fn condition_types(&self) -> ConditionTypes {
        condition::TYPES
    }

    fn hash(&self, class: &AKSNodeClass) -> String {
        class.hash()
    }

    async fn resolve(&self, class: &mut AKSNodeClass) -> Vec<Step> {
        self.look_up(class).await
    }

    fn report(&self, class: &AKSNodeClass, error: &str) {
        tracing::error!(
            controller = "nodeclass",
            AKSNodeClass.name = class.name(),
            error,
            "Reconciler error"
        );
    }
}
