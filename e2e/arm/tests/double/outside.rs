//! Can the double be run and turned from outside the process, as its document says?

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use crate::client::Azure;

/// Every knob with its body, from the table of the document.
fn documented() -> Vec<(String, String)> {
    let document = include_str!("../../README.md");
    let rows = document.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('`');
        let (knob, body) = (cells.next()?, cells.nth(1)?);
        body.starts_with(['{', '[']).then(|| (knob.to_owned(), body.to_owned()))
    });
    rows.collect()
}

#[tokio::test]
async fn every_knob_of_the_document_can_be_turned() {
    let knobs = documented();
    assert!(knobs.len() > 20, "{knobs:?}");
    for (knob, body) in knobs {
        let azure = Azure::start().await;
        let got = azure
            .raw("POST", &format!("/_double/{knob}"), &[], &body)
            .await
            .unwrap();
        assert_eq!(got.status, 200, "{knob} {body}: {got:?}");
    }
}

#[tokio::test]
async fn the_document_counts_the_sizes_right() {
    let azure = Azure::start().await;
    let target = azure.in_subscription("providers/Microsoft.Compute/skus", "2021-07-01");
    let got = azure.get(&target).await;
    let sizes = got.body["value"].as_array().unwrap().iter();
    let count = sizes.filter(|sku| sku["resourceType"] == "virtualMachines").count();
    assert!(
        include_str!("../../README.md").contains(&format!("three zones, {count} sizes")),
        "{count}"
    );
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_program_says_where_it_answers() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arm-double"));
    command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line.trim().strip_prefix("http://").unwrap();
    std::net::TcpStream::connect(address).unwrap();
}

#[tokio::test]
async fn dropping_the_double_ends_it() {
    let azure = Azure::start().await;
    let address = azure.double.url().trim_start_matches("http://").to_owned();
    assert!(tokio::net::TcpStream::connect(&address).await.is_ok());
    drop(azure);
    // The task ends when the runtime next looks.
    while tokio::net::TcpStream::connect(&address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}
