//! What a pod's conditions leave of a NodePool's instance types, in the order of upstream's tests.

use std::sync::Arc;

use model::{
    instance_type::InstanceType,
    object::{Pod, Taint, Toleration},
    quantity::Quantity,
    requirement::{Requirement, Requirements, UndefinedLabels},
    resources::{ResourceList, ResourceName},
    taint::check_tolerated,
    vocabulary::KeyId,
    volume::Volumes,
    words,
};

use super::{
    constraint::{Constraint, LabelField},
    funnel::{Funnels, Walk},
    labels::{offered, only, taint_text, wanted},
};
use crate::{finish, lanes, refusal, run::TemplateRefusal, variant::Variant};

/// A type, what pods may use of it by shape, and what daemons take.
struct Shaped {
    entry: Arc<InstanceType>,
    /// Each with whether it can be had under the claim's requirements.
    shapes: Vec<(ResourceList, bool)>,
    daemons: ResourceList,
}

impl Shaped {
    /// The most a pod could have of a resource.
    fn most(&self, name: &str) -> Quantity {
        let shapes = self.shapes.iter().map(|(room, _)| room.amount(name));
        shapes.max().unwrap_or(Quantity::ZERO) - self.daemons.amount(name)
    }
}

impl Funnels<'_, '_> {
    /// All conditions of the pod, with the pool's limits before them and its `minValues` after.
    pub(super) fn pod_stages(&mut self, template: usize, walk: &mut Walk) {
        let problem = self.run.problem;
        self.limit_stages(template, walk);
        if self.refused.answers.is_empty() {
            return;
        }
        self.taint_stage(template, walk);
        self.volume_limit_stage(walk);
        self.hostname_stage(walk);
        let mut claim = problem.templates[template].template.requirements.clone();
        self.label_stages(&mut claim, walk);
        self.volume_zone_stage(&mut claim, walk);
        let claim = self.topology_stages(claim, template, walk);
        self.room_stages(&claim, template, walk);
        self.device_stage(template, walk);
        self.min_values_stage(&claim, walk);
        if let Some(TemplateRefusal::Reserved(refusal)) = self.refused.answers.get(template) {
            walk.gate(Constraint::Reserved, refusal.text().to_owned(), false);
        }
    }

    fn device_stage(&mut self, template: usize, walk: &mut Walk) {
        let refused = self.refused;
        let Some(answer) = refused.answers.get(template) else {
            return;
        };
        let is_device = matches!(
            answer,
            TemplateRefusal::Devices(_) | TemplateRefusal::DeviceRequirements(..) | TemplateRefusal::DeviceTypes
        );
        if is_device {
            let entry = self.run.problem.intake.pods[self.pod as usize];
            let text = refusal::text(self.run, entry, refused.step, template, answer);
            walk.gate(Constraint::Devices, format!("Pod spec.resourceClaims: {text}"), false);
        }
    }

    pub(super) fn pod_object(&self) -> &Arc<Pod> {
        &self.run.problem.pods[self.pod as usize].pod
    }

    pub(super) fn variant(&self) -> &Variant {
        let entry = self.run.problem.intake.pods[self.pod as usize];
        &self.run.ladders.all[entry.combo as usize].variants[self.refused.step]
    }

    fn limit_stages(&self, template: usize, walk: &mut Walk) {
        let entry = &self.run.problem.templates[template].template;
        let Some(remaining) = self.run.limits[template].remaining() else {
            return;
        };
        let at_start = entry.remaining.clone().unwrap_or_default();
        for (name, left) in remaining {
            let limit = entry.pool.spec.limits.amount(name.as_str());
            let in_nodes = limit - at_start.amount(name.as_str());
            let used = limit - finish::quantity(name, *left);
            let text = format!(
                "NodePool spec.limits.{name} {limit}: nodes have {in_nodes}, claims of this plan {}",
                used - in_nodes
            );
            let constraint = Constraint::Limit {
                resource: name.clone(),
                limit,
                in_nodes,
                used,
            };
            let is_closed = *left < 0 || *name == ResourceName::Nodes && *left == 0;
            walk.keep(constraint, text, |entry| {
                !is_closed && lanes::offered(name, entry.capacity.amount(name.as_str())) <= *left
            });
        }
    }

