//! When was a dump taken? kubectl does not write it down, but nothing in it is younger than it is.

use jiff::Timestamp;
use lint::document::Document;
use serde_json::Value;

/// Kinds whose times count where there are any: the same that decisions are dated by, so that two commands on one dump
/// speak of one time.
const DATED: [&str; 4] = ["Pod", "Node", "NodeClaim", "NodePool"];

/// The newest time that an object of a dump names; none in manifests, which name no times.
pub(super) fn newest(documents: &[Document]) -> Option<Timestamp> {
    let is_dated = |document: &&Document| {
        document.value["kind"]
            .as_str()
            .is_some_and(|kind| DATED.contains(&kind))
    };
    let times = documents
        .iter()
        .filter(is_dated)
        .filter_map(|document| of_object(&document.value));
    let any = || documents.iter().filter_map(|document| of_object(&document.value)).max();
    times.max().or_else(any)
}

fn of_object(value: &Value) -> Option<Timestamp> {
    let read = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    let conditions = value["status"]["conditions"].as_array().into_iter().flatten();
    let of_conditions = conditions.map(|one| &one["lastTransitionTime"]);
    let own = [
        &value["metadata"]["creationTimestamp"],
        &value["status"]["startTime"],
        &value["status"]["lastPodEventTime"],
    ];
    own.into_iter().chain(of_conditions).filter_map(read).max()
}
