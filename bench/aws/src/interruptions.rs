//! Messages of the interruption queue: each is read, and matched with the claim whose machine it is about.
//!
//! Batches are as large as the provider's, and every claim is looked at once for each of them, as the controller does.
//! What is not measured is the network: SQS gives ten messages an answer.

use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use cloud::{Meant, Notice};
use jiff::Timestamp;
use model::object::ProviderId;
use serde_json::json;

/// What the provider hands over at once, at most.
const BATCH: usize = 100;
/// One message in so many is about another cluster's machine, says nothing to us, or is no event at all.
const OTHERS: usize = 10;

#[derive(Args)]
pub(crate) struct Load {
    /// NodeClaims with a machine each
    #[arg(long, default_value_t = 10_000)]
    claims: usize,
    /// Messages, nine in ten about one of them
    #[arg(long, default_value_t = 200_000)]
    messages: usize,
}

/// What came of the messages.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    matched: usize,
    /// About our machines, and not matched with exactly the claim they are about.
    lost: usize,
    foreign: usize,
    ignored: usize,
    unreadable: usize,
}

pub(crate) fn run(load: &Load) -> Result<()> {
    let ids = machines(load.claims);
    let messages: Vec<String> = (0..load.messages).map(|at| message(at, load.claims)).collect();
    let began = Instant::now();
    let tally = work(&ids, &messages);
    let seconds = began.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "printed to three digits")]
    let rate = messages.len() as f64 / seconds;
    println!("claims     {}", ids.len());
    println!("messages   {}", messages.len());
    println!("seconds    {seconds:.2}, one thread");
    println!("per second {rate:.0}");
    println!("{tally:?}");
    if tally.lost > 0 {
        bail!("{} messages were lost", tally.lost);
    }
    Ok(())
}

fn machines(count: usize) -> Vec<ProviderId> {
    let id = |at| format!("aws:///us-east-1{}/{}", ["a", "b", "c"][at % 3], instance(at));
    (0..count).map(|at| id(at).as_str().into()).collect()
}

fn instance(at: usize) -> String {
    format!("i-{:017x}", at * 7919)
}

/// Which machine a message is about: all in turn, but not in their order.
fn meant(at: usize, claims: usize) -> usize {
    (at * 31 + at / claims) % claims
}

fn message(at: usize, claims: usize) -> String {
    let event = |kind: &str, detail: serde_json::Value| {
        json!({
            "version": "0", "id": format!("{at:032x}"), "detail-type": kind, "source": "aws.ec2", "account": "123456789012",
            "time": "2026-11-17T10:00:00Z", "region": "us-east-1", "resources": [], "detail": detail,
        })
        .to_string()
    };
    let spot = "EC2 Spot Instance Interruption Warning";
    let change = "EC2 Instance State-change Notification";
    match (at % OTHERS, at / OTHERS % 3) {
        (0, 0) => event(
            spot,
            json!({"instance-id": format!("i-f{:016x}", at), "instance-action": "terminate"}),
        ),
        (0, 1) => event(
            change,
            json!({"instance-id": instance(meant(at, claims)), "state": "running"}),
        ),
        (0, _) => "not an event".to_owned(),
        (1, _) => event(
            change,
            json!({"instance-id": instance(meant(at, claims)), "state": "stopping"}),
        ),
        _ => event(
            spot,
            json!({"instance-id": instance(meant(at, claims)), "instance-action": "terminate"}),
        ),
    }
}

fn work(ids: &[ProviderId], messages: &[String]) -> Tally {
    let mut tally = Tally::default();
    for (number, batch) in messages.chunks(BATCH).enumerate() {
        let (mut notices, mut places) = (Vec::new(), Vec::new());
        for (at, body) in batch.iter().enumerate() {
            match cloud_aws::read_message(body, "receipt", Timestamp::UNIX_EPOCH) {
                Ok(Some(notice)) => {
                    notices.push(notice);
                    places.push(number * BATCH + at);
                }
                Ok(None) => tally.ignored += 1,
                Err(_) => tally.unreadable += 1,
            }
        }
        judge(ids, &notices, &places, &mut tally);
    }
    tally
}

/// Matches a batch, and compares with what its messages were made from.
fn judge(ids: &[ProviderId], notices: &[Notice], places: &[usize], tally: &mut Tally) {
    let index = Meant::of(notices);
    let mut found: Vec<Vec<usize>> = vec![Vec::new(); notices.len()];
    for (machine, id) in ids.iter().enumerate() {
        for notice in index.about(id) {
            if let Some(found) = found.get_mut(notice) {
                found.push(machine);
            }
        }
    }
    for (found, place) in found.iter().zip(places) {
        let is_foreign = place % OTHERS == 0;
        match (is_foreign, found.as_slice()) {
            (true, []) => tally.foreign += 1,
            (false, [one]) if *one == meant(*place, ids.len()) => tally.matched += 1,
            _ => tally.lost += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_about_a_machine_of_ours_finds_its_claim_and_no_other_does() {
        let (claims, count) = (700, 3000);
        let messages: Vec<String> = (0..count).map(|at| message(at, claims)).collect();
        let tally = work(&machines(claims), &messages);
        let expected = Tally {
            matched: 2700,
            lost: 0,
            foreign: 100,
            ignored: 100,
            unreadable: 100,
        };
        assert_eq!(tally, expected);
    }
}
