//! Do both start from the same? Pods, templates with their daemons, nodes with their room, domains and volumes, each as
//! a line of text under a name, so that a difference in a plan can be traced to what it began with.

use std::collections::{BTreeMap, BTreeSet};

use model::requirement::{RequirementSpec, Requirements};
use model::resources::ResourceList;
use model::snapshot::Snapshot;
use model::vocabulary::Vocabulary;
use packing::Options;
use packing::demand::Demand;
use packing::supply::{StateNode, Supply, Template};
use serde::Deserialize;

use crate::reference::Plan;
use crate::wording;

/// What upstream's scheduler starts from.
#[derive(Debug, Clone, Deserialize)]
pub struct Given {
    pods: Vec<String>,
    templates: Vec<GivenTemplate>,
    nodes: Vec<GivenNode>,
    domains: BTreeMap<String, Vec<String>>,
    volumes: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GivenTemplate {
    node_pool: String,
    requirements: Vec<RequirementSpec>,
    types: Vec<String>,
    remaining: Option<ResourceList>,
    daemons: Vec<GivenDaemons>,
}

#[derive(Debug, Clone, Deserialize)]
struct GivenDaemons {
    types: Vec<String>,
    overhead: Option<ResourceList>,
}

#[derive(Debug, Clone, Deserialize)]
struct GivenNode {
    name: String,
    initialized: bool,
    taints: Vec<String>,
    labels: BTreeMap<String, String>,
    remaining: ResourceList,
}

/// Facts by name.
type Facts = BTreeMap<String, String>;

/// What upstream starts from and we do not, or the other way round, a line each.
pub fn differences(snapshot: &Snapshot, plan: &Plan) -> Vec<String> {
    // Without a pod to place or a pool to launch from, upstream makes no scheduler that could be looked into.
    let Some(given) = &plan.given else {
        return Vec::new();
    };
    let (ours, mut theirs) = (ours(snapshot), upstream(given));
    for (pod, why) in &plan.ignored {
        theirs.insert(format!("ignored {pod}"), wording::in_one_order(why));
    }
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let absent = "absent".to_owned();
    names
        .into_iter()
        .filter(|name| ours.get(*name) != theirs.get(*name))
        .map(|name| {
            let [ours, theirs] = [&ours, &theirs].map(|facts| facts.get(name).unwrap_or(&absent));
            format!("{name}: {ours}\n      upstream: {theirs}")
        })
        .collect()
}

fn ours(snapshot: &Snapshot) -> Facts {
    let demand = Demand::of(snapshot);
    let supply = Supply::of(snapshot, &Options::default());
    let mut facts = Facts::new();
    let mut pods: Vec<String> = demand
        .pods
        .iter()
        .map(|pod| pod.pod.metadata.key().to_string())
        .collect();
    pods.sort();
    facts.insert("pods".to_owned(), pods.join(" "));
    for ignored in &demand.ignored {
        let why = wording::in_one_order(&ignored.message);
        facts.insert(format!("ignored {}", ignored.pod.metadata.key()), why);
    }
    let pools: Vec<String> = supply
        .templates
        .iter()
        .map(|template| template.pool.metadata.name.to_string())
        .collect();
    facts.insert("templates".to_owned(), pools.join(" "));
    for template in &supply.templates {
        our_template(template, &supply.vocabulary, &mut facts);
    }
    let nodes: Vec<&str> = supply.nodes.iter().map(|node| node.name.as_str()).collect();
    facts.insert("nodes".to_owned(), nodes.join(" "));
    for node in &supply.nodes {
        our_node(node, &mut facts);
    }
    let mut domains: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for domain in &supply.universe {
        let key = supply.vocabulary.key_name(domain.key);
        domains
            .entry(key)
            .or_default()
            .push(supply.vocabulary.value_name(domain.key, domain.value));
    }
    for (key, mut values) in domains {
        values.sort_unstable();
        facts.insert(format!("domains {key}"), values.join(" "));
    }
    let mut vocabulary = supply.vocabulary;
    for pod in &demand.pods {
        let Some(volumes) = &pod.volumes else { continue };
        let text = |specs: &Vec<RequirementSpec>| Requirements::from_specs(specs, &mut vocabulary).text(&vocabulary);
        let texts: Vec<String> = volumes.alternatives.iter().map(text).collect();
        if !texts.is_empty() {
            facts.insert(format!("volumes {}", pod.pod.metadata.key()), texts.join(" | "));
        }
    }
    facts
}

fn our_template(template: &Template, vocabulary: &Vocabulary, facts: &mut Facts) {
    let name = format!("template {}", template.pool.metadata.name);
    let types: Vec<&str> = template.types.iter().map(|it| &*it.name).collect();
    let groups = template.daemons.iter().map(|group| {
        let names: Vec<&str> = group.types.iter().filter_map(|at| types.get(*at).copied()).collect();
        format!("{}: {}", names.join(" "), non_zero(&group.overhead))
    });
    let mut groups: Vec<String> = groups.collect();
    groups.sort();
    facts.insert(format!("{name} daemons"), groups.join("; "));
    facts.insert(format!("{name} types"), types.join(" "));
    let requirements = template.requirements.to_specs(vocabulary);
    facts.insert(format!("{name} requirements"), specs(&requirements));
    facts.insert(
        format!("{name} remaining"),
        template.remaining.as_ref().map_or(String::new(), all),
    );
}

fn our_node(node: &StateNode, facts: &mut Facts) {
    let taints: Vec<String> = node.taints.iter().map(|taint| taint.view().to_string()).collect();
    let labels = node.labels.iter().map(|(key, value)| format!("{key}={value}"));
    facts.insert(format!("node {} taints", node.name), taints.join(" "));
    facts.insert(
        format!("node {} labels", node.name),
        labels.collect::<Vec<_>>().join(" "),
    );
    facts.insert(
        format!("node {} initialized", node.name),
        node.is_initialized.to_string(),
    );
    facts.insert(format!("node {} remaining", node.name), non_zero(&node.remaining));
}

fn upstream(given: &Given) -> Facts {
    let mut facts = Facts::new();
    facts.insert("pods".to_owned(), given.pods.join(" "));
    let pools: Vec<&str> = given
        .templates
        .iter()
        .map(|template| template.node_pool.as_str())
        .collect();
    facts.insert("templates".to_owned(), pools.join(" "));
    for template in &given.templates {
        let name = format!("template {}", template.node_pool);
        let groups = template.daemons.iter().map(|group| {
            let overhead = group.overhead.as_ref().map_or(String::new(), non_zero);
            format!("{}: {overhead}", group.types.join(" "))
        });
        let mut groups: Vec<String> = groups.collect();
        groups.sort();
        facts.insert(format!("{name} daemons"), groups.join("; "));
        facts.insert(format!("{name} types"), template.types.join(" "));
        facts.insert(format!("{name} requirements"), specs(&template.requirements));
        facts.insert(
            format!("{name} remaining"),
            template.remaining.as_ref().map_or(String::new(), all),
        );
    }
    let nodes: Vec<&str> = given.nodes.iter().map(|node| node.name.as_str()).collect();
    facts.insert("nodes".to_owned(), nodes.join(" "));
    for node in &given.nodes {
        let labels = node.labels.iter().map(|(key, value)| format!("{key}={value}"));
        facts.insert(format!("node {} taints", node.name), node.taints.join(" "));
        facts.insert(
            format!("node {} labels", node.name),
            labels.collect::<Vec<_>>().join(" "),
        );
        facts.insert(format!("node {} initialized", node.name), node.initialized.to_string());
        facts.insert(format!("node {} remaining", node.name), non_zero(&node.remaining));
    }
    for (key, values) in given.domains.iter().filter(|(_, values)| !values.is_empty()) {
        facts.insert(format!("domains {key}"), values.join(" "));
    }
    for (pod, alternatives) in &given.volumes {
        facts.insert(format!("volumes {pod}"), alternatives.join(" | "));
    }
    facts
}

fn specs(requirements: &[RequirementSpec]) -> String {
    let mut sorted = requirements.to_vec();
    for requirement in &mut sorted {
        requirement.values.sort();
    }
    sorted.sort();
    serde_json::to_string(&sorted).unwrap_or_default()
}

/// Amounts in nano-units; nothing of a resource is the same as not naming it.
fn non_zero(list: &ResourceList) -> String {
    let amounts = list.iter().filter(|(_, quantity)| !quantity.is_zero());
    let texts: Vec<String> = amounts
        .map(|(name, quantity)| format!("{}={}", name.as_str(), quantity.nanos()))
        .collect();
    texts.join(" ")
}

/// Amounts in nano-units; a limit of nothing is a limit.
fn all(list: &ResourceList) -> String {
    let texts: Vec<String> = list
        .iter()
        .map(|(name, quantity)| format!("{}={}", name.as_str(), quantity.nanos()))
        .collect();
    texts.join(" ")
}
