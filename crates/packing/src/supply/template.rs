//! What a NodePool's nodes will be, and which of its instance types can be launched at all.

use std::sync::Arc;

use api::labels::{INITIALIZED, NODEPOOL, REGISTERED, node_class_key};
use model::{
    instance_type::{InstanceType, needed_for_min_values},
    object::{NodePool, NodeSelectorRequirement},
    requirement::{Operator, Requirement, RequirementSpec, Requirements},
    snapshot::{MinValuesPolicy, Snapshot},
    vocabulary::Vocabulary,
};

use super::{
    DroppedPool, Template,
    daemon::Daemons,
    pool::{PoolOffer, Pools},
    stock::{Launchable, shapes},
};

/// Makes templates, in the order of the pools.
#[derive(Debug)]
pub(super) struct TemplateFactory<'a> {
    min_values: MinValuesPolicy,
    vocabulary: &'a mut Vocabulary,
    daemons: &'a mut Daemons,
}

impl<'a> TemplateFactory<'a> {
    pub(super) fn new(snapshot: &Snapshot, vocabulary: &'a mut Vocabulary, daemons: &'a mut Daemons) -> Self {
        Self {
            min_values: snapshot.settings().min_values_policy,
            vocabulary,
            daemons,
        }
    }

    /// The pools that can launch something, and those that cannot. Limits are not looked at yet.
    pub(super) fn templates(&mut self, pools: &Pools) -> (Vec<Template>, Vec<DroppedPool>) {
        let (mut templates, mut dropped) = (Vec::new(), Vec::new());
        for offer in pools.iter() {
            match self.template(offer) {
                Ok(template) => templates.push(template),
                Err(pool) => dropped.push(pool),
            }
        }
        for template in &mut templates {
            template.daemons = self.daemons.groups(template, self.vocabulary);
        }
        (templates, dropped)
    }

    fn template(&mut self, offer: &PoolOffer) -> Result<Template, DroppedPool> {
        let requirements = requirements(&offer.pool, self.vocabulary);
        let dropped = |is_min_values| DroppedPool {
            pool: offer.pool.metadata.name.clone(),
            is_min_values,
        };
        let mut launchable = Launchable::new(&requirements, self.vocabulary);
        let wares = offer
            .types
            .iter()
            .filter(|ware| launchable.admits(&ware.entry, &ware.shapes));
        let (types, shapes): (Vec<_>, Vec<_>) = wares.cloned().map(|ware| (ware.entry, ware.shapes)).unzip();
        if self.min_values == MinValuesPolicy::Strict && requirements.has_min_values() {
            let enough = needed_for_min_values(types.iter().map(Arc::as_ref), &requirements, self.vocabulary);
            if enough.is_err() {
                return Err(dropped(true));
            }
        }
        if types.is_empty() {
            return Err(dropped(false));
        }
        Ok(Template {
            pool: Arc::clone(&offer.pool),
            requirements,
            types,
            shapes,
            daemons: Vec::new(),
            remaining: None,
        })
    }
}

/// What the pool asks of its nodes: its requirements and the labels of its template.
pub(super) fn pool_requirements(pool: &NodePool, vocabulary: &mut Vocabulary) -> Requirements {
    let template = &pool.spec.template;
    let mut requirements = Requirements::from_specs(&specs(&template.spec.requirements), vocabulary);
    let labels = template.metadata.labels.iter();
    let labels = Requirements::from_labels(labels.map(|(key, value)| (&**key, &**value)), vocabulary);
    requirements.add_all(&labels, vocabulary);
    requirements
}

/// Beyond what the pool asks, its nodes carry its name and its class's, and will register and initialise: there are
/// daemons that wait for that.
pub fn requirements(pool: &NodePool, vocabulary: &mut Vocabulary) -> Requirements {
    let mut requirements = pool_requirements(pool, vocabulary);
    let class = pool.spec.template.spec.node_class_ref.as_ref();
    let class = class.map(|class| (node_class_key(&class.group, &class.kind), class.name.clone()));
    let own = [
        (NODEPOOL, &*pool.metadata.name),
        (REGISTERED, "true"),
        (INITIALIZED, "true"),
    ];
    let own = own
        .into_iter()
        .chain(class.iter().map(|(key, name)| (key.as_str(), &**name)));
    for (key, value) in own {
        let requirement = Requirement::parse(key, Operator::In, [value], vocabulary);
        requirements.add(requirement, vocabulary);
    }
    requirements
}

