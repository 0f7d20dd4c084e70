//! One look at a node class: what its selectors find now, and the conditions that follow.
//!
//! Every step runs even if another fails, and the status is written once, at the end, if it changed.

use std::time::Duration;

use api::{
    aws::{EC2NodeClass, EC2NodeClassStatus, Subnet, condition},
    condition::{ConditionSet, ConditionTypes, Subject},
    finalizers::EC2NODECLASS_TERMINATION,
};
use serde_json::{Map, Value, json};

use super::{Controller, capacity::asked_again_after, images::ImagesError};
use crate::objects::name_of;

const MINUTE: Duration = Duration::from_mins(1);

/// What a step says about when to look again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// When something changes.
    Settled,
    /// After a while.
    After(Duration),
    /// Soon: something is not there yet that will be.
    Soon,
    /// It failed; soon, and later each time.
    Failed(String),
    /// It failed and will until somebody changes something.
    Hopeless(String),
}

/// What came of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// When to look again.
    pub(crate) after: Option<Duration>,
    /// Whether to look again soon, and later each time.
    pub(crate) is_to_be_retried: bool,
    /// What went wrong.
    pub(crate) errors: Vec<String>,
}

impl Outcome {
    pub(crate) fn of(steps: Vec<Step>) -> Self {
        let mut outcome = Self {
            after: None,
            is_to_be_retried: false,
            errors: Vec::new(),
        };
        for step in steps {
            match step {
                Step::Settled => {}
                Step::After(time) => outcome.after = Some(outcome.after.map_or(time, |known| known.min(time))),
                Step::Soon => outcome.is_to_be_retried = true,
                Step::Failed(error) => {
                    outcome.is_to_be_retried = true;
                    outcome.errors.push(error);
                }
                Step::Hopeless(error) => outcome.errors.push(error),
            }
        }
        outcome
    }
}

impl Controller {
    /// Looks at a class and writes what is to be seen.
    pub(crate) async fn look(&self, stored: &EC2NodeClass) -> Outcome {
        if stored.metadata.deletion_timestamp.is_some() {
            return Outcome::of(vec![self.finalize(stored).await]);
        }
        let mut class = match self.with_finalizer(stored).await {
            Ok(Some(class)) => class,
            Ok(None) => return Outcome::of(Vec::new()),
            Err(step) => return Outcome::of(vec![step]),
        };
        let before = class.status.clone();
        class.status.get_or_insert_default();
        let mut steps = vec![self.images(&mut class).await];
        if self.has_reserved_capacity() {
            steps.push(self.reservations(&mut class).await);
        }
        steps.push(self.placement_group(&mut class).await);
        steps.push(self.subnets(&mut class).await);
        steps.push(self.security_groups(&mut class).await);
        steps.push(self.instance_profile(&mut class).await);
        steps.push(self.validate(&mut class).await);
        if before != class.status {
            steps.push(self.write_status(&class, before.as_ref()).await);
        }
        Outcome::of(steps)
    }

    fn has_reserved_capacity(&self) -> bool {
        self.read.settings.decisions.feature_gates.reserved_capacity
    }

    fn types(&self) -> ConditionTypes {
        if self.has_reserved_capacity() {
            condition::TYPES
        } else {
            condition::TYPES_WITHOUT_RESERVED_CAPACITY
        }
    }

