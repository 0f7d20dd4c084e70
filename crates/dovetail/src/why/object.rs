//! Which object a question is about: kinds as kubectl has them, names in full, in part or nearly.

use std::sync::Arc;

use insight::{Found, Machine, View, nearest};
use model::object::{Metadata, NodePool, Pod};

use crate::{failure::Failure, terminal::counted};

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) kind: Kind,
    /// As it was written, with the namespace if there was one.
    pub(super) name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Pod,
    Node,
    NodeClaim,
    NodePool,
}

const KINDS: [(&str, Kind); 13] = [
    ("pod", Kind::Pod),
    ("pods", Kind::Pod),
    ("po", Kind::Pod),
    ("node", Kind::Node),
    ("nodes", Kind::Node),
    ("no", Kind::Node),
    ("nodeclaim", Kind::NodeClaim),
    ("nodeclaims", Kind::NodeClaim),
    ("nc", Kind::NodeClaim),
    ("nodepool", Kind::NodePool),
    ("nodepools", Kind::NodePool),
    ("np", Kind::NodePool),
    ("nodepools.karpenter.sh", Kind::NodePool),
];

/// Kinds that make pods: a question about one is about its pods.
const WORKLOADS: [&str; 14] = [
    "deploy",
    "deployment",
    "deployments",
    "rs",
    "replicaset",
    "replicasets",
    "sts",
    "statefulset",
    "statefulsets",
    "ds",
    "daemonset",
    "daemonsets",
    "job",
    "jobs",
];

impl Object {
    /// `KIND NAME`, `KIND/NAME`, or for pods `KIND NAMESPACE/NAME`.
    /// Where labels say which one is meant, a kind alone will do.
    pub(super) fn parsed(words: &[String], has_labels: bool) -> Result<Self, Failure> {
        let (kind, name) = match words {
            [kind, name] => (kind.as_str(), name.as_str()),
            [both] => both.split_once('/').unwrap_or((both.as_str(), "")),
            _ => ("", ""),
        };
        let lower = kind.to_lowercase();
        let known = KINDS.iter().find(|(word, _)| *word == lower);
        let Some((_, kind)) = known else {
            return Err(unknown_kind(kind, &lower, words));
        };
        if has_labels && !name.is_empty() {
            return Err(Failure::usage(
                format!("{name} and labels"),
                "an object is meant by its name or by its labels",
                format!("dovetail why {lower} {name}, or dovetail why {lower} -l KEY=VALUE"),
            ));
        }
        if name.is_empty() && !has_labels {
            return Err(Failure::usage(
                format!("which {lower} is meant?"),
                "a question is about one object",
                format!("dovetail why {lower} NAME"),
            ));
        }
        Ok(Self {
            kind: *kind,
            name: name.to_owned(),
        })
    }
}

fn unknown_kind(kind: &str, lower: &str, written: &[String]) -> Failure {
    let mut words: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
    words.sort_unstable();
    let of_pods = written
        .first()
        .and_then(|first| first.split_once('/'))
        .map(|(_, name)| name);
    let of_pods = of_pods.or(written.get(1).map(String::as_str));
    let next = match (nearest(lower, &words), written) {
        // Pods of a workload begin with its name.
        _ if WORKLOADS.contains(&lower) => format!("dovetail why pod {}", of_pods.unwrap_or("NAME")),
        (Found::One(near) | Found::None(Some(near)), _) => format!("dovetail why {near} NAME"),
        // What looks like a pod in its namespace.
        (_, [one]) if one.contains('/') => format!("dovetail why pod {one}"),
        _ => "dovetail why pod NAME".to_owned(),
    };
    Failure::usage(
        format!("{kind:?} is no kind to ask about"),
        "it is one of pod (po), node (no), nodeclaim (nc), nodepool (np)",
        next,
    )
}

