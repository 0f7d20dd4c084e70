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

/// The cloud that is asked for; `auto` is Amazon's where a cluster is named, as Karpenter's Deployment for EKS does.
fn meant(settings: &Settings) -> Cloud {
    match settings.cloud {
        Cloud::Auto if !settings.aws.cluster_name.is_empty() => Cloud::Aws,
        Cloud::Auto => Cloud::Kwok,
        named => named,
    }
}

/// Refuses a cloud that this build has not got. Running another one instead would leave a cluster's machines to nobody,
/// with nothing but a line in a log to say so.
pub(super) fn check(settings: &Settings) -> anyhow::Result<()> {
    let asked = match (meant(settings), settings.cloud) {
        (Cloud::Aws, _) if cfg!(feature = "aws") => return Ok(()),
        (Cloud::Aws, Cloud::Auto) => "--cluster-name (CLUSTER_NAME) is set, so machines are Amazon's",
        (Cloud::Aws, _) => "--cloud aws",
        (_, _) => return Ok(()),
    };
    anyhow::bail!(
        "{asked}: this build has no AWS provider, which is the cargo feature `aws`; build with \
         `cargo build --release --features aws`, or say --cloud kwok (CLOUD=kwok)"
    )
}

/// The cloud, connected.
pub(super) async fn choose(process: &Process, api: &Api, recorder: &Recorder) -> anyhow::Result<Chosen> {
    if meant(&process.settings) == Cloud::Aws {
        return aws(process, api, recorder).await;
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
async fn aws(process: &Process, _: &Api, _: &Recorder) -> anyhow::Result<Chosen> {
    check(&process.settings)?;
    anyhow::bail!("--cloud aws: this build has no AWS provider")
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
    fn a_build_without_the_cloud_that_is_meant_refuses_and_names_the_feature() {
        for (cloud, cluster) in [(Cloud::Auto, "prod"), (Cloud::Aws, "")] {
            let checked = check(&settings(cloud, cluster)).map_err(|error| error.to_string());
            if cfg!(feature = "aws") {
                assert_eq!(checked, Ok(()));
            } else {
                let refusal = checked.unwrap_err();
                assert!(refusal.contains("the cargo feature `aws`"), "{refusal}");
                assert!(refusal.contains("--cloud kwok"), "{refusal}");
            }
        }
        for (cloud, cluster) in [(Cloud::Auto, ""), (Cloud::Kwok, "prod")] {
            assert!(check(&settings(cloud, cluster)).is_ok(), "{cloud:?} {cluster:?}");
        }
    }
}
