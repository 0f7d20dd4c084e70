//! `vectors.json` holds what `RuntimeValidate` of sigs.k8s.io/karpenter v1.15.0, without any provider's tables,
//! returned for each object.

use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::{
    karpenter::{NodeOverlaySpec, NodePoolSpec},
    provider::Provider,
};

#[derive(Deserialize)]
struct Vector {
    name: String,
    pool: Option<NodePoolSpec>,
    overlay: Option<NodeOverlaySpec>,
    errors: Vec<String>,
}

impl Vector {
    fn computed(&self) -> Vec<String> {
        let rules = LabelRules::new(&[]);
        let pool = self
            .pool
            .as_ref()
            .map(|spec| NodePool::new("p", spec.clone()).runtime_validate(&rules));
        let overlay = self
            .overlay
            .as_ref()
            .map(|spec| NodeOverlay::new("o", spec.clone()).runtime_validate(&rules));
        let violations = pool.or(overlay).expect("a vector has a pool or an overlay").err();
        violations
            .iter()
            .flat_map(Violations::iter)
            .map(ToString::to_string)
            .collect()
    }
}

#[test]
fn violations_equal_those_of_the_go_module() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("vectors.json")).unwrap();
    for vector in &vectors {
        assert_eq!(vector.computed(), vector.errors, "{}", vector.name);
    }
    assert_eq!(vectors.len(), 80);
}

fn requirement(value: serde_json::Value) -> NodeSelectorRequirementWithMinValues {
    serde_json::from_value(value).unwrap()
}

fn faults(value: serde_json::Value, providers: &[Provider]) -> Vec<String> {
    requirement_faults(&requirement(value), &LabelRules::new(providers))
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn several_violations_read_as_one_message() {
    let spec = json!({
        "requirements": [{"key": "team", "operator": "NotIn"}],
        "capacity": {"cpu": "1"},
    });
    let overlay = NodeOverlay::new("o", serde_json::from_value(spec).unwrap());
    assert_eq!(
        overlay.runtime_validate(&LabelRules::new(&[])).unwrap_err().to_string(),
        "key team with operator NotIn must have a value defined; invalid capacity: cpu in resource, restricted"
    );
}

#[test]
fn an_operator_of_the_future_is_refused_by_name() {
    assert_eq!(
        faults(json!({"key": "team", "operator": "Like"}), &[]),
        ["key team has an unsupported operator Like not in [In NotIn Exists DoesNotExist Gt Lt Gte Lte]"]
    );
}

#[test]
fn fewer_known_values_than_min_values_is_refused() {
    let capacity =
        json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "cheap"], "minValues": 2});
    assert_eq!(
        faults(capacity, &[]),
        [
            "not enough valid values found in [spot cheap] for karpenter.sh/capacity-type, expected at least 2 valid values from: [on-demand reserved spot], got: 1"
        ]
    );
}

#[test]
fn a_provider_opens_its_own_keys_and_closes_its_domain() {
    let own = json!({"key": "karpenter.kwok.sh/instance-size", "operator": "In", "values": ["4x"]});
    let foreign = json!({"key": "karpenter.kwok.sh/colour", "operator": "Exists"});
    assert_eq!(faults(own.clone(), &[Provider::Kwok]), Vec::<String>::new());
    assert_eq!(faults(own, &[]), Vec::<String>::new());
    assert_eq!(faults(foreign.clone(), &[]), Vec::<String>::new());
    assert_eq!(
        faults(foreign, &[Provider::Kwok]),
        [
            "using label karpenter.kwok.sh/colour is not allowed as it might interfere with the internal provisioning logic; specify a well known label: [karpenter.kwok.sh/instance-cpu karpenter.kwok.sh/instance-family karpenter.kwok.sh/instance-memory karpenter.kwok.sh/instance-size karpenter.sh/capacity-type karpenter.sh/nodepool kubernetes.io/arch kubernetes.io/os node.kubernetes.io/instance-type node.kubernetes.io/windows-build topology.kubernetes.io/region topology.kubernetes.io/zone], or a custom label that does not use a restricted domain: [karpenter.kwok.sh karpenter.sh]"
        ]
    );
}

#[test]
fn an_overlay_may_not_state_what_the_provider_states() {
    let spec = json!({"requirements": [], "capacity": {"vpc.amazonaws.com/efa": "1", "example.com/fpga": "1"}});
    let overlay = NodeOverlay::new("o", serde_json::from_value(spec).unwrap());
    assert_eq!(overlay.runtime_validate(&LabelRules::new(&[])), Ok(()));
    assert_eq!(
        overlay
            .runtime_validate(&LabelRules::new(&[Provider::Aws]))
            .unwrap_err()
            .to_string(),
        "invalid capacity: vpc.amazonaws.com/efa in resource, restricted"
    );
}
