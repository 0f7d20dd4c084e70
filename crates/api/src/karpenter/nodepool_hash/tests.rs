//! `vectors.json` holds what `NodePool.Hash()` of sigs.k8s.io/karpenter v1.15.0 printed for each template, run with
//! `TZ=UTC` as in its container. The first vector is also the example in upstream's documentation of the annotation.

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Vector {
    name: String,
    hash: String,
    template: NodeClaimTemplate,
}

#[test]
fn hashes_equal_those_of_the_go_module() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let computed: Vec<_> = vectors
        .iter()
        .map(|v| (v.name.as_str(), v.template.hash().to_string()))
        .collect();
    let published: Vec<_> = vectors.iter().map(|v| (v.name.as_str(), v.hash.clone())).collect();
    assert_eq!(computed, published);
    assert_eq!(vectors.len(), 32);
}

#[test]
fn a_pool_hashes_its_template_and_nothing_else() {
    let pool: NodePool = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "default", "labels": {"team": "a"}},
        "spec": {
            "weight": 10,
            "limits": {"cpu": "100"},
            "disruption": {"consolidateAfter": "1h"},
            "template": {"spec": {
                "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            }},
        },
    }))
    .unwrap();
    assert_eq!(pool.hash(), "6821555240594823858");
}
