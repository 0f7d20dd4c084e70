//! Everybody: which controllers run, and what they share.

use std::sync::Arc;

use crate::{
    Cluster,
    catalog::CatalogController,
    node, node_claim,
    node_pool::{self, RegistrationHealth},
    provisioning::{self, Batch},
    run,
};

/// All controllers. They hear of changes from now on, and act once the future is polled, until it is dropped.
pub fn all(cluster: &Arc<Cluster>) -> impl Future<Output = ()> + Send + use<> {
    let health = Arc::new(RegistrationHealth::default());
    let batch = Arc::new(Batch::default());
    let (_, catalog) = run(Arc::new(CatalogController::default()), Arc::clone(cluster));
    let claims = node_claim::run(cluster, Arc::clone(&health));
    let pools = node_pool::run(cluster, health);
    let nodes = node::run(cluster);
    let provisioning = provisioning::run(cluster, &batch);
    async move {
        tokio::join!(catalog, claims, pools, nodes, provisioning);
    }
}
