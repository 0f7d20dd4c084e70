//! What `karpenter.sh/do-not-disrupt` says: WL01 hold-forever, WL09 bad-annotation.

use api::{annotations::DO_NOT_DISRUPT, duration::Duration};
use serde_json::Value;

use crate::{
    finding::Found,
    world::{Workload, World},
};

fn annotated(world: &World) -> impl Iterator<Item = (&Workload, &Value)> {
    let workloads = world.workloads.iter().filter(|workload| workload.kind != "DaemonSet");
    workloads.filter_map(|workload| Some((workload, workload.annotations.get(DO_NOT_DISRUPT)?)))
}

fn at(workload: &Workload) -> String {
    workload.path(&format!("metadata.annotations.{DO_NOT_DISRUPT}"))
}

pub(crate) fn hold_forever(world: &World) -> Vec<Found> {
    // A Job's pods end by themselves, and so does the hold.
    let held = annotated(world).filter(|(workload, value)| **value == "true" && !workload.ends());
    let found = held.map(|(workload, _)| {
        let pods = world.pods_of(workload);
        let nodes: std::collections::BTreeSet<_> = pods.iter().filter_map(|pod| pod.node_name.clone()).collect();
        let holds = if nodes.is_empty() {
            "never ends; give it a duration".to_owned()
        } else {
            format!("without an end on {} pods holds {} nodes", pods.len(), nodes.len())
        };
        let text = format!("{DO_NOT_DISRUPT}: \"true\" {holds}");
        Found::new(workload.document, at(workload), text)
            .fix(format!(
                "{DO_NOT_DISRUPT}: \"4h\", as long as a pod must be left alone after its start"
            ))
            .replacing("\"true\"", "\"4h\"")
    });
    found.collect()
}

pub(crate) fn bad_annotation(world: &World) -> Vec<Found> {
    let is_bad = |value: &Value| match value.as_str() {
        Some("true" | "false") => false,
        Some(text) => text.parse::<Duration>().map_or(true, |span| span.as_nanos() <= 0),
        None => true,
    };
    let bad = annotated(world).filter(|(_, value)| is_bad(value));
    let found = bad.map(|(workload, value)| {
        let text = format!("{DO_NOT_DISRUPT}: {value} is neither \"true\" nor a duration: it protects nothing");
        Found::new(workload.document, at(workload), text)
            .fix(format!("{DO_NOT_DISRUPT}: \"4h\", or \"true\" for ever"))
            .replacing(value.to_string(), "\"4h\"")
    });
    found.collect()
}
