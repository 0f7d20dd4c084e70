//! What in a dump has no API server accepted? A plan made from it would be a plan for something else, so each is named with
//! its field, its value and what to write instead.

use api::{
    karpenter::{NodeSelectorRequirementWithMinValues, validation::requirement_faults},
    labels::LabelRules,
};
use model::{
    object::{Container, Node, NodePool, NodeSelectorRequirement, Pod, TopologySpreadConstraint},
    resources::ResourceList,
    snapshot::{CatalogType, Snapshot},
};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const ACTIONS: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
const WEIGHTS: std::ops::RangeInclusive<i32> = 1..=100;
const PORTS: std::ops::RangeInclusive<i32> = 1..=65535;

/// Everything that is wrong, a line each.
pub(super) fn faults(snapshot: &Snapshot) -> Vec<String> {
    let rules = packing::supply::label_rules(snapshot.catalog());
    let objects = snapshot.objects();
    let pools = objects.node_pools.iter().flat_map(|pool| of_pool(pool, &rules));
    let nodes = objects.nodes.iter().flat_map(|node| of_node(node));
    let pods = objects.pods.iter().flat_map(|pod| of_pod(pod));
    let types = snapshot.catalog().instance_types.iter();
    let types = types.enumerate().flat_map(|(at, entry)| of_type(at, entry));
    pools.chain(nodes).chain(pods).chain(types).collect()
}

/// Faults of one object, each with the object's name before it.
struct Found {
    object: String,
    lines: Vec<String>,
}

impl Found {
    fn new(object: String) -> Self {
        let lines = Vec::new();
        Self { object, lines }
    }

    fn add(&mut self, field: &str, problem: &str, fix: &str) {
        self.lines.push(format!("{}: {field}: {problem}; {fix}", self.object));
    }

    /// No amount is less than nothing, and every one is of something.
    fn amounts(&mut self, field: &str, list: &ResourceList) {
        for (name, quantity) in list.iter() {
            let field = format!("{field}.{name}");
            if name.as_str().is_empty() {
                self.add(&field, "is a resource without a name", "write one, such as cpu");
            }
            if quantity.is_negative() {
                self.add(&field, &format!("{quantity} is less than nothing"), "write 0 or more");
            }
        }
    }
}

fn of_pool(pool: &NodePool, rules: &LabelRules) -> Vec<String> {
    let mut found = Found::new(format!("NodePool {}", pool.metadata.name));
    if let Some(weight) = pool.spec.weight.filter(|weight| !WEIGHTS.contains(weight)) {
        found.add("spec.weight", &format!("{weight} is no weight"), "write 1 to 100");
    }
    let template = &pool.spec.template.spec;
    for (at, requirement) in template.requirements.iter().enumerate() {
        let field = format!("spec.template.spec.requirements[{at}]");
        let values: Vec<&str> = requirement.values.iter().map(AsRef::as_ref).collect();
        let value = format!("{} {} [{}]", requirement.key, requirement.operator, values.join(", "));
        for fault in requirement_faults(&written(requirement), rules) {
            found.add(&field, &format!("{fault} (value {value})"), "correct the requirement");
        }
    }
    for (name, taints) in [
        ("taints", &template.taints),
        ("startupTaints", &template.startup_taints),
    ] {
        for (at, taint) in taints.iter().enumerate() {
            if !EFFECTS.contains(&&*taint.effect) {
                let field = format!("spec.template.spec.{name}[{at}].effect");
                let problem = format!("{:?} is no effect", &*taint.effect);
                found.add(&field, &problem, &format!("write one of {}", EFFECTS.join(", ")));
            }
        }
    }
    found.lines
}

fn written(requirement: &NodeSelectorRequirement) -> NodeSelectorRequirementWithMinValues {
    NodeSelectorRequirementWithMinValues {
        key: requirement.key.to_string(),
        operator: (*requirement.operator).into(),
        values: requirement.values.iter().map(ToString::to_string).collect(),
        min_values: requirement.min_values.map(i64::from),
    }
}

fn of_node(node: &Node) -> Vec<String> {
    let mut found = Found::new(format!("Node {}", node.metadata.name));
    found.amounts("status.capacity", &node.status.capacity);
    found.amounts("status.allocatable", &node.status.allocatable);
    found.lines
}

fn of_pod(pod: &Pod) -> Vec<String> {
    let mut found = Found::new(format!("Pod {}", pod.metadata.key()));
    found.amounts("spec.overhead", &pod.spec.overhead);
    for (name, containers) in [
        ("initContainers", &pod.spec.init_containers),
        ("containers", &pod.spec.containers),
    ] {
        for (at, container) in containers.iter().enumerate() {
            of_container(&format!("spec.{name}[{at}]"), container, &mut found);
        }
    }
    for (at, spread) in pod.spec.topology_spread_constraints.iter().enumerate() {
        of_spread(&format!("spec.topologySpreadConstraints[{at}]"), spread, &mut found);
    }
    found.lines
}

fn of_container(field: &str, container: &Container, found: &mut Found) {
    found.amounts(&format!("{field}.resources.requests"), &container.resources.requests);
    found.amounts(&format!("{field}.resources.limits"), &container.resources.limits);
    for (at, port) in container.ports.iter().enumerate() {
        if !PORTS.contains(&port.host_port) {
            let field = format!("{field}.ports[{at}].hostPort");
            found.add(&field, &format!("{} is no port", port.host_port), "write 1 to 65535");
        }
    }
}

fn of_spread(field: &str, spread: &TopologySpreadConstraint, found: &mut Found) {
    if spread.max_skew < 1 {
        let problem = format!("{} allows nothing", spread.max_skew);
        found.add(&format!("{field}.maxSkew"), &problem, "write 1 or more");
    }
    if spread.topology_key.is_empty() {
        found.add(
            &format!("{field}.topologyKey"),
            "is missing",
            "write the label of a node",
        );
    }
    if !ACTIONS.contains(&&*spread.when_unsatisfiable) {
        let problem = format!("{:?} is no action", &*spread.when_unsatisfiable);
        let fix = format!("write one of {}", ACTIONS.join(", "));
        found.add(&format!("{field}.whenUnsatisfiable"), &problem, &fix);
    }
}

fn of_type(at: usize, entry: &CatalogType) -> Vec<String> {
    let mut found = Found::new(format!("instanceTypes[{at}] {}", entry.name));
    if entry.name.as_str().is_empty() {
        found.add("name", "is empty", "write the type's name");
    }
    found.amounts("capacity", &entry.capacity);
    found.lines
}