    /// Changes conditions of a class.
    pub(crate) fn set(&self, class: &mut EC2NodeClass, change: impl FnOnce(&mut ConditionSet<'_>)) {
        let subject = Subject::new(&class.metadata, self.read.clock.now());
        let status = class.status.get_or_insert_default();
        change(&mut self.types().open(&mut status.conditions, subject));
    }

    /// The class with our finalizer, written first, so that nothing is made for it that would be left behind.
    async fn with_finalizer(&self, stored: &EC2NodeClass) -> Result<Option<EC2NodeClass>, Step> {
        let mut finalizers = stored.metadata.finalizers.clone().unwrap_or_default();
        if finalizers.iter().any(|it| it == EC2NODECLASS_TERMINATION) {
            return Ok(Some(stored.clone()));
        }
        finalizers.push(EC2NODECLASS_TERMINATION.to_owned());
        let patch = json!({"metadata": {
            "finalizers": finalizers,
            "resourceVersion": stored.metadata.resource_version,
        }});
        match self.read.objects.patch(&name_of(stored), "", &patch).await {
            Ok(class) => Ok(class),
            Err(error) if error.is_conflict() => Err(Step::Soon),
            Err(error) => Err(Step::Failed(format!("adding the finalizer, {error}"))),
        }
    }

    async fn write_status(&self, class: &EC2NodeClass, before: Option<&EC2NodeClassStatus>) -> Step {
        let patch = json!({
            "metadata": {"resourceVersion": class.metadata.resource_version},
            "status": difference(before, class.status.as_ref()),
        });
        match self.read.objects.patch(&name_of(class), "/status", &patch).await {
            Ok(_) => Step::Settled,
            Err(error) if error.is_conflict() => Step::Soon,
            Err(error) => Step::Failed(format!("writing the status, {error}")),
        }
    }

    async fn images(&self, class: &mut EC2NodeClass) -> Step {
        let version = self.read.cluster.facts().version.clone();
        let kind = condition::AMIS_READY;
        match self.read.images.list(class, &version).await {
            Err(error @ ImagesError::UnsupportedAlias(_)) => {
                self.set(class, |set| {
                    set.set_false(kind, "UnsupportedAlias", &error.to_string());
                });
                Step::Hopeless(format!("getting amis, {error}"))
            }
            Err(error) => Step::Failed(format!("getting amis, {error}")),
            Ok(images) if images.is_empty() => {
                class.status.get_or_insert_default().amis = Vec::new();
                self.set(class, |set| {
                    set.set_false(kind, "AMINotFound", "AMISelector did not match any AMIs");
                });
                Step::After(MINUTE)
            }
            Ok(images) => {
                class.status.get_or_insert_default().amis = images;
                self.set(class, |set| {
                    set.set_true(kind);
                });
                Step::After(5 * MINUTE)
            }
        }
    }

    async fn reservations(&self, class: &mut EC2NodeClass) -> Step {
        let terms = class
            .spec
            .capacity_reservation_selector_terms
            .clone()
            .unwrap_or_default();
        let offers = &self.read.offers;
        let found = self
            .read
            .capacity
            .reservations(&terms, |id, left| offers.read_reservation(id, left))
            .await;
        match found {
            Err(failure) => Step::Failed(format!("getting capacity reservations, {failure}")),
            Ok(found) => {
                let after = asked_again_after(&found, self.read.clock.now());
                class.status.get_or_insert_default().capacity_reservations = found;
                self.set(class, |set| {
                    set.set_true(condition::CAPACITY_RESERVATIONS_READY);
                });
                Step::After(after)
            }
        }
    }

    async fn placement_group(&self, class: &mut EC2NodeClass) -> Step {
        let kind = condition::PLACEMENT_GROUP_READY;
        let selector = class.spec.placement_group_selector.clone();
        let wanted = selector
            .as_ref()
            .and_then(|it| it.name.clone().or_else(|| it.id.clone()));
        match self.read.capacity.placement_group(class).await {
            Err(failure) => {
                self.set(class, |set| {
                    set.set_false(
                        kind,
                        "PlacementGroupResolutionFailed",
                        "Failed to resolve placement group",
                    );
                });
                Step::Failed(format!("resolving placement group, {failure}"))
            }
            Ok(None) if selector.is_some() => {
                let wanted = wanted.unwrap_or_default();
                self.set(class, |set| {
                    let message = format!("Placement group {wanted:?} not found");
                    set.set_false(kind, "PlacementGroupNotFound", &message);
                });
                Step::Settled
            }
            Ok(_) => {
                self.set(class, |set| {
                    set.set_true(kind);
                });
                Step::Settled
            }
        }
    }

    async fn subnets(&self, class: &mut EC2NodeClass) -> Step {
        let found = match self.read.networks.subnets(&class.spec.subnet_selector_terms).await {
            Ok(found) => found,
            Err(failure) => return Step::Failed(format!("getting subnets, {failure}")),
        };
        let is_found = !found.is_empty();
        let subnets = found.into_iter().map(|it| Subnet {
            id: it.id,
            zone: it.zone,
            zone_id: Some(it.zone_id).filter(|id| !id.is_empty()),
        });
        class.status.get_or_insert_default().subnets = subnets.collect();
        self.set(class, |set| {
            if is_found {
                set.set_true(condition::SUBNETS_READY);
            } else {
                set.set_false(
                    condition::SUBNETS_READY,
                    "SubnetsNotFound",
                    "SubnetSelector did not match any Subnets",
                );
            }
        });
        Step::After(MINUTE)
    }

    async fn security_groups(&self, class: &mut EC2NodeClass) -> Step {
        let found = match self
            .read
            .networks
            .groups(&class.spec.security_group_selector_terms)
            .await
        {
            Ok(found) => found,
            Err(failure) => return Step::Failed(format!("getting security groups, {failure}")),
        };
        let is_found = !found.is_empty();
        class.status.get_or_insert_default().security_groups = found;
        self.set(class, |set| {
            if is_found {
                set.set_true(condition::SECURITY_GROUPS_READY);
            } else {
                set.set_false(
                    condition::SECURITY_GROUPS_READY,
                    "SecurityGroupsNotFound",
                    "SecurityGroupSelector did not match any SecurityGroups",
                );
            }
        });
        Step::After(if is_found { 5 * MINUTE } else { MINUTE })
    }

    async fn instance_profile(&self, class: &mut EC2NodeClass) -> Step {
        match self.read.profiles.resolve(class).await {
            Err(error) => Step::Failed(error.to_string()),
            Ok(profile) => {
                class.status.get_or_insert_default().instance_profile = Some(profile).filter(|it| !it.is_empty());
                self.set(class, |set| {
                    set.set_true(condition::INSTANCE_PROFILE_READY);
                });
                Step::Settled
            }
        }
    }
}

/// What a merge patch must say to make one status of another: what is gone is null.
fn difference(before: Option<&EC2NodeClassStatus>, after: Option<&EC2NodeClassStatus>) -> Value {
    let fields = |status: Option<&EC2NodeClassStatus>| match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let (before, after) = (fields(before), fields(after));
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let mut patch: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
    patch.extend(after.into_iter().filter(|(key, value)| before.get(key) != Some(value)));
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_names_what_changed_and_takes_away_what_is_gone() {
        let status = |profile: Option<&str>, subnets: &[&str]| EC2NodeClassStatus {
            instance_profile: profile.map(str::to_owned),
            subnets: subnets
                .iter()
                .map(|id| Subnet {
                    id: (*id).to_owned(),
                    ..Subnet::default()
                })
                .collect(),
            ..EC2NodeClassStatus::default()
        };
        let (before, after) = (status(Some("old"), &["subnet-1"]), status(Some("new"), &[]));
        let patch = difference(Some(&before), Some(&after));
        assert_eq!(patch, json!({"instanceProfile": "new", "subnets": null}));
    }

    #[test]
    fn the_next_look_is_the_earliest_that_a_step_asks_for() {
        let steps = vec![Step::Settled, Step::After(5 * MINUTE), Step::After(MINUTE)];
        assert_eq!(Outcome::of(steps).after, Some(MINUTE));
        assert!(!Outcome::of(vec![Step::Hopeless("no".to_owned())]).is_to_be_retried);
        assert!(Outcome::of(vec![Step::Failed("no".to_owned())]).is_to_be_retried);
    }
}
