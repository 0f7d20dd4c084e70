//! Who is told what was decided, if anybody is.

use std::sync::{Arc, PoisonError};

use anyhow::Context;
use controllers::Cluster;
use notify::{Receiver, Teller};
use runtime::{Clock, Settings, egress::HyperTransport};

use super::{LAST_WORDS, Process};

/// A teller for the receiver of the settings.
pub(super) fn teller(settings: &Settings, clock: &Clock) -> anyhow::Result<Option<Arc<Teller>>> {
    if settings.notify_url.is_empty() {
        return Ok(None);
    }
    let format = settings.notify_format.as_str();
    let receiver = Receiver {
        address: settings.notify_url.clone(),
        format: (!format.is_empty()).then(|| format.parse()).transpose()?,
        wanted: settings.notify_on.parse().context("--notify-on")?,
        every: settings.notify_every,
        cluster: cluster_name(settings).to_owned(),
    };
    let transport = HyperTransport::new().context("--notify-url")?;
    let teller = Teller::new(Arc::new(transport), clock.clone(), receiver).context("--notify-url")?;
    Ok(Some(Arc::new(teller)))
}

fn cluster_name(settings: &Settings) -> &str {
    let names = [&settings.aws.cluster_name, &settings.azure.cluster_name];
    names
        .into_iter()
        .find(|name| !name.is_empty())
        .map_or("cluster", String::as_str)
}

/// Tells what is decided in this term.
pub(super) async fn run(teller: Arc<Teller>, cluster: Arc<Cluster>) {
    teller.run(|| cluster.decisions()).await;
}

impl Process {
    /// Tells what was decided since it last was.
    pub(super) async fn tell_last(&self) {
        let cluster = self.known.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        if let (Some(teller), Some(cluster)) = (&self.teller, cluster) {
            let told = tokio::time::timeout(LAST_WORDS, teller.tell(&cluster.decisions())).await;
            if told.is_err() {
                tracing::error!("the last decisions could not be told in time");
            }
        }
    }
}
