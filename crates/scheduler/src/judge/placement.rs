//! Room, taints, labels, ports and volumes of the nodes a claim may become.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    host_port::HostPort,
    instance_type::Offering,
    object::{ObjectKey, Pod, PodSpec},
    requirement::{Requirement, Requirements},
    vocabulary::Vocabulary,
};

use super::{
    Reason, Rule, Verdict,
    claim::{Context, key_of},
    daemon::Daemon,
    labels::Launched,
    supply::Type,
};
use crate::{
    amounts::Dictionary,
    plugin::{
        Plugin, node_affinity, node_ports,
        node_resources_fit::Insufficient,
        node_volume_limits, taint_toleration,
        volume_binding::{self, PodVolumes},
        volume_zone,
    },
};

/// Names of resources that pods ask for get their places before room is looked at.
pub(super) fn prepare(pods: &[Arc<Pod>], dictionary: &mut Dictionary) {
    for pod in pods {
        dictionary.sparse(&pod.resources().requests());
    }
}

pub(super) fn check(context: &Context<'_>, pods: &[Arc<Pod>], verdict: &mut Verdict) {
    check_gates(context, pods, verdict);
    check_taints(context, pods, verdict);
    check_labels(context, pods, verdict);
    check_ports(context, pods, verdict);
    check_room(context, pods, verdict);
    check_volumes(context, pods, verdict);
}

fn check_gates(context: &Context<'_>, pods: &[Arc<Pod>], verdict: &mut Verdict) {
    for pod in pods.iter().filter(|pod| !pod.spec.scheduling_gates.is_empty()) {
        let (key, place) = (key_of(pod), Some(&context.place));
        verdict.doubt(
            Reason::Gated,
            Rule::Demand,
            Some(&key),
            place,
            "the pod has scheduling gates",
        );
    }
}

fn check_taints(context: &Context<'_>, pods: &[Arc<Pod>], verdict: &mut Verdict) {
    let taints = &context.pool.spec.template.spec.taints;
    for pod in pods {
        if let Some(taint) = taint_toleration::untolerated(taints, &pod.spec.tolerations) {
            let (key, rule) = (key_of(pod), Rule::Filter(Plugin::TaintToleration));
            let detail = format!("taint {} is not tolerated", taint.view());
            verdict.violate(rule, Some(&key), Some(&context.place), detail);
        }
    }
}

fn check_labels(context: &Context<'_>, pods: &[Arc<Pod>], verdict: &mut Verdict) {
    let mut seen: BTreeSet<*const PodSpec> = BTreeSet::new();
    let constrained = pods.iter().filter(|pod| node_affinity::is_constrained(&pod.spec));
    for pod in constrained.filter(|pod| seen.insert(Arc::as_ptr(&pod.spec))) {
        let refused = context.all_launched().find(|launched| {
            let mut choices = launched.choices(asked_keys(&pod.spec));
            choices.any(|launched| !node_affinity::admits(&pod.spec, "", &launched))
        });
        if let Some(launched) = refused {
            let is_unpromised = asked_keys(&pod.spec).any(|key| !launched.promises(key));
            let detail = format!("the labels of a {} are not those the pod asks for", launched.kind.name);
            let (rule, key) = (Rule::Filter(Plugin::NodeAffinity), key_of(pod));
            let contradicts = contradicts(&pod.spec).then_some(Reason::Contradiction);
            let reason = contradicts.or(is_unpromised.then_some(Reason::UnpromisedLabel));
            verdict.find(reason, rule, Some(&key), Some(&context.place), detail);
        }
    }
}

/// Whether node selector and a term of the node affinity leave no value for a label that some of them wants to be there.
pub(super) fn contradicts(spec: &PodSpec) -> bool {
    let affinity = spec.affinity.as_ref().and_then(|it| it.node_affinity.as_ref());
    let required = affinity.and_then(|it| it.required.as_ref());
    let terms = required.map_or(&[][..], |it| &it.node_selector_terms);
    terms.iter().any(|term| {
        let mut vocabulary = Vocabulary::new();
        let labels = spec.node_selector.iter().map(|(key, value)| (&**key, &**value));
        let mut all: Vec<Requirement> = Requirements::from_labels(labels, &mut vocabulary)
            .iter()
            .cloned()
            .collect();
        for written in &term.match_expressions {
            if let Ok(operator) = written.operator.parse() {
                let values = written.values.iter().map(|value| &**value);
                all.push(Requirement::parse(&written.key, operator, values, &mut vocabulary));
            }
        }
        let mut together = Requirements::default();
        for requirement in all.iter().cloned() {
            together.add(requirement, &vocabulary);
        }
        let is_wanted = |it: &Requirement| all.iter().any(|one| one.key() == it.key() && !one.is_empty());
        together.iter().any(|it| it.is_empty() && is_wanted(it))
    })
}

