//! When was a dump taken? kubectl does not write it down, but nothing in it is younger than it is.

use jiff::Timestamp;
use lint::document::Document;
use serde_json::Value;

/// The newest time that an object of a dump names; none in manifests, which name no times.
pub(super) fn newest(documents: &[Document]) -> Option<Timestamp> {
    documents.iter().filter_map(|document| of_object(&document.value)).max()
}

fn of_object(value: &Value) -> Option<Timestamp> {
    let read = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    let conditions = value["status"]["conditions"].as_array().into_iter().flatten();
    let of_conditions = conditions.flat_map(|one| [&one["lastTransitionTime"], &one["lastHeartbeatTime"]]);
    let own = [
        &value["metadata"]["creationTimestamp"],
        &value["status"]["startTime"],
        &value["status"]["lastPodEventTime"],
        &value["spec"]["renewTime"],
    ];
    own.into_iter().chain(of_conditions).filter_map(read).max()
}
