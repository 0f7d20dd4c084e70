//! Workloads: which pods are a workload's, and what more or fewer replicas, or another template, make of them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use jiff::Timestamp;
use model::{
    object::{List, Metadata, Object, ObjectKey, OwnerReference, Pod, PodTemplateSpec, Uid},
    snapshot::{Objects, Snapshot, Table},
};

use crate::{change::Misfit, pod};

/// Names a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// `Deployment`, `StatefulSet` or `ReplicaSet`.
    pub kind: Kind,
    /// Its namespace; none where only one namespace has it.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// What makes pods in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Pods in revisions.
    Deployment,
    /// Pods with an identity.
    StatefulSet,
    /// One revision.
    ReplicaSet,
}

impl Kind {
    /// As kubectl has it, short or long.
    pub fn named(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "deploy" | "deployment" | "deployments" => Some(Self::Deployment),
            "sts" | "statefulset" | "statefulsets" => Some(Self::StatefulSet),
            "rs" | "replicaset" | "replicasets" => Some(Self::ReplicaSet),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::ReplicaSet => "ReplicaSet",
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.as_str())?;
        if let Some(namespace) = &self.namespace {
            write!(f, " {namespace}/{}", self.name)
        } else {
            write!(f, " {}", self.name)
        }
    }
}

/// A cluster with other pods of a workload.
pub(crate) struct Scaled {
    pub(crate) snapshot: Snapshot,
    pub(crate) said: String,
    pub(crate) assumed: Vec<String>,
}

/// A workload as it is in a cluster.
struct Found {
    workload: Workload,
    owner: OwnerReference,
    template: Option<PodTemplateSpec>,
    pods: Vec<Arc<Pod>>,
}

/// The cluster with so many pods of a workload.
pub(crate) fn scaled(snapshot: &Snapshot, workload: &Workload, replicas: u32) -> Result<Scaled, Misfit> {
    let found = find(snapshot, workload)?;
    let wanted = usize::try_from(replicas).unwrap_or(usize::MAX);
    let had = found.pods.len();
    let said = format!("{} at {wanted} replicas instead of {had}", found.workload);
    let mut assumed = Vec::new();
    let snapshot = if wanted > had {
        let more = more(snapshot, &found, wanted - had, &mut assumed)?;
        snapshot.with_pods(more)
    } else {
        let mut pods = found.pods.clone();
        pods.sort_by_key(|pod| first_to_go(snapshot, pod));
        let fewer = pods.iter().take(had - wanted).map(|pod| pod.metadata.key());
        snapshot.without_pods(fewer)
    };
    Ok(Scaled {
        snapshot,
        said,
        assumed,
    })
}

/// Which pod a scale-in takes first: those without a node, then those of low deletion cost, then the youngest.
fn first_to_go(snapshot: &Snapshot, pod: &Pod) -> (bool, i64, std::cmp::Reverse<Timestamp>, ObjectKey) {
    let cost = pod
        .metadata
        .annotations
        .get("controller.kubernetes.io/pod-deletion-cost");
    let cost = cost.and_then(|cost| cost.parse().ok()).unwrap_or(0);
    let born = pod.metadata.creation_timestamp.unwrap_or(snapshot.taken_at());
    let key = pod.metadata.key();
    (pod.node_name.is_some(), cost, std::cmp::Reverse(born), key)
}

/// No cluster runs more pods than this; a zero too many would fill the memory of whoever asks.
pub const MOST_PODS: u32 = 200_000;

fn more(snapshot: &Snapshot, found: &Found, count: usize, assumed: &mut Vec<String>) -> Result<Vec<Arc<Pod>>, Misfit> {
    if u32::try_from(count).map_or(true, |count| count > MOST_PODS) {
        return Err(Misfit::new(
            format!("{} at {count} more replicas", found.workload),
            format!("no cluster runs more than {MOST_PODS} pods"),
            "name fewer replicas",
        ));
    }
    let model = found.pods.first().map(|pod| PodTemplateSpec {
        metadata: pod.metadata.clone(),
        spec: Arc::clone(&pod.spec),
    });
    let Some(template) = found.template.clone().or(model) else {
        let why = "it has no pods, and its template is not in the source";
        return Err(Misfit::new(
            found.workload.to_string(),
            why,
            "add the workload to the dump, or use -f",
        ));
    };
    let has_claims = template
        .spec
        .volumes
        .iter()
        .any(|it| it.persistent_volume_claim.is_some());
    if has_claims {
        assumed.push(format!(
            "new pods of {} have no volumes of their own yet",
            found.workload
        ));
    }
    let pods = (0..count).map(|at| made(snapshot, found, &template, at));
    Ok(pods.collect())
}