pub(crate) fn specs(requirements: &[NodeSelectorRequirement]) -> Vec<RequirementSpec> {
    let spec = |requirement: &NodeSelectorRequirement| {
        let values: Vec<_> = requirement.values.iter().map(AsRef::as_ref).collect();
        RequirementSpec {
            min_values: requirement.min_values.and_then(|count| u32::try_from(count).ok()),
            // What is no operator admits any value upstream.
            ..RequirementSpec::new(
                &requirement.key,
                requirement.operator.parse().unwrap_or(Operator::Exists),
                &values,
            )
        }
    };
    requirements.iter().map(spec).collect()
}

/// Whether a node of the type that meets the requirements can be had, with room for a pod that asks for nothing.
pub(crate) fn is_launchable(candidate: &InstanceType, requirements: &Requirements, vocabulary: &Vocabulary) -> bool {
    Launchable::new(requirements, vocabulary).admits(candidate, &shapes(candidate))
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "literals read better by value")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        Options,
        demand::fixture::{instance_type, node_pool, snapshot_with},
        supply::Supply,
    };

    fn pool(requirements: Value) -> Value {
        node_pool(
            "p",
            json!({ "spec": { "template": { "spec": { "requirements": requirements } } } }),
        )
    }

    /// The supply of a pool with these requirements over the types small (z1, z2), large (z1) and gone (not available).
    fn supply(requirements: Value, settings: Value) -> Supply {
        let mut gone = instance_type("gone", "1", &["z1"]);
        gone["offerings"][0]["available"] = false.into();
        let mut overdrawn = instance_type("overdrawn", "1", &["z1"]);
        overdrawn["overhead"] = json!({ "kubeReserved": { "cpu": "2" } });
        let types = json!([
            instance_type("small", "1", &["z1", "z2"]),
            instance_type("large", "8", &["z1"]),
            gone,
            overdrawn,
        ]);
        let file = json!({ "instanceTypes": types, "settings": settings });
        Supply::of(&snapshot_with(file, vec![pool(requirements)]), &Options::default())
    }

    fn types(supply: &Supply) -> Vec<&str> {
        let types = supply.templates.iter().flat_map(|template| &template.types);
        types.map(|it| &*it.name).collect()
    }

    #[test]
    fn template_promises_what_the_pool_asks_and_that_its_nodes_will_start() {
        let template = json!({
            "metadata": { "labels": { "team": "a" } },
            "spec": { "requirements": [{ "key": "size", "operator": "Gt", "values": ["3"], "minValues": 2 }] },
        });
        let pool = node_pool("p", json!({ "spec": { "template": template } }));
        let pool = serde_json::from_value(pool).unwrap();
        let mut vocabulary = Vocabulary::new();
        let specs = requirements(&pool, &mut vocabulary).to_specs(&vocabulary);
        let texts: Vec<_> = specs
            .iter()
            .map(|spec| format!("{} {} {}", spec.key, spec.operator, spec.values.join(" ")))
            .collect();
        let expected = [
            "cloud/cloudclass In default",
            "karpenter.sh/initialized In true",
            "karpenter.sh/nodepool In p",
            "karpenter.sh/registered In true",
            "size Gte 4",
            "team In a",
        ];
        assert_eq!(texts, expected);
        assert_eq!(specs[4].min_values, Some(2));
    }

    #[test]
    fn only_types_that_can_be_launched_now_remain() {
        assert_eq!(types(&supply(json!([]), json!({}))), ["small", "large"]);
        let in_z2 = json!([{ "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z2"] }]);
        assert_eq!(types(&supply(in_z2, json!({}))), ["small"]);
    }

    #[test]
    fn pool_without_a_type_is_dropped_with_the_reason() {
        let dropped = |is_min_values| {
            vec![DroppedPool {
                pool: "p".into(),
                is_min_values,
            }]
        };
        let arm = json!([{ "key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"] }]);
        let diverse = json!([{ "key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 3 }]);
        let best_effort = json!({ "minValuesPolicy": "BestEffort" });
        let none = supply(arm, json!({}));
        assert_eq!((types(&none), &none.dropped), (vec![], &dropped(false)));
        let too_few = supply(diverse.clone(), json!({}));
        assert_eq!((types(&too_few), &too_few.dropped), (vec![], &dropped(true)));
        let lowered = supply(diverse, best_effort);
        assert_eq!((types(&lowered), &lowered.dropped), (vec!["small", "large"], &vec![]));
    }
}
