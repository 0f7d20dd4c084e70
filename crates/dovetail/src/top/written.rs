//! Objects and events as they are written: asked of the API server, or looked up in the files of a dump. A snapshot keeps
//! only what decisions read, and people who ask for YAML want all of it.

use http::Method;
use model::object::ObjectKey;
use runtime::{
    Resource,
    api::{Options, connect_to},
};
use serde_json::Value;

use crate::{
    live::{USER_AGENT, wait_for},
    place::Place,
    raw,
};

/// How files of a dump are named.
const DUMPS: [&str; 3] = ["yaml", "yml", "json"];

/// An object that is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) api_version: &'static str,
    pub(super) kind: &'static str,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Wanted {
    /// An object by kind and `namespace/name`.
    pub(super) fn of(kind: &'static str, name: &str) -> Self {
        let (namespace, bare) = name.split_once('/').unwrap_or(("", name));
        let api_version = match kind {
            "NodePool" | "NodeClaim" => "karpenter.sh/v1",
            _ => "v1",
        };
        Self {
            api_version,
            kind,
            namespace: namespace.to_owned(),
            name: bare.to_owned(),
        }
    }

    fn is(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        object["kind"] == self.kind
            && metadata["name"] == self.name.as_str()
            && metadata["namespace"].as_str().unwrap_or_default() == self.namespace
    }

    /// Whether an event is about it. Events about what has no namespace say none, whichever they are kept in.
    fn is_meant_by(&self, event: &Value) -> bool {
        let about = &event["involvedObject"];
        event["kind"] == "Event"
            && about["kind"] == self.kind
            && about["name"] == self.name.as_str()
            && about["namespace"].as_str().unwrap_or_default() == self.namespace
    }
}

/// The object in full; none where the source has it in no such form.
pub(super) fn object(place: &Place, wanted: &Wanted) -> anyhow::Result<Option<Value>> {
    if !place.from.is_empty() {
        return Ok(in_files(place, &wanted.name, |value| wanted.is(value))?.pop());
    }
    wait_for(async {
        let (api, _) = connect_to(&place.cluster(), Options::new(USER_AGENT)).await?;
        let key = ObjectKey::new(&wanted.namespace, &wanted.name);
        let path = Resource::new(wanted.api_version, wanted.kind).item(&key);
        let bytes = api.call(Method::GET, &path, None, "application/json").await?;
        Ok(Some(serde_json::from_slice(&bytes)?))
    })
}

/// Events about objects, in any order.
pub(super) fn events(place: &Place, about: &[Wanted]) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for wanted in about {
        let events = if place.from.is_empty() {
            asked(place, wanted)?
        } else {
            in_files(place, &wanted.name, |value| wanted.is_meant_by(value))?
        };
        found.extend(events);
    }
    Ok(found)
}

fn asked(place: &Place, wanted: &Wanted) -> anyhow::Result<Vec<Value>> {
    wait_for(async {
        let (api, _) = connect_to(&place.cluster(), Options::new(USER_AGENT)).await?;
        // Names of objects hold nothing that would have to be escaped.
        let path = format!("/api/v1/events?fieldSelector=involvedObject.name%3D{}", wanted.name);
        let bytes = api.call(Method::GET, &path, None, "application/json").await?;
        let events = raw::items(&bytes, "v1", "Event").into_iter();
        Ok(events.filter(|event| wanted.is_meant_by(event)).collect())
    })
}

/// Objects of the files that a condition means. Texts in which the name does not occur are not read any further.
fn in_files(place: &Place, name: &str, is_meant: impl Fn(&Value) -> bool) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    // Standard input was read once and is gone.
    if place.from.iter().any(|path| path.as_os_str() == "-") {
        return Ok(found);
    }
    raw::texts(&place.from, &DUMPS, &mut |_, text, _| {
        if text.contains(name) {
            // What cannot be read was told when the dump was opened.
            let values = raw::values(text).unwrap_or_default();
            found.extend(values.into_iter().filter(&is_meant));
        }
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const DUMP: &str = "apiVersion: v1\nkind: List\nitems:\n\
        - {apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: web}, spec: {dnsPolicy: Default}}\n\
        - {apiVersion: v1, kind: Pod, metadata: {namespace: other, name: web}}\n\
        - {apiVersion: v1, kind: Event, reason: Failed, involvedObject: {kind: Pod, namespace: shop, name: web}}\n\
        - {apiVersion: v1, kind: Event, reason: Other, involvedObject: {kind: Pod, namespace: other, name: web}}\n";

    #[test]
    fn files_of_a_dump_have_an_object_in_full_and_what_was_said_about_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("pods.yaml"), DUMP).unwrap();
        let place = Place {
            from: vec![folder.path().to_owned()],
            ..Place::default()
        };
        let web = Wanted::of("Pod", "shop/web");
        let pod = object(&place, &web).unwrap().unwrap();
        assert_eq!(pod["spec"]["dnsPolicy"], "Default", "which no decision reads");
        let events = events(&place, &[web]).unwrap();
        let reasons: Vec<_> = events.iter().map(|event| &event["reason"]).collect();
        assert_eq!(reasons, ["Failed"], "of the pod of that namespace alone");
        assert_eq!(object(&place, &Wanted::of("Node", "web")).unwrap(), None);
    }
}
