//! The rest of a cluster, on virtual time: who makes nodes ready, schedules pods, runs them, replaces them, counts
//! budgets and collects what has lost its owner. Each can be switched off.

mod budget;
mod cron;
mod daemon;
mod deployment;
mod furniture;
mod garbage;
mod job;
mod kubelet;
mod lifecycle;
mod replica;
mod scheduler;
mod stateful;
mod taint;
mod volume;
mod workload;

use std::{sync::Arc, time::Duration};

pub use self::kubelet::node_address;
use serde_json::Value;
use tokio::{sync::mpsc::UnboundedReceiver, task::JoinSet};

use self::lifecycle::Silent;
use crate::{ApiServer, Change, Resource, address::Key};

/// Who stands in for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a row of switches")]
pub struct Standins {
    /// Nodes that kwok would play are ready this long after they were created. None: never.
    pub node_ready_after: Option<Duration>,
    /// Pods run this long after they were bound. None: never.
    pub pod_runs_after: Option<Duration>,
    /// Pods end this long after they were told to, at most their grace.
    pub pod_ends_after: Duration,
    /// kube-scheduler.
    pub scheduler: bool,
    /// The controller of ReplicaSets.
    pub replica_sets: bool,
    /// The controller of PodDisruptionBudgets.
    pub budgets: bool,
    /// The garbage collectors: of what has lost its owner, and of pods whose node is gone.
    pub garbage: bool,
    /// The controllers of Deployments, StatefulSets and DaemonSets; ReplicaSets tell of their pods, too.
    pub workloads: bool,
    /// The controllers of Jobs and CronJobs. Pods of Jobs succeed after running this long, or for as many seconds as
    /// their annotation `simulator/run-seconds` says.
    pub jobs_run_for: Option<Duration>,
    /// The life cycle of nodes: one whose kubelet has stopped ([`Running::stop_kubelet`]) is unknown after this long;
    /// taints follow the condition, and pods leave nodes whose taints they do not tolerate.
    pub node_patience: Option<Duration>,
    /// The binder of volumes and their attachment.
    pub volumes: bool,
    /// Namespaces, service accounts and priority classes that every cluster has.
    pub furniture: bool,
    /// Nodes and pods show what only people read: versions, addresses, containers.
    pub details: bool,
}

impl Default for Standins {
    fn default() -> Self {
        Self {
            node_ready_after: Some(Duration::from_secs(5)),
            pod_runs_after: Some(Duration::from_secs(1)),
            pod_ends_after: Duration::from_secs(1),
            scheduler: true,
            replica_sets: true,
            budgets: true,
            garbage: true,
            workloads: false,
            jobs_run_for: None,
            node_patience: None,
            volumes: false,
            furniture: false,
            details: false,
        }
    }
}

/// Stand-ins at work, until this is dropped.
#[derive(Debug)]
pub struct Running {
    _tasks: JoinSet<()>,
    silent: Silent,
}

impl Running {
    /// Stops the kubelet of a node, as when its machine dies: nothing on it begins or ends, and after a while the life
    /// cycle notices.
    pub fn stop_kubelet(&self, node: &str) {
        self.silent.set(node, true);
    }

    /// Starts it again.
    pub fn start_kubelet(&self, node: &str) {
        self.silent.set(node, false);
    }
}

impl Standins {
    /// Everybody: the cluster that people expect. The default is what tests of controllers need, and quicker.
    pub fn all() -> Self {
        Self {
            workloads: true,
            jobs_run_for: Some(Duration::from_secs(30)),
            node_patience: Some(Duration::from_secs(50)),
            volumes: true,
            furniture: true,
            details: true,
            ..Self::default()
        }
    }

