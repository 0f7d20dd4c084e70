//! Everything a run reads and never writes: supply and demand as numbers.

use std::sync::{Arc, OnceLock};

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
    cost::adapt::Wares,
    demand::{Demand, DemandPod, Origin},
    device_demand::DeviceDemand,
    index::{Index, Mask},
    intake::{Intake, NodeLabels},
    lanes::{self, Lanes},
    supply::{Shape, StateNode, Supply, Template},
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
    /// Shapes that have room on no node, however empty the others are.
    pub(crate) is_too_large: Vec<bool>,
    /// Nodes on which nothing fits because something is overdrawn already.
    pub(crate) overdrawn: Vec<bool>,
    pub(crate) universe: Vec<crate::supply::Domain>,
    pub(crate) pods: Vec<DemandPod>,
    pub(crate) intake: Intake,
    pub(crate) lanes: Lanes,
    /// What each shape asks for, lane by lane.
    pub(crate) shapes: Vec<i64>,
    /// What nobody asks for, lane by lane.
    pub(crate) nothing: Vec<i64>,
    pub(crate) index: Arc<Index>,
    pub(crate) tolerance: Tolerance,
    pub(crate) bound: BoundPods,
    pub(crate) bound_requirements: Vec<Requirements>,
    pub(crate) node_requirements: Vec<Requirements>,
    pub(crate) avoider_wishes: Vec<u32>,
    /// None when no pod claims devices, or nobody looks.
    pub(crate) devices: Option<DeviceDemand>,
    /// Pods in the order they are tried; residents too, who are tried only when their node goes.
    pub(crate) order: Vec<u32>,
    /// What the cheaper passes may buy while no limit keeps anything out, once somebody asked.
    pub(crate) wares: OnceLock<Wares>,
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
        Self::warm(snapshot, demand, supply, options, &mut None)
    }

    /// The same with the index of an earlier run, if it is of the same types; this run's is left there.
    pub(crate) fn warm(
        snapshot: &Snapshot,
        demand: Demand,
        supply: Supply,
        options: &Options,
        kept: &mut Option<Arc<Index>>,
    ) -> Self {
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
            .filter(|entry| matches!(entry.origin, Origin::Moving(_)))
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
        let shapes: Vec<i64> = intake.shapes.iter().flat_map(|shape| lanes.asked(shape)).collect();
        let mut tolerance = Tolerance::default();
        let node_taints = nodes.iter().map(|node| tolerance.taints(&node.taints)).collect();
        let mut node_room = Vec::with_capacity(nodes.len() * lanes.len());
        for node in &nodes {
            lanes.offered_into(&node.remaining, &mut node_room);
        }
        let is_too_large = too_large(&shapes, &node_room, lanes.len());
        let is_overdrawn = |node: &StateNode| {
            let is_negative = node.remaining.iter().any(|(_, left)| left.is_negative());
            is_negative || node.volumes.check(&Volumes::default()).is_err()
        };
        let overdrawn = nodes.iter().map(is_overdrawn).collect();
        let (index, places) = index_of(&templates, &lanes, &vocabulary, kept);
        if let Some(devices) = &mut devices {
            devices.number_types(&index, &nodes, &templates);
        }
        let templates = entries(templates, &places, &lanes, &index, &mut tolerance);
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
            is_too_large,
            overdrawn,
            universe,
            pods: demand.pods,
            intake,
            nothing: vec![0; lanes.len()],
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
            wares: OnceLock::new(),
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

/// Which shapes ask for more of something than any node has left. In a fleet that is well packed these are nearly all of
/// them, and no node needs to be looked at.
fn too_large(shapes: &[i64], node_room: &[i64], lanes: usize) -> Vec<bool> {
    let mut most = vec![0; lanes];
    for room in node_room.chunks(lanes.max(1)) {
        for (most, room) in most.iter_mut().zip(room) {
            *most = (*most).max(*room);
        }
    }
    let is_too_large = |asked: &[i64]| asked.iter().zip(&most).any(|(asked, most)| asked > most);
    shapes.chunks(lanes.max(1)).map(is_too_large).collect()
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

/// One index over the types of all NodePools, in which a type that several have alike is there once, and where each
/// NodePool's types are in it. An index that was kept is taken if it is the one.
fn index_of(
    templates: &[Template],
    lanes: &Lanes,
    vocabulary: &Vocabulary,
    kept: &mut Option<Arc<Index>>,
) -> (Arc<Index>, Vec<Vec<u32>>) {
    let mut types: Vec<Arc<InstanceType>> = Vec::new();
    let mut shapes: Vec<Arc<[Shape]>> = Vec::new();
    let mut seen: FxHashMap<*const InstanceType, u32> = FxHashMap::default();
    let mut places = Vec::with_capacity(templates.len());
    let mut limited: Vec<ResourceName> = Vec::new();
    for template in templates {
        let mut place = |(entry, shape): (&Arc<InstanceType>, &Arc<[Shape]>)| {
            let next = types.len() as u32;
            let place = if templates.len() == 1 {
                next
            } else {
                *seen.entry(Arc::as_ptr(entry)).or_insert(next)
            };
            if place == next {
                types.push(Arc::clone(entry));
                shapes.push(Arc::clone(shape));
            }
            place
        };
        places.push(template.types.iter().zip(&template.shapes).map(&mut place).collect());
        for (name, _) in template.remaining.iter().flat_map(ResourceList::iter) {
            if !limited.contains(name) {
                limited.push(name.clone());
            }
        }
    }
    let index = match kept.take().filter(|kept| kept.is_of(&types, lanes, &limited)) {
        Some(kept) => kept,
        None => Arc::new(Index::new(types, &shapes, lanes, limited, vocabulary)),
    };
    *kept = Some(Arc::clone(&index));
    (index, places)
}

fn entries(
    templates: Vec<Template>,
    places: &[Vec<u32>],
    lanes: &Lanes,
    index: &Index,
    tolerance: &mut Tolerance,
) -> Vec<TemplateEntry> {
    let entry = |(template, places): (Template, &Vec<u32>)| {
        let daemons = template.daemons.iter().map(|group| DaemonRows {
            rows: index.rows_of(group.types.iter().map(|at| places[*at])),
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
            rows: index.rows_of(places.iter().copied()),
            daemons: daemons.collect(),
            remaining: template.remaining.as_ref().map(remaining),
            template,
        }
    };
    templates.into_iter().zip(places).map(entry).collect()
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
    let mut by_size: Vec<Vec<u32>> = vec![Vec::new(); distinct.len()];
    for (at, entry) in (0..).zip(&intake.pods) {
        by_size[ranks[entry.shape as usize]].push(at);
    }
    let mut order = Vec::with_capacity(pods.len());
    for equals in by_size {
        order.extend(by_age(equals, pods));
    }
    order
}

/// Oldest first, then by uid.
fn by_age(mut equals: Vec<u32>, pods: &[DemandPod]) -> Vec<u32> {
    let metadata = |at: u32| &pods[at as usize].pod.metadata;
    let numbered = |at: &u32| Some((metadata(*at).creation_timestamp, metadata(*at).uid.number()?, *at));
    let numbered: Option<Vec<_>> = equals.iter().map(numbered).collect();
    // Uids are numbers but in hand-written manifests.
    if let Some(mut numbered) = numbered {
        numbered.sort_unstable();
        return numbered.into_iter().map(|(.., at)| at).collect();
    }
    equals.sort_unstable_by_key(|at| (metadata(*at).creation_timestamp, &metadata(*at).uid, *at));
    equals
}
