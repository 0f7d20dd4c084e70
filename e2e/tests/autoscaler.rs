//! Does our binary keep a real cluster supplied with nodes, on good days and on bad ones?

use anyhow::{Result, ensure};
use e2e::autoscaler::{
    apply_deployment, apply_pool, apply_role, apply_role_without, apply_shape, await_leader, await_log, await_nodes,
    await_nothing_left, await_one_node_per_claim, await_other_leader, await_ready, await_request, bare_cluster, claims,
    cluster, consolidate, count, delete, delete_deployment, delete_pool, forget_leader, install_crds, metrics, nodes,
    requests, start, start_as_account, start_upstream, value, write_much,
};
use rig::{Client, ports};
use serde_json::Value;

#[test]
fn a_deployment_gets_the_nodes_it_needs_and_they_go_with_their_pool() -> Result<()> {
    let cluster = cluster()?;
    let client = cluster.client();
    let _controller = start(&cluster, "dovetail", &[])?;
    await_leader(client)?;
    apply_pool(client, "default")?;
    apply_deployment(client, "web", 5, "1")?;
    await_ready(client, "web", 5)?;
    await_one_node_per_claim(client)?;
    delete(client, "default", "web")?;
    await_nothing_left(client)
}

/// Shapes that only pay together, and that kube-scheduler mixes otherwise when it is left to itself.
const SHAPES: [(&str, u64, &str, &str); 4] = [
    ("cpu", 12, "1500m", "512Mi"),
    ("memory", 12, "250m", "6Gi"),
    ("large", 4, "4", "8Gi"),
    ("small", 20, "250m", "512Mi"),
];

fn apply_shapes(client: &Client) -> Result<()> {
    for (name, replicas, cpu, memory) in SHAPES {
        apply_shape(client, name, replicas, cpu, memory)?;
    }
    for (name, replicas, ..) in SHAPES {
        await_ready(client, name, replicas)?;
    }
    Ok(())
}

fn delete_shapes(client: &Client) -> Result<()> {
    for (name, ..) in SHAPES {
        delete_deployment(client, name)?;
    }
    delete_pool(client, "default")?;
    await_nothing_left(client)
}

#[test]
fn pods_run_with_every_steering_and_the_metrics_tell_where_they_landed() -> Result<()> {
    let cluster = cluster()?;
    let client = cluster.client();
    let all: u64 = SHAPES.iter().map(|(_, replicas, ..)| replicas).sum();
    for steering in ["off", "release", "nominate", "pin"] {
        let [port] = ports::free()?;
        let number = port.to_string();
        let settings = [
            ("STEERING", steering),
            ("METRICS_PROFILE", "full"),
            ("METRICS_PORT", number.as_str()),
        ];
        let mut controller = start(&cluster, steering, &settings)?;
        await_leader(client)?;
        apply_pool(client, "default")?;
        apply_shapes(client)?;
        await_one_node_per_claim(client)?;
        let metrics = metrics(port)?;
        let landed = |place: &str| {
            // As all pages of metrics, labels in the order of their names.
            let labels = format!("{{place=\"{place}\",steering=\"{steering}\"}}");
            value(&metrics, &format!("dovetail_steering_pods_landed_total{labels}"))
        };
        let (planned, elsewhere) = (landed("planned"), landed("elsewhere"));
        eprintln!("{steering}: {planned} pods landed as planned, {elsewhere} elsewhere, of {all}");
        ensure!(planned > 0.0, "{steering}: nobody landed as planned");
        delete_shapes(client)?;
        controller.stop(std::time::Duration::from_secs(20));
    }
    Ok(())
}

#[test]
fn after_a_scale_in_the_pods_that_are_left_run_on_fewer_nodes() -> Result<()> {
    let cluster = cluster()?;
    let client = cluster.client();
    apply_role(client)?;
    let _controller = start_as_account(&cluster, "dovetail")?;
    await_leader(client)?;
    apply_pool(client, "default")?;
    // Of these no two share a node: the largest type has 256 cores.
    apply_deployment(client, "web", 4, "140")?;
    await_ready(client, "web", 4)?;
    await_nodes(client, 4)?;
    consolidate(client, "default")?;
    apply_deployment(client, "web", 1, "140")?;
    await_nodes(client, 1)?;
    await_ready(client, "web", 1)?;
    let refused: Vec<_> = requests(&cluster)?
        .into_iter()
        .filter(|request| request.code == 403)
        .collect();
    ensure!(refused.is_empty(), "refused: {refused:?}");
    Ok(())
}

