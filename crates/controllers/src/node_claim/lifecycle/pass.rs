//! One look at a claim: the draft that the phases change, what went wrong, when to look again, and the writing at the end.

use std::{sync::Arc, time::Duration};

use api::condition::{ConditionSet, names::nodeclaim::TYPES};
use jiff::Timestamp;
use model::object::{Condition, ConditionStatus, List, NodeClaim, NodeClaimStatus};

use super::step::{Answer, Step};
use crate::{Cluster, Next, Problem, conditions};

/// How often the writing of a status is tried anew on top of what somebody else wrote.
const REBASES: u32 = 5;

pub(super) struct Pass {
    /// As it was read.
    before: Arc<NodeClaim>,
    /// As it is to be.
    pub(super) draft: NodeClaim,
    /// When the pass began.
    pub(super) now: Timestamp,
    problems: Vec<Problem>,
    next: Next,
    /// The claim was deleted in this pass: nothing of it is worth writing any more.
    is_over: bool,
}

impl Pass {
    pub(super) fn new(claim: Arc<NodeClaim>, now: Timestamp) -> Self {
        let draft = NodeClaim::clone(&claim);
        Self {
            before: claim,
            draft,
            now,
            problems: Vec::new(),
            next: Next::Change,
            is_over: false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    pub(super) fn fail(&mut self, problem: impl Into<Problem>) {
        self.problems.push(problem.into());
    }

    pub(super) fn again(&mut self) {
        self.next = Next::Again;
    }

    pub(super) fn after(&mut self, delay: Duration) {
        self.next = self.next.or_sooner(Next::After(delay));
    }

    pub(super) fn next(&mut self, next: Next) {
        self.next = self.next.or_sooner(next);
    }

    /// Changes the draft's conditions.
    pub(super) fn set(&mut self, change: impl FnOnce(&mut ConditionSet<'_>)) {
        set(&mut self.draft, self.now, change);
    }

    /// Writes what the phases changed: the object, then its status on top of that.
    pub(super) async fn finish(mut self, cluster: &Cluster) -> Result<Next, Problem> {
        if !self.is_over {
            self.write(cluster).await;
        }
        match self.problems.len() {
            0 => Ok(self.next),
            1 => Err(self.problems.remove(0)),
            _ => Err(Problem::Several(self.problems)),
        }
    }

    async fn write(&mut self, cluster: &Cluster) {
        let object = Step::PersistObject(Arc::clone(&self.before), Box::new(self.draft.clone()));
        let mut current = match object.take(cluster).await {
            Ok(Answer::Claim(claim)) => claim,
            Ok(Answer::Conflict) => return self.again(),
            Ok(_) => return,
            Err(problem) => return self.fail(problem),
        };
        for _ in 0..REBASES {
            let status = rebased(&self.before.status, &self.draft.status, &current.status);
            let mut after = NodeClaim::clone(&current);
            after.status = status;
            match Step::PersistStatus(current, Box::new(after)).take(cluster).await {
                Ok(Answer::Conflict) => {}
                Ok(_) => return,
                Err(problem) => return self.fail(problem),
            }
            match cluster.api().get::<NodeClaim>(&self.before.metadata.key()).await {
                Ok(fresh) if fresh.metadata.uid == self.before.metadata.uid => current = Arc::new(fresh),
                Ok(_) => return,
                Err(error) if error.is_not_found() => return,
                Err(error) => return self.fail(error),
            }
        }
        self.again();
    }
}

/// Changes a claim's conditions.
pub(super) fn set(claim: &mut NodeClaim, now: Timestamp, change: impl FnOnce(&mut ConditionSet<'_>)) {
    conditions::change(TYPES, &claim.metadata, &mut claim.status.conditions, now, change);
}

/// Sets a condition to what it is, for the object's present generation.
pub(super) fn restamp(claim: &mut NodeClaim, kind: &str, now: Timestamp) {
    let Some(Condition {
        status,
        reason,
        message,
        ..
    }) = claim.condition(kind).cloned()
    else {
        return;
    };
    set(claim, now, |set| {
        match status {
            ConditionStatus::True => set.set_true_with_reason(kind, &reason, &message),
            ConditionStatus::False => set.set_false(kind, &reason, &message),
            ConditionStatus::Unknown => set.set_unknown_with_reason(kind, &reason, &message),
        };
    });
}

/// Our changes on top of what the status is by now: other controllers write conditions of the same claim, and a list
/// is replaced whole.
fn rebased(before: &NodeClaimStatus, after: &NodeClaimStatus, current: &NodeClaimStatus) -> NodeClaimStatus {
    if before == current {
        return after.clone();
    }
    NodeClaimStatus {
        node_name: later(&before.node_name, &after.node_name, &current.node_name),
        provider_id: later(&before.provider_id, &after.provider_id, &current.provider_id),
        image_id: later(&before.image_id, &after.image_id, &current.image_id),
        capacity: later(&before.capacity, &after.capacity, &current.capacity),
        allocatable: later(&before.allocatable, &after.allocatable, &current.allocatable),
        conditions: rebased_conditions(&before.conditions, &after.conditions, &current.conditions),
        last_pod_event_time: current.last_pod_event_time,
    }
}

fn later<T: Clone + PartialEq>(before: &T, after: &T, current: &T) -> T {
    if before == after {
        current.clone()
    } else {
        after.clone()
    }
}

fn rebased_conditions(before: &List<Condition>, after: &List<Condition>, current: &List<Condition>) -> List<Condition> {
    let ours: Vec<&Condition> = after.iter().filter(|condition| !before.contains(condition)).collect();
    let is_ours = |condition: &Condition| ours.iter().any(|own| own.kind == condition.kind);
    let mut merged: Vec<Condition> = current
        .iter()
        .filter(|condition| !is_ours(condition))
        .cloned()
        .collect();
    merged.extend(ours.iter().copied().cloned());
    merged.sort_by_key(|condition| {
        let is_root = *condition.kind == *"Ready";
        (is_root, (!is_root).then_some(condition.last_transition_time))
    });
    merged.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(json: &str) -> NodeClaimStatus {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn what_another_controller_wrote_meanwhile_stays() {
        let before = status(r#"{"conditions":[{"type":"Launched","status":"Unknown","reason":"a","message":""}]}"#);
        let after = status(
            r#"{"providerID":"p","conditions":[{"type":"Launched","status":"True","reason":"Launched","message":""}]}"#,
        );
        let current = status(
            r#"{"lastPodEventTime":"2026-11-16T10:00:00Z","conditions":[
                {"type":"Launched","status":"Unknown","reason":"a","message":""},
                {"type":"Drifted","status":"True","reason":"d","message":"d"}]}"#,
        );
        let expected = status(
            r#"{"providerID":"p","lastPodEventTime":"2026-11-16T10:00:00Z","conditions":[
                {"type":"Drifted","status":"True","reason":"d","message":"d"},
                {"type":"Launched","status":"True","reason":"Launched","message":""}]}"#,
        );
        assert_eq!(rebased(&before, &after, &current), expected);
        assert_eq!(rebased(&before, &after, &before), after);
    }
}
