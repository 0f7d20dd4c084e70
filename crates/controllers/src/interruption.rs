//! What does the cloud say beforehand about machines, and what follows from it?
//!
//! A machine that will be taken, stopped or repaired has its claim deleted at once, so that its node is drained while the
//! machine is still there, and room for its pods is launched meanwhile. An offering whose spot capacity the cloud wants
//! back is left out of plans for a while. A notice is acknowledged only after all of that is done: one that was received
//! by a process that died comes again.

use std::{sync::Arc, time::Duration};

use api::{annotations, labels};
use async_trait::async_trait;
use cloud::{Meant, Notice, NoticeKind, UnavailableOffering};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use model::object::{Node, NodeClaim, Object, ObjectKey};
use runtime::{Event, EventKind, Patch, Settings, queue::Backoff};
use serde_json::json;
use state::{Change, State};

use crate::{
    Cluster, Controller, Next, Problem,
    mutation::{self, Mutation},
    node_claim::{Joined, Managed, Reason, end, is_gone, label},
};

/// `interruption`
pub struct Interruption {
    managed: Managed,
}

/// A notice that leaves no more time than this leaves none for a drain that waits: pods must be gone by its deadline,
/// those that need longest begin first, and a budget that would hold one until the machine is gone holds nothing.
const SHORT: SignedDuration = SignedDuration::from_secs(60);

/// The one thing it reconciles.
const QUEUE: &str = "notices";

impl Interruption {
    /// For the claims that are ours.
    pub fn new(managed: Managed) -> Self {
        Self { managed }
    }

    /// The claims whose machines notices are about, notice by notice.
    fn concerned(&self, cluster: &Cluster, notices: &[Notice]) -> Vec<Vec<ObjectKey>> {
        let meant = Meant::of(notices);
        let mut concerned = vec![Vec::new(); notices.len()];
        cluster.look(|state| {
            let claims = state.all::<NodeClaim>().iter();
            for claim in claims.filter(|claim| self.managed.claim(claim)) {
                let about = claim.status.provider_id.as_ref().map(|id| meant.about(id));
                for place in about.into_iter().flatten() {
                    if let Some(claims) = concerned.get_mut(place) {
                        claims.push(claim.metadata.key());
                    }
                }
            }
        });
        concerned
    }

    async fn handle(&self, cluster: &Cluster, notice: &Notice, claims: &[ObjectKey]) -> Result<(), Problem> {
        let metrics = cluster.metrics();
        metrics.interruption_received_messages_total.inc([notice.kind.label()]);
        if !mutation::has(Mutation::IgnoresNotices) {
            // As it is now: another notice may have been heeded meanwhile.
            for (claim, node) in claims.iter().filter_map(|key| found(cluster, key)) {
                heed(cluster, notice, &claim, node.as_deref()).await?;
            }
        }
        cluster.cloud().acknowledge(notice).await?;
        metrics.interruption_deleted_messages_total.inc([]);
        let waited = cluster.now().duration_since(notice.at).as_secs_f64();
        metrics
            .interruption_message_queue_duration_seconds
            .observe([], waited.max(0.0));
        Ok(())
    }
}

/// A claim and its node.
fn found(cluster: &Cluster, key: &ObjectKey) -> Option<(Arc<NodeClaim>, Option<Arc<Node>>)> {
    cluster.look(|state| {
        let claim = Arc::clone(state.get::<NodeClaim>(key)?);
        let node = match Joined::of(&claim, state) {
            Joined::One(node) => Some(node),
            Joined::None | Joined::Several => None,
        };
        Some((claim, node))
    })
}

/// What is said about a claim and its node: upstream's words.
fn words(kind: NoticeKind) -> (EventKind, &'static str, &'static str) {
    match kind {
        NoticeKind::SpotInterruption => (
            EventKind::Warning,
            "SpotInterrupted",
            "Spot interruption warning was triggered",
        ),
        NoticeKind::Rebalance => (
            EventKind::Normal,
            "SpotRebalanceRecommendation",
            "Spot rebalance recommendation was triggered",
        ),
        NoticeKind::ScheduledChange | NoticeKind::Impaired => (
            EventKind::Warning,
            "InstanceUnhealthy",
            "An unhealthy warning was triggered for the instance",
        ),
        NoticeKind::Stopping => (EventKind::Warning, "InstanceStopping", "Instance is stopping"),
        NoticeKind::Terminating => (EventKind::Warning, "InstanceTerminating", "Instance is terminating"),
        NoticeKind::ReservationInterruption => (
            EventKind::Warning,
            "CapacityReservationInstanceInterrupted",
            "Capacity Reservation interruption warning was triggered",
        ),
    }
}

