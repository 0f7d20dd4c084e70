//! Does a fleet come to rest after most of its pods went, no dearer than upstream's own moves leave it, and without a pod
//! that waits?
#![allow(clippy::unwrap_used, reason = "a test")]

use disruption::Consolidation;
use disruption_bench::scale_in::{Placing, Scenario, Settled, play};
use packing::Packing;

fn settled(seed: u64, fleet: Packing, consolidation: Consolidation) -> Settled {
    let scenario = Scenario {
        pods: 60,
        seed,
        fleet,
        consolidation,
        placing: Placing::AsPlanned,
    };
    play(&scenario, |_, _| {}).unwrap()
}

#[test]
fn a_fleet_comes_to_rest_no_dearer_than_upstreams_moves_leave_it_and_no_pod_waits() {
    let mut repacked = 0;
    for seed in 1..7 {
        for fleet in [Packing::Faithful, Packing::Cheapest] {
            let upstream = settled(seed, fleet, Consolidation::Faithful);
            let ours = settled(seed, fleet, Consolidation::Cheapest);
            assert!(
                ours.settled_usd_h <= upstream.settled_usd_h + 1e-9,
                "{ours:?} against {upstream:?}"
            );
            assert_eq!(ours.pods_pending, 0, "{ours:?}");
            repacked += ours.commands.get("Repack").copied().unwrap_or(0);
        }
    }
    assert!(repacked > 0, "m → n took no part");
}
