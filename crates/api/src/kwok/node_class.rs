//! `KWOKNodeClass`: how simulated nodes are started.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{absent_spec::spec_may_be_absent, condition::Condition, duration::Duration};

/// What the simulated provider should do for nodes of this class.
#[derive(Clone, Debug, Default, PartialEq, Eq, CustomResource, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", remote = "Self")]
#[kube(
    group = "karpenter.kwok.sh",
    version = "v1alpha1",
    kind = "KWOKNodeClass",
    plural = "kwoknodeclasses",
    shortname = "kwoknc",
    shortname = "kwokncs",
    category = "karpenter",
    status = "KWOKNodeClassStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Settings for nodes simulated by kwok. Referenced from a NodePool's nodeClassRef."
)]
pub struct KWOKNodeClassSpec {
    /// How long a launched node waits before it joins the cluster. Models the boot time of a real instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^([0-9]+(s|m|h))+$"))]
    pub node_registration_delay: Option<Duration>,
}

spec_may_be_absent!(KWOKNodeClassSpec);

/// Always Ready: the schema fills it in, so no controller has to.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = {"conditions": [{
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "lastTransitionTime": "2024-01-01T01:01:01Z",
    "message": "",
}]}))]
pub struct KWOKNodeClassStatus {
    /// Observed aspects of the class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_class_without_a_spec_has_no_delay() {
        for spec in [json!({}), json!({"spec": null}), json!({"spec": {}})] {
            let mut object = json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}});
            object
                .as_object_mut()
                .unwrap()
                .extend(spec.as_object().unwrap().clone());
            let class: KWOKNodeClass = serde_json::from_value(object).unwrap();
            assert_eq!(class, KWOKNodeClass::new("default", KWOKNodeClassSpec::default()));
        }
    }

    #[test]
    fn a_delay_is_written_in_gos_form() {
        let spec: KWOKNodeClassSpec = serde_json::from_value(json!({"nodeRegistrationDelay": "90s"})).unwrap();
        assert_eq!(
            serde_json::to_value(spec).unwrap(),
            json!({"nodeRegistrationDelay": "1m30s"})
        );
    }
}
