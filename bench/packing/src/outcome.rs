//! What of a plan is compared? The same facts from ours and from upstream's, with names as `namespace/name`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use model::plan::{Plan, RefusalKind};
use model::price::Price;
use model::requirement::RequirementSpec;

use crate::{reference, wording};

/// Keys of a claim's requirements that say nothing about the plan: a placeholder, two that every node fulfils once it is
/// up, and the type names, which are compared as what they are.
const UNCOMPARED: [&str; 4] = [
    "kubernetes.io/hostname",
    "karpenter.sh/registered",
    "karpenter.sh/initialized",
    "node.kubernetes.io/instance-type",
];

/// A plan's facts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Nodes to launch.
    pub claims: Vec<Claim>,
    /// What they cost an hour.
    pub price: Price,
    /// Which node that exists each pod goes to.
    pub on_nodes: BTreeMap<String, String>,
    /// Pods without a place, and why, in one order of words.
    pub unplaced: BTreeMap<String, String>,
    /// Pods that were not tried, and why.
    pub ignored: BTreeMap<String, String>,
}

/// A node to launch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// The pods on it.
    pub pods: BTreeSet<String>,
    /// Whose template it is made from.
    pub node_pool: String,
    /// What it asks of a machine, sorted.
    pub requirements: Vec<RequirementSpec>,
    /// The types it may be.
    pub types: BTreeSet<String>,
    /// The cheapest launch.
    pub price: Option<Price>,
}

impl Outcome {
    /// The facts of our plan.
    pub fn ours(plan: &Plan) -> Self {
        let mut outcome = Self {
            claims: plan.claims.iter().map(our_claim).collect(),
            price: plan.price(),
            ..Self::default()
        };
        outcome.claims.sort();
        for node in &plan.existing {
            let places = node
                .pods
                .iter()
                .map(|pod| (pod.metadata.key().to_string(), node.name.to_string()));
            outcome.on_nodes.extend(places);
        }
        for unplaced in &plan.unplaced {
            let list = match unplaced.kind {
                RefusalKind::OptedOut | RefusalKind::Invalid => &mut outcome.ignored,
                RefusalKind::Unschedulable | RefusalKind::Deferred | RefusalKind::DeviceRequestsIgnored => {
                    &mut outcome.unplaced
                }
            };
            list.insert(
                unplaced.pod.metadata.key().to_string(),
                wording::in_one_order(&unplaced.message),
            );
        }
        outcome
    }

    /// The same facts, with refusals that do not say where other pods went.
    #[must_use]
    pub fn without_counts(&self) -> Self {
        let unplaced = self.unplaced.iter();
        Self {
            unplaced: unplaced
                .map(|(pod, why)| (pod.clone(), wording::without_counts(why)))
                .collect(),
            ..self.clone()
        }
    }

    /// The facts of upstream's plan.
    pub fn upstream(plan: &reference::Plan) -> Self {
        let mut claims: Vec<Claim> = plan.claims.iter().map(upstream_claim).collect();
        claims.sort();
        let in_one_order = |refusals: &BTreeMap<String, String>| {
            let refusals = refusals.iter();
            refusals
                .map(|(pod, why)| (pod.clone(), wording::in_one_order(why)))
                .collect()
        };
        Self {
            price: claims.iter().filter_map(|claim| claim.price).sum(),
            claims,
            on_nodes: plan
                .existing
                .iter()
                .flat_map(|node| node.pods.iter().map(|pod| (pod.clone(), node.node.clone())))
                .collect(),
            unplaced: in_one_order(&plan.errors),
            ignored: in_one_order(&plan.ignored),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for claim in &self.claims {
            let pods: Vec<&str> = claim.pods.iter().map(String::as_str).collect();
            let requirements = serde_json::to_string(&claim.requirements).unwrap_or_default();
            let price = claim.price.map_or_else(String::new, |price| price.to_string());
            writeln!(
                f,
                "  claim {} {price} {} types {}",
                claim.node_pool,
                claim.types.len(),
                pods.join(" ")
            )?;
            writeln!(f, "    {requirements}")?;
        }
        self.on_nodes
            .iter()
            .try_for_each(|(pod, node)| writeln!(f, "  {node} {pod}"))?;
        self.unplaced
            .iter()
            .try_for_each(|(pod, why)| writeln!(f, "  unplaced {pod}: {why}"))?;
        self.ignored
            .iter()
            .try_for_each(|(pod, why)| writeln!(f, "  ignored {pod}: {why}"))
    }
}

fn our_claim(claim: &model::plan::PlannedClaim) -> Claim {
    Claim {
        pods: claim.pods.iter().map(|pod| pod.metadata.key().to_string()).collect(),
        node_pool: claim.node_pool.to_string(),
        requirements: compared(&claim.constraints),
        types: claim.options.iter().map(ToString::to_string).collect(),
        price: claim.cheapest.as_ref().map(|launch| launch.price),
    }
}

fn upstream_claim(claim: &reference::Claim) -> Claim {
    Claim {
        pods: claim.pods.iter().cloned().collect(),
        node_pool: claim.node_pool.clone(),
        requirements: compared(&claim.launch),
        types: claim.instance_types.iter().cloned().collect(),
        price: claim.cheapest_price.and_then(Price::from_f64),
    }
}

fn compared(requirements: &[RequirementSpec]) -> Vec<RequirementSpec> {
    let kept = requirements.iter().filter(|r| !UNCOMPARED.contains(&r.key.as_str()));
    let mut kept: Vec<RequirementSpec> = kept.cloned().collect();
    for requirement in &mut kept {
        requirement.values.sort();
    }
    kept.sort();
    kept
}
