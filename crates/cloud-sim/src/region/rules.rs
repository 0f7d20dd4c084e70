//! How does the region behave when nobody troubles it?

use std::time::Duration;

/// How the region behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Of everything that chance decides.
    pub seed: u64,
    /// From launch to the kubelet's joining, at least and at most.
    pub boot: (Duration, Duration),
    /// From joining to ready, at least and at most.
    pub ready: (Duration, Duration),
    /// From deletion to gone, at least and at most.
    pub shutdown: (Duration, Duration),
    /// For this long, reads do not show a machine that was launched.
    pub read_lag: Duration,
    /// How often spot prices take a step; none: they stand still.
    pub price_step: Option<Duration>,
    /// How long before it takes a spot machine back the cloud says so.
    pub notice: Duration,
    /// How many cores may run at most; none: as many as one likes.
    pub quota_cpu: Option<u64>,
    /// How many launches a minute are accepted, and as many at once; none: as many as one likes.
    pub launches_per_minute: Option<u32>,
}

impl Default for Rules {
    /// A quick region in which nothing goes wrong.
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self {
            seed: 0,
            boot: (secs(20), secs(40)),
            ready: (secs(5), secs(10)),
            shutdown: (secs(5), secs(20)),
            read_lag: Duration::ZERO,
            price_step: None,
            notice: secs(120),
            quota_cpu: None,
            launches_per_minute: None,
        }
    }
}

/// What is wrong with a machine that was launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Its kubelet never joins.
    NeverJoins,
    /// Its node never becomes ready.
    NeverReady,
    /// It has only so many percent of the memory that was promised.
    LessMemory(u32),
}

/// What machines boot from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its name.
    pub name: String,
    /// What is wrong with every machine that boots from it.
    pub defect: Option<Defect>,
}
