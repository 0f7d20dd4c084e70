//! Broken nodes: who is mended, in which order, and who is not.

use disruption::{Method, RepairAction, Replacement, StaticCount};
use jiff::SignedDuration;
use model::object::ConditionStatus;
use serde_json::{Value, json};

use crate::{
    candidates::broken,
    fixture::{Cluster, LONG_AGO, cluster, merge, said, texts},
};

fn sick() -> Value {
    json!({ "status": { "conditions": [{ "type": "Ready", "status": "False", "lastTransitionTime": LONG_AGO }] } })
}

fn annotated(key: &str, value: &str) -> Value {
    json!({ "metadata": { "annotations": { key: value } } })
}

fn starting() -> Value {
    json!({ "metadata": { "labels": { "karpenter.sh/initialized": null } } })
}

fn repairing() -> Cluster {
    let mut cluster = cluster().gate("NodeRepair");
    let condition = ("Ready".into(), ConditionStatus::False);
    cluster.facts.repair_conditions.insert(condition);
    cluster
}

impl Cluster {
    /// A broken node that is to be mended so, with changes to its node and its claim.
    fn broken(mut self, name: &str, action: RepairAction, node: Value, claim: Value) -> Self {
        let mut all = sick();
        merge(&mut all, node);
        self = self.machine(name, "t2", all, claim);
        self.facts.repairs.insert(name.into(), broken(action));
        self
    }

    /// So many nodes that are well.
    fn well(mut self, count: usize) -> Self {
        for at in 0..count {
            let name = format!("well-{at}");
            self = self.node(&name, "t2").pod(&format!("p-{name}"), &name, "2");
        }
        self
    }

    fn mended(&self) -> Vec<String> {
        texts(&self.ask(Method::Repair).commands)
    }
}

#[test]
fn a_veto_holds_for_reboots_and_replacements_and_for_nodes_that_never_came_up() {
    let veto = annotated("karpenter.sh/do-not-repair", "true");
    let message = "DisruptionBlocked: repair is blocked through the \"karpenter.sh/do-not-repair\" annotation";
    for action in [RepairAction::Reboot, RepairAction::Replace] {
        for node in [json!({}), starting()] {
            let mut node = node;
            merge(&mut node, veto.clone());
            let cluster = repairing().broken("n", action, node, json!({}));
            let pass = cluster.ask(Method::Repair);
            assert!(pass.commands.is_empty(), "{action:?}");
            assert_eq!(said(&pass.refusals, "n"), [message], "{action:?}");
        }
    }
    let guarded = annotated("karpenter.sh/do-not-disrupt", "true");
    let cluster = repairing()
        .broken("n", RepairAction::Replace, veto.clone(), json!({}))
        .pod_with("p", "n", "1", guarded);
    assert_eq!(
        said(&cluster.ask(Method::Repair).refusals, "n"),
        [message],
        "ahead of what blocks the drain"
    );
    let mut borne = repairing().broken("n", RepairAction::Replace, veto, json!({}));
    borne.facts.repairs.clear();
    assert!(
        said(&borne.ask(Method::Repair).refusals, "n").is_empty(),
        "nothing is due yet"
    );
    let other = annotated("karpenter.sh/do-not-repair", "yes");
    assert_eq!(
        repairing()
            .broken("n", RepairAction::Replace, other, json!({}))
            .mended(),
        ["delete: [n]"]
    );
}

#[test]
fn a_budget_of_none_holds_a_broken_node_until_it_opens() {
    let closed = json!({ "spec": { "disruption": { "budgets": [{ "nodes": "0", "reasons": ["Unhealthy"] }] } } });
    let mut cluster = repairing().broken("n", RepairAction::Replace, json!({}), json!({}));
    cluster.facts.repairs.get_mut(&"n".into()).unwrap().drain_bound = Some(SignedDuration::from_mins(7));
    let held = cluster.clone().pool("default", closed);
    assert!(held.mended().is_empty());
    let pass = cluster.ask(Method::Repair);
    let candidate = &pass.commands[0].candidates[0];
    assert_eq!(candidate.drain_bound, Some(SignedDuration::from_mins(7)));
    assert_eq!(&*candidate.repair.as_ref().unwrap().condition, "Ready");
}

#[test]
fn the_bound_of_a_drain_is_the_shorter_of_the_policys_and_the_claims() {
    let bound = |policy: Option<i64>, claim: Value| {
        let mut cluster = repairing().broken("n", RepairAction::Replace, json!({}), claim);
        cluster.facts.repairs.get_mut(&"n".into()).unwrap().drain_bound = policy.map(SignedDuration::from_mins);
        let bound = cluster.ask(Method::Repair).commands[0].candidates[0].drain_bound;
        bound.map(|bound| bound.as_mins())
    };
    let five = json!({ "spec": { "terminationGracePeriod": "5m" } });
    assert_eq!(bound(Some(10), five.clone()), Some(5));
    assert_eq!(bound(Some(3), five.clone()), Some(3));
    assert_eq!(bound(Some(0), five.clone()), Some(0));
    assert_eq!(bound(Some(10), json!({})), Some(10));
    assert_eq!(bound(None, five), None, "the claim's own is its business");
}

