//! Do pods that belong together come together, and others stay apart?

use serde_json::json;

use super::fixture::{labels::*, *};

const S2: [(&str, &str); 1] = [("security", "s2")];
const TEST: [(&str, &str); 1] = [("test", "test")];

fn world() -> World {
    World::new().with(pool("default"))
}

/// The pod others seek or avoid.
fn target(name: &str) -> Object {
    pod(name).label("security", "s2")
}

/// A pod that seeks its own kind.
fn sociable(name: &str, key: &str) -> Object {
    target(name).affinity(term(key, &S2))
}

/// A pod that avoids its own kind.
fn shy(name: &str, key: &str) -> Object {
    target(name).anti_affinity(term(key, &S2))
}

/// Ten pods that get a host each.
fn ten_hosts() -> Vec<Object> {
    replicas(10, &pod("spread").label("test", "test").spread(spread(HOSTNAME, 1)))
}

const ZONES: [&str; 3] = ["test-zone-1", "test-zone-2", "test-zone-3"];

/// A large pod in each zone.
fn in_each_zone(pod: impl Fn(&str) -> Object) -> Vec<Object> {
    ZONES
        .iter()
        .map(|zone| pod(&format!("in-{zone}")).cpu("2").select(ZONE, zone))
        .collect()
}

#[test]
fn pod_with_empty_affinities_is_scheduled() {
    let mut world = world();
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let empty = json!({ "podAffinity": { required: [] }, "podAntiAffinity": { required: [] } });
    world.provision([pod("a").with("spec.affinity", empty)]);
    assert!(world.is_scheduled("a"));
}

#[test]
fn pod_joins_the_host_of_the_pod_it_seeks() {
    let mut world = world();
    let mut pods = ten_hosts();
    pods.push(target("target"));
    pods.push(pod("seeker").affinity(term(HOSTNAME, &S2)));
    world.provision(pods);
    assert!(world.is_scheduled("target"));
    assert_eq!(world.nodes_of("seeker"), world.nodes_of("target"));
}

#[test]
fn pod_joins_the_architecture_of_the_pod_it_seeks() {
    let mut world = world();
    let mut apart = spread(HOSTNAME, 1);
    apart["labelSelector"] = json!({ "matchLabels": { "security": "s2" } });
    world.provision([
        target("target").cpu("2").select(ARCH, "arm64").spread(apart.clone()),
        sociable("seeker", ARCH).cpu("1").spread(apart),
    ]);
    assert_eq!(world.label("target", ARCH), Some("arm64"));
    assert_eq!(world.label("seeker", ARCH), Some("arm64"));
    assert_ne!(world.nodes_of("seeker"), world.nodes_of("target"));
}

#[test]
fn pods_that_seek_each_other_share_a_host() {
    for key in [HOSTNAME, ZONE] {
        let mut world = world();
        world.provision(replicas(3, &sociable("a", key)));
        assert_eq!((world.nodes_of("").len(), world.pending().len()), (1, 0), "{key}");
    }
}

#[test]
fn pods_that_seek_each_other_fill_one_host_only() {
    let mut world = world();
    world.provision(replicas(10, &sociable("a", HOSTNAME)));
    assert_eq!((world.nodes_of("").len(), world.pending().len()), (1, 5));
    world.provision(replicas(10, &sociable("b", HOSTNAME)));
    assert_eq!((world.nodes_of("").len(), world.pending().len()), (1, 15));
}

#[test]
fn pods_that_seek_each_other_cannot_start_on_a_second_host_elsewhere() {
    let mut world = world();
    world.provision([sociable("first", HOSTNAME).select(ZONE, "test-zone-1")]);
    let elsewhere = sociable("a", HOSTNAME).require(&[req(ZONE, "In", &["test-zone-2", "test-zone-3"])]);
    world.provision(replicas(10, &elsewhere));
    assert_eq!(world.pending().len(), 10);
}

#[test]
fn pods_that_seek_each_other_meet_in_the_zone_they_require() {
    let mut world = world();
    world.provision(replicas(
        3,
        &sociable("a", ZONE).require(&[req(ZONE, "In", &["test-zone-3"])]),
    ));
    assert_eq!((world.nodes_of("").len(), world.pending().len()), (1, 0));
    assert_eq!(world.label("a-00", ZONE), Some("test-zone-3"));
}

#[test]
fn pods_that_seek_each_other_but_cannot_meet_get_nodes_of_their_own() {
    let mut world = world();
    let in_zone = |name: &str, zone: &str| sociable(name, ZONE).require(&[req(ZONE, "In", &[zone])]);
    world.provision([in_zone("a", "test-zone-2"), in_zone("b", "test-zone-3")]);
    assert_eq!(world.label("a", ZONE), Some("test-zone-2"));
    assert_eq!(world.label("b", ZONE), Some("test-zone-3"));
}