#[test]
fn the_binary_needs_no_more_than_the_role_it_ships_with() -> Result<()> {
    let cluster = cluster()?;
    let client = cluster.client();
    apply_role(client)?;
    let _controller = start_as_account(&cluster, "dovetail")?;
    await_leader(client)?;
    apply_pool(client, "default")?;
    apply_shapes(client)?;
    delete_shapes(client)?;
    let refused: Vec<_> = requests(&cluster)?
        .into_iter()
        .filter(|request| request.code == 403)
        .collect();
    ensure!(refused.is_empty(), "refused: {refused:?}");
    Ok(())
}

/// Where a process may die: right after it has made a request of the kind, before it can have seen the answer's effect.
const LAUNCHING: [&str; 5] = [
    "create nodeclaims",
    "patch nodeclaims",
    "create nodes",
    "patch nodeclaims/status",
    "patch nodes",
];
const ENDING: [&str; 3] = ["delete nodes", "create pods/eviction", "patch nodeclaims"];

#[test]
fn killed_at_any_step_it_leaves_one_node_per_claim_and_nothing_behind() -> Result<()> {
    let cluster = cluster()?;
    let client = cluster.client();
    let mut controller = start(&cluster, "dovetail-0", &[])?;
    await_leader(client)?;
    apply_pool(client, "default")?;
    for (at, step) in LAUNCHING.into_iter().enumerate() {
        let before = count(&cluster, step)?;
        // Too large to fit where the others run.
        apply_deployment(client, &format!("web-{at}"), 2, "40")?;
        await_request(&cluster, step, before)?;
        controller.kill();
        forget_leader(client)?;
        controller = start(&cluster, &format!("dovetail-launch-{at}"), &[])?;
        await_ready(client, &format!("web-{at}"), 2)?;
        await_one_node_per_claim(client)?;
    }
    // Counted before anything ends: on a busy machine a process evicts all pods before it can be killed for its first
    // deletion, and no further eviction would come.
    let before = ENDING.map(|step| count(&cluster, step));
    delete_pool(client, "default")?;
    for (at, (step, before)) in ENDING.into_iter().zip(before).enumerate() {
        await_request(&cluster, step, before?)?;
        controller.kill();
        forget_leader(client)?;
        controller = start(&cluster, &format!("dovetail-end-{at}"), &[])?;
    }
    await_nothing_left(client)
}

#[test]
fn a_leader_that_dies_or_freezes_is_replaced_and_nothing_is_launched_twice() -> Result<()> {
    let cluster = cluster()?;
    let client = cluster.client();
    let mut first = start(&cluster, "first", &[])?;
    let leader = await_leader(client)?;
    let mut second = start(&cluster, "second", &[])?;
    apply_pool(client, "default")?;
    let before = count(&cluster, "create nodeclaims")?;
    apply_deployment(client, "web", 4, "40")?;
    await_request(&cluster, "create nodeclaims", before)?;
    first.kill();
    await_ready(client, "web", 4)?;
    await_one_node_per_claim(client)?;
    await_other_leader(client, &leader)?;

    let _third = start(&cluster, "third", &[])?;
    let before = count(&cluster, "create nodeclaims")?;
    apply_deployment(client, "more", 4, "40")?;
    await_request(&cluster, "create nodeclaims", before)?;
    let frozen = await_leader(client)?;
    second.freeze();
    await_ready(client, "more", 4)?;
    // All may be launched before it freezes, and its lease names it until it has run out.
    await_other_leader(client, &frozen)?;
    let settled = claims(client)?.len();
    let written = requests(&cluster)?.len();
    second.thaw();
    // The thawed process notices that its lease is gone with its first request for it.
    await_request(&cluster, "get leases", count(&cluster, "get leases")?)?;
    await_one_node_per_claim(client)?;
    ensure!(claims(client)?.len() == settled, "claims came after the thaw");
    ensure!(requests(&cluster)?.len() >= written, "the audit log was cut");
    Ok(())
}

#[test]
fn the_api_server_restarts_in_the_middle_of_a_launch_and_nothing_is_lost() -> Result<()> {
    let mut cluster = cluster()?;
    let client = cluster.client().clone();
    let _controller = start(&cluster, "dovetail", &[])?;
    await_leader(&client)?;
    apply_pool(&client, "default")?;
    let before = count(&cluster, "create nodeclaims")?;
    apply_deployment(&client, "web", 6, "40")?;
    await_request(&cluster, "create nodeclaims", before)?;
    cluster.restart_api_server()?;
    await_ready(&client, "web", 6)?;
    await_one_node_per_claim(&client)?;
    delete(&client, "default", "web")?;
    await_nothing_left(&client)
}

