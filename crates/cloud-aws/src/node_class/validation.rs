//! Would EC2 let us launch from a node class? Asked by dry runs, and believed for half an hour.

use std::{sync::Arc, time::Duration};

use api::{
    aws::{Ami, AmiFamily, EC2NodeClass, condition, is_restricted_tag},
    condition::set::{is_false, is_true},
    labels::aws,
    node_class::NodeClass,
};
use keeper::Step;
use model::{
    object::{NodePool, NodeSelectorRequirement},
    requirement::{RequirementSpec, Requirements},
    snapshot::CatalogType,
    vocabulary::Vocabulary,
};

use super::{Controller, image_choice::images_of_types, networks::question};
use crate::{
    Failure,
    border::{Reads, Rehearsal, RehearsalFailure},
    offers::is_compatible,
};

/// How often a class is looked at again.
const AGAIN: Duration = Duration::from_mins(10);
/// How long the outcome of dry runs is believed.
pub(crate) const BELIEVED: Duration = Duration::from_mins(30);

const KIND: &str = condition::VALIDATION_SUCCEEDED;

/// What must be there before anything can be tried.
const REQUIRED: [&str; 4] = [
    condition::AMIS_READY,
    condition::INSTANCE_PROFILE_READY,
    condition::SECURITY_GROUPS_READY,
    condition::SUBNETS_READY,
];

const AWAITING: &str = "Awaiting AMI, Instance Profile, Security Group, and Subnet resolution";

