//! What a change comes to, on small fleets bought by the planner itself.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "the whole target is a test"
)]

use std::io::Cursor;

use forecast::{Answer, Change, Direction, Fleet, Kind, Workload, ask, changed};
use model::{
    dump::{self, Mode, Source},
    price::Price,
    snapshot::Snapshot,
};
use packing::Options;
use serde_json::{Value, json};
use workloads::Shape;

fn read(objects: &[Value]) -> Snapshot {
    let text = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let options = dump::Options {
        mode: Mode::Strict,
        taken_at: "2026-11-16T15:42:00Z".parse().unwrap(),
    };
    let source = Source::Stream("cluster".to_owned(), Box::new(Cursor::new(text.into_bytes())));
    dump::read([source], options).unwrap().0
}

fn pool(name: &str, spec: Value) -> Value {
    let template = json!({"spec": {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
            {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["m", "c"]},
        ],
    }});
    let mut all = json!({"template": template, "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}});
    for (key, value) in spec.as_object().unwrap() {
        all[key] = value.clone();
    }
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name, "uid": name},
        "spec": all, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
}

fn deployment(name: &str, replicas: u32, cpu: &str) -> Vec<Value> {
    let (labels, resources) = (json!({"app": name}), json!({"requests": {"cpu": cpu, "memory": "2Gi"}}));
    let spec = json!({"containers": [{"name": "c", "image": "i", "resources": resources}]});
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let workload = |kind: &str, name: String, owners: Value| {
        json!({"apiVersion": "apps/v1", "kind": kind,
            "metadata": {"name": name, "namespace": "shop", "uid": format!("{kind}-{name}"), "ownerReferences": owners},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}})
    };
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": format!("{kind}-{name}"), "controller": true}]);
    let revision = format!("{name}-5d9f");
    let mut objects = vec![
        workload("Deployment", name.to_owned(), json!([])),
        workload("ReplicaSet", revision.clone(), owner("Deployment", name)),
    ];
    objects.extend((0..replicas).map(|at| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{revision}-{at}"), "namespace": "shop", "uid": format!("{name}-{at}"),
                "labels": labels, "ownerReferences": owner("ReplicaSet", &revision)},
            "spec": spec,
            "status": {"phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}})
    }));
    objects
}

/// A cluster in which the planner has bought what its pods need.
fn running(objects: &[Value]) -> Snapshot {
    let snapshot = read(objects);
    let catalog = catalogue::load(catalogue::Source::Aws, None, &[]).unwrap().catalog;
    let (title, settings) = (snapshot.title().clone(), snapshot.settings().clone());
    let snapshot = Snapshot::new(title, settings, snapshot.objects().clone(), catalog);
    let mut fleet = Fleet::new(snapshot, Options::default());
    assert_eq!(fleet.provision(), []);
    fleet.snapshot().clone()
}

fn shop() -> Snapshot {
    let mut objects = vec![pool("general", json!({}))];
    objects.extend(deployment("web", 12, "1"));
    objects.extend(deployment("api", 6, "3"));
    running(&objects)
}

fn what(snapshot: &Snapshot, changes: &[Change], rests: bool) -> Answer {
    ask(snapshot, changes, &Options::default(), rests).unwrap()
}

fn scale(name: &str, replicas: u32) -> Change {
    let workload = Workload {
        kind: Kind::Deployment,
        namespace: None,
        name: name.to_owned(),
    };
    Change::Scale(workload, replicas)
}

#[test]
fn a_plan_that_was_carried_out_leaves_nothing_to_plan() {
    let mut snapshots = vec![shop()];
    for seed in 1..4 {
        let workload = Shape::FleetMixed { pods: 80, seed }.generate();
        let text = serde_json::to_vec(&workload).unwrap();
        let options = dump::Options {
            mode: Mode::Strict,
            taken_at: workloads::snapshot::TAKEN_AT.parse().unwrap(),
        };
        let source = Source::Stream("fleet".to_owned(), Box::new(Cursor::new(text)));
        snapshots.push(dump::read([source], options).unwrap().0);
    }
    for snapshot in snapshots {
        let mut fleet = Fleet::new(snapshot, Options::default());
        let unplaced = fleet.provision();
        let again = packing::plan(fleet.snapshot(), &Options::default());
        assert_eq!((again.claims.len(), again.existing.len()), (0, 0));
        assert_eq!(again.unplaced.len(), unplaced.len());
    }
}

