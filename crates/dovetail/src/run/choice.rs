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

/// The cloud that is asked for; `auto` is Azure's where a subscription or a node resource group is named, as Karpenter's
/// Deployment for AKS does, and Amazon's where only a cluster is, as that for EKS does. Whether this build has Azure's is
/// another matter: whoever has a cluster on AKS does not mean kwok.
fn meant(settings: &Settings) -> Cloud {
    match settings.cloud {
        Cloud::Auto if settings.azure.is_told() => Cloud::Azure,
        Cloud::Auto if HAS_AWS && !settings.aws.cluster_name.is_empty() => Cloud::Aws,
        Cloud::Auto => Cloud::Kwok,
        named => named,
    }
}

/// The cloud, connected.
pub(super) async fn choose(process: &Process, api: &Api, recorder: &Recorder) -> anyhow::Result<Chosen> {
    let settings = &process.settings;
    match meant(settings) {
        Cloud::Aws => return aws(process, api, recorder).await,
        Cloud::Azure => return azure(process, api, recorder).await,
        Cloud::Auto | Cloud::Kwok => {}
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

#[cfg(feature = "azure")]
async fn azure(process: &Process, api: &Api, recorder: &Recorder) -> anyhow::Result<Chosen> {
    use cloud_azure::{
        Azure, Parts,
        arm::{Arm, ArmParts, Environment, HyperTransport, SharedGallery, Transport, credential},
    };
    use runtime::random::Random;

    use super::namespace;

    let settings = &process.settings;
    settings.azure.require()?;
    let environment = Environment::of(&settings.azure)?;
    let transport: Arc<dyn Transport> = Arc::new(HyperTransport::new().context("connecting to Azure")?);
    let credential = credential(&settings.azure, &environment, &transport, &process.clock);
    let arm = Arm::new(ArmParts {
        credential: credential.map_err(|problem| anyhow::anyhow!("connecting to Azure: {problem}"))?,
        auxiliary: SharedGallery::of(&settings.azure, &environment, &transport),
        transport,
        environment,
        subscription: settings.azure.subscription_id.clone(),
        clock: process.clock.clone(),
        random: Random::from_system(),
        metrics: Some(Arc::clone(&process.metrics)),
    });
    let azure = Azure::connect(Parts {
        api: api.clone(),
        arm,
        clock: process.clock.clone(),
        settings: Arc::clone(settings),
        metrics: Arc::clone(&process.metrics),
        recorder: recorder.clone(),
        random: Random::from_system(),
    });
    let azure = Arc::new(azure.await.context("connecting to Azure")?);
    let namespace = namespace::of_the_lease(&settings.leader_election_namespace).ok();
    Ok(Chosen {
        work: Some(Box::pin(Arc::clone(&azure).run(namespace))),
        cloud: azure,
    })
}

#[cfg(not(feature = "azure"))]
#[expect(clippy::unused_async, reason = "the one that connects waits")]
async fn azure(process: &Process, _: &Api, _: &Recorder) -> anyhow::Result<Chosen> {
    anyhow::bail!(no_azure(process.settings.cloud))
}

/// Why a build without Azure's provider refuses, and what to do.
#[cfg(any(test, not(feature = "azure")))]
fn no_azure(asked: Cloud) -> String {
    let why = match asked {
        Cloud::Azure => "--cloud azure",
        _ => "ARM_SUBSCRIPTION_ID or AZURE_NODE_RESOURCE_GROUP is set, so this is AKS",
    };
    format!(
        "{why}: this build has no Azure provider; build with `cargo build --release --features azure`, \
         or say --cloud kwok"
    )
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

    #[test]
    fn a_subscription_or_a_node_resource_group_is_aks_whatever_this_build_has() {
        let mut settings = Settings::default();
        settings.aws.cluster_name = "prod".to_owned();
        settings.azure.subscription_id = "sub".to_owned();
        assert_eq!(meant(&settings), Cloud::Azure);
        settings.azure.subscription_id = String::new();
        settings.azure.node_resource_group = "MC_rg".to_owned();
        assert_eq!(meant(&settings), Cloud::Azure);
        settings.cloud = Cloud::Kwok;
        assert_eq!(meant(&settings), Cloud::Kwok);
    }

    #[test]
    fn a_build_without_azure_names_the_feature_and_what_was_seen() {
        let seen = no_azure(Cloud::Auto);
        assert!(
            seen.contains("ARM_SUBSCRIPTION_ID") && seen.contains("--features azure"),
            "{seen}"
        );
        assert!(no_azure(Cloud::Azure).starts_with("--cloud azure"));
    }
}
