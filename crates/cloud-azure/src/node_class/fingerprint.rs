//! The hash of what running machines cannot change, written on the class, and on claims when its recipe changes.

use std::collections::BTreeMap;

use api::{
    annotations::azure::{AKSNODECLASS_HASH, AKSNODECLASS_HASH_VERSION as VERSION},
    azure::{AKSNODECLASS_HASH_VERSION, AKSNodeClass},
    condition::names::nodeclaim,
};
use serde_json::json;

use super::{Controller, status::Step};
use crate::objects::name_of;

impl Controller {
    /// Writes the hash. When the class has one of another recipe, claims get the new one first, so that no machine
    /// counts as drifted because we compute differently.
    pub(super) async fn write_hash(&self, class: &AKSNodeClass) -> Step {
        let hash = class.hash();
        let annotations = class.metadata.annotations.clone().unwrap_or_default();
        let has_version = annotations.get(VERSION).map(String::as_str) == Some(AKSNODECLASS_HASH_VERSION);
        if !has_version && let Err(step) = self.migrate(class, &hash).await {
            return step;
        }
        if has_version && annotations.get(AKSNODECLASS_HASH) == Some(&hash) {
            return Step::Settled;
        }
        let patch = json!({"metadata": {"annotations": {
            AKSNODECLASS_HASH: hash,
            VERSION: AKSNODECLASS_HASH_VERSION,
        }}});
        match self.read.objects.patch(&name_of(class), "", &patch).await {
            Ok(_) => Step::Settled,
            Err(error) => Step::Failed(format!("writing the hash, {error}")),
        }
    }

    async fn migrate(&self, class: &AKSNodeClass, hash: &str) -> Result<(), Step> {
        let claims = self.read.objects.claims_of(&name_of(class)).await;
        let claims = claims.map_err(|error| Step::Failed(format!("listing nodeclaims, {error}")))?;
        for claim in claims {
            if claim.metadata.annotations.get(VERSION).map(|it| &**it) == Some(AKSNODECLASS_HASH_VERSION) {
                continue;
            }
            let mut annotations = BTreeMap::from([(VERSION, AKSNODECLASS_HASH_VERSION.to_owned())]);
            // Whether a claim that counts as drifted still is cannot be told any more: it stays so.
            if claim.condition(nodeclaim::DRIFTED).is_none() {
                annotations.insert(AKSNODECLASS_HASH, hash.to_owned());
            }
            let written = self.read.objects.annotate_claim(&claim, &annotations).await;
            written.map_err(|error| Step::Failed(format!("migrating the hash of {}, {error}", claim.metadata.name)))?;
        }
        Ok(())
    }
}
