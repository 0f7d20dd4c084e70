//! How long nodes live and how they go: NP13 churn, NP14 expire-never, NP16 expire-default, NP23 startup-taint,
//! NP24 no-grace-limit.

use jiff::SignedDuration;
use model::{eviction::Protection, object::Node};

use crate::{
    finding::Found,
    node_class::pinned_image,
    world::{Pool, World},
};

/// A rollout is over after this for most services, and nodes may be looked at again.
const CALM: SignedDuration = SignedDuration::from_mins(5);
/// A node that has its startup taints after this keeps them.
const STARTED_AFTER: SignedDuration = SignedDuration::from_mins(15);

pub(crate) fn churn(world: &World) -> Vec<Found> {
    let is_for_all = |pool: &&Pool| pool.pool.spec.template.spec.taints.is_empty() && !pool.pool.is_static();
    let found = world.pools.iter().filter(is_for_all).filter_map(|pool| {
        let disruption = &pool.pool.spec.disruption;
        let policy = &*disruption.consolidation_policy;
        let is_eager = matches!(policy, "WhenEmptyOrUnderutilized" | "");
        let after = disruption.consolidate_after.as_ref()?.span()?;
        (is_eager && after.to_signed() < CALM).then(|| {
            let spelled = world.value(pool.document)["spec"]["disruption"]["consolidateAfter"]
                .as_str()
                .unwrap_or("0s");
            let text = format!("WhenEmptyOrUnderutilized after {spelled}: rollouts end in moves; Balanced, 5m");
            Found::new(pool.document, "spec.disruption.consolidateAfter", text)
                .fix("consolidateAfter: 5m, and consolidationPolicy: Balanced, which weighs what a move disturbs")
                .replacing(spelled, "5m")
        })
    });
    found.collect()
}

pub(crate) fn expire_never(world: &World) -> Vec<Found> {
    let found = world.pools.iter().filter_map(|pool| {
        let expires = pool.pool.spec.template.spec.expire_after.as_ref()?;
        let (_, class) = world.class_of(pool)?;
        let image = pinned_image(class)?;
        expires.span().is_none().then(|| {
            let text = format!("expireAfter: Never with a pinned image ({image}): no security updates");
            Found::new(pool.document, "spec.template.spec.expireAfter", text).replacing("Never", "720h")
        })
    });
    found.collect()
}

pub(crate) fn expire_default(world: &World) -> Vec<Found> {
    let is_unsaid = |pool: &&Pool| world.value(pool.document)["spec"]["template"]["spec"]["expireAfter"].is_null();
    let found = world.pools.iter().filter(is_unsaid).map(|pool| {
        let text = "expireAfter is not set: nodes are replaced after 720h, which nobody reads here";
        Found::new(pool.document, "spec.template.spec", text)
            .fix("expireAfter: 720h, written down")
            .adding_inside("expireAfter: 720h")
    });
    found.collect()
}

pub(crate) fn startup_taint(world: &World) -> Vec<Found> {
    let mut found = Vec::new();
    for pool in &world.pools {
        for (at, taint) in pool.pool.spec.template.spec.startup_taints.iter().enumerate() {
            let keeps = |node: &&Node| {
                let is_old = node
                    .metadata
                    .creation_timestamp
                    .is_some_and(|since| world.now.duration_since(since) > STARTED_AFTER);
                let is_same = |other: &model::object::Taint| other.key == taint.key && other.effect == taint.effect;
                is_old && node.spec.taints.iter().any(is_same)
            };
            let nodes: Vec<_> = world
                .nodes_of(pool)
                .filter(keeps)
                .map(|node| &*node.metadata.name)
                .collect();
            if let Some(first) = nodes.first() {
                let text = format!(
                    "nothing removes startupTaint {}: {first}{} had it for more than 15 minutes",
                    taint.key,
                    if nodes.len() == 1 {
                        " has".to_owned()
                    } else {
                        format!(" and {} more have", nodes.len() - 1)
                    }
                );
                let path = format!("spec.template.spec.startupTaints[{at}]");
                found.push(Found::new(pool.document, path, text));
            }
        }
    }
    found
}

pub(crate) fn no_grace_limit(world: &World) -> Vec<Found> {
    let found = world.pools.iter().filter_map(|pool| {
        if pool.pool.spec.template.spec.termination_grace_period.is_some() {
            return None;
        }
        let nodes: Vec<_> = world.nodes_of(pool).map(|node| &*node.metadata.name).collect();
        let holds = |pod: &&model::object::Pod| {
            let is_here = pod
                .node_name
                .as_ref()
                .is_some_and(|node| nodes.contains(&node.as_str()));
            is_here && pod.is_active() && pod.protection(world.now) == Protection::Always
        };
        let mut held = world.pods.iter().map(AsRef::as_ref).filter(holds);
        let first = held.next()?;
        let more = held.count();
        let others = if more == 0 {
            String::new()
        } else {
            format!(" and {more} more")
        };
        let text = format!(
            "no terminationGracePeriod, and pod {}/{}{others} may not be moved: a drain here has no end",
            first.metadata.namespace, first.metadata.name
        );
        let found = Found::new(pool.document, "spec.template.spec", text)
            .fix("terminationGracePeriod: 24h: drains end after a day, and pods know until when they may stay")
            .adding_inside("terminationGracePeriod: 24h");
        Some(found)
    });
    found.collect()
}

impl World {
    /// The nodes of a pool.
    pub(crate) fn nodes_of<'a>(&'a self, pool: &'a Pool) -> impl Iterator<Item = &'a Node> {
        let nodes = self.nodes.iter().map(AsRef::as_ref);
        nodes.filter(move |node: &&Node| {
            node.node_pool()
                .is_some_and(|of| *of.as_str() == *pool.pool.metadata.name)
        })
    }
}
