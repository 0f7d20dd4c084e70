//! What a person is told first: where the cluster is, and what to try.

use std::{
    fmt::Write,
    fs,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    time::Duration,
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
    /// What may be scaled.
    deployment: Option<String>,
}

impl Opening {
    /// Writes the kubeconfig.
    pub(super) fn new(
        args: &Args,
        cloud: Source,
        api: &TcpListener,
        page: &TcpListener,
        deployment: Option<String>,
    ) -> anyhow::Result<Self> {
        let (api, page) = (api.local_addr()?, page.local_addr()?);
        let kubeconfig = match &args.kubeconfig {
            Some(path) => path.clone(),
            None => place(&std::env::temp_dir().join("dovetail-demo"), api),
        };
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
            deployment,
        })
    }

    pub(super) fn text(&self, screen: &Screen) -> String {
        let mut text = format!("{}\n\n", screen.paint(Role::Heading, &self.headline));
        let file = self.kubeconfig.display();
        let _ = writeln!(text, "page     http://{}", self.page);
        let _ = writeln!(text, "API      http://{}", self.api);
        let _ = writeln!(text, "kubectl  export KUBECONFIG={file}");
        let _ = writeln!(text, "\nIn another terminal, after that export:");
        for (command, meaning) in self.tries() {
            let _ = writeln!(text, "  {command:<52} {}", screen.paint(Role::Secondary, meaning));
        }
        let _ = writeln!(text, "\nCtrl-C ends it with a summary.\n");
        text
    }

    fn tries(&self) -> Vec<(String, &'static str)> {
        let mut tries = vec![("kubectl get nodepools,nodeclaims,nodes".to_owned(), "what there is")];
        if let Some(name) = &self.deployment {
            let scale = |replicas| format!("kubectl scale deployment/{name} --replicas={replicas}");
            tries.push((scale(40), "pods come, and nodes for them"));
            tries.push((scale(2), "pods go, and then nodes"));
        }
        tries.push(("kubectl delete node NAME".to_owned(), "its pods move"));
        tries.push(("kubectl get events --sort-by=.lastTimestamp".to_owned(), "why"));
        tries
    }
}

/// Where the kubeconfig goes unless somebody says: always the same place, so that one export lasts for many demos; but
/// what is there is left alone while the cluster that it leads to answers.
fn place(directory: &Path, api: SocketAddr) -> PathBuf {
    let usual = directory.join("kubeconfig");
    let written = fs::read_to_string(&usual).unwrap_or_default();
    let server = written.lines().find_map(|line| line.split_once("http://"));
    let other = server.and_then(|(_, server)| server.trim_matches(|sign: char| !sign.is_ascii_digit()).parse().ok());
    let is_answered = |other: SocketAddr| TcpStream::connect_timeout(&other, PATIENCE).is_ok();
    if other.is_some_and(|other| other != api && is_answered(other)) {
        return directory.join(format!("kubeconfig-{}", api.port()));
    }
    usual
}

/// Who does not take a connection on the same machine in this time is gone.
const PATIENCE: Duration = Duration::from_millis(500);

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(|| format!("create directory {}", directory.display()))?;
    }
    fs::write(path, text).with_context(|| format!("write {}; --kubeconfig chooses another place", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_demo_leaves_the_kubeconfig_of_one_that_runs_alone() {
        let folder = tempfile::tempdir().unwrap();
        let usual = folder.path().join("kubeconfig");
        let ours: SocketAddr = "127.0.0.1:7".parse().unwrap();
        assert_eq!(place(folder.path(), ours), usual);
        let first = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = first.local_addr().unwrap();
        write(&usual, &simulator::http::kubeconfig(address)).unwrap();
        assert_eq!(place(folder.path(), ours), folder.path().join("kubeconfig-7"));
        drop(first);
        assert_eq!(place(folder.path(), ours), usual);
    }
}
