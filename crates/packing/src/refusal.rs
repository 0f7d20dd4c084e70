//! Why a pod has no place, in upstream's words.
//!
//! Texts are made after the run, once per class of pods, by trying the last step of the ladder again on every NodePool.

use std::sync::Arc;

use model::{
    object::{Taint, Toleration},
    plan::{RefusalKind, Unplaced},
    quantity::Quantity,
    requirement::{Requirement, Requirements},
    resources::ResourceList,
    taint::check_tolerated,
    vocabulary::KeyId,
};
use rustc_hash::FxHashMap;

use crate::{
    index::Index,
    intake::PodEntry,
    limits::LimitReached,
    run::{Outcome, Run, TemplateRefusal},
    space::{StateId, Step},
    topology::{
        GroupId,
        group::{Counts, listed},
    },
};

const NO_POOLS: &str = "no dynamic nodepools found";
const NO_TEMPLATES: &str = "nodepool requirements filtered out all available instance types";
const DEVICES: &str = "pod has Dynamic Resource Allocation requirements that are not yet supported by Karpenter";

/// The reasons of the pods left over.
pub(crate) fn refusals(run: &mut Run<'_>, left: &[u32]) -> Vec<Unplaced> {
    let mut known: FxHashMap<(u32, u32, u32), (RefusalKind, Arc<str>)> = FxHashMap::default();
    let mut refusals = Vec::with_capacity(left.len());
    for pod in left {
        let entry = run.problem.intake.pods[*pod as usize];
        let class = (entry.combo, entry.shape, entry.extra);
        let (kind, message) = if let Some(known) = known.get(&class) {
            known.clone()
        } else {
            let reason = reason(run, *pod, entry);
            known.insert(class, reason.clone());
            reason
        };
        refusals.push(Unplaced {
            pod: Arc::clone(&run.problem.pods[*pod as usize].pod),
            kind,
            message,
        });
    }
    refusals
}

/// What every NodePool answered at the step of the ladder that decided.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) kind: RefusalKind,
    pub(crate) step: usize,
    /// By template; empty when no NodePool was asked, shorter when one made the pod wait.
    pub(crate) answers: Vec<TemplateRefusal>,
}

/// Climbs the ladder of a pod without a place again.
pub(crate) fn refused(run: &mut Run<'_>, pod: u32, entry: PodEntry) -> Refused {
    let mut step = 0;
    loop {
        let (outcome, answers) = run.explain(pod, entry, step);
        let kind = match outcome {
            Outcome::DevicesIgnored => RefusalKind::DeviceRequestsIgnored,
            Outcome::Deferred => RefusalKind::Deferred,
            Outcome::Placed | Outcome::Refused if run.climb(entry.combo, step + 1) => {
                step += 1;
                continue;
            }
            Outcome::Placed | Outcome::Refused => RefusalKind::Unschedulable,
        };
        return Refused { kind, step, answers };
    }
}

fn reason(run: &mut Run<'_>, pod: u32, entry: PodEntry) -> (RefusalKind, Arc<str>) {
    if run.problem.has_no_pools {
        return (RefusalKind::Unschedulable, NO_POOLS.into());
    }
    let refused = refused(run, pod, entry);
    let message = match refused.kind {
        RefusalKind::DeviceRequestsIgnored => DEVICES.into(),
        _ => join(run, entry, refused.step, &refused.answers).into(),
    };
    (refused.kind, message)
}

fn join(run: &mut Run<'_>, entry: PodEntry, step: usize, refusals: &[TemplateRefusal]) -> String {
    if let Some(error) = attachment_error(run, entry) {
        return error;
    }
    if run.problem.templates.is_empty() {
        return NO_TEMPLATES.to_owned();
    }
    let texts: Vec<String> = refusals
        .iter()
        .enumerate()
        .map(|(template, refusal)| text(run, entry, step, template, refusal))
        .collect();
    texts.join("; ")
}

/// What fails a pod before any NodePool is asked.
fn attachment_error(run: &Run<'_>, entry: PodEntry) -> Option<String> {
    let claims = run
        .problem
        .devices
        .as_ref()
        .and_then(|devices| devices.claims.get(entry.extra as usize));
    if let Some(Err(error)) = claims {
        return Some(error.clone());
    }
    let extra = run.problem.intake.extras.get(entry.extra as usize)?;
    extra.volumes.as_ref()?.attachments.as_ref().err().cloned()
}

