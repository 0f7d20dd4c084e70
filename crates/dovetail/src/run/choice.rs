//! Which cloud's machines are managed?

use std::{fs, future::Future, pin::Pin, sync::Arc};

use anyhow::Context;
use cloud::CloudProvider;
use cloud_kwok::{Kwok, Offers};
use runtime::{Api, Recorder, Settings, settings::Cloud};

use super::Process;

/// A cloud, and what goes on in it besides answering while we lead.
pub(super) struct Chosen {
    pub(super) cloud: Arc<dyn CloudProvider>,
    pub(super) work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Whether this build has Amazon's.
const HAS_AWS: bool = cfg!(feature = "aws");

/// The cloud that is asked for; `auto` is Amazon's where a cluster is named, as Karpenter's Deployment for EKS does.
fn meant(settings: &Settings) -> Cloud {
    match settings.cloud {
        Cloud::Auto if HAS_AWS && !settings.aws.cluster_name.is_empty() => Cloud::Aws,
        Cloud::Auto => Cloud::Kwok,
        named => named,
    }
}

/// The cloud, connected.
pub(super) async fn choose(process: &Process, api: &Api, recorder: &Recorder) -> anyhow::Result<Chosen> {
    let settings = &process.settings;
    if meant(settings) == Cloud::Aws {
        return aws(process, api, recorder).await;
    }
    if !settings.aws.cluster_name.is_empty() && settings.cloud == Cloud::Auto {
        tracing::error!(
            "--cluster-name is set, but this build has no AWS provider: machines are kwok's; \
             build with --features aws, or say --cloud kwok"
        );
    }
    kwok(process, api)
}

fn kwok(process: &Process, api: &Api) -> anyhow::Result<Chosen> {
    let path = &process.settings.instance_types_file_path;
    let offers = if path.is_empty() {
        Offers::generated()
    } else {
        let text = fs::read(path).with_context(|| format!("--instance-types-file-path {path:?} cannot be read"))?;
        Offers::from_json(&text).with_context(|| format!("--instance-types-file-path {path:?}"))?
    };
    Ok(Chosen {
        cloud: Arc::new(Kwok::new(api.clone(), process.clock.clone(), offers)),
        work: None,
    })
}

#[cfg(feature = "aws")]
async fn aws(process: &Process, api: &Api, recorder: &Recorder) -> anyhow::Result<Chosen> {
    use cloud_aws::{Aws, ClientOptions, Clients, Parts};
    use runtime::random::Random;

    use super::namespace;

    let settings = &process.settings;
    let options = ClientOptions {
        metrics: Some(Arc::clone(&process.metrics)),
        ..ClientOptions::default()
    };
    let clients = Clients::connect(options).await.context("connecting to AWS")?;
    let aws = Aws::connect(Parts {
        api: api.clone(),
        clients,
        clock: process.clock.clone(),
        settings: Arc::clone(settings),
        metrics: Arc::clone(&process.metrics),
        recorder: recorder.clone(),
        random: Random::from_system(),
    });
    let aws = Arc::new(aws.await.context("connecting to AWS")?);
    let namespace = namespace::of_the_lease(&settings.leader_election_namespace).ok();
    Ok(Chosen {
        work: Some(Box::pin(Arc::clone(&aws).run(namespace))),
        cloud: aws,
    })
}

#[cfg(not(feature = "aws"))]
#[expect(clippy::unused_async, reason = "the one that connects waits")]
async fn aws(_: &Process, _: &Api, _: &Recorder) -> anyhow::Result<Chosen> {
    anyhow::bail!("--cloud aws: this build has no AWS provider; build with `cargo build --release --features aws`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(cloud: Cloud, cluster: &str) -> Cloud {
        let mut settings = Settings {
            cloud,
            ..Settings::default()
        };
        settings.aws.cluster_name = cluster.to_owned();
        meant(&settings)
    }

    #[test]
    fn a_named_cluster_is_eks_unless_another_cloud_is_asked_for() {
        let auto = if HAS_AWS { Cloud::Aws } else { Cloud::Kwok };
        assert_eq!(chosen(Cloud::Auto, "prod"), auto);
        assert_eq!(chosen(Cloud::Auto, ""), Cloud::Kwok);
        assert_eq!(chosen(Cloud::Kwok, "prod"), Cloud::Kwok);
        assert_eq!(chosen(Cloud::Aws, ""), Cloud::Aws);
    }
}
