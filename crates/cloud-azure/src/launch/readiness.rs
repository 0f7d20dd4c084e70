//! May machines be launched from a node class now?

use api::{
    azure::AKSNodeClass,
    condition::{ConditionStatus, names::READY},
};
use cloud::CloudError;

/// Refuses a class that is going, not ready, or not judged.
pub(crate) fn check_ready(class: &AKSNodeClass) -> Result<(), CloudError> {
    let name = class.metadata.name.as_deref().unwrap_or_default();
    if class.metadata.deletion_timestamp.is_some() {
        return Err(missing_class(&format!(
            "aksnodeclasses.karpenter.azure.com \"{name}\" is terminating, treating as not found"
        )));
    }
    let conditions = class.status.iter().flat_map(|status| &status.conditions);
    let ready = conditions.into_iter().find(|condition| condition.type_ == READY);
    match ready.map(|it| (&it.status, &it.message)) {
        Some((ConditionStatus::True, _)) => Ok(()),
        Some((ConditionStatus::False, message)) => Err(CloudError::NodeClassNotReady(message.clone())),
        _ => Err(CloudError::Create {
            reason: "NodeClassReadinessUnknown".to_owned(),
            message: "NodeClass is in Ready=Unknown".to_owned(),
        }),
    }
}

/// A class that is not there will not come back for this claim: it is given up, as if there were no capacity.
pub(crate) fn missing_class(message: &str) -> CloudError {
    CloudError::InsufficientCapacity {
        message: format!("resolving node class, {message}"),
        offerings: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(ready: Option<&str>, is_deleting: bool) -> AKSNodeClass {
        let condition = |status: &str| {
            json!([{"type": "Ready", "status": status, "observedGeneration": 1, "reason": "R",
            "message": "why", "lastTransitionTime": "2026-11-17T10:00:00Z"}])
        };
        let mut whole = json!({
            "apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass",
            "metadata": {"name": "default", "generation": 1}, "spec": {},
            "status": {"conditions": ready.map_or(json!([]), condition)},
        });
        if is_deleting {
            whole["metadata"]["deletionTimestamp"] = json!("2026-11-17T10:00:00Z");
        }
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn only_a_class_that_is_ready_can_be_launched_from() {
        assert_eq!(check_ready(&class(Some("True"), false)), Ok(()));
        let refused = check_ready(&class(Some("False"), false));
        assert_eq!(refused, Err(CloudError::NodeClassNotReady("why".to_owned())));
        for ready in [None, Some("Unknown")] {
            let refused = check_ready(&class(ready, false));
            assert!(
                matches!(&refused, Err(CloudError::Create { reason, .. }) if reason == "NodeClassReadinessUnknown")
            );
        }
        let refused = check_ready(&class(Some("True"), true));
        assert!(matches!(refused, Err(CloudError::InsufficientCapacity { .. })));
    }
}
