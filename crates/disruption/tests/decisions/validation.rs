//! What is left of a command after a while.

use disruption::{Command, Invalid, Method, validate};
use serde_json::json;

use crate::fixture::{Cluster, cluster, now, texts};

fn again(command: &Command, cluster: &Cluster) -> Result<Command, Invalid> {
    validate(command, &cluster.snapshot(), &cluster.facts, &cluster.options, now())
}

fn two() -> Cluster {
    cluster()
        .node("a", "t2")
        .node("b", "t8")
        .pod("p", "a", "1")
        .pod("q", "b", "1")
}

fn first(cluster: &Cluster, method: Method) -> Command {
    cluster.ask(method).commands.remove(0)
}

#[test]
fn a_command_stands_while_nothing_changes() {
    for method in [Method::SingleNodeConsolidation, Method::MultiNodeConsolidation] {
        let cluster = two().node("c", "t8").pod("r", "c", "1");
        let command = first(&cluster, method);
        assert_eq!(again(&command, &cluster), Ok(command.clone()), "{}", command.text());
    }
}

#[test]
fn a_node_that_is_no_candidate_any_more_ends_its_command_as_churn() {
    let command = first(&two(), Method::SingleNodeConsolidation);
    let protected = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
    let changed = two().pod_with("r", "b", "1", protected);
    let invalid = again(&command, &changed).unwrap_err();
    assert_eq!(
        (invalid.label(), invalid.to_string()),
        ("churn", "1 candidates are no longer valid".to_owned())
    );
    assert_eq!(
        command.rejected_message(&"b".into(), &invalid),
        "Consolidation rejected: delete: [b], reason: churn (savings: $8.00)"
    );
}

#[test]
fn a_budget_that_closed_ends_a_command() {
    let command = first(&two(), Method::SingleNodeConsolidation);
    let closed = two().pool(
        "default",
        json!({ "spec": { "disruption": { "budgets": [{ "nodes": "0" }] } } }),
    );
    assert_eq!(again(&command, &closed), Err(Invalid::Budget));
}

#[test]
fn pods_that_would_go_elsewhere_end_a_command() {
    let command = first(&two(), Method::SingleNodeConsolidation);
    let fuller = two().pod("r", "a", "900m");
    let invalid = again(&command, &fuller).unwrap_err();
    assert_eq!(
        invalid,
        Invalid::Scheduling("scheduling simulation produced new results".to_owned())
    );
}

#[test]
fn a_replacement_must_still_be_able_to_become_every_type_chosen() {
    let alone = cluster().node("a", "t8").pod("p", "a", "1500m");
    let command = first(&alone, Method::SingleNodeConsolidation);
    assert_eq!(again(&command, &alone), Ok(command.clone()));
    let grown = alone.pod("q", "a", "1");
    assert_eq!(again(&command, &grown).unwrap_err().label(), "scheduling");
}

#[test]
fn empty_nodes_that_stayed_empty_go_without_the_others() {
    let cluster = cluster().node("a", "t2").node("b", "t4").node("c", "t8");
    let command = first(&cluster, Method::Emptiness);
    let left = again(&command, &cluster.clone().pod("p", "b", "1")).unwrap();
    assert_eq!(texts(&[left]), ["delete: [a, c]"]);
    let mut busy = cluster.clone();
    for node in ["a", "b", "c"] {
        busy = busy.pod(&format!("p-{node}"), node, "1");
    }
    assert_eq!(again(&command, &busy), Err(Invalid::Churn(3)));
    let closed = cluster.pool(
        "default",
        json!({ "spec": { "disruption": { "budgets": [{ "nodes": "0" }] } } }),
    );
    assert_eq!(again(&command, &closed), Err(Invalid::Budget));
}
