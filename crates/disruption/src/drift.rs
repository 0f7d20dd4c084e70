//! Is a claim still what its pool asks for? What only the cloud knows, such as its image, is asked elsewhere.

use api::{
    annotations::{NODEPOOL_HASH, NODEPOOL_HASH_VERSION},
    condition::names::nodeclaim::{NODEPOOL_DRIFTED, REQUIREMENTS_DRIFTED},
};
use model::{
    object::{NodeClaim, NodePool, NodeSelectorRequirement},
    requirement::{Operator, RequirementSpec, Requirements, UndefinedLabels},
    vocabulary::Vocabulary,
};

/// How a claim differs from what its pool says now: the reason of the condition `Drifted`.
pub fn drift_from_pool(pool: &NodePool, claim: &NodeClaim) -> Option<&'static str> {
    let is_template = is_template_drifted(pool, claim).then_some(NODEPOOL_DRIFTED);
    is_template.or_else(|| are_requirements_drifted(pool, claim).then_some(REQUIREMENTS_DRIFTED))
}

/// Hashes of different versions say nothing about each other.
fn is_template_drifted(pool: &NodePool, claim: &NodeClaim) -> bool {
    let both = |key: &str| {
        Some((
            pool.metadata.annotations.get(key)?,
            claim.metadata.annotations.get(key)?,
        ))
    };
    let (Some(hashes), Some(versions)) = (both(NODEPOOL_HASH), both(NODEPOOL_HASH_VERSION)) else {
        return false;
    };
    versions.0 == versions.1 && hashes.0 != hashes.1
}

/// The claim's labels must be what the pool requires; one that is missing is not.
fn are_requirements_drifted(pool: &NodePool, claim: &NodeClaim) -> bool {
    let mut vocabulary = Vocabulary::new();
    let wanted = pool.spec.template.spec.requirements.iter();
    let specs: Vec<_> = wanted.filter_map(requirement_spec).collect();
    let wanted = Requirements::from_specs(&specs, &mut vocabulary);
    let labels = claim.metadata.labels.iter();
    let labels = Requirements::from_labels(labels.map(|(key, value)| (&**key, &**value)), &mut vocabulary);
    !labels.is_compatible(&wanted, UndefinedLabels::Denied, &vocabulary)
}

/// A requirement as decisions have it; none when its operator is unknown.
pub fn requirement_spec(requirement: &NodeSelectorRequirement) -> Option<RequirementSpec> {
    Some(RequirementSpec {
        key: requirement.key.to_string(),
        operator: requirement.operator.parse::<Operator>().ok()?,
        values: requirement.values.iter().map(ToString::to_string).collect(),
        min_values: requirement.min_values.and_then(|least| u32::try_from(least).ok()),
    })
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "a literal reads better without a reference"
)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pool(annotations: Value, requirements: Value) -> NodePool {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "annotations": annotations},
            "spec": {"template": {"spec": {"requirements": requirements}}},
        }))
        .unwrap()
    }

    fn claim(annotations: Value, labels: Value) -> NodeClaim {
        let metadata = json!({"name": "c", "annotations": annotations, "labels": labels});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    fn hashed(hash: &str, version: &str) -> Value {
        json!({"karpenter.sh/nodepool-hash": hash, "karpenter.sh/nodepool-hash-version": version})
    }

    #[test]
    fn hashes_of_the_same_version_that_differ_are_drift() {
        let cases = [
            (hashed("1", "v3"), hashed("1", "v3"), None),
            (hashed("1", "v3"), hashed("2", "v3"), Some("NodePoolDrifted")),
            (hashed("1", "v3"), hashed("2", "v2"), None),
            (hashed("1", "v3"), json!({}), None),
            (json!({}), hashed("1", "v3"), None),
        ];
        for (of_pool, of_claim, expected) in cases {
            let (pool, claim) = (pool(of_pool, json!([])), claim(of_claim, json!({})));
            assert_eq!(drift_from_pool(&pool, &claim), expected, "{pool:?} {claim:?}");
        }
    }

    #[test]
    fn labels_that_the_pool_no_longer_asks_for_are_drift() {
        let wants = |operator: &str, values: Value| json!([{"key": "k", "operator": operator, "values": values}]);
        let drifted = Some("RequirementsDrifted");
        let cases = [
            (wants("In", json!(["a", "b"])), json!({"k": "a"}), None),
            (wants("In", json!(["b"])), json!({"k": "a"}), drifted),
            (wants("In", json!(["b"])), json!({}), drifted),
            (wants("Exists", json!([])), json!({}), drifted),
            (wants("DoesNotExist", json!([])), json!({}), None),
            (wants("NotIn", json!(["a"])), json!({}), None),
            (wants("Gt", json!(["3"])), json!({"k": "4"}), None),
            (wants("Gt", json!(["3"])), json!({"k": "3"}), drifted),
        ];
        for (requirements, labels, expected) in cases {
            let found = drift_from_pool(
                &pool(json!({}), requirements.clone()),
                &claim(json!({}), labels.clone()),
            );
            assert_eq!(found, expected, "{requirements} {labels}");
        }
    }
}
