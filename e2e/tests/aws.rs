//! Does our binary keep an EKS cluster supplied with machines, on good days and on bad ones? With AWS played by moto.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::autoscaler::{await_nodes, await_ready, claims, consolidate, metrics, nodes, requests};
use e2e::aws::{CLUSTER, GRACE, Look, Machine, REGION, World, text};
use rig::client::Seen;
use rig::{Process, ports};
use serde_json::{Value, json};

/// What every journey ends with, also one that failed: nothing is left of it, and the role it ran under forbade nothing.
fn farewell(world: &World, mut controller: Process, journey: Result<()>) -> Result<()> {
    let journey = world.told(&controller, journey);
    for (fault, none) in [
        ("fleet-errors", json!([])),
        ("fleet-fault", Value::Null),
        ("api-errors", json!({})),
    ] {
        world.fault(fault, &none)?;
    }
    let cleared = world.told(&controller, world.clear());
    controller.stop(GRACE);
    journey?;
    cleared?;
    let refused: Vec<_> = requests(&world.cluster)?
        .into_iter()
        .filter(|request| request.code == 403)
        .collect();
    ensure!(refused.is_empty(), "refused: {refused:?}");
    Ok(())
}

#[test]
fn the_documents_pool_and_class_bring_machines_and_take_all_they_made_along_when_they_go() -> Result<()> {
    let world = World::alone()?;
    let controller = world.controller("document", &[])?;
    let journey = document(&world);
    farewell(&world, controller, journey)
}

fn document(world: &World) -> Result<()> {
    let client = world.client();
    world.apply_example("nodeclass.yaml")?;
    world.apply_example("general.yaml")?;
    world.await_pool("general")?;
    world.apply_spread("web", 3)?;
    await_ready(client, "web", 3)?;
    let machines = world.await_one_machine_per_claim("general")?;
    ensure!(machines.len() == 3, "{machines:?}");
    let class = world.class()?;
    for machine in &machines {
        judge(world, machine, &class)?;
    }
    await_names(world)?;
    judge_nodes(world, &machines)?;
    consolidate(client, "general")?;
    world.apply_spread("web", 1)?;
    await_nodes(client, 1)?;
    world.await_aws("two machines having ended", |look| {
        (look.running().count() == 1).then_some(())
    })
}

/// A machine is tagged, and launched from a template, as the contract says.
fn judge(world: &World, machine: &Machine, class: &Value) -> Result<()> {
    let owned = format!("kubernetes.io/cluster/{CLUSTER}");
    for (key, value) in [
        ("eks:eks-cluster-name", CLUSTER),
        (owned.as_str(), "owned"),
        ("karpenter.sh/nodepool", "general"),
        ("karpenter.k8s.aws/ec2nodeclass", "default"),
    ] {
        ensure!(machine.tag(key) == value, "{key} of {machine:?}");
    }
    let claims = claims(world.client())?;
    let claim = claims
        .iter()
        .find(|claim| claim["status"]["providerID"] == machine.provider_id())
        .with_context(|| format!("no claim of {machine:?}"))?;
    ensure!(
        claim["metadata"]["name"] == machine.tag("karpenter.sh/nodeclaim"),
        "{machine:?}"
    );
    ensure!(claim["status"]["imageID"] == machine.image.as_str(), "{machine:?}");
    ensure!(
        class["status"]["instanceProfile"] == machine.profile.as_str(),
        "{machine:?}"
    );
    let look = world.look()?;
    let template = look.templates.iter().find(|it| it.name == machine.template);
    let template = template.with_context(|| format!("no template {}", machine.template))?;
    ensure!(template.name.starts_with("karpenter.k8s.aws/"), "{template:?}");
    for (key, value) in [
        ("eks:eks-cluster-name", CLUSTER),
        ("karpenter.k8s.aws/ec2nodeclass", "default"),
    ] {
        ensure!(
            template.tags.get(key).map(String::as_str) == Some(value),
            "{template:?}"
        );
    }
    let profile = look.profiles.iter().find(|it| it.name == machine.profile);
    let profile = profile.with_context(|| format!("no profile {}", machine.profile))?;
    let uid = text(&class["metadata"]["uid"]);
    ensure!(
        profile.path == format!("/karpenter/{REGION}/{CLUSTER}/{uid}/"),
        "{profile:?}"
    );
    ensure!(profile.roles == [format!("KarpenterNodeRole-{CLUSTER}")], "{profile:?}");
    Ok(())
}

