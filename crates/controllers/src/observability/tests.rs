//! Do gauges, counters and events tell what the state holds?

use std::time::Duration;

use async_trait::async_trait;
use cloud::{CloudError, CloudProvider, Instance, LaunchToken, Launched, NodeClassKind, RepairPolicy};
use jiff::Timestamp;
use model::{
    object::{NodePool, ProviderId},
    snapshot::CatalogType,
};
use runtime::{Api, Clock, Engine, Event, Metrics, Recorder, Settings};
use serde_json::{Value, json};
use simulator::ApiServer;
use state::Tracked;
use tokio::{sync::mpsc::Receiver, task::JoinHandle};

use super::*;
use crate::Parts;

const BEGIN: &str = "2026-11-16T10:00:00Z";

/// A cloud that is never asked, with its kind of node class.
struct Nowhere(&'static [NodeClassKind]);

const KWOK: &[NodeClassKind] = &[NodeClassKind {
    group: "karpenter.kwok.sh",
    version: "v1alpha1",
    kind: "KWOKNodeClass",
}];
const AWS: &[NodeClassKind] = &[NodeClassKind {
    group: "karpenter.k8s.aws",
    version: "v1",
    kind: "EC2NodeClass",
}];

#[async_trait]
impl CloudProvider for Nowhere {
    fn name(&self) -> &'static str {
        "nowhere"
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        self.0
    }

    async fn create(&self, _: &NodeClaim, _: &LaunchToken) -> Result<Launched, CloudError> {
        unreachable!("observing launches nothing")
    }

    async fn delete(&self, _: &NodeClaim) -> Result<(), CloudError> {
        unreachable!("observing deletes nothing")
    }

    async fn get(&self, _: &ProviderId) -> Result<Instance, CloudError> {
        unreachable!("observing asks for nothing")
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        unreachable!("observing asks for nothing")
    }

    async fn instance_types(&self, _: &NodePool) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        unreachable!("observing asks for nothing")
    }

    async fn is_drifted(&self, _: &NodeClaim) -> Result<Option<String>, CloudError> {
        unreachable!("observing asks for nothing")
    }

    async fn reboot(&self, _: &NodeClaim, _: &str) -> Result<(), CloudError> {
        unreachable!("observing reboots nothing")
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        Vec::new()
    }

    fn well_known_labels(&self) -> Vec<String> {
        vec!["karpenter.kwok.sh/instance-cpu".to_owned()]
    }
}

/// A cluster that is observed.
struct Observed {
    cluster: Arc<Cluster>,
    metrics: Arc<Metrics>,
    events: Receiver<Event>,
    observing: JoinHandle<()>,
    version: u64,
}

impl Observed {
    async fn new(settings: Settings) -> Self {
        Self::of(settings, KWOK).await
    }

    async fn of(settings: Settings, classes: &'static [NodeClassKind]) -> Self {
        let clock = Clock::starting_at(BEGIN.parse().unwrap());
        let time = clock.clone();
        let (recorder, events) = Recorder::new(1000);
        let metrics = Arc::new(Metrics::default());
        let cluster = Arc::new(Cluster::new(Parts {
            api: Api::new(ApiServer::new(move || time.now()).client(), "test"),
            cloud: Arc::new(Nowhere(classes)),
            clock,
            engine: Engine::Inline,
            recorder,
            metrics: Arc::clone(&metrics),
            settings: Arc::new(settings),
        }));
        let observing = tokio::spawn(run(Arc::clone(&cluster)));
        let observed = Self {
            cluster,
            metrics,
            events,
            observing,
            version: 0,
        };
        observed.settle().await;
        observed
    }

