//! Could every pod of a plan bind where the plan says? The answer from kube-scheduler's rules, not from the planner's.
//!
//! A node to be launched stands for every node the cloud may launch for it: each instance type of the claim with each
//! offering that can be had and meets the claim's constraints. What holds for all of them holds. What may fail for some
//! only because upstream's algorithm is known to plan that loosely is a [`Doubt`], everything else a [`Violation`].
//! Devices (dynamic resource allocation) are not judged here.

mod claim;
mod daemon;
mod demand;
mod existing;
mod expected;
mod labels;
mod limits;
mod min_values;
mod placement;
mod supply;
mod topology;
mod world;

use std::fmt;

use model::{
    object::{ObjectKey, Text},
    plan::Plan,
    snapshot::Snapshot,
};

use self::supply::Supply;
pub(crate) use self::{
    claim::current,
    expected::{Expected, expected_nodes},
    world::World,
};
use crate::plugin::Plugin;

/// What is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The rule that does not hold.
    pub rule: Rule,
    /// The pod it is about; none when it is about the place.
    pub pod: Option<ObjectKey>,
    /// The node or claim.
    pub place: Option<Place>,
    /// What was found.
    pub detail: String,
}

/// What is said of a pod that none of the orders tried could bind.
pub(crate) const NO_ORDER: &str = "no order of binding was found in which the pod is admitted";

impl Violation {
    /// Whether it is a fact. That no order of binding admits a pod is not: the search tries a few orders, not all.
    pub fn is_proven(&self) -> bool {
        self.detail != NO_ORDER
    }
}

/// Something that may go wrong, though upstream plans like this.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Doubt {
    /// What may go wrong.
    pub violation: Violation,
    /// Why it need not, or why upstream does it all the same.
    pub reason: Reason,
}

/// A place of a plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A node to be launched, by its position in the plan.
    Claim(usize),
    /// A node that is there, or on its way.
    Node(Text),
}

/// A rule for plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Every pod that needs a place appears once, and no other pod does.
    Demand,
    /// A claim belongs to a NodePool that may launch nodes.
    NodePool,
    /// A claim has instance types, all of its pool, and constraints that they can meet.
    Options,
    /// The instance types offer as many different values as `minValues` asks for.
    MinValues,
    /// The NodePool's limits are kept, as upstream counts them.
    Limits,
    /// The place exists.
    Place,
    /// kube-scheduler's plugin admits the pod.
    Filter(Plugin),
}

/// Why a doubt is not a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The claim's domain is open: whether it goes wrong depends on where the cloud launches it.
    OpenDomain,
    /// Another offering of the type, with other capacity, has the room; upstream asks for one that has.
    OtherOffering,
    /// The catalogue does not say that nodes have this label; upstream takes well-known labels for granted.
    UnpromisedLabel,
    /// A NodeOverlay promises the resource, or has made upstream forget an offering's own capacity.
    Overlay,
    /// The daemon that would not fit has several node selector terms; upstream drops terms while it looks at types.
    DaemonTerms,
    /// Only a daemon that is not there yet would lack room.
    DaemonRoom,
    /// Upstream does not read what keeps the volume from the node.
    VolumePlace,
    /// Upstream measures skew only over the domains that the pod itself may use.
    SpreadPolicy,
    /// Relaxing the pod (another node affinity term, tolerating soft taints) makes upstream count from the start again,
    /// without the pods it has placed already.
    FreshGroup,
    /// Pods the affinity picks run where the pod may not; upstream then lets it found a group of its own, while
    /// kube-scheduler insists on theirs.
    OwnGroup,
    /// Two conditions of the pod on one label contradict each other; upstream reads them as "the label is absent".
    Contradiction,
    /// Upstream remembers nothing of a pod in a domain that its claim does not speak of.
    UnrecordedDomain,
    /// A pod was placed while its claim's domain was open, and upstream never counts it, though a later pod of the claim
    /// settled the domain.
    LateDomain,
    /// Each pod is bound by one of the orders tried, but none of them binds all; another one may.
    NoCommonOrder,
    /// Nothing can be launched for the claim at once.
    NothingToLaunch,
    /// The pod is held back by scheduling gates, which upstream does not read.
    Gated,
    /// Upstream does not read whether a node is cordoned; the taint that goes with it is missing here.
    Cordoned,
}

/// All there is to say against a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why it cannot be carried out.
    pub violations: Vec<Violation>,
    /// Why it may not be carried out.
    pub doubts: Vec<Doubt>,
}

/// Whether the plan can be carried out; doubts do not speak against it.
pub fn judge(snapshot: &Snapshot, plan: &Plan) -> Result<(), Vec<Violation>> {
    let verdict = examine(snapshot, plan);
    if verdict.violations.is_empty() {
        Ok(())
    } else {
        Err(verdict.violations)
    }
}

/// Everything that speaks against the plan, doubts included.
pub fn examine(snapshot: &Snapshot, plan: &Plan) -> Verdict {
    let mut verdict = Verdict::default();
    let world = World::new(snapshot);
    let mut supply = Supply::new(snapshot);
    demand::check(snapshot, &world, plan, &mut verdict);
    limits::check(snapshot, &world, &supply, plan, &mut verdict);
    let claims = claim::check(snapshot, &mut supply, plan, &mut verdict);
    topology::check(snapshot, &world, &claims, plan, &mut verdict);
    verdict.violations.sort();
    verdict.doubts.sort();
    verdict
}

impl Verdict {
    fn violate(&mut self, rule: Rule, pod: Option<&ObjectKey>, place: Option<&Place>, detail: impl Into<String>) {
        self.violations.push(violation(rule, pod, place, detail));
    }

    fn doubt(
        &mut self,
        reason: Reason,
        rule: Rule,
        pod: Option<&ObjectKey>,
        place: Option<&Place>,
        detail: impl Into<String>,
    ) {
        self.doubts.push(Doubt {
            violation: violation(rule, pod, place, detail),
            reason,
        });
    }

    /// A violation, or a doubt where there is a reason.
    fn find(
        &mut self,
        reason: Option<Reason>,
        rule: Rule,
        pod: Option<&ObjectKey>,
        place: Option<&Place>,
        detail: impl Into<String>,
    ) {
        match reason {
            Some(reason) => self.doubt(reason, rule, pod, place, detail),
            None => self.violate(rule, pod, place, detail),
        }
    }
}

fn violation(rule: Rule, pod: Option<&ObjectKey>, place: Option<&Place>, detail: impl Into<String>) -> Violation {
    Violation {
        rule,
        pod: pod.cloned(),
        place: place.cloned(),
        detail: detail.into(),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(at) => write!(f, "claim {at}"),
            Self::Node(name) => write!(f, "node {name}"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(plugin) => plugin.fmt(f),
            other => write!(f, "{other:?}"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rule)?;
        if let Some(pod) = &self.pod {
            write!(f, ", pod {}/{}", pod.namespace, pod.name)?;
        }
        if let Some(place) = &self.place {
            write!(f, ", {place}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.violation, self.reason)
    }
}
