//! Could the pods of a claim run on every node the cloud may launch for it?

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    object::{InstanceTypeName, NodePool, ObjectKey, Pod, Taint, Text},
    plan::{Plan, PlannedClaim, Slot},
    requirement::{Operator, Requirements},
    snapshot::Snapshot,
    vocabulary::{KeyId, ValueId},
};

use super::{
    Place, Reason, Rule, Verdict,
    daemon::{Daemon, daemons},
    expected,
    labels::{ClaimLabels, Launched},
    min_values, placement,
    supply::Supply,
    topology,
};
use crate::plugin::node_affinity::NodeLabels;

/// A claim once it is known what may come of it.
#[derive(Debug)]
pub(super) struct ClaimView {
    pub(super) place: Place,
    pub(super) slot: Slot,
    pub(super) hostname: Text,
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) taints: Vec<Taint>,
    /// Labels of the launch that is expected.
    pub(super) labels: BTreeMap<Text, Text>,
    /// The domains that are possible, by topology key; a node without the label has none.
    pub(super) domains: BTreeMap<Text, BTreeSet<Option<Text>>>,
    /// The labels its constraints speak of.
    pub(super) constrained: BTreeSet<Text>,
    /// Topology keys whose domain its NodePool leaves open.
    pub(super) unpinned: BTreeSet<Text>,
}

impl ClaimView {
    /// The keys of which it is open what the node's domain will be.
    pub(super) fn open_keys(&self) -> impl Iterator<Item = &Text> {
        let open = self.domains.iter().filter(|(_, domains)| domains.len() > 1);
        open.map(|(key, _)| key)
    }
}

/// Everything the checks of one claim look at.
pub(super) struct Context<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) supply: &'a Supply,
    pub(super) daemons: &'a [Daemon],
    pub(super) pool: &'a NodePool,
    pub(super) place: Place,
    pub(super) labels: ClaimLabels,
    pub(super) requirements: &'a Requirements,
    /// Type and offering of each node that may be launched.
    pub(super) launches: Vec<(usize, usize)>,
}

impl<'a> Context<'a> {
    pub(super) fn launched(&'a self, (kind, offering): (usize, usize)) -> Option<Launched<'a>> {
        let kind = self.supply.types.get(kind)?;
        Some(Launched {
            claim: &self.labels,
            kind,
            offering: kind.offerings.get(offering)?,
            vocabulary: &self.supply.vocabulary,
            choice: 0,
        })
    }

    /// Whether the claim may only use reserved capacity.
    pub(super) fn is_reserved(&self) -> bool {
        let capacity_type = self.requirements.get(KeyId::CAPACITY_TYPE);
        capacity_type.is_some_and(|it| it.len() == 1 && it.admits(ValueId::RESERVED, &self.supply.vocabulary))
    }

    pub(super) fn all_launched(&'a self) -> impl Iterator<Item = Launched<'a>> {
        self.launches.iter().filter_map(|launch| self.launched(*launch))
    }
}

pub(super) fn check(snapshot: &Snapshot, supply: &mut Supply, plan: &Plan, verdict: &mut Verdict) -> Vec<ClaimView> {
    let daemons = daemons(snapshot, &mut supply.dictionary);
    let keys = topology::keys(snapshot, plan);
    let mut views = Vec::new();
    for (at, claim) in plan.claims.iter().enumerate() {
        let place = Place::Claim(at);
        let Some(pool) = pool_of(snapshot, claim, &place, verdict) else {
            continue;
        };
        let requirements = Requirements::from_specs(claim.constraints.iter(), &mut supply.vocabulary);
        let hostname = expected::node_name(at);
        let labels = ClaimLabels::new(claim, pool, &hostname, requirements.clone(), &supply.vocabulary);
        let pods: Vec<_> = claim.pods.iter().map(|pod| current(snapshot, pod)).collect();
        placement::prepare(&pods, &mut supply.dictionary);
        let mut context = Context {
            snapshot,
            supply,
            daemons: &daemons,
            pool,
            place,
            labels,
            requirements: &requirements,
            launches: Vec::new(),
        };
        context.launches = launches(&context, claim, verdict);
        min_values::check(&context, claim, verdict);
        placement::check(&context, &pods, verdict);
        views.push(view(&context, claim, hostname, pods, &keys));
    }
    views
}

fn pool_of<'a>(
    snapshot: &'a Snapshot,
    claim: &PlannedClaim,
    place: &Place,
    verdict: &mut Verdict,
) -> Option<&'a NodePool> {
    let name = &claim.node_pool;
    let Some(pool) = snapshot.node_pool(name) else {
        verdict.violate(
            Rule::NodePool,
            None,
            Some(place),
            format!("there is no NodePool \"{name}\""),
        );
        return None;
    };
    if pool.is_static() || pool.metadata.is_deleting() {
        let detail = format!("NodePool \"{name}\" is static or being deleted");
        verdict.violate(Rule::NodePool, None, Some(place), detail);
    }
    Some(pool)
}

