//! Does our binary keep an AKS cluster supplied with machines, on good days and on bad ones? With Azure played by the double.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use arm::VmState;
use arm::knob::{Effect, Fault, ImageVersion, Knob, Reset, Stock, When};
use e2e::autoscaler::{apply_spread, await_event, await_ready, claims, consolidate, nodes, requests, told};
use e2e::azure::{GRACE, PUT_MACHINE, PUT_VM, World, provider_id, tag};
use rig::Process;
use serde_json::json;

/// What every journey ends with, also one that failed: nothing is left of it, the roles it ran under forbade nothing, and
/// everything it asked of Azure keeps to the published schemas.
fn farewell(world: &World, mut controller: Process, journey: Result<()>) -> Result<()> {
    let journey = told(&controller, journey);
    let cleared = told(&controller, world.clear());
    controller.stop(GRACE);
    world.forget()?;
    journey?;
    cleared?;
    let refused: Vec<_> = requests(&world.cluster)?
        .into_iter()
        .filter(|request| request.code == 403)
        .collect();
    ensure!(refused.is_empty(), "refused: {refused:?}");
    let violations = world.azure.violations();
    ensure!(violations.is_empty(), "against the contract: {violations:#?}");
    Ok(())
}

#[test]
fn the_documents_pools_class_and_workloads_bring_machines_and_take_all_they_made_along_when_they_go() -> Result<()> {
    let world = World::alone()?;
    let controller = world.controller("document")?;
    let journey = document(&world);
    farewell(&world, controller, journey)
}

fn document(world: &World) -> Result<()> {
    let client = world.client();
    for file in ["nodeclass.yaml", "general.yaml", "spot.yaml"] {
        world.apply_example(file)?;
    }
    world.await_pools(&["general", "spot"])?;
    world.apply_example("workloads.yaml")?;
    for workload in ["spot-workload", "my-app"] {
        await_ready(client, workload, 3)?;
    }
    let machines = world.await_one_machine_per_claim()?;
    for machine in &machines {
        judge(world, machine)?;
    }
    judge_nodes(world, &machines)?;
    world.await_azure("machines that AKS bills", |azure| {
        let vms = azure.vms();
        let is_billed = |it: &VmState| it.extensions == ["computeAksLinuxBilling"];
        vms.iter().all(is_billed).then_some(())
    })?;
    for pool in ["general", "spot"] {
        consolidate(client, pool)?;
    }
    world.scale("spot-workload", 0)?;
    let is_spot = |it: &VmState| tag(it, "karpenter.sh_nodepool") == "spot";
    world.await_azure("the end of the machines of spot-workload", |azure| {
        let vms = azure.vms();
        let is_over = !vms.iter().any(is_spot) && !vms.is_empty();
        (is_over && azure.nics().len() == vms.len() && azure.disks().len() == vms.len()).then_some(())
    })?;
    await_ready(client, "my-app", 3)?;
    world.delete_all()?;
    world.await_nothing_left()
}

