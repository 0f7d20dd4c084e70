//! `NodePool`: which nodes may be launched, how many, and when they may be disrupted.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::NodeClaimTemplate;
use crate::{
    condition::Condition,
    duration::{Duration, NillableDuration},
    open_enum::open_enum,
    pattern::DURATION_OR_NEVER,
    quantity::ResourceList,
};

/// What nodes of the pool look like, how many there may be and when they may go.
#[derive(Clone, Debug, PartialEq, Eq, CustomResource, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    plural = "nodepools",
    category = "karpenter",
    status = "NodePoolStatus",
    derive = "PartialEq",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.nodes"),
    printcolumn(
        name = "NodeClass",
        type_ = "string",
        json_path = ".spec.template.spec.nodeClassRef.name"
    ),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.nodes"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = 1),
    printcolumn(name = "CPU", type_ = "string", json_path = ".status.resources.cpu", priority = 1),
    printcolumn(
        name = "Memory",
        type_ = "string",
        json_path = ".status.resources.memory",
        priority = 1
    ),
    doc = "A pool of nodes with common constraints. Nodes are launched from it for pods that do not fit elsewhere."
)]
#[x_kube(
    validation = Rule::new("has(self.replicas) == has(oldSelf.replicas)")
        .message("Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes"),
    validation = Rule::new("!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits))")
        .message("only 'limits.nodes' is supported on static NodePools"),
    validation = Rule::new("!has(self.replicas) || !has(self.weight)")
        .message("'weight' is not supported on static NodePools")
)]
pub struct NodePoolSpec {
    /// When nodes of the pool may be removed or replaced to save money or to stay current.
    #[serde(default)]
    #[schemars(extend("default" = {"consolidateAfter": "0s"}))]
    pub disruption: Disruption,
    /// Most the pool may hold in total, by resource, such as cpu, memory or nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceList>,
    /// Alpha. Keeps this many nodes whatever the pods need. Such a pool is static: it has no weight, its only limit
    /// is nodes, and consolidation does not touch it. A pool cannot become static or stop being it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
    /// What the nodes of the pool look like.
    pub template: NodeClaimTemplate,
    /// Pools of higher weight are tried first. Without it, 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
}

open_enum! {
    /// Which nodes consolidation may touch.
    ConsolidationPolicy {
        /// Nodes without pods to move.
        WhenEmpty = "WhenEmpty",
        /// Also nodes whose pods fit elsewhere or on a cheaper node.
        WhenEmptyOrUnderutilized = "WhenEmptyOrUnderutilized",
        /// As before, if the saving is worth the disturbance.
        Balanced = "Balanced",
    }
}

open_enum! {
    /// Why a node is disrupted.
    DisruptionReason {
        /// Its pods fit elsewhere or on a cheaper node.
        Underutilized = "Underutilized",
        /// It has no pods to move.
        Empty = "Empty",
        /// It no longer matches its NodePool or NodeClass.
        Drifted = "Drifted",
        /// A repair policy found it broken.
        Unhealthy = "Unhealthy",
    }
}

/// When nodes may be removed or replaced.
#[derive(Clone, Debug, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How many nodes may be disrupted at once. The strictest active budget counts. Without any, 10% of the pool.
    // An empty list is no budget at all and is written as such: left out, it would become the default.
    #[serde(default = "default_budgets")]
    #[schemars(extend("maxItems" = 50))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = Rule::new("self.all(x, has(x.schedule) == has(x.duration))")
            .message("'schedule' must be set with 'duration'")
    )]
    pub budgets: Vec<Budget>,
    /// How long a node must have been left alone by pods before consolidation considers it, or Never.
    #[serde(default = "at_once")]
    #[schemars(extend("pattern" = DURATION_OR_NEVER))]
    pub consolidate_after: NillableDuration,
    /// Which nodes consolidation may touch: WhenEmpty, WhenEmptyOrUnderutilized or Balanced.
    #[serde(default = "default_policy")]
    pub consolidation_policy: ConsolidationPolicy,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            budgets: default_budgets(),
            consolidate_after: at_once(),
            consolidation_policy: default_policy(),
        }
    }
}

fn default_budgets() -> Vec<Budget> {
    vec![Budget {
        duration: None,
        nodes: default_nodes(),
        reasons: None,
        schedule: None,
    }]
}

fn default_nodes() -> String {
    "10%".to_owned()
}

fn default_policy() -> ConsolidationPolicy {
    ConsolidationPolicy::WhenEmptyOrUnderutilized
}

