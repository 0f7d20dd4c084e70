//! Which daemons will run on which nodes, and what they take there.
//!
//! Upstream has one pod stand for each DaemonSet and changes it while it looks: a toleration it adds and alternatives of a
//! node affinity it gives up stay so for the instance types, templates and nodes that follow.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use model::{
    host_port::HostPort,
    instance_type::InstanceType,
    object::{Affinity, DaemonSet, Labels, NodeAffinity, NodeSelector, ObjectKey, Pod, Taint, Text, Toleration},
    quantity::Quantity,
    requirement::{Requirements, UndefinedLabels},
    resources::{ResourceList, ResourceName},
    snapshot::Snapshot,
    taint::check_tolerated,
    vocabulary::Vocabulary,
};

use super::{DaemonGroup, Template, requests::requests_of, template::specs};

/// The pods that stand for the DaemonSets, in the order of those.
#[derive(Debug)]
pub(super) struct Daemons {
    daemons: Vec<Daemon>,
}

#[derive(Debug)]
struct Daemon {
    key: ObjectKey,
    tolerations: Vec<Toleration>,
    /// What it asks of a node, by alternative; never empty.
    terms: Vec<Requirements>,
    /// The alternative in force; those before it were given up.
    term: usize,
    /// The label keys that any alternative mentions, aliases included.
    keys: BTreeSet<Text>,
    requests: ResourceList,
    ports: Vec<HostPort>,
}

impl Daemons {
    /// One for every DaemonSet, but for those that claim devices while device claims are ignored.
    pub(super) fn of(snapshot: &Snapshot, vocabulary: &mut Vocabulary) -> Self {
        let newest = newest_pods(snapshot);
        let mut daemons = Vec::new();
        for set in snapshot.objects().daemon_sets.iter() {
            let pod = representative(set, newest.get(&set.metadata.key()).copied());
            if !(pod.has_device_claims() && snapshot.settings().ignore_dra_requests) {
                daemons.push(Daemon::of(&pod, vocabulary));
            }
        }
        Self { daemons }
    }

