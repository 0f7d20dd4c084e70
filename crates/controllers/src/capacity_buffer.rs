//! Room kept free: what each CapacityBuffer comes to, said in its status.
//!
//! The stand-in pods themselves are made by the planner, afresh for every plan and from the same rules.

mod resolve;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use model::object::{CapacityBuffer, Object, ObjectKey};
use runtime::{Settings, queue::Backoff};
use state::{Change, Kind, State, Transition};

use crate::{Cluster, Controller, Next, Problem, patch::Lock, provisioning::Batch};

const RESYNC: Duration = Duration::from_secs(30);
const CONTESTED: Duration = Duration::from_secs(1);

/// Keeps the status of buffers, and wakes the provisioner.
#[derive(Debug)]
pub struct CapacityBuffers {
    batch: Arc<Batch>,
}

impl CapacityBuffers {
    /// Waking the provisioner through its batch.
    pub fn new(batch: Arc<Batch>) -> Self {
        Self { batch }
    }
}

#[async_trait]
impl Controller for CapacityBuffers {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "capacitybuffer"
    }

    fn workers(&self, _: &Settings) -> usize {
        10
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            least: Duration::from_millis(100),
            most: Duration::from_mins(1),
        }
    }

    fn concerns(&self, change: &Change, state: &State) -> Vec<ObjectKey> {
        match change {
            Change::CapacityBuffer(buffer) => buffer.latest().map(|it| it.metadata.key()).into_iter().collect(),
            Change::PodTemplate(template) => named_by(state, template.latest(), |buffer, name| {
                let template = buffer.spec.pod_template_ref.as_ref();
                template.is_some_and(|template| *template.name == *name)
            }),
            Change::Deployment(workload) => scaling(state, workload),
            Change::StatefulSet(workload) => scaling(state, workload),
            Change::ReplicaSet(workload) => scaling(state, workload),
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, cluster: &Cluster, key: &ObjectKey) -> Result<Next, Problem> {
        let needed = [Kind::PodTemplate, Kind::Deployment, Kind::StatefulSet, Kind::ReplicaSet];
        if !cluster.look(|state| state.missing(&needed).is_empty()) {
            return Ok(Next::After(CONTESTED));
        }
        let snapshot = cluster.snapshot();
        let buffers = &snapshot.objects().capacity_buffers;
        let Some(buffer) = buffers.find(&key.namespace, &key.name) else {
            self.batch.trigger_now();
            return Ok(Next::Change);
        };
        let (status, unresolved) = resolve::resolve(buffer, snapshot.objects(), cluster.now());
        let after = CapacityBuffer {
            status,
            ..CapacityBuffer::clone(buffer)
        };
        match cluster.update_status(&**buffer, &after, Lock::Version).await {
            Err(error) if error.is_conflict() || error.is_not_found() => return Ok(Next::After(CONTESTED)),
            result => drop(result?),
        }
        if let Some(unresolved) = unresolved.filter(|unresolved| !unresolved.is_users()) {
            return Err(Problem::Other(format!("CapacityBuffer \"{key}\": {unresolved}")));
        }
        self.batch.trigger(&buffer.metadata.uid);
        Ok(Next::After(RESYNC))
    }
}

/// The buffers of a namespace that name an object of it.
fn named_by<T: Object>(
    state: &State,
    object: Option<&Arc<T>>,
    is_named: impl Fn(&CapacityBuffer, &str) -> bool,
) -> Vec<ObjectKey> {
    let Some(metadata) = object.map(|object| object.metadata()) else {
        return Vec::new();
    };
    let buffers = state.all::<CapacityBuffer>().iter();
    let here = buffers.filter(|buffer| buffer.metadata.namespace == metadata.namespace);
    here.filter(|buffer| is_named(buffer, &metadata.name))
        .map(|buffer| buffer.metadata.key())
        .collect()
}

/// The buffers that follow a workload whose spec changed.
fn scaling<T: Object>(state: &State, workload: &Transition<T>) -> Vec<ObjectKey> {
    if !workload.changes_generation() {
        return Vec::new();
    }
    named_by(state, workload.latest(), |buffer, name| {
        let named = buffer.spec.scalable_ref.as_ref();
        named.is_some_and(|named| {
            let is_apps = named.api_group.is_empty() || *named.api_group == *"apps";
            is_apps && *named.kind == *T::KIND && *named.name == *name
        })
    })
}