/// The name of the object with these labels, and word of others that have them too.
pub(super) fn labelled(
    view: &View<'_>,
    kind: Kind,
    selector: &tui::Selector,
    namespace: Option<&str>,
) -> Result<(String, Option<String>), Failure> {
    let objects = view.snapshot.objects();
    let (noun, mut names): (&str, Vec<String>) = match kind {
        Kind::Pod => {
            let here = objects.pods.iter().filter(|pod| {
                let is_here = namespace.is_none_or(|namespace| *pod.metadata.namespace == *namespace);
                is_here && selector.selects(&pod.metadata.labels)
            });
            let mut pods: Vec<&Arc<Pod>> = here.collect();
            pods.sort_by_key(|pod| !pod.is_provisionable());
            ("pod", pods.iter().map(|pod| pod.metadata.key().to_string()).collect())
        }
        Kind::Node => (
            "node",
            with_labels(objects.nodes.iter().map(|it| &it.metadata), selector),
        ),
        Kind::NodeClaim => (
            "nodeclaim",
            with_labels(objects.node_claims.iter().map(|it| &it.metadata), selector),
        ),
        Kind::NodePool => (
            "nodepool",
            with_labels(objects.node_pools.iter().map(|it| &it.metadata), selector),
        ),
    };
    if names.is_empty() {
        let next = format!("kubectl get {noun}s -A --show-labels");
        return Err(Failure::new(
            format!("no {noun} has these labels"),
            "all were looked through",
            next,
        ));
    }
    let count = names.len();
    let name = names.swap_remove(0);
    let told = (count > 1).then(|| format!("{} have these labels: this is about {name}", counted(count, noun)));
    Ok((name, told))
}

fn with_labels<'a>(all: impl Iterator<Item = &'a Metadata>, selector: &tui::Selector) -> Vec<String> {
    let meant = all.filter(|metadata| selector.selects(&metadata.labels));
    meant.map(|metadata| metadata.name.to_string()).collect()
}

/// The pod that is meant; one that waits counts before others that begin alike.
pub(super) fn pod<'a>(view: &View<'a>, written: &str, namespace: Option<&str>) -> Result<&'a Arc<Pod>, Failure> {
    let (namespace, name) = match written.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (namespace, written),
    };
    let is_here = |pod: &&Arc<Pod>| namespace.is_none_or(|namespace| *pod.metadata.namespace == *namespace);
    let pods: Vec<&'a Arc<Pod>> = view.snapshot.objects().pods.iter().filter(is_here).collect();
    if let Some(exact) = only(pods.iter().copied().filter(|pod| *pod.metadata.name == *name)) {
        return Ok(exact);
    }
    let begins = |pod: &&Arc<Pod>| pod.metadata.name.starts_with(name);
    let begin: Vec<&Arc<Pod>> = pods.iter().copied().filter(begins).collect();
    let waiting = only(begin.iter().copied().filter(|pod| pod.is_provisionable()));
    if let Some(found) = only(begin.iter().copied()).or(waiting) {
        return Ok(found);
    }
    if !begin.is_empty() {
        let keys: Vec<String> = begin.iter().map(|pod| pod.metadata.key().to_string()).collect();
        return Err(ambiguous("pod", written, &keys));
    }
    Err(no_pod(view, &pods, name, namespace))
}

