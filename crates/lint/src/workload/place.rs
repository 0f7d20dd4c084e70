//! Where pods may go: WL03 selector-unknown, WL04 fits-nothing.

use std::borrow::Cow;

use api::labels::domain;
use model::{
    instance_type::InstanceType,
    object::{NodeSelectorTerm, Pod, Toleration},
    requirement::{Operator, Requirement, Requirements, UndefinedLabels},
    vocabulary::Vocabulary,
};

use crate::{
    finding::Found,
    nearest::nearest,
    supply::{Supply, specs},
    world::{Pool, Workload, World},
};

/// A NodePool that may launch for a workload, and the types it could launch.
pub(crate) struct Place<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) types: Vec<&'a InstanceType>,
    /// What both ask of a node.
    pub(crate) both: Requirements,
    pub(crate) vocabulary: Cow<'a, Vocabulary>,
}

/// Labels of nodes that no NodePool makes: those of node groups, and of one node.
fn is_of_others(key: &str) -> bool {
    let domains = [
        "eks.amazonaws.com",
        "alpha.eksctl.io",
        "node-role.kubernetes.io",
        "cloud.google.com",
    ];
    let keys = [
        "agentpool",
        "kubernetes.io/hostname",
        "kubernetes.azure.com/agentpool",
        "kubernetes.azure.com/mode",
    ];
    domains.contains(&domain(key)) || keys.contains(&key)
}

impl World {
    /// The pods of a workload, by the labels of its template.
    pub(crate) fn pods_of(&self, workload: &Workload) -> Vec<&Pod> {
        let is_its = |pod: &&Pod| {
            let has_labels = workload
                .labels
                .iter()
                .all(|(key, value)| pod.metadata.labels.get(key) == Some(value));
            *pod.metadata.namespace == *workload.namespace && !workload.labels.is_empty() && has_labels
        };
        self.pods.iter().map(AsRef::as_ref).filter(is_its).collect()
    }

    /// The pools that may launch for a workload: what it selects they can have, and it tolerates their taints.
    pub(crate) fn places<'a>(&'a self, workload: &Workload) -> Vec<Place<'a>> {
        let tolerations: Vec<_> = workload.spec.tolerations.iter().map(Toleration::view).collect();
        let is_open = |pool: &&Pool| {
            let mut taints = pool.pool.spec.template.spec.taints.iter();
            taints.all(|taint| *taint.effect == *"PreferNoSchedule" || taint.view().is_tolerated_by(&tolerations))
        };
        self.pools
            .iter()
            .filter(is_open)
            .filter_map(|pool| self.place(workload, pool))
            .collect()
    }

    /// A pool as a place for a workload, whatever its taints.
    fn place<'a>(&'a self, workload: &Workload, pool: &'a Pool) -> Option<Place<'a>> {
        let supply = self.supply(pool)?;
        if workload.spec.node_selector.is_empty() && required_terms(workload).is_empty() {
            // Most pods take any node, and there are many of them.
            let types = self.left(pool);
            return (!types.is_empty()).then(|| Place {
                pool,
                types,
                both: pool.requirements.clone(),
                vocabulary: Cow::Borrowed(&supply.vocabulary),
            });
        }
        let mut vocabulary = supply.vocabulary.clone();
        alternatives(workload, &mut vocabulary)
            .into_iter()
            .find_map(|wanted| meet(supply, pool, &wanted, &vocabulary))
            .map(|(both, types)| Place {
                pool,
                types,
                both,
                vocabulary: Cow::Owned(vocabulary),
            })
    }

    /// Whether a node that exists is one that a workload selects.
    fn is_on_a_node(&self, workload: &Workload) -> bool {
        let mut vocabulary = Vocabulary::new();
        let wanted = alternatives(workload, &mut vocabulary);
        self.nodes.iter().any(|node| {
            let labels = node.metadata.labels.iter().map(|(key, value)| (&**key, &**value));
            let labels = Requirements::from_labels(labels, &mut vocabulary);
            wanted
                .iter()
                .any(|wanted| labels.is_compatible(wanted, UndefinedLabels::Denied, &vocabulary))
        })
    }
}

/// What both a pool and a pod ask of a node, and the types that meet it; none where nothing does.
fn meet<'a>(
    supply: &'a Supply,
    pool: &Pool,
    wanted: &Requirements,
    vocabulary: &Vocabulary,
) -> Option<(Requirements, Vec<&'a InstanceType>)> {
    let is_met = pool
        .requirements
        .is_compatible(wanted, UndefinedLabels::AllowedIfWellKnown, vocabulary);
    if !is_met {
        return None;
    }
    let mut both = pool.requirements.clone();
    both.add_all(wanted, vocabulary);
    let types: Vec<_> = supply.left(&pool.pool, &both, vocabulary).collect();
    (!types.is_empty()).then_some((both, types))
}

/// What a pod's selector and required affinity ask of a node: one of these.
fn alternatives(workload: &Workload, vocabulary: &mut Vocabulary) -> Vec<Requirements> {
    let mut selected = Requirements::default();
    for (key, value) in &workload.spec.node_selector {
        let requirement = Requirement::parse(key, Operator::In, [&**value], vocabulary);
        selected.add(requirement, vocabulary);
    }
    let terms = required_terms(workload);
    if terms.is_empty() {
        return vec![selected];
    }
    let term = |term: &NodeSelectorTerm| {
        let mut all = Requirements::from_specs(&specs(&term.match_expressions), vocabulary);
        all.add_all(&selected, vocabulary);
        all
    };
    terms.iter().map(term).collect()
}

