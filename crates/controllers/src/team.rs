//! Everybody: which controllers run, and what they share.

use std::sync::Arc;

use crate::{
    Cluster,
    catalog::CatalogController,
    node,
    node_claim::{Managed, lifecycle::Lifecycle},
    node_pool::RegistrationHealth,
    provisioning::{self, Batch},
    run,
};

/// All controllers. They hear of changes from now on, and act once the future is polled, until it is dropped.
pub fn all(cluster: &Arc<Cluster>) -> impl Future<Output = ()> + Send + use<> {
    let managed = Managed::by(cluster.cloud().as_ref());
    let health = Arc::new(RegistrationHealth::default());
    let batch = Arc::new(Batch::default());
    let (_, catalog) = run(Arc::new(CatalogController::default()), Arc::clone(cluster));
    let (_, lifecycle) = run(Arc::new(Lifecycle::new(managed, Arc::clone(&health))), Arc::clone(cluster));
    let provisioning = provisioning::run(cluster, &batch);
    let nodes = node::run(cluster);
    async move {
        tokio::join!(catalog, lifecycle, provisioning, nodes);
    }
}
