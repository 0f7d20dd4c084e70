//! Is there room for the pod, and how much would be left?

use super::MAX_NODE_SCORE;

/// What the score counts for.
pub(crate) const WEIGHT: i64 = 1;

/// What is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Insufficient {
    /// The node takes no more pods.
    Pods,
    /// There is too little of the resource in this place.
    Resource(usize),
}

/// What the node has and what is taken of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room<'a> {
    pub(crate) allocatable: &'a [i64],
    pub(crate) requested: &'a [i64],
    pub(crate) allowed_pods: i64,
    pub(crate) pods: i64,
}

/// The first thing there is too little of. Only what the pod asks for counts: a node that is overdrawn in something else
/// still takes it.
pub(crate) fn insufficient(requests: &[(usize, i64)], room: Room<'_>) -> Option<Insufficient> {
    if room.pods + 1 > room.allowed_pods {
        return Some(Insufficient::Pods);
    }
    let of = |amounts: &[i64], at: usize| amounts.get(at).copied().unwrap_or(0);
    let short = requests
        .iter()
        .find(|(at, amount)| *amount > of(room.allocatable, *at) - of(room.requested, *at));
    short.map(|(at, _)| Insufficient::Resource(*at))
}

/// `LeastAllocated` over processors and memory: the share that is left once the pod runs there.
pub(crate) fn least_allocated(requested: [i64; 2], allocatable: [i64; 2]) -> i64 {
    let (mut total, mut count) = (0, 0);
    for (requested, allocatable) in requested.into_iter().zip(allocatable) {
        if allocatable != 0 {
            total += left(requested, allocatable);
            count += 1;
        }
    }
    if count == 0 { 0 } else { total / count }
}

fn left(requested: i64, allocatable: i64) -> i64 {
    if requested > allocatable {
        return 0;
    }
    let free = allocatable.saturating_sub(requested);
    match free.checked_mul(MAX_NODE_SCORE) {
        Some(product) => product / allocatable,
        // A catalogue may say that a machine has as much as numbers go.
        None => free / (allocatable / MAX_NODE_SCORE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_end_is_scored_like_any_other() {
        assert_eq!(least_allocated([i64::MAX / 2, 0], [i64::MAX, 1000]), 75);
        assert_eq!(least_allocated([500, 0], [1000, 1000]), 75);
    }

    #[test]
    fn only_what_the_pod_asks_for_must_be_there() {
        let room = |pods| Room {
            allocatable: &[1000, 100, 4],
            requested: &[900, 120, 0],
            allowed_pods: 3,
            pods,
        };
        let cases = [
            (vec![(0, 100)], 2, None),
            (vec![(0, 101)], 2, Some(Insufficient::Resource(0))),
            (vec![(1, 1)], 2, Some(Insufficient::Resource(1))),
            (vec![(7, 1)], 2, Some(Insufficient::Resource(7))),
            (vec![], 3, Some(Insufficient::Pods)),
        ];
        for (requests, pods, expected) in cases {
            assert_eq!(insufficient(&requests, room(pods)), expected, "{requests:?}");
        }
    }

    #[test]
    fn emptier_nodes_score_higher() {
        // Upstream's own example: 10 of 40 thousandths and nothing of the memory: (75 + 100) / 2.
        assert_eq!(least_allocated([10, 0], [40, 100]), 87);
        assert_eq!(least_allocated([50, 100], [40, 100]), 0);
        assert_eq!(least_allocated([0, 50], [0, 100]), 50);
        assert_eq!(least_allocated([0, 0], [0, 0]), 0);
    }
}
