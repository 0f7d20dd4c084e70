//! What is read anew now and then while we lead, and what is kept over a restart.

use std::{convert::Infallible, time::Duration};

use runtime::{keepsake::Kept, rounds::every};

use crate::{
    instance::{sweep_interfaces, update_in_place},
    reads::ReadSide,
};

const MINUTE: Duration = Duration::from_mins(1);
/// Sizes and prices.
const CATALOGUE: Duration = Duration::from_hours(12);
/// The ConfigMap that holds what is kept.
const KEPT_IN: &str = "dovetail-azure-known";

/// Everything, until dropped.
pub(crate) async fn run(read: &ReadSide, namespace: Option<String>) {
    tokio::join!(
        every("instancetype", CATALOGUE, || read.offers.discover()),
        every("pricing", CATALOGUE, || read.offers.reprice()),
        every("quota", 10 * MINUTE, || read.offers.read_quotas()),
        every("networkinterface.garbagecollection", 5 * MINUTE, || sweep_interfaces(
            read
        )),
        every("nodeclaim.inplaceupdate", MINUTE, || update_in_place(read)),
        every("metrics", MINUTE, || async {
            show_offerings(read);
            Ok::<(), Infallible>(())
        }),
        keep(read, namespace),
    );
}

/// What is known over a restart. Without a namespace nothing is.
async fn keep(read: &ReadSide, namespace: Option<String>) {
    let Some(namespace) = namespace else {
        return;
    };
    let kept = Kept {
        api: read.objects.api(),
        namespace: &namespace,
        name: KEPT_IN,
    };
    kept.keep(|known| read.offers.remember(known), || read.offers.keepsake())
        .await;
}

/// What can be had at what price, for whichever class: gauges.
fn show_offerings(read: &ReadSide) {
    for class in read.objects.classes() {
        if let Ok(types) = read.instance_types(&class) {
            read.metrics.show_offerings(&types);
        }
    }
}