#[test]
fn wish_for_a_pod_that_does_not_exist_is_given_up() {
    let mut world = world();
    let mut pods = ten_hosts();
    pods.push(pod("wishful").prefer_affinity(50, term(HOSTNAME, &S2)));
    world.provision(pods);
    assert!(world.is_scheduled("wishful"));
}

#[test]
fn wish_to_avoid_pods_that_are_everywhere_is_given_up() {
    let mut world = world();
    let everywhere = replicas(3, &pod("everywhere").label("test", "test").spread(spread(ZONE, 1)));
    let wishful = replicas(10, &pod("wishful").prefer_anti_affinity(50, term(ZONE, &TEST)));
    world.provision([everywhere, wishful].concat());
    assert_eq!(world.pending(), Vec::<&str>::new());
}

#[test]
fn pod_keeps_off_the_host_of_the_pod_it_avoids() {
    let mut world = world();
    for round in 0..10 {
        let (avoided, shy) = (format!("avoided-{round}"), format!("shy-{round}"));
        world.provision([pod(&shy).anti_affinity(term(HOSTNAME, &S2)), target(&avoided)]);
        assert!(
            world.is_scheduled(&shy) && world.is_scheduled(&avoided),
            "round {round}"
        );
        assert_ne!(world.nodes_of(&shy), world.nodes_of(&avoided), "round {round}");
    }
}

#[test]
fn pod_has_no_zone_when_those_it_avoids_are_in_all() {
    let mut world = world();
    let mut pods = in_each_zone(target);
    pods.push(pod("shy").anti_affinity(term(ZONE, &S2)));
    world.provision(pods);
    assert_eq!(world.pending(), ["shy"]);
}

#[test]
fn pod_waits_until_the_zone_of_the_pod_it_avoids_is_known() {
    let mut world = world();
    world.provision([target("avoided").cpu("2"), pod("shy").anti_affinity(term(ZONE, &S2))]);
    assert_eq!(world.pending(), ["shy"]);
}

#[test]
fn pod_keeps_off_the_architecture_of_the_pod_it_avoids() {
    let mut world = world();
    let mut apart = spread(HOSTNAME, 1);
    apart["labelSelector"] = json!({ "matchLabels": { "security": "s2" } });
    world.provision([
        target("avoided").cpu("2").select(ARCH, "arm64").spread(apart.clone()),
        shy("shy", ARCH).cpu("1").spread(apart),
    ]);
    assert_eq!(world.label("avoided", ARCH), Some("arm64"));
    assert_eq!(world.label("shy", ARCH), Some("amd64"));
}

#[test]
fn first_pod_of_its_kind_joins_a_node_that_is_to_be_without_the_label_it_gathers_by() {
    let team = "example.com/team";
    let red = json!({ "key": team, "operator": "In", "values": ["red"] });
    let none = json!({ "key": team, "operator": "DoesNotExist" });
    let mut world = world().with(pool("red").requirement(red).limits(&[("nodes", "0")]));
    world.provision([pod("without").cpu("1").require(&[none]), sociable("first", team)]);
    assert_eq!(world.pending(), Vec::<&str>::new());
    assert_eq!(world.nodes_of("first"), world.nodes_of("without"));
}

#[test]
fn pods_that_avoid_others_do_not_count_while_a_volume_on_their_node_is_lost() {
    let mut world = world();
    world.provision(in_each_zone(|name| pod(name).anti_affinity(term(ZONE, &S2))));
    world.provision([target("avoided")]);
    assert_eq!(world.pending(), ["avoided"]);
    world.add(volume_claim("data", None, Some("lost")));
    for zone in ZONES {
        let shy = world.node_of(&format!("in-{zone}")).map(|node| node.name().to_owned());
        let beside = pod(&format!("beside-in-{zone}")).claims("data");
        world.add(beside.on(&shy.expect("bound")));
    }
    world.provision([]);
    assert!(world.is_scheduled("avoided"));
}

#[test]
fn pod_that_others_in_all_zones_avoid_has_no_zone_unless_it_is_a_wish() {
    for is_bound_before in [false, true] {
        for (is_wish, pending) in [(false, &["avoided"][..]), (true, &[])] {
            let mut world = world();
            let shy = |name: &str| {
                let avoided = term(ZONE, &S2);
                if is_wish {
                    pod(name).prefer_anti_affinity(10, avoided)
                } else {
                    pod(name).anti_affinity(avoided)
                }
            };
            let pods = in_each_zone(shy);
            if is_bound_before {
                world.provision(pods);
                world.provision([target("avoided")]);
            } else {
                world.provision([pods, vec![target("avoided")]].concat());
            }
            assert_eq!(
                world.pending(),
                pending,
                "bound before: {is_bound_before}, wish: {is_wish}"
            );
        }
    }
}