#[test]
fn without_a_change_nothing_differs() {
    let answer = what(&shop(), &[], true);
    assert_eq!(answer.before, answer.after);
    assert!(answer.new_nodes.is_empty() && answer.moved.is_empty() && answer.stuck.is_empty());
    assert!(answer.before.settled.is_some_and(|settled| settled.is_at_rest));
}

#[test]
fn spot_that_costs_forty_per_cent_more_costs_forty_per_cent_of_the_spot_share() {
    let snapshot = shop();
    let answer = what(&snapshot, &[Change::SpotPrice("+40%".to_owned())], false);
    assert_eq!(
        (answer.before.spot, answer.before.nodes),
        (answer.after.spot, answer.after.nodes)
    );
    assert_eq!(
        answer.before.spot, answer.before.nodes,
        "the fleet is meant to be on spot"
    );
    let expected = answer.before.price.adjusted("+40%").unwrap();
    let off = answer.after.price.picos().abs_diff(expected.picos());
    // Every offer is rounded to its own nearest pico-dollar.
    assert!(off <= 100, "{} instead of {expected}", answer.after.price);
}

#[test]
fn a_zone_that_goes_down_is_left_and_nothing_is_launched_there() {
    let snapshot = shop();
    let node = snapshot.objects().nodes.iter().next().unwrap().clone();
    let zone = node.metadata.labels.get("topology.kubernetes.io/zone").unwrap();
    let ending = zone.chars().last().unwrap().to_string();
    let answer = what(&snapshot, &[Change::ZoneDown(ending)], false);
    assert!(answer.removed.contains(&node.name()));
    assert!(
        answer.new_nodes.iter().all(|new| *new.zone != **zone),
        "{:?}",
        answer.new_nodes
    );
    assert_eq!(answer.before.running, answer.after.running);
    assert!(answer.moved.iter().all(|it| it.to.is_some()));
    assert_eq!(answer.said, [format!("zone {zone} down")]);
}

#[test]
fn more_replicas_cost_and_fewer_save_once_the_fleet_has_settled() {
    let snapshot = shop();
    let more = what(&snapshot, &[scale("web", 40)], false);
    assert_eq!(more.after.running, more.before.running + 28);
    assert!(more.after.price > more.before.price && !more.new_nodes.is_empty());
    let fewer = what(&snapshot, &[scale("api", 0)], true);
    assert_eq!(fewer.after.running, fewer.before.running - 6);
    let (before, after) = (fewer.before.settled.unwrap(), fewer.after.settled.unwrap());
    assert!(after.price < before.price, "{after:?} {before:?}");
}

#[test]
fn a_limit_keeps_replicas_waiting_and_says_so_and_raising_it_lets_them_in() {
    let mut objects = vec![pool("general", json!({"limits": {"cpu": "16"}}))];
    objects.extend(deployment("web", 4, "1"));
    let snapshot = running(&objects);
    let answer = what(&snapshot, &[scale("web", 60)], false);
    assert!(answer.after.unplaced > 0);
    assert_eq!(answer.stuck.len(), answer.after.unplaced);
    assert!(answer.stuck[0].why.contains("limits"), "{}", answer.stuck[0].why);
    let raised = Change::Set {
        node_pool: "general".to_owned(),
        path: "spec.limits.cpu".to_owned(),
        value: json!("500"),
    };
    assert_eq!(what(&snapshot, &[scale("web", 60), raised], false).after.unplaced, 0);
}

