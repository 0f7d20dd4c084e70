//! What would the metadata service inside a virtual machine say of events to come?

use std::collections::BTreeMap;

use http::HeaderMap;
use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use crate::{answer::Answer, world::World};

impl World {
    /// The events of one virtual machine; starting one lets it happen at once.
    pub(crate) fn scheduled_events(
        &mut self,
        vm: &str,
        query: &BTreeMap<String, String>,
        headers: &HeaderMap,
        start: Option<&Value>,
        now: Timestamp,
    ) -> Answer {
        if headers.get("metadata").is_none_or(|value| value != "true") || !query.contains_key("api-version") {
            return Answer::new(
                400,
                json!({"error": "Bad request. Metadata: true and api-version are required"}),
            );
        }
        let found = self.vms.iter().find(|(_, one)| one.name.eq_ignore_ascii_case(vm));
        let Some(key) = found.map(|(key, _)| key.clone()) else {
            return Answer::new(404, json!({"error": "no such virtual machine"}));
        };
        if let Some(start) = start {
            let wanted: Vec<&str> = start["StartRequests"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|one| one["EventId"].as_str())
                .collect();
            let events = self.evictions.iter_mut().filter(|one| one.vm == key);
            for event in events.filter(|one| wanted.contains(&one.event.as_str())) {
                event.at = now;
            }
            self.settle(now);
            return Answer::ok(json!({}));
        }
        Answer::ok(self.document(&key))
    }

    fn document(&self, key: &str) -> Value {
        let events = self.evictions.iter().filter(|eviction| eviction.vm == key);
        let events: Vec<Value> = events
            .map(|eviction| {
                let at = eviction
                    .at
                    .to_zoned(TimeZone::UTC)
                    .strftime("%a, %d %b %Y %H:%M:%S GMT")
                    .to_string();
                let name = self.vms.get(key).map_or("", |vm| vm.name.as_str());
                json!({
                    "EventId": eviction.event, "EventType": "Preempt", "ResourceType": "VirtualMachine",
                    "Resources": [name], "EventStatus": "Scheduled", "NotBefore": at, "Description": "",
                    "EventSource": "Platform", "DurationInSeconds": -1,
                })
            })
            .collect();
        json!({"DocumentIncarnation": events.len() + 1, "Events": events})
    }
}
