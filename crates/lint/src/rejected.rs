//! What the API server would reject, as far as no rule of its own says it: AP01 rejected.

use crate::{finding::Found, world::World};

impl World {
    /// Rejections of fields, as findings.
    pub(crate) fn rejected_at(&self, is_meant: impl Fn(&str) -> bool) -> Vec<Found> {
        let meant = self.rejections.iter().filter(|rejection| is_meant(&rejection.path));
        let found = meant.map(|rejection| {
            let field = if rejection.path.is_empty() {
                String::new()
            } else {
                format!("{}: ", rejection.path)
            };
            Found::new(
                rejection.document,
                &rejection.path,
                format!("{field}{}", rejection.text),
            )
        });
        found.collect()
    }
}

/// Fields whose rejection another rule tells better: NC01, BU03, NP17, NP18, NP20.
fn is_told_elsewhere(world: &World, document: usize, path: &str) -> bool {
    let told = [
        crate::node_class::ami_alias as fn(&World) -> Vec<Found>,
        crate::node_pool::unknown_key,
        crate::node_pool::restricted_label,
        crate::node_pool::old_api,
    ];
    let is_near = |found: &Found| {
        let near = |one: &str, other: &str| one.starts_with(other) || other.starts_with(one);
        found.document == document && (found.path == "apiVersion" || near(&found.path, path))
    };
    path.contains(".budgets[") || told.iter().any(|rule| rule(world).iter().any(is_near))
}

pub(crate) fn rejected(world: &World) -> Vec<Found> {
    let all = world.rejected_at(|_| true);
    all.into_iter()
        .filter(|found| !is_told_elsewhere(world, found.document, &found.path))
        .collect()
}
