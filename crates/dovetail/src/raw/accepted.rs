//! Would an API server take these manifests? A what-if about what it rejects has no answer.

use api::provider::Provider;
use lint::document::Document;
use simulator::Admission;

use super::{Raw, text};
use crate::failure::Failure;

/// What the CRDs of an installation say to objects.
pub(crate) fn admission() -> Admission {
    let definitions = api::crds::installation(&Provider::ALL);
    let definitions = definitions
        .iter()
        .filter_map(|definition| serde_json::to_value(definition).ok());
    Admission::new(definitions)
}

/// Refuses manifests of Karpenter's kinds that an API server would reject, by the first objection.
pub(crate) fn accepted(raw: &Raw, admission: &Admission) -> Result<(), Failure> {
    let is_ours = |document: &&Document| text(&document.value, "apiVersion").starts_with("karpenter.");
    for document in raw.documents.iter().filter(is_ours) {
        let Some(objection) = admission.objections(&document.value).into_iter().next() else {
            continue;
        };
        let (kind, name) = (text(&document.value, "kind"), text(&document.value, "metadata.name"));
        let line = document.line(&objection.field).map(|line| format!(":{line}"));
        return Err(Failure::new(
            format!(
                "{}{}: {kind} {name} would be rejected",
                document.source,
                line.unwrap_or_default()
            ),
            format!("{}: {}", objection.field, objection.text),
            "dovetail lint -f FILE explains it",
        ));
    }
    Ok(())
}