    fn taint_stage(&self, template: usize, walk: &mut Walk) {
        let taints = &self.run.problem.templates[template]
            .template
            .pool
            .spec
            .template
            .spec
            .taints;
        if taints.is_empty() {
            return;
        }
        let tolerations: Vec<_> = self.variant().tolerations_list().iter().map(Toleration::view).collect();
        let is_refused = |taint: &&Taint| check_tolerated([taint.view()], &tolerations).is_err();
        let untolerated: Vec<_> = taints.iter().filter(is_refused).cloned().collect();
        let named = if untolerated.is_empty() {
            taints
        } else {
            &untolerated[..]
        };
        let names: Vec<_> = named.iter().map(taint_text).collect();
        let is_open = untolerated.is_empty();
        let verdict = if is_open { "tolerated" } else { "not tolerated" };
        let text = format!("NodePool spec.template.spec.taints {}: {verdict}", names.join(", "));
        walk.gate(Constraint::Taints { untolerated }, text, is_open);
    }

    fn volume_limit_stage(&self, walk: &mut Walk) {
        let entry = self.run.problem.intake.pods[self.pod as usize];
        let extra = self.run.problem.intake.extras.get(entry.extra as usize);
        let volumes = extra.and_then(|extra| extra.volumes.as_ref()?.attachments.as_ref().ok());
        let Some(volumes) = volumes.filter(|volumes| !volumes.is_empty()) else {
            return;
        };
        let none = Volumes::default();
        let counts: Vec<_> = none.counts_with(volumes).collect();
        let texts: Vec<_> = counts
            .iter()
            .map(|(driver, count)| format!("{count} of {driver}"))
            .collect();
        let text = format!("Pod spec.volumes: attaches {}", texts.join(", "));
        walk.keep(Constraint::VolumeLimit, text, |entry| {
            let is_within = |(driver, count): &(&str, usize)| {
                let limit = entry.volume_limits.get(*driver);
                limit.is_none_or(|limit| count <= limit)
            };
            counts.iter().all(|(driver, count)| is_within(&(driver, *count)))
        });
    }

    fn hostname_stage(&self, walk: &mut Walk) {
        let Some(hostname) = &self.variant().hostname else {
            return;
        };
        let vocabulary = &self.run.problem.vocabulary;
        let constraint = Constraint::NodeLabel {
            key: api::labels::HOSTNAME.to_owned(),
            field: self.field(api::labels::HOSTNAME),
            wanted: wanted(hostname, vocabulary),
            offered: Vec::new(),
            is_known: true,
        };
        let text = format!("{}: a new node has a new name", self.label_text(hostname));
        walk.gate(constraint, text, hostname.is_complement());
    }

    /// One stage per label, those of the node selector first.
    fn label_stages(&self, claim: &mut Requirements, walk: &mut Walk) {
        let vocabulary = &self.run.problem.vocabulary;
        let set = &self.run.space.sets[self.variant().set as usize];
        let mut asked: Vec<_> = set.iter().collect();
        asked.sort_by_key(|requirement| {
            let name = vocabulary.key_name(requirement.key());
            (self.field(name) != LabelField::Selector, name)
        });
        for requirement in asked {
            self.label_stage(requirement, claim, walk);
        }
    }

    fn label_stage(&self, requirement: &Requirement, claim: &mut Requirements, walk: &mut Walk) {
        let (vocabulary, key) = (&self.run.problem.vocabulary, requirement.key());
        let one = only(requirement);
        let is_compatible = claim.is_compatible(&one, UndefinedLabels::AllowedIfWellKnown, vocabulary);
        let name = vocabulary.key_name(key);
        let constraint = Constraint::NodeLabel {
            key: name.to_owned(),
            field: self.field(name),
            wanted: wanted(requirement, vocabulary),
            offered: offered(walk.types.iter().map(Arc::as_ref), claim, key, vocabulary),
            is_known: self.is_known(requirement),
        };
        let mut text = self.label_text(requirement);
        if !is_compatible {
            text.push_str(": ");
            text.push_str(&claim.get(key).map_or_else(
                || "the NodePool does not define it".to_owned(),
                |own| format!("the NodePool has {}", without_key(&own.text(vocabulary))),
            ));
        }
        claim.add(requirement.clone(), vocabulary);
        walk.keep(constraint, text, |entry| {
            is_compatible && entry.requirements.intersects(&only_of(claim, key), vocabulary)
        });
    }

