//! How is it told that something takes time? Long-running operations in every style of ARM, and when their ends come true.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    answer::{Answer, Refusal},
    glob,
    knob::LroStyle,
    request::Asked,
    world::World,
};

/// What is true once an operation has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    VmReady(String),
    VmGone(String),
    NicReady(String),
    NicGone(String),
    DiskGone(String),
    ExtensionReady(String),
    ExtensionGone(String),
    MachineReady(String),
    MachinesGone(Vec<String>),
}

/// An operation that was begun.
pub(crate) struct Pending {
    begun: Timestamp,
    due: Timestamp,
    is_over: bool,
    /// Why it fails, or failed.
    failure: Option<Refusal>,
    end: End,
}

/// All operations of this double.
#[derive(Default)]
pub(crate) struct Operations {
    all: BTreeMap<String, Pending>,
    /// Those that have not ended, in the order of their ends.
    open: BTreeSet<(Timestamp, String)>,
    serial: u64,
}

impl Operations {
    pub(crate) fn in_progress(&self) -> usize {
        self.open.len()
    }

    /// The next one that ends until a time, and when.
    fn next_due(&self, until: Timestamp) -> Option<(Timestamp, String)> {
        self.open.first().filter(|(due, _)| *due <= until).cloned()
    }

    /// One that is on its way to an end.
    fn on_way(&self, end: &End) -> Option<String> {
        let open = self.open.iter().filter_map(|(_, id)| Some((id, self.all.get(id)?)));
        let mut same = open.filter(|(_, one)| &one.end == end);
        same.next().map(|(id, _)| id.clone())
    }

    /// Ends one; what it was to bring about is returned, and why it did not.
    fn close(&mut self, id: &str, failure: Option<Refusal>) -> Option<(Timestamp, End, Option<Refusal>)> {
        let one = self.all.get_mut(id)?;
        self.open.remove(&(one.due, id.to_owned()));
        one.is_over = true;
        one.failure = failure.or_else(|| one.failure.take());
        Some((one.due, one.end.clone(), one.failure.clone()))
    }

    /// Ends those that something else has overtaken.
    fn preempt(&mut self, end: &End) {
        while let Some(id) = self.on_way(end) {
            let message = "Operation execution has been preempted by a more recent operation.";
            self.close(&id, Some(Refusal::new(409, "OperationPreempted", message)));
        }
    }
}

impl World {
    /// Begins an operation and puts onto the answer how it is told.
    pub(crate) fn begin(&mut self, asked: &Asked<'_>, end: End, failure: Option<Refusal>, answer: Answer) -> Answer {
        let id = {
            self.operations.serial += 1;
            // Random for clients, the same in every run for us.
            format!("{:08x}-0000-4000-8000-000000000000", self.operations.serial)
        };
        let seconds = self
            .latencies
            .iter()
            .rev()
            .find(|one| glob::fits(&one.operation, asked.id()));
        let seconds = seconds.map_or(0, |one| one.seconds);
        let pending = Pending {
            begun: asked.now,
            due: asked.now + SignedDuration::from_secs(seconds),
            is_over: false,
            failure,
            end,
        };
        self.operations.open.insert((pending.due, id.clone()));
        self.operations.all.insert(id.clone(), pending);
        self.tell(asked, &id, answer)
    }

    /// Tells of the operation that is on its way to an end already, if there is one.
    pub(crate) fn join(&self, asked: &Asked<'_>, end: &End, answer: Answer) -> Answer {
        match self.operations.on_way(end) {
            Some(id) => self.tell(asked, &id, answer),
            None => answer,
        }
    }

    fn tell(&self, asked: &Asked<'_>, id: &str, mut answer: Answer) -> Answer {
        let usual = match asked.method {
            "DELETE" | "POST" => LroStyle::Both,
            _ => LroStyle::AsyncOperation,
        };
        let style = self
            .styles
            .iter()
            .rev()
            .find(|one| glob::fits(&one.operation, asked.id()));
        let style = style.map_or(usual, |one| one.style);
        if matches!(style, LroStyle::AsyncOperation | LroStyle::Both) {
            answer = answer.with("azure-asyncoperation", self.status_url(asked, "operations", id));
        }
        if matches!(style, LroStyle::Location | LroStyle::Both) {
            answer = answer.with("location", self.status_url(asked, "operationResults", id));
        }
        self.with_pause(answer)
    }

