//! Amounts of resources as kube-scheduler counts them: whole numbers, processors in thousandths, rounded up.

use model::{
    object::Pod,
    pod_requests::ContainerResources,
    quantity::Quantity,
    resources::{ResourceDictionary, ResourceList, ResourceName},
};

/// Place of the processors in every vector.
pub(crate) const CPU: usize = 0;
/// Place of the memory.
pub(crate) const MEMORY: usize = 1;

/// What a container that asks for nothing counts as when nodes are scored.
const DEFAULT_MILLI_CPU: i64 = 100;
const DEFAULT_MEMORY: i64 = 200 * 1024 * 1024;

/// Which place belongs to which resource. `pods` has none: it is counted apart.
#[derive(Debug, Clone)]
pub(crate) struct Dictionary {
    names: ResourceDictionary,
}

impl Default for Dictionary {
    fn default() -> Self {
        let mut names = ResourceDictionary::default();
        names.intern(&ResourceName::Cpu);
        names.intern(&ResourceName::Memory);
        Self { names }
    }
}

impl Dictionary {
    /// The amounts that are not zero, by place.
    pub(crate) fn sparse(&mut self, list: &ResourceList) -> Vec<(usize, i64)> {
        let counted = list.iter().filter(|(name, _)| **name != ResourceName::Pods);
        let amounts = counted.map(|(name, quantity)| (self.names.intern(name).index(), whole(name, quantity)));
        amounts.filter(|(_, amount)| *amount != 0).collect()
    }

    /// All amounts, by place.
    pub(crate) fn dense(&mut self, list: &ResourceList) -> Vec<i64> {
        let sparse = self.sparse(list);
        let mut dense = vec![0; self.names.len()];
        for (at, amount) in sparse {
            if let Some(place) = dense.get_mut(at) {
                *place = amount;
            }
        }
        dense
    }

    /// The resource of a place.
    pub(crate) fn name(&self, at: usize) -> &str {
        self.names
            .names()
            .find(|(id, _)| id.index() == at)
            .map_or("", |(_, name)| name.as_str())
    }
}

fn whole(name: &ResourceName, quantity: Quantity) -> i64 {
    if *name == ResourceName::Cpu {
        quantity.milli_value()
    } else {
        quantity.value()
    }
}

/// What a pod takes of processors and memory when nodes are scored: a container that does not say counts for a little.
pub(crate) fn non_zero(pod: &Pod) -> [i64; 2] {
    let least: ResourceList = [
        (ResourceName::Cpu, Quantity::from_millis(DEFAULT_MILLI_CPU)),
        (ResourceName::Memory, Quantity::from_bytes(DEFAULT_MEMORY)),
    ]
    .into_iter()
    .collect();
    let mut resources = pod.resources();
    let raised = |containers: &[ContainerResources<'_>]| -> Vec<ResourceList> {
        containers
            .iter()
            .map(|container| least.overlaid_with(container.requests))
            .collect()
    };
    let (containers, init) = (raised(&resources.containers), raised(&resources.init_containers));
    for (container, requests) in resources.containers.iter_mut().zip(&containers) {
        container.requests = requests;
    }
    for (container, requests) in resources.init_containers.iter_mut().zip(&init) {
        container.requests = requests;
    }
    let requests = resources.requests();
    [requests.amount("cpu").milli_value(), requests.amount("memory").value()]
}