    /// The template's types by the daemons they will run, in the order in which a set of daemons first appears.
    pub(super) fn groups(&mut self, template: &Template, vocabulary: &Vocabulary) -> Vec<DaemonGroup> {
        let mut groups: Vec<(Vec<usize>, DaemonGroup)> = Vec::new();
        for (at, candidate) in template.types.iter().enumerate() {
            let running = self.running(template, candidate, vocabulary);
            if let Some((_, group)) = groups.iter_mut().find(|(daemons, _)| *daemons == running) {
                group.types.push(at);
            } else {
                let group = self.group(at, &running);
                groups.push((running, group));
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// The daemons as nodes see them.
    pub(super) fn on_nodes<'a>(&'a mut self, vocabulary: &'a mut Vocabulary) -> NodeDaemons<'a> {
        let keys = self.daemons.iter().flat_map(|daemon| daemon.keys.iter().cloned());
        NodeDaemons {
            keys: keys.collect::<BTreeSet<_>>().into_iter().collect(),
            daemons: &self.daemons,
            vocabulary,
            known: HashMap::new(),
        }
    }

    fn running(&mut self, template: &Template, candidate: &InstanceType, vocabulary: &Vocabulary) -> Vec<usize> {
        let daemons = self.daemons.iter_mut().enumerate();
        let runs = |daemon: &mut Daemon| daemon.runs_on(template, candidate, vocabulary);
        daemons.filter_map(|(at, daemon)| runs(daemon).then_some(at)).collect()
    }

    fn group(&self, first_type: usize, running: &[usize]) -> DaemonGroup {
        let running: Vec<_> = running.iter().filter_map(|at| self.daemons.get(*at)).collect();
        let with_ports = running.iter().filter(|daemon| !daemon.ports.is_empty());
        DaemonGroup {
            types: vec![first_type],
            overhead: sum(&running),
            ports: with_ports
                .map(|daemon| (daemon.key.clone(), daemon.ports.clone()))
                .collect(),
            daemons: running.iter().map(|daemon| daemon.key.clone()).collect(),
        }
    }
}

impl Daemon {
    fn of(pod: &Pod, vocabulary: &mut Vocabulary) -> Self {
        let selector = pod.spec.node_selector.iter();
        let selector = Requirements::from_labels(selector.map(|(key, value)| (&**key, &**value)), vocabulary);
        let affinity = pod
            .spec
            .affinity
            .as_ref()
            .and_then(|affinity| affinity.node_affinity.as_ref());
        let required = affinity.and_then(|affinity| affinity.required.as_ref());
        let alternatives = required.into_iter().flat_map(|required| &required.node_selector_terms);
        let mut keys: BTreeSet<_> = pod.spec.node_selector.iter().map(|(key, _)| key.clone()).collect();
        let mut terms = Vec::new();
        for alternative in alternatives {
            let mut term = selector.clone();
            let asked = Requirements::from_specs(&specs(&alternative.match_expressions), vocabulary);
            term.add_all(&asked, vocabulary);
            terms.push(term);
            keys.extend(alternative.match_expressions.iter().map(|asked| asked.key.clone()));
        }
        if terms.is_empty() {
            terms.push(selector);
        }
        Self {
            key: pod.metadata.key(),
            tolerations: pod.spec.tolerations.to_vec(),
            terms,
            term: 0,
            keys,
            requests: requests_of(pod),
            ports: pod.spec.host_ports().collect(),
        }
    }

    /// Whether it will run on nodes of a type. Taints that only ask to stay away do not keep a daemon away.
    fn runs_on(&mut self, template: &Template, candidate: &InstanceType, vocabulary: &Vocabulary) -> bool {
        self.tolerate_preferences();
        if !self.tolerates(&template.pool.spec.template.spec.taints) {
            return false;
        }
        loop {
            let fits = self.terms.get(self.term).is_some_and(|term| {
                let undefined = UndefinedLabels::AllowedIfWellKnown;
                candidate.requirements.intersects(term, vocabulary)
                    && template.requirements.is_compatible(term, undefined, vocabulary)
            });
            if fits {
                return true;
            }
            if self.term + 1 >= self.terms.len() {
                return false;
            }
            self.term += 1;
        }
    }

    fn tolerate_preferences(&mut self) {
        let is_preference = |toleration: &Toleration| {
            let view = toleration.view();
            (view.key, view.operator, view.value, view.effect) == ("", "Exists", "", "PreferNoSchedule")
        };
        if !self.tolerations.iter().any(is_preference) {
            self.tolerations.push(Toleration {
                operator: "Exists".into(),
                effect: "PreferNoSchedule".into(),
                ..Toleration::default()
            });
        }
    }

    fn tolerates(&self, taints: &[Taint]) -> bool {
        let tolerations: Vec<_> = self.tolerations.iter().map(Toleration::view).collect();
        check_tolerated(taints.iter().map(Taint::view), &tolerations).is_ok()
    }
}

/// What daemons take of existing nodes, computed once for all nodes that look the same to them.
#[derive(Debug)]
pub(super) struct NodeDaemons<'a> {
    daemons: &'a [Daemon],
    /// The labels that some daemon asks about.
    keys: Vec<Text>,
    vocabulary: &'a mut Vocabulary,
    known: HashMap<(Vec<Option<Text>>, Vec<Taint>), ResourceList>,
}

impl NodeDaemons<'_> {
    /// What the daemons take together that belong on a node with these labels and taints.
    pub(super) fn requests(&mut self, labels: &Labels, taints: &[Taint]) -> ResourceList {
        let seen: Vec<_> = self.keys.iter().map(|key| labels.get(key).cloned()).collect();
        let look = (seen, taints.to_vec());
        if let Some(known) = self.known.get(&look) {
            return known.clone();
        }
        let requests = self.sum(labels, taints);
        self.known.insert(look, requests.clone());
        requests
    }

    /// Unlike on a node to come, a label that is not there is not going to be.
    fn sum(&mut self, labels: &Labels, taints: &[Taint]) -> ResourceList {
        let asked = self.keys.iter().filter_map(|key| Some((&**key, &**labels.get(key)?)));
        let node = Requirements::from_labels(asked, self.vocabulary);
        let runs = |daemon: &&Daemon| {
            let term = daemon.terms.get(daemon.term);
            let meets = |term| node.is_compatible(term, UndefinedLabels::Denied, self.vocabulary);
            daemon.tolerates(taints) && term.is_some_and(meets)
        };
        let running: Vec<_> = self.daemons.iter().filter(runs).collect();
        let mut requests = sum(&running);
        // The count is there even when it is none.
        requests.add(&ResourceList::from_iter([(ResourceName::Pods, Quantity::ZERO)]));
        requests
    }
}

fn sum(daemons: &[&Daemon]) -> ResourceList {
    let mut total = ResourceList::EMPTY;
    for daemon in daemons {
        total.add(&daemon.requests);
    }
    total
}

/// The newest pod of each DaemonSet that controls one; of equally new ones the first by name.
pub(crate) fn newest_pods(snapshot: &Snapshot) -> HashMap<ObjectKey, &Arc<Pod>> {
    let mut newest = HashMap::<ObjectKey, &Arc<Pod>>::new();
    let sets = &snapshot.objects().daemon_sets;
    if sets.is_empty() {
        return newest;
    }
    for pod in snapshot.objects().pods.iter() {
        let Some(owner) = pod.metadata.controller() else {
            continue;
        };
        let set = sets.find(&pod.metadata.namespace, &owner.name);
        let Some(set) = set.filter(|set| set.metadata.uid == owner.uid) else {
            continue;
        };
        let known = newest.entry(set.metadata.key()).or_insert(pod);
        if pod.metadata.creation_timestamp > known.metadata.creation_timestamp {
            *known = pod;
        }
    }
    newest
}

/// The pod that stands for a DaemonSet: its newest, or one made up from its template. The DaemonSet controller pins its
/// pods to hosts, so the template's node affinity takes the place of the pod's where there is one.
fn representative(set: &DaemonSet, newest: Option<&Arc<Pod>>) -> Pod {
    let template = &set.spec.template.spec;
    let mut pod = newest.map_or_else(|| made_up(set), |pod| Pod::clone(pod));
    let required = template
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref()?.required.as_ref());
    if let Some(required) = required {
        replace_required(&mut pod, required);
    }
    pod
}

fn replace_required(pod: &mut Pod, required: &NodeSelector) {
    let spec = Arc::make_mut(&mut pod.spec);
    let affinity = spec.affinity.as_deref().cloned().unwrap_or_default();
    let node_affinity = NodeAffinity {
        required: Some(required.clone()),
        ..affinity.node_affinity.unwrap_or_default()
    };
    spec.affinity = Some(Arc::new(Affinity {
        node_affinity: Some(node_affinity),
        ..affinity
    }));
}

/// The API server takes limits for missing requests of pods; of templates we must do it.
fn made_up(set: &DaemonSet) -> Pod {
    let mut pod = Pod {
        spec: Arc::new(set.spec.template.spec.admitted()),
        ..Pod::default()
    };
    pod.metadata.name = set.metadata.name.clone();
    pod.metadata.namespace = set.metadata.namespace.clone();
    pod
}