/// A pod of a template, waiting for a node.
fn made(snapshot: &Snapshot, found: &Found, template: &PodTemplateSpec, at: usize) -> Arc<Pod> {
    let (name, namespace) = (
        &found.workload.name,
        found.workload.namespace.clone().unwrap_or_default(),
    );
    let mut spec = (*template.spec).clone();
    spec.volumes = List::default();
    let pod = Pod {
        metadata: Metadata {
            name: format!("{name}-more-{:04}", at + 1).into(),
            uid: Uid::from(format!("more-{namespace}-{name}-{at}").as_str()),
            namespace: namespace.as_str().into(),
            labels: template.metadata.labels.clone(),
            annotations: template.metadata.annotations.clone(),
            creation_timestamp: Some(snapshot.taken_at()),
            owner_references: vec![found.owner.clone()].into(),
            ..Metadata::default()
        },
        spec: Arc::new(spec.admitted()),
        ..Pod::default()
    };
    pod::waiting(&pod, snapshot.taken_at())
}

fn find(snapshot: &Snapshot, workload: &Workload) -> Result<Found, Misfit> {
    let objects = snapshot.objects();
    match workload.kind {
        Kind::Deployment => {
            let found = named(objects.deployments.iter().map(|it| &it.metadata), workload)?;
            let key = found.key();
            let template = objects.deployments.get(&key).map(|it| it.spec.template.clone());
            let revisions = objects
                .replica_sets
                .iter()
                .filter(|it| is_owned(&it.metadata, found, "Deployment"));
            let owners: Vec<OwnerReference> = revisions.map(|it| owner(&it.metadata, "ReplicaSet")).collect();
            // A dump without ReplicaSets still names them on the pods: the Deployment's name, a dash and a hash.
            let is_revision = |it: &OwnerReference| {
                *it.kind == *"ReplicaSet" && it.name.rsplit_once('-').is_some_and(|(name, _)| *name == *found.name)
            };
            let pods = pods(snapshot, &found.namespace, |it| {
                owners
                    .iter()
                    .any(|owner| owner.name == it.name && *it.kind == *"ReplicaSet")
                    || is_revision(it)
            });
            let newest = pods.iter().max_by_key(|pod| pod.metadata.creation_timestamp);
            let made_by = newest.and_then(|pod| pod.metadata.controller().cloned());
            let invented = owner(found, "ReplicaSet");
            Ok(Found {
                workload: full(workload, found),
                owner: made_by.or_else(|| owners.first().cloned()).unwrap_or(invented),
                template,
                pods,
            })
        }
        Kind::StatefulSet => {
            let found = named(objects.stateful_sets.iter().map(|it| &it.metadata), workload)?;
            let template = objects
                .stateful_sets
                .get(&found.key())
                .map(|it| it.spec.template.clone());
            Ok(direct(snapshot, workload, found, "StatefulSet", template))
        }
        Kind::ReplicaSet => {
            let found = named(objects.replica_sets.iter().map(|it| &it.metadata), workload)?;
            let template = objects
                .replica_sets
                .get(&found.key())
                .map(|it| it.spec.template.clone());
            Ok(direct(snapshot, workload, found, "ReplicaSet", template))
        }
    }
}

/// A workload that owns its pods itself.
fn direct(
    snapshot: &Snapshot,
    workload: &Workload,
    found: &Metadata,
    kind: &str,
    template: Option<PodTemplateSpec>,
) -> Found {
    let is_owner = |it: &OwnerReference| *it.kind == *kind && it.name == found.name;
    Found {
        workload: full(workload, found),
        owner: owner(found, kind),
        template,
        pods: pods(snapshot, &found.namespace, is_owner),
    }
}

fn full(workload: &Workload, found: &Metadata) -> Workload {
    Workload {
        namespace: Some(found.namespace.to_string()),
        ..workload.clone()
    }
}