    /// Lets everything that can happen now happen.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_nanos(1)).await;
    }

    /// Makes an object appear or change.
    async fn apply<T: Tracked>(&mut self, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000001");
        object["metadata"]["creationTimestamp"] = json!(BEGIN);
        let object: T = serde_json::from_value(object).unwrap();
        self.cluster.fold(|state| state.apply(object));
        self.settle().await;
    }

    /// Makes an object go.
    async fn delete<T: Tracked>(&mut self, name: &str) {
        let key = model::object::ObjectKey::cluster_scoped(name);
        let last = self.cluster.get::<T>(&key).unwrap();
        self.cluster.fold(|state| state.delete(last.as_ref()));
        self.settle().await;
    }

    /// Makes a node class appear or change.
    async fn apply_class(&mut self, api_version: &str, kind: &str, conditions: Value) {
        self.version += 1;
        let class = json!({
            "apiVersion": api_version, "kind": kind, "status": {"conditions": conditions},
            "metadata": {"name": "default", "creationTimestamp": BEGIN, "resourceVersion": self.version.to_string()},
        });
        let class: NodeClass = serde_json::from_value(class).unwrap();
        self.cluster.fold(|state| state.apply_node_class(class));
        self.settle().await;
    }

    /// The lines of families whose names begin so.
    fn shown(&self, prefix: &str, profile: MetricsProfile) -> Vec<String> {
        let page: String = self.metrics.page(profile).collect();
        page.lines()
            .filter(|line| line.starts_with(prefix))
            .map(str::to_owned)
            .collect()
    }

    /// What was told since the last time: reason and message.
    fn told(&mut self) -> Vec<(String, String)> {
        let mut told = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            assert_eq!(event.dedupe, Vec::<String>::new());
            told.push((event.reason.to_string(), event.message));
        }
        told
    }
}

fn claim(conditions: &Value, deleting: Option<&str>, finalizers: &[&str]) -> Value {
    json!({
        "metadata": {"name": "c", "deletionTimestamp": deleting, "finalizers": finalizers,
            "labels": {"karpenter.sh/nodepool": "p", "karpenter.kwok.sh/kwoknodeclass": "k"}},
        "spec": {"requirements": []},
        "status": {"providerID": "x", "conditions": conditions},
    })
}

fn condition(kind: &str, status: &str, reason: &str, message: &str, since: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
}

