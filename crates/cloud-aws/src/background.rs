//! What is read anew now and then while we lead, and what is kept over a restart.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use api::{
    annotations::aws::INSTANCE_PROFILE_NAME,
    labels::{CAPACITY_TYPE, INSTANCE_TYPE, ZONE},
};
use http::Method;
use model::{
    object::{ConditionStatus, Node, NodeClaim, NodeOverlay, condition},
    price::Price,
    requirement::Operator,
    snapshot::CatalogOffering,
};
use runtime::Resource;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{border::Reads, node_class::images_of_types, offers::Keepsake, reads::ReadSide};

const MINUTE: Duration = Duration::from_mins(1);
/// Types, zones and prices.
const CATALOGUE: Duration = Duration::from_hours(12);
/// The ConfigMap that holds what is kept.
const KEPT_IN: &str = "dovetail-aws-known";

/// Everything, until dropped.
pub(crate) async fn run(read: &Arc<ReadSide>, namespace: Option<String>) {
    tokio::join!(
        every(read, CATALOGUE, |read| async move {
            note("providers.instancetype", read.offers.discover().await)
        }),
        every(read, CATALOGUE, |read| async move {
            note("providers.pricing", read.offers.reprice().await)
        }),
        every(read, 5 * MINUTE, |read| async move {
            note("providers.version", read.cluster.refresh_version().await)
        }),
        every(read, 30 * MINUTE, |read| async move {
            note("providers.ssm.invalidation", read.images.forget_deprecated().await)
        }),
        every(read, 30 * MINUTE, |read| async move {
            note("instanceprofile.garbagecollection", collect_profiles(&read).await)
        }),
        every(read, 5 * MINUTE, |read| async move {
            note("providers.instancetype.capacity", learn_memory(&read).await)
        }),
        every(read, MINUTE, |read| async move {
            note("capacityreservation.expiration", expire(&read).await)
        }),
        every(read, 5 * MINUTE, |read| async move {
            note("overlay prices", read_overlays(&read).await)
        }),
        every(read, MINUTE, |read| async move {
            show_offerings(&read).await;
            true
        }),
        every(read, MINUTE / 2, |read| async move {
            note("zonalshift", read.follow_zonal_shift().await)
        }),
        keep(read, namespace),
    );
}

/// Again and again; what failed, in a minute.
async fn every<W>(read: &Arc<ReadSide>, pause: Duration, work: impl Fn(Arc<ReadSide>) -> W)
where
    W: Future<Output = bool>,
{
    loop {
        let has_worked = work(Arc::clone(read)).await;
        sleep(if has_worked { pause } else { MINUTE.min(pause) }).await;
    }
}

fn note(controller: &str, result: Result<(), impl std::fmt::Display>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(controller, %error, "Reconciler error");
            false
        }
    }
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
    let classes: Vec<api::aws::EC2NodeClass> = read
        .objects
        .list(&Resource::new(crate::objects::API_VERSION, crate::objects::KIND))
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

/// Deletes claims whose capacity block is about to be taken back.
async fn expire(read: &ReadSide) -> Result<(), String> {
    let expiring: BTreeSet<String> = read
        .objects
        .classes()
        .iter()
        .filter_map(|class| class.status.clone())
        .flat_map(|status| status.capacity_reservations)
        .filter(|it| it.state == api::aws::CapacityReservationState::Expiring)
        .map(|it| it.id)
        .collect();
    if expiring.is_empty() {
        return Ok(());
    }
    let claims = read
        .objects
        .claims()
        .await
        .map_err(|error| format!("listing nodeclaims, {error}"))?;
    let label = api::labels::aws::CAPACITY_RESERVATION_ID;
    for claim in claims.iter().filter(|it| !it.metadata.is_deleting()) {
        let id = claim.metadata.labels.get(label).map(|it| &**it);
        if id.is_some_and(|id| expiring.contains(id)) {
            let only_this = runtime::Delete {
                uid: Some(claim.metadata.uid.clone()),
                ..runtime::Delete::default()
            };
            let deleted = read
                .objects
                .api()
                .delete::<NodeClaim>(&claim.metadata.key(), &only_this)
                .await;
            match deleted {
                Err(error) if !error.is_not_found() => return Err(format!("deleting nodeclaim, {error}")),
                _ => {
                    tracing::info!(NodeClaim.name = %claim.metadata.name, "initiating delete for capacity block expiration");
                }
            }
        }
    }
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
async fn show_offerings(read: &ReadSide) {
    for class in read.objects.classes() {
        let Ok(types) = read.instance_types(&class).await else {
            continue;
        };
        for entry in &types {
            for offering in &entry.offerings {
                let (kind, zone) = (only(offering, CAPACITY_TYPE), only(offering, ZONE));
                let labels = [entry.name.as_str(), kind, zone];
                let is_available = f64::from(u8::from(offering.available));
                read.metrics
                    .cloudprovider_instance_type_offering_available
                    .set(labels, is_available);
                #[expect(clippy::cast_precision_loss, reason = "a gauge")]
                let price = offering.price.picos() as f64 / 1e12;
                read.metrics
                    .cloudprovider_instance_type_offering_price_estimate
                    .set(labels, price);
            }
        }
    }
}

fn only<'a>(offering: &'a CatalogOffering, key: &str) -> &'a str {
    let found = offering.requirements.iter().find(|it| it.key == key);
    match found {
        Some(it) if it.operator == Operator::In => it.values.first().map_or("", String::as_str),
        _ => "",
    }
}

/// Takes up what an earlier process wrote down, and writes down what changes. Without a namespace nothing is kept.
async fn keep(read: &ReadSide, namespace: Option<String>) {
    let Some(namespace) = namespace else {
        return;
    };
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    let mut written = match take_up(read, &path).await {
        Ok(kept) => kept,
        Err(error) => {
            tracing::error!(error, "reading what an earlier process knew of AWS");
            None
        }
    };
    loop {
        sleep(MINUTE / 2).await;
        let now = read.offers.keepsake();
        if written.as_ref() == Some(&now) || (written.is_none() && now == Keepsake::default()) {
            continue;
        }
        match write_down(read, &path, &now, written.is_some()).await {
            Ok(()) => written = Some(now),
            Err(error) => tracing::error!(error, "writing down what is known of AWS"),
        }
    }
}

async fn take_up(read: &ReadSide, path: &str) -> Result<Option<Keepsake>, String> {
    let path = format!("{path}/{KEPT_IN}");
    let bytes = match read
        .objects
        .api()
        .call(Method::GET, &path, None, "application/json")
        .await
    {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let map: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    let text = map.pointer("/data/known").and_then(Value::as_str).unwrap_or("{}");
    // What cannot be read is forgotten: it would have been in three minutes, or is learnt anew.
    let kept: Keepsake = serde_json::from_str(text).unwrap_or_default();
    read.offers.remember(kept.clone());
    Ok(Some(kept))
}

async fn write_down(read: &ReadSide, path: &str, kept: &Keepsake, exists: bool) -> Result<(), String> {
    let known = serde_json::to_string(kept).map_err(|error| error.to_string())?;
    let data = json!({"known": known});
    let api = read.objects.api();
    let wrote = if exists {
        let body = json!({"data": data});
        let path = format!("{path}/{KEPT_IN}");
        api.call(Method::PATCH, &path, Some(&body), "application/merge-patch+json")
            .await
    } else {
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": KEPT_IN}, "data": data,
        });
        api.call(Method::POST, path, Some(&body), "application/json").await
    };
    wrote.map(drop).map_err(|error| error.to_string())
}
