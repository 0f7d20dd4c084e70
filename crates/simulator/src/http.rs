//! How does a client outside this process reach the server? Plain HTTP/1.1 on a listener, and a kubeconfig that names it.

use std::{convert::Infallible, io::Write, net::SocketAddr, time::Duration};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube_client::client::Body;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tower::Service;

use crate::{ApiServer, reply::Reply, server::Line};

/// After accepting fails (too many open files, say) it is tried again this much later.
const PAUSE: Duration = Duration::from_millis(100);
/// Answers from this size on are compressed for those who ask for it, as the real server does.
const WORTH_COMPRESSING: usize = 128 * 1024;

/// Answers whoever connects, until this future is dropped; connections end with it.
///
/// Who comes this way is a stranger: objects are decoded as strictly as the real server does, and it is noted who set
/// which field. Clients made by [`ApiServer::client`] are spared the work.
pub async fn serve(server: ApiServer, listener: TcpListener) {
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                open.spawn(converse(stream, server.stranger()));
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Answers the requests of one connection.
async fn converse(stream: TcpStream, line: Line) {
    // Without it small watch events wait for more to come.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| answer(line.clone(), request));
    // A client that goes away in the middle is its own business.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(mut line: Line, request: Request<Incoming>) -> Result<Response<Reply>, Infallible> {
    let (head, body) = request.into_parts();
    let takes_gzip = takes_gzip(&head.headers);
    let Ok(body) = body.collect().await else {
        return Ok(broken("the request ended before its body did"));
    };
    let request = Request::from_parts(head, Body::from(body.to_bytes()));
    let date = line.date();
    let mut response = match line.call(request).await {
        Ok(response) if takes_gzip => compressed(response),
        Ok(response) => response,
        Err(error) => broken(&error.to_string()),
    };
    // Objects have the times of the cluster, which need not be those of the wall.
    if let Ok(date) = HeaderValue::from_str(&date) {
        response.headers_mut().insert(header::DATE, date);
    }
    Ok(response)
}

fn broken(why: &str) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(Some(Bytes::from(why.to_owned()))));
    *response.status_mut() = http::StatusCode::BAD_GATEWAY;
    response
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers
        .get(header::ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("gzip"))
}

fn compressed(mut response: Response<Reply>) -> Response<Reply> {
    let Reply::Whole(Some(plain)) = response.body() else {
        return response;
    };
    if plain.len() < WORTH_COMPRESSING {
        return response;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let done = encoder.write_all(plain).and_then(|()| encoder.finish());
    if let Ok(bytes) = done {
        *response.body_mut() = Reply::Whole(Some(Bytes::from(bytes)));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    response
}

/// A kubeconfig for a server at an address. Whoever reaches the address may do everything, so it names no user's secret.
pub fn kubeconfig(address: SocketAddr) -> String {
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: dovetail\n  \
           cluster:\n    \
             server: http://{address}\n\
         users:\n\
         - name: dovetail\n  \
           user: {{}}\n\
         contexts:\n\
         - name: dovetail\n  \
           context:\n    \
             cluster: dovetail\n    \
             user: dovetail\n    \
             namespace: default\n\
         current-context: dovetail\n"
    )
}