#[tokio::test(start_paused = true)]
async fn a_claims_conditions_are_counted_timed_and_told_as_they_change() {
    let mut observed = Observed::new(Settings::default()).await;
    observed.apply::<NodeClaim>(claim(&json!([]), None, &[])).await;
    assert_eq!(observed.told(), []);
    let launched = condition("Launched", "True", "Launched", "", "2026-11-16T10:00:03Z");
    observed.apply::<NodeClaim>(claim(&json!([launched]), None, &[])).await;
    let unknown = condition("Drifted", "False", "Why", "because", "2026-11-16T10:00:04Z");
    observed
        .apply::<NodeClaim>(claim(&json!([launched, unknown]), None, &[]))
        .await;

    let text = "Status condition transitioned, Type: Launched, Status: Unknown -> True, Reason: Launched";
    assert_eq!(
        observed.told(),
        [("Launched".to_owned(), text.to_owned())],
        "a condition that was not there is not told"
    );
    let extra = r#"karpenter_kwok_sh_kwoknodeclass="k",karpenter_sh_nodepool="p""#;
    assert_eq!(
        observed.shown(
            "operator_nodeclaim_status_condition_transitions_total",
            MetricsProfile::Minimal
        ),
        [
            format!(
                r#"operator_nodeclaim_status_condition_transitions_total{{{extra},reason="Why",status="False",type="Drifted"}} 1"#
            ),
            format!(
                r#"operator_nodeclaim_status_condition_transitions_total{{{extra},reason="Launched",status="True",type="Launched"}} 1"#
            ),
        ]
    );
    let sums = observed.shown(
        "operator_nodeclaim_status_condition_transition_seconds_sum",
        MetricsProfile::Minimal,
    );
    assert_eq!(
        sums,
        [format!(
            r#"operator_nodeclaim_status_condition_transition_seconds_sum{{{extra},status="Unknown",to_status="True",type="Launched"}} 3"#
        )]
    );
    let deprecated = observed.shown(
        "operator_status_condition_transition_seconds_sum",
        MetricsProfile::Minimal,
    );
    assert_eq!(
        deprecated,
        [
            r#"operator_status_condition_transition_seconds_sum{group="karpenter.sh",kind="NodeClaim",status="Unknown",to_status="True",type="Launched"} 3"#
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn conditions_are_shown_as_they_are_when_asked_for() {
    let mut observed = Observed::new(Settings::default()).await;
    let ready = condition("Ready", "False", "UnhealthyDependents", "", "2026-11-16T09:59:50Z");
    observed
        .apply::<NodeClaim>(claim(&json!([ready]), Some("2026-11-16T09:59:58Z"), &["f"]))
        .await;
    tokio::time::advance(Duration::from_secs(10)).await;
    let extra = r#"karpenter_kwok_sh_kwoknodeclass="k",karpenter_sh_nodepool="p""#;
    let object =
        format!(r#"{{{extra},name="c",namespace="",reason="UnhealthyDependents",status="False",type="Ready"}}"#);
    let count = observed.shown("operator_nodeclaim_status_condition_count", MetricsProfile::Standard);
    assert_eq!(count, [format!("operator_nodeclaim_status_condition_count{object} 1")]);
    let current = observed.shown(
        "operator_nodeclaim_status_condition_current_status_seconds",
        MetricsProfile::Standard,
    );
    assert_eq!(current.len(), 1);
    assert!(current[0].starts_with(&format!(
        "operator_nodeclaim_status_condition_current_status_seconds{object} 20"
    )));
    let terminating = observed.shown(
        "operator_nodeclaim_termination_current_time_seconds",
        MetricsProfile::Standard,
    );
    assert_eq!(terminating.len(), 1);
    assert!(terminating[0].contains(" 12"), "{terminating:?}");
    assert_eq!(
        observed.shown("operator_nodeclaim_status_condition_count", MetricsProfile::Minimal),
        Vec::<String>::new()
    );
}

#[tokio::test(start_paused = true)]
async fn the_deprecated_families_join_claims_and_pools_under_one_heading_and_leave_nodes_out() {
    let mut observed = Observed::new(Settings::default()).await;
    let ready = json!([condition("Ready", "True", "Ready", "", BEGIN)]);
    observed.apply::<NodeClaim>(claim(&ready, None, &[])).await;
    observed
        .apply::<NodePool>(json!({"metadata": {"name": "p"}, "status": {"conditions": ready}}))
        .await;
    observed
        .apply::<Node>(json!({"metadata": {"name": "n"}, "status": {"conditions": ready}}))
        .await;
    let kinds: Vec<String> = observed
        .shown("operator_status_condition_count{", MetricsProfile::Standard)
        .iter()
        .map(|line| {
            line.split("kind=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(kinds, ["NodeClaim", "NodePool"]);
    assert_eq!(
        observed
            .shown("# TYPE operator_status_condition_count", MetricsProfile::Standard)
            .len(),
        1
    );
    let node = observed.shown("operator_node_status_condition_count{", MetricsProfile::Standard);
    assert!(node[0].contains(r#"karpenter_sh_initialized="""#), "{node:?}");
}

#[tokio::test(start_paused = true)]
async fn the_conditions_of_a_clouds_node_classes_are_shown_and_those_of_kwok_are_not() {
    let at = "2026-11-16T10:00:05Z";
    let conditions = || json!([condition("AMIsReady", "True", "AMIsReady", "", at)]);
    let mut observed = Observed::of(Settings::default(), AWS).await;
    observed
        .apply_class("karpenter.k8s.aws/v1", "EC2NodeClass", conditions())
        .await;
    assert_eq!(
        observed.shown(
            "operator_ec2nodeclass_status_condition_count{",
            MetricsProfile::Standard
        ),
        [
            r#"operator_ec2nodeclass_status_condition_count{name="default",namespace="",reason="AMIsReady",status="True",type="AMIsReady"} 1"#
        ]
    );
    let changed = |status: &str| json!([condition("AMIsReady", status, "Why", "", "2026-11-16T10:00:09Z")]);
    observed
        .apply_class("karpenter.k8s.aws/v1", "EC2NodeClass", changed("False"))
        .await;
    assert_eq!(
        observed.shown(
            "operator_ec2nodeclass_status_condition_transition_seconds_sum",
            MetricsProfile::Minimal
        ),
        [
            r#"operator_ec2nodeclass_status_condition_transition_seconds_sum{status="True",to_status="False",type="AMIsReady"} 4"#
        ]
    );
    let deprecated = observed.shown("operator_status_condition_transitions_total", MetricsProfile::Minimal);
    assert!(
        deprecated[0].contains(r#"group="karpenter.k8s.aws",kind="EC2NodeClass""#),
        "{deprecated:?}"
    );
    let told = observed.told();
    let (reason, message) = told.last().unwrap();
    assert_eq!(reason, "AMIsReady");
    assert!(message.contains("True -> False"), "{message}");

    let mut observed = Observed::of(Settings::default(), KWOK).await;
    observed
        .apply_class("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", conditions())
        .await;
    let shown = observed.shown("operator_", MetricsProfile::Full);
    assert!(!shown.iter().any(|line| line.contains("AMIsReady")), "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_class_of_aks_has_not_said_yet_counts_as_unknown_since_its_creation() {
    const AZURE: &[NodeClassKind] = &[NodeClassKind {
        group: "karpenter.azure.com",
        version: "v1beta1",
        kind: "AKSNodeClass",
    }];
    let mut observed = Observed::of(Settings::default(), AZURE).await;
    let (api_version, kind) = ("karpenter.azure.com/v1beta1", "AKSNodeClass");
    observed.apply_class(api_version, kind, json!([])).await;
    let ready = condition("ImagesReady", "True", "ImagesReady", "", "2026-11-16T10:00:07Z");
    observed.apply_class(api_version, kind, json!([ready])).await;
    assert_eq!(
        observed.shown(
            "operator_aksnodeclass_status_condition_transition_seconds_sum",
            MetricsProfile::Minimal
        ),
        [
            r#"operator_aksnodeclass_status_condition_transition_seconds_sum{status="Unknown",to_status="True",type="ImagesReady"} 7"#
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn removed_finalizers_are_told_and_the_end_of_an_object_is_timed() {
    let mut observed = Observed::new(Settings::default()).await;
    let deleting = Some("2026-11-16T10:00:00Z");
    observed
        .apply::<NodeClaim>(claim(&json!([]), deleting, &["a", "b"]))
        .await;
    observed.apply::<NodeClaim>(claim(&json!([]), deleting, &["b"])).await;
    tokio::time::advance(Duration::from_secs(5)).await;
    observed.delete::<NodeClaim>("c").await;
    let finalized = |name: &str| ("Finalized".to_owned(), format!("Finalized {name}"));
    assert_eq!(observed.told(), [finalized("a"), finalized("b")]);
    let counts = observed.shown(
        "operator_nodeclaim_termination_duration_seconds_bucket",
        MetricsProfile::Minimal,
    );
    let at = |le: &str| {
        counts
            .iter()
            .find(|line| line.contains(&format!("le=\"{le}\"")))
            .unwrap()
            .ends_with(" 1")
    };
    assert_eq!((at("4"), at("8")), (false, true));
}

#[tokio::test(start_paused = true)]
async fn buffers_are_followed_only_with_their_feature_gate() {
    for (gate, events) in [(false, 0), (true, 1)] {
        let mut settings = Settings::default();
        settings.decisions.feature_gates.capacity_buffer = gate;
        let mut observed = Observed::new(settings).await;
        for status in ["False", "True"] {
            let conditions = json!([condition("Provisioning", status, "R", "M", BEGIN)]);
            let buffer = json!({"metadata": {"name": "b", "namespace": "ns"}, "status": {"conditions": conditions}});
            observed.apply::<CapacityBuffer>(buffer).await;
        }
        let told = observed.told();
        assert_eq!(told.len(), events);
        for (_, message) in told {
            assert_eq!(
                message,
                "Status condition transitioned, Type: Provisioning, Status: False -> True, Reason: R, Message: M"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_are_shown_with_the_providers_labels_and_what_their_pods_ask_for() {
    let mut observed = Observed::new(Settings::default()).await;
    let node = json!({
        "metadata": {"name": "n", "labels": {"karpenter.sh/nodepool": "p", "topology.kubernetes.io/zone": "z",
            "karpenter.kwok.sh/instance-cpu": "4", "karpenter.sh/initialized": "true"}},
        "spec": {"providerID": "x"},
        "status": {"capacity": {"cpu": "4", "memory": "1Gi"}, "allocatable": {"cpu": "3900m", "memory": "1Gi"}},
    });
    observed.apply::<Node>(node).await;
    observed.apply::<NodeClaim>(claim(&json!([]), None, &[])).await;
    let pod = |name: &str, phase: &str, owner: &str| {
        json!({
            "metadata": {"name": name, "namespace": "ns", "ownerReferences": [{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "u"}]},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1300m"}, "limits": {"memory": "256Mi"}}}]},
            "status": {"phase": phase},
        })
    };
    observed.apply::<Pod>(pod("a", "Running", "ReplicaSet")).await;
    observed.apply::<Pod>(pod("b", "Running", "DaemonSet")).await;
    observed.apply::<Pod>(pod("ended", "Succeeded", "ReplicaSet")).await;
    let shown = |family: &str, resource: &str| {
        let lines = observed.shown(&format!("karpenter_nodes_{family}{{"), MetricsProfile::Standard);
        let line = lines
            .iter()
            .find(|line| line.contains(&format!("resource_type=\"{resource}\"")));
        line.map(|line| line.rsplit_once(' ').unwrap().1.to_owned())
    };
    let cases = [
        ("allocatable", "cpu", Some("3.9")),
        ("system_overhead", "cpu", Some("0.1")),
        ("system_overhead", "memory", Some("0")),
        ("total_pod_requests", "cpu", Some("2.6")),
        ("total_pod_requests", "pods", Some("2")),
        ("total_pod_requests", "memory", None),
        ("total_pod_limits", "memory", Some("5.36870912e+08")),
        ("total_daemon_requests", "cpu", Some("1.3")),
        ("total_daemon_limits", "pods", Some("1")),
    ];
    for (family, resource, expected) in cases {
        assert_eq!(shown(family, resource).as_deref(), expected, "{family} {resource}");
    }
    let lifetime = observed.shown("karpenter_nodes_current_lifetime_seconds{", MetricsProfile::Standard);
    let labels = r#"{arch="",capacity_type="",instance_cpu="4",instance_type="",managed="true",node_name="n",nodepool="p",os="",phase="",region="",windows_build="",zone="z"}"#;
    assert!(
        lifetime[0].starts_with(&format!("karpenter_nodes_current_lifetime_seconds{labels} ")),
        "{lifetime:?}"
    );
    let used = observed.shown("karpenter_cluster_utilization_percent{", MetricsProfile::Minimal);
    assert_eq!(
        used,
        [
            format!(
                "karpenter_cluster_utilization_percent{{resource_type=\"cpu\"}} {}",
                100.0 * 2.6 / 3.9
            ),
            "karpenter_cluster_utilization_percent{resource_type=\"memory\"} 0".to_owned(),
        ]
    );
    assert_eq!(
        observed.shown("karpenter_nodes_allocatable", MetricsProfile::Minimal),
        Vec::<String>::new()
    );
    assert_eq!(
        observed.shown("karpenter_cluster_state_node_count", MetricsProfile::Minimal),
        ["karpenter_cluster_state_node_count 1"]
    );
}

#[tokio::test(start_paused = true)]
async fn pools_show_limits_usage_and_what_their_claims_cost() {
    let mut observed = Observed::new(Settings::default()).await;
    let pool = |name: &str, class: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {"limits": {"cpu": "1500m"}, "template": {"spec": {"nodeClassRef": {"group": "karpenter.kwok.sh", "kind": class, "name": "k"}}}},
            "status": {"resources": {"ephemeral-storage": "2Ki"}},
        })
    };
    observed.apply::<NodePool>(pool("p", "KWOKNodeClass")).await;
    observed.apply::<NodePool>(pool("others", "EC2NodeClass")).await;
    let mut labelled = claim(&json!([]), None, &[]);
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "t"),
        ("topology.kubernetes.io/zone", "z"),
        ("karpenter.sh/capacity-type", "spot"),
    ] {
        labelled["metadata"]["labels"][key] = json!(value);
    }
    observed.apply::<NodeClaim>(labelled).await;
    let offering = |capacity: &str, price: &str| {
        json!({"price": price.parse::<f64>().unwrap(), "available": true, "requirements": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]}]})
    };
    let kind = json!({"name": "t", "offerings": [offering("on-demand", "3.5"), offering("spot", "1.25")]});
    let kind: CatalogType = serde_json::from_value(kind).unwrap();
    observed.cluster.fold(|state| {
        state.set_catalog(model::snapshot::Catalog {
            instance_types: vec![Arc::new(kind)],
            ..Default::default()
        });
        None
    });
    assert_eq!(
        observed.shown("karpenter_nodepools_", MetricsProfile::Minimal),
        [
            r#"karpenter_nodepools_cost_total{nodepool="p"} 1.25"#,
            r#"karpenter_nodepools_limit{nodepool="p",resource_type="cpu"} 1.5"#,
            r#"karpenter_nodepools_usage{nodepool="p",resource_type="ephemeral_storage"} 2048"#,
        ]
    );
}

fn pod(phase: &str, conditions: &Value, node: Option<&str>) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "ns", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u"}]},
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": phase, "conditions": conditions},
    })
}

#[tokio::test(start_paused = true)]
async fn a_pods_waiting_is_shown_while_it_lasts_and_measured_when_it_ends() {
    let mut observed = Observed::new(Settings::default()).await;
    let key = model::object::ObjectKey::new("ns", "web");
    observed.apply::<Pod>(pod("Pending", &json!([]), None)).await;
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    observed.cluster.fold(|state| {
        state.acknowledge_pod(&key, at("2026-11-16T10:00:01Z"));
        None
    });
    tokio::time::advance(Duration::from_secs(5)).await;
    let named = r#"{name="web",namespace="ns"}"#;
    let classed = r#"{dynamic_resources="false",name="web",namespace="ns"}"#;
    let waits = |observed: &Observed| -> Vec<String> {
        let lines = observed.shown("karpenter_pods_", MetricsProfile::Standard);
        let gauges = lines.into_iter().filter(|line| line.contains("_time_seconds"));
        gauges
            .map(|line| {
                line.trim_start_matches("karpenter_pods_")
                    .split('.')
                    .next()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    };
    assert_eq!(
        waits(&observed),
        [
            format!("provisioning_scheduling_undecided_time_seconds{named} 4"),
            format!("unbound_time_seconds{classed} 5"),
            format!("unstarted_time_seconds{named} 5"),
        ]
    );
    observed.cluster.fold(|state| {
        state.mark_schedulable(&key, None, at("2026-11-16T10:00:02Z"));
        None
    });
    assert_eq!(
        waits(&observed),
        [
            format!("provisioning_unbound_time_seconds{classed} 3"),
            format!("provisioning_unstarted_time_seconds{named} 3"),
            format!("unbound_time_seconds{classed} 5"),
            format!("unstarted_time_seconds{named} 5"),
        ]
    );
    let scheduled = condition("PodScheduled", "True", "", "", "2026-11-16T10:00:10Z");
    observed
        .apply::<Pod>(pod("Running", &json!([scheduled]), Some("n")))
        .await;
    assert_eq!(waits(&observed).len(), 2, "bound, but not started");
    let ready = condition("Ready", "True", "", "", "2026-11-16T10:00:12Z");
    observed
        .apply::<Pod>(pod("Running", &json!([scheduled, ready]), Some("n")))
        .await;
    assert_eq!(waits(&observed), Vec::<String>::new());
    let sums: Vec<String> = observed
        .shown("karpenter_pods_", MetricsProfile::Minimal)
        .into_iter()
        .filter(|line| line.contains("_sum"))
        .collect();
    assert_eq!(
        sums,
        [
            r#"karpenter_pods_bound_duration_seconds_sum{dynamic_resources="false"} 10"#,
            r#"karpenter_pods_provisioning_bound_duration_seconds_sum{dynamic_resources="false"} 8"#,
            "karpenter_pods_provisioning_startup_duration_seconds_sum 10",
            "karpenter_pods_startup_duration_seconds_sum 12",
        ]
    );
    let times = observed.cluster.look(|state| state.pod_times(&key));
    assert_eq!(times, state::PodTimes::default(), "forgotten once it runs");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_never_seen_waiting_is_not_measured() {
    let mut observed = Observed::new(Settings::default()).await;
    let ready = condition("Ready", "True", "", "", "2026-11-16T10:00:12Z");
    observed.apply::<Pod>(pod("Running", &json!([ready]), Some("n"))).await;
    assert_eq!(
        observed.shown("karpenter_pods_startup", MetricsProfile::Full),
        Vec::<String>::new()
    );
}

#[tokio::test(start_paused = true)]
async fn the_state_of_pods_is_shown_with_that_of_their_nodes() {
    let mut observed = Observed::new(Settings::default()).await;
    let labels = json!({"karpenter.sh/nodepool": "p", "kubernetes.io/arch": "arm64", "karpenter.sh/capacity-type": "spot",
        "topology.kubernetes.io/zone": "z", "node.kubernetes.io/instance-type": "t"});
    observed
        .apply::<Node>(json!({"metadata": {"name": "n", "labels": labels}}))
        .await;
    let ready = condition("Ready", "True", "", "", BEGIN);
    observed.apply::<Pod>(pod("Running", &json!([ready]), Some("n"))).await;
    let expected = r#"karpenter_pods_state{arch="arm64",capacity_type="spot",instance_type="t",managed="true",name="web",namespace="ns",node="n",nodepool="p",owner="/apis/apps/v1/namespaces/ns/replicasets/web-1",phase="Running",ready="true",scheduled="true",zone="z"} 1"#;
    assert_eq!(
        observed.shown("karpenter_pods_state{", MetricsProfile::Standard),
        [expected]
    );
    assert_eq!(
        observed.shown("karpenter_pods_state", MetricsProfile::Minimal),
        Vec::<String>::new()
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_there_before_is_counted_but_not_told() {
    let mut observed = Observed::new(Settings::default()).await;
    observed.observing.abort();
    observed.settle().await;
    let ready = json!([condition("Ready", "True", "Ready", "", BEGIN)]);
    observed.apply::<NodeClaim>(claim(&ready, None, &["f"])).await;
    observed.apply::<Pod>(pod("Pending", &json!([]), None)).await;
    assert_eq!(
        observed.shown("operator_", MetricsProfile::Full),
        Vec::<String>::new(),
        "nobody observes"
    );
    let _again = tokio::spawn(run(Arc::clone(&observed.cluster)));
    observed.settle().await;
    let counted = observed.shown(
        "operator_nodeclaim_status_condition_transitions_total",
        MetricsProfile::Minimal,
    );
    assert_eq!(counted.len(), 1);
    assert_eq!(
        observed
            .shown("karpenter_pods_unstarted_time_seconds{", MetricsProfile::Standard)
            .len(),
        1
    );
    assert_eq!(observed.told(), []);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shown_or_told_when_observability_is_switched_off() {
    let settings = Settings {
        disable_cluster_state_observability: true,
        ..Settings::default()
    };
    let mut observed = Observed::new(settings).await;
    observed.apply::<NodeClaim>(claim(&json!([]), None, &["a"])).await;
    observed.apply::<NodeClaim>(claim(&json!([]), None, &[])).await;
    assert_eq!(observed.told(), []);
    for prefix in ["operator_", "karpenter_pods_", "karpenter_nodes_", "karpenter_cluster_"] {
        assert_eq!(observed.shown(prefix, MetricsProfile::Full), Vec::<String>::new());
    }
}

/// A controller that never comes to an end with anything.
struct Stuck;

#[async_trait]
impl crate::Controller for Stuck {
    type Key = &'static str;

    fn name(&self) -> &'static str {
        "stuck"
    }

    fn workers(&self, _: &Settings) -> usize {
        2
    }

    fn concerns(&self, _: &Change, _: &State) -> Vec<&'static str> {
        Vec::new()
    }

    async fn reconcile(&self, _: &Cluster, _: &&'static str) -> Result<crate::Next, crate::Problem> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_hangs_is_shown_while_it_hangs() {
    let observed = Observed::new(Settings::default()).await;
    let (queue, work) = crate::run(Arc::new(Stuck), Arc::clone(&observed.cluster));
    let working = tokio::spawn(work);
    queue.add("a");
    tokio::time::sleep(Duration::from_secs(2)).await;
    queue.add("b");
    queue.add("c");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let labels = r#"controller="stuck",name="stuck""#;
    let stuck = |observed: &Observed| {
        let lines = observed.shown("workqueue_", MetricsProfile::Minimal).into_iter();
        let is_now = |line: &String| {
            let kinds = ["depth", "unfinished", "longest"];
            line.contains(labels) && kinds.iter().any(|kind| line.contains(kind))
        };
        lines.filter(is_now).collect::<Vec<_>>()
    };
    assert_eq!(
        stuck(&observed),
        [
            format!(r#"workqueue_depth{{{labels},priority=""}} 1"#),
            format!("workqueue_longest_running_processor_seconds{{{labels}}} 5"),
            format!("workqueue_unfinished_work_seconds{{{labels}}} 8"),
        ]
    );
    working.abort();
    observed.settle().await;
    assert_eq!(stuck(&observed), Vec::<String>::new(), "nobody works");
}