    fn with_pause(&self, answer: Answer) -> Answer {
        match self.setup.retry_after {
            Some(seconds) => answer.with("retry-after", seconds.to_string()),
            None => answer,
        }
    }

    fn status_url(&self, asked: &Asked<'_>, what: &str, id: &str) -> String {
        let namespace = asked.path.split('/').find(|part| part.starts_with("Microsoft."));
        format!(
            "{}/subscriptions/{}/providers/{}/locations/{}/{what}/{id}?api-version={}",
            self.url,
            self.setup.subscription,
            namespace.unwrap_or("Microsoft.Compute"),
            self.setup.region,
            asked.version()
        )
    }

    /// Lets everything come true that is due at a time.
    pub(crate) fn settle(&mut self, now: Timestamp) {
        loop {
            let eviction = self
                .evictions
                .iter()
                .filter(|one| one.at <= now)
                .min_by_key(|one| one.at);
            let eviction = eviction.map(|one| (one.at, one.vm.clone()));
            match (eviction, self.operations.next_due(now)) {
                (Some((at, vm)), next) if next.as_ref().is_none_or(|(due, _)| at <= *due) => {
                    self.evict(&vm);
                    self.index(at);
                }
                (_, Some((_, id))) => self.finish(&id),
                _ => break,
            }
        }
        self.index(now);
    }

    fn finish(&mut self, id: &str) {
        let Some((due, end, failure)) = self.operations.close(id, None) else {
            return;
        };
        match end {
            End::VmReady(key) => self.vm_ready(&key, failure),
            End::VmGone(key) => {
                self.operations.preempt(&End::VmReady(key.clone()));
                match failure {
                    None => self.remove_vm(&key),
                    Some(_) => self.vm_stays(&key),
                }
            }
            End::NicReady(key) => self.nic_ready(&key, failure.is_some()),
            End::NicGone(key) => self.nic_gone(&key, failure.is_some()),
            End::DiskGone(key) => drop(failure.is_none().then(|| self.disks.take(&key))),
            End::ExtensionReady(key) => self.extension_ready(&key, failure.is_some()),
            End::ExtensionGone(key) => drop(failure.is_none().then(|| self.extensions.remove(&key))),
            End::MachineReady(key) => self.machine_ready(&key, failure),
            End::MachinesGone(keys) => self.machines_gone(&keys, failure.is_some()),
        }
        self.index(due);
    }

    /// What `Azure-AsyncOperation` leads to: a failure is told with status 200.
    pub(crate) fn operation_status(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        let (id, pending) = self.pending(asked)?;
        let mut status = json!({"name": id, "startTime": pending.begun.to_string()});
        if !pending.is_over {
            status["status"] = json!("InProgress");
            return Ok(self.with_pause(Answer::ok(status)));
        }
        status["endTime"] = json!(pending.due.to_string());
        status["status"] = json!(if pending.failure.is_some() {
            "Failed"
        } else {
            "Succeeded"
        });
        if let Some(failure) = &pending.failure {
            status["error"] = failure.error();
        }
        Ok(Answer::ok(status))
    }

    /// What `Location` leads to: 202 until the end, then the resource or the error itself.
    pub(crate) fn operation_result(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        let (id, pending) = self.pending(asked)?;
        if !pending.is_over {
            let again = self.status_url(asked, "operationResults", &id);
            return Ok(self.with_pause(Answer::empty(202).with("location", again)));
        }
        if let Some(failure) = &pending.failure {
            return Ok(failure.answer("CloudError"));
        }
        let body = match &pending.end {
            End::VmReady(key) => self.vms.get(key).map(|vm| self.vm_json(vm, false)),
            End::NicReady(key) => self.nics.get(key).map(Self::nic_json),
            End::ExtensionReady(key) => self.extensions.get(key).map(|one| one.json.clone()),
            End::MachineReady(key) => self.machines.get(key).map(|one| self.machine_json(one)),
            _ => None,
        };
        Ok(body.map_or_else(|| Answer::empty(204), Answer::ok))
    }

    fn pending(&self, asked: &Asked<'_>) -> Result<(String, &Pending), Refusal> {
        let id = asked.name("operation");
        let found = self.operations.all.get(id);
        let found = found.map(|pending| (id.to_owned(), pending));
        found.ok_or_else(|| Refusal::new(404, "NotFound", format!("The operation {id} is not known.")))
    }
}