/// The labels a pod's node selector and required node affinity speak of.
pub(super) fn asked_keys(spec: &PodSpec) -> impl Iterator<Item = &str> {
    let affinity = spec.affinity.as_ref().and_then(|it| it.node_affinity.as_ref());
    let required = affinity.and_then(|it| it.required.as_ref());
    let terms = required.map_or(&[][..], |it| &it.node_selector_terms);
    let selector = spec.node_selector.iter().map(|(key, _)| &**key);
    let expressions = terms.iter().flat_map(|term| &term.match_expressions);
    selector.chain(expressions.map(|expression| &*expression.key))
}

fn check_ports(context: &Context<'_>, pods: &[Arc<Pod>], verdict: &mut Verdict) {
    let mut taken: Vec<HostPort> = Vec::new();
    let rule = Rule::Filter(Plugin::NodePorts);
    for pod in pods {
        let wanted: Vec<_> = pod.spec.host_ports().collect();
        if let Some(port) = node_ports::conflict(&wanted, &taken) {
            let detail = format!("port {port} is taken by another pod of the claim");
            verdict.violate(rule, Some(&key_of(pod)), Some(&context.place), detail);
        }
        taken.extend(wanted);
    }
    if taken.is_empty() {
        return;
    }
    for launched in context.all_launched() {
        let clash =
            running(context, &launched).find_map(|daemon| Some((daemon, node_ports::conflict(&daemon.ports, &taken)?)));
        if let Some((daemon, port)) = clash {
            let set = &daemon.set.metadata.name;
            let detail = format!("port {port} is taken by DaemonSet {set} on a {}", launched.kind.name);
            let reason = daemon.has_terms.then_some(Reason::DaemonTerms);
            return verdict.find(reason, rule, None, Some(&context.place), detail);
        }
    }
}

/// The daemons that will run on a node.
fn running<'a>(context: &'a Context<'_>, launched: &'a Launched<'_>) -> impl Iterator<Item = &'a Daemon> {
    let taints = &context.pool.spec.template.spec.taints;
    let tolerant = context.daemons.iter().filter(|daemon| daemon.tolerates(taints));
    tolerant.filter(|daemon| daemon.matches("", launched))
}

fn check_room(context: &Context<'_>, pods: &[Arc<Pod>], verdict: &mut Verdict) {
    let mut dictionary = context.supply.dictionary.clone();
    let mut wanted = Wanted::default();
    for pod in pods {
        wanted.add(&dictionary.sparse(&pod.resources().requests()));
    }
    let taints = &context.pool.spec.template.spec.taints;
    let tolerant: Vec<&Daemon> = context.daemons.iter().filter(|it| it.tolerates(taints)).collect();
    let mut short: BTreeMap<usize, Short> = BTreeMap::new();
    for (launch, launched) in context.launches.iter().zip(context.all_launched()) {
        let mut total = wanted.clone();
        let running: Vec<_> = tolerant.iter().filter(|it| it.matches("", &launched)).collect();
        for daemon in &running {
            total.add(&daemon.requests);
        }
        let entry = short.entry(launch.0).or_default();
        match total.exceeds(&launched.offering.allocatable, launched.offering.allowed_pods) {
            None => entry.fits += 1,
            Some(what) => {
                entry.lacks = Some(match what {
                    Insufficient::Pods => "pods".to_owned(),
                    Insufficient::Resource(at) => dictionary.name(at).to_owned(),
                });
                entry.fits_elsewhere |= fits_elsewhere(context, &total, launched.kind);
                entry.has_terms |= running.iter().any(|it| it.has_terms);
            }
        }
    }
    for (kind, short) in short {
        report_room(context, kind, &short, verdict);
    }
}

/// What the offerings of one type lack.
#[derive(Debug, Default)]
struct Short {
    fits: usize,
    lacks: Option<String>,
    has_terms: bool,
    /// An offering that will not be launched has the room.
    fits_elsewhere: bool,
}

fn report_room(context: &Context<'_>, kind: usize, short: &Short, verdict: &mut Verdict) {
    let (Some(lacks), Some(kind)) = (&short.lacks, context.supply.types.get(kind)) else {
        return;
    };
    let reason = if is_overlaid(context, kind, lacks) {
        Some(Reason::Overlay)
    } else if short.fits > 0 || short.fits_elsewhere {
        Some(Reason::OtherOffering)
    } else if short.has_terms {
        Some(Reason::DaemonTerms)
    } else {
        None
    };
    let detail = format!("insufficient {lacks} on a {}", kind.name);
    let rule = Rule::Filter(Plugin::NodeResourcesFit);
    verdict.find(reason, rule, None, Some(&context.place), detail);
}

