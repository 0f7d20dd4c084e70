//! Serves a cluster of stand-ins for kubectl: `cargo run -p simulator --example serve -- PORT KUBECONFIG [CRD.yaml ...]`.
#![allow(clippy::disallowed_methods, reason = "a program for people lives in their time")]

use std::{error::Error, fs};

use jiff::Timestamp;
use simulator::{ApiServer, Standins, http};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().ok_or("which port?")?.parse()?;
    let kubeconfig = arguments.next().ok_or("where to write the kubeconfig?")?;
    let server = ApiServer::new(Timestamp::now);
    for path in arguments {
        for document in serde_saphyr::from_multiple::<serde_json::Value>(&fs::read_to_string(path)?)? {
            server.create(document)?;
        }
    }
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    fs::write(kubeconfig, http::kubeconfig(listener.local_addr()?))?;
    let _standins = Standins::all().start(&server);
    http::serve(server, listener).await;
    Ok(())
}
