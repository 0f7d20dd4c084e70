//! Machines that are alike are asked for together: one request, with a header that names each.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use crate::{
    arm::{
        Detail, Failure,
        calls::Pool,
        wire::{Tags, aks::AksMachine},
    },
    reads::ReadSide,
};

/// The word in metrics.
const NAME: &str = "aks_machines";

/// Gathers machines.
pub(super) struct Batches(Arc<Inner>);

struct Inner {
    read: Arc<ReadSide>,
    pool: Pool,
    window: Window,
    open: Mutex<Open>,
}

/// The batches that wait for more, in the order they began.
#[derive(Default)]
struct Open {
    batches: BTreeMap<u64, Batch>,
    begun: u64,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    /// A batch goes out when no machine has come for this long,
    idle: Duration,
    /// or after this long,
    longest: Duration,
    /// or with this many.
    most: usize,
}

struct Batch {
    shared: AksMachine,
    machines: Vec<(Entry, oneshot::Sender<Result<(), Failure>>)>,
    arrived: Arc<Notify>,
}

/// A machine of a batch: what it does not share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    machine_name: String,
    zones: Vec<String>,
    tags: Tags,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Header<'a> {
    batch_machines: &'a [Entry],
}

impl Batches {
    pub(super) fn new(read: Arc<ReadSide>, pool: Pool) -> Self {
        let azure = &read.settings.azure;
        let window = Window {
            idle: azure.batch_idle_duration,
            longest: azure.batch_max_duration,
            most: usize::try_from(azure.batch_max_size).unwrap_or(1).max(1),
        };
        Self(Arc::new(Inner {
            read,
            pool,
            window,
            open: Mutex::default(),
        }))
    }

    /// Asks for a machine, with those like it that are asked for at the same time.
    pub(super) async fn ask(&self, name: &str, machine: AksMachine) -> Result<(), Failure> {
        let (shared, entry) = parted(name, machine);
        let (send, receive) = oneshot::channel();
        if let Some((number, arrived)) = self.0.add(shared, entry, send) {
            let inner = Arc::clone(&self.0);
            tokio::spawn(async move { inner.gather(number, &arrived).await });
        }
        let given_up = || Failure::unanswered("a batch of machines was given up");
        receive.await.map_err(|_| given_up())?
    }
}

/// What a machine shares with others, and what it has for itself. Ultra disks are only taken with the zone beside them.
fn parted(name: &str, mut machine: AksMachine) -> (AksMachine, Entry) {
    let zones = if machine.properties.hardware.ultra_ssd_enabled {
        machine.zones.clone()
    } else {
        std::mem::take(&mut machine.zones)
    };
    let entry = Entry {
        machine_name: name.to_owned(),
        zones,
        tags: machine.properties.tags.take().unwrap_or_default(),
    };
    (machine, entry)
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a machine to those that share everything with it. Whoever is the first has to gather the others.
    fn add(
        &self,
        shared: AksMachine,
        entry: Entry,
        send: oneshot::Sender<Result<(), Failure>>,
    ) -> Option<(u64, Arc<Notify>)> {
        let mut open = self.lock();
        let is_alike = |batch: &&mut Batch| batch.shared == shared && batch.machines.len() < self.window.most;
        if let Some(batch) = open.batches.values_mut().find(is_alike) {
            batch.machines.push((entry, send));
            batch.arrived.notify_one();
            return None;
        }
        let arrived = Arc::new(Notify::new());
        open.begun += 1;
        let number = open.begun;
        let batch = Batch {
            shared,
            machines: vec![(entry, send)],
            arrived: Arc::clone(&arrived),
        };
        open.batches.insert(number, batch);
        Some((number, arrived))
    }

    async fn gather(&self, number: u64, arrived: &Notify) {
        let began = Instant::now();
        loop {
            let left = self.window.longest.saturating_sub(began.elapsed());
            let count = self.lock().batches.get(&number).map_or(0, |batch| batch.machines.len());
            if left.is_zero() || count >= self.window.most {
                break;
            }
            let wait = self.window.idle.min(left);
            if tokio::time::timeout(wait, arrived.notified()).await.is_err() {
                break;
            }
        }
        let Some(batch) = self.lock().batches.remove(&number) else {
            return;
        };
        self.count(began.elapsed(), batch.machines.len());
        let (entries, senders): (Vec<Entry>, Vec<_>) = batch.machines.into_iter().unzip();
        let results = self.send(&batch.shared, &entries).await;
        for (result, sender) in results.into_iter().zip(senders) {
            // Whoever asked may be gone.
            drop(sender.send(result));
        }
    }

    fn count(&self, took: Duration, machines: usize) {
        let metrics = &self.read.metrics;
        metrics
            .cloudprovider_batcher_batch_time_seconds
            .observe([NAME], took.as_secs_f64());
        let machines = u32::try_from(machines).unwrap_or(u32::MAX);
        metrics
            .cloudprovider_batcher_batch_size
            .observe([NAME], f64::from(machines));
    }

    async fn send(&self, shared: &AksMachine, entries: &[Entry]) -> Vec<Result<(), Failure>> {
        let Some(first) = entries.first() else {
            return Vec::new();
        };
        let header = match serde_json::to_string(&Header {
            batch_machines: entries,
        }) {
            Ok(header) => header,
            Err(error) => {
                let failure = Failure::unanswered(format!("a batch of machines cannot be written: {error}"));
                return entries.iter().map(|_| Err(failure.clone())).collect();
            }
        };
        let asked = self
            .read
            .arm
            .put_aks_machine(&self.pool, &first.machine_name, shared, Some(header));
        match asked.await {
            Ok(()) => entries.iter().map(|_| Ok(())).collect(),
            Err(failure) => each(&failure, entries),
        }
    }
}

