//! Bugs on purpose, to see whether those who watch us from outside find them.
//!
//! Without the feature `mutations`, which only tests ask for, every question here is answered no at compile time.

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// A claim is let go before its machine is.
    LetsGoFirst,
    /// Pods that must not be disrupted are evicted.
    EvictsProtected,
    /// Pods are deleted where they should be evicted, past their budgets.
    DeletesPods,
    /// Claims are made past the limits of their pool.
    IgnoresLimits,
    /// Nodes are disrupted past the budgets of their pool.
    IgnoresBudgets,
    /// Nodes go before their replacements are up.
    GoesFirst,
    /// Machines that are on their way do not count.
    ForgetsInFlight,
    /// A launch that is repeated is another launch.
    ForgetsToken,
    /// Nobody is told why a pod gets no node.
    SaysNothing,
    /// Pods that need a node are not looked at.
    IgnoresPods,
    /// Claims that are to go are not looked at.
    NeverFinalizes,
    /// A process that no longer leads goes on acting.
    IgnoresFence,
    /// Nodes are taken for too old after twenty minutes, whatever their pool says.
    NeverRests,
    /// What the cloud says beforehand about its machines is not heeded.
    IgnoresNotices,
}

#[cfg(feature = "mutations")]
thread_local! {
    static ON: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

/// From now on, everything on this thread has this bug.
#[cfg(feature = "mutations")]
pub fn set(mutation: Option<Mutation>) {
    ON.set(mutation);
}

/// Whether we have this bug.
#[cfg(feature = "mutations")]
pub(crate) fn has(mutation: Mutation) -> bool {
    ON.get() == Some(mutation)
}

/// Whether we have this bug.
#[cfg(not(feature = "mutations"))]
pub(crate) const fn has(_: Mutation) -> bool {
    false
}