/// What one NodePool answered, in upstream's words.
pub(crate) fn text(
    run: &mut Run<'_>,
    entry: PodEntry,
    step: usize,
    template: usize,
    refusal: &TemplateRefusal,
) -> String {
    let problem = run.problem;
    let pool = problem.templates[template].template.pool.name();
    match refusal {
        TemplateRefusal::Limit(LimitReached::Nodes) => {
            format!("node limits have been exhausted for nodepool (NodePool={pool})")
        }
        TemplateRefusal::Limit(LimitReached::Resources) => {
            format!("all available instance types exceed limits for nodepool (NodePool={pool})")
        }
        TemplateRefusal::Taints => untolerated(run, entry, step, template),
        TemplateRefusal::VolumeLimits => volume_limit(run, entry, template),
        TemplateRefusal::Requirements => {
            let state = run.template_states[template];
            let wanted = wanted(run, entry, step);
            format!("incompatible requirements, {}", incompatible(run, state, &wanted))
        }
        TemplateRefusal::VolumeRequirements(alternative) => {
            let wanted = run.space.sets[alternative.set as usize].clone();
            let base = base(run, entry, step, template);
            let mut conflicts = vec![incompatible(run, base, &wanted)];
            conflicts.extend(alternative.hostname.as_ref().map(|wanted| not_a_new_host(run, wanted)));
            conflicts.retain(|text| !text.is_empty());
            format!("incompatible volume requirements, {}", conflicts.join("; "))
        }
        TemplateRefusal::Devices(text) => text.clone(),
        TemplateRefusal::DeviceRequirements(state, wanted) => {
            format!(
                "incompatible dynamic resource requirements, {}",
                incompatible(run, *state, wanted)
            )
        }
        TemplateRefusal::DeviceTypes => {
            "no instance type satisfies both scheduling and dynamic resource requirements".to_owned()
        }
        TemplateRefusal::Topology(state) => unsatisfiable(run, entry, step, *state),
        TemplateRefusal::Types(state) => no_type(run, entry, template, *state),
        TemplateRefusal::MinValues(state, unmet) => format!("{unmet}{}", suffix(run, entry, template, *state)),
        TemplateRefusal::Reserved(refusal) => refusal.text().to_owned(),
        TemplateRefusal::Hostname => hostname_conflict(run, entry, step),
    }
}

fn untolerated(run: &Run<'_>, entry: PodEntry, step: usize, template: usize) -> String {
    let taints = &run.problem.templates[template].template.pool.spec.template.spec.taints;
    let variant = &run.ladders.all[entry.combo as usize].variants[step];
    let tolerations: Vec<_> = variant.tolerations_list().iter().map(Toleration::view).collect();
    let refused = check_tolerated(taints.iter().map(Taint::view), &tolerations);
    refused.err().map_or_else(String::new, |refused| refused.to_string())
}

fn wanted(run: &Run<'_>, entry: PodEntry, step: usize) -> Requirements {
    let set = run.ladders.all[entry.combo as usize].variants[step].set;
    run.space.sets[set as usize].clone()
}

fn base(run: &mut Run<'_>, entry: PodEntry, step: usize, template: usize) -> StateId {
    let set = run.ladders.all[entry.combo as usize].variants[step].set;
    match run.space.join(run.template_states[template], set) {
        Step::To(base) => base,
        _ => run.template_states[template],
    }
}

fn incompatible(run: &Run<'_>, state: StateId, wanted: &Requirements) -> String {
    let state = run.space.state(state);
    let verdict = state
        .requirements
        .compatible(wanted, state.side.undefined(), &run.problem.vocabulary);
    verdict.err().map_or_else(String::new, |error| error.to_string())
}

fn hostname_conflict(run: &Run<'_>, entry: PodEntry, step: usize) -> String {
    let variant = &run.ladders.all[entry.combo as usize].variants[step];
    let wanted = variant.hostname.as_ref().map(|wanted| not_a_new_host(run, wanted));
    format!("incompatible requirements, {}", wanted.unwrap_or_default())
}

fn not_a_new_host(run: &Run<'_>, wanted: &Requirement) -> String {
    let (key, host) = (api::labels::HOSTNAME, placeholder(run.claims.len()));
    format!(
        "key {key}, {} not in {key} In [{host}]",
        wanted.text(&run.problem.vocabulary)
    )
}

/// The name upstream gives to the host of a claim.
fn placeholder(claim: usize) -> String {
    format!("hostname-placeholder-{:04}", claim + 1)
}

