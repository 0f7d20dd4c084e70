//! A real connection to the double in a test whose time is paused.
//!
//! The double and the client's sockets live on a thread of their own, where time goes on. The test waits for an answer in a
//! blocking task, and while there is one, tokio does not move a paused time on. The double's time is the test's.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicI64, Ordering},
};

use arm::{Double, Setup};
use async_trait::async_trait;
use bytes::Bytes;
use cloud_azure::arm::{HyperTransport, Transport, TransportError};
use http::{Request, Response};
use jiff::Timestamp;
use runtime::Clock;
use tokio::runtime::Handle;

static OUTSIDE: LazyLock<Handle> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let handle = runtime.handle().clone();
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    handle
});

/// The client's side. Clones are the same.
#[derive(Clone)]
pub(crate) struct Wire {
    network: Arc<HyperTransport>,
    clock: Clock,
    /// The test's time in milliseconds, for the double.
    now: Arc<AtomicI64>,
}

impl Wire {
    /// Starts a double whose time is that of a clock, and a connection to it.
    pub(crate) async fn start(clock: &Clock) -> (Self, Double) {
        let wire = Self {
            network: Arc::new(HyperTransport::new().unwrap()),
            clock: clock.clone(),
            now: Arc::default(),
        };
        wire.tick();
        let now = Arc::clone(&wire.now);
        let told = move || Timestamp::from_millisecond(now.load(Ordering::SeqCst)).unwrap();
        let setup = Setup {
            clock: arm::Clock(Arc::new(told)),
            ..Setup::default()
        };
        let double = OUTSIDE.spawn(Double::start(setup)).await.unwrap().unwrap();
        (wire, double)
    }

    /// Tells the double what time it is.
    pub(crate) fn tick(&self) {
        self.now.store(self.clock.now().as_millisecond(), Ordering::SeqCst);
    }
}

#[async_trait]
impl Transport for Wire {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        self.tick();
        let network = Arc::clone(&self.network);
        let exchange = move || OUTSIDE.block_on(network.send(request));
        tokio::task::spawn_blocking(exchange).await.unwrap()
    }
}
