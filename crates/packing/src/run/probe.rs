//! Does a pod fit here? Full tests of one node, claim or NodePool.

use model::{
    host_port::{HostPort, HostPortUsage},
    instance_type::{MinValuesUnmet, needed_for_min_values},
    object::ObjectKey,
    requirement::{Requirement, Requirements},
    resources::ResourceName,
    vocabulary::{KeyId, ValueId},
    volume::Volumes,
};

use smallvec::SmallVec;

use super::{
    Run,
    attempt::{Candidate, Outcome},
    device::Asked,
};
use crate::{
    bitmap::is_empty,
    intake::{Extra, PLAIN, PodEntry},
    limits::LimitReached,
    problem::TemplateEntry,
    reserved::ReservedRefusal,
    space::{SetId, StateId, Step},
};

/// A new claim that takes a pod.
pub(super) struct Opening {
    pub(super) target: StateId,
    pub(super) is_relaxed: bool,
    pub(super) reservations: Vec<ValueId>,
}

/// One place where a pod's volumes can be reached.
#[derive(Debug, Clone, Default)]
pub(crate) struct Alternative {
    pub(crate) set: SetId,
    /// The requirement on the hostname, which states leave out.
    pub(crate) hostname: Option<Requirement>,
}

/// Why a NodePool does not launch a node for a pod.
#[derive(Debug, Clone)]
pub(crate) enum TemplateRefusal {
    /// Its limits are reached.
    Limit(LimitReached),
    /// The pod does not tolerate its taints.
    Taints,
    /// The pod's volumes are too many for every type.
    VolumeLimits,
    /// Labels conflict with the pod's requirements.
    Requirements,
    /// Labels conflict with where the pod's volumes are.
    VolumeRequirements(Alternative),
    /// The claim cannot give the pod its devices.
    Devices(String),
    /// What the devices ask conflicts with the claim's labels.
    DeviceRequirements(StateId, Requirements),
    /// Types that fit do not have the devices, and types that have them do not fit.
    DeviceTypes,
    /// Topology leaves no domain.
    Topology(StateId),
    /// No type is left.
    Types(StateId),
    /// Too few different types are left.
    MinValues(StateId, MinValuesUnmet),
    /// Reserved capacity.
    Reserved(ReservedRefusal),
    /// The hostname the pod asks for is no new node's.
    Hostname,
}

impl TemplateRefusal {
    pub(super) fn is_deferral(&self) -> bool {
        matches!(self, Self::Reserved(refusal) if refusal.is_deferral())
    }
}

