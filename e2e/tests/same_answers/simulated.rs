//! A simulated API server behind a listener, as a stranger meets it.

use std::{net::TcpListener, sync::mpsc, thread};

use rig::Client;
use simulator::{ApiServer, http};

/// It answers until this is dropped.
pub(crate) struct Simulated {
    client: Client,
    _stop: mpsc::Sender<()>,
}

impl Simulated {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = mpsc::channel::<()>();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let serving = tokio::spawn(http::serve(ApiServer::new(now), listener));
                tokio::task::spawn_blocking(move || stopped.recv()).await.unwrap().ok();
                serving.abort();
            });
        });
        Self {
            client: Client::plain(format!("http://{address}")),
            _stop: stop,
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

#[allow(clippy::disallowed_methods, reason = "both servers live in the same time")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
