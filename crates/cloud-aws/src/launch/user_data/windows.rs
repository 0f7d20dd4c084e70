//! Windows: a PowerShell block that calls the image's bootstrap script.

use super::{Bootstrap, flags::kubelet_flags};

pub(super) fn render(bootstrap: &Bootstrap) -> String {
    let custom = bootstrap.custom.as_deref().filter(|text| !text.is_empty());
    let custom = custom.map(|text| format!("{text}\n")).unwrap_or_default();
    let ca = bootstrap.ca_bundle.as_ref();
    let ca = ca.map(|ca| format!(" -Base64ClusterCA '{ca}'")).unwrap_or_default();
    let dns = bootstrap.kubelet.cluster_dns.iter().flatten().next();
    let dns = dns.map(|dns| format!(" -DNSClusterIP '{dns}'")).unwrap_or_default();
    format!(
        "<powershell>\n{custom}\
         [string]$EKSBootstrapScriptFile = \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\"\n\
         & $EKSBootstrapScriptFile -EKSClusterName '{}' -APIServerEndpoint '{}'{ca} -KubeletExtraArgs '{}'{dns}\n\
         </powershell>",
        bootstrap.cluster_name,
        bootstrap.cluster_endpoint,
        kubelet_flags(bootstrap).join(" "),
    )
}
