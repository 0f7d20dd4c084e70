//! Pools and workloads in the few words a story needs, and the manifests they stand for.

use std::collections::BTreeMap;

use catalogue::Source;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A NodePool in a few words.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// `spot` and `on-demand` unless it says otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity: Vec<String>,
    /// As `spec.limits`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// As `spec.disruption`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub disruption: Value,
    /// As `spec.template.spec.expireAfter`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expire_after: String,
    /// As `spec.template.spec.terminationGracePeriod`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub termination_grace_period: String,
    /// More of `spec.template.spec.requirements`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Value>,
    /// As `spec.template.metadata.labels`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Pods of one shape, in a few words.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workload {
    /// Its name, and the value of its pods' label `app`.
    pub name: String,
    /// How many pods; 1 unless it says otherwise.
    #[serde(default = "one")]
    pub replicas: u64,
    /// What each asks for; `1` unless it says otherwise.
    #[serde(default = "core")]
    pub cpu: String,
    /// What each asks for; `1Gi` unless it says otherwise.
    #[serde(default = "gibibyte")]
    pub memory: String,
    /// `zone`: evenly over zones. `node`: no two on one node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// A PodDisruptionBudget with this `minAvailable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_available: Option<Value>,
    /// Its pods may not be disrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub do_not_disrupt: bool,
    /// Pods of a batch: each ends by itself after this long, and is not replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_for: Option<String>,
    /// As the pods' `spec.nodeSelector`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
}

/// How pods keep apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// Evenly over zones.
    Zone,
    /// No two on one node.
    Node,
}

fn one() -> u64 {
    1
}

fn core() -> String {
    "1".to_owned()
}

fn gibibyte() -> String {
    "1Gi".to_owned()
}

/// The node class every pool of a story refers to.
pub fn node_class(source: Source) -> Value {
    let named = json!({"name": "default"});
    match source {
        Source::Kwok => json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
            "metadata": named, "spec": {}}),
        Source::Aws => {
            let discovered = json!([{"tags": {"karpenter.sh/discovery": "demo"}}]);
            json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": named, "spec": {
                "role": "KarpenterNodeRole-demo", "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": discovered, "securityGroupSelectorTerms": discovered,
            }})
        }
        Source::Azure => json!({"apiVersion": "karpenter.azure.com/v1beta1", "kind": "AKSNodeClass",
            "metadata": named, "spec": {"imageFamily": "Ubuntu2204"}}),
    }
}

impl Pool {
    /// Its manifest.
    pub fn manifest(&self, source: Source) -> Value {
        let class = node_class(source);
        let group = class["apiVersion"].as_str().and_then(|it| it.split_once('/'));
        let reference =
            json!({"group": group.map_or("", |(group, _)| group), "kind": class["kind"], "name": "default"});
        let capacity = if self.capacity.is_empty() {
            json!(["spot", "on-demand"])
        } else {
            json!(self.capacity)
        };
        let mut requirements = vec![
            json!({"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}),
            json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity}),
        ];
        if source == Source::Aws && self.requirements.is_empty() {
            requirements.push(
                json!({"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]}),
            );
            requirements
                .push(json!({"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["4"]}));
        }
        requirements.extend(self.requirements.iter().cloned());
        let never = || "Never".to_owned();
        let expire_after = Some(self.expire_after.clone())
            .filter(|it| !it.is_empty())
            .unwrap_or_else(never);
        let mut pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": self.name},
            "spec": {
                "disruption": {"consolidateAfter": "30s", "consolidationPolicy": "WhenEmptyOrUnderutilized",
                    "budgets": [{"nodes": "20%"}]},
                "template": {"spec": {
                    "nodeClassRef": reference, "requirements": requirements, "expireAfter": expire_after,
                }},
            },
        });
        for (field, value) in self.disruption.as_object().into_iter().flatten() {
            pool["spec"]["disruption"][field] = value.clone();
        }
        if !self.limits.is_empty() {
            pool["spec"]["limits"] = json!(self.limits);
        }
        if !self.labels.is_empty() {
            pool["spec"]["template"]["metadata"]["labels"] = json!(self.labels);
        }
        if !self.termination_grace_period.is_empty() {
            pool["spec"]["template"]["spec"]["terminationGracePeriod"] = json!(self.termination_grace_period);
        }
        pool
    }
}

/// How long a pod runs before it ends by itself; read by the stand-in for batches.
pub(crate) const RUNS_FOR: &str = "simulated.dovetail.dev/runs-for";

impl Workload {
    /// Its manifests: what keeps the pods, an object of the kind `keeper`, and their budget if they have one.
    pub fn manifests(&self, keeper: &str) -> Vec<Value> {
        let mut manifests = Vec::new();
        if self.runs_for.is_some() {
            let pod = |number: u64| {
                let mut pod = self.template();
                pod["apiVersion"] = json!("v1");
                pod["kind"] = json!("Pod");
                pod["metadata"]["name"] = json!(format!("{}-{number}", self.name));
                pod["metadata"]["namespace"] = json!("default");
                pod
            };
            manifests.extend((0..self.replicas).map(pod));
        } else {
            manifests.push(json!({
                "apiVersion": "apps/v1", "kind": keeper, "metadata": {"name": self.name, "namespace": "default"},
                "spec": {"replicas": self.replicas, "selector": {"matchLabels": {"app": self.name}},
                    "template": self.template()},
            }));
            if keeper == "Deployment" {
                // As the API server has it for who comes over HTTP: people read it in `kubectl describe`.
                manifests[0]["spec"]["strategy"] = json!({"type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
            }
        }
        if let Some(least) = &self.min_available {
            manifests.push(json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": self.name, "namespace": "default"},
                "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": self.name}}},
            }));
        }
        manifests
    }

    fn template(&self) -> Value {
        let selector = json!({"matchLabels": {"app": self.name}});
        let mut template = json!({
            "metadata": {"labels": {"app": self.name}},
            "spec": {"terminationGracePeriodSeconds": 10, "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": self.cpu, "memory": self.memory}}}]},
        });
        match self.spread {
            None => {}
            Some(Spread::Zone) => {
                template["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1,
                    "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector}]);
            }
            Some(Spread::Node) => {
                template["spec"]["affinity"] = json!({"podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector},
                ]}});
            }
        }
        if self.do_not_disrupt {
            template["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = json!("true");
        }
        if let Some(time) = &self.runs_for {
            template["metadata"]["annotations"][RUNS_FOR] = json!(time);
            template["spec"]["restartPolicy"] = json!("Never");
        }
        if !self.node_selector.is_empty() {
            template["spec"]["nodeSelector"] = json!(self.node_selector);
        }
        template
    }
}

/// The kind that keeps a workload's pods in a story.
pub(crate) const KEEPER: &str = "ReplicaSet";
