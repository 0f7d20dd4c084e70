//! Is the simulated API server honest? The same requests go to it, over HTTP, and to a real kube-apiserver.
//!
//! Two sorts: every case of the corpus of custom objects, and random conversations from seeds. What is taken out before
//! answers are compared stands in `same_answers/compared.rs`, what stays different in `docs/reliability.md`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the whole file is a test, and says how much it compared"
)]

#[path = "same_answers/compared.rs"]
mod compared;
#[path = "same_answers/conversation.rs"]
mod conversation;
#[path = "same_answers/simulated.rs"]
mod simulated;

use std::path::Path;

use e2e::{
    answer::{Answer, Cause, ask},
    corpus,
    crd_set::CrdSet,
    difference,
};
use rig::Cluster;

use simulated::Simulated;

/// Conversations, and turns of each: more than 2,000 requests.
const CONVERSATIONS: u64 = 40;
const TURNS: usize = 60;

#[test]
fn random_conversations_get_the_same_answers() {
    let real = Cluster::builder().api_server_only().start().unwrap();
    let simulated = Simulated::start();
    let crds = CrdSet::Kwok.ours().unwrap();
    for client in [real.client(), simulated.client()] {
        client.install_crd(&crds).unwrap();
        let account =
            serde_json::json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        let at = "/api/v1/namespaces/default/serviceaccounts";
        client.request("POST", at, Some(&account), "application/json").unwrap();
    }
    let (mut asked, mut different) = (0, Vec::new());
    for seed in 0..CONVERSATIONS {
        let report = conversation::hold(seed, TURNS, real.client(), simulated.client());
        asked += report.asked;
        different.extend(report.different);
    }
    println!("{asked} requests, {} answers differ", different.len());
    assert!(asked >= 2000, "only {asked} requests");
    assert!(
        different.is_empty(),
        "{} of {asked} differ:\n{}",
        different.len(),
        different[..different.len().min(40)].join("\n")
    );
}

fn verdicts(set: CrdSet) {
    let real = Cluster::builder().api_server_only().start().unwrap();
    let simulated = Simulated::start();
    for client in [real.client(), simulated.client()] {
        client.install_crd(&set.ours().unwrap()).unwrap();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut cases = corpus::load(&root).unwrap();
    cases.retain(|case| case.sets.contains(&set));
    let mut different = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let [real, simulated] = [real.client(), simulated.client()].map(|client| ask(client, case, number).unwrap());
        let title = format!("{} · {:?} · {}", case.file, case.kind, case.name);
        if (real.status, causes(&real)) == (simulated.status, causes(&simulated)) {
            let [real, simulated] = [real, simulated].map(|answer| compared::object(&answer.object));
            let places = difference::places(&real, &simulated);
            different.extend(
                places
                    .iter()
                    .map(|place| format!("{title}\n    {place} (real ≠ simulated)")),
            );
        } else {
            different.push(format!("{title}\n    real      {real}\n    simulated {simulated}"));
        }
    }
    println!("{set:?}: {} cases, {} answers differ", cases.len(), different.len());
    assert!(!cases.is_empty());
    assert!(
        different.is_empty(),
        "{} of {} differ:\n{}",
        different.len(),
        cases.len(),
        different[..different.len().min(40)].join("\n")
    );
}

/// Errors of expressions are told in the words of their interpreter, and those are two.
fn causes(answer: &Answer) -> Vec<(String, String, String)> {
    let told = |cause: &Cause| {
        let message = match cause.message.split_once(" evaluating rule: ") {
            Some((_, rule)) => format!("cannot be evaluated: {rule}"),
            None => compared::message(&cause.message),
        };
        (cause.field.clone(), cause.reason.clone(), message)
    };
    let mut told: Vec<_> = answer.causes.iter().map(told).collect();
    told.sort();
    told
}

#[test]
fn plain_objects_of_the_corpus_get_the_same_verdicts() {
    verdicts(CrdSet::Core);
}

#[test]
fn kwok_objects_of_the_corpus_get_the_same_verdicts() {
    verdicts(CrdSet::Kwok);
}

#[test]
fn aws_objects_of_the_corpus_get_the_same_verdicts() {
    verdicts(CrdSet::Aws);
}

#[test]
fn azure_objects_of_the_corpus_get_the_same_verdicts() {
    verdicts(CrdSet::Azure);
}
