//! Which catalogue a plan buys from: the one asked for, the dump's own, or the one its node classes point to.

use std::{collections::BTreeSet, io::Read};

use api::labels::{REGION, ZONE};
use catalogue::{NodeClass, Source};
use model::{
    dump,
    object::NodePool,
    snapshot::{Catalog, Snapshot},
};
use serde_json::{Value, json};

use super::{Classes, time::UNKNOWN};
use crate::failure::Failure;

/// A catalogue, or the word that the snapshot has its own.
#[derive(Debug)]
pub(crate) struct Offers {
    /// What to plan with; none to keep the snapshot's.
    pub(crate) catalog: Option<Catalog>,
    /// What it is called: `aws`, `azure`, `kwok`, `snapshot` or a file.
    pub(crate) name: String,
    /// Empty where regions mean nothing.
    pub(crate) region: String,
    /// The day of the prices; empty where nobody says.
    pub(crate) prices_of: String,
    /// Why it was chosen, when nobody asked for it.
    pub(crate) because: String,
    pub(crate) assumed: Vec<String>,
}

pub(super) fn choose(
    snapshot: &Snapshot,
    classes: &Classes,
    asked: Option<&str>,
    region: Option<&str>,
) -> Result<Offers, Failure> {
    let embedded = |source, because| embedded(snapshot, classes, source, region, because);
    let named = asked.and_then(|name| Source::ALL.into_iter().find(|source| source.name() == name));
    match (named, asked) {
        (Some(source), _) => embedded(source, String::new()),
        (None, Some(file)) => from_file(file),
        (None, None) if !snapshot.catalog().instance_types.is_empty() => Ok(plain("snapshot", None)),
        (None, None) => {
            let (source, because) = suggested(snapshot)?;
            embedded(source, because)
        }
    }
}

fn plain(name: &str, catalog: Option<Catalog>) -> Offers {
    Offers {
        catalog,
        name: name.to_owned(),
        region: String::new(),
        prices_of: String::new(),
        because: String::new(),
        assumed: Vec::new(),
    }
}

fn embedded(
    snapshot: &Snapshot,
    classes: &Classes,
    source: Source,
    region: Option<&str>,
    because: String,
) -> Result<Offers, Failure> {
    let known = region.map(str::to_owned).or_else(|| region_of_nodes(snapshot));
    if let Some(region) = &known {
        check_region(source, region)?;
    }
    let pools = snapshot.objects().node_pools.iter();
    let pools = pools.map(|pool| (&**pool, class_of(pool, source, classes)));
    let loaded = catalogue::load(source, known.as_deref(), &zones(snapshot, classes))
        .and_then(|loaded| loaded.of_classes(pools))
        .map_err(|damaged| {
            let next = "install the program again, or give a catalogue of your own with --catalogue FILE";
            Failure::new(
                format!("the embedded catalogue {} is broken", source.name()),
                damaged.to_string(),
                next,
            )
        })?;
    let mut assumed = loaded.assumed;
    if known.is_none() && !loaded.region.is_empty() {
        assumed.insert(
            0,
            format!("region {}: no node says another, --region does", loaded.region),
        );
    }
    Ok(Offers {
        catalog: Some(loaded.catalog),
        name: source.name().to_owned(),
        region: loaded.region,
        prices_of: loaded.prices_of,
        because,
        assumed,
    })
}

/// What a pool's node class makes of machines; none of one that was not read, or not understood.
fn class_of(pool: &NodePool, source: Source, classes: &Classes) -> Option<NodeClass> {
    let reference = pool.spec.template.spec.node_class_ref.as_ref()?;
    let class = classes.get(reference)?;
    NodeClass::read(source, class)
}

/// The catalogue that node classes, or else provider IDs of nodes, point to.
fn suggested(snapshot: &Snapshot) -> Result<(Source, String), Failure> {
    let pools = snapshot.objects().node_pools.iter().filter_map(|pool| {
        let kind = &pool.spec.template.spec.node_class_ref.as_ref()?.kind;
        let because = format!("NodePool {} uses {kind}", pool.metadata.name);
        Source::of_node_class(kind).map(|source| (source, because))
    });
    let nodes = snapshot.objects().nodes.iter().filter_map(|node| {
        let id = node.spec.provider_id.as_ref()?.as_str();
        let because = format!("node {} has provider ID {id}", node.metadata.name);
        Source::of_provider_id(id).map(|source| (source, because))
    });
    let mut found: Vec<_> = pools.collect();
    if found.is_empty() {
        found.extend(nodes.take(1));
    }
    let sources: BTreeSet<Source> = found.iter().map(|(source, _)| *source).collect();
    match (found.into_iter().next(), sources.len()) {
        (Some(found), 1) => Ok(found),
        (Some(_), _) => Err(several(&sources)),
        (None, _) => Err(none_suggested()),
    }
}

