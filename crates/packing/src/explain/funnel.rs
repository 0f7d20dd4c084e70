//! How many instance types each condition of a NodePool leaves, before and after a pod comes along.

use std::{cmp::Reverse, sync::Arc};

use model::{
    instance_type::{InstanceType, MinValuesUnmet, needed_for_min_values},
    object::{NodePool, NodeSelectorRequirement, Pod},
    requirement::{Requirement, Requirements},
    snapshot::{CatalogType, MinValuesPolicy, TypeReader},
    vocabulary::Vocabulary,
};
use rustc_hash::FxHashMap;

use super::{
    PoolFunnel, Stage,
    constraint::{Constraint, MinValues},
    labels::only,
};
use crate::{
    refusal::Refused,
    run::Run,
    supply::{is_launchable, requirement_specs, template_requirements},
};

/// Instance types on their way through the conditions.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) types: Vec<Arc<InstanceType>>,
    stages: Vec<Stage>,
}

impl Walk {
    /// Keeps the types that meet a condition.
    pub(super) fn keep(&mut self, constraint: Constraint, text: String, is_met: impl Fn(&InstanceType) -> bool) {
        self.types.retain(|entry| is_met(entry));
        self.note(constraint, text, self.types.len());
    }

    /// Keeps all types or none.
    pub(super) fn gate(&mut self, constraint: Constraint, text: String, is_open: bool) {
        self.keep(constraint, text, |_| is_open);
    }

    /// Writes down what a condition left.
    pub(super) fn note(&mut self, constraint: Constraint, text: String, remaining: usize) {
        self.stages.push(Stage {
            constraint,
            text,
            remaining,
        });
    }

    /// Keeps fewer types in the name of the last condition.
    pub(super) fn keep_on(&mut self, is_met: impl Fn(&InstanceType) -> bool) {
        self.types.retain(|entry| is_met(entry));
        if let Some(last) = self.stages.last_mut() {
            last.remaining = self.types.len();
        }
    }

    fn finish(self, pool: &NodePool) -> PoolFunnel {
        PoolFunnel {
            pool: pool.name(),
            is_beside: false,
            blocking: self.stages.iter().position(|stage| stage.remaining == 0),
            stages: self.stages,
        }
    }
}

/// The funnels of one pod at the end of a run.
pub(super) struct Funnels<'r, 'p> {
    pub(super) run: &'r mut Run<'p>,
    pub(super) pod: u32,
    pub(super) refused: &'r Refused,
    vocabulary: Vocabulary,
    /// The types as they were read, whoever offers them.
    pub(super) catalogue: FxHashMap<*const CatalogType, Arc<InstanceType>>,
}

impl<'r, 'p> Funnels<'r, 'p> {
    pub(super) fn new(run: &'r mut Run<'p>, pod: u32, refused: &'r Refused) -> Self {
        // The run knows all names already, so numbers stay the same.
        let mut vocabulary = run.problem.vocabulary.clone();
        let catalog = run.problem.snapshot.catalog();
        // Pools of one node class have the very same types: these are read once.
        let variants = catalog.node_pool_variants.values().flatten();
        let mut reader = TypeReader::default();
        let mut catalogue = FxHashMap::default();
        for entry in catalog.instance_types.iter().chain(variants) {
            let read = || Arc::new(reader.read(entry, &mut vocabulary));
            catalogue.entry(Arc::as_ptr(entry)).or_insert_with(read);
        }
        Self {
            run,
            pod,
            refused,
            vocabulary,
            catalogue,
        }
    }

    /// All NodePools, heaviest first.
    pub(super) fn all(mut self) -> Vec<PoolFunnel> {
        let mut pools: Vec<_> = self.run.problem.snapshot.objects().node_pools.iter().cloned().collect();
        pools.sort_by_key(|pool| Reverse((pool.spec.weight.unwrap_or(0), pool.metadata.name.clone())));
        let mut funnels: Vec<PoolFunnel> = pools.iter().map(|pool| self.of_pool(pool)).collect();
        let wanted = wanted_labels(self.pod_object());
        let meant = |(key, values): &&(&str, Vec<&str>)| pools.iter().any(|pool| defines(pool, key, values));
        let meant: Vec<_> = wanted.iter().filter(meant).collect();
        for (funnel, pool) in funnels.iter_mut().zip(&pools) {
            let lacks = |(key, values): &&(&str, Vec<&str>)| self.lacks(pool, key, values);
            funnel.is_beside = meant.iter().copied().any(|label| lacks(&label));
        }
        funnels
    }

    /// Whether no node of a NodePool can have one of these values of a label.
    fn lacks(&self, pool: &NodePool, key: &str, values: &[&str]) -> bool {
        if defines(pool, key, values) {
            return false;
        }
        let mut named = pool.spec.template.spec.requirements.iter();
        let is_fixed = pool.spec.template.metadata.labels.get(key).is_some()
            || named.any(|it| *it.key == *key && *it.operator == *"In");
        let vocabulary = &self.run.problem.vocabulary;
        // What types and zones say is theirs to have; a label of the users' own has to be written.
        is_fixed || !vocabulary.key(key).is_some_and(|key| vocabulary.is_well_known(key))
    }

    fn of_pool(&mut self, pool: &NodePool) -> PoolFunnel {
        let mut walk = self.offered(pool);
        if let Some(why) = no_part(pool) {
            walk.gate(Constraint::TakesNoPart, why, false);
            return walk.finish(pool);
        }
        let requirements = self.own_requirements(pool, &mut walk);
        let problem = self.run.problem;
        let template = problem.templates.iter().position(|entry| {
            let of = &entry.template.pool.metadata.name;
            *of == pool.metadata.name
        });
        match template {
            None => self.pool_min_values(&requirements, &mut walk),
            Some(template) => {
                // The same types, as overlays leave them.
                walk.types.clone_from(&problem.templates[template].template.types);
                self.pod_stages(template, &mut walk);
            }
        }
        walk.finish(pool)
    }

