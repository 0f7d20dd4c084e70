//! Everything a run reads and never writes: supply and demand as numbers.

use std::sync::Arc;

use model::{
    host_port::HostPort,
    instance_type::InstanceType,
    object::{NodeName, ObjectKey, Uid},
    quantity::Quantity,
    requirement::Requirements,
    resources::{ResourceList, ResourceName},
    snapshot::Snapshot,
    vocabulary::Vocabulary,
    volume::Volumes,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    Options,
    demand::{Demand, DemandPod, Origin},
    device_demand::DeviceDemand,
    index::{Index, Mask},
    intake::{Intake, NodeLabels},
    lanes::{self, Lanes},
    supply::{StateNode, Supply, Template},
    tolerance::{TaintsId, Tolerance},
    topology::{Scene, bound::BoundPods},
};

/// Everything a run reads and never writes.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) snapshot: Snapshot,
    pub(crate) options: Options,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) has_no_pools: bool,
    pub(crate) has_preferred_taints: bool,
    pub(crate) templates: Vec<TemplateEntry>,
    pub(crate) nodes: Vec<StateNode>,
    pub(crate) node_taints: Vec<TaintsId>,
    /// Room on nodes, lane by lane, node by node.
    pub(crate) node_room: Vec<i64>,
    /// Nodes on which nothing fits because something is overdrawn already.
    pub(crate) overdrawn: Vec<bool>,
    pub(crate) universe: Vec<crate::supply::Domain>,
    pub(crate) pods: Vec<DemandPod>,
    pub(crate) intake: Intake,
    pub(crate) lanes: Lanes,
    /// What each shape asks for, lane by lane.
    pub(crate) shapes: Vec<i64>,
    pub(crate) index: Index,
    pub(crate) tolerance: Tolerance,
    pub(crate) bound: BoundPods,
    pub(crate) bound_requirements: Vec<Requirements>,
    pub(crate) node_requirements: Vec<Requirements>,
    pub(crate) avoider_wishes: Vec<u32>,
    /// None when no pod claims devices, or nobody looks.
    pub(crate) devices: Option<DeviceDemand>,
    /// Pods in the order they are tried; residents too, who are tried only when their node goes.
    pub(crate) order: Vec<u32>,
}

/// A NodePool that can launch nodes, as numbers.
#[derive(Debug)]
pub(crate) struct TemplateEntry {
    pub(crate) template: Template,
    pub(crate) taints: TaintsId,
    pub(crate) rows: Mask,
    pub(crate) daemons: Vec<DaemonRows>,
    /// What the limits leave, in lane units, `nodes` too.
    pub(crate) remaining: Option<Vec<(ResourceName, i64)>>,
}

/// Rows that run the same daemons.
#[derive(Debug)]
pub(crate) struct DaemonRows {
    pub(crate) rows: Mask,
    pub(crate) overhead: Vec<i64>,
    pub(crate) asked: ResourceList,
    pub(crate) ports: Vec<(ObjectKey, Vec<HostPort>)>,
}

impl Problem {
    /// What there is to place on what.
    pub(crate) fn new(snapshot: &Snapshot, demand: Demand, supply: Supply, options: &Options) -> Self {
        let Supply {
            mut vocabulary,
            has_no_pools,
            templates,
            has_preferred_taints,
            nodes,
            universe,
            ..
        } = supply;
        let moving: FxHashSet<&Uid> = demand
            .pods
            .iter()
            .filter(|entry| !is_resident(entry))
            .map(|entry| entry.pod.uid())
            .collect();
        let bound = BoundPods::new(snapshot, &moving);
        let avoiders: Vec<_> = bound.avoiders.iter().map(|(pod, _)| Arc::clone(pod)).collect();
        let policy = snapshot.settings().preference_policy;
        let (intake, avoider_wishes) = Intake::new(&demand.pods, &avoiders, policy, &mut vocabulary);
        let mut devices = DeviceDemand::new(snapshot, options, &demand.pods, &intake, &nodes, &mut vocabulary);
        let mut labels = NodeLabels::new(intake.node_keys());
        let node_requirements = nodes
            .iter()
            .map(|node| labels.requirements(&node.labels, &mut vocabulary))
            .collect();
        let bound_requirements = bound
            .nodes
            .iter()
            .map(|node| labels.requirements(&node.metadata.labels, &mut vocabulary))
            .collect();
        let lanes = lanes_of(&intake, &templates);
        let shapes = intake.shapes.iter().flat_map(|shape| lanes.asked(shape)).collect();
        let mut tolerance = Tolerance::default();
        let node_taints = nodes.iter().map(|node| tolerance.taints(&node.taints)).collect();
        let node_room = nodes.iter().flat_map(|node| lanes.offered(&node.remaining)).collect();
        let is_overdrawn = |node: &StateNode| {
            let is_negative = node.remaining.iter().any(|(_, left)| left.is_negative());
            is_negative || node.volumes.check(&Volumes::default()).is_err()
        };
        let overdrawn = nodes.iter().map(is_overdrawn).collect();
        let index = index_of(&templates, &lanes, &vocabulary);
        if let Some(devices) = &mut devices {
            devices.number_types(&index, &nodes, &templates);
        }
        let templates = entries(templates, &lanes, &index, &mut tolerance);
        let order = order(&demand.pods, &intake);
        Self {
            snapshot: snapshot.clone(),
            options: options.clone(),
            vocabulary,
            has_no_pools,
            has_preferred_taints,
            templates,
            nodes,
            node_taints,
            node_room,
            overdrawn,
            universe,
            pods: demand.pods,
            intake,
            lanes,
            shapes,
            index,
            tolerance,
            bound,
            bound_requirements,
            node_requirements,
            avoider_wishes,
            devices,
            order,
        }
    }

