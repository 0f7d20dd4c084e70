//! What Karpenter v1.15.0 (`k8s.io/component-helpers` v0.35.0) counts for 150 random pods, replayed, and the rules by name.

use serde::Deserialize;

use super::{ContainerResources, PodResources, StatusResources, requests_defaulted_to_limits, total_requests};
use crate::resources::ResourceList;

const FACTS: &str = include_str!("facts.jsonl");

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Pod {
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    requests: ResourceList,
    limits: ResourceList,
    overhead: ResourceList,
    infeasible: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    requests: ResourceList,
    limits: ResourceList,
    sidecar: bool,
    status: Option<Status>,
}

#[derive(Debug, Deserialize)]
struct Status {
    requests: ResourceList,
    allocated: ResourceList,
}

impl Container {
    fn view(&self) -> ContainerResources<'_> {
        let status = self.status.as_ref();
        ContainerResources {
            requests: &self.requests,
            limits: &self.limits,
            is_sidecar: self.sidecar,
            status: status.map(|status| StatusResources {
                requests: &status.requests,
                allocated: &status.allocated,
            }),
        }
    }
}

impl Pod {
    fn view(&self) -> PodResources<'_> {
        PodResources {
            containers: self.containers.iter().map(Container::view).collect(),
            init_containers: self.init_containers.iter().map(Container::view).collect(),
            pod_level_requests: &self.requests,
            pod_level_limits: &self.limits,
            overhead: &self.overhead,
            is_resize_infeasible: self.infeasible,
        }
    }
}

fn list(json: &str) -> ResourceList {
    serde_json::from_str(json).unwrap()
}

fn requests(json: &str) -> ResourceList {
    serde_json::from_str::<Pod>(json).unwrap().view().requests()
}

#[test]
fn random_pods_take_what_the_reference_says() {
    assert_eq!(FACTS.lines().count(), 150);
    for line in FACTS.lines() {
        let (pod, requests, limits): (Pod, ResourceList, ResourceList) = serde_json::from_str(line).unwrap();
        assert_eq!(
            (pod.view().requests(), pod.view().limits()),
            (requests, limits),
            "{line}"
        );
    }
}

#[test]
fn init_containers_run_one_after_the_other_beside_earlier_sidecars() {
    let pod = r#"{
        "containers": [{"requests": {"cpu": "1"}}, {"requests": {"cpu": "1"}}],
        "initContainers": [
            {"requests": {"cpu": "3"}},
            {"requests": {"cpu": "2"}, "sidecar": true},
            {"requests": {"cpu": "4"}}
        ]
    }"#;
    // Containers and sidecar take 4, but the last init container runs beside the sidecar: 4 + 2.
    assert_eq!(requests(pod), list(r#"{"cpu":"6"}"#));
}

#[test]
fn pod_level_requests_replace_the_sum_for_cpu_memory_and_huge_pages_only() {
    let pod = r#"{
        "containers": [{"requests": {"cpu": "1", "gpu": "1"}}],
        "requests": {"cpu": "2", "memory": "1Gi", "hugepages-2Mi": "4Mi", "gpu": "5"},
        "overhead": {"cpu": "100m"}
    }"#;
    assert_eq!(
        requests(pod),
        list(r#"{"cpu":"2100m","memory":"1Gi","hugepages-2Mi":"4Mi","gpu":"1"}"#)
    );
}

#[test]
fn resize_counts_the_largest_of_wanted_granted_and_in_force_unless_it_is_infeasible() {
    let pod = |infeasible: bool| {
        format!(
            r#"{{"infeasible": {infeasible}, "containers": [{{
                "requests": {{"cpu": "4", "memory": "1Gi"}},
                "status": {{"requests": {{"cpu": "2", "memory": "2Gi"}}, "allocated": {{"cpu": "3"}}}}
            }}]}}"#
        )
    };
    assert_eq!(requests(&pod(false)), list(r#"{"cpu":"4","memory":"2Gi"}"#));
    assert_eq!(requests(&pod(true)), list(r#"{"cpu":"3","memory":"2Gi"}"#));
}

#[test]
fn several_pods_sum_up_and_are_counted() {
    let (a, b) = (list(r#"{"cpu":"1"}"#), list(r#"{"cpu":"500m","memory":"1Gi"}"#));
    assert_eq!(
        total_requests([&a, &b]),
        list(r#"{"cpu":"1500m","memory":"1Gi","pods":"2"}"#)
    );
    assert_eq!(total_requests([]), list(r#"{"pods":"0"}"#));
}

#[test]
fn limits_stand_in_for_missing_requests_only() {
    let (requested, limits) = (list(r#"{"cpu":"0"}"#), list(r#"{"cpu":"1","memory":"1Gi"}"#));
    assert_eq!(
        requests_defaulted_to_limits(&requested, &limits),
        list(r#"{"cpu":"0","memory":"1Gi"}"#)
    );
}