fn required_terms(workload: &Workload) -> Vec<NodeSelectorTerm> {
    let affinity = workload.spec.affinity.as_ref();
    let required = affinity.and_then(|affinity| affinity.node_affinity.as_ref()?.required.as_ref());
    required
        .map(|required| required.node_selector_terms.to_vec())
        .unwrap_or_default()
}

/// The keys a workload selects by, with the path of each.
fn selected(workload: &Workload) -> Vec<(String, String, String)> {
    let selector = workload.spec.node_selector.iter().map(|(key, value)| {
        let path = workload.path(&format!("spec.nodeSelector.{key}"));
        (key.to_string(), value.to_string(), path)
    });
    let terms = required_terms(workload);
    let at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let expressions = terms.iter().enumerate().flat_map(|(term, all)| {
        all.match_expressions.iter().enumerate().map(move |(number, one)| {
            let path = workload.path(&format!("{at}[{term}].matchExpressions[{number}]"));
            (one.key.to_string(), one.values.join(", "), path)
        })
    });
    selector.chain(expressions).collect()
}

pub(crate) fn selector_unknown(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    let are_known = world.pools.iter().all(|pool| world.supply(pool).is_some());
    if world.pools.is_empty() || !are_known {
        return found;
    }
    for workload in world.workloads.iter().filter(|workload| workload.kind != "DaemonSet") {
        let keys = selected(workload);
        let is_of_others = keys.iter().any(|(key, ..)| is_of_others(key));
        if keys.is_empty() || is_of_others || world.pools.iter().any(|pool| world.place(workload, pool).is_some()) {
            continue;
        }
        if world.is_on_a_node(workload) {
            continue;
        }
        found.push(unmet(world, workload, &keys));
    }
    found
}

/// Says which of the selectors no pool meets, and what may have been meant.
fn unmet(world: &World, workload: &Workload, keys: &[(String, String, String)]) -> Found {
    let meets_alone = |key: &str, value: &str| {
        world.pools.iter().any(|pool| {
            let Some(supply) = world.supply(pool) else { return false };
            let mut vocabulary = supply.vocabulary.clone();
            let values: Vec<&str> = value.split(", ").filter(|value| !value.is_empty()).collect();
            let operator = if values.is_empty() {
                Operator::Exists
            } else {
                Operator::In
            };
            let mut wanted = Requirements::default();
            let requirement = Requirement::parse(key, operator, values, &mut vocabulary);
            wanted.add(requirement, &vocabulary);
            meet(supply, pool, &wanted, &vocabulary).is_some()
        })
    };
    let blamed = keys.iter().find(|(key, value, _)| !meets_alone(key, value));
    let Some((key, value, path)) = blamed else {
        let all: Vec<&str> = keys.iter().map(|(key, ..)| key.as_str()).collect();
        let text = format!(
            "no NodePool meets all it selects by together ({}): its pods wait for ever",
            all.join(", ")
        );
        return Found::new(workload.document, workload.path("spec"), text);
    };
    let known = world.pools.iter().flat_map(|pool| {
        let labels = pool.pool.spec.template.metadata.labels.iter().map(|(key, _)| &**key);
        labels.chain(pool.pool.spec.template.spec.requirements.iter().map(|one| &*one.key))
    });
    let meant = nearest(key, known);
    let is_in_selector = path.contains("nodeSelector.");
    let what = if is_in_selector { "nodeSelector" } else { "affinity" };
    let said = if value.is_empty() {
        key.clone()
    } else {
        format!("{key}: {value}")
    };
    let text = format!("{what} {said}: no NodePool sets it, its pods wait for ever");
    let is_capacity = key == "node-type" || key.ends_with("/lifecycle") || key.ends_with("capacityType");
    let fix = match meant {
        Some(meant) => {
            format!("{meant} may be meant; or the label {key} in a NodePool's spec.template.metadata.labels")
        }
        None if is_capacity && matches!(value.as_str(), "spot" | "SPOT" | "on-demand" | "ON_DEMAND") => {
            let kind = value.to_lowercase().replace('_', "-");
            format!(
                "{}: {kind}, which every node of Karpenter has",
                api::labels::CAPACITY_TYPE
            )
        }
        None => format!("the label {key} in spec.template.metadata.labels of the NodePool it is meant for"),
    };
    Found::new(workload.document, path, text).fix(fix)
}

pub(crate) fn fits_nothing(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for workload in world.workloads.iter().filter(|workload| workload.kind != "DaemonSet") {
        let requests = workload.spec.resources().requests();
        let places = world.places(workload);
        if requests.is_empty() || places.is_empty() {
            continue;
        }
        let fits = |place: &Place<'_>| place.types.iter().any(|entry| requests.fits(&entry.allocatable()));
        if !places.iter().any(fits) {
            let asks: Vec<String> = requests
                .iter()
                .map(|(name, amount)| format!("{amount} {}", name.as_str()))
                .collect();
            let pools: Vec<&str> = places.iter().map(|place| &*place.pool.pool.metadata.name).collect();
            let text = format!(
                "asks for {}, more than any type that {} may launch has",
                asks.join(", "),
                pools.join(", ")
            );
            found.push(Found::new(workload.document, workload.path("spec.containers"), text));
            continue;
        }
        let exceeds = |place: &Place<'_>| {
            let mut limits = place.pool.pool.spec.limits.iter();
            limits.any(|(name, limit)| requests.amount(name.as_str()) > limit)
        };
        if places.iter().all(exceeds) {
            let text = "one pod asks for more than the limits of every NodePool that may launch for it";
            found.push(Found::new(workload.document, workload.path("spec.containers"), text));
        }
    }
    found
}
