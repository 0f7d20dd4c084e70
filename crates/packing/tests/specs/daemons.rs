//! Is room kept for the daemons a node will run, and only for those?

use super::fixture::{labels::*, *};

/// A daemon of two cores and 2 GiB.
fn daemon() -> Object {
    pod("").cpu("2").memory("2Gi")
}

/// A pod of one core and 1 GiB.
fn small_pod() -> Object {
    pod("a").cpu("1").memory("1Gi")
}

/// The type launched for a pod of one core and 1 GiB next to this daemon: the small one when the daemon does not count.
fn type_with(pool: Object, daemon: &Object) -> Option<String> {
    let mut world = World::new().with(pool).with(daemon_set("ds", daemon));
    world.provision([small_pod()]);
    world.label("a", INSTANCE_TYPE).map(str::to_string)
}

fn is_scheduled_with(daemon: &Object) -> bool {
    let mut world = World::new().with(pool("default")).with(daemon_set("ds", daemon));
    world.provision([pod("a")]);
    world.is_scheduled("a")
}

const COUNTED: Option<&str> = Some("default-instance-type");
const NOT_COUNTED: Option<&str> = Some("small-instance-type");

#[test]
fn daemons_take_room() {
    assert_eq!(type_with(pool("default"), &daemon()).as_deref(), COUNTED);
}

#[test]
fn host_ports_of_daemons_are_taken() {
    let mut world = World::new()
        .with(pool("default"))
        .with(daemon_set("ds", &daemon().host_port(8080)));
    let plan = world.provision([small_pod().host_port(8080)]);
    assert_eq!((plan.claims.len(), world.pending()), (0, vec!["a"]));
}

#[test]
fn daemons_that_do_not_tolerate_startup_taints_take_room() {
    let pool = pool("default").startup_taint(taint("foo.com/taint", "", "NoSchedule"));
    assert_eq!(type_with(pool, &daemon()).as_deref(), COUNTED);
}

#[test]
fn daemons_larger_than_every_type_leave_no_room() {
    assert!(!is_scheduled_with(&pod("").cpu("10000").memory("10000Gi")));
}

#[test]
fn running_daemon_shows_better_than_its_set_what_it_takes() {
    let mut world = World::new()
        .with(pool("default"))
        .with(daemon_set("ds", &pod("").cpu("4").memory("4Gi")));
    world.add(daemon().renamed("daemon").owned_by(owner("apps/v1", "DaemonSet", "ds")));
    world.provision([small_pod().select(NODE_POOL, "default")]);
    assert_eq!(world.label("a", INSTANCE_TYPE), COUNTED);
}

#[test]
fn limits_stand_for_requests_a_daemon_does_not_name() {
    let daemon = pod("").limited("cpu", "10000").limited("memory", "10000Gi").cpu("1");
    assert!(!is_scheduled_with(&daemon));
}

#[test]
fn init_containers_of_daemons_take_room() {
    let with_init = |memory: &str| {
        pod("").limited("cpu", "10000").limited("memory", "1Gi").cpu("1").init(
            None,
            &[("cpu", "3")],
            &[("cpu", "10000"), ("memory", memory)],
        )
    };
    let mut world = World::new()
        .with(pool("default"))
        .with(daemon_set("ds", &with_init("3Gi")));
    world.provision([pod("a")]);
    assert_eq!(world.label("a", INSTANCE_TYPE), COUNTED);
    assert!(!is_scheduled_with(&with_init("10000Gi")));
    assert!(!is_scheduled_with(&pod("").init(
        None,
        &[("cpu", "10000"), ("memory", "10000Gi")],
        &[]
    )));
}

#[test]
fn daemons_without_requests_leave_room() {
    assert!(is_scheduled_with(&pod("")));
}

#[test]
fn daemons_that_do_not_tolerate_the_pools_taints_take_no_room() {
    let pool = pool("default").template_taint(taint("foo", "bar", "NoSchedule"));
    let mut world = World::new().with(pool).with(daemon_set("ds", &daemon()));
    world.provision([small_pod().tolerate(serde_json::json!({ "operator": "Exists" }))]);
    assert_eq!(world.label("a", INSTANCE_TYPE), NOT_COUNTED);
}

