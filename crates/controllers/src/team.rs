//! Everybody: which controllers run, and what they share.

use std::{pin::Pin, sync::Arc};

use cloud::{InvalidRepairPolicies, RepairPolicies, RepairPolicy};
use futures_util::future::join_all;
use model::object::NodeClaim;
use runtime::Settings;

use crate::{
    Cluster, Controller,
    capacity_buffer::CapacityBuffers,
    catalog::CatalogController,
    disruption,
    interruption::Interruption,
    node, node_claim,
    node_overlay::NodeOverlays,
    node_pool::{self, RegistrationHealth},
    observability,
    provisioning::{self, Batch},
    records, run,
    static_capacity::{StaticDeprovisioning, StaticProvisioning},
};

type Working = Pin<Box<dyn Future<Output = ()> + Send>>;

/// All controllers that the settings ask for. They hear of changes from now on, and act once the future is polled, until it
/// is dropped. Fails when nodes are to be repaired and the provider's policies are wrong: waiting does not mend that.
pub fn all(cluster: &Arc<Cluster>) -> Result<impl Future<Output = ()> + Send + use<>, InvalidRepairPolicies> {
    let repair = repair_policies(cluster.settings(), cluster.cloud().repair_policies())?;
    let (legacy, method) = match repair {
        repair if cluster.settings().legacy_node_repair => (repair, None),
        repair => (None, repair),
    };
    records::follow(cluster);
    let health = Arc::new(RegistrationHealth::default());
    let batch = Arc::new(Batch::default());
    let gates = &cluster.settings().decisions.feature_gates;
    let mut team: Vec<Working> = vec![
        one(CatalogController::default(), cluster),
        Box::pin(node_claim::run(cluster, Arc::clone(&health))),
        Box::pin(node_pool::run(cluster, health)),
        Box::pin(node::run(cluster)),
        Box::pin(provisioning::run(cluster, &batch)),
        Box::pin(disruption::run(cluster, method)),
    ];
    if cluster.cloud().gives_notice() {
        team.push(one(
            Interruption::new(node_claim::Managed::by(&**cluster.cloud())),
            cluster,
        ));
    }
    if let Some(policies) = legacy {
        team.push(one(node::Health::new(policies), cluster));
    }
    if gates.pod_deletion_cost_management {
        team.push(Box::pin(disruption::run_deletion_cost(cluster)));
    }
    if gates.static_capacity {
        team.push(one(StaticProvisioning, cluster));
        team.push(one(StaticDeprovisioning, cluster));
    }
    if gates.node_overlay {
        team.push(one(NodeOverlays, cluster));
    }
    if gates.capacity_buffer {
        team.push(one(CapacityBuffers::new(batch), cluster));
    }
    let cluster = Arc::clone(cluster);
    Ok(async move {
        resume(&cluster).await;
        // Only now, as it begins with what the state holds.
        team.push(Box::pin(observability::run(cluster)));
        join_all(team).await;
    })
}

/// The policies by which nodes are repaired; none when they are not. The controller that `--legacy-node-repair` asks for
/// can do without policies, the method cannot.
fn repair_policies(
    settings: &Settings,
    policies: Vec<RepairPolicy>,
) -> Result<Option<RepairPolicies>, InvalidRepairPolicies> {
    let is_wanted = settings.decisions.feature_gates.node_repair;
    if !is_wanted || (settings.legacy_node_repair && policies.is_empty()) {
        return Ok(None);
    }
    RepairPolicies::new(policies).map(Some)
}

fn one<C: Controller>(controller: C, cluster: &Arc<Cluster>) -> Working {
    let (_, work) = run(Arc::new(controller), Arc::clone(cluster));
    Box::pin(work)
}

/// What the cloud was in the middle of when its last controller ended, it goes on with.
async fn resume(cluster: &Cluster) {
    let claims: Vec<_> = cluster.look(|state| state.all::<NodeClaim>().iter().cloned().collect());
    if let Err(error) = cluster.cloud().resume(&claims).await {
        tracing::error!(error = %error, "resuming what the cloud was doing");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cloud::RepairAction;
    use model::object::ConditionStatus;

    use super::*;

    fn policy(reason_regex: &'static str) -> RepairPolicy {
        RepairPolicy {
            condition_type: "Ready",
            condition_status: ConditionStatus::False,
            reason_regex,
            toleration: Duration::from_mins(10),
            termination_grace_period: None,
            priority: 0,
            action: RepairAction::ReplaceNode,
        }
    }

    #[test]
    fn nobody_starts_with_repair_policies_that_are_wrong_unless_nothing_is_repaired() {
        let mut settings = Settings::default();
        let found = |settings: &Settings, policies: &[RepairPolicy]| {
            let found = repair_policies(settings, policies.to_vec());
            found.map(|found| found.is_some()).map_err(|error| error.to_string())
        };
        let conflicting = [policy(""), policy("")];
        assert_eq!(found(&settings, &conflicting), Ok(false), "the gate is off");
        settings.decisions.feature_gates.node_repair = true;
        assert_eq!(found(&settings, &[policy("")]), Ok(true));
        let error = found(&settings, &conflicting).unwrap_err();
        assert!(
            error.contains("repair policy set has multiple default fallbacks"),
            "{error}"
        );
        let error = found(&settings, &[policy(""), policy("(")]).unwrap_err();
        assert!(error.contains("has invalid reason regex"), "{error}");
        let none = "node repair requires the cloud provider to define RepairPolicies, but it defines none";
        assert_eq!(found(&settings, &[]), Err(none.to_owned()));
        settings.legacy_node_repair = true;
        assert_eq!(found(&settings, &[]), Ok(false));
    }
}
