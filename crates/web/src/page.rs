//! The thread of the page: it listens, answers, and ends with whoever started it.

use std::{io, net::TcpListener, pin::pin, sync::Arc, thread, time::Duration};

use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpStream,
    sync::{Semaphore, watch},
    task::JoinSet,
};

use crate::{Access, Answers, Eye, Title, desk::Desk, hub::Hub, route::Site};

/// Connections at once; more wait in the kernel's queue.
const CONNECTIONS: usize = 128;
/// How long a request may take to be asked.
const ASKING: Duration = Duration::from_secs(10);
/// After accepting fails (too many open files, say) it is tried again this much later.
const PAUSE: Duration = Duration::from_millis(100);

/// What a page is made of.
pub struct Settings {
    /// Where it listens.
    pub listener: TcpListener,
    /// Who may see it.
    pub access: Access,
    /// What it is about.
    pub title: Title,
    /// Tells numbers of this process from those of another, after which everything is told anew.
    pub epoch: String,
    /// Who looks at the cluster.
    pub eye: Arc<dyn Eye>,
    /// Who answers as the command line does.
    pub answers: Arc<dyn Answers>,
}

/// The page, until this is dropped.
#[derive(Debug)]
pub struct Page {
    stop: watch::Sender<bool>,
}

impl Page {
    /// Starts its threads: when this returns, it answers.
    pub fn start(settings: Settings) -> io::Result<Self> {
        let Settings {
            listener,
            access,
            title,
            epoch,
            eye,
            answers,
        } = settings;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let site = Arc::new(Site {
            desk: Desk::new(eye, answers, title, Hub::new(epoch))?,
            access,
        });
        let (stop, mut stopping) = watch::channel(false);
        thread::Builder::new().name("page".to_owned()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
                    return;
                };
                tokio::select! {
                    () = serve(&listener, &site) => {}
                    () = site.desk.run() => {}
                    // Also when nobody is left to say stop.
                    _ = stopping.wait_for(|stop| *stop) => {}
                }
            });
        })?;
        Ok(Self { stop })
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

async fn serve(listener: &tokio::net::TcpListener, site: &Arc<Site>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = converse(stream, Arc::clone(site));
                open.spawn(async move {
                    connection.await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::debug!(error = %error, "accepting a connection failed");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Answers the requests of one connection.
async fn converse(stream: TcpStream, site: Arc<Site>) {
    let service = service_fn(move |request: http::Request<Incoming>| {
        let site = Arc::clone(&site);
        async move { Ok::<_, std::convert::Infallible>(site.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ASKING)
        .serve_connection(TokioIo::new(stream), service);
    let _ = pin!(connection).await;
}
