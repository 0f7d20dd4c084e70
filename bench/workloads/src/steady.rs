//! A fleet with nothing left to gain: every node is of the cheapest type for its pods and too full for anybody else's, so
//! that who looks for something to consolidate has to look at every node.

use serde_json::json;

use crate::{
    catalogue::{InstanceType, KWOK_LABELS, KWOK_ZONES, kwok},
    fleet::{Machine, Stage},
    object::{CAPACITY_TYPE, kwok_node_class, node_pool, pod, requirement, running},
    rng::Rng,
    snapshot::Snapshot,
};

/// Sizes of the nodes, in cores.
const CORES: [u64; 4] = [4, 8, 16, 32];

/// So many nodes on demand, with so many pods each.
pub fn fleet(nodes: u64, pods_each: u64) -> Snapshot {
    let catalogue = kwok();
    let name = format!("fleet-steady-{nodes}");
    let mut snapshot = Snapshot::new(&name, "workloads", catalogue.clone(), &KWOK_LABELS);
    let on_demand = json!([
        requirement(CAPACITY_TYPE, "In", &["on-demand"]),
        requirement("kubernetes.io/arch", "In", &["amd64"]),
        requirement("kubernetes.io/os", "In", &["linux"]),
    ]);
    let pool = node_pool("default", &kwok_node_class()).with("spec.template.spec.requirements", on_demand);
    snapshot.objects.push(pool);
    let mut rng = Rng::new(nodes);
    for index in 0..nodes {
        let at = usize::try_from(index).unwrap_or_default();
        let Some(it) = compute(&catalogue, CORES[at % CORES.len()]) else {
            continue;
        };
        let machine = Machine {
            name: format!("node-{index:05}"),
            pool: "default",
            it,
            zone: KWOK_ZONES[at % KWOK_ZONES.len()],
            capacity_type: "on-demand",
            stage: Stage::Initialized,
        };
        snapshot.objects.extend([machine.node(), machine.claim()]);
        for (number, cpu_m) in shares(machine.cpu_m(), pods_each, &mut rng).into_iter().enumerate() {
            let pod = pod("default", &format!("app-{index:05}-{number:02}"), cpu_m, cpu_m / 4);
            snapshot.objects.push(running(pod, &machine.name));
        }
    }
    snapshot
}

/// The type with the least memory for its cores, which is the cheapest.
fn compute(catalogue: &[InstanceType], cores: u64) -> Option<&InstanceType> {
    let fits = |it: &&InstanceType| it.cpu == cores && it.name.ends_with("-amd64-linux");
    catalogue.iter().filter(fits).min_by_key(|it| it.memory_mi)
}

/// Millicores left free on every node: less than the smallest pod of the smallest node asks for, or that pod would have
/// room on a large one.
const FREE: u64 = 90;

/// Requests that leave next to nothing free.
fn shares(whole: u64, count: u64, rng: &mut Rng) -> Vec<u64> {
    let usual = whole / count;
    let mut shares: Vec<u64> = (0..count).map(|_| usual - rng.below(usual / 4 + 1)).collect();
    let free = whole - shares.iter().sum::<u64>();
    if let Some(first) = shares.first_mut() {
        *first += free.saturating_sub(FREE);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_fleet_has_no_room_for_another_pod() {
        let mut rng = Rng::new(1);
        let (mut smallest, mut most_free) = (u64::MAX, 0);
        for whole in [3900, 7900, 15900, 31900] {
            let shares = shares(whole, 20, &mut rng);
            most_free = most_free.max(whole - shares.iter().sum::<u64>());
            smallest = smallest.min(*shares.iter().min().unwrap());
        }
        assert!(smallest > most_free, "{smallest} fits into {most_free}");
    }

    #[test]
    fn a_steady_fleet_has_the_nodes_and_pods_asked_for() {
        let snapshot = fleet(8, 20);
        assert_eq!(
            (snapshot.of_kind("Node").count(), snapshot.of_kind("Pod").count()),
            (8, 160)
        );
    }
}
