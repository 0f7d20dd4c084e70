//! What a person is told first: where the cluster is, and what to try.

use std::{
    fmt::Write,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::Context;
use catalogue::Source;
use tokio::net::TcpListener;

use super::Args;
use crate::terminal::{Role, Screen};

/// Where everything is.
pub(super) struct Opening {
    headline: String,
    api: SocketAddr,
    page: SocketAddr,
    kubeconfig: PathBuf,
}

impl Opening {
    /// Writes the kubeconfig.
    pub(super) fn new(args: &Args, cloud: Source, api: &TcpListener, page: &TcpListener) -> anyhow::Result<Self> {
        let (api, page) = (api.local_addr()?, page.local_addr()?);
        let directory = std::env::temp_dir().join("dovetail-demo");
        let kubeconfig = args.kubeconfig.clone().unwrap_or_else(|| directory.join("kubeconfig"));
        write(&kubeconfig, &simulator::http::kubeconfig(api))?;
        let region = cloud.priced_regions().first().copied().unwrap_or_default();
        let place = format!("{} {region}", cloud.name());
        Ok(Self {
            headline: format!(
                "a cluster on {}, seed {}, at {}x",
                place.trim_end(),
                args.seed,
                args.speed
            ),
            api,
            page,
            kubeconfig,
        })
    }

    pub(super) fn text(&self, screen: &Screen) -> String {
        let mut text = format!("{}\n\n", screen.paint(Role::Heading, &self.headline));
        let file = self.kubeconfig.display();
        let _ = writeln!(text, "page     http://{}", self.page);
        let _ = writeln!(text, "API      http://{}", self.api);
        let _ = writeln!(text, "kubectl  export KUBECONFIG={file}");
        let _ = writeln!(text, "\nIn another terminal, after that export:");
        for (command, meaning) in TRY {
            let _ = writeln!(text, "  {command:<52} {}", screen.paint(Role::Secondary, meaning));
        }
        let _ = writeln!(text, "\nCtrl-C ends it with a summary.\n");
        text
    }
}

const TRY: [(&str, &str); 5] = [
    ("kubectl get nodepools,nodeclaims,nodes", "what there is"),
    (
        "kubectl scale deployment/web --replicas=40",
        "pods come, and nodes for them",
    ),
    ("kubectl scale deployment/web --replicas=2", "pods go, and then nodes"),
    ("kubectl delete node NAME", "its pods move"),
    ("kubectl get events --sort-by=.lastTimestamp", "why"),
];

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(|| format!("create directory {}", directory.display()))?;
    }
    fs::write(path, text).with_context(|| format!("write {}; --kubeconfig chooses another place", path.display()))
}
