//! Our requirement algebra against Karpenter's own, question by question, with fresh questions beyond the recorded ones.

#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

#[path = "../../crates/model/tests/algebra/protocol.rs"]
mod protocol;

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    thread,
};

use protocol::{Answer, Question, Questions};

const SEED: u64 = 20_261_115;
const COUNT: usize = 20_000;

#[test]
fn twenty_thousand_random_questions_get_the_answers_of_the_reference() {
    let mut reference = reference();
    let mut input = reference.stdin.take().unwrap();
    // The reference answers while it reads: a full pipe would stop both sides if one thread did it all.
    let asking = thread::spawn(move || {
        for question in Questions(SEED).take(COUNT) {
            writeln!(input, "{}", serde_json::to_string(&question).unwrap()).unwrap();
        }
    });
    let answers = BufReader::new(reference.stdout.take().unwrap()).lines();
    let mut compared = 0;
    for (question, line) in Questions(SEED).take(COUNT).zip(answers) {
        compare(&question, &line.unwrap());
        compared += 1;
    }
    asking.join().unwrap();
    assert!(reference.wait().unwrap().success());
    assert_eq!(compared, COUNT);
}

fn reference() -> Child {
    let program = rig::reference::program().unwrap();
    Command::new(program)
        .arg("algebra")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn compare(question: &Question, line: &str) {
    let theirs: Answer = serde_json::from_str(line).unwrap();
    assert_eq!(
        question.ask(),
        theirs.without_map_order(),
        "{}",
        serde_json::to_string(question).unwrap()
    );
}
