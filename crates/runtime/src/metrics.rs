//! What we count, by upstream's names and labels, so that its dashboards go on working.
//!
//! Three sorts of families: those kept here ([`Counter`], [`Gauge`], [`Histogram`], [`Summary`]), those drawn from the
//! state when somebody asks ([`Drawn`], and whatever a [`Source`] adds), and what the process itself costs.

mod buckets;
mod family;
mod observations;
mod offerings;
mod page;
mod process;
mod quantiles;
mod text;

use std::sync::{Arc, Mutex, PoisonError, Weak};

pub use buckets::{DEFAULT, DURATION, TRANSITION};
pub use family::{About, Counter, Drawn, Family, Gauge, Histogram, Kind, Shown, Summary};
pub use observations::Observations;
pub use page::{Draw, Page, Sheet, Source};

use crate::settings::MetricsProfile;

macro_rules! families {
    ($($profile:ident $kind:ident $field:ident = $name:literal [$($label:literal),*] $(($buckets:expr))? $help:literal;)*) => {
        /// Every metric of the controllers.
        pub struct Metrics {
            $(#[doc = $help] pub $field: $kind<{ <[&str]>::len(&[$($label),*]) }>,)*
            sources: Mutex<Vec<Weak<dyn Source>>>,
        }

        impl Metrics {
            fn new() -> Self {
                Self {
                    $($field: $kind::new($name, $help, [$($label),*], MetricsProfile::$profile $(, $buckets)?),)*
                    sources: Mutex::default(),
                }
            }

            /// Every family that has its place here, whether it has something to show or not.
            pub fn families(&self) -> Vec<About> {
                let own = [$(self.$field.about().clone(),)*];
                own.into_iter().chain(process::families()).collect()
            }

            fn kept(&self) -> Vec<Sheet> {
                [$(self.$field.sheet(),)*].into_iter().flatten().collect()
            }
        }
    };
}

families! {
    Minimal Gauge build_info = "karpenter_build_info" ["version", "goversion", "goarch", "commit"] "A metric with a constant '1' value labeled by version from which karpenter was built.";
    Minimal Counter nodeclaims_created_total = "karpenter_nodeclaims_created_total" ["reason", "nodepool", "min_values_relaxed"] "Number of nodeclaims created in total by Karpenter.";
    Minimal Counter nodeclaims_terminated_total = "karpenter_nodeclaims_terminated_total" ["nodepool", "capacity_type", "zone"] "Number of nodeclaims terminated in total by Karpenter.";
    Minimal Counter nodeclaims_disrupted_total = "karpenter_nodeclaims_disrupted_total" ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"] "Number of nodeclaims disrupted in total by Karpenter.";
    Minimal Counter pods_disruption_initiated_total = "karpenter_pods_disruption_initiated_total" ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"] "Number of pods whose disruption Karpenter began.";
    Minimal Histogram nodeclaims_instance_termination_duration_seconds = "karpenter_nodeclaims_instance_termination_duration_seconds" ["nodepool"] (buckets::TERMINATION) "Duration of instance termination in seconds.";
    Minimal Histogram nodeclaims_termination_duration_seconds = "karpenter_nodeclaims_termination_duration_seconds" ["nodepool"] (buckets::CLAIM_TERMINATION) "Duration of nodeclaim termination in seconds.";
    Minimal Counter nodeclaims_unhealthy_disrupted_total = "karpenter_nodeclaims_unhealthy_disrupted_total" ["condition", "nodepool", "capacity_type", "image_id", "termination_mode"] "Number of unhealthy nodeclaims disrupted.";
    Minimal Counter nodes_created_total = "karpenter_nodes_created_total" ["nodepool", "zone"] "Number of nodes that registered.";
    Minimal Counter nodes_terminated_total = "karpenter_nodes_terminated_total" ["nodepool", "zone"] "Number of nodes terminated.";
    Minimal Counter nodes_drained_total = "karpenter_nodes_drained_total" ["nodepool"] "Number of nodes drained.";
    Minimal Counter nodes_reboots_total = "karpenter_nodes_reboots_total" ["result"] "Number of reboots by how they ended.";
    Minimal Histogram nodes_reboot_duration_seconds = "karpenter_nodes_reboot_duration_seconds" ["result"] (buckets::REBOOT) "From the request of a reboot to its end.";
    Minimal Histogram nodes_reboot_recovery_duration_seconds = "karpenter_nodes_reboot_recovery_duration_seconds" [] (buckets::REBOOT) "From the reboot to the node's return.";
    Minimal Summary nodes_termination_duration_seconds = "karpenter_nodes_termination_duration_seconds" ["nodepool"] "The time taken between a node's deletion request and the removal of its finalizer.";
    Minimal Histogram nodes_lifetime_duration_seconds = "karpenter_nodes_lifetime_duration_seconds" ["nodepool"] (buckets::LIFETIME) "The lifetime of nodes at their termination.";
    Minimal Drawn cluster_utilization_percent = "karpenter_cluster_utilization_percent" ["resource_type"] "Utilization of allocatable resources by pod requests.";
    Minimal Drawn nodepools_limit = "karpenter_nodepools_limit" ["resource_type", "nodepool"] "Limits specified on the nodepool.";
    Minimal Drawn nodepools_usage = "karpenter_nodepools_usage" ["resource_type", "nodepool"] "The amount of resources that have been provisioned for a nodepool.";
    Minimal Drawn nodepools_cost_total = "karpenter_nodepools_cost_total" ["nodepool"] "Price per hour of the nodepool's nodes.";
    Minimal Counter nodepools_cost_tracker_errors_total = "karpenter_nodepools_cost_tracker_errors_total" ["nodepool"] "Nodes whose price could not be told.";
    Minimal Gauge nodepools_allowed_disruptions = "karpenter_nodepools_allowed_disruptions" ["nodepool", "reason"] "The number of nodes for a given nodepool that can be concurrently disrupting at a point in time.";
    Minimal Gauge nodepools_nodes_consuming_budgets = "karpenter_nodepools_nodes_consuming_budgets" ["nodepool", "reason"] "The number of nodes of a nodepool that consume its budgets.";
    Standard Drawn pods_state = "karpenter_pods_state" ["name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch", "capacity_type", "instance_type", "phase", "ready", "managed"] "Pod state is the current state of pods.";
    Minimal Summary pods_startup_duration_seconds = "karpenter_pods_startup_duration_seconds" [] "The time from pod creation until the pod is running.";
    Standard Drawn pods_unstarted_time_seconds = "karpenter_pods_unstarted_time_seconds" ["name", "namespace"] "The time from pod creation for pods that do not run yet.";
    Minimal Histogram pods_bound_duration_seconds = "karpenter_pods_bound_duration_seconds" ["dynamic_resources"] (buckets::DURATION) "The time from pod creation until the pod is bound.";
    Standard Drawn pods_unbound_time_seconds = "karpenter_pods_unbound_time_seconds" ["name", "namespace", "dynamic_resources"] "The time from pod creation for pods that are not bound yet.";
    Minimal Histogram pods_provisioning_bound_duration_seconds = "karpenter_pods_provisioning_bound_duration_seconds" ["dynamic_resources"] (buckets::DURATION) "The time from when Karpenter first thinks the pod can schedule until it binds.";
    Minimal Histogram pods_provisioning_startup_duration_seconds = "karpenter_pods_provisioning_startup_duration_seconds" [] (buckets::DURATION) "The time from when Karpenter first thinks the pod can schedule until it runs.";
    Standard Drawn pods_provisioning_unbound_time_seconds = "karpenter_pods_provisioning_unbound_time_seconds" ["name", "namespace", "dynamic_resources"] "The time from when Karpenter first thinks the pod can schedule, for pods not bound yet.";
    Standard Drawn pods_provisioning_unstarted_time_seconds = "karpenter_pods_provisioning_unstarted_time_seconds" ["name", "namespace"] "The time from when Karpenter first thinks the pod can schedule, for pods that do not run yet.";
    Standard Drawn pods_provisioning_scheduling_undecided_time_seconds = "karpenter_pods_provisioning_scheduling_undecided_time_seconds" ["name", "namespace"] "The time since Karpenter saw a pod on which it has not decided yet.";
    Minimal Histogram pods_scheduling_decision_duration_seconds = "karpenter_pods_scheduling_decision_duration_seconds" [] (buckets::DURATION) "The time it takes for Karpenter to first try to schedule a pod after it's been seen.";
    Minimal Counter pods_eviction_requests_total = "karpenter_pods_eviction_requests_total" ["code"] "Number of eviction requests by their answer.";
    Minimal Counter pods_drained_total = "karpenter_pods_drained_total" ["reason"] "Number of pods evicted or deleted for draining.";
    Minimal Gauge pod_deletion_cost_nodes_with_pending_annotation_writes = "karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes" ["nodepool"] "Nodes whose pods' deletion cost is yet to be written.";
    Minimal Counter pod_deletion_cost_pod_annotation_writes_total = "karpenter_pod_deletion_cost_pod_annotation_writes_total" ["result"] "Writes of pods' deletion cost.";
    Full Counter steering_pods_landed_total = "dovetail_steering_pods_landed_total" ["steering", "place"] "Pods planned onto a new node that were bound: planned when to that node, elsewhere when to another one.";
    Full Counter steering_writes_total = "dovetail_steering_writes_total" ["kind", "result"] "Nominations, their withdrawals and bindings that we wrote, by what came of them.";
    Minimal Histogram scheduler_scheduling_duration_seconds = "karpenter_scheduler_scheduling_duration_seconds" ["controller"] (buckets::DURATION) "Duration of scheduling simulations used for deprovisioning and provisioning in seconds.";
    Minimal Gauge scheduler_queue_depth = "karpenter_scheduler_queue_depth" ["controller", "scheduling_id"] "The number of pods currently waiting to be scheduled.";
    Minimal Gauge scheduler_unfinished_work_seconds = "karpenter_scheduler_unfinished_work_seconds" ["controller", "scheduling_id"] "How many seconds of work has been done that is in progress.";
    Minimal Gauge scheduler_ignored_pods_count = "karpenter_scheduler_ignored_pods_count" [] "Number of pods ignored during scheduling by Karpenter.";
    Minimal Gauge scheduler_unschedulable_pods_count = "karpenter_scheduler_unschedulable_pods_count" ["controller"] "The number of unschedulable pods.";
    Minimal Gauge scheduler_pending_pods_by_effective_zone_count = "karpenter_scheduler_pending_pods_by_effective_zone_count" ["controller", "zone"] "Pending pods by the zone they are bound to.";
    Minimal Drawn cluster_state_node_count = "karpenter_cluster_state_node_count" [] "Current count of nodes in cluster state.";
    Minimal Drawn cluster_state_synced = "karpenter_cluster_state_synced" [] "Returns 1 if cluster state is synced and 0 otherwise.";
    Minimal Drawn cluster_state_unsynced_time_seconds = "karpenter_cluster_state_unsynced_time_seconds" [] "The time for which cluster state is not synced.";
    Minimal Histogram voluntary_disruption_decision_evaluation_duration_seconds = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds" ["reason", "consolidation_type"] (buckets::DURATION) "Duration of the disruption decision evaluation process in seconds.";
    Minimal Counter voluntary_disruption_decisions_total = "karpenter_voluntary_disruption_decisions_total" ["decision", "reason", "consolidation_type"] "Number of disruption decisions performed.";
    Minimal Counter voluntary_disruption_decisions_by_nodepool_total = "karpenter_voluntary_disruption_decisions_by_nodepool_total" ["nodepool", "decision", "reason", "consolidation_type"] "Number of disruption decisions performed by nodepool.";
    Minimal Counter voluntary_disruption_terminate_first_decisions_total = "karpenter_voluntary_disruption_terminate_first_decisions_total" ["nodepool", "reason", "terminate_first_reason"] "Number of decisions to terminate before replacing.";
    Minimal Gauge voluntary_disruption_eligible_nodes = "karpenter_voluntary_disruption_eligible_nodes" ["reason"] "Number of nodes eligible for disruption by Karpenter.";
    Minimal Counter voluntary_disruption_consolidation_timeouts_total = "karpenter_voluntary_disruption_consolidation_timeouts_total" ["consolidation_type"] "Number of times the Consolidation algorithm has reached a timeout.";
    Minimal Counter voluntary_disruption_failed_validations_total = "karpenter_voluntary_disruption_failed_validations_total" ["consolidation_type"] "Number of candidates that were selected for disruption but then failed validation.";
    Minimal Counter voluntary_disruption_queue_failures_total = "karpenter_voluntary_disruption_queue_failures_total" ["decision", "reason", "consolidation_type"] "The number of times that an enqueued disruption decision failed.";
    Minimal Histogram consolidation_score = "karpenter_consolidation_score" ["decision", "nodepool", "policy"] (buckets::SCORE) "Scores of consolidation moves.";
    Minimal Counter consolidation_moves_total = "karpenter_consolidation_moves_total" ["decision", "nodepool", "policy"] "Consolidation moves judged.";
    Full Gauge disruption_oldest_unevaluated_candidate_seconds = "dovetail_disruption_oldest_unevaluated_candidate_seconds" [] "How long the consolidation candidate that waits longest has waited to be looked at.";
    Full Gauge disruption_paused_nodepools = "dovetail_disruption_paused_nodepools" [] "Number of nodepools of which people want nothing disrupted for now.";
    Minimal Counter interruption_received_messages_total = "karpenter_interruption_received_messages_total" ["message_type"] "Count of messages received from the cloud about its machines.";
    Minimal Counter interruption_deleted_messages_total = "karpenter_interruption_deleted_messages_total" [] "Count of messages from the cloud that were acted on.";
    Minimal Histogram interruption_message_queue_duration_seconds = "karpenter_interruption_message_queue_duration_seconds" [] (buckets::DURATION) "How long messages waited before they were acted on.";
    Minimal Histogram cloudprovider_duration_seconds = "karpenter_cloudprovider_duration_seconds" ["controller", "method", "provider"] (buckets::DEFAULT) "Duration of cloud provider method calls.";
    Minimal Counter cloudprovider_errors_total = "karpenter_cloudprovider_errors_total" ["controller", "method", "provider", "error", "nodepool"] "Total number of errors returned from CloudProvider calls.";
    Minimal Gauge cloudprovider_instance_type_cpu_cores = "karpenter_cloudprovider_instance_type_cpu_cores" ["instance_type"] "VCPUs cores for a given instance type.";
    Minimal Gauge cloudprovider_instance_type_memory_bytes = "karpenter_cloudprovider_instance_type_memory_bytes" ["instance_type"] "Memory, in bytes, for a given instance type.";
    Minimal Gauge cloudprovider_instance_type_offering_available = "karpenter_cloudprovider_instance_type_offering_available" ["instance_type", "capacity_type", "zone"] "Instance type offering availability, based on instance type, capacity type, and zone.";
    Minimal Gauge cloudprovider_instance_type_offering_price_estimate = "karpenter_cloudprovider_instance_type_offering_price_estimate" ["instance_type", "capacity_type", "zone"] "Instance type offering estimated hourly price used when making informed decisions on node cost calculation.";
    Minimal Counter cloudprovider_instance_launch_failures_total = "karpenter_cloudprovider_instance_launch_failures_total" ["zone", "zone_id", "capacity_type", "reason"] "Launches that a cloud refused, by what it said.";
    Minimal Counter cloudprovider_instance_termination_failures_total = "karpenter_cloudprovider_instance_termination_failures_total" ["zone", "zone_id"] "Machines that a cloud did not remove when asked.";
    Minimal Histogram cloudprovider_batcher_batch_time_seconds = "karpenter_cloudprovider_batcher_batch_time_seconds" ["batcher"] (buckets::DURATION) "Duration of the batching window per batcher.";
    Minimal Histogram cloudprovider_batcher_batch_size = "karpenter_cloudprovider_batcher_batch_size" ["batcher"] (buckets::BATCH) "Size of the request batch per batcher.";
    Minimal Counter interruption_instance_status_unhealthy_total = "karpenter_interruption_instance_status_unhealthy_total" ["category"] "Machines that the cloud itself found unhealthy.";
    Minimal Gauge ec2nodeclasses_userdata_bytes = "karpenter_ec2nodeclasses_userdata_bytes" ["nodeclass"] "Size of the user data that machines of the class boot with.";
    Full Gauge pricing_age_seconds = "dovetail_pricing_age_seconds" ["source"] "How old prices are: of on-demand and spot, and of the built-in table where it is used.";
    Full Gauge interruptions_per_machine_hour = "dovetail_interruptions_per_machine_hour" ["instance_type", "capacity_type", "zone"] "How often the cloud took machines back in the last week, as far as is known; by it and --interruption-cost offerings rank.";
    Minimal Counter aws_sdk_go_request_total = "aws_sdk_go_request_total" ["service", "action", "status_code"] "The total number of AWS requests.";
    Minimal Histogram aws_sdk_go_request_retry_count = "aws_sdk_go_request_retry_count" ["service", "action", "status_code"] (buckets::RETRIES) "The total number of AWS retry attempts per request.";
    Minimal Histogram aws_sdk_go_request_duration_seconds = "aws_sdk_go_request_duration_seconds" ["service", "action", "status_code"] (buckets::DURATION) "Latency of AWS requests.";
    Minimal Counter aws_sdk_go_request_attempt_total = "aws_sdk_go_request_attempt_total" ["service", "action", "status_code"] "The total number of attempts of AWS requests.";
    Minimal Histogram aws_sdk_go_request_attempt_duration_seconds = "aws_sdk_go_request_attempt_duration_seconds" ["service", "action", "status_code"] (buckets::DURATION) "Latency of attempts of AWS requests.";
    Minimal Counter instance_vm_create_start_total = "karpenter_instance_vm_create_start_total" ["image", "size", "zone", "capacity_type", "nodepool"] "Virtual machines that Azure was asked for.";
    Minimal Counter instance_vm_create_failure_total = "karpenter_instance_vm_create_failure_total" ["image", "size", "zone", "capacity_type", "nodepool", "phase", "error_code"] "Virtual machines that Azure did not give, at once (sync) or later (async), by its code.";
    Minimal Counter image_selection_error_count = "karpenter_image_selection_error_count" ["family"] "Sizes for which no image of their class was found.";
    Full Counter azure_request_total = "dovetail_azure_request_total" ["action", "status_code"] "Requests to Azure, each attempt counted; 0 where there was no answer.";
    Full Histogram azure_request_duration_seconds = "dovetail_azure_request_duration_seconds" ["action", "status_code"] (buckets::DURATION) "Latency of attempts of requests to Azure.";
    Full Gauge azure_quota_used_ratio = "dovetail_azure_quota_used_ratio" ["family"] "How much of a quota of virtual CPUs is used, 1 for all of it.";
    Minimal Counter controller_runtime_reconcile_total = "controller_runtime_reconcile_total" ["controller", "result"] "Total number of reconciliations per controller.";
    Minimal Counter controller_runtime_reconcile_errors_total = "controller_runtime_reconcile_errors_total" ["controller"] "Total number of reconciliation errors per controller.";
    Minimal Counter controller_runtime_terminal_reconcile_errors_total = "controller_runtime_terminal_reconcile_errors_total" ["controller"] "Total number of terminal reconciliation errors per controller.";
    Minimal Counter controller_runtime_reconcile_panics_total = "controller_runtime_reconcile_panics_total" ["controller"] "Total number of reconciliation panics per controller.";
    Minimal Counter controller_runtime_reconcile_timeouts_total = "controller_runtime_reconcile_timeouts_total" ["controller"] "Total number of reconciliation timeouts per controller.";
    Minimal Histogram controller_runtime_reconcile_time_seconds = "controller_runtime_reconcile_time_seconds" ["controller"] (buckets::RECONCILE) "Length of time per reconciliation per controller.";
    Minimal Gauge controller_runtime_active_workers = "controller_runtime_active_workers" ["controller"] "Number of currently used workers per controller.";
    Minimal Gauge controller_runtime_max_concurrent_reconciles = "controller_runtime_max_concurrent_reconciles" ["controller"] "Maximum number of concurrent reconciles per controller.";
    Minimal Drawn workqueue_depth = "workqueue_depth" ["name", "controller", "priority"] "Current depth of workqueue by workqueue and priority.";
    Minimal Counter workqueue_adds_total = "workqueue_adds_total" ["name", "controller"] "Total number of adds handled by workqueue.";
    Minimal Histogram workqueue_queue_duration_seconds = "workqueue_queue_duration_seconds" ["name", "controller"] (buckets::WORKQUEUE) "How long in seconds an item stays in workqueue before being requested.";
    Minimal Histogram workqueue_work_duration_seconds = "workqueue_work_duration_seconds" ["name", "controller"] (buckets::WORKQUEUE) "How long in seconds processing an item from workqueue takes.";
    Minimal Drawn workqueue_unfinished_work_seconds = "workqueue_unfinished_work_seconds" ["name", "controller"] "How many seconds of work in progress has not been observed by work_duration.";
    Minimal Drawn workqueue_longest_running_processor_seconds = "workqueue_longest_running_processor_seconds" ["name", "controller"] "How many seconds the longest running processor for workqueue has been running.";
    Minimal Counter workqueue_retries_total = "workqueue_retries_total" ["name", "controller"] "Total number of items added to the workqueue with a non-zero delay.";
    Minimal Gauge leader_election_master_status = "leader_election_master_status" ["name"] "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.";
    Minimal Counter leader_election_slowpath_total = "leader_election_slowpath_total" ["name"] "Total number of slow path exercised in renewing leader leases.";
    Minimal Histogram client_go_request_duration_seconds = "client_go_request_duration_seconds" ["verb", "group", "version", "kind", "subresource"] (buckets::REQUEST) "Request latency in seconds. Broken down by verb, group, version, kind, and subresource.";
    Minimal Counter client_go_request_total = "client_go_request_total" ["code", "method"] "Number of HTTP requests, partitioned by status code and method.";
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self::new();
        for method in ["multi", "single"] {
            metrics
                .voluntary_disruption_consolidation_timeouts_total
                .add([method], 0.0);
        }
        metrics
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Says which build this is.
    pub fn set_build(&self, version: &str, commit: &str) {
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let compiler = concat!("rust", env!("CARGO_PKG_RUST_VERSION"));
        self.build_info.set([version, compiler, arch, commit], 1.0);
    }

    /// Shows what a source gives too, for as long as the source lives.
    pub fn show(&self, source: &Arc<impl Source + 'static>) {
        let source: Weak<dyn Source> = Arc::<_>::downgrade(source) as Weak<_>;
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.retain(|known| known.strong_count() > 0);
        sources.push(source);
    }

    /// What a profile shows, now.
    pub fn page(&self, profile: MetricsProfile) -> Page {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut sheets = self.kept();
        sheets.extend(process::sheets());
        sheets.extend(
            sources
                .iter()
                .filter_map(Weak::upgrade)
                .flat_map(|source| source.sheets(profile)),
        );
        Page::new(sheets, profile)
    }
}

#[cfg(test)]
mod tests;