    /// Sets them to work.
    pub fn start(&self, server: &ApiServer) -> Running {
        let mut tasks = JoinSet::new();
        let silent = Silent::default();
        if self.furniture {
            furniture::put(server);
            tasks.spawn(furniture::keep(server.clone()));
        }
        if let Some(after) = self.node_ready_after {
            tasks.spawn(kubelet::join(server.clone(), after, silent.clone(), self.details));
        }
        if let Some(after) = self.pod_runs_after {
            tasks.spawn(kubelet::run(server.clone(), after, silent.clone(), self.details));
        }
        tasks.spawn(kubelet::end(server.clone(), self.pod_ends_after, silent.clone()));
        if self.scheduler {
            tasks.spawn(scheduler::schedule(server.clone()));
        }
        if self.replica_sets {
            tasks.spawn(replica::replace(server.clone(), self.workloads));
        }
        if self.workloads {
            tasks.spawn(deployment::roll(server.clone()));
            tasks.spawn(stateful::number(server.clone()));
            tasks.spawn(daemon::spread(server.clone()));
        }
        if let Some(time) = self.jobs_run_for {
            tasks.spawn(job::work(server.clone()));
            tasks.spawn(job::succeed(server.clone(), time));
            tasks.spawn(job::start_in_time(server.clone()));
        }
        if self.budgets {
            tasks.spawn(budget::count(server.clone()));
        }
        if self.garbage {
            tasks.spawn(garbage::collect(server.clone()));
            tasks.spawn(garbage::collect_pods(server.clone()));
        }
        if let Some(patience) = self.node_patience {
            tasks.spawn(lifecycle::listen(server.clone(), silent.clone(), patience));
            tasks.spawn(lifecycle::taint(server.clone()));
            tasks.spawn(taint::evict(server.clone()));
        }
        if self.volumes {
            tasks.spawn(volume::bind(server.clone()));
            tasks.spawn(volume::attach(server.clone()));
        }
        Running { _tasks: tasks, silent }
    }
}

/// What concerns a stand-in: at first everything there is, then what changes, many changes at a time.
struct News {
    server: ApiServer,
    changes: UnboundedReceiver<Change>,
    is_first: bool,
}

impl News {
    fn of(server: &ApiServer) -> Self {
        Self {
            server: server.clone(),
            changes: server.changes(),
            is_first: true,
        }
    }

    /// The objects of these kinds that are new or different, or gone. Waits until there is one.
    async fn next(&mut self, resources: &[Resource]) -> Option<Vec<(Resource, Arc<Value>)>> {
        if std::mem::take(&mut self.is_first) {
            let all = |resource: &Resource| {
                let objects = self.server.all(resource);
                objects
                    .into_iter()
                    .map(|object| (resource.clone(), object))
                    .collect::<Vec<_>>()
            };
            return Some(resources.iter().flat_map(all).collect());
        }
        loop {
            let mut news = vec![self.changes.recv().await?];
            while let Ok(change) = self.changes.try_recv() {
                news.push(change);
            }
            news.retain(|change| resources.contains(&change.resource));
            if !news.is_empty() {
                return Some(
                    news.into_iter()
                        .map(|change| (change.resource, change.object))
                        .collect(),
                );
            }
        }
    }
}

fn nodes() -> Resource {
    Resource::new("", "nodes")
}

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    // As [`Value::pointer`] reads it, which allocates for every part of the way.
    let mut found = object;
    for part in pointer.split('/').skip(1) {
        let next = match (found, part.contains('~')) {
            (Value::Array(items), _) => part.parse::<usize>().ok().and_then(|at| items.get(at)),
            (_, false) => found.get(part),
            (_, true) => found.get(part.replace("~1", "/").replace("~0", "~")),
        };
        match next {
            Some(next) => found = next,
            None => return "",
        }
    }
    found.as_str().unwrap_or_default()
}

fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// As the store names it.
fn place(object: &Value) -> Key {
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    (namespace.to_owned(), name.to_owned())
}

/// As the server's direct access names it.
fn key(object: &Value) -> String {
    match (text(object, "/metadata/namespace"), text(object, "/metadata/name")) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}
