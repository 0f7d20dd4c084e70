//! Everything the rules look at: the objects given, sorted by what they are, with the catalogues of their clouds.

mod install;
mod scaler;
mod sorted;
mod workload;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    labels::{REGION, ZONE},
    provider::Provider,
};
use catalogue::{NodeClass, Source};
use jiff::Timestamp;
use model::{
    instance_type::InstanceType,
    object::{Node, NodeClaim, NodePool, Pod},
    requirement::Requirements,
    snapshot::Catalog,
};
use serde_json::Value;

pub(crate) use self::{install::Install, scaler::Scaler, workload::Workload};
use crate::{
    document::Document,
    finding::{Change, Edit, Finding, Found},
    rule::Rule,
    supply::{Supply, admits},
};

/// The annotation that silences rules on an object: a code and the reason, several of them in lines.
pub const IGNORE: &str = "dovetail.dev/lint-ignore";

/// How much of a cluster the objects are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Some manifests: what is not among them may exist all the same.
    Some,
    /// A whole cluster, as a dump or live.
    Whole,
}

/// What the API server says to one of the objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The object's place among those given.
    pub document: usize,
    /// The field.
    pub path: String,
    /// What the API server says.
    pub text: String,
}

/// Everything the rules look at.
#[derive(Debug)]
pub struct World {
    pub(crate) documents: Vec<Document>,
    pub(crate) scope: Scope,
    pub(crate) now: Timestamp,
    pub(crate) rejections: Vec<Rejection>,
    pub(crate) pools: Vec<Pool>,
    /// Node classes of every cloud.
    pub(crate) classes: Vec<usize>,
    pub(crate) workloads: Vec<Workload>,
    /// PodDisruptionBudgets.
    pub(crate) pdbs: Vec<usize>,
    pub(crate) scalers: Vec<Scaler>,
    pub(crate) installs: Vec<Install>,
    pub(crate) nodes: Vec<Arc<Node>>,
    pub(crate) claims: Vec<Arc<NodeClaim>>,
    pub(crate) pods: Vec<Arc<Pod>>,
    /// What says what it is and cannot be read as that, a sentence each.
    unread: Vec<String>,
    supplies: BTreeMap<Source, Supply>,
}

/// A NodePool, and what its requirements come to.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "the pool itself, among what is known of it")]
pub(crate) struct Pool {
    pub(crate) document: usize,
    pub(crate) pool: NodePool,
    pub(crate) source: Option<Source>,
    /// By the vocabulary of its cloud's supply.
    pub(crate) requirements: Requirements,
    /// The places of the types they leave among those of the supply.
    left: Vec<usize>,
}

impl World {
    /// Sorts objects. What cannot be read as what it says it is takes no part, except in what the API server rejects.
    pub fn new(documents: Vec<Document>, scope: Scope, now: Timestamp, rejections: Vec<Rejection>) -> Self {
        let mut world = Self {
            documents,
            scope,
            now,
            rejections,
            pools: Vec::new(),
            classes: Vec::new(),
            workloads: Vec::new(),
            pdbs: Vec::new(),
            scalers: Vec::new(),
            installs: Vec::new(),
            nodes: Vec::new(),
            claims: Vec::new(),
            pods: Vec::new(),
            unread: Vec::new(),
            supplies: BTreeMap::new(),
        };
        world.sort();
        world.load();
        world
    }

    /// What took no part, because it cannot be read as what it says it is: a sentence each.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// Whether something says how the controller is installed.
    pub fn has_installation(&self) -> bool {
        !self.installs.is_empty()
    }

    /// How many objects, values files and fragments were given.
    pub fn counts(&self) -> (usize, usize, usize) {
        let helm = self.installs.iter().filter(|install| install.is_values).count();
        let is_object = |document: &&Document| document.value["kind"].is_string();
        let objects = self.documents.iter().filter(is_object).count() + self.pods.len() + self.nodes.len();
        let objects = objects + self.claims.len();
        let fragments = self.workloads.iter().filter(|workload| workload.is_fragment()).count();
        (objects, helm, fragments)
    }