/// The console shows machines under the names of their nodes, once those are known.
fn await_names(world: &World) -> Result<()> {
    world.await_aws("machines called after their nodes", |look| {
        let is_named = |it: &Machine| it.tag("Name") == it.dns;
        (look.running().count() == 3 && look.running().all(is_named)).then_some(())
    })
}

/// Nodes have the labels that pods are placed by.
fn judge_nodes(world: &World, machines: &[Machine]) -> Result<()> {
    for node in nodes(world.client())? {
        let id = text(&node["spec"]["providerID"]);
        let machine = machines.iter().find(|it| it.provider_id() == id);
        let machine = machine.with_context(|| format!("a node without a machine: {id}"))?;
        let labels = &node["metadata"]["labels"];
        let capacity = if machine.spot { "spot" } else { "on-demand" };
        let (family, size) = machine.instance_type.split_once('.').context("a type")?;
        for (key, value) in [
            ("karpenter.sh/capacity-type", capacity),
            ("karpenter.sh/nodepool", "general"),
            ("karpenter.sh/registered", "true"),
            ("karpenter.sh/initialized", "true"),
            ("karpenter.k8s.aws/instance-family", family),
            ("karpenter.k8s.aws/instance-size", size),
            ("karpenter.k8s.aws/ec2nodeclass", "default"),
            ("topology.kubernetes.io/zone", machine.zone.as_str()),
        ] {
            ensure!(labels[key] == value, "{key} of {labels}");
        }
        ensure!(!text(&labels["topology.k8s.aws/zone-id"]).is_empty(), "{labels}");
    }
    Ok(())
}

#[test]
fn an_interrupted_spot_machine_is_replaced_before_it_ends_and_messages_of_others_lose_nothing() -> Result<()> {
    let world = World::alone()?;
    let controller = world.controller("interruption", &[])?;
    let journey = interruption(&world);
    farewell(&world, controller, journey)
}

fn interruption(world: &World) -> Result<()> {
    let client = world.client();
    world.apply_pool("interruption", &["spot"], &["m5.large", "c5.large", "m6g.large"])?;
    world.await_pool("interruption")?;
    world.protect("web")?;
    world.apply_packed("web", 2)?;
    await_ready(client, "web", 2)?;
    let machines = world.await_one_machine_per_claim("interruption")?;
    let [taken] = machines.as_slice() else {
        anyhow::bail!("both pods fit on one machine: {machines:?}");
    };
    babble(world, &taken.id)?;
    let detail = json!({"instance-id": taken.id, "instance-action": "terminate"});
    let kind = "EC2 Spot Instance Interruption Warning";
    world.moto.emit(REGION, "aws.ec2", kind, &detail)?;
    world.await_event("SpotInterrupted", "Spot interruption warning was triggered")?;
    world.await_event("TerminatingOnInterruption", "Interruption triggered termination")?;
    // At the first look at which the machine has ended, its pods' new place was already there: the budget lets the second
    // pod go only when the first runs elsewhere.
    let after = world.await_aws("the end of the interrupted machine", |look| {
        let state = look.machine(&taken.id).map(|it| it.state.as_str());
        (state == Some("terminated")).then(|| look.clone())
    })?;
    let running: Vec<&Machine> = after.running().collect();
    ensure!(!running.is_empty(), "{after:?}");
    for machine in running {
        let (one, other) = (
            (&machine.instance_type, &machine.zone),
            (&taken.instance_type, &taken.zone),
        );
        ensure!(
            one != other,
            "the offering that was taken back is asked for again: {machine:?}"
        );
    }
    await_ready(client, "web", 2)?;
    world.await_aws("an empty queue", |look| {
        (look.messages.get(CLUSTER) == Some(&0)).then_some(())
    })
}