#[test]
fn a_family_that_is_taken_away_is_replaced_and_not_bought_again() {
    let snapshot = shop();
    let node = snapshot.objects().nodes.iter().next().unwrap().clone();
    let family = node.metadata.labels.get("karpenter.k8s.aws/instance-family").unwrap();
    let answer = what(
        &snapshot,
        &[Change::Family(Direction::Without, family.to_string())],
        false,
    );
    assert!(answer.removed.contains(&node.name()));
    assert!(
        answer
            .new_nodes
            .iter()
            .all(|new| !new.instance_type.starts_with(&format!("{family}.")))
    );
    assert_eq!(answer.after.unplaced, 0);
}

#[test]
fn a_new_manifest_brings_its_pods_and_a_changed_template_rolls_nodes() {
    let snapshot = shop();
    let job = &deployment("batch", 0, "2")[..1];
    let mut job = job.to_vec();
    job[0]["spec"]["replicas"] = json!(5);
    let files = read(&job).objects().clone();
    let answer = what(&snapshot, &[Change::Apply(Box::new(files))], false);
    assert_eq!(answer.after.running, answer.before.running + 5);

    let mut labelled = pool("general", json!({}));
    labelled["spec"]["template"]["metadata"] = json!({"labels": {"team": "shop"}});
    let files = read(&[labelled]).objects().clone();
    // Claims of the fixture carry the hash of the pool they were made from only if that had one.
    let stamped = changed(
        &snapshot,
        &[Change::Set {
            node_pool: "general".to_owned(),
            path: "spec.weight".to_owned(),
            value: json!(1),
        }],
    );
    let mut fleet = Fleet::new(stamped.unwrap().snapshot, Options::default());
    let names: Vec<_> = fleet
        .snapshot()
        .objects()
        .nodes
        .iter()
        .map(|node| node.name())
        .collect();
    fleet.remove(&names);
    fleet.provision();
    let answer = what(fleet.snapshot(), &[Change::Apply(Box::new(files))], false);
    assert_eq!(answer.removed.len(), answer.before.nodes, "all nodes drift");
    assert_eq!(answer.after.unplaced, 0);
}

#[test]
fn a_manifest_with_limits_only_asks_for_them_as_the_api_server_has_it() {
    let snapshot = shop();
    let spend = |resources: Value| {
        let mut job = deployment("job", 4, "2");
        job.truncate(1);
        job[0]["spec"]["template"]["spec"]["containers"][0]["resources"] = resources;
        let files = read(&job).objects().clone();
        what(&snapshot, &[Change::Apply(Box::new(files))], false).after.price
    };
    let requested = spend(json!({"requests": {"cpu": "2", "memory": "2Gi"}}));
    assert_eq!(spend(json!({"limits": {"cpu": "2", "memory": "2Gi"}})), requested);
    assert!(spend(json!({})) < requested);
}

#[test]
fn what_does_not_fit_the_cluster_is_refused_with_what_there_is() {
    let snapshot = shop();
    let cases = [
        (Change::RemoveNode("nobody".to_owned()), "no node nobody"),
        (Change::ZoneDown("z".to_owned()), "no one zone z"),
        (Change::SpotPrice("40".to_owned()), "spot price 40"),
        (
            Change::Family(Direction::Without, "m99".to_owned()),
            "instance family m99",
        ),
        (scale("nothing", 3), "no Deployment nothing"),
        (
            Change::Set {
                node_pool: "x".to_owned(),
                path: "spec".to_owned(),
                value: json!(1),
            },
            "nodepool/x.spec",
        ),
        (
            Change::Set {
                node_pool: "general".to_owned(),
                path: "spec.weight".to_owned(),
                value: json!("heavy"),
            },
            "nodepool/general.spec.weight",
        ),
    ];
    for (change, what) in cases {
        let misfit = ask(&snapshot, &[change], &Options::default(), false).unwrap_err();
        assert_eq!(misfit.what, what);
        assert!(!misfit.why.is_empty() && !misfit.next.is_empty());
    }
    assert_ne!(Fleet::new(snapshot, Options::default()).price(), Price::ZERO);
}
