//! The instance profiles made for node classes that name a role.
//!
//! A class gets a new profile whenever its role changes: machines that run keep theirs. What no class and no claim uses
//! any more is collected later, never within an hour of its last use.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::{aws::EC2NodeClass, hash, labels::REGION, labels::aws::NODE_CLASS};
use aws_sdk_iam::types::{InstanceProfile, Tag};
use runtime::{Clock, random::Random, remembered::Remembered};

use crate::{Clients, Failure};

/// How long a profile is believed to be as it was.
const BELIEVED: Duration = Duration::from_mins(15);
/// How long a role that does not exist is believed not to.
const ROLE_MISSING: Duration = Duration::from_mins(1);
/// How long a profile that was made is used again, should its name not have reached the class.
const RECENT: Duration = Duration::from_mins(1);
/// How long a profile is not collected after it was in use.
const PROTECTED: Duration = Duration::from_hours(1);
/// IAM's longest name.
const LONGEST: usize = 128;

/// Why a class has no profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{doing}, {failure}")]
pub(crate) struct ProfileError {
    doing: String,
    failure: Failure,
}

fn while_doing(doing: impl Into<String>) -> impl FnOnce(Failure) -> ProfileError {
    let doing = doing.into();
    move |failure| ProfileError { doing, failure }
}

/// Makes and removes instance profiles.
pub(crate) struct InstanceProfiles {
    iam: aws_sdk_iam::Client,
    region: String,
    cluster: String,
    random: Random,
    /// The role of each profile, empty for none.
    roles: Remembered<String>,
    missing_roles: Remembered<ProfileError>,
    recent: Remembered<String>,
    protected: Remembered<()>,
}

impl InstanceProfiles {
    pub(crate) fn new(clients: &Clients, clock: &Clock, cluster: &str, random: Random) -> Self {
        Self {
            iam: clients.iam.clone(),
            region: clients.region.clone(),
            cluster: cluster.to_owned(),
            random,
            roles: Remembered::new(clock.clone()),
            missing_roles: Remembered::new(clock.clone()),
            recent: Remembered::new(clock.clone()),
            protected: Remembered::new(clock.clone()),
        }
    }

    /// The profile of a class: the one it names, or one that carries the role it names.
    pub(crate) async fn resolve(&self, class: &EC2NodeClass) -> Result<String, ProfileError> {
        let status = class.status.as_ref().and_then(|it| it.instance_profile.clone());
        let before = status.unwrap_or_default();
        let Some(role) = class.spec.role.as_ref().filter(|role| !role.is_empty()) else {
            self.protect(&before);
            return Ok(class.spec.instance_profile.clone().unwrap_or_default());
        };
        let uid = class.metadata.uid.clone().unwrap_or_default();
        let recent = format!("{role}/{uid}");
        let current = self.recent.get(&recent).unwrap_or_else(|| before.clone());
        if !current.is_empty() && self.has_role(&current, role).await? {
            if current != before {
                self.protect(&before);
            }
            return Ok(current);
        }
        let name = self.name(class);
        if let Err(error) = self.create(&name, role, class).await {
            // Half a profile helps nobody; what cannot be removed now is collected later.
            let _ = self.delete(&name).await;
            return Err(ProfileError {
                doing: format!("creating instance profile, {}", error.doing),
                ..error
            });
        }
        self.recent.put(&recent, name.clone(), RECENT);
        self.protect(&name);
        self.protect(&before);
        Ok(name)
    }

    async fn has_role(&self, profile: &str, role: &str) -> Result<bool, ProfileError> {
        match self.role_of(profile).await {
            // IAM names roles without their path, and a class may write it: the same role must not get another profile.
            Ok(found) => Ok(found.is_some_and(|found| bare(&found) == bare(role))),
            Err(failure) if failure.is_not_found() => Ok(false),
            Err(failure) => Err(while_doing(format!("getting instance profile {profile}"))(failure)),
        }
    }

