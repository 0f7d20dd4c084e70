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

/// The cloud that is asked for; `auto` is Azure's where a subscription or a node resource group is named, as Karpenter's
/// Deployment for AKS does, and Amazon's where only a cluster is, as that for EKS does. Whether this build has it is
/// another matter: whoever has a cluster there does not mean kwok.
fn meant(settings: &Settings) -> Cloud {
    match settings.cloud {
        Cloud::Auto if settings.azure.is_told() => Cloud::Azure,
        Cloud::Auto if !settings.aws.cluster_name.is_empty() => Cloud::Aws,
        Cloud::Auto => Cloud::Kwok,
        named => named,
    }
}

/// Refuses a cloud that this build has not got. Running another one instead would leave a cluster's machines to nobody,
/// with nothing but a line in a log to say so.
pub(super) fn check(settings: &Settings) -> anyhow::Result<()> {
    let (is_there, name, feature, sign) = match meant(settings) {
        Cloud::Aws => (
            cfg!(feature = "aws"),
            "AWS",
            "aws",
            "--cluster-name (CLUSTER_NAME) is set, so machines are Amazon's",
        ),
        Cloud::Azure => (
            cfg!(feature = "azure"),
            "Azure",
            "azure",
            "ARM_SUBSCRIPTION_ID or AZURE_NODE_RESOURCE_GROUP is set, so this is AKS",
        ),
        Cloud::Auto | Cloud::Kwok => return Ok(()),
    };
    if is_there {
        return Ok(());
    }
    let asked = match settings.cloud {
        Cloud::Auto => sign.to_owned(),
        _ => format!("--cloud {feature}"),
    };
    anyhow::bail!(
        "{asked}: this build has no {name} provider, which is the cargo feature `{feature}`; build with \
         `cargo build --release --features {feature}`, or say --cloud kwok (CLOUD=kwok)"
    )
}

/// The cloud, connected.
pub(super) async fn choose(process: &Process, api: &Api, recorder: &Recorder) -> anyhow::Result<Chosen> {
    match meant(&process.settings) {
        Cloud::Aws => aws(process, api, recorder).await,
        Cloud::Azure => azure(process, api, recorder).await,
        Cloud::Auto | Cloud::Kwok => kwok(process, api),
    }
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
async fn aws(process: &Process, _: &Api, _: &Recorder) -> anyhow::Result<Chosen> {
    check(&process.settings)?;
    anyhow::bail!("--cloud aws: this build has no AWS provider")
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
    check(&process.settings)?;
    anyhow::bail!("--cloud azure: this build has no Azure provider")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(cloud: Cloud, cluster: &str) -> Settings {
        let mut settings = Settings {
            cloud,
            ..Settings::default()
        };
        settings.aws.cluster_name = cluster.to_owned();
        settings
    }

    #[test]
    fn a_named_cluster_is_eks_unless_another_cloud_is_asked_for() {
        let chosen = |cloud, cluster| meant(&settings(cloud, cluster));
        assert_eq!(chosen(Cloud::Auto, "prod"), Cloud::Aws);
        assert_eq!(chosen(Cloud::Auto, ""), Cloud::Kwok);
        assert_eq!(chosen(Cloud::Kwok, "prod"), Cloud::Kwok);
        assert_eq!(chosen(Cloud::Aws, ""), Cloud::Aws);
    }

    #[test]
    fn a_subscription_or_a_node_resource_group_is_aks_whatever_this_build_has() {
        let mut settings = settings(Cloud::Auto, "prod");
        settings.azure.subscription_id = "sub".to_owned();
        assert_eq!(meant(&settings), Cloud::Azure);
        settings.azure.subscription_id = String::new();
        settings.azure.node_resource_group = "MC_rg".to_owned();
        assert_eq!(meant(&settings), Cloud::Azure);
        settings.cloud = Cloud::Kwok;
        assert_eq!(meant(&settings), Cloud::Kwok);
    }

    #[test]
    fn a_build_without_the_cloud_that_is_meant_refuses_and_names_the_feature() {
        let mut aks = settings(Cloud::Auto, "prod");
        aks.azure.subscription_id = "sub".to_owned();
        let cases = [
            (
                settings(Cloud::Auto, "prod"),
                cfg!(feature = "aws"),
                "aws",
                "CLUSTER_NAME",
            ),
            (settings(Cloud::Aws, ""), cfg!(feature = "aws"), "aws", "--cloud aws"),
            (aks, cfg!(feature = "azure"), "azure", "ARM_SUBSCRIPTION_ID"),
            (
                settings(Cloud::Azure, ""),
                cfg!(feature = "azure"),
                "azure",
                "--cloud azure",
            ),
        ];
        for (settings, is_there, feature, seen) in cases {
            let checked = check(&settings).map_err(|error| error.to_string());
            if is_there {
                assert_eq!(checked, Ok(()));
                continue;
            }
            let refusal = checked.unwrap_err();
            assert!(refusal.contains(&format!("the cargo feature `{feature}`")), "{refusal}");
            assert!(refusal.contains(seen) && refusal.contains("--cloud kwok"), "{refusal}");
        }
        for (cloud, cluster) in [(Cloud::Auto, ""), (Cloud::Kwok, "prod")] {
            assert!(check(&settings(cloud, cluster)).is_ok(), "{cloud:?} {cluster:?}");
        }
    }
}