/// Whether a NodeOverlay promises the resource, or has changed the price of an offering with overrides of its own, which
/// upstream then forgets.
fn is_overlaid(context: &Context<'_>, kind: &Type, resource: &str) -> bool {
    let has_override = |it: &Offering| !it.capacity_override.is_empty() || it.overhead_override.is_some();
    let forgets = kind.shape.offerings.iter().any(has_override);
    let mut overlays = context.snapshot.objects().node_overlays.iter();
    context.snapshot.settings().feature_gates.node_overlay
        && overlays.any(|overlay| {
            let spec = &overlay.spec;
            let prices = spec.price.is_some() || spec.price_adjustment.is_some();
            spec.capacity.get(resource).is_some() || prices && forgets
        })
}

/// Whether an offering has the room that upstream looks at though it is not launched: one of a full reservation, or one
/// that the claim gave up for reserved capacity.
fn fits_elsewhere(context: &Context<'_>, total: &Wanted, kind: &Type) -> bool {
    let vocabulary = &context.supply.vocabulary;
    let mut offerings = kind.shape.offerings.iter().zip(&kind.offerings);
    offerings.any(|(offering, view)| {
        let is_seen = context.is_reserved() || offering.is_compatible(context.requirements, vocabulary);
        offering.is_available && is_seen && total.exceeds(&view.allocatable, view.allowed_pods).is_none()
    })
}

/// What pods want together.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    amounts: BTreeMap<usize, i64>,
    pods: i64,
}

impl Wanted {
    pub(super) fn add(&mut self, requests: &[(usize, i64)]) {
        for (at, amount) in requests {
            *self.amounts.entry(*at).or_default() += amount;
        }
        self.pods += 1;
    }

    /// The first thing there is too little of.
    fn exceeds(&self, allocatable: &[i64], allowed_pods: i64) -> Option<Insufficient> {
        if self.pods > allowed_pods {
            return Some(Insufficient::Pods);
        }
        let over = |(at, amount): &(&usize, &i64)| **amount > allocatable.get(**at).copied().unwrap_or(0);
        self.amounts
            .iter()
            .find(over)
            .map(|(at, _)| Insufficient::Resource(*at))
    }
}

fn check_volumes(context: &Context<'_>, pods: &[Arc<Pod>], verdict: &mut Verdict) {
    let mut attached = BTreeSet::new();
    for pod in pods.iter().filter(|pod| !pod.spec.volumes.is_empty()) {
        let key = key_of(pod);
        match volume_binding::resolve(context.snapshot, pod) {
            Ok(volumes) => {
                check_reach(context, &key, &volumes, verdict);
                attached.extend(volumes.attachments);
            }
            Err(detail) => {
                let rule = Rule::Filter(Plugin::VolumeBinding);
                verdict.doubt(Reason::VolumePlace, rule, Some(&key), Some(&context.place), detail);
            }
        }
    }
    check_limits(context, &attached.into_iter().collect::<Vec<_>>(), verdict);
}

fn check_reach(context: &Context<'_>, key: &ObjectKey, volumes: &PodVolumes, verdict: &mut Verdict) {
    let place = Some(&context.place);
    let rule = Rule::Filter(Plugin::VolumeBinding);
    if context
        .all_launched()
        .any(|launched| !volume_binding::admits(volumes, "", &launched))
    {
        let is_local = volumes
            .bound
            .iter()
            .any(|it| it.spec.local.is_some() || it.spec.host_path.is_some());
        let reason = is_local.then_some(Reason::VolumePlace);
        verdict.find(reason, rule, Some(key), place, "a node may not reach the volumes");
    }
    let rule = Rule::Filter(Plugin::VolumeZone);
    if context
        .all_launched()
        .any(|launched| !volume_zone::admits(&volumes.bound, &launched))
    {
        let detail = "a volume's labels name another zone";
        verdict.doubt(Reason::VolumePlace, rule, Some(key), place, detail);
    }
}

fn check_limits(context: &Context<'_>, wanted: &[(Arc<str>, Arc<str>)], verdict: &mut Verdict) {
    let kinds: BTreeSet<usize> = context.launches.iter().map(|(kind, _)| *kind).collect();
    for kind in kinds.iter().filter_map(|at| context.supply.types.get(*at)) {
        let limits = &kind.shape.volume_limits;
        if let Some(driver) = node_volume_limits::exceeded(wanted, &BTreeSet::new(), limits) {
            let detail = format!("more volumes of {driver} than a {} attaches", kind.name);
            let rule = Rule::Filter(Plugin::NodeVolumeLimits);
            verdict.violate(rule, None, Some(&context.place), detail);
        }
    }
}
