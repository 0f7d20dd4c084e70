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
    /// A context was named, and the kubeconfig does not have it or what it needs.
    #[error("context {context} cannot be used: {reason}")]
    Context {
        /// Its name.
        context: String,
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

/// Which cluster is meant, as kubectl's flags of these names have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// The file; otherwise that of the environment.
    pub kubeconfig: Option<PathBuf>,
    /// The context of it; otherwise its current one.
    pub context: Option<String>,
}

/// Where a pod finds who signs the API server's certificate.
const POD_AUTHORITY: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// Who signs the API server's certificate, as nodes are told: the base64 of the very bytes that this process trusts.
/// None where they cannot be told.
pub fn certificate_authority() -> Option<String> {
    let of_kubeconfig = || {
        let config = Kubeconfig::read().ok()?;
        let current = config.current_context.as_ref()?;
        let context = config
            .contexts
            .iter()
            .find(|it| it.name == *current)?
            .context
            .as_ref()?;
        let cluster = config.clusters.iter().find(|it| it.name == context.cluster)?;
        let cluster = cluster.cluster.as_ref()?;
        let data = cluster.certificate_authority_data.clone();
        data.or_else(|| read_authority(cluster.certificate_authority.as_ref()?))
    };
    of_kubeconfig().or_else(|| read_authority(POD_AUTHORITY))
}

fn read_authority(path: &str) -> Option<String> {
    use base64::Engine;
    let bytes = std::fs::read(path).ok()?;
    Some(base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// A client of the API server that a kubeconfig names: the given one, else that of the environment (`KUBECONFIG`, the
/// home directory), else the cluster we run in. Nothing is asked yet. To be called in the runtime that will use it.
pub async fn connect(kubeconfig: Option<PathBuf>, options: Options) -> Result<Api, ConnectError> {
    let place = Whereabouts {
        kubeconfig,
        context: None,
    };
    Ok(connect_to(&place, options).await?.0)
}

/// The same for a context of a kubeconfig; with what the cluster is called there, or where it is.
pub async fn connect_to(place: &Whereabouts, options: Options) -> Result<(Api, String), ConnectError> {
    let (mut config, name) = config_of(place).await?;
    // Ours knows which calls may be repeated; kube's repeats every one of them.
    config.default_retry = false;
    let server = config.cluster_url.to_string();
    let name = name.unwrap_or_else(|| server.clone());
    let client = kube_client::Client::try_from(config).map_err(|error| ConnectError::Unusable {
        server,
        reason: with_causes(&error),
    })?;
    Ok((Api::with(client, options), name))
}

async fn config_of(place: &Whereabouts) -> Result<(Config, Option<String>), ConnectError> {
    let file = match &place.kubeconfig {
        Some(path) => Some(Kubeconfig::read_from(path).map_err(|error| ConnectError::Kubeconfig {
            path: path.clone(),
            reason: with_causes(&error),
        })?),
        None => match (Kubeconfig::read(), &place.context) {
            (Ok(file), _) => Some(file),
            (Err(error), Some(_)) => return Err(unusable(place, with_causes(&error))),
            (Err(_), None) => None,
        },
    };
    let named = place.context.clone();
    let name = named.or_else(|| file.as_ref()?.current_context.clone());
    let is_asked_for = place.kubeconfig.is_some() || place.context.is_some();
    let Some(file) = file.filter(|_| is_asked_for) else {
        let config = Config::infer().await.map_err(|error| ConnectError::Unknown {
            reason: with_causes(&error),
        })?;
        return Ok((config, name));
    };
    let options = KubeConfigOptions {
        context: place.context.clone(),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(file, &options).await;
    match config {
        Ok(config) => Ok((config, name)),
        Err(error) => Err(unusable(place, with_causes(&error))),
    }
}

fn unusable(place: &Whereabouts, reason: String) -> ConnectError {
    match (&place.context, &place.kubeconfig) {
        (Some(context), _) => ConnectError::Context {
            context: context.clone(),
            reason,
        },
        (None, Some(path)) => ConnectError::Kubeconfig {
            path: path.clone(),
            reason,
        },
        (None, None) => ConnectError::Unknown { reason },
    }
}
