//! In which namespace does the lease lie?

use std::{fs, path::Path};

use anyhow::bail;

/// Where a pod finds its namespace.
const OF_THE_POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The configured one, else that of the pod we run in.
pub(super) fn of_the_lease(configured: &str) -> anyhow::Result<String> {
    if !configured.is_empty() {
        return Ok(configured.to_owned());
    }
    match fs::read_to_string(Path::new(OF_THE_POD)) {
        Ok(namespace) => Ok(namespace.trim().to_owned()),
        Err(_) => bail!(
            "not running in a pod, so the namespace of the lease is unknown: set --leader-election-namespace, \
             or --disable-leader-election when this is the only replica"
        ),
    }
}
