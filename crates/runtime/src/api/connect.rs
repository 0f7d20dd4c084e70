//! The way to the API server: a kubeconfig, or the service account of the pod we run in.

use std::path::PathBuf;

use kube_client::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::{Api, Options, error::with_causes};

/// There is no way to the API server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// Nothing says where it is.
    #[error(
        "nothing says where the API server is ({reason}): set KUBECONFIG, or run in a pod that has a service account token"
    )]
    Unknown {
        /// What was tried.
        reason: String,
    },
    /// A kubeconfig was named and cannot be used.
    #[error("kubeconfig {} cannot be used: {reason}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Certificates or credentials cannot be used.
    #[error(
        "cannot connect to {server}: {reason}: check the certificates and credentials of the kubeconfig or service account"
    )]
    Unusable {
        /// Where it is.
        server: String,
        /// Why.
        reason: String,
    },
}

/// A client of the API server that a kubeconfig names: the given one, else that of the environment (`KUBECONFIG`, the
/// home directory), else the cluster we run in. Nothing is asked yet. To be called in the runtime that will use it.
pub async fn connect(kubeconfig: Option<PathBuf>, options: Options) -> Result<Api, ConnectError> {
    let mut config = match kubeconfig {
        Some(path) => named(path).await?,
        None => Config::infer().await.map_err(|error| ConnectError::Unknown {
            reason: with_causes(&error),
        })?,
    };
    // Ours knows which calls may be repeated; kube's repeats every one of them.
    config.default_retry = false;
    let server = config.cluster_url.to_string();
    let client = kube_client::Client::try_from(config).map_err(|error| ConnectError::Unusable {
        server,
        reason: with_causes(&error),
    })?;
    Ok(Api::with(client, options))
}

async fn named(path: PathBuf) -> Result<Config, ConnectError> {
    let unusable = |reason: String| ConnectError::Kubeconfig {
        path: path.clone(),
        reason,
    };
    let file = Kubeconfig::read_from(&path).map_err(|error| unusable(with_causes(&error)))?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    config.map_err(|error| unusable(with_causes(&error)))
}