    async fn role_of(&self, profile: &str) -> Result<Option<String>, Failure> {
        let some = |role: String| (!role.is_empty()).then_some(role);
        if let Some(role) = self.roles.get(profile) {
            return Ok(some(role));
        }
        let role = role_name(self.get(profile).await?.as_ref());
        self.roles.put(profile, role.clone(), BELIEVED);
        Ok(some(role))
    }

    async fn get(&self, profile: &str) -> Result<Option<InstanceProfile>, Failure> {
        let answer = self
            .iam
            .get_instance_profile()
            .instance_profile_name(profile)
            .send()
            .await;
        let answer = answer.map_err(|error| Failure::of(&error))?;
        Ok(answer.instance_profile)
    }

    async fn create(&self, name: &str, role: &str, class: &EC2NodeClass) -> Result<(), ProfileError> {
        if let Some(error) = self.missing_roles.get(role) {
            return Err(ProfileError {
                doing: format!("role not found, {}", error.doing),
                ..error
            });
        }
        let tags = tags(class, &self.cluster, &self.region);
        let made = self
            .iam
            .create_instance_profile()
            .instance_profile_name(name)
            .path(self.path(Some(class)))
            .set_tags(Some(tags))
            .send()
            .await;
        made.map_err(|error| while_doing(format!("(instance-profile={name})"))(Failure::of(&error)))?;
        let last = bare(role);
        let added = self
            .iam
            .add_role_to_instance_profile()
            .instance_profile_name(name)
            .role_name(last)
            .send()
            .await;
        if let Err(error) = added {
            let failure = Failure::of(&error);
            let is_role = failure.code == "NoSuchEntity" && failure.message.to_lowercase().contains("role");
            let doing = "ensuring role attached, adding role to instance profile";
            let error = while_doing(format!("{doing} (role={last}, instance-profile={name})"))(failure);
            if is_role {
                self.missing_roles.put(role, error.clone(), ROLE_MISSING);
            }
            return Err(error);
        }
        self.roles.put(name, role.to_owned(), BELIEVED);
        Ok(())
    }

    /// Removes a profile and its role; fine when there is none.
    pub(crate) async fn delete(&self, name: &str) -> Result<(), ProfileError> {
        let profile = match self.get(name).await {
            Ok(profile) => profile,
            Err(failure) if failure.is_not_found() => return Ok(()),
            Err(failure) => {
                return Err(while_doing(format!(
                    "getting instance profile (instance-profile={name})"
                ))(failure));
            }
        };
        let role = role_name(profile.as_ref());
        if !role.is_empty() {
            let removed = self
                .iam
                .remove_role_from_instance_profile()
                .instance_profile_name(name)
                .role_name(&role)
                .send()
                .await;
            let doing = format!("removing role from instance profile (role={role}, instance-profile={name})");
            unless_missing(removed.map_err(|error| Failure::of(&error)), doing)?;
        }
        let deleted = self
            .iam
            .delete_instance_profile()
            .instance_profile_name(name)
            .send()
            .await;
        let doing = format!("deleting instance profile (instance-profile={name})");
        unless_missing(deleted.map_err(|error| Failure::of(&error)), doing)?;
        self.roles.forget(|it| it == name);
        self.protected.forget(|it| it == name);
        Ok(())
    }

    /// Removes what was made for a class that goes.
    pub(crate) async fn delete_of(&self, class: &EC2NodeClass) -> Result<(), ProfileError> {
        for name in self.under(&self.path(Some(class))).await? {
            self.delete(&name).await?;
        }
        let legacy = self.legacy_name(class);
        if is_valid_name(&legacy) {
            self.delete(&legacy).await?;
        }
        Ok(())
    }