    /// The catalogue of each cloud in use, for the regions that pools and nodes name.
    fn load(&mut self) {
        let (zones, region) = (self.zones(), self.region());
        let sources: BTreeSet<Source> = self.pools.iter().filter_map(|pool| pool.source).collect();
        for source in sources {
            let known = region.as_deref().filter(|_| source != Source::Kwok);
            let pools = self.pools.iter().filter(|pool| pool.source == Some(source));
            let with_class = pools.map(|pool| {
                let class = self
                    .class_of(pool)
                    .and_then(|(_, class)| NodeClass::read(source, class));
                (&pool.pool, class)
            });
            if let Some(supply) = Supply::load(source, known, &zones, with_class) {
                self.supplies.insert(source, supply);
            }
        }
        for pool in &mut self.pools {
            let supply = pool.source.and_then(|source| self.supplies.get_mut(&source));
            if let Some(supply) = supply {
                pool.requirements = packing::supply::template_requirements(&pool.pool, &mut supply.vocabulary);
            }
        }
        for pool in &mut self.pools {
            let supply = pool.source.and_then(|source| self.supplies.get(&source));
            if let Some(supply) = supply {
                let types = supply.of_pool(&pool.pool).iter().enumerate();
                let left = types.filter(|(_, entry)| admits(entry, &pool.requirements, &supply.vocabulary));
                pool.left = left.map(|(at, _)| at).collect();
            }
        }
    }

    fn zones(&self) -> Vec<String> {
        let of_nodes = self.nodes.iter().filter_map(|node| node.metadata.labels.get(ZONE));
        let requirements = self
            .pools
            .iter()
            .flat_map(|pool| &pool.pool.spec.template.spec.requirements);
        let of_pools = requirements.filter(|requirement| *requirement.key == *ZONE && *requirement.operator == *"In");
        let zones: BTreeSet<_> = of_nodes
            .chain(of_pools.flat_map(|requirement| &requirement.values))
            .map(ToString::to_string)
            .collect();
        zones.into_iter().collect()
    }

    /// The region that nodes are in, or that the zones of pools name.
    pub(crate) fn region(&self) -> Option<String> {
        let mut of_nodes = self.nodes.iter().filter_map(|node| node.metadata.labels.get(REGION));
        let of_zone = |zone: &String| {
            let region = zone.trim_end_matches(|sign: char| sign.is_ascii_lowercase());
            let is_plain = region.ends_with(|sign: char| sign.is_ascii_digit()) && region.contains('-');
            (is_plain && region.len() < zone.len()).then(|| region.to_owned())
        };
        let known = of_nodes.next().map(ToString::to_string);
        known.or_else(|| self.zones().iter().find_map(of_zone))
    }

    /// The catalogue of a pool's cloud, if it is known.
    pub(crate) fn supply(&self, pool: &Pool) -> Option<&Supply> {
        self.supplies.get(&pool.source?)
    }

    /// What a cloud sells, as the planner reads it.
    pub(crate) fn catalog(&self, source: Source) -> Option<Arc<Catalog>> {
        self.supplies.get(&source).map(|supply| Arc::clone(&supply.catalog))
    }

