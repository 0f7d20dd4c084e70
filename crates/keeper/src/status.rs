//! One look at a node class: what it resolves to now, and the conditions that follow.
//!
//! The status is written once, at the end, if it changed.

use api::{
    condition::{ConditionSet, Subject},
    node_class::{ClassStatus, NodeClass},
};
use kube::{Resource, core::object::HasStatus};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{Keeper, Step};

/// Looks at a class and writes what is to be seen.
pub(crate) async fn look<K: Keeper>(keeper: &K, stored: &K::Class) -> Vec<Step> {
    let mut class = match with_finalizer(keeper, stored).await {
        Ok(Some(class)) => class,
        Ok(None) => return Vec::new(),
        Err(step) => return vec![step],
    };
    let before = class.status().cloned();
    class.status_mut().get_or_insert_default();
    let mut steps = keeper.resolve(&mut class).await;
    if before.as_ref() != class.status() {
        steps.push(write(keeper, &class, before.as_ref()).await);
    }
    steps
}

/// Changes conditions of a class.
pub fn set<K: Keeper>(keeper: &K, class: &mut K::Class, change: impl FnOnce(&mut ConditionSet<'_>)) {
    let subject = Subject::new(class.meta(), keeper.clock().now());
    let status = class.status_mut().get_or_insert_default();
    change(&mut keeper.condition_types().open(status.conditions_mut(), subject));
}

/// The class with our finalizer, written first, so that nothing is made for it that would be left behind, and it cannot
/// go while claims use it.
async fn with_finalizer<K: Keeper>(keeper: &K, stored: &K::Class) -> Result<Option<K::Class>, Step> {
    let mut finalizers = stored.meta().finalizers.clone().unwrap_or_default();
    if finalizers.iter().any(|it| it == K::Class::FINALIZER) {
        return Ok(Some(stored.clone()));
    }
    finalizers.push(K::Class::FINALIZER.to_owned());
    let patch = json!({"metadata": {
        "finalizers": finalizers,
        "resourceVersion": stored.meta().resource_version,
    }});
    match keeper.objects().patch(stored.name(), "", &patch).await {
        Ok(class) => Ok(class),
        Err(error) if error.is_conflict() => Err(Step::Soon),
        Err(error) => Err(Step::Failed(format!("adding the finalizer, {error}"))),
    }
}

async fn write<K: Keeper>(keeper: &K, class: &K::Class, before: Option<&impl Serialize>) -> Step {
    let patch = json!({
        "metadata": {"resourceVersion": class.meta().resource_version},
        "status": difference(before, class.status()),
    });
    match keeper.objects().patch(class.name(), "/status", &patch).await {
        Ok(_) => Step::Settled,
        Err(error) if error.is_conflict() => Step::Soon,
        Err(error) => Step::Failed(format!("writing the status, {error}")),
    }
}

/// What a merge patch must say to make one status of another: what is gone is null.
fn difference(before: Option<&impl Serialize>, after: Option<&impl Serialize>) -> Value {
    let (before, after) = (fields(before), fields(after));
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let mut patch: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
    patch.extend(after.into_iter().filter(|(key, value)| before.get(key) != Some(value)));
    Value::Object(patch)
}

fn fields(status: Option<&impl Serialize>) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use api::{
        aws::{EC2NodeClassStatus, Subnet},
        azure::{AKSNodeClassStatus, LocalDnsState},
    };

    use super::*;

    #[test]
    fn a_patch_names_what_changed_and_takes_away_what_is_gone() {
        let status = |profile: &str, subnets: &[&str]| EC2NodeClassStatus {
            instance_profile: Some(profile.to_owned()),
            subnets: subnets
                .iter()
                .map(|id| Subnet {
                    id: (*id).to_owned(),
                    ..Subnet::default()
                })
                .collect(),
            ..EC2NodeClassStatus::default()
        };
        let patch = difference(Some(&status("old", &["subnet-1"])), Some(&status("new", &[])));
        assert_eq!(patch, json!({"instanceProfile": "new", "subnets": null}));
    }

    #[test]
    fn a_patch_takes_away_a_single_value_that_is_gone() {
        let before = AKSNodeClassStatus {
            kubernetes_version: Some("1.33.0".to_owned()),
            local_dns_state: Some(LocalDnsState::Disabled),
            ..AKSNodeClassStatus::default()
        };
        let after = AKSNodeClassStatus {
            kubernetes_version: Some("1.34.0".to_owned()),
            ..AKSNodeClassStatus::default()
        };
        let patch = difference(Some(&before), Some(&after));
        assert_eq!(patch, json!({"kubernetesVersion": "1.34.0", "localDNSState": null}));
    }
}
