//! The page of a running controller: on its own port, for whoever has a token that the cluster vouches for.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::Context;
use async_trait::async_trait;
use controllers::Cluster;
use runtime::{
    api::{self, Options},
    random::Random,
};
use web::{
    Access, Eye, Mode, Page, Seen, Title,
    access::{ClusterReviewer, Gate},
};

use super::{Process, USER_AGENT};
use crate::page::{self, version};

/// Decisions that the page shows.
const DECISIONS: usize = 500;

/// What the term under way knows of the cluster.
pub(super) type Known = Arc<Mutex<Weak<Cluster>>>;

/// Starts it, if it is asked for.
pub(super) fn start(process: &Process) -> anyhow::Result<Option<Page>> {
    let port = process.settings.page_port;
    if port == 0 {
        return Ok(None);
    }
    let listener =
        listen(port).with_context(|| format!("port {port} cannot be opened; --page-port chooses another"))?;
    let title = Title {
        cluster: "cluster".to_owned(),
        place: String::new(),
        mode: Mode::Acting,
        version: version(),
        acts: Vec::new(),
    };
    // On a connection of its own: reviews are no writes of a leader, and must not wait for its rate.
    let reviewer = ClusterReviewer::new(|| async {
        let options = Options {
            random: Random::from_system(),
            ..Options::new(USER_AGENT)
        };
        api::connect(None, options).await.map_err(|error| error.to_string())
    });
    let access = Access::Reviewed(Arc::new(Gate::new(Arc::new(reviewer))));
    let eye = Arc::new(Term(Arc::clone(&process.known)));
    tracing::info!(port, "the page is open");
    page::start(listener, access, title, eye).map(Some)
}

/// On all interfaces: IPv6 and IPv4 together where there is IPv6.
fn listen(port: u16) -> std::io::Result<std::net::TcpListener> {
    match std::net::TcpListener::bind((std::net::Ipv6Addr::UNSPECIFIED, port)) {
        Err(error) if error.kind() != std::io::ErrorKind::AddrInUse => {
            std::net::TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, port))
        }
        listener => listener,
    }
}

/// Looks at what the term under way knows. A snapshot is a lock for as long as it takes to count references.
struct Term(Known);

#[async_trait]
impl Eye for Term {
    async fn look(&self) -> Result<Seen, String> {
        let cluster = self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        let cluster = cluster.ok_or("the controller begins a new term")?;
        Ok(Seen {
            snapshot: cluster.snapshot(),
            decisions: cluster.latest_decisions(DECISIONS),
            stage: None,
        })
    }
}
