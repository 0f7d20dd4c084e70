//! Upstream's end-to-end performance suite: its Deployments as pending pods over kwok's catalogue.

use serde_json::{Value, json};

use crate::catalogue::{KWOK_LABELS, KWOK_SIZE, kwok};
use crate::object::{
    CAPACITY_TYPE, DISCOVERY_LABEL, HOSTNAME, OS, Object, ZONE, kwok_node_class, node_pool, pod, requirement,
    unschedulable,
};
use crate::snapshot::Snapshot;

/// A Deployment of the suite.
#[derive(Debug, Clone)]
pub struct Deployment {
    /// Its name, which is also its pods' `app` label.
    pub name: String,
    /// Pods at scale-out.
    pub replicas: u64,
    /// Pods after scale-in.
    pub scaled_in: u64,
    /// What every pod looks like.
    pub shape: Object,
}

impl Deployment {
    /// A Deployment of plain pods.
    pub fn new(name: &str, replicas: u64, scaled_in: u64, cpu_m: u64, memory_mi: u64) -> Self {
        let shape = pod("default", name, cpu_m, memory_mi)
            .entry("metadata.labels", "app", name)
            .entry("metadata.labels", DISCOVERY_LABEL, "owned");
        Self {
            name: name.to_string(),
            replicas,
            scaled_in,
            shape,
        }
    }

    /// Spreads the pods over a topology with a skew of one.
    #[must_use]
    pub fn spread(mut self, key: &str) -> Self {
        let constraint = json!({ "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
                                 "labelSelector": self.selector() });
        self.shape = self.shape.push("spec.topologySpreadConstraints", constraint);
        self
    }

    /// Keeps the pods off each other's node.
    #[must_use]
    pub fn alone(mut self) -> Self {
        let term = json!({ "labelSelector": self.selector(), "topologyKey": HOSTNAME });
        let path = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution";
        self.shape = self.shape.push(path, term);
        self
    }

    /// Forbids disruption of the pods.
    #[must_use]
    pub fn protected(mut self) -> Self {
        self.shape = self
            .shape
            .entry("metadata.annotations", "karpenter.sh/do-not-disrupt", "true");
        self
    }

    /// The i-th pod.
    pub fn pod(&self, index: u64) -> Object {
        let name = format!("{}-{index:04}", self.name);
        let identity = Object::new("v1", "Pod", "default", &name);
        self.shape
            .clone()
            .with("metadata.name", name)
            .with("metadata.uid", identity.get("metadata.uid").clone())
    }

    /// The Deployment itself, for a cluster that makes its pods.
    pub fn manifest(&self) -> Value {
        let (labels, spec) = (self.shape.get("metadata.labels"), self.shape.get("spec"));
        let annotations = self.shape.get("metadata.annotations");
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": self.name, "namespace": "default", "labels": labels},
            "spec": {
                "replicas": self.replicas,
                "selector": self.selector(),
                "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec},
            },
        })
    }

    fn selector(&self) -> Value {
        json!({ "matchLabels": { "app": self.name } })
    }
}

/// A scenario of the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// Two Deployments without constraints.
    Basic,
    /// The small one spread over hosts.
    HostNameSpreading,
    /// The same at twice the size.
    HostNameSpreadingXl,
    /// With a hundred pods that must not be disrupted.
    DoNotDisrupt,
    /// Two Deployments that keep their pods apart.
    Interference,
    /// What upstream then lets drift.
    Drift,
    /// Thirty Deployments of all sizes, spread over zones.
    WideDeployments,
}

impl Scenario {
    /// All of them, in the suite's order.
    pub const ALL: [Self; 7] = [
        Self::Basic,
        Self::HostNameSpreading,
        Self::HostNameSpreadingXl,
        Self::DoNotDisrupt,
        Self::Interference,
        Self::Drift,
        Self::WideDeployments,
    ];

    /// The suite's key for it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::HostNameSpreading => "hostNameSpreading",
            Self::HostNameSpreadingXl => "hostNameSpreadingXL",
            Self::DoNotDisrupt => "doNotDisrupt",
            Self::Interference => "interference",
            Self::Drift => "drift",
            Self::WideDeployments => "wideDeployments",
        }
    }
}

