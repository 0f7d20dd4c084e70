//! Begins a command: its nodes are marked, its replacements are asked for, and from then on the queue carries it on.
//!
//! The order is the contract. Marks come first, so that no pod goes where it would have to leave at once. The claims are
//! marked for deletion last, in memory: earlier, provisioning would launch room for their pods beside the replacements.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use disruption::{Candidate, Command, Replacement};
use futures_util::future::join_all;
use ledger::Id;
use model::{
    object::{NodeClaim, NodePool, NodePoolName, ObjectKey, Text},
    plan::PlannedClaim,
    resources::ResourceList,
    snapshot::Snapshot,
};
use runtime::settings::Steering;

use super::{
    marker, measure,
    memory::{Awaited, Memory, UnderWay},
    reboot, tell,
};
use crate::{
    Cluster, Problem,
    provisioning::{
        act,
        claim::Draft,
        create::{self, Reason},
        decide,
    },
    records, static_capacity,
};

/// Begins a command that was decided on a snapshot. False when there is nothing left of it to do. On a problem the nodes
/// stay, unmarked.
pub(super) async fn begin(
    cluster: &Cluster,
    memory: &Memory,
    id: &Text,
    snapshot: &Snapshot,
    (decision, mut command): (Id, Command),
) -> Result<bool, Problem> {
    if memory.takes_any_of(&command) {
        return Err(Problem::Other("candidate is being disrupted".to_owned()));
    }
    if command.is_reboot {
        return begin_reboot(cluster, memory, id, decision, command).await;
    }
    tell::started(cluster, &command, id, decision);
    if let Err(problem) = mark(cluster, &mut command).await {
        unmark(cluster, &command.candidates).await;
        return Err(problem);
    }
    records::begun(cluster, decision, &command);
    let awaited = match replace(cluster, snapshot, &command, decision).await {
        Ok(awaited) => awaited,
        Err(problem) => {
            unmark(cluster, &command.candidates).await;
            return Err(problem);
        }
    };
    let leaving = cluster.look(|state| {
        let claims = command.candidates.iter().filter_map(|candidate| {
            let claim = state.get::<NodeClaim>(&ObjectKey::cluster_scoped(candidate.claim.as_str()))?;
            Some((claim.name(), claim.metadata.uid.clone()))
        });
        claims.collect::<BTreeMap<_, _>>()
    });
    measure::started(cluster.metrics(), &command);
    let under_way = UnderWay {
        id: id.clone(),
        decision,
        began: cluster.now(),
        leaving,
        deleted: BTreeSet::new(),
        awaited,
        command,
    };
    memory.insert(under_way.clone());
    for candidate in &under_way.command.candidates {
        cluster.fold(|state| state.mark_for_deletion(&candidate.claim));
    }
    act::nominate_all(cluster, decide::nominations(snapshot, &under_way.command.plan));
    Ok(true)
}

async fn begin_reboot(
    cluster: &Cluster,
    memory: &Memory,
    id: &Text,
    decision: Id,
    command: Command,
) -> Result<bool, Problem> {
    for candidate in &command.candidates {
        if !reboot::commit(cluster, memory, candidate).await? {
            return Ok(false);
        }
    }
    tell::started(cluster, &command, id, decision);
    records::begun(cluster, decision, &command);
    for candidate in &command.candidates {
        measure::disrupted(cluster, &command, candidate);
    }
    measure::started(cluster.metrics(), &command);
    Ok(true)
}

/// Marks the nodes. One that cannot be marked ends a command that brings replacements; a command that only deletes goes on
/// with the others.
async fn mark(cluster: &Cluster, command: &mut Command) -> Result<(), Problem> {
    let reason = command.reason();
    let marks = command
        .candidates
        .iter()
        .map(|candidate| marker::put(cluster, &candidate.node, &candidate.claim, reason));
    let results = join_all(marks).await;
    let mut problems = Vec::new();
    let mut marked = Vec::new();
    for (candidate, result) in command.candidates.iter().zip(results) {
        match result {
            Ok(()) => marked.push(candidate.clone()),
            Err(error) => problems.push(Problem::Api(error)),
        }
    }
    if !problems.is_empty() && (marked.is_empty() || !command.replacements.is_empty()) {
        return Err(Problem::Several(problems));
    }
    for candidate in marked
        .iter()
        .filter(|candidate| is_static(cluster, &candidate.node_pool))
    {
        cluster.fold(|state| state.mark_pending_disruption(&candidate.claim));
    }
    command.candidates = marked;
    Ok(())
}