#[test]
fn pod_waits_until_the_zone_of_the_pod_that_avoids_it_is_known() {
    let mut world = world();
    world.provision([pod("shy").cpu("2").anti_affinity(term(ZONE, &S2)), target("avoided")]);
    assert_eq!(world.pending(), ["avoided"]);
    world.provision([]);
    assert!(world.is_scheduled("avoided"));
    assert_ne!(world.label("avoided", ZONE), world.label("shy", ZONE));
}

#[test]
fn wish_for_company_yields_to_a_required_spread() {
    let mut world = world();
    let torn = pod("torn")
        .label("test", "test")
        .spread(spread(HOSTNAME, 1))
        .prefer_affinity(50, term(HOSTNAME, &S2));
    world.provision([replicas(3, &torn), vec![target("target")]].concat());
    assert_eq!(world.pending(), Vec::<&str>::new());
    assert_eq!(world.skew(HOSTNAME, &TEST), [1, 1, 1]);
}

#[test]
fn pods_that_avoid_each_other_get_one_zone_each_run_by_run() {
    let mut world = world();
    for (round, expected) in [&[1][..], &[1, 1], &[1, 1, 1], &[1, 1, 1]].into_iter().enumerate() {
        world.provision(replicas(3, &shy(&format!("round-{round}"), ZONE)));
        assert_eq!(world.skew(ZONE, &[]), expected, "round {round}");
        let pending: Vec<String> = world.pending().into_iter().map(str::to_string).collect();
        for pod in &pending {
            world.remove("Pod", pod);
        }
    }
}

#[test]
fn pods_that_seek_a_pod_that_does_not_exist_are_not_scheduled() {
    let mut world = world();
    world.provision(replicas(10, &pod("a").affinity(term(ZONE, &S2))));
    assert_eq!(world.pending().len(), 10);
}

#[test]
fn pods_join_the_zone_of_the_pod_they_seek_once_it_is_known() {
    let mut world = world();
    world.provision(
        [
            replicas(10, &pod("a").affinity(term(ZONE, &S2))),
            vec![target("target")],
        ]
        .concat(),
    );
    assert_eq!((world.pending().len(), world.skew(ZONE, &[])), (10, vec![1]));
    world.provision([]);
    assert_eq!((world.pending().len(), world.skew(ZONE, &[])), (0, vec![11]));
}

#[test]
fn pods_join_the_zone_the_pod_they_seek_requires() {
    let mut world = world();
    let fixed = target("target").require(&[req(ZONE, "In", &["test-zone-1"])]);
    world.provision([replicas(10, &pod("a").affinity(term(ZONE, &S2))), vec![fixed]].concat());
    assert_eq!(world.skew(ZONE, &[]), [11]);
}

#[test]
fn pods_that_depend_on_each_other_are_placed_in_any_order() {
    let labels = |kind: &'static str| [("type", kind), ("spread", "spread")];
    let of = |name: &str, kind: &'static str| pod(name).label("type", kind).label("spread", "spread");
    for order in [
        ["a", "b", "c", "d"],
        ["d", "c", "b", "a"],
        ["b", "d", "a", "c"],
        ["c", "a", "d", "b"],
    ] {
        let mut world = world();
        world.provision([
            of(order[0], "db"),
            of(order[1], "web").affinity(term(HOSTNAME, &labels("db"))),
            of(order[2], "cache").affinity(term(HOSTNAME, &labels("web"))),
            of(order[3], "ui").affinity(term(HOSTNAME, &labels("cache"))),
        ]);
        assert_eq!((world.pending().len(), world.nodes_of("").len()), (0, 1), "{order:?}");
    }
}

#[test]
fn pod_that_depends_on_a_pod_that_does_not_exist_is_not_scheduled() {
    let mut world = world();
    let missing = term(HOSTNAME, &[("type", "web"), ("spread", "spread")]);
    world.provision([pod("a").label("type", "db").label("spread", "spread").affinity(missing)]);
    assert_eq!(world.pending(), ["a"]);
}

#[test]
fn pods_of_other_namespaces_count_only_when_asked_for() {
    let mut by_name = term(HOSTNAME, &S2);
    by_name["namespaces"] = json!(["other"]);
    let mut by_selector = term(HOSTNAME, &S2);
    by_selector["namespaceSelector"] = json!({});
    for (term, is_found) in [(term(HOSTNAME, &S2), false), (by_name, true), (by_selector, true)] {
        let mut world = world();
        for name in ["default", "other"] {
            world.add(object("v1", "Namespace", "", name).label("foo", "bar"));
        }
        let mut pods = ten_hosts();
        pods.push(target("target").with("metadata.namespace", "other"));
        pods.push(pod("seeker").affinity(term.clone()));
        world.provision(pods);
        assert!(world.is_scheduled("target"), "{term}");
        assert_eq!(world.is_scheduled("seeker"), is_found, "{term}");
        assert!(
            !is_found || world.nodes_of("seeker") == world.nodes_of("target"),
            "{term}"
        );
    }
}
