//! What can a test turn? Every knob, as Rust and as the JSON that `POST /_double/<knob>` takes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One turn of one knob. Over HTTP the variant in lower case is the last part of the path and the content is the body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knob {
    /// Adds a fault; the first one that fits a call is spent on it.
    Fault(Fault),
    /// Replaces all rules about capacity; the first one that fits decides.
    Stock(Vec<Stock>),
    /// Sets a quota.
    Quota(Quota),
    /// Adds a limit on how often something may be called.
    Throttle(Throttle),
    /// What Resource Graph shows.
    Graph(Graph),
    /// How long operations take.
    Latency(Latency),
    /// How long-running operations are told.
    Style(Style),
    /// Moves the time forward.
    Clock(Advance),
    /// About tokens.
    Token(TokenRule),
    /// Changes a size.
    Sku(SkuChange),
    /// How many addresses a subnet has left.
    Subnet(SubnetRoom),
    /// Takes a back-end pool away or brings it back.
    Pool(PoolPresence),
    /// Announces that a spot machine will be evicted.
    Evict(Evict),
    /// Removes a virtual machine behind everyone's back, with what it owns.
    Vanish(Vanish),
    /// Puts a resource that nobody asked for.
    Plant(Plant),
    /// How many items a page has.
    Page(Page),
    /// Publishes an image version.
    Image(ImageVersion),
    /// What AKS says about a machine.
    Machine(MachineDrift),
    /// Whoever asks has only these roles from now on.
    Role(Role),
    /// Sets the prices of a size.
    Price(PriceChange),
    /// Takes back faults, stock, throttles, latency, styles, pages and roles. World and ledger stay.
    Reset(Reset),
}

/// Something that goes wrong with a call. What is not named fits everything; a star stands for anything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The operation, like `VirtualMachines_CreateOrUpdate` or `NetworkInterfaces_*`.
    pub operation: String,
    /// The last name in the path.
    #[serde(default = "any")]
    pub name: String,
    /// The size asked for.
    #[serde(default = "any")]
    pub size: String,
    /// The zone asked for; the empty text is «no zone».
    #[serde(default = "any")]
    pub zone: String,
    /// `spot` or `on-demand`.
    #[serde(default = "any")]
    pub capacity: String,
    /// How often; none means always.
    #[serde(default = "once")]
    pub times: Option<u32>,
    /// What happens.
    pub effect: Effect,
}

impl Fault {
    /// A fault that happens to the next call of an operation.
    pub fn next(operation: &str, effect: Effect) -> Self {
        Self {
            operation: operation.to_owned(),
            name: any(),
            size: any(),
            zone: any(),
            capacity: any(),
            times: Some(1),
            effect,
        }
    }

    /// So many times; none means always.
    #[must_use]
    pub fn times(mut self, times: Option<u32>) -> Self {
        self.times = times;
        self
    }
}

/// What a fault does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// Answers an error at once; nothing is done.
    Sync {
        /// The HTTP status.
        status: u16,
        /// The code in the body.
        code: String,
        /// The words; those of Azure for the code if left out.
        #[serde(default)]
        message: Option<String>,
        /// `Retry-After` in seconds.
        #[serde(default)]
        retry_after: Option<u64>,
    },
    /// Takes the request; its operation fails in the end. Only for calls that begin an operation.
    Async {
        /// The code in the operation's status.
        code: String,
        /// The words; those of Azure for the code if left out.
        #[serde(default)]
        message: Option<String>,
    },
    /// Does what is asked and drops the connection instead of answering.
    Lost {},
    /// Drops the connection and does nothing.
    Refused {},
    /// Answers, this much later.
    Slow {
        /// How much later.
        millis: u64,
    },
}

/// How much there is of something. What is not named fits everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stock {
    /// The sizes.
    #[serde(default = "any")]
    pub size: String,
    /// The zones; the empty text is «no zone».
    #[serde(default = "any")]
    pub zone: String,
    /// `spot` or `on-demand`.
    #[serde(default = "any")]
    pub capacity: String,
    /// How many virtual machines of that there may be at once.
    pub limit: usize,
    /// The code: one of the allocation codes of the contract.
    pub code: String,
    /// Whether the request is refused or its operation fails.
    pub when: When,
}

impl Stock {
    /// There is none, and this is how it is told.
    pub fn none(size: &str, zone: &str, capacity: &str, code: &str, when: When) -> Self {
        Self {
            size: size.to_owned(),
            zone: zone.to_owned(),
            capacity: capacity.to_owned(),
            limit: 0,
            code: code.to_owned(),
            when,
        }
    }
}

