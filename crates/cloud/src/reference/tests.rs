//! The suite against the reference, and the reference broken on purpose against the suite.

use std::{
    pin::pin,
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
    task::{Context, Poll, Waker},
};

use super::*;
use crate::conformance::{Harness, failures};

/// The reference with a clock that is moved by hand.
struct Bench {
    cloud: Box<dyn CloudProvider>,
    reference: Arc<Reference>,
    seconds: Arc<AtomicI64>,
    claims: AtomicU64,
}

fn bench(wrap: impl FnOnce(Arc<Reference>) -> Box<dyn CloudProvider>) -> Bench {
    let seconds = Arc::new(AtomicI64::new(1_000_000));
    let clock = Arc::clone(&seconds);
    let now: Now = Arc::new(move || Timestamp::from_second(clock.load(Ordering::SeqCst)).unwrap());
    let requirement = |key: &str, value: &str| format!(r#"{{"key":"{key}","operator":"In","values":["{value}"]}}"#);
    let (zone, kind) = (requirement(ZONE, "a"), requirement(CAPACITY_TYPE, "spot"));
    let json = format!(
        r#"{{"name":"large","capacity":{{"cpu":"4"}},
            "offerings":[{{"price":"1","available":true,"requirements":[{zone},{kind}]}}]}}"#
    );
    let reference = Arc::new(Reference::new(now, vec![serde_json::from_str(&json).unwrap()]));
    reference.shut_down_in(Duration::from_secs(20));
    Bench {
        cloud: wrap(Arc::clone(&reference)),
        reference,
        seconds,
        claims: AtomicU64::new(0),
    }
}

#[async_trait]
impl Harness for Bench {
    fn cloud(&self) -> &dyn CloudProvider {
        &*self.cloud
    }

    fn claim(&self, name: &str) -> NodeClaim {
        let mut claim = NodeClaim::default();
        claim.metadata.name = name.into();
        let number = self.claims.fetch_add(1, Ordering::SeqCst);
        claim.metadata.uid = format!("uid-{number}").as_str().into();
        claim
    }

    fn pool(&self) -> NodePool {
        NodePool::default()
    }

    fn now(&self) -> Timestamp {
        (self.reference.now)()
    }

    async fn advance(&self, by: Duration) {
        let seconds = i64::try_from(by.as_secs()).unwrap();
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    async fn inject(&self, fault: Fault) -> bool {
        self.reference.inject(fault);
        true
    }

    async fn machines(&self) -> Vec<ProviderId> {
        self.reference.machines()
    }

    async fn start_foreign(&self) -> Option<ProviderId> {
        Some(self.reference.start_foreign("reference:///1000"))
    }
}

/// The answer of a future that never waits.
fn answer<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the reference answers at once"),
    }
}

#[test]
fn the_reference_keeps_the_contract() {
    let failures = answer(failures(|| async {
        bench(|reference| Box::new(Shared(reference, None)))
    }));
    assert_eq!(failures, [""; 0]);
}

#[test]
fn the_suite_finds_providers_that_break_the_contract() {
    let cases = [
        (Breach::ForgetsTokens, "one_token_launches_one_machine"),
        (Breach::ForgetsTokens, "a_launch_whose_answer_was_lost_is_found_again"),
        (
            Breach::IgnoresUnrecorded,
            "a_machine_whose_launch_was_not_recorded_is_deleted_with_its_claim",
        ),
        (
            Breach::IgnoresUnrecorded,
            "a_launch_that_failed_half_way_leaves_nothing_behind",
        ),
        (
            Breach::SaysGoneTooEarly,
            "deleting_goes_on_until_the_machine_is_gone_and_no_further",
        ),
        (
            Breach::DropsTags,
            "machines_are_listed_with_the_claim_they_were_launched_for",
        ),
        (
            Breach::DropsRetryAfter,
            "a_throttled_launch_says_when_to_come_back_and_then_succeeds",
        ),
        (Breach::DropsOfferings, "a_shortage_names_the_offering"),
        (
            Breach::HidesShortTypes,
            "types_that_cannot_be_had_are_listed_all_the_same",
        ),
    ];
    for (breach, case) in cases {
        let failures = answer(failures(|| async { bench(|it| Box::new(Shared(it, Some(breach)))) }));
        let found = failures.iter().any(|failure| failure.starts_with(&format!("{case}: ")));
        assert!(found, "{breach:?} passes {case}: {failures:?}");
    }
}

/// A way to break the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breach {
    ForgetsTokens,
    IgnoresUnrecorded,
    SaysGoneTooEarly,
    DropsTags,
    DropsRetryAfter,
    DropsOfferings,
    HidesShortTypes,
}

/// The reference, shared with the bench, breaking the contract in at most one way.
struct Shared(Arc<Reference>, Option<Breach>);

#[async_trait]
impl CloudProvider for Shared {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        self.0.node_classes()
    }

    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        if self.1 == Some(Breach::ForgetsTokens) {
            self.0.lock().tokens.clear();
        }
        let mut result = self.0.create(claim, token).await;
        match (&mut result, self.1) {
            (Err(CloudError::Throttled { retry_after, .. }), Some(Breach::DropsRetryAfter)) => *retry_after = None,
            (Err(CloudError::InsufficientCapacity { offerings, .. }), Some(Breach::DropsOfferings)) => {
                offerings.clear();
            }
            _ => {}
        }
        result
    }

    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        let is_unrecorded = claim.status.provider_id.is_none();
        if is_unrecorded && self.1 == Some(Breach::IgnoresUnrecorded) {
            return Err(gone());
        }
        let result = self.0.delete(claim).await;
        if self.1 == Some(Breach::SaysGoneTooEarly) {
            Err(gone())
        } else {
            result
        }
    }

    async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError> {
        self.0.get(id).await
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let mut instances = self.0.list().await?;
        if self.1 == Some(Breach::DropsTags) {
            for it in &mut instances {
                it.claim_uid = None;
            }
        }
        Ok(instances)
    }

    async fn instance_types(&self, pool: &NodePool) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        let mut types = self.0.instance_types(pool).await?;
        if self.1 == Some(Breach::HidesShortTypes) {
            types.retain(|entry| entry.offerings.iter().all(|it| it.available));
        }
        Ok(types)
    }

    fn offers_version(&self) -> u64 {
        self.0.offers_version()
    }

    async fn is_drifted(&self, claim: &NodeClaim) -> Result<Option<String>, CloudError> {
        self.0.is_drifted(claim).await
    }

    async fn reboot(&self, claim: &NodeClaim, operation_id: &str) -> Result<(), CloudError> {
        self.0.reboot(claim, operation_id).await
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.0.repair_policies()
    }

    fn well_known_labels(&self) -> Vec<String> {
        self.0.well_known_labels()
    }
}
