//! May machines be launched from a node class now?

use api::{
    aws::EC2NodeClass,
    condition::{ConditionStatus, names::READY},
};
use cloud::CloudError;

use super::tags;

/// Refuses a class that is going, not ready, or whose readiness was judged before it was changed.
pub(crate) fn check_ready(class: &EC2NodeClass) -> Result<(), CloudError> {
    let name = class.metadata.name.as_deref().unwrap_or_default();
    if class.metadata.deletion_timestamp.is_some() {
        return Err(missing(&format!(
            "ec2nodeclasses.karpenter.k8s.aws \"{name}\" is terminating, treating as not found"
        )));
    }
    let conditions = class.status.iter().flat_map(|status| &status.conditions);
    let ready = conditions.into_iter().find(|condition| condition.type_ == READY);
    match ready.map(|it| &it.status) {
        Some(ConditionStatus::True) => {}
        Some(ConditionStatus::False) => {
            let message = ready.map(|it| it.message.clone()).unwrap_or_default();
            return Err(CloudError::NodeClassNotReady(message));
        }
        _ => {
            return Err(CloudError::Create {
                reason: "NodeClassReadinessUnknown".to_owned(),
                message: "NodeClass is in Ready=Unknown".to_owned(),
            });
        }
    }
    let generation = class.metadata.generation.unwrap_or_default();
    let judged = ready.map(|it| it.observed_generation).unwrap_or_default();
    if judged != generation {
        let message = format!(
            "EC2NodeClass {name} has changed since its readiness was judged (generation {generation}, judged {judged})"
        );
        return Err(CloudError::NodeClassNotReady(message));
    }
    if let Some(key) = tags::restricted(class) {
        let message =
            format!("EC2NodeClass {name}: spec.tags has {key}, which the controller sets itself; take it out");
        return Err(CloudError::NodeClassNotReady(message));
    }
    Ok(())
}

/// A class that is not there will not come back for this claim: it is given up, as if there were no capacity.
pub(crate) fn missing(message: &str) -> CloudError {
    CloudError::InsufficientCapacity {
        message: format!("resolving nodeclass, {message}"),
        offerings: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "called with literals")]

    use serde_json::{Value, json};

    use super::*;

    fn class(metadata: Value, ready: Option<(&str, i64)>, tags: Value) -> EC2NodeClass {
        let condition = |(status, generation): (&str, i64)| {
            json!([{"type": "Ready", "status": status, "observedGeneration": generation, "reason": "R", "message": "why",
                "lastTransitionTime": "2026-11-17T10:00:00Z"}])
        };
        let mut whole = json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
            "metadata": {"name": "default", "generation": 3},
            "spec": {"subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [], "tags": tags},
            "status": {"conditions": ready.map_or(json!([]), condition)},
        });
        for (key, value) in metadata.as_object().unwrap() {
            whole["metadata"][key] = value.clone();
        }
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn only_a_class_that_is_ready_as_it_is_now_can_be_launched_from() {
        let judged = |ready| check_ready(&class(json!({}), ready, json!({})));
        assert_eq!(judged(Some(("True", 3))), Ok(()));
        assert_eq!(
            judged(Some(("False", 3))),
            Err(CloudError::NodeClassNotReady("why".to_owned()))
        );
        assert!(matches!(
            judged(Some(("True", 2))),
            Err(CloudError::NodeClassNotReady(_))
        ));
        for ready in [None, Some(("Unknown", 3))] {
            let refused = judged(ready);
            assert!(
                matches!(&refused, Err(CloudError::Create { reason, .. }) if reason == "NodeClassReadinessUnknown"),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn a_class_that_goes_is_as_good_as_gone() {
        let class = class(
            json!({"deletionTimestamp": "2026-11-17T10:00:00Z"}),
            Some(("True", 3)),
            json!({}),
        );
        assert!(matches!(
            check_ready(&class),
            Err(CloudError::InsufficientCapacity { .. })
        ));
    }

    #[test]
    fn a_tag_of_ours_among_the_classes_is_named() {
        let class = class(json!({}), Some(("True", 3)), json!({"karpenter.sh/nodeclaim": "x"}));
        let refused = check_ready(&class).unwrap_err().to_string();
        assert!(refused.contains("karpenter.sh/nodeclaim"), "{refused}");
    }
}
