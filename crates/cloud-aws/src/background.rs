//! What is read anew now and then while we lead, and what is kept over a restart.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    time::Duration,
};

use api::{
    annotations::aws::INSTANCE_PROFILE_NAME,
    aws::EC2NodeClass,
    labels::{CAPACITY_TYPE_ON_DEMAND, INSTANCE_TYPE},
};
use cloud::OfferingKey;
use keeper::Objects;
use model::{
    object::{ConditionStatus, Node, NodeClaim, NodeOverlay, condition},
    price::Price,
};
use runtime::{Resource, keepsake::Kept, rounds::every};

use crate::{border::Machines, border::Reads, node_class::images_of_types, reads::ReadSide};

const MINUTE: Duration = Duration::from_mins(1);
/// Types, zones and prices.
const CATALOGUE: Duration = Duration::from_hours(12);
/// How often the machines that may be taken back are counted, and so how coarse their time is.
const LEDGER: Duration = Duration::from_mins(10);
/// The ConfigMap that holds what is kept.
const KEPT_IN: &str = "dovetail-aws-known";

/// Everything, until dropped.
pub(crate) async fn run(read: &ReadSide, machines: &dyn Machines, namespace: Option<String>) {
    tokio::join!(
        every("providers.instancetype", CATALOGUE, || read.offers.discover()),
        every("providers.pricing", CATALOGUE, || read.offers.reprice()),
        every("providers.version", 5 * MINUTE, || read.cluster.refresh_version()),
        every("providers.ssm.invalidation", 30 * MINUTE, || read
            .images
            .forget_deprecated()),
        every("instanceprofile.garbagecollection", 30 * MINUTE, || collect_profiles(
            read
        )),
        every("providers.instancetype.capacity", 5 * MINUTE, || learn_memory(read)),
        every("capacityreservation.expiration", MINUTE, || read
            .expire_capacity_blocks()),
        every("capacityreservation.capacitytype", MINUTE, || read.demote(machines)),
        every("interruption.ledger", LEDGER, || count_machine_time(read)),
        every("overlay prices", 5 * MINUTE, || read_overlays(read)),
        every("metrics", MINUTE, || show_offerings(read)),
        every("zonalshift", MINUTE / 2, || read.follow_zonal_shift()),
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

/// Removes instance profiles that nobody uses.
async fn collect_profiles(read: &ReadSide) -> Result<(), String> {
    if read.settings.aws.isolated_vpc {
        return Ok(());
    }
    let claims = read
        .objects
        .claims()
        .await
        .map_err(|error| format!("listing nodeclaims, {error}"))?;
    let of_claims = claims
        .iter()
        .filter_map(|claim| claim.metadata.annotations.get(INSTANCE_PROFILE_NAME))
        .map(ToString::to_string);
    let classes: Vec<EC2NodeClass> = read
        .objects
        .list(&Objects::<EC2NodeClass>::resource())
        .await
        .map_err(|error| format!("listing nodeclasses, {error}"))?;
    let of_classes = classes
        .iter()
        .filter_map(|it| it.status.as_ref()?.instance_profile.clone());
    let used: BTreeSet<String> = of_claims.chain(of_classes).collect();
    read.profiles.collect(&used).await.map_err(|error| error.to_string())
}

/// How much memory registered nodes have whose image is current.
async fn learn_memory(read: &ReadSide) -> Result<(), String> {
    let claims = read
        .objects
        .claims()
        .await
        .map_err(|error| format!("listing nodeclaims, {error}"))?;
    if claims.is_empty() {
        return Ok(());
    }
    let nodes: Vec<Node> = read
        .objects
        .list(&Resource::of::<Node>())
        .await
        .map_err(|error| format!("listing nodes, {error}"))?;
    for claim in &claims {
        let node = claim.status.node_name.as_ref();
        let node = node.and_then(|name| nodes.iter().find(|node| node.name() == *name));
        if let Some(node) = node {
            learn(read, claim, node).await;
        }
    }
    Ok(())
}

async fn learn(read: &ReadSide, claim: &NodeClaim, node: &Node) -> Option<()> {
    let memory = node.status.capacity.get("memory")?.value();
    let name = node.metadata.labels.get(INSTANCE_TYPE)?.to_string();
    let class = claim.spec.node_class_ref.as_ref()?;
    let class = read.node_class(&class.name).await.ok()??;
    let types = read.instance_types(&class).await.ok()?;
    let found = types.iter().find(|entry| entry.name.as_str() == name)?;
    let images = &class.status.as_ref()?.amis;
    let chosen = images_of_types(images, std::slice::from_ref(found));
    if memory > 0 && chosen.contains_key(&*claim.status.image_id) {
        read.offers.see_memory(&name, &class, memory);
    }
    Some(())
}

/// How long machines have run that EC2 may take back: as if those there are had been there since the last look.
async fn count_machine_time(read: &ReadSide) -> Result<(), String> {
    let claims = read
        .objects
        .claims()
        .await
        .map_err(|error| format!("listing nodeclaims, {error}"))?;
    let mut machines: BTreeMap<OfferingKey, u32> = BTreeMap::new();
    let launched = claims.iter().filter(|claim| claim.status.provider_id.is_some());
    for offering in launched.filter_map(OfferingKey::of) {
        if *offering.capacity_type != *CAPACITY_TYPE_ON_DEMAND {
            *machines.entry(offering).or_default() += 1;
        }
    }
    read.offers.ran(&machines, LEDGER);
    Ok(())
}

/// Prices of overlays that name nothing but types: such types can be launched although AWS names no price.
async fn read_overlays(read: &ReadSide) -> Result<(), String> {
    if !read.settings.decisions.feature_gates.node_overlay {
        return Ok(());
    }
    let overlays: Vec<NodeOverlay> = read
        .objects
        .list(&Resource::of::<NodeOverlay>())
        .await
        .map_err(|error| format!("failed to list NodeOverlays for overlay pricing, {error}"))?;
    let mut prices = BTreeMap::new();
    for overlay in &overlays {
        let valid = condition::find(&overlay.status.conditions, "ValidationSucceeded");
        let price: Option<Price> = overlay.spec.price.as_ref().and_then(|price| price.parse().ok());
        let (Some(price), [only]) = (price, &*overlay.spec.requirements) else {
            continue;
        };
        if valid.is_some_and(|it| it.status == ConditionStatus::True)
            && *only.key == *INSTANCE_TYPE
            && *only.operator == *"In"
        {
            prices.extend(only.values.iter().map(|name| (name.to_string(), price)));
        }
    }
    read.offers.overlay(prices);
    Ok(())
}

/// What can be had at what price, for whichever class: gauges.
async fn show_offerings(read: &ReadSide) -> Result<(), Infallible> {
    for class in read.objects.classes() {
        let Ok(types) = read.instance_types(&class).await else {
            continue;
        };
        read.metrics.show_offerings(&types);
    }
    Ok(())
}