    /// Whether somebody has a value that a requirement names.
    fn is_known(&self, requirement: &Requirement) -> bool {
        let key = requirement.key();
        let types = self.run.problem.index.types.iter().chain(self.catalogue.values());
        let types = types.map(|entry| &entry.requirements);
        let pools = self.run.problem.templates.iter().map(|it| &it.template.requirements);
        let mut lists = types.chain(pools).filter_map(|it| it.get(key));
        requirement.is_complement()
            || lists.any(|list| !list.is_complement() && list.value_set().intersects(requirement.value_set()))
    }

    fn field(&self, key: &str) -> LabelField {
        let pod = self.pod_object();
        if pod.spec.node_selector.get(key).is_some() {
            return LabelField::Selector;
        }
        let affinity = pod.spec.affinity.as_ref().and_then(|it| it.node_affinity.as_ref());
        let terms = affinity
            .and_then(|it| it.required.as_ref())
            .map(|it| &it.node_selector_terms);
        // Terms are given up from the first, so the last is what counts in the end.
        LabelField::Affinity {
            term: terms.map_or(0, |terms| terms.len().saturating_sub(1)),
        }
    }

    fn label_text(&self, requirement: &Requirement) -> String {
        let vocabulary = &self.run.problem.vocabulary;
        let name = vocabulary.key_name(requirement.key());
        match self.field(name) {
            LabelField::Selector => {
                let value = self.pod_object().spec.node_selector.get(name);
                let value = value.map_or("", |value| &**value);
                format!("Pod spec.nodeSelector {name}={value}")
            }
            LabelField::Affinity { term } => format!(
                "Pod spec.affinity.nodeAffinity term {} {}",
                term + 1,
                requirement.text(vocabulary)
            ),
        }
    }

    /// The last alternative that can be joined, as upstream tells of the last.
    fn volume_zone_stage(&self, claim: &mut Requirements, walk: &mut Walk) {
        let entry = self.run.problem.intake.pods[self.pod as usize];
        let vocabulary = &self.run.problem.vocabulary;
        let Some(extra) = self.run.problem.intake.extras.get(entry.extra as usize) else {
            return;
        };
        let alternatives: Vec<_> = extra.alternatives.iter().map(without_hostname).collect();
        let Some(last) = alternatives.last() else { return };
        let allowed = UndefinedLabels::AllowedIfWellKnown;
        let joined = alternatives
            .iter()
            .rev()
            .find(|set| claim.is_compatible(set, allowed, vocabulary));
        let named = joined.unwrap_or(last);
        let label = |requirement: &Requirement| {
            let name = vocabulary.key_name(requirement.key()).to_owned();
            (name, wanted(requirement, vocabulary))
        };
        let constraint = Constraint::VolumeZone {
            labels: named.iter().map(label).collect(),
        };
        let text = format!("Pod spec.volumes: a volume needs {}", named.text(vocabulary));
        claim.add_all(named, vocabulary);
        walk.keep(constraint, text, |entry| {
            joined.is_some() && entry.requirements.intersects(claim, vocabulary)
        });
    }

