//! Changes to a pod, made where its workload is written.

use std::sync::Arc;

use model::{
    object::{Affinity, Container, Labels, List, NodeSelectorTerm, Pod, PodSpec, Taint, Text, Toleration},
    quantity::Quantity,
    resources::ResourceName,
};
use serde_json::{Value, json};

use super::super::{
    change::{Candidate, Change, Edited, Target, yaml},
    constraint::TopologyKind,
    labels::{nearest, taint_text},
};

/// A pod to be changed.
pub(super) struct Pods<'a>(pub(super) &'a Pod);

/// One field of a pod.
struct Field {
    weight: u8,
    path: String,
    old: Option<String>,
    new: Option<String>,
    text: String,
    patch: Value,
}

impl Pods<'_> {
    fn change(&self, field: Field, edit: impl FnOnce(&mut PodSpec)) -> Candidate {
        let mut pod = self.0.clone();
        edit(Arc::make_mut(&mut pod.spec));
        let spec = json!({ "spec": field.patch });
        let is_made = self.0.metadata.controller().is_some();
        let patch = if is_made {
            json!({ "spec": { "template": spec } })
        } else {
            spec
        };
        Candidate {
            weight: field.weight,
            change: Change {
                target: Target::Pod,
                path: field.path,
                old: field.old,
                new: field.new,
                text: format!("pod: {}", field.text),
                patch: yaml(&patch),
            },
            edited: Edited::Pod(Box::new(pod)),
        }
    }

    /// With tolerations for taints.
    pub(super) fn tolerating(&self, taints: &[Taint]) -> Option<Candidate> {
        let toleration = |taint: &Taint| Toleration {
            key: taint.key.clone(),
            operator: if taint.value.is_empty() { "Exists" } else { "Equal" }.into(),
            value: taint.value.clone(),
            effect: taint.effect.clone(),
            toleration_seconds: None,
        };
        let texts: Vec<_> = taints.iter().map(taint_text).collect();
        let added = taints.iter().map(toleration);
        let tolerations: List<_> = self.0.spec.tolerations.iter().cloned().chain(added).collect();
        let field = Field {
            weight: 10,
            path: "spec.tolerations".to_owned(),
            old: None,
            new: Some(texts.join(", ")),
            text: format!("tolerate {}", texts.join(", ")),
            patch: json!({ "tolerations": tolerations }),
        };
        (!taints.is_empty()).then(|| self.change(field, |spec| spec.tolerations = tolerations))
    }

    /// With the value of the node selector that may have been meant.
    pub(super) fn corrected_selector(&self, key: &str, offered: &[String]) -> Option<Candidate> {
        let old = self.0.spec.node_selector.get(key)?;
        let new = nearest(old, offered.iter().map(String::as_str)).filter(|new| *new != &**old)?;
        let field = Field {
            weight: 0,
            path: format!("spec.nodeSelector[{key}]"),
            old: Some(old.to_string()),
            new: Some(new.to_owned()),
            text: format!("nodeSelector {key}={old} is perhaps meant to be {new}"),
            patch: json!({ "nodeSelector": { key: new } }),
        };
        Some(self.change(field, |spec| {
            spec.node_selector = replaced(&spec.node_selector, key, Some(new));
        }))
    }

    /// With the value of a term of the required node affinity that may have been meant.
    pub(super) fn corrected_term(&self, term: usize, key: &str, offered: &[String]) -> Option<Candidate> {
        let terms = required_terms(&self.0.spec);
        let expressions = &terms.get(term)?.match_expressions;
        let at = expressions
            .iter()
            .position(|it| *it.key == *key && *it.operator == *"In" && it.values.len() == 1)?;
        let old = expressions[at].values.first()?.clone();
        let new = nearest(&old, offered.iter().map(String::as_str)).filter(|new| *new != &*old)?;
        let mut changed = expressions.to_vec();
        changed[at].values = [Text::from(new)].into_iter().collect();
        let terms = with_term(terms, term, changed);
        let field = Field {
            weight: 1,
            path: format!("spec.affinity.nodeAffinity term {} {key}", term + 1),
            old: Some(old.to_string()),
            new: Some(new.to_owned()),
            text: format!("node affinity {key} In [{old}] is perhaps meant to be {new}"),
            patch: node_affinity(&terms),
        };
        Some(self.change(field, |spec| set_terms(spec, terms)))
    }

    /// Without asking for a label, field by field.
    pub(super) fn without_label(&self, key: &str) -> Vec<Candidate> {
        let mut found = Vec::new();
        if let Some(old) = self.0.spec.node_selector.get(key) {
            let field = Field {
                weight: 20,
                path: format!("spec.nodeSelector[{key}]"),
                old: Some(old.to_string()),
                new: None,
                text: format!("drop nodeSelector {key}={old}"),
                patch: json!({ "nodeSelector": { key: null } }),
            };
            found.push(self.change(field, |spec| {
                spec.node_selector = replaced(&spec.node_selector, key, None);
            }));
        }
        let terms = required_terms(&self.0.spec);
        if let Some(term) = terms.len().checked_sub(1) {
            found.extend(self.without_expression(terms, term, key));
        }
        found
    }

    fn without_expression(&self, terms: &[NodeSelectorTerm], term: usize, key: &str) -> Option<Candidate> {
        let expressions = &terms.get(term)?.match_expressions;
        let dropped = expressions.iter().find(|it| *it.key == *key)?;
        let kept: Vec<_> = expressions.iter().filter(|it| *it.key != *key).cloned().collect();
        // A term without a condition matches no node; without terms there is no condition.
        let changed = match (kept.is_empty(), terms.len()) {
            (true, 1) => Vec::new(),
            (true, _) => return None,
            _ => with_term(terms, term, kept),
        };
        let values: Vec<_> = dropped.values.iter().map(AsRef::as_ref).collect();
        let field = Field {
            weight: 21,
            path: format!("spec.affinity.nodeAffinity term {} {key}", term + 1),
            old: Some(format!("{} [{}]", dropped.operator, values.join(" "))),
            new: None,
            text: format!("drop node affinity {key} {} [{}]", dropped.operator, values.join(" ")),
            patch: node_affinity(&changed),
        };
        Some(self.change(field, |spec| set_terms(spec, changed)))
    }

    /// With the smallest difference between domains that opens one.
    pub(super) fn with_skew(&self, at: usize, needed: Option<i32>) -> Option<Candidate> {
        let mut spreads = self.0.spec.topology_spread_constraints.to_vec();
        let spread = spreads.get_mut(at)?;
        let old = spread.max_skew;
        let new = needed.filter(|needed| *needed > old)?;
        spread.max_skew = new;
        let field = Field {
            weight: 12,
            path: format!("spec.topologySpreadConstraints[{at}].maxSkew"),
            old: Some(old.to_string()),
            new: Some(new.to_string()),
            text: format!("raise maxSkew over {} from {old} to {new}", spread.topology_key),
            patch: json!({ "topologySpreadConstraints": spreads }),
        };
        Some(self.change(field, |spec| spec.topology_spread_constraints = spreads.into()))
    }

    /// With a spread that is only preferred.
    pub(super) fn spread_softly(&self, at: usize) -> Option<Candidate> {
        let mut spreads = self.0.spec.topology_spread_constraints.to_vec();
        let spread = spreads.get_mut(at)?;
        let old = std::mem::replace(&mut spread.when_unsatisfiable, "ScheduleAnyway".into());
        let field = Field {
            weight: 22,
            path: format!("spec.topologySpreadConstraints[{at}].whenUnsatisfiable"),
            old: Some(old.to_string()),
            new: Some("ScheduleAnyway".to_owned()),
            text: format!(
                "set whenUnsatisfiable of the spread over {} to ScheduleAnyway",
                spread.topology_key
            ),
            patch: json!({ "topologySpreadConstraints": spreads }),
        };
        Some(self.change(field, |spec| spec.topology_spread_constraints = spreads.into()))
    }

    /// Without a term of pod affinity or anti-affinity.
    pub(super) fn without_term(&self, kind: TopologyKind, at: usize) -> Option<Candidate> {
        let mut affinity = Affinity::clone(self.0.spec.affinity.as_ref()?);
        let (name, pods) = match kind {
            TopologyKind::Affinity => ("podAffinity", affinity.pod_affinity.as_mut()?),
            _ => ("podAntiAffinity", affinity.pod_anti_affinity.as_mut()?),
        };
        let mut terms = pods.required.to_vec();
        if at >= terms.len() {
            return None;
        }
        let dropped = terms.remove(at);
        let patch = json!({ "affinity": { name: { "requiredDuringSchedulingIgnoredDuringExecution": terms } } });
        pods.required = terms.into();
        let field = Field {
            weight: 23,
            path: format!("spec.affinity.{name}.requiredDuringSchedulingIgnoredDuringExecution[{at}]"),
            old: Some(dropped.topology_key.to_string()),
            new: None,
            text: format!("drop the required {name} term over {}", dropped.topology_key),
            patch,
        };
        Some(self.change(field, |spec| spec.affinity = Some(Arc::new(affinity))))
    }

    /// Without the last volume behind a claim.
    pub(super) fn without_volume(&self) -> Option<Candidate> {
        let mut volumes = self.0.spec.volumes.to_vec();
        let dropped = volumes.pop()?.name;
        let field = Field {
            weight: 25,
            path: format!("spec.volumes[{dropped}]"),
            old: Some(dropped.to_string()),
            new: None,
            text: format!("drop volume {dropped}"),
            patch: json!({ "volumes": [{ "name": dropped, "$patch": "delete" }] }),
        };
        Some(self.change(field, |spec| spec.volumes = volumes.into()))
    }

    /// Without the devices it claims.
    pub(super) fn without_devices(&self) -> Option<Candidate> {
        let claims = &self.0.spec.resource_claims;
        let names: Vec<_> = claims.iter().map(|claim| claim.name.to_string()).collect();
        let dropped = names.iter().map(|name| json!({ "name": name, "$patch": "delete" }));
        let field = Field {
            weight: 26,
            path: "spec.resourceClaims".to_owned(),
            old: Some(names.join(", ")),
            new: None,
            text: format!("drop resource claim {}", names.join(", ")),
            patch: json!({ "resourceClaims": dropped.collect::<Vec<_>>() }),
        };
        let unclaimed = |container: &Container| {
            let mut container = container.clone();
            container.resources.claims = List::default();
            container
        };
        (!names.is_empty()).then(|| {
            self.change(field, |spec| {
                spec.resource_claims = List::default();
                spec.containers = spec.containers.iter().map(unclaimed).collect();
                spec.init_containers = spec.init_containers.iter().map(unclaimed).collect();
            })
        })
    }

    /// Without one of its rules about other pods, each in turn.
    pub(super) fn with_one_rule_less(&self) -> Vec<Option<Candidate>> {
        let spreads = 0..self.0.spec.topology_spread_constraints.len();
        let affinity = self.0.spec.affinity.as_ref();
        let near = affinity.and_then(|it| it.pod_affinity.as_ref());
        let away = affinity.and_then(|it| it.pod_anti_affinity.as_ref());
        let near = 0..near.map_or(0, |it| it.required.len());
        let away = 0..away.map_or(0, |it| it.required.len());
        let softened = spreads.map(|at| self.spread_softly(at));
        let dropped = near.map(|at| self.without_term(TopologyKind::Affinity, at));
        let allowed = away.map(|at| self.without_term(TopologyKind::AntiAffinity, at));
        softened.chain(dropped).chain(allowed).collect()
    }

    /// Without ports on the host.
    pub(super) fn without_host_ports(&self) -> Option<Candidate> {
        let ports: Vec<i32> = self.ports().collect();
        let closed = |container: &Container| Container {
            ports: container
                .ports
                .iter()
                .map(|port| model::object::ContainerPort {
                    host_port: 0,
                    ..port.clone()
                })
                .collect(),
            ..container.clone()
        };
        let containers: List<_> = self.0.spec.containers.iter().map(closed).collect();
        let patched = containers.iter().filter(|it| !it.ports.is_empty()).map(|it| {
            let ports = it
                .ports
                .iter()
                .map(|port| json!({ "containerPort": port.container_port, "hostPort": null }));
            json!({ "name": it.name, "ports": ports.collect::<Vec<_>>() })
        });
        let field = Field {
            weight: 24,
            path: "spec.containers[*].ports[*].hostPort".to_owned(),
            old: Some(format!("{ports:?}")),
            new: None,
            text: format!("give up host ports {ports:?}"),
            patch: json!({ "containers": patched.collect::<Vec<_>>() }),
        };
        (!ports.is_empty()).then(|| self.change(field, |spec| spec.containers = containers))
    }

    fn ports(&self) -> impl Iterator<Item = i32> {
        let containers = self.0.spec.containers.iter();
        containers.flat_map(|it| it.ports.iter().map(|port| port.host_port).filter(|port| *port != 0))
    }

    /// With the request of the largest container lowered until a type has enough.
    pub(super) fn lowered(&self, resource: &ResourceName, asked: Quantity, most: Quantity) -> Option<Candidate> {
        let mut containers = self.0.spec.containers.to_vec();
        let name = resource.as_str();
        let request = |it: &Container| {
            let requests = &it.resources.requests;
            requests.get(name).unwrap_or_else(|| it.resources.limits.amount(name))
        };
        let at = (0..containers.len()).rev().max_by_key(|at| request(&containers[*at]))?;
        let old = request(&containers[at]);
        let new = rounded_down(resource, old - (asked - most)).with_format(old.format());
        if new.is_zero() || new.is_negative() {
            return None;
        }
        let container = &mut containers[at];
        container.resources.requests.set(resource.clone(), new);
        let is_extended = !matches!(
            resource,
            ResourceName::Cpu | ResourceName::Memory | ResourceName::EphemeralStorage
        );
        let mut resources = json!({ "requests": { name: new.to_string() } });
        if is_extended {
            container.resources.limits.set(resource.clone(), new);
            resources["limits"] = json!({ name: new.to_string() });
        }
        let called = container.name.clone();
        let field = Field {
            weight: 11,
            path: format!("spec.containers[{called}].resources.requests.{name}"),
            old: Some(old.to_string()),
            new: Some(new.to_string()),
            text: format!("lower the {name} request of container {called} from {old} to {new}"),
            patch: json!({ "containers": [{ "name": called, "resources": resources }] }),
        };
        Some(self.change(field, |spec| spec.containers = containers.into()))
    }
}

