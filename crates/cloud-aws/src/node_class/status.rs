//! One look at a node class: what its selectors find now, and the conditions that follow.

use std::time::Duration;

use api::{
    aws::{EC2NodeClass, Subnet, condition},
    condition::{ConditionSet, ConditionTypes},
};
use keeper::Step;

use super::{Controller, capacity::asked_again_after, images::ImagesError};

const MINUTE: Duration = Duration::from_mins(1);

impl Controller {
    /// Every step, whether or not another fails.
    pub(super) async fn look_up(&self, class: &mut EC2NodeClass) -> Vec<Step> {
        let mut steps = vec![self.images(class).await];
        if self.has_reserved_capacity() {
            steps.push(self.reservations(class).await);
        }
        steps.push(self.placement_group(class).await);
        steps.push(self.subnets(class).await);
        steps.push(self.security_groups(class).await);
        steps.push(self.instance_profile(class).await);
        steps.push(self.validate(class).await);
        steps
    }

    fn has_reserved_capacity(&self) -> bool {
        self.read.settings.decisions.feature_gates.reserved_capacity
    }

    pub(super) fn types(&self) -> ConditionTypes {
        if self.has_reserved_capacity() {
            condition::TYPES
        } else {
            condition::TYPES_WITHOUT_RESERVED_CAPACITY
        }
    }

    /// Changes conditions of a class.
    pub(crate) fn set(&self, class: &mut EC2NodeClass, change: impl FnOnce(&mut ConditionSet<'_>)) {
        keeper::set(self, class, change);
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
