//! The catalogue of rules: what each finds, why that hurts, what mends it, and where it is checked.

use crate::{
    budget,
    finding::{Found, Severity},
    installation, node_class, node_pool, pdb, rejected, workload,
    world::World,
};

/// What is found, why it hurts, and what to do about it.
pub struct Rule {
    /// Such as `NP04`.
    pub code: &'static str,
    /// Such as `spot-only`.
    pub name: &'static str,
    /// How grave, where a finding does not say otherwise.
    pub severity: Severity,
    /// What it takes to decide.
    pub needs: Needs,
    /// What it finds.
    pub finds: &'static str,
    /// Why that hurts.
    pub why: &'static str,
    /// What mends it.
    pub fix: &'static str,
    /// A manifest in which it finds something, and one in which it does not, told apart by a line `# good`.
    pub(crate) cases: &'static str,
    pub(crate) check: fn(&World) -> Vec<Found>,
}

/// What it takes to decide a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Manifests are enough.
    Manifests,
    /// A dump or a cluster: what is asked about is what exists.
    Cluster,
    /// The status that a controller wrote on an object after asking the cloud.
    Status,
    /// All pods placed twice, once without the preference: not done yet.
    NotYet,
}

impl Rule {
    /// The manifest in which it finds something.
    pub fn bad(&self) -> &'static str {
        self.cases.split_once(GOOD).map_or(self.cases, |(bad, _)| bad)
    }

    /// The manifest in which it finds nothing.
    pub fn good(&self) -> &'static str {
        self.cases.split_once(GOOD).map_or("", |(_, good)| good)
    }
}

/// What tells the two manifests of a rule apart.
const GOOD: &str = "# good\n";

/// A rule by its code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.code.eq_ignore_ascii_case(code))
}

macro_rules! rules {
    ($($code:ident $name:literal $severity:ident $needs:ident $check:path, $finds:literal, $why:literal, $fix:literal;)*) => {
        /// All rules, by code within their families.
        pub const RULES: &[Rule] = &[$(Rule {
            code: stringify!($code),
            name: $name,
            severity: Severity::$severity,
            needs: Needs::$needs,
            finds: $finds,
            why: $why,
            fix: $fix,
            cases: include_str!(concat!("../cases/", stringify!($code), ".yaml")),
            check: $check,
        }),*];
    };
}