/// Lets nodes be as they were. What cannot be undone now, the next round undoes.
///
/// In memory first: writes may take their time, and meanwhile provisioning would launch room for pods that stay.
pub(super) async fn unmark(cluster: &Cluster, candidates: &[Candidate]) {
    for candidate in candidates {
        cluster.fold(|state| state.unmark_for_deletion(&candidate.claim));
    }
    let removals = candidates
        .iter()
        .map(|candidate| marker::remove(cluster, &candidate.node, &candidate.claim));
    for error in join_all(removals).await.into_iter().filter_map(Result::err) {
        tracing::error!(error = %error, "removing the marks of a disruption that was given up");
    }
}

fn is_static(cluster: &Cluster, pool: &NodePoolName) -> bool {
    pool_of(cluster, pool).is_some_and(|pool| pool.is_static())
}

fn pool_of(cluster: &Cluster, pool: &NodePoolName) -> Option<Arc<NodePool>> {
    cluster.get::<NodePool>(&ObjectKey::cluster_scoped(pool.as_str()))
}

/// Asks for the replacements, through the same hands that make claims for pending pods.
async fn replace(
    cluster: &Cluster,
    snapshot: &Snapshot,
    command: &Command,
    decision: Id,
) -> Result<Vec<Awaited>, Problem> {
    let mut drafts = drafts(cluster, snapshot, command)?;
    for draft in &mut drafts {
        draft.why.decision = Some(decision);
    }
    if drafts.len() != command.replacements.len() {
        let (made, asked) = (drafts.len(), command.replacements.len());
        return Err(Problem::Other(format!(
            "{asked} replacements are needed and {made} can be made: the limits of their NodePools leave no room"
        )));
    }
    let results = create::all(cluster, drafts, Reason(measure::lower(command.reason()))).await;
    if let Some(problem) = create::problems(&results) {
        return Err(problem);
    }
    let created = results.into_iter().flatten();
    let awaited = created.map(|claim| Awaited {
        name: claim.name(),
        pool: claim.node_pool().unwrap_or_else(|| "".into()),
        is_initialized: false,
    });
    Ok(awaited.collect())
}

fn drafts(cluster: &Cluster, snapshot: &Snapshot, command: &Command) -> Result<Vec<Draft>, Problem> {
    let planned: Vec<PlannedClaim> = command
        .replacements
        .iter()
        .filter_map(Replacement::planned)
        .cloned()
        .collect();
    let is_steered = cluster.settings().steering != Steering::Off;
    let mut drafts =
        decide::drafts(snapshot, &planned, is_steered).map_err(|error| Problem::Other(error.to_string()))?;
    let freed = freed(cluster, command);
    for draft in &mut drafts {
        draft.freed = freed.get(&draft.pool.name()).cloned().unwrap_or_default();
    }
    let mut lacking: BTreeMap<&NodePoolName, usize> = BTreeMap::new();
    for replacement in &command.replacements {
        if let Replacement::Static(pool) = replacement {
            *lacking.entry(pool).or_default() += 1;
        }
    }
    for (name, count) in lacking {
        if let Some(pool) = pool_of(cluster, name) {
            drafts.extend(static_capacity::granted(cluster, &pool, count)?);
        }
    }
    Ok(drafts)
}

/// What of each pool's limits the nodes of a command give back in the end. Until then a pool may hold both, as upstream
/// lets it: a pool at its limit could not be renewed otherwise.
fn freed(cluster: &Cluster, command: &Command) -> BTreeMap<NodePoolName, ResourceList> {
    let mut freed: BTreeMap<NodePoolName, ResourceList> = BTreeMap::new();
    cluster.look(|state| {
        for candidate in &command.candidates {
            if let Some(member) = state.machine(candidate.provider_id.as_str()) {
                freed
                    .entry(candidate.node_pool.clone())
                    .or_default()
                    .add(&member.capacity());
            }
        }
    });
    freed
}
