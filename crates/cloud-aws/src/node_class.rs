//! EC2NodeClasses: what their selectors find, and whether nodes can be launched from them.

pub(crate) mod capacity;
mod filters;
mod image_choice;
pub(crate) mod images;
pub(crate) mod instance_profiles;
pub(crate) mod networks;
mod parameters;
mod status;
mod validation;

use std::{sync::Arc, time::Duration};

use api::{aws::EC2NodeClass, condition::ConditionTypes, node_class::NodeClass};
use async_trait::async_trait;
use keeper::{Keeper, Objects, Step};
use runtime::{Clock, Recorder, remembered::Remembered};

pub(crate) use image_choice::images_of_types;
use validation::Verdict;

use crate::{border::Machines, reads::ReadSide};

/// Looks after node classes: `nodeclass` and `nodeclass.hash` of upstream.
pub struct Controller {
    pub(crate) read: Arc<ReadSide>,
    pub(crate) machines: Arc<dyn Machines>,
    verdicts: Remembered<Verdict>,
}

impl Controller {
    /// Over both sides.
    pub fn new(read: Arc<ReadSide>, machines: Arc<dyn Machines>) -> Self {
        Self {
            verdicts: Remembered::new(read.clock.clone()),
            read,
            machines,
        }
    }

    /// Looks at a class once, and says when to look again; none: when it changes.
    pub async fn reconcile(&self, class: &EC2NodeClass) -> Result<Option<Duration>, String> {
        keeper::reconcile(self, class).await
    }

    /// Follows all classes until dropped.
    pub async fn run(self: Arc<Self>) {
        keeper::run(self).await;
    }
}

#[async_trait]
impl Keeper for Controller {
    type Class = EC2NodeClass;

    fn objects(&self) -> &Objects<EC2NodeClass> {
        &self.read.objects
    }

    fn clock(&self) -> &Clock {
        &self.read.clock
    }

    fn recorder(&self) -> &Recorder {
        &self.read.recorder
    }

    fn condition_types(&self) -> ConditionTypes {
        self.types()
    }

    fn hash(&self, class: &EC2NodeClass) -> String {
        class.hash(self.read.cluster.facts().ca_bundle.as_deref())
    }

    async fn resolve(&self, class: &mut EC2NodeClass) -> Vec<Step> {
        self.look_up(class).await
    }

    async fn clear_away(&self, class: &EC2NodeClass) -> Result<(), String> {
        if !self.read.settings.aws.isolated_vpc {
            let deleted = self.read.profiles.delete_of(class).await;
            deleted.map_err(|error| error.to_string())?;
        }
        let deleted = self.machines.delete_launch_templates(class.name()).await;
        deleted.map_err(|error| format!("deleting launch templates, {error}"))
    }

    fn forget(&self, class: &EC2NodeClass) {
        let prefix = format!("{}:", class.name());
        self.verdicts.forget(|asked| asked.starts_with(&prefix));
    }

    fn report(&self, class: &EC2NodeClass, error: &str) {
        tracing::error!(
            controller = "nodeclass",
            EC2NodeClass.name = class.name(),
            error,
            "Reconciler error"
        );
    }
}