async fn heed(cluster: &Cluster, notice: &Notice, claim: &NodeClaim, node: Option<&Node>) -> Result<(), Problem> {
    let kind = notice.kind;
    let (event, reason, message) = words(kind);
    tell(cluster, claim, event, reason, message.to_owned());
    if let Some(node) = node {
        tell(cluster, node, event, reason, message.to_owned());
    }
    if let Some(offering) = offering(kind, claim) {
        cluster.cloud().mark_unavailable(&offering);
    }
    if !kind.is_end() {
        return Ok(());
    }
    let is_there = match hurry(notice, claim, cluster.now()) {
        Some(deadline) => stamp(cluster, claim, deadline).await?,
        None => true,
    };
    if !is_there || claim.metadata.is_deleting() {
        return Ok(());
    }
    if !end(cluster, claim, Reason::Interrupted(kind)).await? {
        return Ok(());
    }
    if is_taken_back(kind) {
        cluster.cloud().interrupted(claim);
    }
    tracing::info!(
        "NodeClaim.name" = %claim.metadata.name, "message-kind" = kind.label(),
        "initiating delete from interruption message"
    );
    let (event, reason) = (EventKind::Warning, "TerminatingOnInterruption");
    let message = |what: &str| format!("Interruption triggered termination for the {what}");
    tell(cluster, claim, event, reason, message("NodeClaim"));
    if let Some(node) = node {
        tell(cluster, node, event, reason, message("Node"));
    }
    Ok(())
}

/// By when a drain must be over; none where it may take its time, or has less already. Nothing that runs on a machine that
/// fails can be waited for, and nothing can be waited for longer than the machine is there.
fn hurry(notice: &Notice, claim: &NodeClaim, now: Timestamp) -> Option<Timestamp> {
    let short = notice.deadline.filter(|deadline| deadline.duration_since(now) <= SHORT);
    let at_once = (notice.kind.is_forceful() && !claim.metadata.is_deleting()).then_some(now);
    let deadline = at_once.or(short)?;
    let known = claim
        .metadata
        .annotations
        .get(annotations::NODECLAIM_TERMINATION_TIMESTAMP);
    let known: Option<Timestamp> = known.and_then(|text| text.parse().ok());
    known.is_none_or(|known| deadline < known).then_some(deadline)
}

