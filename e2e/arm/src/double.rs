//! How does a test run a double? It is started, looked at and turned from here; dropping it ends it.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use crate::{
    Setup,
    answer::Answer,
    knob::{Advance, Effect, Evict, Fault, Knob, Latency, Quota, Stock},
    ledger::{Call, Violation},
    serve::{Incoming, Service},
    state::{DiskState, NicState, State, VmState, disk_state, nic_state},
};

/// After accepting fails (too many open files, say) it is tried again this much later.
const PAUSE: Duration = Duration::from_millis(100);

/// A running double.
pub struct Double {
    service: Arc<Service>,
    setup: Setup,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Double {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Double {
    /// Starts one. To be called inside a runtime.
    pub async fn start(setup: Setup) -> Result<Self> {
        let listener = TcpListener::bind(&setup.listen)
            .await
            .with_context(|| format!("listening at {}", setup.listen))?;
        let address = listener.local_addr().context("reading the address")?;
        let service = Arc::new(Service::new(setup.clone(), format!("http://{address}"))?);
        let task = tokio::spawn(serve(service.clone(), listener));
        Ok(Self {
            service,
            setup,
            address,
            task,
        })
    }

    /// Where it answers: for Resource Manager, for prices, and for tokens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was started with.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// All virtual machines of a client: not the user's own that was there before.
    pub fn vms(&self) -> Vec<VmState> {
        self.service.with(|world| {
            world
                .vms
                .all()
                .filter(|vm| vm.puts > 0)
                .map(|vm| world.vm_state(vm))
                .collect()
        })
    }

    /// All network interfaces but the user's own.
    pub fn nics(&self) -> Vec<NicState> {
        let all = self
            .service
            .with(|world| world.nics.all().map(nic_state).collect::<Vec<_>>());
        all.into_iter().filter(|nic| nic.name != "jumpbox").collect()
    }

    /// All disks but the user's own.
    pub fn disks(&self) -> Vec<DiskState> {
        let all = self
            .service
            .with(|world| world.disks.all().map(disk_state).collect::<Vec<_>>());
        all.into_iter().filter(|disk| disk.name != "jumpbox").collect()
    }

    /// The ids of network interfaces and disks that belong to no virtual machine: what somebody forgot.
    pub fn leftovers(&self) -> Vec<String> {
        let nics = self.nics().into_iter().map(|nic| (nic.id, nic.vm));
        let disks = self.disks().into_iter().map(|disk| (disk.id, disk.vm));
        let loose = nics.chain(disks).filter(|(_, vm)| vm.is_none());
        loose.map(|(id, _)| id).collect()
    }

    /// Everything.
    pub fn state(&self) -> State {
        self.service.with(|world| world.state())
    }

    /// What broke the contract so far.
    pub fn violations(&self) -> Vec<Violation> {
        self.service.with(|world| world.ledger.violations.clone())
    }

    /// Every call so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.service.with(|world| world.ledger.calls.clone())
    }

    /// How often an operation was called.
    pub fn count(&self, operation: &str) -> usize {
        self.calls().iter().filter(|call| call.operation == operation).count()
    }

    /// Turns a knob; an error says what of it makes no sense.
    pub fn turn(&self, knob: Knob) -> Result<()> {
        self.service.with(|world| world.turn(knob)).map_err(|why| anyhow!(why))
    }

    /// Lets something go wrong with the next call of an operation.
    pub fn fail_next(&self, operation: &str, effect: Effect) {
        self.service
            .with(|world| world.faults.add(Fault::next(operation, effect)));
    }

    /// Answers every call of an operation with 403 from now on.
    pub fn forbid(&self, operation: &str) {
        let effect = Effect::Sync {
            status: 403,
            code: "AuthorizationFailed".to_owned(),
            message: None,
            retry_after: None,
        };
        self.service
            .with(|world| world.faults.add(Fault::next(operation, effect).times(None)));
    }

    /// Replaces the rules about capacity.
    pub fn stock(&self, rules: Vec<Stock>) {
        self.service.with(|world| world.stock = rules);
    }

    /// Sets a quota.
    pub fn quota(&self, family: &str, limit: i64) {
        let quota = Quota {
            family: family.to_owned(),
            limit,
        };
        self.service.with(|world| world.limits.set(&quota));
    }

    /// Lets operations take so long.
    pub fn latency(&self, operation: &str, seconds: i64) {
        let latency = Latency {
            operation: operation.to_owned(),
            seconds,
        };
        self.service.with(|world| world.latencies.push(latency));
    }

    /// Moves the time forward.
    pub fn advance(&self, seconds: i64) -> Result<()> {
        let advance = Advance {
            advance_seconds: seconds,
        };
        self.turn(Knob::Clock(advance))
    }

    /// Announces an eviction.
    pub fn evict(&self, vm: &str, notice_seconds: i64) -> Result<()> {
        self.turn(Knob::Evict(Evict {
            vm: vm.to_owned(),
            notice_seconds,
        }))
    }

    /// Runs until the process ends: for the binary.
    pub async fn run(mut self) {
        let _ = (&mut self.task).await;
    }
}

/// Answers whoever connects, until this future is dropped; connections end with it.
async fn serve(service: Arc<Service>, listener: TcpListener) {
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                open.spawn(converse(stream, service.clone()));
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Answers the requests of one connection.
async fn converse(stream: TcpStream, service: Arc<Service>) {
    let _ = stream.set_nodelay(true);
    let answer = service_fn(move |request: Request<body::Incoming>| answer(service.clone(), request));
    // A client that goes away in the middle is its own business; an answer that is lost on purpose ends here, too.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

async fn answer(service: Arc<Service>, request: Request<body::Incoming>) -> io::Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let incoming = Incoming {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body,
    };
    let reply = service.answer(&incoming);
    if reply.millis > 0 {
        tokio::time::sleep(Duration::from_millis(reply.millis)).await;
    }
    match reply.answer {
        Some(answer) => Ok(response(answer)),
        None => Err(io::Error::other("lost on purpose")),
    }
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let body = answer.body.map(|body| body.to_string());
    let has_body = body.is_some();
    let mut response = Response::new(Full::from(Bytes::from(body.unwrap_or_default())));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if has_body {
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json; charset=utf-8"),
        );
    }
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    response
}