#[test]
fn daemons_that_select_other_nodes_take_no_room() {
    for daemon in [
        daemon().select("node", "invalid"),
        daemon().require(&[req(INSTANCE_TYPE, "In", &["non-existent-instance-type"])]),
    ] {
        assert_eq!(type_with(pool("default"), &daemon).as_deref(), NOT_COUNTED);
    }
}

#[test]
fn daemons_that_select_a_label_of_the_pool_take_room() {
    let pool = pool("default").template_label("purpose", "monitoring");
    assert_eq!(
        type_with(pool, &daemon().select("purpose", "monitoring")).as_deref(),
        COUNTED
    );
}

#[test]
fn daemons_take_room_only_on_the_types_they_run_on() {
    let of_size = |size: &str, cpu: &str| pod("").require(&[req(SIZE, "In", &[size])]).cpu(cpu);
    let mut world = World::new().with(pool("default"));
    world.add(daemon_set("small", &of_size("small", "1")));
    world.add(daemon_set("large", &of_size("large", "10")));
    world.provision([small_pod()]);
    assert_eq!(world.label("a", INSTANCE_TYPE), COUNTED);
}

#[test]
fn daemons_that_exclude_an_unknown_label_take_room() {
    let daemon = daemon().require(&[req("foo", "NotIn", &["bar"])]);
    let mut world = World::new().with(pool("default")).with(daemon_set("ds", &daemon));
    world.provision([small_pod().require(&[req(ZONE, "In", &["test-zone-2"])])]);
    assert_eq!(world.label("a", INSTANCE_TYPE), COUNTED);
}

#[test]
fn node_a_running_daemon_is_pinned_to_does_not_count() {
    let set = pod("").require(&[req("foo", "In", &["bar"])]).cpu("4").memory("4Gi");
    let mut world = World::new()
        .with(pool("default").template_label("foo", "bar"))
        .with(daemon_set("ds", &set));
    let pinned = daemon()
        .renamed("daemon")
        .require(&[req("metadata.name", "In", &["node-name"])]);
    world.add(pinned.owned_by(owner("apps/v1", "DaemonSet", "ds")));
    world.provision([small_pod().select("foo", "bar")]);
    assert_eq!(world.label("a", INSTANCE_TYPE), COUNTED);
}

#[test]
fn daemons_with_several_alternatives_take_room_when_one_matches() {
    let daemon = daemon()
        .require(&[req("foo", "In", &["voo"])])
        .require(&[req("foo", "In", &["bar"])]);
    assert_eq!(
        type_with(pool("default").template_label("foo", "bar"), &daemon).as_deref(),
        COUNTED
    );
}

#[test]
fn preferences_of_daemons_do_not_matter() {
    let daemon = daemon().prefer(1, &[req("node", "In", &["invalid"])]);
    assert_eq!(type_with(pool("default"), &daemon).as_deref(), COUNTED);
}

#[test]
fn daemons_tolerate_taints_that_only_prefer() {
    let pool = pool("default").template_taint(taint("test", "", "PreferNoSchedule"));
    assert_eq!(type_with(pool, &daemon()).as_deref(), COUNTED);
}

#[test]
fn host_ports_of_daemons_are_taken_only_on_the_types_they_run_on() {
    let of_size = |daemon: Object, size: &str, port| daemon.require(&[req(SIZE, "In", &[size])]).host_port(port);
    let mut world = World::new().with(pool("default"));
    world.add(daemon_set(
        "large",
        &of_size(pod("").cpu("4").memory("4Gi"), "large", 8080),
    ));
    world.add(daemon_set("small", &of_size(daemon(), "small", 8081)));
    world.provision([of_size(small_pod(), "small", 8080)]);
    assert_eq!(world.label("a", INSTANCE_TYPE), COUNTED);
}