/// What a failed batch means for each of its machines.
fn each(failure: &Failure, entries: &[Entry]) -> Vec<Result<(), Failure>> {
    let details = match failure.code.as_str() {
        "BatchMachineClientError" => failure.details.clone(),
        // The same, written into the message.
        "BatchMachineInternalServerError" => inner_details(&failure.message),
        _ => Vec::new(),
    };
    let is_told = |detail: &Detail| entries.iter().any(|entry| entry.machine_name == detail.target);
    // What names nobody, or nobody of ours, says that we do not understand each other: none of them counts as made.
    if details.is_empty() || !details.iter().all(is_told) {
        return entries.iter().map(|_| Err(failure.clone())).collect();
    }
    let of = |entry: &Entry| {
        let detail = details.iter().find(|detail| detail.target == entry.machine_name);
        detail.map_or(Ok(()), |detail| {
            Err(Failure {
                code: detail.code.clone(),
                message: detail.message.clone(),
                status: failure.status.map(|status| status.min(499)),
                ..Failure::default()
            })
        })
    };
    entries.iter().map(of).collect()
}

fn inner_details(message: &str) -> Vec<Detail> {
    #[derive(serde::Deserialize, Default)]
    #[serde(default)]
    struct Inner {
        details: Vec<Detail>,
    }
    let inner: Inner = serde_json::from_str(message).unwrap_or_default();
    inner.details
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn machine(tags: &str, zone: &str, has_ultra: bool) -> AksMachine {
        serde_json::from_value(json!({"zones": [zone], "properties": {"tags": {"n": tags},
            "hardware": {"vmSize": "Standard_D4s_v5", "ultraSsdEnabled": has_ultra}}}))
        .unwrap()
    }

    fn entries(names: &[&str]) -> Vec<Entry> {
        let entry = |name: &&str| Entry {
            machine_name: (*name).to_owned(),
            zones: Vec::new(),
            tags: Tags::new(),
        };
        names.iter().map(entry).collect()
    }

    fn failed(code: &str, message: &str, details: &[(&str, &str)]) -> Failure {
        let detail = |(code, target): &(&str, &str)| Detail {
            code: (*code).to_owned(),
            message: "why".to_owned(),
            target: (*target).to_owned(),
        };
        Failure {
            code: code.to_owned(),
            message: message.to_owned(),
            status: Some(400),
            details: details.iter().map(detail).collect(),
            ..Failure::default()
        }
    }

    #[test]
    fn machines_share_everything_but_their_tags_and_zones() {
        let (one, entry) = parted("a", machine("1", "1", false));
        let (two, _) = parted("b", machine("2", "2", false));
        assert_eq!(one, two);
        assert_eq!(
            (entry.zones.as_slice(), entry.tags["n"].as_str()),
            (&["1".to_owned()][..], "1")
        );
        let (one, _) = parted("a", machine("1", "1", true));
        let (two, _) = parted("b", machine("2", "2", true));
        assert_ne!(one, two, "ultra disks are of a zone");
    }

    #[test]
    fn a_batch_that_failed_in_part_is_told_apart_by_name() {
        let failure = failed("BatchMachineClientError", "some", &[("SkuNotAvailable", "b")]);
        let results = each(&failure, &entries(&["a", "b"]));
        assert_eq!(results[0], Ok(()));
        assert_eq!(results[1].as_ref().unwrap_err().code, "SkuNotAvailable");
        let message = r#"{"details": [{"code": "ZonalAllocationFailed", "message": "why", "target": "a"}]}"#;
        let results = each(
            &failed("BatchMachineInternalServerError", message, &[]),
            &entries(&["a", "b"]),
        );
        assert_eq!(results[0].as_ref().unwrap_err().code, "ZonalAllocationFailed");
        assert_eq!(results[1], Ok(()));
    }

    #[test]
    fn any_other_failure_is_everybodys() {
        let cases = [
            failed("BadRequest", "no", &[]),
            failed("BatchMachineClientError", "some", &[]),
            failed("BatchMachineClientError", "some", &[("SkuNotAvailable", "")]),
            failed("BatchMachineClientError", "some", &[("SkuNotAvailable", "stranger")]),
            failed("BatchMachineInternalServerError", "not JSON", &[]),
        ];
        for failure in cases {
            let results = each(&failure, &entries(&["a", "b"]));
            assert!(
                results.iter().all(|it| it.as_ref().is_err_and(|it| *it == failure)),
                "{failure}"
            );
        }
    }
}
