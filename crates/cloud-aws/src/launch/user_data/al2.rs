//! Amazon Linux 2: a MIME archive whose last part calls the image's bootstrap script.

use std::net::IpAddr;

use super::{
    Bootstrap, UserDataError,
    flags::kubelet_flags,
    mime::{self, Part},
};

pub(super) fn render(bootstrap: &Bootstrap) -> Result<String, UserDataError> {
    let mut parts = custom_parts(bootstrap.custom.as_deref())?;
    parts.push(Part::new(mime::SHELL_SCRIPT, script(bootstrap)));
    Ok(mime::write(&parts))
}

/// What the user wrote: the parts of an archive, or one shell script.
fn custom_parts(custom: Option<&str>) -> Result<Vec<Part>, UserDataError> {
    match custom {
        None | Some("") => Ok(Vec::new()),
        Some(text) if mime::is_archive(text) => mime::read(text).map_err(UserDataError::Mime),
        Some(text) => Ok(vec![Part::new(mime::SHELL_SCRIPT, text.to_owned())]),
    }
}

fn script(bootstrap: &Bootstrap) -> String {
    let ca = bootstrap.ca_bundle.as_ref();
    let ca = ca.map(|ca| format!(" --b64-cluster-ca '{ca}'")).unwrap_or_default();
    let dns = bootstrap.kubelet.cluster_dns.iter().flatten().next();
    let is_ipv6 = dns.is_some_and(|dns| matches!(dns.parse(), Ok(IpAddr::V6(_))));
    let options = [
        is_ipv6.then(|| "--ip-family ipv6".to_owned()),
        dns.map(|dns| format!("--dns-cluster-ip '{dns}'")),
        bootstrap.kubelet.max_pods.map(|_| "--use-max-pods false".to_owned()),
        Some(format!("--kubelet-extra-args '{}'", kubelet_flags(bootstrap).join(" "))),
        bootstrap.raid0.then(|| "--local-disks raid0".to_owned()),
    ];
    let options: String = options
        .into_iter()
        .flatten()
        .map(|option| format!(" \\\n{option}"))
        .collect();
    format!(
        "#!/bin/bash -xe\n\
         exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n\
         /etc/eks/bootstrap.sh '{}' --apiserver-endpoint '{}'{ca}{options}",
        bootstrap.cluster_name, bootstrap.cluster_endpoint
    )
}
