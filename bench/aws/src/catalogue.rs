//! A cold start: no client, no catalogue, until a class has every type with its offerings and prices.

use std::{sync::Arc, time::Instant};

use anyhow::{Context, Result, bail};
use api::aws::EC2NodeClass;
use aws_sdk_ec2::config::{Credentials, SharedCredentialsProvider};
use cloud_aws::{ClientOptions, Clients, offers::Offers};
use rig::moto::Moto;
use runtime::{Clock, Metrics, Settings};
use serde_json::json;

use crate::process::Usage;

const REGION: &str = "us-east-1";
/// As many as a region has of them, and somewhat less: moto's list is its own.
const FULL: usize = 1000;

pub(crate) fn run() -> Result<()> {
    let moto = Moto::start().context("cannot start moto")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(start(moto.url()))
}

async fn start(url: &str) -> Result<()> {
    let (before, began) = (Usage::now()?, Instant::now());
    let credentials = Credentials::new("bench", "bench", None, None, "bench");
    let clients = Clients::connect(ClientOptions {
        region: Some(REGION.to_owned()),
        endpoint_url: Some(url.to_owned()),
        credentials: Some(SharedCredentialsProvider::new(credentials)),
        metrics: None,
    });
    let clients = clients.await.context("cannot connect")?;
    let offers = Offers::new(
        clients,
        Clock::system(),
        Arc::new(Settings::default()),
        Arc::new(Metrics::default()),
    );
    let offers = offers.context("the built-in prices are damaged")?;
    offers.discover().await.context("cannot list instance types")?;
    let discovered = began.elapsed();
    let priced = offers.reprice().await;
    let types = offers.types(&class()?, None)?;
    let (took, after) = (began.elapsed(), Usage::now()?);
    let offerings: usize = types.iter().map(|entry| entry.offerings.len()).sum();
    println!("types                {}", types.len());
    println!("offerings            {offerings}");
    println!("seconds to types     {:.2}", discovered.as_secs_f64());
    println!("seconds to offerings {:.2}", took.as_secs_f64());
    let processor = after.processor.saturating_sub(before.processor);
    println!("processor seconds    {:.2}", processor.as_secs_f64());
    println!("MiB before           {}", before.resident_mib);
    println!("MiB after            {} (peak {})", after.resident_mib, after.peak_mib);
    if let Err(error) = priced {
        println!("prices               built in: {error}");
    }
    if types.len() < FULL {
        bail!("{} types are not a full catalogue", types.len());
    }
    Ok(())
}

/// A class with a subnet in every zone of the region.
fn class() -> Result<EC2NodeClass> {
    let subnet = |zone: &str| json!({"id": format!("subnet-{zone}"), "zone": format!("{REGION}{zone}"), "zoneID": format!("use1-az{zone}")});
    let zones = ["a", "b", "c", "d", "e", "f"].map(subnet);
    let class = json!({
        "metadata": {"name": "default", "uid": "1"},
        "spec": {
            "subnetSelectorTerms": [{"tags": {"a": "b"}}],
            "securityGroupSelectorTerms": [{"tags": {"a": "b"}}],
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "role": "node",
        },
        "status": {"subnets": zones},
    });
    serde_json::from_value(class).context("the class of this benchmark is no EC2NodeClass")
}
