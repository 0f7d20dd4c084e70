//! Answers that Karpenter v1.15.0's own requirement algebra gave, replayed against ours.

#[path = "algebra/protocol.rs"]
mod protocol;

use protocol::{Answer, Question, Questions};

const FACTS: &str = include_str!("algebra/facts.jsonl");

#[test]
fn every_recorded_answer_of_the_reference_is_ours_too() {
    let facts: Vec<(Question, Answer)> = FACTS.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(facts.len() >= 200, "only {} facts", facts.len());
    for (question, theirs) in facts {
        assert_eq!(
            question.ask(),
            theirs.without_map_order(),
            "{}",
            serde_json::to_string(&question).unwrap()
        );
    }
}

#[test]
fn recorded_questions_are_those_of_the_seed() {
    let first: (Question, Answer) = serde_json::from_str(FACTS.lines().next().unwrap()).unwrap();
    assert_eq!(Questions(1).next(), Some(first.0));
}