rules! {
    AP01 "rejected" Error Manifests rejected::rejected,
        "an object that the API server rejects, by the schema and the rules of the CRDs",
        "it is not created, and what refers to it waits",
        "what the message says";
    NP01 "limit-near" Warning Status node_pool::limit_near,
        "a limit of which 90% or more is used",
        "pods wait although there is money for their nodes",
        "raise the limit above the largest need of the last weeks";
    NP02 "no-limits" Warning Manifests node_pool::no_limits,
        "no `limits` at all",
        "a runaway Deployment buys nodes without end",
        "`limits` with cpu and memory";
    NP03 "limit-partial" Warning Manifests node_pool::limit_partial,
        "`limits.cpu` without `limits.memory`",
        "machines with much memory, which cost more, pass under a limit on cpu",
        "add `limits.memory`";
    NP04 "spot-only" Warning Manifests node_pool::spot_only,
        "a pool of spot machines only, and no other pool for its pods",
        "a shortage of spot is an outage",
        "add `on-demand`: spot stays first because it is cheaper";
    NP05 "few-types" Warning Manifests node_pool::few_types,
        "fewer than 15 instance types where spot is allowed",
        "one stock-out stops the pool, and a spot node is only replaced by a cheaper spot node if there are 15 types to choose from",
        "categories and generations instead of a list of types";
    NP06 "one-category" Note Manifests node_pool::one_category,
        "a requirement that leaves one category of general machines",
        "fewer markets, more stock-outs",
        "add a neighbour: `m` to `c` or `r`";
    NP07 "arch-narrow" Note Manifests node_pool::arch_narrow,
        "a requirement on amd64 where the same machines exist as arm64",
        "arm64 is cheaper for the same work",
        "allow both, once all images are built for both; images are not looked at";
    NP08 "old-generation" Warning Manifests node_pool::old_generation,
        "EC2 types of generation 4 and older, let in by a condition that does not name them",
        "they are slower and dearer for the same work, and run on an older hypervisor",
        "`karpenter.k8s.aws/instance-generation` with `Gt` `5`";
    NP09 "no-type-left" Error Manifests node_pool::no_type_left,
        "requirements that leave no instance type",
        "the pool never launches anything",
        "relax the requirement that is named";
    NP10 "redundant" Note Manifests node_pool::redundant,
        "a requirement that a list of types or families implies",
        "it hides which of the two is meant",
        "drop it";
    NP11 "overlap" Warning Manifests node_pool::overlap,
        "two pools that take the same pods at the same weight",
        "which of them is used looks random",
        "weights, or a taint on one of them";
    NP13 "churn" Warning Manifests node_pool::churn,
        "`WhenEmptyOrUnderutilized` after less than 5m on a pool for everything",
        "every rollout frees room for a moment, and ends in moves",
        "`consolidationPolicy: Balanced` and `consolidateAfter: 5m`";
    NP14 "expire-never" Error Manifests node_pool::expire_never,
        "`expireAfter: Never` with a pinned image",
        "nodes get no security updates, by neither age nor drift",
        "`expireAfter: 720h`, or a newer image now and then with windows for drift";
    NP16 "expire-default" Note Manifests node_pool::expire_default,
        "`expireAfter` that is not written",
        "720h applies unseen, and upstream's expiry does not wait for budgets",
        "write it down";
    NP17 "unknown-key" Error Manifests node_pool::unknown_key,
        "a requirement on a label that no node of the cloud has, by a slip or for another cloud",
        "it matches nothing, or is rejected",
        "the key that was meant";
    NP18 "restricted-label" Error Manifests node_pool::restricted_label,
        "labels or taints in a domain that the controller keeps for itself",
        "the NodePool is rejected, or the controller and the user fight over the label",
        "a domain of your own";
    NP19 "taint-untolerated" Warning Cluster node_pool::taint_untolerated,
        "a taint of a pool that no workload of the cluster tolerates",
        "the pool stays empty",
        "a toleration on the workload it is meant for, or drop the taint";
    NP20 "min-values" Error Manifests node_pool::min_values,
        "`minValues` above what the requirements leave",
        "nothing is launched",
        "lower it, or relax the requirements";
    NP23 "startup-taint" Error Cluster node_pool::startup_taint,
        "a startup taint that nodes still have 15 minutes after they came",
        "such nodes are never initialised: no pod lands there, and nothing consolidates them",
        "run what removes it on these nodes, or drop it";
    NP24 "no-grace-limit" Warning Cluster node_pool::no_grace_limit,
        "no `terminationGracePeriod` on a pool with pods that may not be moved",
        "a drain waits for them for ever, also when the node has expired",
        "`terminationGracePeriod: 24h`";
    NP25 "old-api" Error Manifests node_pool::old_api,
        "objects of versions that are no longer served: v1alpha5, v1beta1",
        "the API server does not know them",
        "the object in today's version, which is printed";
    NC01 "ami-alias" Error Manifests node_class::ami_alias,
        "an image alias without a version",
        "the API server rejects it",
        "`al2023@v20261110`, with the release you tested";
    NC02 "ami-latest" Warning Manifests node_class::ami_latest,
        "an image alias `@latest`",
        "each release of the image rolls the fleet, on the day it comes out",
        "pin a release, and change it by pull request";
    NC03 "selector-empty" Error Status node_class::selector_empty,
        "a selector that finds no subnet, security group or image",
        "the class is not ready, and neither are its NodePools",
        "the tag value that exists: `aws ec2 describe-subnets --filters Name=tag-key,Values=karpenter.sh/discovery`";
    NC04 "one-zone" Warning Status node_class::one_zone,
        "subnets in one zone only",
        "losing the zone loses every node",
        "tag subnets of other zones as well";
    NC05 "few-ips" Warning Status node_class::few_ips,
        "subnets without free addresses, seen by a launch that failed of it",
        "pods stay in ContainerCreating, nodes do not come",
        "a larger subnet, or prefix delegation";
    NC06 "role-missing" Error Status node_class::role_missing,
        "a role or an instance profile that cannot be used",
        "launches fail",
        "create it, or correct the name";
    NC07 "imds-open" Warning Manifests node_class::imds_open,
        "`httpTokens: optional`, or a hop limit above 1",
        "pods reach the node's credentials",
        "`httpTokens: required`, `httpPutResponseHopLimit: 1`";
    NC08 "root-volume" Warning Manifests node_class::root_volume,
        "a disk that is not encrypted",
        "whoever gets the disk next can read it; most rules of compliance forbid it",
        "`encrypted: true`";
    NC09 "image-arch" Error Status node_class::image_arch,
        "an architecture that a pool allows and no image of its class has",
        "nodes that never join",
        "narrow the architecture, or add the image";
    BU01 "never-open" Error Manifests budget::never_open,
        "no minute of the next 30 days in which any node may go",
        "drift, and with it updates, never happen",
        "a window";
    BU02 "window-small" Warning Cluster budget::window_small,
        "windows so small that replacing all nodes takes more than 7 days, at 15 minutes a node",
        "the pool is always half rolled",
        "more nodes at a time, or a longer window";
    BU03 "cron-invalid" Error Manifests budget::cron_invalid,
        "a schedule, a duration or a time zone that cannot be read",
        "the pool is closed for every reason",
        "the corrected line";
    BU04 "zero-wins" Error Manifests budget::zero_wins,
        "`nodes: \"0\"` without a schedule beside a window",
        "the strictest budget wins, so the window never opens",
        "a schedule on the zero";
    BU05 "utc-window" Note Manifests budget::utc_window,
        "a quiet time for the working day, in UTC, in a region far from it",
        "nodes move at midday",
        "the annotation `dovetail.dev/budget-time-zone`";
    BU06 "default-budget" Note Manifests budget::default_budget,
        "no `budgets` written",
        "10% of the nodes may go at any hour, which nobody reads here",
        "write it down";
    WL01 "hold-forever" Warning Manifests workload::hold_forever,
        "`karpenter.sh/do-not-disrupt: \"true\"` on pods that do not end by themselves",
        "it holds their nodes for ever: no update, no consolidation",
        "a duration, such as \"4h\"";
    WL02 "no-requests" Warning Manifests workload::no_requests,
        "containers without requests for cpu and memory",
        "they count as 0, and nodes are filled beyond what they have",
        "requests near what they use";
    WL03 "selector-unknown" Error Manifests workload::selector_unknown,
        "a node selector or a required affinity that no NodePool can meet",
        "the pods wait for ever",
        "the label that is meant, or the label in a NodePool";
    WL04 "fits-nothing" Error Manifests workload::fits_nothing,
        "pods larger than any type they may get, or than every limit",
        "the pods wait for ever",
        "smaller requests, or larger types or limits in the pool";
    WL05 "soft-rule-cost" Note Manifests workload::soft_rule_cost,
        "a preference that costs money: the planner places the workload's pods alone, with it and without",
        "preferences count as rules until they cannot be met, so the wish is paid for",
        "drop the preference, or ignore all of them: `--preference-policy=Ignore`";
    WL06 "single-replica" Warning Manifests workload::single_replica,
        "a service of one replica that may be moved",
        "each move of its node is an outage",
        "two replicas";
    WL08 "grace-too-long" Warning Manifests workload::grace_too_long,
        "a grace period longer than the notice of spot: 120 s on AWS, 30 s on Azure",
        "the pod is killed half-way",
        "a shorter one, or on-demand";
    WL09 "bad-annotation" Warning Manifests workload::bad_annotation,
        "a value of `karpenter.sh/do-not-disrupt` that means nothing",
        "the pod is believed safe, and is not",
        "\"true\", or a duration";
    WL12 "scaler-over-limit" Warning Manifests workload::scaler_over_limit,
        "a HorizontalPodAutoscaler or ScaledObject whose maximum the limits do not hold, or whose target is not given",
        "the peak will be pending",
        "limits that match the maximum";
    PD01 "never-evicts" Error Manifests pdb::never_evicts,
        "a PodDisruptionBudget whose arithmetic allows no eviction",
        "it blocks every drain of its nodes",
        "`maxUnavailable: 1`";
    PD02 "two-pdbs" Error Manifests pdb::two_pdbs,
        "pods in two PodDisruptionBudgets",
        "the eviction API refuses them, so their nodes cannot be drained",
        "one PodDisruptionBudget";
    PD04 "min-number" Warning Manifests pdb::min_number,
        "a number as `minAvailable` where a scaler may go down to it",
        "at the minimum nothing can be evicted",
        "a percentage, or `maxUnavailable: 1`";
    IN01 "namespace" Warning Manifests installation::namespace,
        "a controller outside kube-system, without a FlowSchema",
        "its requests have no priority of their own, so a busy API server costs it the lease",
        "kube-system, or a FlowSchema";
    IN02 "old-chart" Note Manifests installation::old_chart,
        "a chart more than 3 minor releases old",
        "bugs that were mended come back",
        "the newer chart, one minor release after the other where its notes ask for that";
    IN03 "no-queue" Error Manifests installation::no_queue,
        "pools that buy spot on EC2, and no interruption queue",
        "nodes vanish without notice",
        "`settings.interruptionQueue`, and the four rules that fill the queue";
    IN04 "two-scalers" Error Cluster installation::two_scalers,
        "two controllers that act, or cluster-autoscaler on nodes of a NodePool",
        "they undo each other",
        "stop one of them, or split the nodes by label";
    IN05 "own-nodes" Warning Manifests installation::own_nodes,
        "a controller that may run on nodes it manages",
        "it can remove the node it runs on",
        "an affinity to nodes without `karpenter.sh/nodepool`, as the chart has it: a node group, or Fargate";
}