/// When an error is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// In the answer to the request.
    Sync,
    /// In the status of the operation.
    Async,
}

/// A quota: of a family of sizes, `cores` of the region, or `lowPriorityCores` for spot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// The family.
    pub family: String,
    /// How many cores.
    pub limit: i64,
}

/// How often something may be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throttle {
    /// The operations, together.
    pub operation: String,
    /// So many calls …
    pub limit: usize,
    /// … in so many seconds.
    pub window_seconds: i64,
}

/// What Resource Graph shows. What is not named stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Graph {
    /// How far it is behind.
    pub lag_seconds: Option<i64>,
    /// Whether it shows from now on only what it showed now.
    pub frozen: Option<bool>,
    /// Whether ids come back in mixed case.
    pub mixed_case: Option<bool>,
}

/// How long operations take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// The operations that begin them.
    pub operation: String,
    /// From the answer to the end.
    pub seconds: i64,
}

/// How long-running operations are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Style {
    /// The operations that begin them.
    pub operation: String,
    /// The way.
    pub style: LroStyle,
}

/// The ways in which ARM tells of a long-running operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LroStyle {
    /// `Azure-AsyncOperation` only.
    AsyncOperation,
    /// `Location` only.
    Location,
    /// Both headers.
    Both,
    /// No header: the resource's `provisioningState` tells.
    ProvisioningState,
}

/// Moves the time forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advance {
    /// By so many seconds.
    pub advance_seconds: i64,
}

/// About tokens. What is not named stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenRule {
    /// For how long tokens issued from now on are good.
    pub lifetime_seconds: Option<i64>,
    /// Whether only tokens issued here are taken; otherwise any other text is, too.
    pub only_issued: Option<bool>,
    /// Whether to make all tokens issued so far invalid.
    pub revoke: bool,
}

/// Changes a size. What is not named stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SkuChange {
    /// The sizes.
    pub name: String,
    /// Whether they are no longer there at all.
    pub removed: bool,
    /// Zones in which the subscription may not use them.
    pub restricted_zones: Option<Vec<String>>,
    /// Whether the subscription may not use them in the region.
    pub restricted_location: Option<bool>,
    /// Capabilities with their new values.
    pub capabilities: BTreeMap<String, String>,
}

/// How many addresses a subnet has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubnetRoom {
    /// Its name.
    pub name: String,
    /// So many.
    pub free: usize,
}

/// Whether a back-end pool is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolPresence {
    /// The load balancer.
    pub load_balancer: String,
    /// The pool.
    pub pool: String,
    /// Whether it is.
    pub present: bool,
}

/// Announces an eviction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evict {
    /// The virtual machine.
    pub vm: String,
    /// How long before.
    pub notice_seconds: i64,
}

/// Removes a virtual machine behind everyone's back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vanish {
    /// Its name.
    pub vm: String,
}

/// Puts a resource into the group of the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plant {
    /// What it is.
    pub kind: PlantKind,
    /// Its name.
    pub name: String,
    /// Its tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// What can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlantKind {
    /// A virtual machine with its network interface and disk.
    Vm,
    /// A network interface that nothing uses.
    Nic,
    /// A disk that nothing uses.
    Disk,
    /// A machine of the agent pool, with its virtual machine.
    Machine,
}

/// How many items a page has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// The operations.
    pub operation: String,
    /// So many.
    pub size: usize,
}

/// Publishes a version of an image, in the community gallery and in the list of node image versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageVersion {
    /// The definition, like `2204gen2containerd`.
    pub image: String,
    /// The version.
    pub version: String,
    /// When.
    pub published: Timestamp,
}

/// What AKS says about a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineDrift {
    /// The machine.
    pub machine: String,
    /// `Synced` or `Recreate`.
    pub action: String,
    /// Why.
    pub reason: String,
}

/// What callers are allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// All that they have; none at all allows nothing.
    pub grants: Vec<Grant>,
}

/// Actions on everything at and below a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The id of a resource, a group or a subscription.
    pub scope: String,
    /// Like `Microsoft.Compute/virtualMachines/*`.
    pub actions: Vec<String>,
}

/// Sets the prices of a size, in USD per hour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceChange {
    /// The size.
    pub size: String,
    /// On demand.
    pub on_demand: f64,
    /// As spot; none for no such meter.
    pub spot: Option<f64>,
}

/// Nothing to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reset {}

fn any() -> String {
    "*".to_owned()
}

#[expect(clippy::unnecessary_wraps, reason = "serde wants the type of the field")]
fn once() -> Option<u32> {
    Some(1)
}