fn volume_limit(run: &Run<'_>, entry: PodEntry, template: usize) -> String {
    const TEXT: &str = "would exceed volume limit for all instance type options";
    let problem = run.problem;
    let extra = &problem.intake.extras[entry.extra as usize];
    let volumes = extra
        .volumes
        .as_ref()
        .and_then(|volumes| volumes.attachments.as_ref().ok());
    let none = model::volume::Volumes::default();
    let types = &problem.templates[template].template.types;
    for (driver, count) in none.counts_with(volumes.unwrap_or(&none)) {
        let limits: Option<Vec<usize>> = types
            .iter()
            .map(|entry| entry.volume_limits.get(driver).copied().filter(|limit| count > *limit))
            .collect();
        if let Some(largest) = limits.and_then(|limits| limits.into_iter().max()) {
            return format!("{TEXT} (provisioner={driver}, volume-count={count}, volume-limit={largest})");
        }
    }
    TEXT.to_owned()
}

/// The group that leaves no domain, or the conflict between what two groups picked.
fn unsatisfiable(run: &mut Run<'_>, entry: PodEntry, step: usize, state: StateId) -> String {
    let hosts = run.nodes.states.len() + run.claims.len();
    let variant = &run.ladders.all[entry.combo as usize].variants[step];
    run.rules.evaluate(variant, &run.topology, hosts);
    let blocking = blocking_group(run, entry, step, state);
    let Some(group) = blocking else {
        let picked = run.rules.picked(state, &run.topology, &run.space);
        return incompatible(run, state, &picked);
    };
    let (kind, key) = (
        run.topology.groups[group as usize].kind,
        run.topology.keys[group as usize],
    );
    let vocabulary = &run.problem.vocabulary;
    let name = vocabulary.key_name(key);
    let strict = run.ladders.all[entry.combo as usize].variants[step].strict(vocabulary);
    let domains = |requirement: Option<&Requirement>| {
        requirement.map_or_else(|| format!("{name} Exists"), |requirement| requirement.text(vocabulary))
    };
    let node = if key == KeyId::HOSTNAME {
        format!("{name} In [{}]", placeholder(run.claims.len()))
    } else {
        domains(run.space.state(state).requirements.get(key))
    };
    format!(
        "unsatisfiable topology constraint for {}, key={name} (counts = {}, podDomains = {}, nodeDomains = {node}",
        kind.name(),
        counts(run, group),
        domains(strict.get(key)),
    )
}

fn blocking_group(run: &Run<'_>, entry: PodEntry, step: usize, state: StateId) -> Option<GroupId> {
    let variant = &run.ladders.all[entry.combo as usize].variants[step];
    let by_domain = run.rules.blocking(state, &run.space);
    by_domain.or_else(|| {
        // A new host is always open but for affinity to pods that are elsewhere, and a spread of zero.
        let is_host = |group: &GroupId| matches!(run.topology.groups[*group as usize].counts, Counts::Hosts(_));
        let groups = variant.bonds.iter().map(|bond| bond.group).filter(is_host);
        let mut groups = groups.filter(|_| !run.rules.is_fresh_host_fine);
        groups.find(|group| run.rules.closes_new_hosts(*group))
    })
}

/// How many pods are in each domain, in upstream's words.
pub(crate) fn counts(run: &Run<'_>, group: GroupId) -> String {
    let mut all: Vec<(String, i64)> = match &run.topology.groups[group as usize].counts {
        Counts::Labels(labels) => {
            let key = &run.space.keys[labels.key];
            let name = |domain: usize| {
                run.problem
                    .vocabulary
                    .value_name(key.key, key.values[domain])
                    .to_owned()
            };
            listed(labels)
                .map(|(domain, count)| (name(domain), i64::from(count)))
                .collect()
        }
        Counts::Hosts(hosts) => {
            let nodes = run.problem.nodes.iter().enumerate();
            let nodes = nodes.map(|(at, node)| (node.hostname.to_string(), i64::from(hosts.count(at))));
            let claims =
                (0..run.claims.len()).map(|claim| (placeholder(claim), i64::from(hosts.count(run.claim_host(claim)))));
            let elsewhere = hosts
                .elsewhere
                .iter()
                .map(|(name, count)| (name.to_string(), i64::from(*count)));
            nodes.chain(claims).chain(elsewhere).collect()
        }
    };
    all.sort_unstable();
    let hidden = all.len().saturating_sub(25);
    let shown: Vec<String> = all
        .iter()
        .take(25)
        .map(|(name, count)| format!("{name}: {count}"))
        .collect();
    let rest = if hidden > 0 {
        format!(" and {hidden} other(s)")
    } else {
        String::new()
    };
    format!("{}{rest}", shown.join(", "))
}