    fn offered(&self, pool: &NodePool) -> Walk {
        let name = pool.name();
        let names = self.run.problem.snapshot.catalog().of_pool(&name);
        let types = names.filter_map(|entry| self.catalogue.get(&Arc::as_ptr(entry)).cloned());
        let mut walk = Walk {
            types: types.collect(),
            stages: Vec::new(),
        };
        walk.gate(
            Constraint::Offered,
            "instance types of the NodePool's node class".to_owned(),
            true,
        );
        walk
    }

    /// What the pool itself rules out, whoever comes.
    fn own_requirements(&mut self, pool: &NodePool, walk: &mut Walk) -> Requirements {
        for spec in requirement_specs(&pool.spec.template.spec.requirements) {
            let requirement = Requirement::from_spec(&spec, &mut self.vocabulary);
            let text = format!(
                "NodePool spec.template.spec.requirements {}",
                requirement.text(&self.vocabulary)
            );
            let one = only(&requirement);
            let is_met = |entry: &InstanceType| entry.requirements.intersects(&one, &self.vocabulary);
            walk.keep(Constraint::PoolRequirement { key: spec.key }, text, is_met);
        }
        let requirements = template_requirements(pool, &mut self.vocabulary);
        let is_met = |entry: &InstanceType| entry.requirements.intersects(&requirements, &self.vocabulary);
        if !walk.types.iter().all(|entry| is_met(entry)) {
            let text = "NodePool spec.template.metadata.labels".to_owned();
            walk.keep(Constraint::PoolLabels, text, is_met);
        }
        let text = "an offering in a zone and capacity type of the NodePool that can be had now".to_owned();
        walk.keep(Constraint::PoolOffering, text, |entry| {
            is_launchable(entry, &requirements, &self.vocabulary)
        });
        requirements
    }

    /// A pool that takes part and yet has no template has too few different types.
    fn pool_min_values(&self, requirements: &Requirements, walk: &mut Walk) {
        if walk.types.is_empty() {
            return;
        }
        let types = walk.types.iter().map(Arc::as_ref);
        let unmet = needed_for_min_values(types, requirements, &self.vocabulary).err();
        let unmet = unmet.map(|unmet| min_values(&unmet, requirements, &self.vocabulary));
        if let Some((unmet, text)) = unmet {
            walk.gate(Constraint::PoolMinValues(unmet), text, false);
        }
    }

    pub(super) fn min_values_stage(&self, requirements: &Requirements, walk: &mut Walk) {
        if !requirements.has_min_values() || walk.types.is_empty() {
            return;
        }
        let is_strict = self.run.problem.snapshot.settings().min_values_policy == MinValuesPolicy::Strict;
        let types = walk.types.iter().map(Arc::as_ref);
        let vocabulary = &self.run.problem.vocabulary;
        if let Err(unmet) = needed_for_min_values(types, requirements, vocabulary) {
            let (unmet, text) = min_values(&unmet, requirements, vocabulary);
            walk.gate(Constraint::MinValues(unmet), text, !is_strict);
        }
    }
}

/// The labels that a pod asks for by value, wherever it runs: its selector, and its affinity where that is one term.
fn wanted_labels(pod: &Pod) -> Vec<(&str, Vec<&str>)> {
    let selector = pod.spec.node_selector.iter();
    let mut wanted: Vec<_> = selector.map(|(key, value)| (&**key, vec![&**value])).collect();
    let affinity = pod.spec.affinity.as_ref().and_then(|it| it.node_affinity.as_ref());
    let terms = affinity
        .and_then(|it| it.required.as_ref())
        .map(|it| &*it.node_selector_terms);
    if let Some([only]) = terms {
        let named = only.match_expressions.iter().filter(|it| *it.operator == *"In");
        wanted.extend(named.map(|it| (&*it.key, it.values.iter().map(|value| &**value).collect())));
    }
    wanted
}

/// Whether a NodePool says that its nodes have one of these values of a label.
fn defines(pool: &NodePool, key: &str, values: &[&str]) -> bool {
    let template = &pool.spec.template;
    let is_one = |value: &str| values.contains(&value);
    let names = |it: &NodeSelectorRequirement| {
        *it.key == *key && *it.operator == *"In" && it.values.iter().any(|value| is_one(value))
    };
    template.metadata.labels.get(key).is_some_and(|value| is_one(value)) || template.spec.requirements.iter().any(names)
}

/// The first label of which there are too few values.
fn min_values(unmet: &MinValuesUnmet, requirements: &Requirements, vocabulary: &Vocabulary) -> (MinValues, String) {
    let (key, achieved) = unmet
        .labels
        .iter()
        .next()
        .map_or_else(Default::default, |(key, achieved)| (key.clone(), *achieved));
    let requirement = vocabulary.key(&key).and_then(|key| requirements.get(key));
    let wanted = requirement.and_then(Requirement::min_values).unwrap_or_default();
    let text = format!("NodePool spec.template.spec.requirements {key} minValues {wanted}: {achieved} are left");
    (MinValues { key, wanted, achieved }, text)
}

fn no_part(pool: &NodePool) -> Option<String> {
    if pool.is_static() {
        Some("NodePool spec.replicas: a static pool launches nothing for pods".to_owned())
    } else if pool.metadata.is_deleting() {
        Some("NodePool metadata.deletionTimestamp: it is being deleted".to_owned())
    } else if pool.is_ready() {
        None
    } else {
        Some("NodePool status.conditions: it is not Ready".to_owned())
    }
}
