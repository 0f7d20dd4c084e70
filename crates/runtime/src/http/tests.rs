//! Are probes and metrics answered as upstream answers them, and do slow clients cost nothing?

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::oneshot,
    task::JoinHandle,
};

use super::*;
use crate::{Metrics, settings::MetricsProfile};

struct Server {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

async fn serving(site: Site) -> Server {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let ended = tokio::spawn(serve(listener, Arc::new(site), async {
        let _ = stopped.await;
    }));
    Server { address, stop, ended }
}

impl Server {
    /// The whole answer to a request.
    async fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Status and body of what a path gives.
    async fn get(&self, path: &str) -> (u16, String) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = self.ask(&request).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }
}

fn probes(ready: Arc<AtomicBool>) -> Site {
    let manager = move || {
        if ready.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err("failed to sync caches".to_owned())
        }
    };
    Site::Probes {
        healthz: Probes::new(vec![Check::ping("healthz")]),
        readyz: Probes::new(vec![
            Check::ping("readyz"),
            Check::new("manager", manager),
            Check::ping("crd"),
        ]),
    }
}

#[tokio::test]
async fn probes_answer_in_controller_runtimes_words() {
    let ready = Arc::new(AtomicBool::new(true));
    let server = serving(probes(Arc::clone(&ready))).await;
    let cases = [
        ("/healthz", 200, "ok"),
        ("/readyz", 200, "ok"),
        ("/readyz/", 200, "ok"),
        (
            "/readyz?verbose",
            200,
            "[+]crd ok\n[+]manager ok\n[+]readyz ok\nhealthz check passed\n",
        ),
        (
            "/readyz?verbose=true&exclude=crd",
            200,
            "[+]crd excluded: ok\n[+]manager ok\n[+]readyz ok\nhealthz check passed\n",
        ),
        ("/readyz/manager", 200, "ok"),
        ("/readyz/nothing", 404, "404 page not found\n"),
        ("/metrics", 404, "404 page not found\n"),
        ("/healthzz", 404, "404 page not found\n"),
    ];
    for (path, status, text) in cases {
        assert_eq!(server.get(path).await, (status, text.to_owned()), "{path}");
    }
    ready.store(false, Ordering::Relaxed);
    let cases = [
        ("/healthz", 200, "ok"),
        (
            "/readyz",
            500,
            "[+]crd ok\n[-]manager failed: reason withheld\n[+]readyz ok\nhealthz check failed\n",
        ),
        (
            "/readyz?exclude=x",
            500,
            "[+]crd ok\n[-]manager failed: reason withheld\n[+]readyz ok\nwarn: some health checks cannot be excluded: no matches for \"x\"\nhealthz check failed\n",
        ),
        ("/readyz?exclude=manager", 200, "ok"),
        ("/readyz/manager", 500, "internal server error: failed to sync caches\n"),
    ];
    for (path, status, text) in cases {
        assert_eq!(server.get(path).await, (status, text.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn the_metrics_page_is_served_as_prometheus_text() {
    let metrics = Arc::new(Metrics::default());
    metrics.nodes_drained_total.inc(["pool"]);
    let site = Site::Metrics {
        metrics,
        profile: MetricsProfile::Standard,
    };
    let server = serving(site).await;
    let answer = server
        .ask("GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("\nkarpenter_nodes_drained_total{nodepool=\"pool\"} 1\n"),
        "{answer}"
    );
    assert_eq!(server.get("/").await.0, 404);
}

#[tokio::test]
async fn a_connection_that_is_kept_open_does_not_keep_the_server_from_ending() {
    let server = serving(probes(Arc::default())).await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).await.unwrap();
    server.stop.send(()).unwrap();
    server.ended.await.unwrap();
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
}

#[tokio::test]
async fn who_takes_too_long_to_ask_is_cut_off() {
    let server = serving(probes(Arc::default())).await;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
    assert_eq!(server.get("/healthz").await.0, 200);
    tokio::time::pause();
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"");
}

#[tokio::test]
async fn a_free_port_can_be_listened_on_and_a_taken_one_is_refused() {
    let first = listen(0).await.unwrap();
    let taken = listen(first.local_addr().unwrap().port()).await;
    assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn metrics_come_compressed_to_whoever_can_read_that() {
    let site = || Site::Metrics {
        metrics: Arc::new(Metrics::default()),
        profile: MetricsProfile::Standard,
    };
    let server = serving(site()).await;
    let (_, plain) = server.get("/metrics").await;
    let ask = |encoding: &str| {
        format!("GET /metrics HTTP/1.0\r\nhost: x\r\naccept-encoding: {encoding}\r\nconnection: close\r\n\r\n")
    };
    for (encoding, is_zipped) in [
        ("gzip", true),
        ("deflate, gzip;q=0.5", true),
        ("gzip;q=0", false),
        ("br", false),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(ask(encoding).as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let (head, body) = (String::from_utf8_lossy(&answer[..end]).into_owned(), &answer[end + 4..]);
        assert_eq!(head.contains("content-encoding: gzip"), is_zipped, "{encoding}: {head}");
        let mut text = String::new();
        if is_zipped {
            std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(body), &mut text).unwrap();
        } else {
            text = String::from_utf8_lossy(body).into_owned();
        }
        let families = |page: &str| page.lines().filter(|line| line.starts_with("# TYPE")).count();
        assert!(
            families(&text) > 0 && families(&text) == families(&plain),
            "{encoding}: {text}"
        );
    }
}
