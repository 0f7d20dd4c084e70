//! What does a cluster look like whose nodes and pods somebody else placed? The mixed workload on machines that a plan
//! bought, for who plays on from there.

use crate::catalogue::{KWOK_LABELS, kwok};
use crate::fleet::{Machine, Stage};
use crate::object::{Object, running, unschedulable};
use crate::rng::Rng;
use crate::snapshot::Snapshot;
use crate::{consolidation, mixed};

/// A machine of kwok's catalogue and who runs there.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The node's name, and its claim's.
    pub name: String,
    /// A type of kwok's.
    pub instance_type: String,
    /// One of kwok's zones.
    pub zone: String,
    /// `spot` or `on-demand`.
    pub capacity_type: String,
    /// The pods on it.
    pub pods: Vec<Object>,
}

/// A settled cluster of the mixed workload's pool: these machines, and pods that wait.
pub fn cluster(name: &str, machines: &[Placed], waiting: &[Object]) -> Snapshot {
    let catalogue = kwok();
    let mut snapshot = Snapshot::new(name, "workloads", catalogue.clone(), &KWOK_LABELS);
    snapshot.objects.push(mixed::pool());
    for placed in machines {
        let Some(it) = catalogue.iter().find(|it| it.name == placed.instance_type) else {
            continue;
        };
        let machine = Machine {
            name: placed.name.clone(),
            pool: "default",
            it,
            zone: &placed.zone,
            capacity_type: &placed.capacity_type,
            stage: Stage::Initialized,
        };
        snapshot.objects.extend([machine.node(), machine.claim()]);
        let pods = placed.pods.iter().cloned();
        snapshot.objects.extend(pods.map(|pod| running(pod, &placed.name)));
    }
    snapshot.objects.extend(waiting.iter().cloned().map(unschedulable));
    snapshot
}

/// The pods of the mixed workload, and whether each is still there after the scale-in to 40 %.
pub fn pods(pods: u64, seed: u64) -> Vec<(Object, bool)> {
    let mut rng = Rng::new(seed);
    let mut all = Vec::new();
    for deployment in mixed::deployments(pods, seed) {
        let stay = consolidation::scale_in(&deployment, &mut rng);
        all.extend((0..).zip(stay).map(|(index, stays)| (deployment.pod(index), stays)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_in_five_pods_of_each_deployment_stay() {
        let stay = pods(500, 1).iter().filter(|(_, stays)| *stays).count() as u64;
        let wanted: u64 = mixed::deployments(500, 1)
            .iter()
            .map(|deployment| deployment.scaled_in)
            .sum();
        assert_eq!(stay, wanted);
    }

    #[test]
    fn a_machine_comes_with_its_node_its_claim_and_its_pods() {
        let machine = Placed {
            name: "n".to_owned(),
            instance_type: kwok()[0].name.clone(),
            zone: "test-zone-a".to_owned(),
            capacity_type: "spot".to_owned(),
            pods: pods(20, 1).into_iter().take(3).map(|(pod, _)| pod).collect(),
        };
        let snapshot = cluster("c", &[machine], &[]);
        let count = |kind| snapshot.of_kind(kind).count();
        assert_eq!([count("Node"), count("NodeClaim"), count("Pod")], [1, 1, 3]);
    }
}