    /// Removes profiles of this cluster that neither a class nor a claim uses, and that were not used lately.
    pub(crate) async fn collect(&self, used: &BTreeSet<String>) -> Result<(), ProfileError> {
        for name in self.under(&self.path(None)).await? {
            if !used.contains(&name) && self.protected.get(&name).is_none() {
                self.delete(&name).await?;
                tracing::debug!("instance-profile" = name, "deleted instance profile");
            }
        }
        Ok(())
    }

    /// The profiles below a path, which we look at ourselves: what is deleted here must be ours.
    async fn under(&self, path: &str) -> Result<Vec<String>, ProfileError> {
        let mut pages = self
            .iam
            .list_instance_profiles()
            .path_prefix(path)
            .into_paginator()
            .send();
        let mut names = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| while_doing("listing instance profiles")(Failure::of(&error)))?;
            let ours = page.instance_profiles().iter().filter(|it| it.path().starts_with(path));
            names.extend(ours.map(|it| it.instance_profile_name().to_owned()));
        }
        Ok(names)
    }

    fn protect(&self, name: &str) {
        if !name.is_empty() {
            self.protected.put(name, (), PROTECTED);
        }
    }

    fn path(&self, class: Option<&EC2NodeClass>) -> String {
        let uid = class.and_then(|it| it.metadata.uid.as_deref());
        match uid {
            Some(uid) => format!("/karpenter/{}/{}/{uid}/", self.region, self.cluster),
            None => format!("/karpenter/{}/{}/", self.region, self.cluster),
        }
    }

    /// A name that no other class has had: the next one must not get what this one leaves behind.
    fn name(&self, class: &EC2NodeClass) -> String {
        let name = class.metadata.name.as_deref().unwrap_or_default();
        let text = format!("{}{name}{}", self.region, self.random.uuid());
        format!("{}_{}", self.cluster, hash::string(&text))
    }

    /// As releases before v1.0 named it.
    fn legacy_name(&self, class: &EC2NodeClass) -> String {
        let name = class.metadata.name.as_deref().unwrap_or_default();
        format!("{}_{}", self.cluster, hash::string(&format!("{}{name}", self.region)))
    }
}

fn unless_missing<T>(answer: Result<T, Failure>, doing: String) -> Result<(), ProfileError> {
    match answer {
        Err(failure) if !failure.is_not_found() => Err(while_doing(doing)(failure)),
        _ => Ok(()),
    }
}

fn role_name(profile: Option<&InstanceProfile>) -> String {
    let role = profile.and_then(|it| it.roles().first());
    role.map(|it| it.role_name().to_owned()).unwrap_or_default()
}

/// A role without its path: how IAM names it, and how it is added.
fn bare(role: &str) -> &str {
    role.rsplit('/').next().unwrap_or(role)
}

fn is_valid_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_+=,.@-".contains(c);
    !name.is_empty() && name.len() <= LONGEST && name.chars().all(is_allowed)
}

/// The class's own tags, and ours, which win.
fn tags(class: &EC2NodeClass, cluster: &str, region: &str) -> Vec<Tag> {
    let mut tags: BTreeMap<String, String> = class.spec.tags.clone().unwrap_or_default();
    tags.insert(format!("kubernetes.io/cluster/{cluster}"), "owned".to_owned());
    tags.insert("eks:eks-cluster-name".to_owned(), cluster.to_owned());
    tags.insert(NODE_CLASS.to_owned(), class.metadata.name.clone().unwrap_or_default());
    tags.insert(REGION.to_owned(), region.to_owned());
    let tag = |(key, value)| Tag::builder().key(key).value(value).build().ok();
    tags.into_iter().filter_map(tag).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_iam_would_refuse_is_not_asked_for() {
        let long = "c".repeat(129);
        let cases = [
            ("cluster_123", true),
            ("", false),
            ("a b", false),
            (long.as_str(), false),
        ];
        for (name, expected) in cases {
            assert_eq!(is_valid_name(name), expected, "{name}");
        }
    }
}