fn only<'a, T: ?Sized + 'a>(mut found: impl Iterator<Item = &'a T>) -> Option<&'a T> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

fn no_pod(view: &View<'_>, pods: &[&Arc<Pod>], name: &str, namespace: Option<&str>) -> Failure {
    let mut names: Vec<&str> = pods.iter().map(|pod| &*pod.metadata.name).collect();
    names.sort_unstable();
    let near = match nearest(name, &names) {
        Found::None(near) => near,
        Found::One(near) => Some(near),
        Found::Several(several) => several.first().copied(),
    };
    let everywhere = || view.snapshot.objects().pods.iter();
    let key = near.and_then(|near| everywhere().find(|pod| *pod.metadata.name == *near));
    let elsewhere = || everywhere().find(|pod| pod.metadata.name.starts_with(name));
    let key = key.or_else(elsewhere).map(|pod| pod.metadata.key().to_string());
    let place = namespace.map_or("any namespace".to_owned(), |namespace| format!("namespace {namespace}"));
    let (why, next) = match key {
        Some(key) => (
            format!("{} looked through; the nearest is {key}", counted(pods.len(), "pod")),
            format!("dovetail why pod {key}"),
        ),
        None => (
            format!(
                "{} looked through, and none is called like it",
                counted(pods.len(), "pod")
            ),
            "kubectl get pods -A".to_owned(),
        ),
    };
    Failure::new(format!("no pod {name} in {place}"), why, next)
}

fn ambiguous(kind: &str, written: &str, names: &[String]) -> Failure {
    const TOLD: usize = 6;
    let more = names.len().saturating_sub(TOLD);
    let mut told: Vec<String> = names.iter().take(TOLD).cloned().collect();
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    Failure::usage(
        format!("{} begin with {written}", counted(names.len(), kind)),
        told.join(", "),
        format!(
            "dovetail why {kind} {}",
            names.first().map(String::as_str).unwrap_or_default()
        ),
    )
}

/// The machine that is meant, by the name of its node or of its claim.
pub(super) fn machine<'v, 'a>(view: &'v View<'a>, object: &Object) -> Result<&'v Machine<'a>, Failure> {
    let is_claim = object.kind == Kind::NodeClaim;
    let name_of = |machine: &'v Machine<'a>| -> Option<&'v str> {
        match (is_claim, machine.member.claim, machine.member.node) {
            (true, Some(claim), _) => Some(&*claim.metadata.name),
            // One that has no node yet, or none any more, is called by its claim.
            (false, ..) => Some(&*machine.name),
            _ => None,
        }
    };
    let mut names: Vec<&str> = view.machines.iter().filter_map(name_of).collect();
    names.sort_unstable();
    let kind = if is_claim { "nodeclaim" } else { "node" };
    let found = one(kind, &object.name, &names)?;
    let machine = view.machines.iter().find(|machine| name_of(machine) == Some(found));
    machine.ok_or_else(|| {
        Failure::new(
            format!("no {kind} {found}"),
            "it is gone",
            format!("kubectl get {kind}s"),
        )
    })
}

/// The pool that is meant.
pub(super) fn pool<'a>(view: &View<'a>, written: &str) -> Result<&'a Arc<NodePool>, Failure> {
    let pools = &view.snapshot.objects().node_pools;
    let names: Vec<&str> = pools.iter().map(|pool| &*pool.metadata.name).collect();
    let name = one("nodepool", written, &names)?;
    pools
        .find("", name)
        .ok_or_else(|| Failure::new(format!("no nodepool {name}"), "it is gone", "kubectl get nodepools"))
}

fn one<'n>(kind: &str, written: &str, names: &[&'n str]) -> Result<&'n str, Failure> {
    match nearest(written, names) {
        Found::One(name) => Ok(name),
        Found::Several(several) => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(ambiguous(kind, written, &names))
        }
        Found::None(near) => {
            let looked = format!("{} looked through", counted(names.len(), kind));
            let (why, next) = match near {
                Some(near) => (
                    format!("{looked}; the nearest is {near}"),
                    format!("dovetail why {kind} {near}"),
                ),
                None => (
                    format!("{looked}, and none is called like it"),
                    format!("kubectl get {kind}s"),
                ),
            };
            Err(Failure::new(format!("no {kind} {written}"), why, next))
        }
    }
}

/// Lines of a patch as YAML to apply: what goes is left out, and so are the signs in front.
pub(super) fn patch(lines: &[String]) -> String {
    let kept = lines.iter().filter(|line| !line.starts_with('-'));
    let bare = kept.map(|line| line.get(2..).unwrap_or_default());
    bare.fold(String::new(), |text, line| text + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Object, Failure> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        Object::parsed(&words, false)
    }

    #[test]
    fn kinds_are_written_as_kubectl_has_them() {
        let cases = [
            (&["po", "shop/cart-0"][..], Kind::Pod, "shop/cart-0"),
            (&["pod/cart-0"], Kind::Pod, "cart-0"),
            (&["nc", "general-x"], Kind::NodeClaim, "general-x"),
            (&["NodePool/general"], Kind::NodePool, "general"),
        ];
        for (words, kind, name) in cases {
            let expected = Object {
                kind,
                name: name.into(),
            };
            assert_eq!(parsed(words), Ok(expected));
        }
    }

    #[test]
    fn a_kind_nobody_knows_gets_the_nearest_and_a_missing_name_is_asked_for() {
        let unknown = parsed(&["nodepol", "general"]).unwrap_err();
        assert_eq!(unknown.next, "dovetail why nodepool NAME");
        let nameless = parsed(&["node"]).unwrap_err();
        assert_eq!(nameless.error, "which node is meant?");
    }
}
