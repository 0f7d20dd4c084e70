//! Devices for pods that claim them: asked for in a probe, taken when the pod is placed.

use std::collections::BTreeSet;

use devices::{Allocation, Allocator, DraError, Host, HostId, TypeId};
use model::{object::NodeName, requirement::Requirements};

use super::Run;
use crate::{
    bitmap::put,
    space::{Side, StateId},
};

/// The allocator of a run, and what the last successful probe found.
#[derive(Debug)]
pub(super) struct Devices {
    allocator: Allocator,
    found: Option<Allocation>,
    /// A search ran out of steps: the run ends, as upstream's does.
    pub(super) is_exhausted: bool,
}

/// What the devices of a pod ask of a claim.
pub(super) struct Asked {
    pub(super) requirements: Requirements,
    /// Rows of the types that have the devices.
    pub(super) rows: Box<[u64]>,
    allocation: Allocation,
}

impl Devices {
    pub(super) fn new(allocator: Allocator) -> Self {
        Self {
            allocator,
            found: None,
            is_exhausted: false,
        }
    }
}

impl Run<'_> {
    /// The devices a claim would give a pod; none for pods without claims.
    pub(super) fn ask_claim(
        &mut self,
        extra: u32,
        claim: usize,
        state: StateId,
        rows: &[u64],
    ) -> Result<Option<Asked>, String> {
        let problem = self.problem;
        let (Some(demand), Some(devices)) = (&problem.devices, &mut self.devices) else {
            return Ok(None);
        };
        devices.found = None;
        let Some(Ok(claims)) = demand.claims.get(extra as usize) else {
            return Ok(None);
        };
        if !problem.intake.extras[extra as usize].has_devices {
            return Ok(None);
        }
        let Side::Claim(template) = self.space.state(state).side else {
            return Ok(None);
        };
        let left: BTreeSet<TypeId> = problem
            .index
            .types_in(rows)
            .map(|entry| demand.types[entry as usize])
            .collect();
        let in_order = if claim < self.claims.len() {
            &demand.filtered_types[template as usize]
        } else {
            &demand.template_types[template as usize]
        };
        let types: Vec<TypeId> = in_order.iter().copied().filter(|it| left.contains(it)).collect();
        let host = Host {
            id: HostId::Claim(claim as u32),
            node_name: None,
            requirements: &self.space.state(state).requirements,
            types: &types,
            has_templates: true,
        };
        match devices.allocator.allocate(&host, claims, &problem.vocabulary) {
            Ok(allocation) => {
                let is_kept = |entry: u32| allocation.types.contains(&demand.types[entry as usize]);
                let mut kept = problem.index.empty_mask();
                for (row, entry) in problem.index.rows.iter().enumerate() {
                    if is_kept(*entry) {
                        put(&mut kept, row);
                    }
                }
                Ok(Some(Asked {
                    requirements: allocation.requirements.clone(),
                    rows: kept,
                    allocation,
                }))
            }
            Err(error) => {
                devices.is_exhausted |= error == DraError::Exhausted;
                Err(format!("allocating dynamic resources, {error}"))
            }
        }
    }

    /// Nodes go in a simulation, and pods leave them: their devices go too, or are free again.
    pub(crate) fn leave_devices<'a>(&mut self, nodes: &[NodeName], pods: impl Iterator<Item = &'a u32>) {
        let problem = self.problem;
        if let Some(devices) = &mut self.devices {
            let pods = pods.map(|pod| problem.pods[*pod as usize].pod.uid());
            devices.allocator.leave(nodes, pods);
        }
    }

    /// Keeps what a probe found, until the pod is placed.
    pub(super) fn keep_devices(&mut self, asked: Option<Asked>) {
        if let Some(devices) = &mut self.devices {
            devices.found = asked.map(|asked| asked.allocation);
        }
    }

    /// Whether a node has the devices a pod claims; what it found is kept.
    pub(super) fn node_has_devices(&mut self, extra: u32, node: usize) -> bool {
        let problem = self.problem;
        let (Some(demand), Some(devices)) = (&problem.devices, &mut self.devices) else {
            return true;
        };
        devices.found = None;
        if !problem.intake.extras[extra as usize].has_devices {
            return true;
        }
        let Some(Ok(claims)) = demand.claims.get(extra as usize) else {
            return false;
        };
        let state = &problem.nodes[node];
        let mut requirements = demand.node_requirements[node].clone();
        let narrowed = &self.space.state(self.nodes.states[node]).requirements;
        requirements.add_all(narrowed, &problem.vocabulary);
        let types = [demand.node_types[node]];
        let host = Host {
            id: HostId::Node(node as u32),
            node_name: state.node.as_ref().map(|_| state.name.as_str()),
            requirements: &requirements,
            types: &types,
            has_templates: !state.is_initialized,
        };
        match devices.allocator.allocate(&host, claims, &problem.vocabulary) {
            Ok(allocation) => {
                devices.found = Some(allocation);
                true
            }
            Err(error) => {
                devices.is_exhausted |= error == DraError::Exhausted;
                false
            }
        }
    }

    /// Takes the devices the last probe found, for a claim with these rows or a node.
    pub(super) fn take_devices(&mut self, rows: Option<&[u64]>, node: Option<usize>) {
        let problem = self.problem;
        let (Some(demand), Some(devices)) = (&problem.devices, &mut self.devices) else {
            return;
        };
        let Some(allocation) = devices.found.take() else { return };
        let kept: Vec<TypeId> = match (rows, node) {
            (Some(rows), _) => problem
                .index
                .types_in(rows)
                .map(|entry| demand.types[entry as usize])
                .collect(),
            (None, Some(node)) => vec![demand.node_types[node]],
            (None, None) => Vec::new(),
        };
        devices.allocator.commit(allocation, &kept, &problem.vocabulary);
    }

    /// The drivers whose devices a claim's pods got, sorted.
    pub(crate) fn device_drivers(&self, claim: usize) -> Vec<model::object::Text> {
        let devices = self.devices.as_ref();
        devices.map_or_else(Vec::new, |devices| {
            devices.allocator.requested_drivers(HostId::Claim(claim as u32))
        })
    }

    /// A search for devices ran out of steps.
    pub(super) fn is_exhausted(&self) -> bool {
        self.devices.as_ref().is_some_and(|devices| devices.is_exhausted)
    }
}