/// A scenario's Deployments.
pub fn deployments(scenario: Scenario) -> Vec<Deployment> {
    let small = |replicas, scaled_in| Deployment::new("small", replicas, scaled_in, 900, 3100);
    let large = |replicas, scaled_in| Deployment::new("large", replicas, scaled_in, 3500, 28 * 1024);
    match scenario {
        Scenario::Basic => vec![small(500, 350), large(500, 350)],
        Scenario::HostNameSpreading => vec![small(500, 350).spread(HOSTNAME), large(500, 350)],
        Scenario::HostNameSpreadingXl => vec![small(1000, 700).spread(HOSTNAME), large(1000, 700)],
        Scenario::DoNotDisrupt => vec![
            small(500, 250).spread(HOSTNAME),
            large(500, 250),
            Deployment::new("protected", 100, 100, 900, 450).protected(),
        ],
        // Its first phase; the large half arrives while the small one consolidates.
        Scenario::Interference => vec![small(500, 400).alone(), large(500, 200).alone()],
        Scenario::Drift => vec![small(300, 300).spread(HOSTNAME), large(300, 300)],
        Scenario::WideDeployments => wide(),
    }
}

/// Requests of the thirty wide Deployments: millicores and MiB.
#[rustfmt::skip]
const WIDE: [(u64, u64); 30] = [
    (240, 300), (450, 400), (650, 700), (900, 1024), (1400, 2048), (1900, 4096), (2400, 8192), (2800, 4096),
    (3300, 16_384), (3700, 10_240), (2300, 65_536), (900, 30_720), (1300, 32_768), (2800, 32_768), (1800, 30_720),
    (1850, 20_480), (3300, 30_720), (3800, 300), (225, 500), (450, 750), (700, 1024), (900, 2048), (1300, 4096),
    (1800, 8192), (2400, 16_384), (2800, 32_768), (3400, 28_672), (3800, 65_536), (3300, 13_312), (2800, 24_576),
];

fn wide() -> Vec<Deployment> {
    (1..)
        .zip(WIDE)
        .map(|(index, (cpu, memory))| wide_deployment(index, cpu, memory))
        .collect()
}

fn wide_deployment(index: u64, cpu: u64, memory: u64) -> Deployment {
    let (replicas, scaled_in) = if index <= 20 { (35, 25) } else { (30, 20) };
    let name = format!("wide-deployment-{index}");
    let mut deployment = Deployment::new(&name, replicas, scaled_in, cpu, memory).spread(ZONE);
    deployment.shape = deployment
        .shape
        .entry("metadata.labels", "deployment-index", index.to_string());
    match index {
        1..=3 => deployment.alone(),
        4..=6 => deployment.spread(HOSTNAME),
        _ => deployment,
    }
}

/// The suite's pool: linux, on-demand, less than 32 cores.
pub fn pool() -> Object {
    node_pool("default", &kwok_node_class())
        .entry("spec.template.metadata.labels", DISCOVERY_LABEL, "owned")
        .with("spec.disruption.consolidateAfter", "30s")
        .with(
            "spec.template.spec.requirements",
            json!([
                requirement(OS, "In", &["linux"]),
                requirement(CAPACITY_TYPE, "In", &["on-demand"]),
                requirement(KWOK_SIZE, "Lt", &["32"]),
            ]),
        )
}

/// A scenario's scale-out, all pods pending at once.
pub fn scale_out(scenario: Scenario) -> Snapshot {
    let name = format!("performance-{}", scenario.key());
    let mut snapshot = Snapshot::new(&name, "workloads", kwok(), &KWOK_LABELS);
    snapshot.objects.push(pool());
    for deployment in deployments(scenario) {
        snapshot
            .objects
            .extend((0..deployment.replicas).map(|i| unschedulable(deployment.pod(i))));
    }
    snapshot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_have_the_suites_pod_counts() {
        let counts = Scenario::ALL.map(|scenario| {
            let deployments = deployments(scenario);
            let sum = |part: fn(&Deployment) -> u64| deployments.iter().map(part).sum::<u64>();
            (sum(|d| d.replicas), sum(|d| d.scaled_in))
        });
        assert_eq!(
            counts,
            [
                (1000, 700),
                (1000, 700),
                (2000, 1400),
                (1100, 600),
                (1000, 600),
                (600, 600),
                (1000, 700)
            ]
        );
    }
}
