//! What we count, by upstream's names and labels, so that its dashboards go on working.

mod family;

pub use family::{Counter, Gauge, Histogram, Summary};

/// Durations in seconds.
pub const DURATION: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    150.0, 300.0, 450.0, 600.0,
];
/// Powers of two from 1 to 1024.
const TERMINATION: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
/// Powers of two from 1 to 2048.
const CLAIM_TERMINATION: &[f64] = &[
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0,
];
const REBOOT: &[f64] = &[10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0];
/// 15 minutes to 30 days.
const LIFETIME: &[f64] = &[
    900.0,
    1800.0,
    2700.0,
    3600.0,
    7200.0,
    14400.0,
    21600.0,
    28800.0,
    36000.0,
    43200.0,
    57600.0,
    72000.0,
    86400.0,
    172_800.0,
    259_200.0,
    432_000.0,
    864_000.0,
    1_296_000.0,
    1_728_000.0,
    2_160_000.0,
    2_592_000.0,
];
const SCORE: &[f64] = &[0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0];
/// Prometheus' own.
const DEFAULT: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

macro_rules! families {
    ($($kind:ident $field:ident = $name:literal [$($label:literal),*] $(($buckets:expr))? $help:literal;)*) => {
        /// Every metric of the controllers.
        #[derive(Debug)]
        pub struct Metrics {
            $(#[doc = $help] pub $field: $kind<{ <[&str]>::len(&[$($label),*]) }>,)*
        }

        impl Default for Metrics {
            fn default() -> Self {
                Self {
                    $($field: $kind::new($name, $help, [$($label),*] $(, $buckets)?),)*
                }
            }
        }
    };
}

families! {
    Counter nodeclaims_created_total = "karpenter_nodeclaims_created_total" ["reason", "nodepool", "min_values_relaxed"] "Number of nodeclaims created in total by Karpenter.";
    Counter nodeclaims_terminated_total = "karpenter_nodeclaims_terminated_total" ["nodepool", "capacity_type", "zone"] "Number of nodeclaims terminated in total by Karpenter.";
    Counter nodeclaims_disrupted_total = "karpenter_nodeclaims_disrupted_total" ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"] "Number of nodeclaims disrupted in total by Karpenter.";
    Counter pods_disruption_initiated_total = "karpenter_pods_disruption_initiated_total" ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"] "Number of pods whose disruption Karpenter began.";
    Histogram nodeclaims_instance_termination_duration_seconds = "karpenter_nodeclaims_instance_termination_duration_seconds" ["nodepool"] (TERMINATION) "Duration of instance termination in seconds.";
    Histogram nodeclaims_termination_duration_seconds = "karpenter_nodeclaims_termination_duration_seconds" ["nodepool"] (CLAIM_TERMINATION) "Duration of nodeclaim termination in seconds.";
    Counter nodeclaims_unhealthy_disrupted_total = "karpenter_nodeclaims_unhealthy_disrupted_total" ["condition", "nodepool", "capacity_type", "image_id", "termination_mode"] "Number of unhealthy nodeclaims disrupted.";
    Counter nodes_created_total = "karpenter_nodes_created_total" ["nodepool", "zone"] "Number of nodes that registered.";
    Counter nodes_terminated_total = "karpenter_nodes_terminated_total" ["nodepool", "zone"] "Number of nodes terminated.";
    Counter nodes_drained_total = "karpenter_nodes_drained_total" ["nodepool"] "Number of nodes drained.";
    Counter nodes_reboots_total = "karpenter_nodes_reboots_total" ["result"] "Number of reboots by how they ended.";
    Histogram nodes_reboot_duration_seconds = "karpenter_nodes_reboot_duration_seconds" ["result"] (REBOOT) "From the request of a reboot to its end.";
    Histogram nodes_reboot_recovery_duration_seconds = "karpenter_nodes_reboot_recovery_duration_seconds" [] (REBOOT) "From the reboot to the node's return.";
    Summary nodes_termination_duration_seconds = "karpenter_nodes_termination_duration_seconds" ["nodepool"] "The time taken between a node's deletion request and the removal of its finalizer.";
    Histogram nodes_lifetime_duration_seconds = "karpenter_nodes_lifetime_duration_seconds" ["nodepool"] (LIFETIME) "The lifetime of nodes at their termination.";
    Gauge cluster_utilization_percent = "karpenter_cluster_utilization_percent" ["resource_type"] "Utilization of allocatable resources by pod requests.";
    Gauge nodepools_limit = "karpenter_nodepools_limit" ["resource_type", "nodepool"] "Limits specified on the nodepool.";
    Gauge nodepools_usage = "karpenter_nodepools_usage" ["resource_type", "nodepool"] "The amount of resources that have been provisioned for a nodepool.";
    Gauge nodepools_cost_total = "karpenter_nodepools_cost_total" ["nodepool"] "Price per hour of the nodepool's nodes.";
    Counter nodepools_cost_tracker_errors_total = "karpenter_nodepools_cost_tracker_errors_total" ["nodepool"] "Nodes whose price could not be told.";
    Gauge nodepools_allowed_disruptions = "karpenter_nodepools_allowed_disruptions" ["nodepool", "reason"] "The number of nodes for a given nodepool that can be concurrently disrupting at a point in time.";
    Gauge nodepools_nodes_consuming_budgets = "karpenter_nodepools_nodes_consuming_budgets" ["nodepool", "reason"] "The number of nodes of a nodepool that consume its budgets.";
    Gauge pods_state = "karpenter_pods_state" ["name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch", "capacity_type", "instance_type", "phase", "ready", "managed"] "Pod state is the current state of pods.";
    Summary pods_startup_duration_seconds = "karpenter_pods_startup_duration_seconds" [] "The time from pod creation until the pod is running.";
    Gauge pods_unstarted_time_seconds = "karpenter_pods_unstarted_time_seconds" ["name", "namespace"] "The time from pod creation for pods that do not run yet.";
    Histogram pods_bound_duration_seconds = "karpenter_pods_bound_duration_seconds" ["dynamic_resources"] (DURATION) "The time from pod creation until the pod is bound.";
    Gauge pods_unbound_time_seconds = "karpenter_pods_unbound_time_seconds" ["name", "namespace", "dynamic_resources"] "The time from pod creation for pods that are not bound yet.";
    Histogram pods_provisioning_bound_duration_seconds = "karpenter_pods_provisioning_bound_duration_seconds" ["dynamic_resources"] (DURATION) "The time from when Karpenter first thinks the pod can schedule until it binds.";
    Histogram pods_provisioning_startup_duration_seconds = "karpenter_pods_provisioning_startup_duration_seconds" [] (DURATION) "The time from when Karpenter first thinks the pod can schedule until it runs.";
    Gauge pods_provisioning_unbound_time_seconds = "karpenter_pods_provisioning_unbound_time_seconds" ["name", "namespace", "dynamic_resources"] "The time from when Karpenter first thinks the pod can schedule, for pods not bound yet.";
    Gauge pods_provisioning_unstarted_time_seconds = "karpenter_pods_provisioning_unstarted_time_seconds" ["name", "namespace"] "The time from when Karpenter first thinks the pod can schedule, for pods that do not run yet.";
    Gauge pods_provisioning_scheduling_undecided_time_seconds = "karpenter_pods_provisioning_scheduling_undecided_time_seconds" ["name", "namespace"] "The time since Karpenter saw a pod on which it has not decided yet.";
    Histogram pods_scheduling_decision_duration_seconds = "karpenter_pods_scheduling_decision_duration_seconds" [] (DURATION) "The time it takes for Karpenter to first try to schedule a pod after it's been seen.";
    Counter pods_eviction_requests_total = "karpenter_pods_eviction_requests_total" ["code"] "Number of eviction requests by their answer.";
    Counter pods_drained_total = "karpenter_pods_drained_total" ["reason"] "Number of pods evicted or deleted for draining.";
    Gauge pod_deletion_cost_nodes_with_pending_annotation_writes = "karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes" ["nodepool"] "Nodes whose pods' deletion cost is yet to be written.";
    Counter pod_deletion_cost_pod_annotation_writes_total = "karpenter_pod_deletion_cost_pod_annotation_writes_total" ["result"] "Writes of pods' deletion cost.";
    Histogram scheduler_scheduling_duration_seconds = "karpenter_scheduler_scheduling_duration_seconds" ["controller"] (DURATION) "Duration of scheduling simulations used for deprovisioning and provisioning in seconds.";
    Gauge scheduler_queue_depth = "karpenter_scheduler_queue_depth" ["controller", "scheduling_id"] "The number of pods currently waiting to be scheduled.";
    Gauge scheduler_unfinished_work_seconds = "karpenter_scheduler_unfinished_work_seconds" ["controller", "scheduling_id"] "How many seconds of work has been done that is in progress.";
    Gauge scheduler_ignored_pods_count = "karpenter_scheduler_ignored_pods_count" [] "Number of pods ignored during scheduling by Karpenter.";
    Gauge scheduler_unschedulable_pods_count = "karpenter_scheduler_unschedulable_pods_count" ["controller"] "The number of unschedulable pods.";
    Gauge scheduler_pending_pods_by_effective_zone_count = "karpenter_scheduler_pending_pods_by_effective_zone_count" ["controller", "zone"] "Pending pods by the zone they are bound to.";
    Gauge cluster_state_node_count = "karpenter_cluster_state_node_count" [] "Current count of nodes in cluster state.";
    Gauge cluster_state_synced = "karpenter_cluster_state_synced" [] "Returns 1 if cluster state is synced and 0 otherwise.";
    Gauge cluster_state_unsynced_time_seconds = "karpenter_cluster_state_unsynced_time_seconds" [] "The time for which cluster state is not synced.";
    Histogram voluntary_disruption_decision_evaluation_duration_seconds = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds" ["reason", "consolidation_type"] (DURATION) "Duration of the disruption decision evaluation process in seconds.";
    Counter voluntary_disruption_decisions_total = "karpenter_voluntary_disruption_decisions_total" ["decision", "reason", "consolidation_type"] "Number of disruption decisions performed.";
    Counter voluntary_disruption_decisions_by_nodepool_total = "karpenter_voluntary_disruption_decisions_by_nodepool_total" ["nodepool", "decision", "reason", "consolidation_type"] "Number of disruption decisions performed by nodepool.";
    Counter voluntary_disruption_terminate_first_decisions_total = "karpenter_voluntary_disruption_terminate_first_decisions_total" ["nodepool", "reason", "terminate_first_reason"] "Number of decisions to terminate before replacing.";
    Gauge voluntary_disruption_eligible_nodes = "karpenter_voluntary_disruption_eligible_nodes" ["reason"] "Number of nodes eligible for disruption by Karpenter.";
    Counter voluntary_disruption_consolidation_timeouts_total = "karpenter_voluntary_disruption_consolidation_timeouts_total" ["consolidation_type"] "Number of times the Consolidation algorithm has reached a timeout.";
    Counter voluntary_disruption_failed_validations_total = "karpenter_voluntary_disruption_failed_validations_total" ["consolidation_type"] "Number of candidates that were selected for disruption but then failed validation.";
    Counter voluntary_disruption_queue_failures_total = "karpenter_voluntary_disruption_queue_failures_total" ["decision", "reason", "consolidation_type"] "The number of times that an enqueued disruption decision failed.";
    Histogram consolidation_score = "karpenter_consolidation_score" ["decision", "nodepool", "policy"] (SCORE) "Scores of consolidation moves.";
    Counter consolidation_moves_total = "karpenter_consolidation_moves_total" ["decision", "nodepool", "policy"] "Consolidation moves judged.";
    Histogram cloudprovider_duration_seconds = "karpenter_cloudprovider_duration_seconds" ["controller", "method", "provider"] (DEFAULT) "Duration of cloud provider method calls.";
    Counter cloudprovider_errors_total = "karpenter_cloudprovider_errors_total" ["controller", "method", "provider", "error", "nodepool"] "Total number of errors returned from CloudProvider calls.";
    Counter controller_runtime_reconcile_total = "controller_runtime_reconcile_total" ["controller", "result"] "Total number of reconciliations per controller.";
    Counter controller_runtime_reconcile_errors_total = "controller_runtime_reconcile_errors_total" ["controller"] "Total number of reconciliation errors per controller.";
    Histogram controller_runtime_reconcile_time_seconds = "controller_runtime_reconcile_time_seconds" ["controller"] (DURATION) "Length of time per reconciliation per controller.";
    Gauge controller_runtime_active_workers = "controller_runtime_active_workers" ["controller"] "Number of currently used workers per controller.";
    Gauge controller_runtime_max_concurrent_reconciles = "controller_runtime_max_concurrent_reconciles" ["controller"] "Maximum number of concurrent reconciles per controller.";
    Gauge workqueue_depth = "workqueue_depth" ["controller", "name"] "Current depth of the workqueue.";
    Gauge leader_election_master_status = "leader_election_master_status" ["name"] "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.";
}
