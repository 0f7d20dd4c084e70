//! Which tags does everything have that we make? By them we know it again.

use api::{azure::AKSNodeClass, labels::NODEPOOL};
use cloud::LaunchToken;
use model::object::NodeClaim;

use crate::{arm::wire::Tags, class::Class};

/// The cluster.
pub(crate) const CLUSTER: &str = "karpenter.azure.com_cluster";
/// The pool.
pub(crate) const POOL: &str = "karpenter.sh_nodepool";
/// The class; ours.
pub(crate) const CLASS: &str = "karpenter.azure.com_aksnodeclass";
/// The claim; ours.
pub(crate) const CLAIM: &str = "karpenter.sh_nodeclaim";
/// The claim's identity; ours.
pub(crate) const CLAIM_UID: &str = "dovetail.dev_nodeclaim-uid";
/// The launch; ours.
pub(crate) const LAUNCH: &str = "dovetail.dev_launch";
/// The claim of a machine of an agent pool. The virtual machine behind it carries it too, and is AKS's to look after.
pub(crate) const AKS_MACHINE: &str = "karpenter.azure.com_aksmachine_nodeclaim";

/// The tags that upstream gives, which the hash of what can change in place is made of. Later ones win.
pub(crate) fn upstream(cluster: &str, additional: &Tags, class: &AKSNodeClass, claim: &NodeClaim) -> Tags {
    let of_class = class
        .spec
        .tags
        .iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let pool = claim.metadata.labels.get(NODEPOOL).map(|pool| (POOL, &**pool));
    let ours = [(CLUSTER, cluster), ("compute.aks.billing", "linux")]
        .into_iter()
        .chain(pool);
    let additional = additional.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let all = additional.chain(of_class).chain(ours);
    all.map(|(key, value)| (key.replace('/', "_"), value.to_owned()))
        .collect()
}

/// All tags: upstream's, and those by which we find a launch again.
pub(crate) fn all(upstream: &Tags, class: &AKSNodeClass, claim: &NodeClaim, token: Option<&LaunchToken>) -> Tags {
    let mut tags = upstream.clone();
    tags.insert(CLASS.to_owned(), Class(class).name().to_owned());
    tags.insert(CLAIM.to_owned(), claim.metadata.name.to_string());
    tags.insert(CLAIM_UID.to_owned(), claim.metadata.uid.to_string());
    if let Some(token) = token {
        tags.insert(LAUNCH.to_owned(), token.to_string());
    }
    tags
}

/// The hash of what can change in place, as upstream computes it: FNV-1a over JSON.
pub(crate) fn in_place_hash(identities: &[String], tags: &Tags) -> String {
    use serde_json::{Map, Value, json};
    let mut fields = Map::new();
    if !identities.is_empty() {
        let mut sorted: Vec<&String> = identities.iter().collect();
        sorted.sort();
        let set: Map<String, Value> = sorted.into_iter().map(|id| (id.clone(), json!({}))).collect();
        fields.insert("identities".to_owned(), Value::Object(set));
    }
    if !tags.is_empty() {
        fields.insert("tags".to_owned(), json!(tags));
    }
    // Go escapes what could be mistaken for markup.
    let text = Value::Object(fields).to_string();
    let text = text
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026");
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "called with literals")]

    use serde_json::json;

    use super::*;

    fn class(tags: serde_json::Value) -> AKSNodeClass {
        serde_json::from_value(
            json!({"apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass",
            "metadata": {"name": "default"}, "spec": {"tags": tags}}),
        )
        .unwrap()
    }

    fn claim() -> NodeClaim {
        serde_json::from_value(json!({"metadata": {"name": "general-x", "uid": "u-1",
            "labels": {"karpenter.sh/nodepool": "general"}}}))
        .unwrap()
    }

    #[test]
    fn a_class_wins_over_the_settings_and_ours_over_both() {
        let additional = Tags::from([("team".to_owned(), "a".to_owned()), ("env".to_owned(), "x".to_owned())]);
        let class = class(json!({"team": "b", "cost/center": "7", "karpenter.sh/nodepool": "mine"}));
        let tags = upstream("prod", &additional, &class, &claim());
        let expected = [
            ("compute.aks.billing", "linux"),
            ("cost_center", "7"),
            ("env", "x"),
            (CLUSTER, "prod"),
            (POOL, "general"),
            ("team", "b"),
        ];
        assert_eq!(
            tags,
            expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
        );
    }

    #[test]
    fn a_launch_can_be_found_by_its_tags() {
        let token = LaunchToken {
            claim: "u-1".into(),
            attempt: 2,
        };
        let tags = all(&Tags::new(), &class(json!({})), &claim(), Some(&token));
        assert_eq!(tags[CLAIM], "general-x");
        assert_eq!((tags[CLAIM_UID].as_str(), tags[LAUNCH].as_str()), ("u-1", "u-1-2"));
        assert_eq!(tags[CLASS], "default");
    }

    #[test]
    fn the_hash_follows_identities_and_tags_whatever_their_order() {
        // FNV-1a of "{}", by hand: ((offset ^ 0x7b) * prime ^ 0x7d) * prime modulo 2^32.
        let step = |hash: u64, byte: u64| ((hash ^ byte) * 0x0100_0193) & 0xffff_ffff;
        assert_eq!(
            in_place_hash(&[], &Tags::new()),
            step(step(0x811c_9dc5, 0x7b), 0x7d).to_string()
        );
        let tags = Tags::from([("a".to_owned(), "b".to_owned())]);
        let ids = |ids: &[&str]| ids.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            in_place_hash(&ids(&["/1", "/2"]), &tags),
            in_place_hash(&ids(&["/2", "/1"]), &tags)
        );
        assert_ne!(in_place_hash(&ids(&["/1"]), &tags), in_place_hash(&[], &tags));
    }
}