impl Run<'_> {
    /// What every NodePool answers to a pod at a step of its ladder; nothing changes.
    pub(crate) fn explain(&mut self, pod: u32, entry: PodEntry, step: usize) -> (Outcome, Vec<TemplateRefusal>) {
        if let Some(outcome) = self.hopeless(entry) {
            return (outcome, Vec::new());
        }
        let variant = &self.ladders.all[entry.combo as usize].variants[step];
        let fit = self.memo.fit(entry.shape, variant.set, variant.tolerations);
        let candidate = Candidate { pod, entry, step, fit };
        let hosts = self.nodes.states.len() + self.claims.len();
        let variant = &self.ladders.all[entry.combo as usize].variants[step];
        self.rules.evaluate(variant, &self.topology, hosts);
        let mut refusals = Vec::new();
        for template in 0..self.problem.templates.len() {
            let Err(refusal) = self.probe_template(candidate, template) else {
                // Only a host that is not new would do.
                refusals.push(TemplateRefusal::Topology(self.template_states[template]));
                continue;
            };
            let is_deferral = refusal.is_deferral();
            refusals.push(refusal);
            if is_deferral {
                return (Outcome::Deferred, refusals);
            }
        }
        (Outcome::Refused, refusals)
    }

    /// Whether the pod's ports are free beside these.
    pub(crate) fn is_port_free(&self, entry: PodEntry, taken: &[(ObjectKey, Vec<HostPort>)]) -> bool {
        let extra = self.problem.intake.extras.get(entry.extra as usize);
        extra.is_none_or(|extra| !clashes(extra, taken.iter()))
    }

    /// Tries a node that exists, and adds the pod if it fits.
    pub(super) fn try_node(&mut self, candidate: Candidate, node: usize) -> bool {
        self.work.probes += 1;
        let problem = self.problem;
        let entry = candidate.entry;
        if problem.nodes[node].is_under_consolidate_after && !entry.is_homeless {
            return false;
        }
        let variant = self.variant(candidate);
        let (tolerations, has_hostname) = (variant.tolerations, variant.hostname.is_some());
        let lanes = problem.lanes.len();
        let room = &self.nodes.room[node * lanes..(node + 1) * lanes];
        let has_room = !problem.overdrawn[node]
            && problem
                .shape(entry.shape)
                .iter()
                .zip(room)
                .all(|(asked, room)| asked <= room);
        if !has_room || !self.tolerance.tolerates(tolerations, problem.node_taints[node]) {
            self.reject_node(candidate.fit, node);
            return false;
        }
        if has_hostname && !self.accepts_hostname(candidate, &problem.nodes[node].hostname) {
            return false;
        }
        if entry.extra != PLAIN && !self.node_takes_extras(entry.extra, node) {
            return false;
        }
        match self.node_target(candidate, node) {
            Ok(target) => {
                self.add_to_node(candidate, node, target);
                true
            }
            Err(is_final) => {
                if is_final && !has_hostname {
                    self.reject_node(candidate.fit, node);
                }
                false
            }
        }
    }

    /// The state of a node with the pod on it; an error says whether it is for ever.
    fn node_target(&mut self, candidate: Candidate, node: usize) -> Result<StateId, bool> {
        let state = self.nodes.states[node];
        if candidate.entry.extra == PLAIN {
            return match self.decide(candidate, state) {
                super::Decision::To { target, .. } => Ok(target),
                super::Decision::Denied { is_final } => Err(is_final),
            };
        }
        let set = self.variant(candidate).set;
        let Step::To(base) = self.space.join(state, set) else {
            return Err(false);
        };
        let hostname = &self.problem.nodes[node].hostname;
        for alternative in self.alternatives(candidate.entry.extra) {
            let is_here = alternative.hostname.as_ref();
            let is_here = is_here.is_none_or(|wanted| wanted.has(hostname, &self.problem.vocabulary));
            if is_here
                && let Step::To(narrower) = self.space.join(base, alternative.set)
                && let Some(target) = self.narrow(narrower)
                && self.node_has_devices(candidate.entry.extra, node)
            {
                return Ok(target);
            }
        }
        Err(false)
    }

    fn accepts_hostname(&self, candidate: Candidate, hostname: &str) -> bool {
        let wanted = self.variant(candidate).hostname.as_ref();
        wanted.is_none_or(|wanted| wanted.has(hostname, &self.problem.vocabulary))
    }

    /// A host to be has a name nobody can have asked for.
    fn accepts_new_hostname(&self, candidate: Candidate) -> bool {
        let wanted = self.variant(candidate).hostname.as_ref();
        wanted.is_none_or(Requirement::is_complement)
    }

    pub(crate) fn node_takes_extras(&self, extra: u32, node: usize) -> bool {
        let (extra, state) = (&self.problem.intake.extras[extra as usize], &self.problem.nodes[node]);
        let attached = self.extras.node_volumes.get(&node).unwrap_or(&state.volumes);
        let no_volumes = Volumes::default();
        let wanted = attachments(extra).unwrap_or(&no_volumes);
        if attached.check(wanted).is_err() {
            return false;
        }
        let added = self.extras.node_ports.get(&node);
        state.ports.check(&extra.key, &extra.ports).is_ok() && !clashes(extra, added.into_iter().flatten())
    }

    /// The alternatives of a pod's volumes; one that asks for nothing when there are none.
    pub(super) fn alternatives(&mut self, extra: u32) -> Vec<Alternative> {
        if let Some(known) = self.extras.alternatives.get(&extra) {
            return known.clone();
        }
        let written = &self.problem.intake.extras[extra as usize].alternatives;
        let mut alternatives = Vec::with_capacity(written.len().max(1));
        for requirements in written {
            let mut requirements = requirements.clone();
            let hostname = requirements.remove(KeyId::HOSTNAME);
            let set = self.space.set(requirements);
            alternatives.push(Alternative { set, hostname });
        }
        if alternatives.is_empty() {
            alternatives.push(Alternative::default());
        }
        self.extras.alternatives.insert(extra, alternatives.clone());
        alternatives
    }

    /// Whether a claim takes a plain pod; leaves the surviving rows in `survivors`.
    pub(super) fn probe_claim(&mut self, candidate: Candidate, claim: usize, base: StateId, target: StateId) -> bool {
        let shape = self.problem.shape(candidate.entry.shape);
        if self.claims.is_too_full(claim, shape) {
            self.memo.reject_claim(candidate.fit, claim);
            return false;
        }
        self.work.probes += 1;
        if self.variant(candidate).hostname.is_some() && !self.accepts_new_hostname(candidate) {
            return false;
        }
        let template = &self.problem.templates[self.claims.templates[claim] as usize];
        if !self.fits(template, claim, shape, target) {
            if base == target || !self.fits(template, claim, shape, base) {
                self.refresh_most(claim);
                self.memo.reject_claim(candidate.fit, claim);
            }
            return false;
        }
        self.keeps_min_values(target) && self.keeps_reservations(claim, target)
    }

    fn keeps_min_values(&self, target: StateId) -> bool {
        let state = self.space.state(target);
        !state.has_min_values || self.check_min_values(&state.requirements).is_ok()
    }

    fn keeps_reservations(&self, claim: usize, target: StateId) -> bool {
        let state = self.space.state(target);
        let chosen = self
            .reserved
            .choose(Self::claim_id(claim), state, &self.survivors, &self.problem.index);
        chosen.is_ok()
    }

    /// Whether the rows in `survivors` have as many different values as the requirements ask for.
    fn check_min_values(&self, requirements: &Requirements) -> Result<usize, MinValuesUnmet> {
        let index = &self.problem.index;
        let types = index
            .types_in(&self.survivors)
            .map(|entry| &*index.types[entry as usize]);
        needed_for_min_values(types, requirements, &self.problem.vocabulary)
    }

    /// Whether some row of the claim holds its pods and one more in a state; leaves those rows in `survivors`.
    fn fits(&mut self, template: &TemplateEntry, claim: usize, shape: &[i64], state: StateId) -> bool {
        let Self {
            claims,
            space,
            survivors,
            problem,
            ..
        } = self;
        let (rows, open) = (claims.rows(claim), &space.state(state).rows);
        let requests = claims.requests(claim);
        survivors.fill(0);
        fill(survivors, template, rows, open, requests, shape, problem, |_| true)
    }

    fn refresh_most(&mut self, claim: usize) {
        for lane in 0..self.problem.lanes.len() {
            let most = self.problem.index.column(lane).largest(self.claims.rows(claim));
            self.claims.set_most(claim, lane, most.unwrap_or(0));
        }
    }

    /// Whether a claim takes a pod with ports, volumes or devices: the state it would be in, rows in `survivors`.
    pub(super) fn probe_claim_with_extras(&mut self, candidate: Candidate, claim: usize) -> Option<StateId> {
        self.work.probes += 1;
        let template = self.claims.templates[claim] as usize;
        let start = Start {
            template,
            state: self.claims.states[claim],
            claim: Some(claim),
        };
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        rows.extend_from_slice(self.claims.rows(claim));
        let opening = self.with_extras(candidate, start, &mut rows, false);
        self.rows = rows;
        Some(opening.ok()?.target)
    }

    /// Whether a new claim of a template takes the pod.
    pub(super) fn probe_template(&mut self, candidate: Candidate, template: usize) -> Result<Opening, TemplateRefusal> {
        self.probe_template_from(candidate, template, self.template_states[template])
    }

    /// The same for a claim that begins in a narrower state than its template.
    pub(super) fn probe_template_from(
        &mut self,
        candidate: Candidate,
        template: usize,
        state: StateId,
    ) -> Result<Opening, TemplateRefusal> {
        self.probe_template_within(candidate, template, state, &[])
    }

    /// The same for a claim that may become no machine with more of something than this.
    pub(super) fn probe_template_within(
        &mut self,
        candidate: Candidate,
        template: usize,
        state: StateId,
        most: &[(ResourceName, i64)],
    ) -> Result<Opening, TemplateRefusal> {
        self.work.probes += 1;
        let open = self.limits[template].open().map_err(TemplateRefusal::Limit)?;
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        rows.extend_from_slice(open);
        for (name, most) in most {
            if let Some(column) = self.problem.index.capacity(name) {
                column.keep_at_most(*most, &mut rows);
            }
        }
        let start = Start {
            template,
            state,
            claim: None,
        };
        let is_best_effort =
            self.problem.snapshot.settings().min_values_policy == model::snapshot::MinValuesPolicy::BestEffort;
        let opening = self.with_extras(candidate, start, &mut rows, is_best_effort);
        self.rows = rows;
        opening
    }

    /// The whole sequence of tests for a claim, open or new, in upstream's order; of its rows some are taken out.
    fn with_extras(
        &mut self,
        candidate: Candidate,
        start: Start,
        rows: &mut [u64],
        relaxes_min_values: bool,
    ) -> Result<Opening, TemplateRefusal> {
        let problem = self.problem;
        let entry = candidate.entry;
        let template = &problem.templates[start.template];
        let variant = self.variant(candidate);
        let (set, tolerations) = (variant.set, variant.tolerations);
        if !self.tolerance.tolerates(tolerations, template.taints) {
            return Err(TemplateRefusal::Taints);
        }
        let extra = (entry.extra != PLAIN).then(|| &problem.intake.extras[entry.extra as usize]);
        if let Some(volumes) = extra.and_then(attachments).filter(|volumes| !volumes.is_empty()) {
            self.drop_over_volume_limit(start.claim, volumes, rows);
            if is_empty(rows) {
                return Err(TemplateRefusal::VolumeLimits);
            }
        }
        if !self.accepts_new_hostname(candidate) {
            return Err(TemplateRefusal::Hostname);
        }
        let Step::To(base) = self.space.join(start.state, set) else {
            return Err(TemplateRefusal::Requirements);
        };
        if extra.is_none() {
            let anywhere = Alternative::default();
            return self.try_alternative(candidate, start, rows, base, &anywhere, relaxes_min_values);
        }
        let mut last = TemplateRefusal::Requirements;
        for alternative in self.alternatives(entry.extra) {
            match self.try_alternative(candidate, start, rows, base, &alternative, relaxes_min_values) {
                Ok(opening) => return Ok(opening),
                Err(refusal) => last = refusal,
            }
        }
        Err(last)
    }

    fn try_alternative(
        &mut self,
        candidate: Candidate,
        start: Start,
        rows: &[u64],
        base: StateId,
        alternative: &Alternative,
        relaxes_min_values: bool,
    ) -> Result<Opening, TemplateRefusal> {
        let problem = self.problem;
        let is_anywhere = alternative.hostname.as_ref().is_none_or(Requirement::is_complement);
        let Step::To(mut narrower) = self.space.join(base, alternative.set) else {
            return Err(TemplateRefusal::VolumeRequirements(alternative.clone()));
        };
        if !is_anywhere {
            return Err(TemplateRefusal::VolumeRequirements(alternative.clone()));
        }
        let claim = start.claim.unwrap_or_else(|| self.claims.len());
        let asked = self.ask_for_devices(candidate, start, claim)?;
        if let Some(asked) = &asked {
            let set = self.space.set(asked.requirements.clone());
            narrower = match self.space.join(narrower, set) {
                Step::To(narrower) => narrower,
                Step::Conflict | Step::Undefined => {
                    return Err(TemplateRefusal::DeviceRequirements(
                        narrower,
                        asked.requirements.clone(),
                    ));
                }
            };
        }
        let Some(mut target) = self.narrow(narrower) else {
            return Err(TemplateRefusal::Topology(narrower));
        };
        if !self.fits_with_extras(candidate, start, rows, target) {
            return Err(TemplateRefusal::Types(target));
        }
        let mut is_relaxed = false;
        if self.space.state(target).has_min_values
            && let Err(unmet) = self.check_min_values(&self.space.state(target).requirements)
        {
            if !relaxes_min_values {
                return Err(TemplateRefusal::MinValues(target, unmet));
            }
            (target, is_relaxed) = self.lower_min_values(target, &unmet);
        }
        if let Some(asked) = &asked {
            let survivors = self.survivors.iter_mut().zip(&asked.rows);
            survivors.for_each(|(row, kept)| *row &= kept);
            if is_empty(&self.survivors) {
                return Err(TemplateRefusal::DeviceTypes);
            }
        }
        let state = self.space.state(target);
        let reservations = self
            .reserved
            .choose(Self::claim_id(claim), state, &self.survivors, &problem.index)
            .map_err(TemplateRefusal::Reserved)?;
        self.keep_devices(asked);
        Ok(Opening {
            target,
            is_relaxed,
            reservations,
        })
    }

    /// What the pod's devices ask of a claim, going by the claim as it is: the pod's own keys do not count yet.
    fn ask_for_devices(
        &mut self,
        candidate: Candidate,
        start: Start,
        claim: usize,
    ) -> Result<Option<Asked>, TemplateRefusal> {
        if candidate.entry.extra == PLAIN || self.problem.devices.is_none() {
            return Ok(None);
        }
        let rows = match start.claim {
            Some(claim) => self.claims.mask(claim),
            None => self.limits[start.template]
                .open()
                .map_err(TemplateRefusal::Limit)?
                .clone(),
        };
        self.ask_claim(candidate.entry.extra, claim, start.state, &rows)
            .map_err(TemplateRefusal::Devices)
    }

    fn fits_with_extras(&mut self, candidate: Candidate, start: Start, rows: &[u64], target: StateId) -> bool {
        let Self {
            claims,
            space,
            survivors,
            problem,
            extras,
            ..
        } = self;
        let requests = start.claim.map_or(&problem.nothing[..], |claim| claims.requests(claim));
        let template = &problem.templates[start.template];
        let extra = (candidate.entry.extra != PLAIN).then(|| &problem.intake.extras[candidate.entry.extra as usize]);
        let taken = start.claim.and_then(|claim| extras.claim_ports.get(&claim));
        let is_free = |daemons: &[(ObjectKey, Vec<HostPort>)]| {
            extra.is_none_or(|extra| !clashes(extra, daemons.iter().chain(taken.into_iter().flatten())))
        };
        survivors.fill(0);
        let shape = problem.shape(candidate.entry.shape);
        let open = &space.state(target).rows;
        fill(survivors, template, rows, open, requests, shape, problem, is_free)
    }

    /// The state with `minValues` lowered to what can be had, and whether that lowered anything.
    fn lower_min_values(&mut self, state: StateId, unmet: &MinValuesUnmet) -> (StateId, bool) {
        let vocabulary = &self.problem.vocabulary;
        let (mut requirements, side) = {
            let state = self.space.state(state);
            (state.requirements.clone(), state.side)
        };
        for (name, achieved) in &unmet.labels {
            let requirement = vocabulary
                .key(name)
                .and_then(|key: KeyId| requirements.get(key).cloned());
            if let Some(requirement) = requirement {
                let achieved = u32::try_from(*achieved).unwrap_or(u32::MAX);
                requirements.replace(requirement.with_min_values(Some(achieved)));
            }
        }
        (self.space.intern(requirements, side), true)
    }

    fn drop_over_volume_limit(&self, claim: Option<usize>, volumes: &Volumes, rows: &mut [u64]) {
        let index = &self.problem.index;
        let none = Volumes::default();
        let attached = claim
            .and_then(|claim| self.extras.claim_volumes.get(&claim))
            .unwrap_or(&none);
        for (driver, count) in attached.counts_with(volumes) {
            for (row, entry) in index.rows.iter().enumerate() {
                let limit = index.types[*entry as usize].volume_limits.get(driver);
                if limit.is_some_and(|limit| count > *limit) {
                    rows[row / 64] &= !(1 << (row % 64));
                }
            }
        }
    }
}