/// What else comes through a queue: rubbish, events of others, and news that call for nothing.
fn babble(world: &World, machine: &str) -> Result<()> {
    for body in [
        "not json",
        "{}",
        "[1, 2]",
        "\u{e9}",
        r#"{"version":"0","source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","detail":{}}"#,
    ] {
        world.moto.send(REGION, CLUSTER, body)?;
    }
    let (ec2, spot, state) = (
        "aws.ec2",
        "EC2 Spot Instance Interruption Warning",
        "EC2 Instance State-change Notification",
    );
    let other = json!({"instance-id": "i-0123456789abcdef0", "instance-action": "terminate"});
    world.moto.emit(REGION, ec2, spot, &other)?;
    world
        .moto
        .emit(REGION, ec2, state, &json!({"instance-id": machine, "state": "running"}))?;
    let entity = json!([{"entityValue": machine}]);
    let health = json!({"service": "RDS", "eventTypeCategory": "scheduledChange", "affectedEntities": entity});
    world.moto.emit(REGION, "aws.health", "AWS Health Event", &health)?;
    world.await_aws("an empty queue", |look| {
        (look.messages.get(CLUSTER) == Some(&0)).then_some(())
    })?;
    let look = world.look()?;
    ensure!(
        look.machine(machine).is_some_and(|it| it.state == "running"),
        "{look:?}"
    );
    ensure!(
        claims(world.client())?
            .iter()
            .all(|it| it["metadata"]["deletionTimestamp"].is_null())
    );
    Ok(())
}

#[test]
fn what_ec2_has_none_of_is_left_for_the_next_best_and_named_and_remembered_over_a_restart() -> Result<()> {
    let world = World::alone()?;
    let [port] = ports::free()?;
    let number = port.to_string();
    let mut controller = world.controller("shortage", &[("METRICS_PORT", &number)])?;
    let journey = shortage(&world, port);
    if journey.is_err() {
        return farewell(&world, controller, journey);
    }
    world.fault("fleet-errors", &json!([]))?;
    controller.stop(GRACE);
    let controller = world.controller("shortage-again", &[])?;
    let journey = remembered(&world);
    farewell(&world, controller, journey)
}

fn shortage(world: &World, port: u16) -> Result<()> {
    let client = world.client();
    world.apply_pool(
        "shortage",
        &["spot", "on-demand"],
        &["c5.large", "c5.xlarge", "m5.large"],
    )?;
    world.await_pool("shortage")?;
    let none = "We currently do not have sufficient capacity";
    let rule = |kind: &str| {
        json!([{
            "instance_type": kind, "capacity_type": "spot", "code": "InsufficientInstanceCapacity", "message": none,
        }])
    };
    // Of the cheapest there is none: the same request gives the next.
    world.fault("fleet-errors", &rule("c5.large"))?;
    world.apply_spread("first", 1)?;
    await_ready(client, "first", 1)?;
    let machines = world.await_one_machine_per_claim("shortage")?;
    let got: Vec<(&str, bool)> = machines.iter().map(|it| (it.instance_type.as_str(), it.spot)).collect();
    ensure!(got == [("m5.large", true)], "{got:?}");
    let ready = labelled(&metrics(port)?, "operator_ec2nodeclass_status_condition_count");
    let is_told = |labels: &String| labels.contains("status=\"True\"") && labels.contains("type=\"Ready\"");
    ensure!(ready.keys().any(is_told), "{ready:?}");
    let failures = labelled(
        &metrics(port)?,
        "karpenter_cloudprovider_instance_launch_failures_total",
    );
    let is_named =
        |labels: &String| labels.contains("capacity_type=\"spot\"") && labels.contains("reason=\"LaunchFailed\"");
    ensure!(failures.keys().any(is_named), "{failures:?}");
    // Of all spot there is none: the claim is given up, its event says why, and the next one is on-demand.
    world.fault("fleet-errors", &rule("*"))?;
    world.apply_spread("second", 2)?;
    await_ready(client, "second", 2)?;
    let message = world.await_event("InsufficientCapacityError", "InsufficientInstanceCapacity")?;
    ensure!(message.contains(none), "{message}");
    let machines = world.await_one_machine_per_claim("shortage")?;
    ensure!(machines.iter().any(|it| !it.spot), "{machines:?}");
    await_record(world)
}