    /// The types a pool's requirements leave; none where the cloud is unknown.
    pub(crate) fn left<'a>(&'a self, pool: &Pool) -> Vec<&'a InstanceType> {
        let Some(supply) = self.supply(pool) else {
            return Vec::new();
        };
        let types = supply.of_pool(&pool.pool);
        pool.left.iter().filter_map(|at| types.get(*at)).collect()
    }

    /// The object at a place.
    pub(crate) fn value(&self, document: usize) -> &Value {
        self.documents
            .get(document)
            .map_or(&Value::Null, |document| &document.value)
    }

    /// The node class a pool uses, if it is among the objects.
    pub(crate) fn class_of(&self, pool: &Pool) -> Option<(usize, &Value)> {
        let wanted = pool.pool.spec.template.spec.node_class_ref.as_ref()?;
        let classes = self.classes.iter().map(|at| (*at, self.value(*at)));
        let mut named = classes.filter(|(_, class)| {
            class["kind"] == *wanted.kind && class["metadata"]["name"].as_str() == Some(&*wanted.name)
        });
        named.next()
    }

    /// The pools that use a node class.
    pub(crate) fn pools_of(&self, class: usize) -> impl Iterator<Item = &Pool> {
        self.pools
            .iter()
            .filter(move |pool| self.class_of(pool).is_some_and(|(at, _)| at == class))
    }

    /// Whether the objects are a whole cluster.
    pub(crate) fn is_whole(&self) -> bool {
        self.scope == Scope::Whole
    }

    /// What a rule found, with everything a reader needs; none where the object's owner silenced the rule.
    pub(crate) fn finding(&self, rule: &Rule, found: Found) -> Option<Finding> {
        let document = self.documents.get(found.document)?;
        let mut text = found.text;
        match silenced(&document.value, rule.code) {
            Silence::Reasoned => return None,
            Silence::WithoutReason => text.push_str(" (lint-ignore names it without a reason, which it needs)"),
            Silence::None => {}
        }
        let line = document.line(&found.path);
        Some(Finding {
            code: rule.code,
            rule: rule.name,
            severity: found.severity.unwrap_or(rule.severity),
            object: self.label(found.document),
            title: self.title(found.document),
            source: document.source.to_string(),
            line,
            edit: found.change.and_then(|change| edit(document, &found.path, &change)),
            path: found.path,
            text,
            why: found.why.unwrap_or_else(|| rule.why.to_owned()),
            fix: found.fix.unwrap_or_else(|| rule.fix.to_owned()),
        })
    }

    /// `nodepool/general`, `deployment/shop/cart`.
    fn label(&self, at: usize) -> String {
        let value = self.value(at);
        let Some(kind) = value["kind"].as_str() else {
            let is_helm = self.installs.iter().any(|install| install.document == at);
            return if is_helm { "helm values" } else { "fragment" }.to_owned();
        };
        let kind = match kind {
            "PodDisruptionBudget" => "pdb".to_owned(),
            "HorizontalPodAutoscaler" => "hpa".to_owned(),
            other => other.to_lowercase(),
        };
        let metadata = &value["metadata"];
        let name = metadata["name"].as_str().unwrap_or("?");
        match metadata["namespace"].as_str() {
            Some(namespace) => format!("{kind}/{namespace}/{name}"),
            None => format!("{kind}/{name}"),
        }
    }

    /// `NodePool/general`.
    fn title(&self, at: usize) -> String {
        let value = self.value(at);
        match (value["kind"].as_str(), value["metadata"]["name"].as_str()) {
            (Some(kind), Some(name)) => format!("{kind}/{name}"),
            _ => self.label(at),
        }
    }
}

/// What an object's owner says to a rule.
enum Silence {
    None,
    Reasoned,
    WithoutReason,
}

fn silenced(value: &Value, code: &str) -> Silence {
    let told = value["metadata"]["annotations"][IGNORE].as_str().unwrap_or_default();
    let lines = told.split(['\n', ';']).map(str::trim);
    let of_rule = |line: &str| Some(line.strip_prefix(code)?.trim_start_matches([':', ' ']).to_owned());
    match lines.filter_map(of_rule).max() {
        None => Silence::None,
        Some(reason) if reason.is_empty() => Silence::WithoutReason,
        Some(_) => Silence::Reasoned,
    }
}

/// The change of a line, if it is one.
fn edit(document: &Document, path: &str, change: &Change) -> Option<Edit> {
    let line = document.exact_line(path)?;
    let before = document.text_of(line)?;
    let after = match change {
        Change::Replace(from, to) => {
            let at = before.find(from.as_str())?;
            let (head, tail) = (before.get(..at)?, before.get(at + from.len()..)?);
            format!("{head}{to}{tail}")
        }
        Change::Below(added) => {
            let indent = before.len() - before.trim_start_matches([' ', '-']).len();
            format!("{before}\n{}{added}", " ".repeat(indent))
        }
        Change::Inside(added) => {
            let next = document.text_of(line + 1)?;
            let indent = next.len() - next.trim_start_matches(' ').len();
            format!("{before}\n{}{added}", " ".repeat(indent))
        }
    };
    Some(Edit {
        line,
        before: before.to_owned(),
        after,
    })
}

/// The cloud whose node classes are of a kind.
pub(crate) fn provider(source: Source) -> Provider {
    match source {
        Source::Aws => Provider::Aws,
        Source::Azure => Provider::Azure,
        Source::Kwok => Provider::Kwok,
    }
}