/// Why a class was found wanting; none: it was not.
pub(crate) type Verdict = Option<(&'static str, String)>;

impl Controller {
    pub(super) async fn validate(&self, class: &mut EC2NodeClass) -> Step {
        if class.ami_family() == AmiFamily::AL2023
            && let Err(failure) = self.read.cluster.resolve_cidr().await
        {
            if failure.is_server_fault() {
                return Step::Soon;
            }
            self.refuse(
                class,
                "ClusterCIDRResolutionFailed",
                "Failed to detect the cluster CIDR",
            );
            return Step::Failed(format!("failed to detect the cluster CIDR, {failure}"));
        }
        if let Some(step) = self.await_dependencies(class) {
            return step;
        }
        let restricted = restricted_tags(class);
        if !restricted.is_empty() {
            let message = format!("tags failed validation requirements (tags={restricted})");
            self.refuse(class, "TagValidationFailed", &message);
            return Step::Hopeless(format!("validating tags, {message}"));
        }
        let asked = asked(class);
        let verdict = match self.verdicts.get(&asked) {
            Some(known) => known,
            None if self.read.settings.aws.disable_dry_run => None,
            None => match self.rehearse(class).await {
                Ok(verdict) => {
                    // Only what was tried just now: a verdict that each look renewed would outlive its cause.
                    self.verdicts.put(&asked, verdict.clone(), BELIEVED);
                    verdict
                }
                Err(step) => return step,
            },
        };
        match verdict {
            None => self.set(class, |set| {
                set.set_true(KIND);
            }),
            Some((reason, message)) => self.refuse(class, reason, &message),
        }
        Step::After(AGAIN)
    }

    fn refuse(&self, class: &mut EC2NodeClass, reason: &str, message: &str) {
        self.set(class, |set| {
            set.set_false(KIND, reason, message);
        });
    }

    fn await_dependencies(&self, class: &mut EC2NodeClass) -> Option<Step> {
        let conditions = class.status.clone().unwrap_or_default().conditions;
        if REQUIRED.iter().any(|kind| is_false(&conditions, kind)) {
            self.refuse(class, "DependenciesNotReady", AWAITING);
            return Some(Step::After(AGAIN));
        }
        if REQUIRED.iter().any(|kind| !is_true(&conditions, kind)) {
            self.set(class, |set| {
                set.set_unknown_with_reason(KIND, "DependenciesNotReady", AWAITING);
            });
            return Some(Step::After(AGAIN));
        }
        None
    }

    /// Tries a launch without launching.
    async fn rehearse(&self, class: &EC2NodeClass) -> Result<Verdict, Step> {
        let pools = self.read.objects.pools_of(class.name()).await;
        let pools = pools.map_err(|error| Step::Failed(format!("listing nodepools for nodeclass, {error}")))?;
        let types = self.read.instance_types(class).await;
        let types = types.map_err(|error| {
            Step::Failed(format!(
                "generating options, listing instance types for nodeclass, {error}"
            ))
        })?;
        let group = self.read.capacity.last_placement_group(class).await;
        let usable: Vec<Arc<CatalogType>> = types
            .into_iter()
            .filter(|it| {
                let facts = self.read.offers.facts(it.name.as_str());
                facts.is_some_and(|facts| is_compatible(&facts, class, group.as_ref()))
            })
            .collect();
        let images = class.status.as_ref().map(|it| it.amis.clone()).unwrap_or_default();
        let candidates = candidates(&usable, &pools, class);
        let Some((image, instance_type)) = choose(&candidates, &images) else {
            return Err(Step::Failed("no compatible launch templates created".to_owned()));
        };
        let rehearsal = Rehearsal {
            class,
            instance_type: &instance_type,
            image: &image,
            tenancy: tenancy(&pools),
        };
        match self.machines.rehearse(&rehearsal).await {
            Ok(()) => Ok(None),
            Err(failure) => judge(failure),
        }
    }
}

/// What a refusal says about the class: that it is wanting, that it is to be tried again, or that we do not know.
fn judge(failure: RehearsalFailure) -> Result<Verdict, Step> {
    let (reason, text, action, failure) = match failure {
        RehearsalFailure::Unprepared(reason) => return Err(Step::Failed(reason)),
        RehearsalFailure::CreateLaunchTemplate(failure) if failure.message.contains("User data is limited to") => {
            let text = "ec2:CreateLaunchTemplate rejected the rendered user data as too large";
            return Ok(Some((
                "UserDataSizeLimitExceeded",
                format!("{text}: {}", failure.reason().1),
            )));
        }
        RehearsalFailure::CreateLaunchTemplate(failure) => (
            "CreateLaunchTemplateAuthCheckFailed",
            "Controller isn't authorized to call ec2:CreateLaunchTemplate",
            "ec2:CreateLaunchTemplate",
            failure,
        ),
        RehearsalFailure::CreateFleet(failure) => (
            "CreateFleetAuthCheckFailed",
            "Controller isn't authorized to call ec2:CreateFleet",
            "ec2:CreateFleet",
            failure,
        ),
        RehearsalFailure::RunInstances(failure) => (
            "RunInstancesAuthCheckFailed",
            "Controller isn't authorized to call ec2:RunInstances",
            "ec2:RunInstances",
            failure,
        ),
    };
    if failure.is_throttled() || failure.is_server_fault() || is_profile_missing(&failure) {
        return Err(Step::Soon);
    }
    if failure.is_unauthorized() {
        tracing::error!(error = %failure, "unauthorized to call {action}");
        return Ok(Some((reason, format!("{text}: {}", failure.reason().1))));
    }
    Err(Step::Failed(format!("validating {action} authorization, {failure}")))
}

/// IAM knows the profile, EC2 does not yet.
fn is_profile_missing(failure: &Failure) -> bool {
    failure.code == "InvalidParameterValue" && failure.message.contains("Invalid IAM Instance Profile name")
}

fn restricted_tags(class: &EC2NodeClass) -> String {
    let tags = class.spec.tags.iter().flatten();
    let restricted: Vec<String> = tags
        .filter(|(key, _)| is_restricted_tag(key))
        .map(|(key, _)| format!("{key:?}"))
        .collect();
    restricted.join(", ")
}

/// Everything the outcome follows from, in one text that begins with the class's name.
fn asked(class: &EC2NodeClass) -> String {
    let status = class.status.clone().unwrap_or_default();
    let about = question(&(
        &status.subnets,
        &status.security_groups,
        &status.amis,
        &status.instance_profile,
        &class.spec,
        &class.metadata.annotations,
    ));
    format!("{}:{:016x}", class.name(), api::hash::string(&about))
}

/// The types that a pool of the class could launch; where there are none, and for Windows, two that every account has.
fn candidates(types: &[Arc<CatalogType>], pools: &[NodePool], class: &EC2NodeClass) -> Vec<Arc<CatalogType>> {
    let is_windows = matches!(
        class.ami_family(),
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025
    );
    let mut vocabulary = vocabulary();
    let wanted: Vec<Requirements> = pools.iter().map(|pool| requirements(pool, &mut vocabulary)).collect();
    let mut of_pools: Vec<Arc<CatalogType>> = Vec::new();
    for entry in types {
        let has = Requirements::from_specs(&entry.requirements, &mut vocabulary);
        if wanted.iter().any(|wanted| has.intersects(wanted, &vocabulary)) {
            of_pools.push(Arc::clone(entry));
        }
    }
    if !of_pools.is_empty() && !is_windows {
        return of_pools;
    }
    let is_usual = |entry: &&Arc<CatalogType>| ["m5.large", "m6g.large"].contains(&entry.name.as_str());
    let usual: Vec<Arc<CatalogType>> = types.iter().filter(is_usual).cloned().collect();
    if usual.is_empty() { types.to_vec() } else { usual }
}

fn vocabulary() -> Vocabulary {
    let mut vocabulary = Vocabulary::new();
    for key in aws::WELL_KNOWN {
        vocabulary.add_well_known(key);
    }
    vocabulary
}

fn requirements(pool: &NodePool, vocabulary: &mut Vocabulary) -> Requirements {
    let mut all = Requirements::from_specs(&specs(pool), vocabulary);
    let labels = pool.spec.template.metadata.labels.iter();
    let labels = Requirements::from_labels(labels.map(|(key, value)| (&**key, &**value)), vocabulary);
    all.add_all(&labels, vocabulary);
    all
}

/// A pool's requirements. Those with an operator that we do not know ask for nothing here.
fn specs(pool: &NodePool) -> Vec<RequirementSpec> {
    let spec = |it: &NodeSelectorRequirement| {
        let values: Vec<&str> = it.values.iter().map(|value| &**value).collect();
        Some(RequirementSpec::new(&it.key, it.operator.parse().ok()?, &values))
    };
    pool.spec.template.spec.requirements.iter().filter_map(spec).collect()
}

/// A type and the image it boots from. Images for accelerators come last: their snapshots may be larger than the disks
/// of the class.
fn choose(types: &[Arc<CatalogType>], images: &[Ami]) -> Option<(Ami, Arc<CatalogType>)> {
    let chosen = images_of_types(images, types);
    let find = |is_wanted: fn(&Ami) -> bool| {
        let mut wanted = images.iter().filter(|image| is_wanted(image));
        wanted.find_map(|image| Some((image.clone(), first(chosen.get(image.id.as_str())?)?)))
    };
    find(is_standard).or_else(|| find(|_| true))
}

/// One that can be had now, if there is one.
fn first(types: &[&Arc<CatalogType>]) -> Option<Arc<CatalogType>> {
    let is_offered = |entry: &&&Arc<CatalogType>| entry.offerings.iter().any(|it| it.available);
    let first = types.iter().find(is_offered).or_else(|| types.first());
    first.map(|it| Arc::clone(it))
}

fn is_standard(image: &Ami) -> bool {
    let asks_for_one = |key: &str, operator: &str| {
        [aws::INSTANCE_GPU_COUNT, aws::INSTANCE_ACCELERATOR_COUNT].contains(&key) && operator != "DoesNotExist"
    };
    !image
        .requirements
        .iter()
        .any(|it| asks_for_one(&it.key, it.operator.as_str()))
}

/// Dedicated if any pool allows it.
fn tenancy(pools: &[NodePool]) -> &'static str {
    let is_dedicated = |pool: &NodePool| {
        let mut vocabulary = vocabulary();
        let all = Requirements::from_specs(&specs(pool), &mut vocabulary);
        let key = vocabulary.key(aws::INSTANCE_TENANCY);
        let tenancy = key.and_then(|key| all.get(key));
        tenancy.is_some_and(|it| it.has("dedicated", &vocabulary))
    };
    if pools.iter().any(is_dedicated) {
        "dedicated"
    } else {
        "default"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: &str, message: &str, status: u16) -> Failure {
        Failure {
            code: code.to_owned(),
            message: message.to_owned(),
            status: Some(status),
        }
    }

    #[test]
    fn only_a_missing_permission_becomes_a_condition() {
        let denied = failure("UnauthorizedOperation", "You are not authorized", 403);
        let because = "User is not authorized to perform this operation because no identity-based policy allows it";
        let verdict = |reason, action| {
            Ok(Some((
                reason,
                format!("Controller isn't authorized to call ec2:{action}: {because}"),
            )))
        };
        assert_eq!(
            judge(RehearsalFailure::CreateFleet(denied.clone())),
            verdict("CreateFleetAuthCheckFailed", "CreateFleet")
        );
        assert_eq!(
            judge(RehearsalFailure::RunInstances(denied.clone())),
            verdict("RunInstancesAuthCheckFailed", "RunInstances")
        );
        assert_eq!(
            judge(RehearsalFailure::CreateLaunchTemplate(denied)),
            verdict("CreateLaunchTemplateAuthCheckFailed", "CreateLaunchTemplate")
        );
    }

    #[test]
    fn a_request_that_came_too_often_or_too_early_is_made_again() {
        let cases = [
            failure("RequestLimitExceeded", "Request limit exceeded.", 503),
            failure("InternalError", "An internal error has occurred", 500),
            failure(
                "InvalidParameterValue",
                "Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
                400,
            ),
        ];
        for failure in cases {
            assert_eq!(judge(RehearsalFailure::RunInstances(failure)), Err(Step::Soon));
        }
    }

    #[test]
    fn any_other_refusal_is_an_error_and_no_verdict() {
        let other = failure(
            "InvalidSubnetID.NotFound",
            "The subnet ID 'subnet-1' does not exist",
            400,
        );
        let expected = "validating ec2:RunInstances authorization, api error InvalidSubnetID.NotFound: The subnet ID 'subnet-1' does not exist";
        assert_eq!(
            judge(RehearsalFailure::RunInstances(other)),
            Err(Step::Failed(expected.to_owned()))
        );
    }

    #[test]
    fn user_data_that_is_too_large_says_so() {
        let large = failure("InvalidUserData.Malformed", "User data is limited to 16384 bytes", 400);
        let expected = "ec2:CreateLaunchTemplate rejected the rendered user data as too large: Rendered user data exceeds the EC2 user data size limit";
        assert_eq!(
            judge(RehearsalFailure::CreateLaunchTemplate(large)),
            Ok(Some(("UserDataSizeLimitExceeded", expected.to_owned())))
        );
    }
}
