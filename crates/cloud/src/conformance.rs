//! What any provider must do, whatever goes wrong: cases to run against it in its own tests.
//!
//! A provider's tests implement [`Harness`] over the cloud, a double of it or a recording, and run every case of [`all`]
//! on a fresh one. A fault that a cloud cannot have is refused by [`Harness::inject`]; the case then has nothing to show
//! and passes, so a harness should say in a test of its own which faults it takes.

mod cases;

use std::{future::Future, pin::Pin, time::Duration};

use async_trait::async_trait;
use jiff::Timestamp;
use model::object::{NodeClaim, NodePool, ProviderId};

use crate::CloudProvider;

/// Something that goes wrong with the next call, or for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The next launch is done, but its answer does not arrive.
    LostResponse,
    /// The next launch is half done and then fails, leaving things that cost money.
    PartialFailure,
    /// For this long, reads do not show what is launched from now on.
    ReadLag(Duration),
    /// The next launch is refused; come back after this long.
    Throttled(Duration),
    /// The next launch finds nothing of the offering it asks for.
    OutOfStock,
}

/// A cloud under test, and the hand that does things to it.
#[async_trait]
pub trait Harness: Send + Sync {
    /// The provider.
    fn cloud(&self) -> &dyn CloudProvider;

    /// A claim that could be launched: a name, an identity of its own, a node class, requirements and requests. What the
    /// provider reads from the cluster must be there.
    fn claim(&self, name: &str) -> NodeClaim;

    /// The pool the claims are of.
    fn pool(&self) -> NodePool;

    /// The time.
    fn now(&self) -> Timestamp;

    /// Lets time pass.
    async fn advance(&self, by: Duration);

    /// Makes something go wrong; false when this cloud cannot have that fault.
    async fn inject(&self, fault: Fault) -> bool;

    /// Everything that truly runs and costs money, ours and others', whatever the provider's reads show.
    async fn machines(&self) -> Vec<ProviderId>;

    /// Starts a machine of somebody else, as like ours as can be; none when the cloud holds only ours.
    async fn start_foreign(&self) -> Option<ProviderId>;
}

/// What came of a case.
pub type Outcome<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// A case: a sentence, and what proves it.
pub struct Case {
    /// The sentence.
    pub name: &'static str,
    /// Runs it on a fresh cloud.
    pub run: for<'a> fn(&'a dyn Harness) -> Outcome<'a>,
}

/// Every case.
pub fn all() -> Vec<Case> {
    cases::all()
}

/// Runs every case on a harness of its own, and returns the sentences that do not hold, each with the reason.
pub async fn failures<H, F>(mut fresh: impl FnMut() -> F) -> Vec<String>
where
    H: Harness,
    F: Future<Output = H>,
{
    let mut failures = Vec::new();
    for case in all() {
        let harness = fresh().await;
        if let Err(reason) = (case.run)(&harness).await {
            failures.push(format!("{}: {reason}", case.name));
        }
    }
    failures
}