    fn room_stages(&self, claim: &Requirements, template: usize, walk: &mut Walk) {
        self.port_stage(template, walk);
        let entry = self.run.problem.intake.pods[self.pod as usize];
        let shape = &self.run.problem.intake.shapes[entry.shape as usize];
        let mut types = self.shaped(claim, template, &walk.types);
        for (name, asked) in shape.iter().filter(|(_, asked)| !asked.is_zero()) {
            let most = types.iter().map(|entry| entry.most(name.as_str())).max();
            let before = types.len();
            types.retain(|entry| entry.most(name.as_str()) >= asked);
            // Every pod asks for being one; that is worth a line only where it matters.
            if *name == ResourceName::Pods && types.len() == before {
                continue;
            }
            let most = most.unwrap_or(Quantity::ZERO).max(Quantity::ZERO);
            let up_to = words::amount(most);
            let text = format!("Pod requests {name} {asked}: beside daemons the types left have up to {up_to}");
            let resource = name.clone();
            walk.note(Constraint::Resource { resource, asked, most }, text, types.len());
        }
        types.retain(|entry| {
            let mut asked = shape.clone();
            asked.add(&entry.daemons);
            let mut shapes = entry.shapes.iter();
            shapes.any(|(room, is_offered)| *is_offered && asked.fits(room))
        });
        let text = format!(
            "an offering that can be had now for {}",
            claim_text(claim, &self.run.problem.vocabulary)
        );
        walk.note(Constraint::Offering, text, types.len());
        walk.types = types.into_iter().map(|shaped| shaped.entry).collect();
    }

    fn port_stage(&self, template: usize, walk: &mut Walk) {
        let entry = self.run.problem.intake.pods[self.pod as usize];
        let extra = self.run.problem.intake.extras.get(entry.extra as usize);
        if extra.is_none_or(|extra| extra.ports.is_empty()) {
            return;
        }
        let template = &self.run.problem.templates[template].template;
        let text = "Pod host ports: daemons must leave them free".to_owned();
        walk.keep(Constraint::HostPorts, text, |entry_type| {
            let group = template.daemons.iter().find(|group| {
                let mut types = group.types.iter();
                types.any(|at| template.types[*at].name == entry_type.name)
            });
            group.is_none_or(|group| self.run.is_port_free(entry, &group.ports))
        });
    }

    fn shaped(&self, claim: &Requirements, template: usize, types: &[Arc<InstanceType>]) -> Vec<Shaped> {
        let (template, vocabulary) = (
            &self.run.problem.templates[template].template,
            &self.run.problem.vocabulary,
        );
        let mut daemons = std::collections::BTreeMap::new();
        for group in &template.daemons {
            daemons.extend(
                group
                    .types
                    .iter()
                    .map(|at| (&*template.types[*at].name, &group.overhead)),
            );
        }
        let shaped = |entry: &Arc<InstanceType>| {
            let rows = entry.allocatable_rows();
            let rows = rows.into_iter().filter(|row| !row.offerings.is_empty());
            let shape = rows.map(|row| {
                let mut offerings = row.offerings.iter();
                let is_offered = offerings.any(|offering| offering.is_compatible(claim, vocabulary));
                (row.allocatable, is_offered)
            });
            Shaped {
                entry: Arc::clone(entry),
                shapes: shape.collect(),
                daemons: daemons.get(&*entry.name).map(|it| (*it).clone()).unwrap_or_default(),
            }
        };
        types.iter().map(shaped).collect()
    }
}

/// Zone and capacity type of a claim.
fn claim_text(claim: &Requirements, vocabulary: &model::vocabulary::Vocabulary) -> String {
    let keys = [KeyId::ZONE, KeyId::CAPACITY_TYPE];
    let texts: Vec<_> = keys
        .iter()
        .filter_map(|key| claim.get(*key))
        .map(|requirement| requirement.text(vocabulary))
        .collect();
    if texts.is_empty() {
        "any zone and capacity type".to_owned()
    } else {
        texts.join(", ")
    }
}

fn only_of(claim: &Requirements, key: KeyId) -> Requirements {
    claim.get(key).map(only).unwrap_or_default()
}

fn without_hostname(set: &Requirements) -> Requirements {
    let mut set = set.clone();
    set.remove(KeyId::HOSTNAME);
    set
}

/// `In [a b]` of `key In [a b]`.
fn without_key(text: &str) -> &str {
    text.split_once(' ').map_or(text, |(_, rest)| rest)
}
