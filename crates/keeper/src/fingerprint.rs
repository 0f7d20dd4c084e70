//! The hash of what running machines cannot change, written on the class, and on claims when its recipe changes.

use std::collections::BTreeMap;

use api::{condition::names::nodeclaim, node_class::NodeClass};
use kube::Resource;
use serde_json::json;

use crate::{Keeper, Step};

/// Writes the hash. When the class has one of another recipe, claims get the new one first, so that no machine counts as
/// drifted because we compute differently.
pub(crate) async fn write<K: Keeper>(keeper: &K, class: &K::Class) -> Step {
    let (key, version, recipe) = (K::Class::HASH, K::Class::HASH_VERSION, K::Class::RECIPE);
    let hash = keeper.hash(class);
    let annotations = class.meta().annotations.clone().unwrap_or_default();
    let has_recipe = annotations.get(version).map(String::as_str) == Some(recipe);
    if !has_recipe && let Err(error) = migrate(keeper, class, &hash).await {
        return Step::Failed(error);
    }
    if has_recipe && annotations.get(key) == Some(&hash) {
        return Step::Settled;
    }
    let patch = json!({"metadata": {"annotations": {key: hash, version: recipe}}});
    match keeper.objects().patch(class.name(), "", &patch).await {
        Ok(_) => Step::Settled,
        Err(error) => Step::Failed(format!("writing the hash, {error}")),
    }
}

async fn migrate<K: Keeper>(keeper: &K, class: &K::Class, hash: &str) -> Result<(), String> {
    let (version, recipe) = (K::Class::HASH_VERSION, K::Class::RECIPE);
    let claims = keeper.objects().claims_of(class.name()).await;
    let claims = claims.map_err(|error| format!("listing nodeclaims, {error}"))?;
    for claim in claims {
        if claim.metadata.annotations.get(version).map(|it| &**it) == Some(recipe) {
            continue;
        }
        let mut annotations = BTreeMap::from([(version, recipe.to_owned())]);
        // Whether a claim that counts as drifted still is cannot be told any more: it stays so.
        if claim.condition(nodeclaim::DRIFTED).is_none() {
            annotations.insert(K::Class::HASH, hash.to_owned());
        }
        let written = keeper.objects().annotate_claim(&claim, &annotations).await;
        written.map_err(|error| format!("migrating the hash of {}, {error}", claim.metadata.name))?;
    }
    Ok(())
}
