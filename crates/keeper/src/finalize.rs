//! The end of a node class: it stays while claims use it, and what was made for it goes before it does.

use std::time::Duration;

use api::node_class::NodeClass;
use kube::Resource;
use runtime::{Event, EventKind, event::Reference};
use serde_json::json;

use crate::{Keeper, Step};

/// How often those who wait are named.
const AGAIN: Duration = Duration::from_mins(10);
/// How many are named.
const NAMED: usize = 5;

pub(crate) async fn finalize<K: Keeper>(keeper: &K, class: &K::Class) -> Step {
    let finalizers = class.meta().finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|it| it == K::Class::FINALIZER) {
        return Step::Settled;
    }
    let claims = match keeper.objects().claims_of(class.name()).await {
        Ok(claims) => claims,
        Err(error) => return Step::Failed(format!("listing nodeclaims that are using nodeclass, {error}")),
    };
    if !claims.is_empty() {
        let names: Vec<&str> = claims.iter().map(|it| &*it.metadata.name).collect();
        tell_who_waits(keeper, class, &names);
        return Step::After(AGAIN);
    }
    if let Err(error) = keeper.clear_away(class).await {
        return Step::Failed(error);
    }
    let kept: Vec<&String> = finalizers.iter().filter(|it| *it != K::Class::FINALIZER).collect();
    let patch = json!({"metadata": {
        "finalizers": kept,
        "resourceVersion": class.meta().resource_version,
    }});
    match keeper.objects().patch(class.name(), "", &patch).await {
        Err(error) if error.is_conflict() => Step::Soon,
        Err(error) => Step::Failed(format!("removing termination finalizer, {error}")),
        Ok(_) => {
            keeper.forget(class);
            Step::Settled
        }
    }
}

fn tell_who_waits<K: Keeper>(keeper: &K, class: &K::Class, names: &[&str]) {
    let metadata = class.meta();
    let uid = metadata.uid.clone().unwrap_or_default();
    let reference = Reference {
        api_version: K::Class::API_VERSION.into(),
        kind: K::Class::KIND.into(),
        namespace: "".into(),
        name: class.name().into(),
        uid: uid.as_str().into(),
        resource_version: metadata.resource_version.as_deref().unwrap_or_default().into(),
    };
    let message = format!("Waiting on NodeClaim termination for {}", some_of(names));
    let event = Event::about(reference, EventKind::Normal, "WaitingOnNodeClaimTermination", message);
    keeper.recorder().publish(event.deduped_by(vec![uid]));
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
