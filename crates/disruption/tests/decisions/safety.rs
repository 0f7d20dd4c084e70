//! Over many fleets: no command leaves a pod without a place or breaks a budget, and threads change nothing.

use std::{collections::BTreeSet, sync::Arc};

use disruption::{Command, Consolidation, Facts, Method, Options, ask, decide, validate};
use model::{
    object::{NodeClaim, ObjectKey},
    snapshot::Snapshot,
};
use workloads::{Shape, random};

use crate::fixture::read;

fn fleets() -> Vec<Snapshot> {
    let mixed = (1..7).map(|seed| {
        Shape::FleetMixed {
            pods: 60 + 40 * seed,
            seed,
        }
        .generate()
    });
    let random = (1..25).map(random::random).filter(random::is_seen_alike);
    mixed
        .chain(random)
        .map(|workload| read(serde_json::to_value(&workload).unwrap()))
        .collect()
}

fn options(consolidation: Consolidation, threads: usize) -> Options {
    Options {
        consolidation,
        threads,
        ..Options::default()
    }
}

/// The snapshot in which the nodes of a command go.
fn after(snapshot: &Snapshot, command: &Command) -> Snapshot {
    let claims = &snapshot.objects().node_claims;
    let going = command
        .candidates
        .iter()
        .filter_map(|candidate| claims.find("", candidate.claim.as_str()));
    let going: Vec<Arc<NodeClaim>> = going
        .map(|claim| {
            let mut going = NodeClaim::clone(claim);
            going.metadata.deletion_timestamp = Some(snapshot.taken_at());
            Arc::new(going)
        })
        .collect();
    snapshot.overlaid(|objects| objects.node_claims = objects.node_claims.with(going))
}

/// Every pod that moves has exactly one place, not on a node that goes, and kube-scheduler could bind it there.
fn check_places(name: &str, snapshot: &Snapshot, command: &Command) {
    let gone: BTreeSet<&str> = command.nodes().map(model::object::NodeName::as_str).collect();
    let existing = command.plan.existing.iter().inspect(|node| {
        assert!(
            !gone.contains(node.name.as_str()),
            "{name}: {} takes pods and goes",
            node.name
        );
    });
    let placed = existing
        .flat_map(|node| &node.pods)
        .chain(command.plan.claims.iter().flat_map(|claim| &claim.pods));
    let mut placed: Vec<ObjectKey> = placed.map(|pod| pod.metadata.key()).collect();
    placed.sort();
    for pod in command.candidates.iter().flat_map(|candidate| &candidate.reschedulable) {
        let key = pod.metadata.key();
        let count = placed.iter().filter(|other| **other == key).count();
        assert_eq!(count, 1, "{name}: {key} in {}", command.text());
    }
    // Pods that cannot be tried, because their volumes will never be, are nobody's to place.
    let is_about_tried = |violation: &scheduler::Violation| {
        let is_listed = |key: &ObjectKey| command.plan.unplaced.iter().any(|it| it.pod.metadata.key() == *key);
        let pod = violation.pod.as_ref().filter(|_| violation.place.is_none());
        pod.is_none_or(|key| placed.contains(key) || is_listed(key))
    };
    let refused: Vec<_> = scheduler::judge(&after(snapshot, command), &command.plan)
        .err()
        .into_iter()
        .flatten()
        .filter(scheduler::Violation::is_proven)
        .filter(is_about_tried)
        .collect();
    assert_eq!(refused, [], "{name}: {}", command.text());
}

fn check_budgets(name: &str, command: &Command, budgets: &disruption::Budgets) {
    for pool in command.node_pools() {
        let going = command
            .candidates
            .iter()
            .filter(|candidate| candidate.node_pool == *pool)
            .count();
        let remaining = budgets.pools[pool].remaining() as usize;
        assert!(going <= remaining, "{name}: {going} of {pool} go, {remaining} may");
    }
}

#[test]
fn no_command_leaves_a_pod_without_a_place_or_breaks_a_budget() {
    let mut seen = BTreeSet::new();
    for snapshot in fleets() {
        let (name, now) = (snapshot.title().name.clone(), snapshot.taken_at());
        let options = options(Consolidation::Cheapest, 1);
        for method in [
            Method::MultiNodeConsolidation,
            Method::SingleNodeConsolidation,
            Method::Repack,
        ] {
            let pass = ask(method, &snapshot, &Facts::default(), &options, now);
            for command in &pass.commands {
                seen.insert((method, command.decision().as_str()));
                check_places(&name, &snapshot, command);
                check_budgets(&name, command, pass.budgets.as_ref().unwrap());
                let again = validate(command, &snapshot, &Facts::default(), &options, now);
                assert_eq!(again.as_ref(), Ok(command), "{name}: {}", command.text());
                assert!(
                    command.saving.0 >= 0,
                    "{name}: {} saves {}",
                    command.text(),
                    command.saving
                );
            }
        }
    }
    let methods: BTreeSet<Method> = seen.iter().map(|(method, _)| *method).collect();
    assert_eq!(methods.len(), 3, "too few kinds of commands to trust this: {seen:?}");
}

#[test]
fn the_number_of_threads_changes_no_decision() {
    for snapshot in fleets().into_iter().take(10) {
        let [one, eight] = [1, 8].map(|threads| {
            let options = options(Consolidation::Cheapest, threads);
            decide(&snapshot, &Facts::default(), &options, snapshot.taken_at())
        });
        assert_eq!(one, eight, "{}", snapshot.title().name);
    }
}

#[test]
fn several_nodes_become_several_cheaper_ones_only_when_asked_to() {
    let shape = Shape::FleetMixed { pods: 300, seed: 84 };
    let snapshot = read(serde_json::to_value(shape.generate()).unwrap());
    let now = snapshot.taken_at();
    let pass = ask(
        Method::Repack,
        &snapshot,
        &Facts::default(),
        &options(Consolidation::Cheapest, 1),
        now,
    );
    let command = pass.commands.first().unwrap();
    assert!(command.replacements.len() > 1, "{}", command.text());
    assert!(
        command.saving.0 * 20 >= i128::from(command.source_price().picos()),
        "{}",
        command.saving
    );
    let round = decide(&snapshot, &Facts::default(), &options(Consolidation::Faithful, 1), now);
    assert!(round.passes.iter().all(|pass| pass.method != Method::Repack));
}