fn owner(of: &Metadata, kind: &str) -> OwnerReference {
    OwnerReference {
        api_version: "apps/v1".into(),
        kind: kind.into(),
        name: of.name.clone(),
        uid: of.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

fn is_owned(object: &Metadata, by: &Metadata, kind: &str) -> bool {
    let is_owner = |it: &OwnerReference| *it.kind == *kind && it.name == by.name;
    object.namespace == by.namespace && object.owner_references.iter().any(is_owner)
}

fn pods(snapshot: &Snapshot, namespace: &str, is_owner: impl Fn(&OwnerReference) -> bool) -> Vec<Arc<Pod>> {
    let pods = snapshot.objects().pods.iter();
    let owned = pods.filter(|pod| *pod.metadata.namespace == *namespace && pod.is_active());
    let owned = owned.filter(|pod| pod.metadata.controller().is_some_and(&is_owner));
    owned.cloned().collect()
}

/// The one workload of a name.
fn named<'a>(all: impl Iterator<Item = &'a Metadata>, wanted: &Workload) -> Result<&'a Metadata, Misfit> {
    let all: Vec<&Metadata> = all.collect();
    let is_there = |it: &&&Metadata| {
        let namespace = wanted.namespace.as_deref();
        *it.name == *wanted.name && namespace.is_none_or(|namespace| *it.namespace == *namespace)
    };
    let found: Vec<&&Metadata> = all.iter().filter(is_there).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => {
            let known: Vec<String> = all.iter().map(|it| it.key().to_string()).take(8).collect();
            let kind = wanted.kind.as_str();
            let why = match known.as_slice() {
                [] => format!("the source has no {kind}s"),
                known => format!("of {} {kind}s there are {} …", all.len(), known.join(", ")),
            };
            Err(Misfit::new(
                format!("no {wanted}"),
                why,
                "--scale NAMESPACE/deploy/NAME=N",
            ))
        }
        many => {
            let places: Vec<&str> = many.iter().map(|it| &*it.namespace).collect();
            let why = format!("namespaces {} have one", places.join(", "));
            Err(Misfit::new(
                format!("which {wanted}"),
                why,
                "--scale NAMESPACE/deploy/NAME=N",
            ))
        }
    }
}

/// The workloads that manifests bring.
pub(crate) fn applied(objects: &Objects) -> Vec<Workload> {
    let of = |kind: Kind, it: &Metadata| Workload {
        kind,
        namespace: Some(it.namespace.to_string()),
        name: it.name.to_string(),
    };
    let deployments = objects.deployments.iter().map(|it| of(Kind::Deployment, &it.metadata));
    let sets = objects
        .stateful_sets
        .iter()
        .map(|it| of(Kind::StatefulSet, &it.metadata));
    let revisions = objects.replica_sets.iter().map(|it| of(Kind::ReplicaSet, &it.metadata));
    deployments.chain(sets).chain(revisions).collect()
}

/// The cluster in which a workload is what its manifest says: new, with another template, or with other replicas.
pub(crate) fn replaced(snapshot: &Snapshot, objects: &Objects, workload: &Workload) -> Result<Scaled, Misfit> {
    let with = snapshot.overlaid(|into| overlay(into, objects));
    let found = find(&with, workload)?;
    let (template, replicas) = wanted(objects, workload);
    let replicas = replicas.unwrap_or(1);
    let is_same = |pod: &Arc<Pod>| template.as_ref().is_some_and(|template| pod.spec == template.spec);
    let is_rolled = !found.pods.is_empty() && !found.pods.iter().all(is_same);
    if !is_rolled {
        return scaled(&with, workload, replicas);
    }
    let old = found.pods.iter().map(|pod| pod.metadata.key());
    let mut rolled = scaled(&with.without_pods(old), workload, replicas)?;
    rolled
        .assumed
        .push(format!("all pods of {workload} are made anew from the manifest"));
    Ok(rolled)
}

fn wanted(objects: &Objects, workload: &Workload) -> (Option<PodTemplateSpec>, Option<u32>) {
    let key = (
        workload.namespace.as_deref().unwrap_or_default(),
        workload.name.as_str(),
    );
    let spec = match workload.kind {
        Kind::Deployment => objects.deployments.find(key.0, key.1).map(|it| &it.spec),
        Kind::StatefulSet => objects.stateful_sets.find(key.0, key.1).map(|it| &it.spec),
        Kind::ReplicaSet => objects.replica_sets.find(key.0, key.1).map(|it| &it.spec),
    };
    let replicas = spec
        .and_then(|spec| spec.replicas)
        .and_then(|it| u32::try_from(it).ok());
    (spec.map(|spec| spec.template.clone()), replicas)
}

