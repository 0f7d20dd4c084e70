//! Which pods get the cluster's default spread, and which pods do they count?

use packing::demand::Demand;
use serde_json::{Value, json};

use super::fixture::{labels::*, *};

const TEST: [(&str, &str); 1] = [("test", "test")];

/// A spread as the scheduler's configuration writes it: without a selector.
fn default(key: &str) -> Value {
    json!({ "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1 })
}

fn with(mut constraint: Value, field: &str, value: impl Into<Value>) -> Value {
    constraint[field] = value.into();
    constraint
}

/// A cluster with this default and a ReplicaSet that owns what is labelled `test: test`.
fn world(pool: Object, default: Value) -> World {
    World::new()
        .with(pool)
        .with(replica_set("rs", json!({ "test": "test" })))
        .setting("defaultConstraints", json!([default]))
}

fn replica_set(name: &str, labels: Value) -> Object {
    object("apps/v1", "ReplicaSet", "default", name).with("spec.selector.matchLabels", labels)
}

fn service(name: &str, selector: Value) -> Object {
    object("v1", "Service", "default", name).with("spec.selector", selector)
}

fn owned(name: &str) -> Object {
    pod(name)
        .label("test", "test")
        .owned_by(owner("apps/v1", "ReplicaSet", "rs"))
}

fn zonal(zones: &[&str]) -> Object {
    pool("default").requirement(req(ZONE, "In", zones))
}

#[test]
fn default_spread_applies_to_pods_without_one() {
    for (key, count, expected) in [(ZONE, 4, &[1, 1, 2][..]), (HOSTNAME, 3, &[1, 1, 1])] {
        let mut world = world(pool("default"), default(key));
        world.provision(replicas(count, &owned("a")));
        assert_eq!(world.skew(key, &TEST), expected, "{key}");
    }
}

#[test]
fn default_spread_does_not_apply_to_pods_with_their_own() {
    let mut world = world(pool("default"), default(HOSTNAME));
    world.provision(replicas(3, &owned("a").spread(spread(HOSTNAME, 3))));
    assert_eq!((world.nodes_of("").len(), world.pending().len()), (1, 0));
}

#[test]
fn default_spread_may_ask_for_a_minimum_of_domains() {
    let mut world = world(
        zonal(&["test-zone-1", "test-zone-2"]),
        with(default(ZONE), "minDomains", 3),
    );
    world.provision(replicas(3, &owned("a")));
    assert_eq!(world.skew(ZONE, &TEST), [1, 1]);
}

#[test]
fn default_spread_that_cannot_be_met_is_given_up_only_when_it_is_soft() {
    for (action, pending) in [("DoNotSchedule", 2), ("ScheduleAnyway", 0)] {
        let constraint = with(with(default(ZONE), "minDomains", 3), "whenUnsatisfiable", action);
        let mut world = world(zonal(&["test-zone-1"]), constraint);
        world.provision(replicas(3, &owned("a")));
        assert_eq!(world.pending().len(), pending, "{action}");
    }
}

#[test]
fn without_a_default_pods_share_a_node() {
    let mut world = World::new()
        .with(pool("default"))
        .with(replica_set("rs", json!({ "test": "test" })));
    world.provision(replicas(3, &owned("a")));
    assert_eq!((world.nodes_of("").len(), world.pending().len()), (1, 0));
}

#[test]
fn pods_nobody_owns_or_serves_get_no_default() {
    let mut world = world(pool("default"), default(HOSTNAME));
    world.provision(replicas(3, &pod("a").label("test", "test")));
    assert_eq!((world.nodes_of("").len(), world.pending().len()), (1, 0));
}

#[test]
fn default_spread_counts_the_pods_already_there() {
    let mut world = world(zonal(&["test-zone-1", "test-zone-2"]), default(ZONE));
    world.add(node("own", &[]).label(ZONE, "test-zone-1"));
    world.add(owned("there-0").on("own"));
    world.add(owned("there-1").on("own"));
    world.provision(replicas(2, &owned("a")));
    assert_eq!(
        world.spread_over(ZONE, &TEST).into_iter().collect::<Vec<_>>(),
        [("test-zone-1".to_string(), 2), ("test-zone-2".to_string(), 2)]
    );
}

#[test]
fn workloads_and_revisions_are_spread_independently() {
    for (first, second) in [
        (json!({ "test": "test" }), json!({ "test": "other" })),
        (
            json!({ "test": "test", "pod-template-hash": "old" }),
            json!({ "test": "test", "pod-template-hash": "new" }),
        ),
    ] {
        let mut world = World::new()
            .with(pool("default"))
            .setting("defaultConstraints", json!([default(ZONE)]));
        let mut pods = Vec::new();
        for (name, labels) in [("first", &first), ("second", &second)] {
            world.add(replica_set(name, labels.clone()));
            let owned = pod(name).with("metadata.labels", labels.clone()).label("of", name);
            pods.extend(replicas(3, &owned.owned_by(owner("apps/v1", "ReplicaSet", name))));
        }
        world.provision(pods);
        assert_eq!(world.skew(ZONE, &[("of", "first")]), [1, 1, 1], "{first}");
        assert_eq!(world.skew(ZONE, &[("of", "second")]), [1, 1, 1], "{second}");
    }
}

#[test]
fn service_alone_is_enough_for_the_default_spread() {
    let mut world = World::new()
        .with(pool("default"))
        .setting("defaultConstraints", json!([default(ZONE)]));
    world.add(service("svc", json!({ "test": "test" })));
    let job = pod("a")
        .label("test", "test")
        .owned_by(owner("batch/v1", "Job", "test-job"));
    world.provision(replicas(4, &job));
    assert_eq!(world.skew(ZONE, &TEST), [1, 1, 2]);
}

/// The selectors of the spreads a pod ends up with.
fn selectors(objects: Vec<Object>, pod: Object) -> Vec<Value> {
    constraints(default(ZONE), objects, pod)
        .iter()
        .map(|constraint| constraint["labelSelector"].clone())
        .collect()
}

/// The spreads a pod ends up with.
fn constraints(default: Value, objects: Vec<Object>, pod: Object) -> Vec<Value> {
    let mut world = World::new()
        .with(pool("default"))
        .setting("defaultConstraints", json!([default]));
    let name = pod.name().to_string();
    objects.into_iter().chain([pod]).for_each(|object| world.add(object));
    let demand = Demand::of(&world.snapshot());
    let found = demand
        .pods
        .iter()
        .find(|pod| *pod.pod.metadata.name == *name)
        .expect("the pod is demand");
    let spreads = &found.pod.spec.topology_spread_constraints;
    spreads
        .iter()
        .map(|constraint| serde_json::to_value(constraint).unwrap())
        .collect()
}

fn labelled(labels: &[(&str, &str)]) -> Object {
    labels.iter().fold(pod("a"), |pod, (key, value)| pod.label(key, value))
}

fn of_set(labels: &[(&str, &str)]) -> Object {
    labelled(labels).owned_by(owner("apps/v1", "ReplicaSet", "rs"))
}

fn is_in(key: &str, value: &str) -> Value {
    json!({ "key": key, "operator": "In", "values": [value] })
}

#[test]
fn selector_of_the_owner_counts_not_the_labels_of_the_pod() {
    let set = replica_set("rs", json!({ "app": "web", "pod-template-hash": "abc123" }));
    let pod = of_set(&[("app", "web"), ("pod-template-hash", "abc123"), ("extra", "ignored")]);
    let expected = json!({ "matchExpressions": [is_in("app", "web"), is_in("pod-template-hash", "abc123")] });
    assert_eq!(selectors(vec![set], pod), [expected]);
}

#[test]
fn selector_of_a_stateful_set_counts() {
    let set =
        object("apps/v1", "StatefulSet", "default", "db").with("spec.selector.matchLabels", json!({ "app": "db" }));
    let pod = labelled(&[("app", "db"), ("statefulset.kubernetes.io/pod-name", "db-0")]);
    let pod = pod.owned_by(owner("apps/v1", "StatefulSet", "db"));
    assert_eq!(
        selectors(vec![set], pod),
        [json!({ "matchExpressions": [is_in("app", "db")] })]
    );
}

#[test]
fn expressions_of_the_owners_selector_are_taken_over() {
    let expression = json!({ "key": "app", "operator": "NotIn", "values": ["other"] });
    let set = object("apps/v1", "ReplicaSet", "default", "rs")
        .with("spec.selector.matchExpressions", json!([expression.clone()]));
    assert_eq!(
        selectors(vec![set], of_set(&[("app", "web")])),
        [json!({ "matchExpressions": [expression] })]
    );
}

fn controller(labels: Value) -> Object {
    object("v1", "ReplicationController", "default", "rc").with("spec.selector", labels)
}

#[test]
fn selector_of_a_replication_controller_counts_as_labels() {
    let pod = labelled(&[("app", "legacy")]).owned_by(owner("v1", "ReplicationController", "rc"));
    let expected = json!({ "matchLabels": { "app": "legacy" } });
    assert_eq!(selectors(vec![controller(json!({ "app": "legacy" }))], pod), [expected]);
}

#[test]
fn owners_that_do_not_count_give_no_selector() {
    let set = || replica_set("rs", json!({ "app": "web" }));
    let web = || labelled(&[("app", "web")]);
    let mut not_in_charge = owner("apps/v1", "ReplicaSet", "rs");
    not_in_charge["controller"] = false.into();
    for (objects, pod) in [
        (vec![], web().owned_by(owner("batch/v1", "Job", "test-job"))),
        (vec![set()], web().owned_by(not_in_charge)),
        (vec![], web().owned_by(owner("apps/v1", "ReplicaSet", "does-not-exist"))),
    ] {
        assert_eq!(selectors(objects, pod.clone()), Vec::<Value>::new(), "{pod:?}");
    }
}

#[test]
fn services_that_select_the_pod_count_together() {
    let pod = || labelled(&[("app", "web"), ("tier", "frontend")]);
    let (web, frontend) = (
        service("web", json!({ "app": "web" })),
        service("tier", json!({ "tier": "frontend" })),
    );
    assert_eq!(
        selectors(vec![web.clone()], pod()),
        [json!({ "matchLabels": { "app": "web" } })]
    );
    let expected = json!({ "matchLabels": { "app": "web", "tier": "frontend" } });
    assert_eq!(selectors(vec![web, frontend], pod()), [expected]);
}

#[test]
fn services_that_do_not_count_give_no_selector() {
    for service in [
        service("svc", json!({ "app": "other" })),
        service("svc", json!(null)),
        service("svc", json!({})),
        service("svc", json!({ "app": "web" })).with("metadata.namespace", "elsewhere"),
    ] {
        assert_eq!(
            selectors(vec![service.clone()], labelled(&[("app", "web")])),
            Vec::<Value>::new(),
            "{service:?}"
        );
    }
}

#[test]
fn selectors_of_service_and_owner_must_both_match() {
    let set = replica_set("rs", json!({ "app": "web", "pod-template-hash": "abc123" }));
    let pod = of_set(&[("app", "web"), ("pod-template-hash", "abc123"), ("tier", "frontend")]);
    let expected = json!({ "matchLabels": { "tier": "frontend" },
                           "matchExpressions": [is_in("app", "web"), is_in("pod-template-hash", "abc123")] });
    assert_eq!(
        selectors(vec![set, service("svc", json!({ "tier": "frontend" }))], pod),
        [expected]
    );
}

#[test]
fn replication_controller_overrules_a_service_it_disagrees_with() {
    let pod = labelled(&[("app", "web")]).owned_by(owner("v1", "ReplicationController", "rc"));
    let objects = vec![
        controller(json!({ "app": "legacy" })),
        service("svc", json!({ "app": "web" })),
    ];
    assert_eq!(selectors(objects, pod), [json!({ "matchLabels": { "app": "legacy" } })]);
}

#[test]
fn replica_set_that_disagrees_with_a_service_leaves_nothing_to_count() {
    let objects = vec![
        replica_set("rs", json!({ "app": "other" })),
        service("svc", json!({ "app": "web" })),
    ];
    let expected = json!({ "matchLabels": { "app": "web" }, "matchExpressions": [is_in("app", "other")] });
    assert_eq!(selectors(objects, of_set(&[("app", "web")])), [expected]);
}

#[test]
fn pods_of_one_owner_with_different_labels_get_different_selectors() {
    let objects = || {
        vec![
            replica_set("rs", json!({ "app": "web" })),
            service("svc", json!({ "tier": "frontend" })),
        ]
    };
    let plain = of_set(&[("app", "web")]).renamed("b");
    let mut both = objects();
    both.push(plain);
    let frontend = selectors(both, of_set(&[("app", "web"), ("tier", "frontend")]));
    assert_eq!(frontend[0]["matchLabels"], json!({ "tier": "frontend" }));
    let mut both = objects();
    both.push(of_set(&[("app", "web"), ("tier", "frontend")]).renamed("b"));
    assert_eq!(
        selectors(both, of_set(&[("app", "web")]))[0]["matchLabels"],
        json!(null)
    );
}

#[test]
fn pods_with_the_same_labels_in_another_namespace_get_no_selector() {
    let here = labelled(&[("app", "web")]).renamed("b");
    let objects = vec![service("svc", json!({ "app": "web" })), here];
    let there = labelled(&[("app", "web")]).with("metadata.namespace", "elsewhere");
    assert_eq!(selectors(objects, there), Vec::<Value>::new());
}

#[test]
fn spread_of_the_pod_itself_stays_as_it_is() {
    let own = json!({ "maxSkew": 5, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway",
                      "labelSelector": { "matchLabels": { "app": "web" } } });
    let pod = of_set(&[("app", "web")]).spread(own.clone());
    assert_eq!(
        constraints(default(ZONE), vec![replica_set("rs", json!({ "app": "web" }))], pod),
        [own]
    );
}

#[test]
fn all_fields_of_the_default_spread_are_taken_over() {
    let default = json!({ "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 4, "minDomains": 3,
                          "nodeTaintsPolicy": "Honor" });
    let set = replica_set("rs", json!({ "app": "web" }));
    let mut expected = default.clone();
    expected["labelSelector"] = json!({ "matchExpressions": [is_in("app", "web")] });
    assert_eq!(constraints(default, vec![set], of_set(&[("app", "web")])), [expected]);
}