/// What ran out is written down for whoever comes next.
fn await_record(world: &World) -> Result<()> {
    let path = "/api/v1/namespaces/kube-system/configmaps/dovetail-aws-known";
    Ok(world
        .client()
        .wait_for("what ran out being written down", e2e::autoscaler::LIMIT, |client| {
            let map = client.get(path)?.unwrap_or_default();
            let known = text(&map["data"]["known"]);
            Ok(if known.contains("c5.large") && known.contains("m5.large") {
                Seen::Done(())
            } else {
                Seen::NotYet(known)
            })
        })?)
}

/// EC2 has spot again, and nobody asks for it yet.
fn remembered(world: &World) -> Result<()> {
    world.apply_spread("third", 1)?;
    await_ready(world.client(), "third", 1)?;
    let machines = world.await_one_machine_per_claim("shortage")?;
    let spot: Vec<&Machine> = machines.iter().filter(|it| it.spot).collect();
    ensure!(spot.len() == 1, "one of before the shortage: {spot:?}");
    Ok(())
}

/// The series of a metric by their labels.
fn labelled(page: &str, name: &str) -> BTreeMap<String, f64> {
    let lines = page
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
    let pair = |line: &str| {
        let (labels, value) = line.rsplit_once("} ")?;
        Some((labels.to_owned(), value.parse().ok()?))
    };
    lines.filter_map(pair).collect()
}

#[test]
fn throttled_requests_and_lost_answers_lose_no_pod_and_leak_no_machine() -> Result<()> {
    let world = World::alone()?;
    let controller = world.controller("throttled", &[])?;
    let journey = throttled(&world);
    farewell(&world, controller, journey)
}

fn throttled(world: &World) -> Result<()> {
    let client = world.client();
    world.apply_pool("throttled", &["on-demand"], &["m5.large", "m5.xlarge"])?;
    world.await_pool("throttled")?;
    let before = world.look()?.fleets;
    // More than the retries of one call.
    let limit = json!({"code": "RequestLimitExceeded", "message": "Request limit exceeded.", "times": 5});
    world.fault("api-errors", &json!({"CreateFleet": limit}))?;
    world.apply_spread("throttled", 2)?;
    await_ready(client, "throttled", 2)?;
    world.fault("fleet-fault", &json!({"mode": "lost", "times": 4}))?;
    world.apply_spread("lost", 2)?;
    await_ready(client, "lost", 2)?;
    let machines = world.await_one_machine_per_claim("throttled")?;
    let look = world.look()?;
    ensure!(
        of_pool(&look, "throttled") == machines.len(),
        "more were launched than are needed: {}",
        look.brief()
    );
    ensure!(
        look.fleets - before >= 5 + 4,
        "the faults came to nothing: {before} requests before, {} now",
        look.fleets
    );
    Ok(())
}

/// How many machines were ever launched for a pool.
fn of_pool(look: &Look, pool: &str) -> usize {
    let of = |it: &&Machine| it.tag("karpenter.sh/nodepool") == pool;
    look.instances.iter().filter(of).count()
}

#[test]
fn killed_around_create_fleet_it_launches_one_machine_per_claim() -> Result<()> {
    let world = World::alone()?;
    let mut controller = world.controller("killed", &[])?;
    let journey = killed(&world, &mut controller);
    farewell(&world, controller, journey)
}

fn killed(world: &World, controller: &mut Process) -> Result<()> {
    world.apply_pool("killed", &["spot"], &["m5.large", "c5.large"])?;
    world.await_pool("killed")?;
    for (at, mode) in ["hold-before", "hold-after"].into_iter().enumerate() {
        let name = format!("web-{at}");
        world.fault("fleet-fault", &json!({"mode": mode}))?;
        world.apply_spread(&name, 2)?;
        world.await_aws("requests that are on their way", |look| (look.held == 2).then_some(()))?;
        controller.kill();
        // EC2 carries out what was asked for, though nobody waits for the answer any more.
        world.fault("fleet-fault", &Value::Null)?;
        *controller = world.controller(&format!("killed-{at}"), &[])?;
        await_ready(world.client(), &name, 2)?;
        let machines = world.await_one_machine_per_claim("killed")?;
        let look = world.look()?;
        ensure!(
            of_pool(&look, "killed") == machines.len(),
            "launched twice: {}",
            look.brief()
        );
    }
    Ok(())
}
