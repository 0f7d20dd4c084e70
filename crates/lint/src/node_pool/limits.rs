//! How much a NodePool may hold: NP01 limit-near, NP02 no-limits, NP03 limit-partial.

use api::labels::{aws, azure};
use model::{instance_type::InstanceType, quantity::Quantity};
use serde_json::Value;

use crate::{
    finding::Found,
    supply::value,
    world::{Pool, World},
};

/// From here on a limit is near.
const NEAR_PERCENT: i128 = 90;

pub(crate) fn limit_near(world: &World) -> Vec<Found> {
    let near = |pool: &Pool| {
        let limits = pool.pool.spec.limits.iter();
        let found = limits.filter_map(|(name, limit)| {
            let used = pool.pool.status.resources.get(name.as_str())?;
            let percent = percent(used, limit)?;
            let path = format!("spec.limits.{}", name.as_str());
            let object = world.value(pool.document);
            let limit = spelled(&object["spec"]["limits"][name.as_str()]);
            let raised = raised(used);
            let now = spelled(&object["status"]["resources"][name.as_str()]);
            let text = if percent >= 100 {
                format!("limits.{} is used up: {now} of {limit}", name.as_str())
            } else {
                format!("limits.{} is {percent}% used: {now} of {limit}", name.as_str())
            };
            let found = Found::new(pool.document, path, text)
                .fix(format!(
                    "raise limits.{} to {raised}, a quarter above what is used",
                    name.as_str()
                ))
                .replacing(limit, raised.to_string());
            (percent >= NEAR_PERCENT).then_some(found)
        });
        found.collect::<Vec<_>>()
    };
    world.pools.iter().flat_map(near).collect()
}

/// As it is written.
fn spelled(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn percent(used: Quantity, limit: Quantity) -> Option<i128> {
    (limit.nanos() > 0).then(|| used.nanos() * 100 / limit.nanos())
}

/// A quarter more, in the same spelling.
fn raised(used: Quantity) -> Quantity {
    let nanos = used.nanos() + used.nanos() / 4;
    Quantity::from_nanos(nanos, used.format())
}

pub(crate) fn no_limits(world: &World) -> Vec<Found> {
    let pools = world
        .pools
        .iter()
        .filter(|pool| pool.pool.spec.limits.is_empty() && !pool.pool.is_static());
    let found = pools.map(|pool| {
        let text = "no limits: nothing stops a runaway Deployment from buying nodes";
        Found::new(pool.document, "spec", text).fix("spec.limits with cpu and memory, a third above the largest need")
    });
    found.collect()
}

/// What a machine has by its label: the hypervisor's part is sold along with it.
fn mebibytes(world: &World, pool: &Pool, entry: &InstanceType) -> Option<i64> {
    let vocabulary = &world.supply(pool)?.vocabulary;
    let labels = [aws::INSTANCE_MEMORY, azure::SKU_MEMORY];
    let said = labels
        .into_iter()
        .find_map(|label| value(entry, label, vocabulary)?.parse().ok());
    Some(said.unwrap_or_else(|| entry.capacity.amount("memory").value() >> 20))
}

pub(crate) fn limit_partial(world: &World) -> Vec<Found> {
    let is_partial = |pool: &&Pool| {
        let limits = &pool.pool.spec.limits;
        limits.get("cpu").is_some() && limits.get("memory").is_none() && !pool.pool.is_static()
    };
    let found = world.pools.iter().filter(is_partial).map(|pool| {
        let most = world.left(pool).into_iter().filter_map(|entry| {
            let (cpu, memory) = (entry.capacity.amount("cpu").value(), mebibytes(world, pool, entry)?);
            (cpu > 0).then(|| memory / cpu)
        });
        let cpu = pool.pool.spec.limits.amount("cpu").value();
        let (detail, suggestion) = match most.max() {
            Some(mib) => {
                let gib = (mib + 512) / 1024;
                (format!(": up to {gib} GiB per vCPU pass unnoticed"), cpu * gib)
            }
            None => (String::new(), cpu * 8),
        };
        Found::new(
            pool.document,
            "spec.limits.cpu",
            format!("limits.cpu without limits.memory{detail}"),
        )
        .fix(format!(
            "limits.memory: {suggestion}Gi is what {cpu} vCPU come to at most; less if pods need less"
        ))
        .adding(format!("memory: {suggestion}Gi"))
    });
    found.collect()
}