/// The pod as the cluster has it, as it will be when it comes again: the plan may carry a changed copy.
pub(crate) fn current(snapshot: &Snapshot, pod: &Arc<Pod>) -> Arc<Pod> {
    let known = snapshot.objects().pods.get(&pod.metadata.key()).unwrap_or(pod);
    if known.node_name.is_none() && !known.metadata.is_deleting() {
        return Arc::clone(known);
    }
    let mut again = Pod::clone(known);
    (again.node_name, again.metadata.deletion_timestamp) = (None, None);
    Arc::new(again)
}

/// The launches that the claim allows; says what is wrong with its options on the way.
pub(super) fn launches(context: &Context<'_>, claim: &PlannedClaim, verdict: &mut Verdict) -> Vec<(usize, usize)> {
    let place = Some(&context.place);
    if claim.options.is_empty() {
        verdict.violate(Rule::Options, None, place, "there is no instance type");
    }
    for spec in claim.constraints.iter() {
        if spec.operator == Operator::In && spec.values.is_empty() {
            verdict.violate(Rule::Options, None, place, format!("no value is left for {}", spec.key));
        }
    }
    let mut launches = Vec::new();
    for name in claim.options.iter() {
        match launches_of(context, claim, name, verdict) {
            Some(of_type) => launches.extend(of_type),
            None => verdict.violate(
                Rule::Options,
                None,
                place,
                format!("the NodePool does not offer {name}"),
            ),
        }
    }
    if launches.is_empty() && !claim.options.is_empty() {
        let detail = "no offering that meets the constraints can be launched now";
        verdict.doubt(Reason::NothingToLaunch, Rule::Options, None, place, detail);
    }
    launches
}

/// The launches of one of its types; none when the NodePool does not offer it.
pub(super) fn launches_of(
    context: &Context<'_>,
    claim: &PlannedClaim,
    name: &InstanceTypeName,
    verdict: &mut Verdict,
) -> Option<Vec<(usize, usize)>> {
    let is_offered = context.supply.is_offered(&claim.node_pool, name);
    let at = context.supply.position(&claim.node_pool, name).filter(|_| is_offered)?;
    Some(launches_as(context, at, verdict))
}

fn launches_as(context: &Context<'_>, at: usize, verdict: &mut Verdict) -> Vec<(usize, usize)> {
    let (Some(kind), vocabulary) = (context.supply.types.get(at), &context.supply.vocabulary) else {
        return Vec::new();
    };
    if !kind.shape.requirements.intersects(context.requirements, vocabulary) {
        // A claim that holds reservations keeps types that have none: they are never launched.
        if context.is_reserved() {
            return Vec::new();
        }
        let detail = format!("{} does not meet the constraints", kind.name);
        verdict.violate(Rule::Options, None, Some(&context.place), detail);
        return Vec::new();
    }
    let offerings = kind.shape.offerings.iter().enumerate();
    let possible = offerings.filter(|(_, offering)| {
        offering.is_launchable(vocabulary) && offering.is_compatible(context.requirements, vocabulary)
    });
    possible.map(|(offering, _)| (at, offering)).collect()
}

fn view(
    context: &Context<'_>,
    claim: &PlannedClaim,
    hostname: Text,
    pods: Vec<Arc<Pod>>,
    keys: &BTreeSet<Text>,
) -> ClaimView {
    let domains = keys.iter().map(|key| {
        let all = context.all_launched().flat_map(|launched| {
            launched
                .choices(std::iter::once(&**key))
                .map(|launched| launched.label(key).map(Text::from))
                .collect::<Vec<_>>()
        });
        (key.clone(), all.collect())
    });
    let domains = domains.collect();
    let labels = expected::launch(context, claim)
        .map(|launched| launched.all())
        .unwrap_or_default();
    ClaimView {
        place: context.place.clone(),
        slot: match context.place {
            Place::Claim(at) => Slot::Claim(u32::try_from(at).unwrap_or(u32::MAX)),
            Place::Node(_) => Slot::Existing(u32::MAX),
        },
        hostname,
        pods,
        taints: context.pool.spec.template.spec.taints.to_vec(),
        labels,
        domains,
        unpinned: keys
            .iter()
            .filter(|key| !is_pinned(context.pool, key))
            .cloned()
            .collect(),
        constrained: claim.constraints.iter().map(|spec| spec.key.as_str().into()).collect(),
    }
}

/// Whether the NodePool leaves one value for the label, or the label is the node's own name.
fn is_pinned(pool: &NodePool, key: &str) -> bool {
    let template = &pool.spec.template;
    let mut requirements = template.spec.requirements.iter().filter(|it| *it.key == *key);
    key == "kubernetes.io/hostname"
        || template.metadata.labels.get(key).is_some()
        || requirements.any(|it| *it.operator == *"In" && it.values.len() == 1)
}

pub(super) fn key_of(pod: &Pod) -> ObjectKey {
    pod.metadata.key()
}
