//! What objects does a YAML file hold?

use serde_json::Value;

use crate::error::{Error, Result};

/// The documents of `yaml`, empty ones left out. `origin` names the file in errors.
pub fn documents(origin: &str, yaml: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).map_err(|reason| Error::Manifest {
        origin: origin.to_owned(),
        reason: reason.to_string(),
    })?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}
