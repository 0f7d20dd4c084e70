//! A plain page with the state of the cluster; it renews itself.

use std::{fmt::Write, sync::Arc};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{Demo, screen::dollars};
use crate::terminal::hourly;

/// Answers whoever asks for anything, until this is dropped.
pub(super) async fn serve(demo: Arc<Demo>, listener: TcpListener) {
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        if let Ok((stream, _)) = listener.accept().await {
            let demo = Arc::clone(&demo);
            open.spawn(async move {
                let _ = answer(&demo, stream).await;
            });
        }
    }
}

/// Whatever was asked, the page is the answer.
async fn answer(demo: &Demo, stream: TcpStream) -> std::io::Result<()> {
    let mut head = [0; 4096];
    stream.readable().await?;
    let _ = stream.try_read(&mut head);
    let body = page(demo).await;
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut left = answer.as_bytes();
    while !left.is_empty() {
        stream.writable().await?;
        match stream.try_write(left) {
            Ok(written) => left = left.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Nodes a page lists at most.
const ROWS: usize = 200;

async fn page(demo: &Demo) -> String {
    let tally = demo.tally.lock().await;
    let bill = demo.world.region.bill();
    let mut page = String::from(
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=2><title>dovetail demo</title>\
         <style>body{font:15px system-ui;margin:2em}td,th{text-align:left;padding:.15em 1em .15em 0}</style>\
         <h1>dovetail demo</h1>",
    );
    let _ = write!(
        page,
        "<p>{} &middot; {} nodes &middot; {} pods run, {} wait &middot; {} &middot; {} spent &middot; {} evicted</p>\
         <table><tr><th>node<th>type<th>capacity<th>zone<th>$/h<th>since",
        demo.world.clock.now().strftime("%Y-%m-%d %H:%M:%S"),
        tally.nodes.len(),
        tally.running.len(),
        tally.waiting.len(),
        hourly(bill.hourly),
        dollars(bill.spent_picos),
        tally.evicted,
    );
    for machine in demo.world.region.machines().iter().take(ROWS) {
        let _ = write!(
            page,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}",
            machine.node_name,
            machine.instance_type(),
            machine.capacity_type(),
            machine.zone(),
            hourly(machine.price),
            machine.launched_at.strftime("%H:%M:%S"),
        );
    }
    page.push_str("</table>");
    page
}
