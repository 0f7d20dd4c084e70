//! Everybody: which controllers run, and what they share.

use std::{pin::Pin, sync::Arc};

use cloud::RepairPolicies;
use futures_util::future::join_all;
use model::object::NodeClaim;

use crate::{
    Cluster, Controller,
    capacity_buffer::CapacityBuffers,
    catalog::CatalogController,
    disruption, node, node_claim,
    node_overlay::NodeOverlays,
    node_pool::{self, RegistrationHealth},
    observability,
    provisioning::{self, Batch},
    run,
    static_capacity::{StaticDeprovisioning, StaticProvisioning},
};

type Working = Pin<Box<dyn Future<Output = ()> + Send>>;

/// All controllers that the settings ask for. They hear of changes from now on, and act once the future is polled, until it
/// is dropped.
pub fn all(cluster: &Arc<Cluster>) -> impl Future<Output = ()> + Send + use<> {
    let health = Arc::new(RegistrationHealth::default());
    let batch = Arc::new(Batch::default());
    let gates = &cluster.settings().decisions.feature_gates;
    let mut team: Vec<Working> = vec![
        one(CatalogController::default(), cluster),
        Box::pin(node_claim::run(cluster, Arc::clone(&health))),
        Box::pin(node_pool::run(cluster, health)),
        Box::pin(node::run(cluster)),
        Box::pin(provisioning::run(cluster, &batch)),
        Box::pin(disruption::run(cluster)),
    ];
    if gates.node_repair && cluster.settings().legacy_node_repair {
        match RepairPolicies::new(cluster.cloud().repair_policies()) {
            Ok(policies) => team.push(one(node::Health::new(policies), cluster)),
            Err(error) => tracing::error!(error = %error, "nodes are not repaired"),
        }
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
    async move {
        resume(&cluster).await;
        // Only now, as it begins with what the state holds.
        team.push(Box::pin(observability::run(cluster)));
        join_all(team).await;
    }
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