/// A machine is tagged as the contract says, and of a kind that its pool allows.
fn judge(world: &World, machine: &VmState) -> Result<()> {
    let pool = tag(machine, "karpenter.sh_nodepool");
    ensure!(["general", "spot"].contains(&pool), "{machine:?}");
    for (key, value) in [
        ("karpenter.azure.com_cluster", world.azure.setup().cluster.as_str()),
        ("karpenter.azure.com_aksnodeclass", "default"),
        ("compute.aks.billing", "linux"),
        ("team", "platform-engineering"),
    ] {
        ensure!(tag(machine, key) == value, "{key} of {machine:?}");
    }
    let capacity = if pool == "spot" { "spot" } else { "on-demand" };
    ensure!(machine.capacity == capacity, "{machine:?}");
    let claims = claims(world.client())?;
    let claim = claims
        .iter()
        .find(|claim| claim["status"]["providerID"] == provider_id(machine))
        .with_context(|| format!("no claim of {machine:?}"))?;
    ensure!(
        claim["metadata"]["name"] == tag(machine, "karpenter.sh_nodeclaim"),
        "{machine:?}"
    );
    let conditions = claim["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    ensure!(!conditions.any(|it| it["type"] == "Drifted"), "{claim}");
    let image = &machine.request["properties"]["storageProfile"]["imageReference"]["communityGalleryImageId"];
    ensure!(claim["status"]["imageID"] == *image, "{image} of {claim}");
    Ok(())
}

/// Nodes have the labels that pods are placed by.
fn judge_nodes(world: &World, machines: &[VmState]) -> Result<()> {
    let region = &world.azure.setup().region;
    for node in nodes(world.client())? {
        let machine = machines.iter().find(|it| node["spec"]["providerID"] == provider_id(it));
        let machine = machine.with_context(|| format!("a node without a machine: {node}"))?;
        let zone = machine
            .zone
            .as_ref()
            .map_or("0".to_owned(), |zone| format!("{region}-{zone}"));
        let priority = if machine.capacity == "spot" { "spot" } else { "regular" };
        let labels = &node["metadata"]["labels"];
        for (key, value) in [
            ("karpenter.sh/capacity-type", machine.capacity),
            ("karpenter.sh/nodepool", tag(machine, "karpenter.sh_nodepool")),
            ("karpenter.sh/registered", "true"),
            ("karpenter.sh/initialized", "true"),
            ("kubernetes.azure.com/scalesetpriority", priority),
            ("kubernetes.azure.com/mode", "user"),
            ("karpenter.azure.com/sku-name", machine.size.as_str()),
            ("topology.kubernetes.io/zone", zone.as_str()),
        ] {
            ensure!(labels[key] == value, "{key} of {labels}");
        }
    }
    Ok(())
}

#[test]
fn where_spot_has_run_out_another_size_is_taken_and_then_on_demand_and_the_reason_is_told() -> Result<()> {
    let world = World::alone()?;
    let controller = world.controller("shortage")?;
    let journey = shortage(&world);
    farewell(&world, controller, journey)
}

fn shortage(world: &World) -> Result<()> {
    let client = world.client();
    let sizes = ["Standard_D2s_v5", "Standard_E2s_v5"];
    world.apply_pool("shortage", &["spot", "on-demand"], &sizes)?;
    // Of the cheapest there is none, and that shows late: in the end of the operation.
    let none = Stock::none("Standard_D2s_v5", "*", "spot", "SkuNotAvailable", When::Async);
    world.azure.stock(vec![none]);
    apply_spread(client, "first", 1)?;
    await_ready(client, "first", 1)?;
    await_event(client, "AsyncProvisioningError", "Following SKUs have failed")?;
    let machines = world.await_one_machine_per_claim()?;
    let got: Vec<(&str, &str)> = machines.iter().map(|it| (it.size.as_str(), it.capacity)).collect();
    ensure!(got == [("Standard_E2s_v5", "spot")], "{got:?}");
    // Of all spot there is none, and that shows at once.
    let none = Stock::none("*", "*", "spot", "SkuNotAvailable", When::Sync);
    world.azure.stock(vec![none]);
    apply_spread(client, "second", 1)?;
    await_ready(client, "second", 1)?;
    await_event(client, "SKUNotAvailable", "SkuNotAvailable")?;
    let machines = world.await_one_machine_per_claim()?;
    let bought: Vec<&VmState> = machines.iter().filter(|it| it.capacity == "on-demand").collect();
    ensure!(machines.len() == 2 && bought.len() == 1, "{machines:?}");
    Ok(())
}

#[test]
fn a_full_quota_is_told_in_words_and_another_family_is_taken() -> Result<()> {
    let world = World::alone()?;
    let controller = world.controller("quota")?;
    let journey = quota(&world);
    world.azure.quota(FAMILY, world.azure.setup().cores);
    farewell(&world, controller, journey)
}

const FAMILY: &str = "standardDSv5Family";

fn quota(world: &World) -> Result<()> {
    let client = world.client();
    let sizes = ["Standard_D2s_v5", "Standard_E2s_v5"];
    world.apply_pool("quota", &["on-demand"], &sizes)?;
    world.azure.quota(FAMILY, 1);
    apply_spread(client, "web", 1)?;
    await_ready(client, "web", 1)?;
    let words = format!("exceeding approved {FAMILY} Cores quota");
    let message = await_event(client, "SubscriptionQuotaReached", &words)?;
    ensure!(
        message.contains("Current Limit: 1") && message.contains("Additional Required: 2"),
        "{message}"
    );
    let machines = world.await_one_machine_per_claim()?;
    let got: Vec<&str> = machines.iter().map(|it| it.size.as_str()).collect();
    ensure!(got == ["Standard_E2s_v5"], "{got:?}");
    Ok(())
}

#[test]
fn killed_between_interface_and_machine_it_makes_one_machine_per_claim_or_leaves_nothing() -> Result<()> {
    let world = World::alone()?;
    let mut controller = world.controller("killed")?;
    let journey = killed(&world, &mut controller);
    farewell(&world, controller, journey)
}

fn killed(world: &World, controller: &mut Process) -> Result<()> {
    let client = world.client();
    world.apply_pool("killed", &["spot"], &["Standard_D2s_v5", "Standard_D4s_v5"])?;
    // The request never arrives; or it is done, and its answer never arrives.
    for (at, effect) in [Effect::Refused {}, Effect::Lost {}].into_iter().enumerate() {
        let name = format!("web-{at}");
        let before = world.azure.vms().len();
        kill_while_cut(world, controller, PUT_VM, effect, &name, 2)?;
        *controller = world.controller(&format!("killed-{at}"))?;
        await_ready(client, &name, 2)?;
        let machines = world.await_one_machine_per_claim()?;
        ensure!(machines.len() == before + 2, "launched twice: {machines:?}");
    }
    // Nobody wants the machine any more when it comes back.
    kill_while_cut(world, controller, PUT_VM, Effect::Refused {}, "unwanted", 1)?;
    ensure!(world.azure.leftovers().len() == 1, "{:?}", world.azure.leftovers());
    world.delete_all()?;
    *controller = world.controller("killed-unwanted")?;
    world.await_azure("the end of the interface without a machine", |azure| {
        azure.leftovers().is_empty().then_some(())
    })
}

#[test]
fn a_newer_image_rolls_the_machines_that_boot_from_an_older_one() -> Result<()> {
    let world = World::alone()?;
    let mut controller = world.controller("image")?;
    let journey = newer_image(&world, &mut controller);
    farewell(&world, controller, journey)
}

fn newer_image(world: &World, controller: &mut Process) -> Result<()> {
    let client = world.client();
    world.apply_pool("image", &["on-demand"], &["Standard_D2s_v5"])?;
    apply_spread(client, "web", 1)?;
    await_ready(client, "web", 1)?;
    let before = world.await_one_machine_per_claim()?;
    let image = image_of(&before[0]);
    let definition = image.split('/').rev().nth(2).context("the image has no definition")?;
    let newer = ImageVersion {
        image: definition.to_owned(),
        version: "203001.01.0".to_owned(),
        published: "2030-01-01T00:00:00Z".parse()?,
    };
    world.azure.turn(Knob::Image(newer))?;
    // Versions are believed for days; another process asks.
    controller.stop(GRACE);
    *controller = world.controller("image-newer")?;
    world.await_azure("a machine that boots from the newer image", |azure| {
        let vms = azure.vms();
        let is_newer = |it: &VmState| image_of(it).ends_with("/203001.01.0");
        (vms.len() == 1 && vms.iter().all(is_newer)).then_some(())
    })?;
    await_ready(client, "web", 1)?;
    let after = world.await_one_machine_per_claim()?;
    ensure!(after[0].name != before[0].name, "{after:?}");
    Ok(())
}

fn image_of(machine: &VmState) -> String {
    let image = &machine.request["properties"]["storageProfile"]["imageReference"]["communityGalleryImageId"];
    image.as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_machine_that_azure_takes_back_is_drained_before_it_is_gone_and_another_offering_takes_its_pods() -> Result<()> {
    let world = World::alone()?;
    let controller = world.controller("eviction")?;
    let journey = eviction(&world);
    farewell(&world, controller, journey)
}

fn eviction(world: &World) -> Result<()> {
    let client = world.client();
    world.apply_pool("eviction", &["spot"], &["Standard_D2s_v5", "Standard_E2s_v5"])?;
    apply_spread(client, "web", 1)?;
    await_ready(client, "web", 1)?;
    let before = world.await_one_machine_per_claim()?;
    let taken = &before[0];
    // Azure tells the machine, and AKS's agent on it writes it down.
    announce(world, taken)?;
    world.azure.evict(&taken.name, 60)?;
    await_event(client, "SpotInterrupted", "Spot interruption warning was triggered")?;
    await_event(
        client,
        "TerminatingOnInterruption",
        "Interruption triggered termination",
    )?;
    world.await_azure("the end of the machine and another in its place", |azure| {
        let vms = azure.vms();
        (vms.len() == 1 && vms[0].name != taken.name).then_some(())
    })?;
    await_ready(client, "web", 1)?;
    let after = world.await_one_machine_per_claim()?;
    let offering = |it: &VmState| (it.size.clone(), it.zone.clone());
    ensure!(offering(&after[0]) != offering(taken), "the same again: {after:?}");
    Ok(())
}

#[test]
fn machines_that_aks_makes_come_one_for_each_claim_whatever_happens_to_us_and_go_with_them() -> Result<()> {
    for mode in ["aksmachineapi", "aksmachineapiheaderbatch"] {
        let world = World::alone()?;
        let mut controller = world.controller_of_aks(mode, mode)?;
        let journey = machines_of_aks(&world, &mut controller, mode);
        farewell(&world, controller, journey)?;
    }
    Ok(())
}

fn machines_of_aks(world: &World, controller: &mut Process, mode: &str) -> Result<()> {
    let client = world.client();
    world.apply_pool(mode, &["on-demand"], &["Standard_D2s_v5"])?;
    apply_spread(client, "web", 2)?;
    await_ready(client, "web", 2)?;
    let machines = world.await_one_machine_per_claim()?;
    ensure!(
        machines.len() == 2 && machines.iter().all(|it| it.machine),
        "{machines:?}"
    );
    // The request is done, and its answer never arrives.
    kill_while_cut(world, controller, PUT_MACHINE, Effect::Lost {}, "late", 1)?;
    *controller = world.controller_of_aks(&format!("{mode}-next"), mode)?;
    await_ready(client, "late", 1)?;
    let machines = world.await_one_machine_per_claim()?;
    ensure!(machines.len() == 3, "launched twice: {machines:?}");
    for claim in claims(client)? {
        let machine = &claim["metadata"]["annotations"]["karpenter.azure.com/aks-machine-resource-id"];
        let name = claim["metadata"]["name"].as_str().unwrap_or_default();
        let is_named = machine
            .as_str()
            .is_some_and(|id| id.ends_with(&format!("/machines/{name}")));
        ensure!(is_named, "{machine} of {claim}");
        let conditions = claim["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        ensure!(!conditions.any(|it| it["type"] == "Drifted"), "{claim}");
    }
    consolidate(client, mode)?;
    world.scale("web", 0)?;
    world.await_azure("the end of the machines of web", |azure| {
        (azure.vms().len() == 1).then_some(())
    })?;
    await_ready(client, "late", 1)
}

/// What AKS's agent does on a node whose machine is to be taken back.
fn announce(world: &World, machine: &VmState) -> Result<()> {
    let client = world.client();
    let all = nodes(client)?;
    let id = provider_id(machine);
    let node = all.iter().find(|it| it["spec"]["providerID"] == id.as_str());
    let node = node.context("the machine has no node")?;
    #[expect(clippy::disallowed_methods, reason = "the control plane runs on the wall's time")]
    let now = jiff::Timestamp::now().round(jiff::Unit::Second)?.to_string();
    let mut conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.push(
        json!({"type": "PreemptionScheduled", "status": "True", "reason": "PreemptScheduled",
        "message": "Azure takes the machine back", "lastTransitionTime": now, "lastHeartbeatTime": now}),
    );
    let name = node["metadata"]["name"].as_str().unwrap_or_default();
    let patch = json!({"status": {"conditions": conditions}});
    client.patch(&format!("/api/v1/nodes/{name}/status"), &patch)?;
    Ok(())
}

/// Kills the controller when it asks for the machines of a Deployment without being answered.
fn kill_while_cut(
    world: &World,
    controller: &mut Process,
    operation: &str,
    effect: Effect,
    deployment: &str,
    machines: usize,
) -> Result<()> {
    world
        .azure
        .turn(Knob::Fault(Fault::next(operation, effect).times(None)))?;
    let before = world.azure.calls().len();
    apply_spread(world.client(), deployment, machines as u64)?;
    world.await_azure("requests for machines that are not answered", |azure| {
        let calls = azure.calls();
        let cut = calls[before..]
            .iter()
            .filter(|it| it.operation == operation && it.status == 0);
        let cut: BTreeSet<&str> = cut.map(|it| it.path.as_str()).collect();
        (cut.len() == machines).then_some(())
    })?;
    controller.kill();
    world.azure.turn(Knob::Reset(Reset {}))
}
