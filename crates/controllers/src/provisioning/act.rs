//! Does what a pass decided: tells, marks, creates.

use std::{collections::BTreeSet, sync::Arc};

use api::condition::names::capacity_buffer::PROVISIONING;
use model::{
    object::{Condition, NodePoolName, Pod},
    plan::Unplaced,
};
use state::{State, nomination_window};

use super::{
    buffer::Verdict,
    create::{self, Reason},
    decide::{self, Nomination, Step},
    tell,
};
use crate::{
    Cluster, Problem, conditions,
    patch::Lock,
    records::{RefusedPods, Story},
};

/// Does all steps in order; claims are created together, last.
pub(crate) async fn all(cluster: &Cluster, steps: Vec<Step>, story: Option<Arc<Story>>) -> Result<(), Problem> {
    let (mut drafts, mut hints) = (Vec::new(), BTreeSet::new());
    let mut refused = RefusedPods::default();
    for step in steps {
        match step {
            Step::Refuse(refusal) => refuse(cluster, &refusal, &mut refused),
            Step::Postpone(pod) => mark(cluster, &pod, |state, pod| {
                state.mark_unschedulable(&pod.metadata.key(), cluster.now())
            }),
            Step::Nominate(nomination) => nominate(cluster, &nomination),
            Step::Complain(dropped) => cluster.publish(tell::no_types(&dropped)),
            Step::Skip(problem) => tracing::error!(error = %problem, "skipping nodepool"),
            Step::Judge(verdict) => judge(cluster, &verdict).await,
            Step::CountStandIns(counts) => cluster.note(|state| state.set_buffer_pods(counts)),
            Step::Create(draft) => {
                for pod in &draft.pods {
                    place(cluster, pod, Some(&draft.pool.name()));
                }
                let mut draft = *draft;
                draft.why.story.clone_from(&story);
                drafts.push(draft);
            }
            Step::Hint(pods) => hints.extend(pods),
        }
    }
    refused.write(cluster, story.as_deref());
    let results = create::all(cluster, drafts, Reason::PROVISIONED).await;
    cluster.note(|state| hints.iter().for_each(|pod| state.hint_pod(pod)));
    create::problems(&results).map_or(Ok(()), Err)
}

fn refuse(cluster: &Cluster, refusal: &Unplaced, refused: &mut RefusedPods) {
    let is_told = decide::is_told(refusal);
    let decision = (is_told && cluster.book().is_on()).then(|| refused.add(refusal));
    tell::log_refusal(refusal, decision);
    if is_told {
        cluster.publish(tell::failed(refusal).decided(decision));
    }
    mark(cluster, &refusal.pod, |state, pod| {
        state.mark_unschedulable(&pod.metadata.key(), cluster.now())
    });
}

/// Keeps machines that get pods from being disrupted for a while, and tells the pods.
pub(crate) fn nominate_all(cluster: &Cluster, nominations: Vec<Nomination>) {
    for nomination in nominations {
        nominate(cluster, &nomination);
    }
}

fn nominate(cluster: &Cluster, nomination: &Nomination) {
    let (claim, node) = (nomination.claim.as_deref(), nomination.node.as_deref());
    for pod in &nomination.pods {
        place(cluster, pod, nomination.pool.as_ref());
        cluster.publish(tell::nominated(pod, claim, node));
    }
    let window = nomination_window(cluster.settings().batch_max_duration);
    let now = cluster.now();
    cluster.note(|state| {
        for (claim, pod) in nomination.pods.iter().filter_map(|pod| Some((claim?, pod))) {
            state.map_pod_to_claim(&pod.metadata.key(), &claim.name());
        }
        state.nominate(&nomination.machine, now, window);
    });
}

/// Notes that a pod has a place.
fn place(cluster: &Cluster, pod: &Pod, pool: Option<&NodePoolName>) {
    let now = cluster.now();
    mark(cluster, pod, |state, pod| {
        state.mark_schedulable(&pod.metadata.key(), pool, now)
    });
}

/// Notes a decision on a pod; the first one says how long the pod had waited for it.
fn mark(cluster: &Cluster, pod: &Pod, note: impl FnOnce(&mut State, &Pod) -> Option<std::time::Duration>) {
    if let Some(waited) = cluster.note(|state| note(state, pod)) {
        let metrics = cluster.metrics();
        metrics
            .pods_scheduling_decision_duration_seconds
            .observe([], waited.as_secs_f64());
    }
}

/// Writes what a plan said of a buffer. If somebody was faster, the next plan says it again.
async fn judge(cluster: &Cluster, verdict: &Verdict) {
    let before = &*verdict.buffer;
    let mut after = before.clone();
    let condition = Condition {
        kind: PROVISIONING.into(),
        status: verdict.status,
        reason: verdict.reason.into(),
        message: verdict.message.as_str().into(),
        last_transition_time: None,
        observed_generation: before.metadata.generation,
    };
    conditions::put(&mut after.status.conditions, condition, cluster.now());
    if let Err(error) = cluster.update_status(before, &after, Lock::Version).await {
        tracing::error!(error = %error, "updating CapacityBuffer provisioning status");
    }
}
