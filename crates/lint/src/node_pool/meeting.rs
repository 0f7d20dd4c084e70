//! How NodePools meet each other and the pods: NP11 overlap, NP19 taint-untolerated.

use std::collections::BTreeSet;

use model::object::Toleration;

use crate::{
    finding::Found,
    supply::specs,
    world::{Pool, World},
};

pub(crate) fn overlap(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for (at, pool) in world.pools.iter().enumerate() {
        let later = world.pools.iter().skip(at + 1);
        for other in later.filter(|other| is_same_to_pods(pool, other) && !pool.pool.is_static()) {
            let shared = shared_types(world, pool, other);
            if shared > 0 {
                let text = format!(
                    "takes the same pods as nodepool/{} at the same weight, with {shared} types in common: the choice is by name",
                    pool.pool.metadata.name
                );
                found.push(Found::new(other.document, "spec", text).fix(format!(
                    "spec.weight: 10 on the one to be tried first, or a taint on the one for special pods ({} or {})",
                    pool.pool.metadata.name, other.pool.metadata.name
                )));
            }
        }
    }
    found
}

/// Whether pods see no difference: the same taints, the same weight, the same labels of the users' own.
fn is_same_to_pods(one: &Pool, other: &Pool) -> bool {
    let taints = |pool: &Pool| -> BTreeSet<_> {
        let taints = pool.pool.spec.template.spec.taints.iter();
        taints
            .map(|taint| (taint.key.clone(), taint.value.clone(), taint.effect.clone()))
            .collect()
    };
    let weight = |pool: &Pool| pool.pool.spec.weight.unwrap_or(0);
    one.source == other.source && taints(one) == taints(other) && weight(one) == weight(other)
}

fn shared_types(world: &World, one: &Pool, other: &Pool) -> usize {
    let Some(supply) = world.supply(one) else { return 0 };
    let mut vocabulary = supply.vocabulary.clone();
    let mut both = pool_requirements(one, &mut vocabulary);
    let others = pool_requirements(other, &mut vocabulary);
    if !both.intersects(&others, &vocabulary) {
        return 0;
    }
    both.add_all(&others, &vocabulary);
    supply.left(&one.pool, &both, &vocabulary).count()
}

/// Requirements and labels, without the pool's own name.
fn pool_requirements(pool: &Pool, vocabulary: &mut model::vocabulary::Vocabulary) -> model::requirement::Requirements {
    let template = &pool.pool.spec.template;
    let mut requirements =
        model::requirement::Requirements::from_specs(&specs(&template.spec.requirements), vocabulary);
    let labels = template.metadata.labels.iter().map(|(key, value)| (&**key, &**value));
    let labels = model::requirement::Requirements::from_labels(labels, vocabulary);
    requirements.add_all(&labels, vocabulary);
    requirements
}

pub(crate) fn taint_untolerated(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    if !world.is_whole() {
        return found;
    }
    let workloads = world.workloads.iter().filter(|workload| workload.kind != "DaemonSet");
    let tolerations: Vec<Vec<_>> = workloads
        .map(|workload| workload.spec.tolerations.iter().map(Toleration::view).collect())
        .chain(
            world
                .pods
                .iter()
                .map(|pod| pod.spec.tolerations.iter().map(Toleration::view).collect()),
        )
        .collect();
    if tolerations.is_empty() {
        return found;
    }
    for pool in &world.pools {
        for (at, taint) in pool.pool.spec.template.spec.taints.iter().enumerate() {
            let is_hard = matches!(&*taint.effect, "NoSchedule" | "NoExecute");
            let is_tolerated = tolerations.iter().any(|some| taint.view().is_tolerated_by(some));
            if is_hard && !is_tolerated {
                let text = format!("no workload tolerates {}: the pool stays empty", taint.view());
                found.push(Found::new(
                    pool.document,
                    format!("spec.template.spec.taints[{at}]"),
                    text,
                ));
            }
        }
    }
    found
}
