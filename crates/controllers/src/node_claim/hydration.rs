//! Claims of older versions get the label that names their node class.

use api::labels;
use async_trait::async_trait;
use model::object::{NodeClaim, ObjectKey, Text};
use runtime::{Settings, queue::Backoff};
use state::{Change, State};

use super::{Managed, changed_claim, with_pair};
use crate::{Cluster, Controller, Next, Problem, patch::Lock};

/// `nodeclaim.hydration`
pub struct Hydration {
    managed: Managed,
}

impl Hydration {
    /// For the claims that are ours.
    pub fn new(managed: Managed) -> Self {
        Self { managed }
    }
}

/// The claim with the label of its node class.
fn hydrated(claim: &NodeClaim) -> NodeClaim {
    let mut after = claim.clone();
    if let Some(class) = &claim.spec.node_class_ref {
        let key = labels::node_class_key(&class.group, &class.kind);
        after.metadata.labels = with_pair(&claim.metadata.labels, &key, &class.name);
    }
    after
}

#[async_trait]
impl Controller for Hydration {
    type Key = Text;

    fn name(&self) -> &'static str {
        "nodeclaim.hydration"
    }

    fn workers(&self, settings: &Settings) -> usize {
        settings.workers(1000, 5000)
    }

    fn backoff(&self) -> Backoff {
        super::reasonable()
    }

    fn concerns(&self, change: &Change, _: &State) -> Vec<Text> {
        changed_claim(change, self.managed)
    }

    async fn reconcile(&self, cluster: &Cluster, name: &Text) -> Result<Next, Problem> {
        let Some(claim) = cluster.get::<NodeClaim>(&ObjectKey::cluster_scoped(name)) else {
            return Ok(Next::Change);
        };
        match cluster.update(&*claim, &hydrated(&claim), Lock::None).await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(Next::Change),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_names_its_node_class_in_a_label() {
        let claim: NodeClaim = serde_json::from_value(json!({
            "metadata": {"name": "a", "labels": {"team": "web"}},
            "spec": {"nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}},
        }))
        .unwrap();
        let after = hydrated(&claim);
        let expected = json!({"team": "web", "karpenter.kwok.sh/kwoknodeclass": "default"});
        assert_eq!(serde_json::to_value(&after).unwrap()["metadata"]["labels"], expected);
        assert_eq!(hydrated(&after), after);
    }
}