/// Which of three conditions no type meets: labels, resources, an offering.
fn no_type(run: &Run<'_>, entry: PodEntry, template: usize, state: StateId) -> String {
    let (mut meets, mut fits, mut offered) = (false, false, false);
    let mut fits_and_offered = false;
    for met in met_by_types(run, entry, template, state) {
        meets |= met.requirements;
        fits |= met.fits;
        offered |= met.offering;
        fits_and_offered |= met.fits && met.offering && !met.requirements;
    }
    let what = match (meets, fits, offered) {
        (false, false, false) => {
            "no instance type met the scheduling requirements or had enough resources or had a required offering"
        }
        (false, false, true) => "no instance type met the scheduling requirements or had enough resources",
        (false, true, false) => "no instance type met the scheduling requirements or had a required offering",
        (true, false, false) => "no instance type had enough resources or had a required offering",
        (false, true, true) => "no instance type met all requirements",
        (true, false, true) => "no instance type has enough resources",
        (true, true, false) => "no instance type has the required offering",
        (true, true, true) if fits_and_offered => {
            "no instance type which had enough resources and the required offering met the scheduling requirements"
        }
        (true, true, true) => "no instance type met the requirements/resources/offering tuple",
    };
    let asks_for_a_million_cores =
        run.problem.intake.shapes[entry.shape as usize].amount("cpu") >= Quantity::from_units(1_000_000);
    let hint = if (meets, fits, offered) == (true, false, true) && asks_for_a_million_cores {
        " (CPU request >= 1 Million, m vs M typo?)"
    } else {
        ""
    };
    format!("{what}{}{hint}", suffix(run, entry, template, state))
}

/// What one type meets.
struct Met {
    requirements: bool,
    fits: bool,
    offering: bool,
}

fn met_by_types<'r>(
    run: &'r Run<'_>,
    entry: PodEntry,
    template: usize,
    state: StateId,
) -> impl Iterator<Item = Met> + 'r {
    let problem = run.problem;
    let requirements = &run.space.state(state).requirements;
    let open = run.limits[template].open().ok();
    let shape = &problem.intake.shapes[entry.shape as usize];
    let groups = problem.templates[template].daemons.iter();
    let groups = groups.filter(move |group| run.is_port_free(entry, &group.ports));
    groups.flat_map(move |group| {
        let mut asked = shape.clone();
        asked.add(&group.asked);
        let types = types_of(&problem.index, &group.rows, open.map(|rows| &rows[..]));
        types.map(move |at| {
            let entry = &problem.index.types[at as usize];
            let mut met = Met {
                requirements: entry.requirements.intersects(requirements, &problem.vocabulary),
                fits: false,
                offering: false,
            };
            for row in entry.allocatable_rows() {
                let is_compatible = |offering: &&model::instance_type::Offering| {
                    offering.is_compatible(requirements, &problem.vocabulary)
                };
                if row.offerings.iter().any(is_compatible) {
                    met.offering = true;
                    met.fits |= asked.fits(&row.allocatable);
                }
            }
            met
        })
    })
}

fn types_of<'a>(index: &'a Index, rows: &'a [u64], open: Option<&'a [u64]>) -> impl Iterator<Item = u32> + 'a {
    let is_open = move |entry: &u32| open.is_none_or(|open| index.has_type(open, *entry));
    index.types_in(rows).filter(is_open)
}

/// The requirements and resources that ended up unmet.
fn suffix(run: &Run<'_>, entry: PodEntry, template: usize, state: StateId) -> String {
    let requirements = run.space.state(state).requirements.text(&run.problem.vocabulary);
    format!(
        ", requirements={requirements}, resources={}",
        resources(run, entry, template)
    )
}

fn resources(run: &Run<'_>, entry: PodEntry, template: usize) -> String {
    let shape = &run.problem.intake.shapes[entry.shape as usize];
    let mut bounds: Option<(ResourceList, ResourceList)> = None;
    let groups = run.problem.templates[template].daemons.iter();
    for group in groups.filter(|group| !group.asked.is_empty() && run.is_port_free(entry, &group.ports)) {
        bounds = Some(match bounds {
            None => (group.asked.clone(), group.asked.clone()),
            Some((least, mut most)) => {
                most.raise_to(&group.asked);
                (least.min(&group.asked), most)
            }
        });
    }
    let Some((mut least, mut most)) = bounds.filter(|(least, _)| !least.is_empty()) else {
        return json(shape);
    };
    least.add(shape);
    most.add(shape);
    let (least, most) = (json(&least), json(&most));
    if least == most {
        least
    } else {
        format!("min={least}, max={most}")
    }
}

fn json(list: &ResourceList) -> String {
    let entries: Vec<String> = list
        .iter()
        .map(|(name, quantity)| format!("\"{}\":\"{quantity}\"", name.as_str()))
        .collect();
    format!("{{{}}}", entries.join(","))
}
