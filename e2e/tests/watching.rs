//! Does a controller in a real cluster show what it does: on its page, for whoever may see it, and to a webhook?

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, channel},
    thread,
};

use anyhow::{Context, Result, ensure};
use e2e::autoscaler::{
    LIMIT, apply_deployment, apply_manifest, apply_pool, apply_role, await_log, await_nothing_left, await_ready,
    claims, cluster, delete, nodes, start,
};
use rig::ports;
use serde_json::Value;

/// A receiver of webhooks on this machine, and what it was sent: the media type and the message.
fn webhook() -> Result<(String, Receiver<(String, Value)>)> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = format!("http://{}/hook", listener.local_addr()?);
    let (send, sent) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let Ok(message) = take(&stream) else { continue };
            if send.send(message).is_err() {
                return;
            }
        }
    });
    Ok((address, sent))
}

fn take(mut stream: &TcpStream) -> Result<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut kind) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        match line.split_once(": ") {
            Some(("content-length", value)) => length = value.parse()?,
            Some(("content-type", value)) => value.clone_into(&mut kind),
            _ if line.is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    write!(stream, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")?;
    Ok((kind, serde_json::from_slice(&body)?))
}

/// Waits for a message about a decision that came to this, and returns the decision.
fn await_told(sent: &Receiver<(String, Value)>, action: &str, phase: &str) -> Result<Value> {
    loop {
        let (kind, message) = sent
            .recv_timeout(LIMIT)
            .with_context(|| format!("nobody told of a {action} that is {phase}"))?;
        ensure!(kind == "application/cloudevents+json", "{kind}");
        ensure!(message["type"] == "dovetail.decisions.v1", "{message}");
        let mut decisions = message["data"]["decisions"].as_array().into_iter().flatten();
        let found = decisions.find(|one| one["action"] == action && one["phase"] == phase);
        if let Some(found) = found {
            return Ok(found.clone());
        }
    }
}

/// What the page answers to whoever shows this token: the status, and the rest.
fn ask(port: u16, path: &str, token: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: localhost:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, answer))
}

/// The token of a kubeconfig.
fn token(kubeconfig: &std::path::Path) -> Result<String> {
    let text = std::fs::read_to_string(kubeconfig)?;
    let (_, rest) = text.split_once("token: ").context("no token")?;
    Ok(rest.chars().take_while(|sign| !"}\n ".contains(*sign)).collect())
}

#[test]
fn a_launch_is_told_to_a_webhook_and_shown_on_the_page_to_those_who_may_see_it() -> Result<()> {
    let cluster = cluster()?;
    let client = cluster.client();
    apply_role(client)?;
    apply_manifest(client, "deploy/page.yaml")?;
    let (address, sent) = webhook()?;
    let [port] = ports::free()?;
    let account = cluster.account_kubeconfig();
    let controller = start(
        &cluster,
        "dovetail",
        &[
            ("KUBECONFIG", &account.to_string_lossy()),
            ("PAGE_PORT", &port.to_string()),
            ("NOTIFY_URL", &address),
            ("NOTIFY_EVERY", "1s"),
        ],
    )?;
    await_log(client, &controller, "the page is open")?;
    apply_pool(client, "default")?;
    apply_deployment(client, "web", 2, "1")?;
    await_ready(client, "web", 2)?;

    let told = await_told(&sent, "launch", "done")?;
    let claim = claims(client)?.pop().context("no claim")?;
    ensure!(
        claim["metadata"]["annotations"]["dovetail.dev/decision"] == told["id"],
        "the claim of another decision: {told}"
    );

    let node = nodes(client)?.pop().context("no node")?["metadata"]["name"].take();
    let node = node.as_str().unwrap_or_default();
    let (status, page) = ask(port, "/", "")?;
    ensure!(
        status == 200 && page.contains("<title>"),
        "anybody gets the empty page: {status}"
    );
    let why = format!("/api/why/node/{node}");
    ensure!(ask(port, &why, "")?.0 == 401, "who shows no token sees nothing");
    ensure!(ask(port, &why, "made-up")?.0 == 401, "nor who makes one up");
    let (status, seen) = ask(port, &why, &token(&cluster.kubeconfig())?)?;
    ensure!(status == 200 && seen.contains(node), "{status}: {seen}");

    delete(client, "default", "web")?;
    await_nothing_left(client)?;
    let log = std::fs::read_to_string(controller.log())?;
    ensure!(!log.contains("/hook"), "the address may be a secret and is not logged");
    Ok(())
}