#[test]
fn of_two_as_urgent_the_cheaper_to_drain_goes_first_and_then_the_first_by_name() {
    let two = || {
        let cluster = repairing()
            .broken("b", RepairAction::Replace, json!({}), json!({}))
            .well(8);
        cluster.broken("a", RepairAction::Replace, json!({}), json!({}))
    };
    assert_eq!(two().mended(), ["delete: [a]"]);
    assert_eq!(two().pod("p", "a", "1").mended(), ["delete: [b]"]);
    let mut urgent = two();
    urgent.facts.repairs.get_mut(&"b".into()).unwrap().urgency = SignedDuration::from_mins(31);
    assert_eq!(urgent.mended(), ["delete: [b]"]);
}

#[test]
fn a_node_that_never_came_up_needs_no_budget_and_uses_none() {
    let closed = json!({ "spec": { "disruption": { "budgets": [{ "nodes": "0" }] } } });
    let cluster = repairing()
        .pool("default", closed)
        .broken("n", RepairAction::Replace, starting(), json!({}));
    assert_eq!(cluster.mended(), ["delete: [n]"]);
    let one = json!({ "spec": { "disruption": { "budgets": [{ "nodes": "1" }] } } });
    let mut both = repairing()
        .pool("default", one)
        .broken("n", RepairAction::Replace, starting(), json!({}))
        .broken("up", RepairAction::Replace, json!({}), json!({}))
        .well(8);
    both.facts.marked.insert("claim-n".into());
    both.facts.queued.insert("id-n".into());
    assert_eq!(both.mended(), ["delete: [up]"], "what never came up does not count");
}

#[test]
fn a_node_that_never_joined_or_reboots_is_not_mended_and_one_that_starts_is_although_pods_wait_for_it() {
    let unregistered =
        json!({ "metadata": { "labels": { "karpenter.sh/initialized": null, "karpenter.sh/registered": null } } });
    let never = repairing().broken("n", RepairAction::Replace, unregistered, json!({}));
    assert!(never.mended().is_empty());
    let rebooting = json!({ "status": { "conditions": [{ "type": "Rebooting", "status": "True", "reason": "RebootIssued", "lastTransitionTime": LONG_AGO }] } });
    for node in [json!({}), starting()] {
        let cluster = repairing().broken("n", RepairAction::Replace, node, rebooting.clone());
        assert!(cluster.mended().is_empty());
    }
    let mut nominated = repairing().broken("n", RepairAction::Replace, starting(), json!({}));
    nominated.facts.nominated.insert("id-n".into());
    assert_eq!(nominated.mended(), ["delete: [n]"]);
    let mut up = repairing().broken("n", RepairAction::Replace, json!({}), json!({}));
    up.facts.nominated.insert("id-n".into());
    assert!(up.mended().is_empty(), "one that is up waits for them");
}

#[test]
fn nodes_that_never_came_up_count_for_the_breaker() {
    let two_of = |all: usize| {
        repairing()
            .broken("a", RepairAction::Replace, starting(), json!({}))
            .broken("b", RepairAction::Replace, starting(), json!({}))
            .well(all - 2)
    };
    let pass = two_of(5).ask(Method::Repair);
    assert!(pass.commands.is_empty());
    let message = "NodeRepairBlocked: more than 20% of nodes in nodepool \"default\" are unhealthy";
    assert_eq!(said(&pass.refusals, "a"), [message]);
    assert_eq!(two_of(10).mended(), ["delete: [a]"]);
}

#[test]
fn a_claim_of_no_pool_is_not_mended_and_told_so() {
    let alone = json!({ "metadata": { "labels": { "karpenter.sh/nodepool": null } } });
    let cluster = repairing().broken("n", RepairAction::Replace, alone.clone(), alone);
    let pass = cluster.ask(Method::Repair);
    assert!(pass.commands.is_empty());
    assert_eq!(
        said(&pass.refusals, "n"),
        ["DisruptionBlocked: repair requires a NodePool to construct and budget a safe replacement"]
    );
}

#[test]
fn a_broken_node_of_a_static_pool_is_replaced_from_its_template_as_far_as_the_limit_goes() {
    let pool = |limit: &str| json!({ "spec": { "replicas": 1, "limits": { "nodes": limit } } });
    let of = |limit: &str| {
        repairing()
            .pool("default", pool(limit))
            .broken("n", RepairAction::Replace, json!({}), json!({}))
            .pod("p", "n", "1")
    };
    let pass = of("2").ask(Method::Repair);
    assert_eq!(texts(&pass.commands), ["replace: [n] -> [1 replacement]"]);
    assert!(matches!(&pass.commands[0].replacements[..], [Replacement::Static(pool)] if pool.as_str() == "default"));
    let full = of("1").ask(Method::Repair);
    assert!(full.commands.is_empty());
    assert_eq!(
        said(&full.refusals, "n"),
        ["DisruptionBlocked: static NodePool is at its node limit and cannot stage a replacement"]
    );
    let mut taken = of("2");
    let count = StaticCount {
        active: 1,
        reserved: 1,
        ..StaticCount::default()
    };
    taken.facts.static_counts.insert("default".into(), count);
    assert!(taken.mended().is_empty(), "the slot is somebody else's");
}

#[test]
fn nothing_is_mended_while_the_gate_is_closed() {
    let mut cluster = repairing()
        .broken("n", RepairAction::Replace, json!({}), json!({}))
        .pod("p", "n", "2");
    assert_eq!(cluster.decide().commands.len(), 1);
    cluster.settings = json!({});
    assert!(cluster.decide().commands.is_empty());
}