#[test]
fn history_that_is_compacted_away_in_the_middle_of_a_launch_is_listed_again_and_nothing_is_lost() -> Result<()> {
    let mut cluster = cluster()?;
    let client = cluster.client().clone();
    let _controller = start(&cluster, "dovetail", &[("DISABLE_LEADER_ELECTION", "true")])?;
    apply_pool(&client, "default")?;
    for (at, step) in ["create nodeclaims", "create nodes"].into_iter().enumerate() {
        let (before, lists) = (count(&cluster, step)?, count(&cluster, "list pods")?);
        apply_deployment(&client, &format!("web-{at}"), 3, "40")?;
        await_request(&cluster, step, before)?;
        cluster.forget_history()?;
        await_request(&cluster, "list pods", lists)?;
        await_ready(&client, &format!("web-{at}"), 3)?;
        await_one_node_per_claim(&client)?;
    }
    delete_pool(&client, "default")?;
    await_nothing_left(&client)
}

#[test]
fn a_store_that_is_set_back_to_a_backup_is_believed_and_work_goes_on() -> Result<()> {
    let mut cluster = cluster()?;
    let client = cluster.client().clone();
    let controller = start(&cluster, "dovetail", &[("DISABLE_LEADER_ELECTION", "true")])?;
    apply_pool(&client, "default")?;
    apply_deployment(&client, "one", 2, "40")?;
    await_ready(&client, "one", 2)?;
    cluster.back_up()?;
    let kept = claims(&client)?.len();
    apply_deployment(&client, "two", 2, "40")?;
    await_ready(&client, "two", 2)?;
    write_much(&client)?;
    cluster.restore()?;
    await_log(&client, &controller, "it is asked once more and then believed")?;
    ensure!(claims(&client)?.len() == kept, "the backup holds {kept} claims");
    apply_deployment(&client, "three", 2, "40")?;
    await_ready(&client, "three", 2)?;
    await_one_node_per_claim(&client)?;
    delete_pool(&client, "default")?;
    await_nothing_left(&client)
}

#[test]
fn what_the_cluster_lacks_is_named_with_its_remedy_and_waited_for() -> Result<()> {
    let cluster = bare_cluster()?;
    let client = cluster.client();
    apply_role_without(client, "create", "nodeclaims")?;
    let controller = start_as_account(&cluster, "dovetail")?;
    await_log(client, &controller, "404 page not found (the kind is not installed")?;
    install_crds(client)?;
    apply_pool(client, "default")?;
    apply_deployment(client, "web", 2, "1")?;
    let lacking = r#"must allow verb \"create\" on resource \"nodeclaims\" in API group \"karpenter.sh\""#;
    await_log(client, &controller, lacking)?;
    apply_role(client)?;
    await_ready(client, "web", 2)
}

/// What must not change when another controller takes over: which claims and nodes there are, and their drift hashes.
fn fleet(client: &rig::Client) -> Result<Vec<[String; 4]>> {
    let of = |object: &Value| {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        [
            text("/metadata/name"),
            text("/metadata/uid"),
            text("/metadata/annotations/karpenter.sh~1nodepool-hash"),
            text("/metadata/annotations/karpenter.sh~1nodepool-hash-version"),
        ]
    };
    let mut fleet: Vec<_> = claims(client)?.iter().chain(&nodes(client)?).map(of).collect();
    fleet.sort();
    Ok(fleet)
}

#[test]
fn a_cluster_switches_from_upstream_to_us_and_back_without_rolling_a_node() -> Result<()> {
    let cluster = cluster()?;
    let client = cluster.client();
    let grace = std::time::Duration::from_secs(20);
    let mut upstream = start_upstream(&cluster, "karpenter")?;
    await_leader(client)?;
    apply_pool(client, "default")?;
    apply_deployment(client, "one", 3, "40")?;
    await_ready(client, "one", 3)?;
    upstream.stop(grace);
    let theirs = fleet(client)?;

    let mut ours = start(&cluster, "dovetail", &[])?;
    apply_deployment(client, "two", 3, "40")?;
    await_ready(client, "two", 3)?;
    let both = fleet(client)?;
    ensure!(
        theirs.iter().all(|part| both.contains(part)),
        "{theirs:?} became {both:?}"
    );
    await_one_node_per_claim(client)?;
    ours.stop(grace);

    let _upstream = start_upstream(&cluster, "karpenter-again")?;
    apply_deployment(client, "three", 3, "40")?;
    await_ready(client, "three", 3)?;
    let all = fleet(client)?;
    ensure!(both.iter().all(|part| all.contains(part)), "{both:?} became {all:?}");
    Ok(())
}
