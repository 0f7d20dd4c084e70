//! What do our EC2 resources say about whose they are?

use std::collections::BTreeMap;

use api::{aws::EC2NodeClass, labels};
use cloud::LaunchToken;
use model::object::NodeClaim;

/// The cluster, as EKS names it.
pub(crate) const CLUSTER_NAME: &str = "eks:eks-cluster-name";
/// The NodeClaim an instance is for.
pub(crate) const NODE_CLAIM: &str = "karpenter.sh/nodeclaim";
/// That claim's identity, since names are used again. Ours.
pub(crate) const NODE_CLAIM_UID: &str = "dovetail.dev/nodeclaim-uid";
/// The launch an instance came of: claim and attempt. Ours.
pub(crate) const LAUNCH: &str = "dovetail.dev/launch";
/// What the console shows.
pub(crate) const NAME: &str = "Name";

/// Tags, sorted.
pub(crate) type Tags = BTreeMap<String, String>;

/// The tag that marks a resource as the cluster's.
pub(crate) fn owned_key(cluster: &str) -> String {
    format!("kubernetes.io/cluster/{cluster}")
}

/// The tags of everything made for a node class and a pool: the class's own, and ours, which win.
pub(crate) fn of_class(class: &EC2NodeClass, pool: &str, cluster: &str) -> Tags {
    let mut tags = class.spec.tags.clone().unwrap_or_default();
    let own = [
        (owned_key(cluster), "owned"),
        (labels::NODEPOOL.to_owned(), pool),
        (CLUSTER_NAME.to_owned(), cluster),
        (
            labels::aws::NODE_CLASS.to_owned(),
            class.metadata.name.as_deref().unwrap_or_default(),
        ),
    ];
    tags.extend(own.map(|(key, value)| (key, value.to_owned())));
    tags
}

/// The tags of one launch. Upstream adds the claim's name only once its node is known; from the first moment on, a
/// machine whose launch nobody remembers can be found and given back.
pub(crate) fn of_launch(class: &Tags, claim: &NodeClaim, token: &LaunchToken) -> Tags {
    let mut tags = class.clone();
    tags.insert(NODE_CLAIM.to_owned(), claim.metadata.name.to_string());
    tags.insert(NODE_CLAIM_UID.to_owned(), claim.metadata.uid.to_string());
    tags.insert(LAUNCH.to_owned(), token.to_string());
    tags
}

/// A tag of the class that is ours to set.
pub(crate) fn restricted(class: &EC2NodeClass) -> Option<&str> {
    let mut keys = class.spec.tags.iter().flat_map(BTreeMap::keys);
    keys.find(|key| api::aws::is_restricted_tag(key)).map(String::as_str)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "called with literals")]

    use serde_json::json;

    use super::*;

    fn class(tags: serde_json::Value) -> EC2NodeClass {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
            "spec": {"subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [], "tags": tags},
        }))
        .unwrap()
    }

    #[test]
    fn our_tags_win_over_the_classes_own() {
        let class = class(json!({"team": "a", "karpenter.sh/nodepool": "theirs"}));
        let tags = of_class(&class, "general", "dev");
        let expected = [
            ("eks:eks-cluster-name", "dev"),
            ("karpenter.k8s.aws/ec2nodeclass", "default"),
            ("karpenter.sh/nodepool", "general"),
            ("kubernetes.io/cluster/dev", "owned"),
            ("team", "a"),
        ];
        assert_eq!(
            tags,
            expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
        );
        assert_eq!(restricted(&class), Some("karpenter.sh/nodepool"));
    }

    #[test]
    fn a_launch_says_which_claim_and_which_attempt_it_is_for() {
        let claim: NodeClaim =
            serde_json::from_value(json!({"metadata": {"name": "general-x", "uid": "u-1"}})).unwrap();
        let token = LaunchToken {
            claim: "u-1".into(),
            attempt: 2,
        };
        let tags = of_launch(&Tags::new(), &claim, &token);
        assert_eq!(tags[NODE_CLAIM], "general-x");
        assert_eq!(tags[NODE_CLAIM_UID], "u-1");
        assert_eq!(tags[LAUNCH], "u-1-2");
    }
}