    /// What a shape asks for, lane by lane.
    #[inline]
    pub(crate) fn shape(&self, shape: u32) -> &[i64] {
        let lanes = self.lanes.len();
        &self.shapes[shape as usize * lanes..(shape as usize + 1) * lanes]
    }

    /// The pods that need a place, in the order they are tried.
    pub(crate) fn demand(&self) -> impl Iterator<Item = u32> + '_ {
        let order = self.order.iter().copied();
        order.filter(|pod| !is_resident(&self.pods[*pod as usize]))
    }

    /// What topology counts from.
    pub(crate) fn scene(&self) -> Scene<'_> {
        let host = |(at, node): (usize, &StateNode)| (node.hostname.clone(), at as u32);
        Scene {
            snapshot: &self.snapshot,
            nodes: &self.nodes,
            universe: &self.universe,
            bound: &self.bound,
            // Of two nodes with one hostname the first in order keeps it.
            hosts: self.nodes.iter().enumerate().rev().map(host).collect(),
            bound_requirements: &self.bound_requirements,
            node_requirements: &self.node_requirements,
        }
    }

    /// A node by name.
    pub(crate) fn node_name(&self, node: usize) -> &NodeName {
        &self.nodes[node].name
    }
}

fn is_resident(entry: &DemandPod) -> bool {
    matches!(entry.origin, Origin::Resident(_))
}

fn lanes_of(intake: &Intake, templates: &[Template]) -> Lanes {
    let mut lanes = Lanes::default();
    for shape in &intake.shapes {
        lanes.cover(shape);
    }
    for daemons in templates.iter().flat_map(|template| &template.daemons) {
        lanes.cover(&daemons.overhead);
    }
    lanes
}

/// One index over the types of all NodePools; a type that several have alike is there once.
fn index_of(templates: &[Template], lanes: &Lanes, vocabulary: &Vocabulary) -> Index {
    let mut types: Vec<Arc<InstanceType>> = Vec::new();
    let mut seen: FxHashSet<usize> = FxHashSet::default();
    let mut limited: Vec<ResourceName> = Vec::new();
    for template in templates {
        let new = template
            .types
            .iter()
            .filter(|entry| seen.insert(Arc::as_ptr(entry) as usize));
        types.extend(new.cloned());
        for (name, _) in template.remaining.iter().flat_map(ResourceList::iter) {
            if !limited.contains(name) {
                limited.push(name.clone());
            }
        }
    }
    Index::new(types, lanes, &limited, vocabulary)
}

fn entries(templates: Vec<Template>, lanes: &Lanes, index: &Index, tolerance: &mut Tolerance) -> Vec<TemplateEntry> {
    let places: FxHashMap<usize, u32> = index
        .types
        .iter()
        .zip(0..)
        .map(|(entry, at)| (Arc::as_ptr(entry) as usize, at))
        .collect();
    let place = |entry: &Arc<InstanceType>| places.get(&(Arc::as_ptr(entry) as usize)).copied();
    let rows = |types: FxHashSet<u32>| index.rows_of(|entry| types.contains(&entry));
    let entry = |template: Template| {
        let daemons = template.daemons.iter().map(|group| DaemonRows {
            rows: rows(
                group
                    .types
                    .iter()
                    .filter_map(|at| place(&template.types[*at]))
                    .collect(),
            ),
            overhead: lanes.asked(&group.overhead),
            asked: group.overhead.clone(),
            ports: group.ports.clone(),
        });
        let remaining = |list: &ResourceList| {
            let lane = |(name, left): (&ResourceName, _)| (name.clone(), lanes::offered(name, left));
            list.iter().map(lane).collect()
        };
        TemplateEntry {
            taints: tolerance.taints(&template.pool.spec.template.spec.taints),
            rows: rows(template.types.iter().filter_map(place).collect()),
            daemons: daemons.collect(),
            remaining: template.remaining.as_ref().map(remaining),
            template,
        }
    };
    templates.into_iter().map(entry).collect()
}

/// Largest first by cpu, then by memory; then oldest first, then by uid: a total order.
fn order(pods: &[DemandPod], intake: &Intake) -> Vec<u32> {
    let size = |shape: &ResourceList| (shape.amount("cpu"), shape.amount("memory"));
    let sizes: Vec<_> = intake.shapes.iter().map(size).collect();
    let mut distinct = sizes.clone();
    distinct.sort_unstable_by(|a, b| b.cmp(a));
    distinct.dedup();
    let rank = |size: &(Quantity, Quantity)| distinct.binary_search_by(|other| size.cmp(other)).unwrap_or_default();
    let ranks: Vec<usize> = sizes.iter().map(rank).collect();
    let mut order: Vec<_> = (0_u32..)
        .zip(pods)
        .zip(&intake.pods)
        .map(|((at, pod), entry)| {
            let metadata = &pod.pod.metadata;
            (
                ranks[entry.shape as usize],
                metadata.creation_timestamp,
                &metadata.uid,
                at,
            )
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(.., at)| at).collect()
}