fn several(sources: &BTreeSet<Source>) -> Failure {
    let names: Vec<_> = sources.iter().map(|source| source.name()).collect();
    Failure::new(
        "several catalogues could be meant",
        format!("the NodePools use node classes of {}", names.join(" and ")),
        format!("say which: --catalogue {}", names.join("|")),
    )
}

fn none_suggested() -> Failure {
    Failure::new(
        "no catalogue of instance types",
        "the dump has none, no NodePool has a nodeClassRef of kind EC2NodeClass, AKSNodeClass or KWOKNodeClass, and no node has a provider ID of aws, azure or kwok",
        "say what the cloud offers: --catalogue aws|azure|kwok, or --catalogue FILE with instanceTypes as in docs/snapshot-file.md",
    )
}

fn region_of_nodes(snapshot: &Snapshot) -> Option<String> {
    let mut nodes = snapshot.objects().nodes.iter();
    nodes
        .find_map(|node| node.metadata.labels.get(REGION))
        .map(ToString::to_string)
}

/// Zones that nodes are in, NodePools name or node classes have subnets in, because the table knows of none.
fn zones(snapshot: &Snapshot, classes: &Classes) -> Vec<String> {
    let of_nodes = snapshot
        .objects()
        .nodes
        .iter()
        .filter_map(|node| node.metadata.labels.get(ZONE));
    let of_pools = snapshot
        .objects()
        .node_pools
        .iter()
        .flat_map(|pool| &pool.spec.template.spec.requirements);
    let of_pools = of_pools
        .filter(|requirement| *requirement.key == *ZONE && *requirement.operator == *"In")
        .flat_map(|requirement| &requirement.values);
    let of_classes = classes
        .values()
        .filter_map(|class| class["status"]["subnets"].as_array())
        .flatten()
        .filter_map(|subnet| subnet["zone"].as_str());
    let zones: BTreeSet<String> = of_nodes
        .chain(of_pools)
        .map(ToString::to_string)
        .chain(of_classes.map(str::to_owned))
        .collect();
    zones.into_iter().collect()
}

fn check_region(source: Source, region: &str) -> Result<(), Failure> {
    let is_plausible = match source {
        Source::Aws => region.split('-').count() >= 3 && region.ends_with(|sign: char| sign.is_ascii_digit()),
        Source::Azure => {
            !region.is_empty()
                && region
                    .bytes()
                    .all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit())
        }
        Source::Kwok => true,
    };
    if is_plausible {
        return Ok(());
    }
    let priced = source.priced_regions();
    Err(Failure::new(
        format!("--region {region} is not a region of {}", source.name()),
        format!(
            "its regions look like {}; the embedded prices are of {}",
            priced.first().copied().unwrap_or_default(),
            priced.join(", ")
        ),
        format!("--region {}", priced.first().copied().unwrap_or_default()),
    ))
}

/// A snapshot file's catalogue, or a list of instance types, as JSON or YAML, gzipped or not.
fn from_file(file: &str) -> Result<Offers, Failure> {
    let text = std::fs::read(file)
        .and_then(unpacked)
        .map_err(|error| unreadable(file, &error.to_string()))?;
    let document = serde_saphyr::from_str::<Value>(&text).map_err(|error| {
        let problem = error.without_snippet().to_string();
        unreadable(file, problem.lines().next().unwrap_or_default())
    })?;
    let snapshot =
        as_snapshot(document).ok_or_else(|| unreadable(file, "it is neither a list nor has it instanceTypes"))?;
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at: UNKNOWN,
    };
    let source = dump::Source::Stream(file.to_owned(), Box::new(std::io::Cursor::new(snapshot.to_string())));
    let (read, _) = dump::read([source], options).map_err(|faults| {
        let faults: Vec<_> = faults.0.iter().map(ToString::to_string).collect();
        unreadable(file, &faults.join("\n        "))
    })?;
    if read.catalog().instance_types.is_empty() {
        return Err(unreadable(file, "its instanceTypes are empty"));
    }
    Ok(plain(file, Some(read.catalog().clone())))
}

fn unpacked(bytes: Vec<u8>) -> std::io::Result<String> {
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text)?;
        return Ok(text);
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is not UTF-8 text"))
}

/// The part of a snapshot file that is a catalogue.
fn as_snapshot(document: Value) -> Option<Value> {
    let types = match &document {
        Value::Array(_) => document,
        Value::Object(fields) => fields.get("instanceTypes")?.clone(),
        _ => return None,
    };
    Some(json!({ "apiVersion": "dovetail.dev/v1alpha1", "kind": "Snapshot", "instanceTypes": types }))
}

fn unreadable(file: &str, why: &str) -> Failure {
    Failure::new(
        format!("cannot read the catalogue {file}"),
        why,
        "--catalogue takes aws, azure, kwok, a snapshot file, or a list of instanceTypes as in docs/snapshot-file.md",
    )
}
