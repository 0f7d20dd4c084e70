//! What if NodePools had been others? The snapshot with those of files instead.

use std::path::PathBuf;

use jiff::Timestamp;
use model::{
    dump::{self, Source},
    object::NodePool,
    snapshot::Snapshot,
};

use crate::failure::Failure;

/// The snapshot with the pools of these files, and what that changes in words.
pub(super) fn changed(whole: &Snapshot, files: &[PathBuf]) -> Result<(Snapshot, Vec<String>), Failure> {
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at: Timestamp::UNIX_EPOCH,
    };
    let sources = files.iter().map(|path| Source::Path(path.clone()));
    let (given, _) = dump::read(sources, options).map_err(|faults| {
        let faults: Vec<_> = faults.0.iter().map(ToString::to_string).collect();
        let next = "mend what is named above; --with takes NodePools as kubectl get nodepools -o yaml prints them";
        Failure::new("cannot read what --with names", faults.join("\n        "), next)
    })?;
    let pools = &given.objects().node_pools;
    if pools.is_empty() {
        let next = "name a file with NodePools: kubectl get nodepools -o yaml > pools.yaml";
        return Err(Failure::usage("--with names no NodePool", "the files hold none", next));
    }
    let mut snapshot = whole.clone();
    let mut words = Vec::new();
    for pool in pools.iter() {
        let Some(known) = whole.node_pool(&pool.name()) else {
            let there: Vec<_> = whole
                .objects()
                .node_pools
                .iter()
                .map(|pool| &*pool.metadata.name)
                .collect();
            return Err(Failure::usage(
                format!("--with names NodePool {}, which was not there", pool.metadata.name),
                format!("there were {}", there.join(", ")),
                "give the changed NodePool the name of one of them",
            ));
        };
        let mut changed = NodePool::clone(known);
        changed.spec = pool.spec.clone();
        changed.metadata.annotations = pool.metadata.annotations.clone();
        words.push(difference(known, &changed));
        snapshot = snapshot.with_node_pool(changed);
    }
    Ok((snapshot, words))
}

/// What of a pool is another, as far as a line has room.
fn difference(before: &NodePool, after: &NodePool) -> String {
    let (one, other) = (serde_json::to_value(&before.spec), serde_json::to_value(&after.spec));
    let mut fields = Vec::new();
    if let (Ok(one), Ok(other)) = (one, other) {
        compare("", &one, &other, &mut fields);
    }
    let name = &before.metadata.name;
    match fields.len() {
        0 => format!("{name}: nothing changed"),
        1..=3 => format!("{name}: {}", fields.join(", ")),
        more => format!(
            "{name}: {} and {} more",
            fields.get(..3).unwrap_or_default().join(", "),
            more - 3
        ),
    }
}

fn compare(path: &str, one: &serde_json::Value, other: &serde_json::Value, found: &mut Vec<String>) {
    match (one, other) {
        (serde_json::Value::Object(one), serde_json::Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                let null = serde_json::Value::Null;
                compare(
                    &path,
                    one.get(key).unwrap_or(&null),
                    other.get(key).unwrap_or(&null),
                    found,
                );
            }
        }
        (one, other) if one != other => {
            let text = ledger::cut(&other.to_string());
            found.push(format!("{path} {}", text.trim_matches('"')));
        }
        _ => {}
    }
}