/// A number people would write: tens of millicores, whole Mi, whole devices.
fn rounded_down(resource: &ResourceName, quantity: Quantity) -> Quantity {
    let unit = match resource {
        ResourceName::Cpu => 10_000_000,
        ResourceName::Memory | ResourceName::EphemeralStorage => 1_000_000_000 << 20,
        _ => 1_000_000_000,
    };
    Quantity::from_nanos(quantity.nanos().div_euclid(unit) * unit, quantity.format())
}

fn replaced(labels: &Labels, key: &str, value: Option<&str>) -> Labels {
    let others = labels.iter().filter(|(other, _)| **other != *key).cloned();
    let new = value.map(|value| (Text::from(key), Text::from(value)));
    Labels::from_pairs(others.chain(new).collect())
}

fn required_terms(spec: &PodSpec) -> &[NodeSelectorTerm] {
    let affinity = spec.affinity.as_ref().and_then(|it| it.node_affinity.as_ref());
    let required = affinity.and_then(|it| it.required.as_ref());
    required.map_or(&[], |required| &required.node_selector_terms)
}

fn with_term(
    terms: &[NodeSelectorTerm],
    at: usize,
    expressions: Vec<model::object::NodeSelectorRequirement>,
) -> Vec<NodeSelectorTerm> {
    let mut terms = terms.to_vec();
    terms[at].match_expressions = expressions.into();
    terms
}

fn set_terms(spec: &mut PodSpec, terms: Vec<NodeSelectorTerm>) {
    let mut affinity = spec.affinity.as_deref().cloned().unwrap_or_default();
    if let Some(node) = affinity.node_affinity.as_mut() {
        node.required = (!terms.is_empty()).then(|| model::object::NodeSelector {
            node_selector_terms: terms.into(),
        });
    }
    spec.affinity = Some(Arc::new(affinity));
}

fn node_affinity(terms: &[NodeSelectorTerm]) -> Value {
    let required = if terms.is_empty() {
        Value::Null
    } else {
        json!({ "nodeSelectorTerms": terms })
    };
    json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } } })
}
