//! Changes to a NodePool.

use model::{
    object::{Labels, List, NodePool, NodeSelectorRequirement, Taint, Text},
    quantity::Quantity,
    resources::ResourceName,
};
use serde_json::{Value, json};

use super::super::{
    change::{Candidate, Change, Edited, Target, yaml},
    constraint::MinValues,
    labels::taint_text,
};

/// A NodePool to be changed.
pub(in super::super) struct Pools<'a>(pub(in super::super) &'a NodePool);

/// One field of a pool.
struct Field {
    weight: u8,
    path: String,
    old: Option<String>,
    new: Option<String>,
    text: String,
    patch: Value,
}

impl Pools<'_> {
    fn change(&self, field: Field, edit: impl FnOnce(&mut NodePool)) -> Candidate {
        let mut pool = self.0.clone();
        edit(&mut pool);
        Candidate {
            weight: field.weight,
            change: Change {
                target: Target::NodePool(self.0.name()),
                path: field.path,
                old: field.old,
                new: field.new,
                text: format!("NodePool {}: {}", self.0.metadata.name, field.text),
                patch: yaml(&json!({ "spec": field.patch })),
            },
            edited: Edited::Pool(Box::new(pool)),
        }
    }

    /// With another limit, or none.
    pub(in super::super) fn limit(pool: &NodePool, resource: &ResourceName, new: Option<Quantity>) -> Candidate {
        let old = pool.spec.limits.amount(resource.as_str());
        let text = match new {
            Some(new) => format!("raise limits.{resource} from {old} to {new}"),
            None => format!("drop limits.{resource} {old}"),
        };
        let value = new.map_or(Value::Null, |new| new.to_string().into());
        let field = Field {
            weight: if new.is_some() { 6 } else { 37 },
            path: format!("spec.limits.{resource}"),
            old: Some(old.to_string()),
            new: new.map(|new| new.to_string()),
            text,
            patch: json!({ "limits": { resource.as_str(): value } }),
        };
        Pools(pool).change(field, |pool| match new {
            Some(new) => pool.spec.limits.set(resource.clone(), new),
            None => {
                pool.spec.limits.remove(resource.as_str());
            }
        })
    }

    /// Without some of its taints.
    pub(super) fn without_taints(&self, taints: &[Taint]) -> Option<Candidate> {
        let texts: Vec<_> = taints.iter().map(taint_text).collect();
        let own = &self.0.spec.template.spec.taints;
        let kept: Vec<_> = own.iter().filter(|taint| !taints.contains(taint)).cloned().collect();
        let field = Field {
            weight: 35,
            path: "spec.template.spec.taints".to_owned(),
            old: Some(texts.join(", ")),
            new: None,
            text: format!("drop taint {}", texts.join(", ")),
            patch: json!({ "template": { "spec": { "taints": kept } } }),
        };
        (!taints.is_empty()).then(|| {
            self.change(field, |pool| {
                pool.spec.template.spec.taints = model::object::List::from(kept).into();
            })
        })
    }

    /// Allowing more values of a label it restricts.
    pub(super) fn with_values(&self, key: &str, values: &[String]) -> Option<Candidate> {
        let mut requirements = self.0.spec.template.spec.requirements.to_vec();
        let own = requirements
            .iter_mut()
            .find(|it| *it.key == *key && *it.operator == *"In")?;
        let old = listed(&own.values);
        let missing = values
            .iter()
            .filter(|value| !own.values.iter().any(|it| **it == ***value));
        let missing: Vec<Text> = missing.map(|value| Text::from(value.as_str())).collect();
        if missing.is_empty() {
            return None;
        }
        own.values = own.values.iter().cloned().chain(missing.iter().cloned()).collect();
        let field = Field {
            weight: 31,
            path: format!("spec.template.spec.requirements[{key}].values"),
            old: Some(old),
            new: Some(listed(&own.values)),
            text: format!("allow {key} {}", listed(&missing)),
            patch: patch(&requirements),
        };
        Some(self.change(field, |pool| pool.spec.template.spec.requirements = requirements.into()))
    }

    /// Without one of its requirements.
    pub(super) fn without_requirement(&self, key: &str) -> Option<Candidate> {
        let own = &self.0.spec.template.spec.requirements;
        let dropped = own.iter().find(|it| *it.key == *key)?;
        let kept: Vec<_> = own.iter().filter(|it| *it.key != *key).cloned().collect();
        let old = format!("{} {}", dropped.operator, listed(&dropped.values));
        let field = Field {
            weight: 36,
            path: format!("spec.template.spec.requirements[{key}]"),
            text: format!("drop requirement {key} {old}"),
            old: Some(old),
            new: None,
            patch: patch(&kept),
        };
        Some(self.change(field, |pool| pool.spec.template.spec.requirements = kept.into()))
    }

    /// Launching no reserved capacity, so that pods need not wait for it.
    pub(super) fn without_reserved(&self) -> Option<Candidate> {
        let key = api::labels::CAPACITY_TYPE;
        let mut requirements = self.0.spec.template.spec.requirements.to_vec();
        let own = requirements.iter().position(|it| *it.key == *key);
        let unreserved: List<Text> = ["on-demand", "spot"].into_iter().map(Text::from).collect();
        let old = own.map(|at| format!("{} {}", requirements[at].operator, listed(&requirements[at].values)));
        match own.map(|at| &mut requirements[at]) {
            Some(own) if *own.operator == *"In" => {
                own.values = own.values.iter().filter(|it| ***it != *"reserved").cloned().collect();
            }
            Some(_) => return None,
            None => requirements.push(NodeSelectorRequirement {
                key: key.into(),
                operator: "In".into(),
                values: unreserved,
                min_values: None,
            }),
        }
        let values = &requirements.iter().find(|it| *it.key == *key)?.values;
        if values.is_empty() {
            return None;
        }
        let field = Field {
            weight: 33,
            path: format!("spec.template.spec.requirements[{key}].values"),
            old,
            new: Some(listed(values)),
            text: format!("launch only {key} {}", listed(values)),
            patch: patch(&requirements),
        };
        Some(self.change(field, |pool| pool.spec.template.spec.requirements = requirements.into()))
    }

    /// Without one of the labels it gives its nodes, each in turn.
    pub(super) fn with_one_label_less(&self) -> Vec<Option<Candidate>> {
        let own = &self.0.spec.template.metadata.labels;
        let without = |(key, value): &(Text, Text)| {
            let kept = own.iter().filter(|(other, _)| other != key).cloned();
            let labels = Labels::from_pairs(kept.collect());
            let field = Field {
                weight: 34,
                path: format!("spec.template.metadata.labels[{key}]"),
                old: Some(value.to_string()),
                new: None,
                text: format!("drop label {key}={value}"),
                patch: json!({ "template": { "metadata": { "labels": { &**key: null } } } }),
            };
            self.change(field, |pool| pool.spec.template.metadata.labels = labels.into())
        };
        own.iter().map(|label| Some(without(label))).collect()
    }

    /// Giving its nodes a label of the user's.
    pub(super) fn with_label(&self, key: &str, value: &str) -> Option<Candidate> {
        let template = &self.0.spec.template;
        let is_defined = template.metadata.labels.get(key).is_some()
            || template.spec.requirements.iter().any(|it| *it.key == *key)
            || key == api::labels::HOSTNAME;
        let labels = template.metadata.labels.iter().cloned();
        let labels = Labels::from_pairs(labels.chain([(key.into(), value.into())]).collect());
        let field = Field {
            weight: 30,
            path: format!("spec.template.metadata.labels[{key}]"),
            old: None,
            new: Some(value.to_owned()),
            text: format!("label nodes {key}={value}"),
            patch: json!({ "template": { "metadata": { "labels": { key: value } } } }),
        };
        (!is_defined).then(|| self.change(field, |pool| pool.spec.template.metadata.labels = labels.into()))
    }

    /// With a `minValues` that can be had.
    pub(super) fn with_min_values(&self, unmet: &MinValues) -> Option<Candidate> {
        let mut requirements = self.0.spec.template.spec.requirements.to_vec();
        let own = requirements
            .iter_mut()
            .find(|it| *it.key == *unmet.key && it.min_values.is_some())?;
        let old = own.min_values?;
        let new = i32::try_from(unmet.achieved)
            .ok()
            .filter(|new| *new > 0 && *new < old)?;
        own.min_values = Some(new);
        let field = Field {
            weight: 32,
            path: format!("spec.template.spec.requirements[{}].minValues", unmet.key),
            old: Some(old.to_string()),
            new: Some(new.to_string()),
            text: format!("lower minValues of {} from {old} to {new}", unmet.key),
            patch: patch(&requirements),
        };
        Some(self.change(field, |pool| pool.spec.template.spec.requirements = requirements.into()))
    }
}

fn patch(requirements: &[NodeSelectorRequirement]) -> Value {
    json!({ "template": { "spec": { "requirements": requirements } } })
}

fn listed(values: &[Text]) -> String {
    let values: Vec<_> = values.iter().map(AsRef::as_ref).collect();
    format!("[{}]", values.join(" "))
}