/// What else manifests bring, in words.
pub(crate) fn others(objects: &Objects) -> Vec<String> {
    fn told<'a, T: Object + 'a>(all: impl Iterator<Item = &'a Arc<T>>) -> Vec<String> {
        all.map(|it| format!("{} {}", T::KIND, it.metadata().key())).collect()
    }
    let (owned, single): (Vec<_>, Vec<_>) = objects.pods.iter().partition(|pod| pod.metadata.controller().is_some());
    let mut told_all = told(single.into_iter());
    let mut by_owner: BTreeMap<String, usize> = BTreeMap::new();
    for pod in owned {
        let owner = pod.metadata.controller();
        let owner = owner.map(|it| format!("{} {}/{}", it.kind, pod.metadata.namespace, it.name));
        *by_owner.entry(owner.unwrap_or_default()).or_default() += 1;
    }
    told_all.extend(by_owner.into_iter().map(|(owner, pods)| match pods {
        1 => format!("a pod of {owner}"),
        pods => format!("{pods} pods of {owner}"),
    }));
    told_all.extend(told(objects.daemon_sets.iter()));
    told_all.extend(told(objects.node_overlays.iter()));
    told_all.extend(told(objects.pod_disruption_budgets.iter()));
    told_all.extend(told(objects.capacity_buffers.iter()));
    told_all
}

/// The objects, with those of namespaced kinds that name none in `default`, as kubectl applies them.
pub(crate) fn in_a_namespace(objects: &Objects) -> Objects {
    fn placed<T: Object + Clone>(table: &Table<T>, metadata: fn(&mut T) -> &mut Metadata) -> Table<T> {
        let placed = table.iter().map(|it| {
            if !it.metadata().namespace.is_empty() {
                return Arc::clone(it);
            }
            let mut it = T::clone(it);
            metadata(&mut it).namespace = "default".into();
            Arc::new(it)
        });
        Table::new(placed.collect())
    }
    let mut after = objects.clone();
    after.pods = placed(&after.pods, |it| &mut it.metadata);
    after.deployments = placed(&after.deployments, |it| &mut it.metadata);
    after.stateful_sets = placed(&after.stateful_sets, |it| &mut it.metadata);
    after.replica_sets = placed(&after.replica_sets, |it| &mut it.metadata);
    after.daemon_sets = placed(&after.daemon_sets, |it| &mut it.metadata);
    after.pod_disruption_budgets = placed(&after.pod_disruption_budgets, |it| &mut it.metadata);
    after.persistent_volume_claims = placed(&after.persistent_volume_claims, |it| &mut it.metadata);
    after
}

/// Manifests over a cluster's objects; NodePools are looked after elsewhere.
pub(crate) fn overlay(into: &mut Objects, objects: &Objects) {
    let waiting = objects.pods.iter().map(|it| {
        if it.node_name.is_some() {
            return Arc::clone(it);
        }
        let spec = Arc::new(it.spec.admitted());
        pod::waiting(&Pod { spec, ..Pod::clone(it) }, Timestamp::UNIX_EPOCH)
    });
    into.pods = into.pods.with(waiting.collect::<Vec<_>>());
    into.deployments = into.deployments.with(objects.deployments.iter().cloned());
    into.stateful_sets = into.stateful_sets.with(objects.stateful_sets.iter().cloned());
    into.replica_sets = into.replica_sets.with(objects.replica_sets.iter().cloned());
    into.daemon_sets = into.daemon_sets.with(objects.daemon_sets.iter().cloned());
    into.node_overlays = into.node_overlays.with(objects.node_overlays.iter().cloned());
    into.pod_disruption_budgets = into
        .pod_disruption_budgets
        .with(objects.pod_disruption_budgets.iter().cloned());
    into.capacity_buffers = into.capacity_buffers.with(objects.capacity_buffers.iter().cloned());
    into.persistent_volume_claims = into
        .persistent_volume_claims
        .with(objects.persistent_volume_claims.iter().cloned());
    into.storage_classes = into.storage_classes.with(objects.storage_classes.iter().cloned());
}
