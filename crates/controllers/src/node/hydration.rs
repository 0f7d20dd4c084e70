//! `node.hydration`: the label of the node class on nodes that older versions registered.
//!
//! Whether a node is ours is told by that label, so a node without it would never be drained.

use api::labels;
use async_trait::async_trait;
use cloud::NodeClassKind;
use model::object::{Labels, Node, NodeClaim, NodeName, ObjectKey};
use runtime::Settings;
use state::{Change, State};

use super::claim_of;
use crate::{Cluster, Controller, Next, Problem, patch::Lock};

/// The controller.
pub struct Hydration {
    kinds: &'static [NodeClassKind],
}

impl Hydration {
    /// For nodes of these classes.
    pub fn new(kinds: &'static [NodeClassKind]) -> Self {
        Self { kinds }
    }
}

#[async_trait]
impl Controller for Hydration {
    type Key = NodeName;

    fn name(&self) -> &'static str {
        "node.hydration"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(1000, 5000)
    }

    fn concerns(&self, change: &Change, state: &State) -> Vec<NodeName> {
        let lacking =
            |node: &Node| claim_of(state, node).is_some_and(|claim| hydrated(node, claim, self.kinds).is_some());
        match change {
            Change::Node(node) => node
                .after
                .iter()
                .filter(|node| lacking(node))
                .map(|node| node.name())
                .collect(),
            Change::NodeClaim(claim) => {
                let id = claim.after.as_ref().and_then(|claim| claim.status.provider_id.as_ref());
                let nodes = id.into_iter().flat_map(|id| state.nodes_of_provider_id(id.as_str()));
                nodes.filter(|node| lacking(node)).map(|node| node.name()).collect()
            }
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, name: &NodeName) -> Result<Next, Problem> {
        let key = ObjectKey::cluster_scoped(name.as_str());
        let seen = cluster.look(|state| {
            let node = state.get::<Node>(&key)?;
            let after = hydrated(node, claim_of(state, node)?, self.kinds)?;
            Some((node.clone(), after))
        });
        let Some((node, after)) = seen else {
            return Ok(Next::Change);
        };
        match cluster.update(&*node, &after, Lock::None).await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(Next::Change),
        }
    }
}

/// The node as it should be; none when it is so already, or is none of ours.
fn hydrated(node: &Node, claim: &NodeClaim, kinds: &[NodeClassKind]) -> Option<Node> {
    let class = claim.spec.node_class_ref.as_ref()?;
    let ours = |kind: &NodeClassKind| *kind.group == *class.group && *kind.kind == *class.kind;
    let label = labels::node_class_key(&class.group, &class.kind);
    if !kinds.iter().any(ours) || node.metadata.labels.get(&label) == Some(&class.name) {
        return None;
    }
    let mut after = node.clone();
    let mut labels = node.metadata.labels.to_vec();
    labels.push((label.into(), class.name.clone()));
    after.metadata.labels = Labels::from_pairs(labels);
    Some(after)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const KINDS: &[NodeClassKind] = &[NodeClassKind {
        group: "karpenter.kwok.sh",
        version: "v1alpha1",
        kind: "KWOKNodeClass",
    }];

    #[test]
    fn node_gets_the_label_of_its_claims_class_unless_it_has_it_or_is_not_ours() {
        let class = |group: &str| json!({"group": group, "kind": "KWOKNodeClass", "name": "default"});
        let labelled = json!({"a": "b", "karpenter.kwok.sh/kwoknodeclass": "default"});
        let other = json!({"a": "b", "karpenter.kwok.sh/kwoknodeclass": "other"});
        let cases = [
            (json!({"a": "b"}), class("karpenter.kwok.sh"), Some(&labelled)),
            (other, class("karpenter.kwok.sh"), Some(&labelled)),
            (labelled.clone(), class("karpenter.kwok.sh"), None),
            (json!({"a": "b"}), class("karpenter.k8s.aws"), None),
            (json!({"a": "b"}), Value::Null, None),
        ];
        for (labels, class, expected) in cases {
            let node: Node = serde_json::from_value(json!({"metadata": {"name": "n", "labels": labels}})).unwrap();
            let claim: NodeClaim =
                serde_json::from_value(json!({"metadata": {"name": "c"}, "spec": {"nodeClassRef": class}})).unwrap();
            let found = hydrated(&node, &claim, KINDS);
            let found = found.map(|node| serde_json::to_value(&node).unwrap()["metadata"]["labels"].clone());
            assert_eq!(found.as_ref(), expected, "{labels} {class}");
        }
    }
}
