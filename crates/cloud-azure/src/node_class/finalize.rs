//! The end of a node class: it stays while claims use it.

use std::time::Duration;

use api::{azure::AKSNodeClass, finalizers::AKSNODECLASS_TERMINATION};
use runtime::{Event, EventKind, event::Reference};
use serde_json::json;

use super::{Controller, status::Step};
use crate::objects::{API_VERSION, KIND, name_of};

/// How often those who wait are looked for. Upstream hears of every deleted claim; we look, and say nothing twice.
const AGAIN: Duration = Duration::from_secs(10);
/// How many are named.
const NAMED: usize = 5;

impl Controller {
    pub(super) async fn finalize(&self, class: &AKSNodeClass) -> Step {
        let finalizers = class.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|it| it == AKSNODECLASS_TERMINATION) {
            return Step::Settled;
        }
        let name = name_of(class);
        let claims = match self.read.objects.claims_of(&name).await {
            Ok(claims) => claims,
            Err(error) => return Step::Failed(format!("listing nodeclaims that are using nodeclass, {error}")),
        };
        if !claims.is_empty() {
            let names: Vec<&str> = claims.iter().map(|it| &*it.metadata.name).collect();
            self.tell_who_waits(class, &names);
            return Step::After(AGAIN);
        }
        let kept: Vec<&String> = finalizers.iter().filter(|it| *it != AKSNODECLASS_TERMINATION).collect();
        let patch = json!({"metadata": {
            "finalizers": kept,
            "resourceVersion": class.metadata.resource_version,
        }});
        match self.read.objects.patch(&name, "", &patch).await {
            Err(error) if error.is_conflict() => Step::Soon,
            Err(error) => Step::Failed(format!("removing termination finalizer, {error}")),
            Ok(_) => Step::Settled,
        }
    }

    fn tell_who_waits(&self, class: &AKSNodeClass, names: &[&str]) {
        let uid = class.metadata.uid.clone().unwrap_or_default();
        let reference = Reference {
            api_version: API_VERSION.into(),
            kind: KIND.into(),
            namespace: "".into(),
            name: name_of(class).as_str().into(),
            uid: uid.as_str().into(),
            resource_version: class.metadata.resource_version.as_deref().unwrap_or_default().into(),
        };
        let message = format!("Waiting on NodeClaim termination for {}", some_of(names));
        let event = Event::about(reference, EventKind::Normal, "WaitingOnNodeClaimTermination", message);
        self.read.recorder.publish(event.deduped_by(vec![uid]));
    }
}

fn some_of(names: &[&str]) -> String {
    let named = names.get(..NAMED.min(names.len())).unwrap_or_default().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} other(s)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_are_named_and_the_rest_is_counted() {
        assert_eq!(some_of(&["a", "b"]), "a, b");
        assert_eq!(
            some_of(&["a", "b", "c", "d", "e", "f", "g"]),
            "a, b, c, d, e and 2 other(s)"
        );
    }
}
