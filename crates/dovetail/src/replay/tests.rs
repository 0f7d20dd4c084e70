//! Stories with the recorder on: every decision of theirs is made again, and is the same.

use std::{collections::BTreeMap, fs, path::Path};

use clap::Parser;
use scenario::{Play, STORIES, Scenario, on_virtual_time};

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// Plays a story with the recorder writing to a directory.
fn recorded(name: &str, directory: &Path) {
    let story = STORIES.iter().find(|story| story.name == name).unwrap();
    let mut scenario = Scenario::read(name, story.text).unwrap();
    scenario
        .flags
        .push(format!("--flight-recorder={}", directory.display()));
    let how = Play {
        seed: 1,
        ..Play::default()
    };
    let outcome = on_virtual_time(scenario::play(&scenario, &how)).unwrap().unwrap();
    assert_eq!(outcome.failures, [""; 0]);
}

fn asked(record: &Path, more: &[&str]) -> anyhow::Result<Answer> {
    let record = record.to_string_lossy();
    let line = ["replay", "--record", &*record].into_iter().chain(more.iter().copied());
    answer(&Line::try_parse_from(line).unwrap().args)
}

#[test]
fn every_decision_of_a_story_is_the_same_when_it_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    recorded("scale-in", directory.path());
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut ids = Vec::new();
    for path in tape::files(directory.path()).unwrap() {
        tape::play(&path, |frame, tape| {
            let replayed = replayed(frame, tape, &[], None).unwrap();
            assert_eq!(replayed.differing_input, None, "{} {}", frame.kind, frame.at);
            assert!(replayed.is_identical(), "{} {}", frame.kind, frame.at);
            *kinds.entry(frame.kind.clone()).or_default() += 1;
            ids.extend(frame.ids.iter().copied());
            true
        })
        .unwrap();
    }
    assert!(kinds["provisioning"] >= 1 && kinds["disruption"] >= 2, "{kinds:?}");
    // The command finds each by its id.
    let last = ids.last().unwrap().to_string();
    let found = asked(directory.path(), &["--id", &last]).unwrap();
    assert!(found.text.contains(": identical ("), "{}", found.text);
    assert!(!found.is_finding);
}

#[test]
fn a_pool_that_had_been_another_leads_to_another_answer() {
    let directory = tempfile::tempdir().unwrap();
    recorded("scale-in", directory.path());
    let mut found = None;
    let files = tape::files(directory.path()).unwrap();
    for path in &files {
        tape::play(path, |frame, tape| {
            let whole = tape.snapshot(frame.at).unwrap();
            let again = flight::again(frame, &whole).unwrap();
            let moves = |(_, text): &&(Id, String)| !text.starts_with("keep ");
            if frame.kind == "disruption" && found.is_none() {
                let first = again.decisions.iter().find(moves).map(|(id, text)| (*id, text.clone()));
                found = first.map(|first| (first, whole));
            }
            true
        })
        .unwrap();
    }
    let ((id, _), whole) = found.unwrap();
    let pool = whole.objects().node_pools.iter().next().unwrap();
    let mut changed = model::object::NodePool::clone(pool);
    changed.spec.disruption.budgets = vec![model::object::Budget {
        nodes: "0".into(),
        ..model::object::Budget::default()
    }]
    .into();
    let with = directory.path().join("pools.json");
    let document = serde_json::to_string(&model::object::Object::document(&changed)).unwrap();
    fs::write(&with, document).unwrap();
    let answer = asked(
        directory.path(),
        &["--id", &id.to_string(), "--with", &with.to_string_lossy()],
    )
    .unwrap();
    assert!(answer.is_finding);
    let first = answer.text.lines().next().unwrap();
    assert!(
        first.contains("general: disruption.budgets") && first.ends_with(": differs."),
        "{}",
        answer.text
    );
    // Which command the story finds first is the engine's business; with no budget there is none.
    assert!(answer.text.contains("\n  was  "), "{}", answer.text);
    assert!(answer.text.contains("Budget"), "{}", answer.text);
}

#[test]
fn a_change_that_is_missing_from_the_tape_is_a_finding_that_names_its_kind() {
    let directory = tempfile::tempdir().unwrap();
    recorded("scale-in", directory.path());
    let files = tape::files(directory.path()).unwrap();
    let mut text = String::new();
    let packed = fs::read(&files[0]).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::MultiGzDecoder::new(packed.as_slice()), &mut text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let decision = lines
        .iter()
        .rposition(|line| line.starts_with("{\"decision\":"))
        .unwrap();
    let of_pod = |line: &&str| line.starts_with("{\"apply\":") && line.contains("\"kind\":\"Pod\"");
    let lost = lines[..decision].iter().rposition(of_pod).unwrap();
    let kept: Vec<&str> = lines
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != lost)
        .map(|(_, line)| *line)
        .collect();
    let cut = directory.path().join("cut.jsonl.gz");
    let mut packer = flate2::write::GzEncoder::new(fs::File::create(&cut).unwrap(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, format!("{}\n", kept.join("\n")).as_bytes()).unwrap();
    packer.finish().unwrap();
    let answer = asked(&cut, &["--at", "2100-01-01T00:00:00Z"]).unwrap();
    assert!(answer.is_finding, "{}", answer.text);
    assert!(
        answer.text.contains("the first input that is not as it was: Pod"),
        "{}",
        answer.text
    );
}

#[test]
fn what_was_not_recorded_is_said_with_what_was() {
    let directory = tempfile::tempdir().unwrap();
    let error = asked(directory.path(), &["--id", "6c59"]).unwrap_err().to_string();
    assert!(error.contains("it has no file flight-"), "{error}");
    recorded("runaway-pod", directory.path());
    let error = asked(directory.path(), &["--at", "2020-01-01T00:00:00Z"])
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("error   no inputs for 2020-01-01T00:00:00Z"),
        "{error}"
    );
    assert!(
        error.contains("the recorder's files hold decisions from 2026-01-05T"),
        "{error}"
    );
}
