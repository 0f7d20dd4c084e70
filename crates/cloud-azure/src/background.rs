//! What is read anew now and then while we lead, and what is kept over a restart.

use std::{sync::Arc, time::Duration};

use api::labels::{CAPACITY_TYPE, ZONE};
use http::Method;
use model::{requirement::Operator, snapshot::CatalogOffering};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    instance::{sweep_interfaces, update_in_place},
    offers::Shortages,
    reads::ReadSide,
};

const MINUTE: Duration = Duration::from_mins(1);
/// Sizes and prices.
const CATALOGUE: Duration = Duration::from_hours(12);
/// The ConfigMap that holds what is kept.
const KEPT_IN: &str = "dovetail-azure-known";

/// Everything, until dropped.
pub(crate) async fn run(read: &Arc<ReadSide>, namespace: Option<String>) {
    tokio::join!(
        every(read, CATALOGUE, |read| async move {
            note("instancetype", read.offers.discover().await)
        }),
        every(read, CATALOGUE, |read| async move {
            note("pricing", read.offers.reprice().await)
        }),
        every(read, 10 * MINUTE, |read| async move {
            note("quota", read.offers.read_quotas().await)
        }),
        every(read, 5 * MINUTE, |read| async move {
            note("networkinterface.garbagecollection", sweep_interfaces(&read).await)
        }),
        every(read, MINUTE, |read| async move {
            note("nodeclaim.inplaceupdate", update_in_place(&read).await)
        }),
        every(read, MINUTE, |read| async move {
            show_offerings(&read);
            true
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

/// What can be had at what price, for whichever class: gauges.
fn show_offerings(read: &ReadSide) {
    for class in read.objects.classes() {
        let Ok(types) = read.instance_types(&class) else {
            continue;
        };
        for entry in &types {
            for offering in &entry.offerings {
                let (kind, zone) = (only(offering, CAPACITY_TYPE), only(offering, ZONE));
                let labels = [entry.name.as_str(), kind, zone];
                let is_available = f64::from(u8::from(offering.available));
                let metrics = &read.metrics;
                metrics
                    .cloudprovider_instance_type_offering_available
                    .set(labels, is_available);
                #[expect(clippy::cast_precision_loss, reason = "a gauge")]
                let price = offering.price.picos() as f64 / 1e12;
                metrics
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
            tracing::error!(error, "reading what an earlier process knew of Azure");
            None
        }
    };
    loop {
        sleep(MINUTE / 2).await;
        let now = read.offers.keepsake();
        if written.as_ref() == Some(&now) || (written.is_none() && now == Shortages::default()) {
            continue;
        }
        match write_down(read, &path, &now, written.is_some()).await {
            Ok(()) => written = Some(now),
            Err(error) => tracing::error!(error, "writing down what is known of Azure"),
        }
    }
}

async fn take_up(read: &ReadSide, path: &str) -> Result<Option<Shortages>, String> {
    let path = format!("{path}/{KEPT_IN}");
    let api = read.objects.api();
    let bytes = match api.call(Method::GET, &path, None, "application/json").await {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let map: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    let text = map.pointer("/data/known").and_then(Value::as_str).unwrap_or("[]");
    // What cannot be read is forgotten: it is learnt anew.
    let kept: Shortages = serde_json::from_str(text).unwrap_or_default();
    read.offers.remember(kept.clone());
    Ok(Some(kept))
}

async fn write_down(read: &ReadSide, path: &str, kept: &Shortages, exists: bool) -> Result<(), String> {
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
