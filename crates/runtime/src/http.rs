//! `/metrics`, `/healthz` and `/readyz`: what a cluster asks a controller.
//!
//! Meant to run on a thread and runtime of its own, so that no plan and no burst of events keeps a probe waiting. Few
//! connections at once, none for ever: who asks slowly or never reads the answer is cut off.

mod probe;
mod site;

use std::{io, net::Ipv4Addr, net::Ipv6Addr, pin::pin, sync::Arc, time::Duration};

use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
};

pub use probe::{Check, Probes};
pub use site::Site;

/// Connections at once; more wait in the kernel's queue.
const CONNECTIONS: usize = 64;
/// How long a request may take to be asked.
const ASKING: Duration = Duration::from_secs(10);
/// After this long a connection is asked to end,
const LIFE: Duration = Duration::from_mins(5);
/// and after this much longer it is cut.
const GRACE: Duration = Duration::from_secs(30);
/// How long answers in flight may take once the server is to stop.
const FAREWELL: Duration = Duration::from_secs(3);
/// After accepting fails (too many open files, say) it is tried again this much later.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens on a port on all interfaces: IPv6 and IPv4 together where there is IPv6.
pub async fn listen(port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
    }
}

/// Answers until a future ends, and then until what was asked is answered.
pub async fn serve(listener: TcpListener, site: Arc<Site>, until: impl Future<Output = ()>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let (stop, stopping) = watch::channel(false);
    let mut open = JoinSet::new();
    let mut until = pin!(until);
    loop {
        while open.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = accept(&listener, &slots) => accepted,
            () = &mut until => break,
        };
        let Some((stream, slot)) = accepted else { break };
        let connection = converse(stream, Arc::clone(&site), stopping.clone());
        open.spawn(async move {
            connection.await;
            drop(slot);
        });
    }
    drop(listener);
    stop.send_replace(true);
    let answered = async { while open.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(FAREWELL, answered).await;
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return Some((stream, slot)),
            Err(error) => {
                tracing::debug!(error = %error, "accepting a connection failed");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Answers the requests of one connection.
async fn converse(stream: TcpStream, site: Arc<Site>, mut stopping: watch::Receiver<bool>) {
    let service = service_fn(move |request: http::Request<Incoming>| {
        let answer = site.answer(&request);
        async move { Ok::<_, std::convert::Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ASKING)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stop| *stop) => {}
        () = tokio::time::sleep(LIFE) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(GRACE, connection).await;
}

#[cfg(test)]
mod tests;