fn at_once() -> NillableDuration {
    NillableDuration::spelled(Duration::from_secs(0), "0s")
}

/// A bound on how many nodes may be disrupted at once.
#[derive(Clone, Debug, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["nodes"]))]
pub struct Budget {
    /// How long the budget is active from each time of its schedule, in hours and minutes. Needs a schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"))]
    pub duration: Option<Duration>,
    /// Most nodes of the pool that may be going away at once: a number or a percentage, rounded up.
    #[serde(default = "default_nodes")]
    #[schemars(extend("pattern" = "^((100|[0-9]{1,2})%|[0-9]+)$"))]
    pub nodes: String,
    /// Reasons the budget applies to: Underutilized, Empty, Drifted, Unhealthy. Without the list, to all of them.
    // Absent means every reason, an empty list means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxItems" = 50))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// When the budget starts to be active, as a cron expression in UTC or a word such as @daily. Needs a duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "pattern" = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
    ))]
    pub schedule: Option<String>,
}

/// What was observed about the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, KubeSchema, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// Observed aspects of the pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// Generation of the node class the registration health was judged for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// Number of nodes in the pool.
    #[serde(default)]
    pub nodes: i64,
    /// What the nodes of the pool hold in total, by resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceList>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn least() -> Value {
        json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "default"},
            "spec": {"template": {"spec": {
                "requirements": [],
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            }}},
        })
    }

    fn round_trip(object: &Value) -> Value {
        serde_json::to_value(serde_json::from_value::<NodePool>(object.clone()).unwrap()).unwrap()
    }

    #[test]
    fn a_manifest_means_the_same_offline_as_on_the_api_server() {
        let mut defaulted = least();
        defaulted["spec"]["disruption"] = json!({
            "budgets": [{"nodes": "10%"}],
            "consolidateAfter": "0s",
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
        });
        defaulted["spec"]["template"]["spec"]["expireAfter"] = "720h".into();
        assert_eq!(round_trip(&least()), defaulted);

        let mut partial = least();
        partial["spec"]["disruption"] = json!({"budgets": [{"schedule": "@daily", "duration": "8h"}]});
        defaulted["spec"]["disruption"]["budgets"] =
            json!([{"duration": "8h0m0s", "nodes": "10%", "schedule": "@daily"}]);
        assert_eq!(round_trip(&partial), defaulted);
    }

    #[test]
    fn a_full_pool_survives_a_round_trip() {
        let full = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "full", "generation": 3},
            "spec": {
                "disruption": {
                    "budgets": [
                        {"duration": "1h30m0s", "nodes": "0", "reasons": ["Drifted", "Unhealthy"], "schedule": "0 9 * * 1-5"},
                        {"nodes": "20%", "reasons": []},
                    ],
                    "consolidateAfter": "90m",
                    "consolidationPolicy": "Balanced",
                },
                "limits": {"cpu": "1k", "nodes": "7"},
                "template": {
                    "metadata": {"annotations": {}, "labels": {"team": "a"}},
                    "spec": {
                        "expireAfter": "Never",
                        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                        "requirements": [
                            {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 5},
                            {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gte", "values": ["4"]},
                        ],
                        "startupTaints": [],
                        "taints": [{"effect": "NoExecute", "key": "a", "timeAdded": "2026-01-02T03:04:05Z", "value": "b"}],
                        "terminationGracePeriod": "48h0m0s",
                    },
                },
                "weight": 10,
            },
            "status": {
                "conditions": [{
                    "lastTransitionTime": "2026-01-02T03:04:05Z",
                    "message": "",
                    "observedGeneration": 3,
                    "reason": "Ready",
                    "status": "True",
                    "type": "Ready",
                }],
                "nodeClassObservedGeneration": 1,
                "nodes": 2,
                "resources": {"cpu": "8", "memory": "32Gi"},
            },
        });
        assert_eq!(round_trip(&full), full);
    }

    #[test]
    fn words_of_a_newer_release_do_not_make_a_pool_unreadable() {
        let mut newer = least();
        newer["spec"]["disruption"] = json!({
            "budgets": [{"nodes": "1", "reasons": ["Bored"]}],
            "consolidateAfter": "0s",
            "consolidationPolicy": "WhenMoonIsFull",
        });
        newer["spec"]["template"]["spec"]["expireAfter"] = "720h".into();
        newer["spec"]["template"]["spec"]["requirements"] = json!([{"key": "a", "operator": "Like", "values": ["b*"]}]);
        assert_eq!(round_trip(&newer), newer);
    }
}
