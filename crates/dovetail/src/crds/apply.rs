//! `dovetail crds --apply`: brings a cluster's CRDs to what this program has, after saying what that changes.

use api::crds::installation;
use http::Method;
use runtime::Api;
use serde_json::Value;

use super::diff::{Compared, PATH, Report, State};
use crate::failure::Failure;

/// Who owns the fields that are written.
const MANAGER: &str = "dovetail";

/// Refuses what would strand objects: they are stored in a version that ours cannot read.
pub(super) fn allowed(report: &Report) -> Result<(), Failure> {
    let Some(one) = report.definitions.iter().find(|one| !one.stranded.is_empty()) else {
        return Ok(());
    };
    let stored = one.stranded.join(", ");
    Err(Failure::new(
        format!("{} cannot be applied", one.name),
        format!("status.storedVersions has {stored}: objects may be stored in it, and nobody could read them"),
        format!(
            "write every object once (kubectl get {0} -o yaml | kubectl replace -f -), then take {stored} off status.storedVersions of crd/{0}",
            one.name
        ),
    ))
}

/// What will be written, in a sentence.
pub(super) fn plan(report: &Report) -> String {
    let changed: Vec<&str> = report.differing().map(|one| one.name.as_str()).collect();
    format!(
        "Applies {} server-side as {MANAGER}, taking over fields that others own. No object is changed; rules count when one is written next.",
        changed.join(", ")
    )
}

/// Writes what differs; what was done, a line each.
pub(super) async fn applied(api: &Api, report: &Report) -> Result<String, Failure> {
    let providers: Vec<_> = api::provider::Provider::ALL
        .into_iter()
        .filter(|provider| report.providers.contains(&super::diff::word(*provider)))
        .collect();
    let mut done = String::new();
    for definition in installation(&providers) {
        let name = definition.metadata.name.as_deref().unwrap_or_default();
        let Some(one) = report.differing().find(|one| one.name == name) else {
            continue;
        };
        let body = serde_json::to_value(&definition).unwrap_or_default();
        write(api, name, &body, &done).await?;
        done.push_str(&format!("{name} {}\n", word(one)));
    }
    Ok(done)
}

fn word(one: &Compared) -> &'static str {
    match one.state {
        State::Missing => "installed",
        _ => "applied",
    }
}

async fn write(api: &Api, name: &str, body: &Value, done: &str) -> Result<(), Failure> {
    let path = format!("{PATH}/{name}?fieldManager={MANAGER}&force=true");
    let wrote = api
        .call(Method::PATCH, &path, Some(body), "application/apply-patch+yaml")
        .await;
    wrote.map(drop).map_err(|error| {
        let before: Vec<&str> = done.lines().collect();
        let before = if before.is_empty() {
            "nothing was written before".to_owned()
        } else {
            format!("written before: {}", before.join(", "))
        };
        Failure::new(
            format!("{name} was not applied"),
            format!("{error}; {before}"),
            "mend that and repeat it: what is the same already is left alone",
        )
    })
}