/// Where a claim stands before the pod.
#[derive(Clone, Copy)]
struct Start {
    template: usize,
    state: StateId,
    /// None for a new claim.
    claim: Option<usize>,
}

/// The rows that hold requests, shape and daemons; false when there are none.
#[expect(
    clippy::too_many_arguments,
    reason = "the inner loop of everything: one call, no detours"
)]
#[inline]
fn fill(
    survivors: &mut [u64],
    template: &TemplateEntry,
    rows: &[u64],
    open: &[u64],
    requests: &[i64],
    shape: &[i64],
    problem: &crate::problem::Problem,
    is_free: impl Fn(&[(ObjectKey, Vec<HostPort>)]) -> bool,
) -> bool {
    let mut any = 0;
    for group in template.daemons.iter().filter(|group| is_free(&group.ports)) {
        let mut fitting: SmallVec<[&[u64]; 8]> = SmallVec::new();
        for (lane, ((requests, asked), overhead)) in requests.iter().zip(shape).zip(&group.overhead).enumerate() {
            let total = requests + asked + overhead;
            if total > 0 {
                fitting.push(problem.index.column(lane).at_least(total));
            }
        }
        for at in 0..survivors.len() {
            let mut word = rows[at] & open[at] & group.rows[at];
            for column in &fitting {
                word &= column[at];
            }
            survivors[at] |= word;
            any |= word;
        }
    }
    any != 0
}

/// What a pod attaches.
pub(super) fn attachments(extra: &Extra) -> Option<&Volumes> {
    extra
        .volumes
        .as_ref()
        .and_then(|volumes| volumes.attachments.as_ref().ok())
}

fn clashes<'a>(extra: &Extra, taken: impl Iterator<Item = &'a (ObjectKey, Vec<HostPort>)>) -> bool {
    if extra.ports.is_empty() {
        return false;
    }
    let mut usage = HostPortUsage::default();
    for (key, ports) in taken {
        usage.add(key.clone(), ports.clone());
    }
    usage.check(&extra.key, &extra.ports).is_err()
}