/// Sets the time by which the drain must be over. False when the claim is gone.
async fn stamp(cluster: &Cluster, claim: &NodeClaim, deadline: Timestamp) -> Result<bool, Problem> {
    let deadline = deadline.to_string();
    let patch = Patch::Merge(json!({"metadata": {
        "uid": claim.metadata.uid.to_string(),
        "annotations": {annotations::NODECLAIM_TERMINATION_TIMESTAMP: deadline},
    }}));
    let key = claim.metadata.key();
    match cluster.patch::<NodeClaim>(&key, &patch).await {
        Ok(_) => Ok(true),
        Err(error) if is_gone(cluster, &key, &claim.metadata.uid, &error).await? => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn tell<T: Object>(cluster: &Cluster, object: &T, kind: EventKind, reason: &str, message: String) {
    cluster.publish(Event::new(object, kind, reason, message));
}

/// Whether the cloud wants its capacity back, rather than to mend or end a machine.
fn is_taken_back(kind: NoticeKind) -> bool {
    matches!(kind, NoticeKind::SpotInterruption | NoticeKind::ReservationInterruption)
}

/// What will not be had for a while: where the cloud takes spot machines or reserved ones back, it has none to give.
fn offering(kind: NoticeKind, claim: &NodeClaim) -> Option<UnavailableOffering> {
    let of = |key: &str| Some(label(claim, key)).filter(|value| !value.is_empty());
    let (instance_type, zone) = (of(labels::INSTANCE_TYPE)?, of(labels::ZONE)?);
    let (capacity_type, reason) = match kind {
        NoticeKind::SpotInterruption => (labels::CAPACITY_TYPE_SPOT, "SpotInterruption"),
        NoticeKind::ReservationInterruption => (labels::CAPACITY_TYPE_RESERVED, "CapacityReservationInterruption"),
        _ => return None,
    };
    Some(UnavailableOffering {
        instance_type: Some(instance_type.into()),
        zone: Some(zone.into()),
        capacity_type: Some(capacity_type.into()),
        reason: reason.into(),
        retry_after: None,
    })
}

#[async_trait]
impl Controller for Interruption {
    type Key = &'static str;

    fn name(&self) -> &'static str {
        "interruption"
    }

    fn workers(&self, _: &Settings) -> usize {
        1
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            least: Duration::from_millis(100),
            most: Duration::from_secs(10),
        }
    }

    fn initial(&self) -> Vec<&'static str> {
        vec![QUEUE]
    }

    fn concerns(&self, _: &Change, _: &State) -> Vec<&'static str> {
        Vec::new()
    }

    async fn reconcile(&self, cluster: &Cluster, _: &&'static str) -> Result<Next, Problem> {
        let notices = cluster.cloud().notices().await?;
        let concerned = self.concerned(cluster, &notices);
        let each = notices.iter().zip(&concerned);
        let handled = join_all(each.map(|(notice, claims)| self.handle(cluster, notice, claims))).await;
        let problems: Vec<Problem> = handled.into_iter().filter_map(Result::err).collect();
        if problems.is_empty() {
            return Ok(Next::After(Duration::ZERO));
        }
        Err(Problem::Several(problems))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_of_half_a_minute_hurries_the_drain_and_one_of_two_minutes_does_not() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let notice = |kind, deadline: Option<i64>| Notice {
            receipt: "r".into(),
            kind,
            machines: Vec::new(),
            at: at(0),
            deadline: deadline.map(at),
        };
        let claim = |known: Option<&str>| -> NodeClaim {
            let annotations = known.map_or(
                json!({}),
                |at| json!({annotations::NODECLAIM_TERMINATION_TIMESTAMP: at}),
            );
            serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap()
        };
        let (spot, plain) = (NoticeKind::SpotInterruption, claim(None));
        assert_eq!(hurry(&notice(spot, Some(30)), &plain, at(2)), Some(at(30)));
        assert_eq!(hurry(&notice(spot, Some(120)), &plain, at(2)), None);
        assert_eq!(hurry(&notice(spot, None), &plain, at(2)), None);
        assert_eq!(hurry(&notice(NoticeKind::Impaired, None), &plain, at(2)), Some(at(2)));
        let hurried = claim(Some("1970-01-01T00:00:10Z"));
        assert_eq!(
            hurry(&notice(spot, Some(30)), &hurried, at(2)),
            None,
            "it has less already"
        );
        let slow = claim(Some("1970-01-01T01:00:00Z"));
        assert_eq!(hurry(&notice(spot, Some(30)), &slow, at(2)), Some(at(30)));
    }

    #[test]
    fn only_where_spot_is_taken_back_an_offering_is_left_out_of_plans() {
        let labels = json!({labels::INSTANCE_TYPE: "c-4x", labels::ZONE: "zone-a"});
        let claim: NodeClaim = serde_json::from_value(json!({"metadata": {"labels": labels}})).unwrap();
        let marked = offering(NoticeKind::SpotInterruption, &claim).unwrap();
        let parts = (marked.instance_type, marked.zone, marked.capacity_type);
        assert_eq!(parts, (Some("c-4x".into()), Some("zone-a".into()), Some("spot".into())));
        let marked = offering(NoticeKind::ReservationInterruption, &claim).unwrap();
        assert_eq!(marked.capacity_type, Some("reserved".into()));
        for kind in [
            NoticeKind::Rebalance,
            NoticeKind::ScheduledChange,
            NoticeKind::Stopping,
            NoticeKind::Terminating,
            NoticeKind::Impaired,
        ] {
            assert_eq!(offering(kind, &claim), None, "{kind:?}");
        }
        assert_eq!(offering(NoticeKind::SpotInterruption, &NodeClaim::default()), None);
    }
}
