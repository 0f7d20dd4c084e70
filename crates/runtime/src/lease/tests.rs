//! What an election promises, with replicas that are cut off, frozen and thawed, on paused time.

use std::{
    future::poll_fn,
    sync::atomic::{AtomicBool, Ordering},
    task::{Poll, Waker},
};

use tokio::{
    sync::{Notify, mpsc::Receiver},
    task::JoinHandle,
};

use super::*;
use crate::double::{Asked, Served, answer, client};

/// An API server with one Lease.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<Option<Value>>>);

impl Store {
    fn serve(&self, asked: &Asked) -> Served {
        let mut lease = self.0.lock().unwrap();
        let method = asked.line.split(' ').next().unwrap();
        let version = |lease: &Option<Value>| {
            let version = lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
            version.unwrap_or_default()
        };
        let failed = |code: u16, reason: &str| {
            answer(
                code,
                &json!({"code": code, "reason": reason, "message": reason}).to_string(),
            )
        };
        let current = version(&lease);
        let mut changed = asked.body.clone();
        match (method, &*lease) {
            ("GET" | "PUT", None) => return failed(404, "NotFound"),
            ("POST", Some(_)) => return failed(409, "AlreadyExists"),
            ("PUT", Some(_)) if changed["metadata"]["resourceVersion"] != current => {
                return failed(409, "Conflict");
            }
            ("GET", Some(lease)) => return answer(200, &lease.to_string()),
            _ => {}
        }
        let number: u64 = current.as_str().unwrap_or("0").parse().unwrap();
        changed["metadata"]["resourceVersion"] = json!((number + 1).to_string());
        changed["metadata"]["uid"] = json!("lease-uid");
        *lease = Some(changed.clone());
        answer(200, &changed.to_string())
    }

    fn spec(&self) -> Value {
        self.0.lock().unwrap().as_ref().unwrap()["spec"].clone()
    }
}

/// A process that can be stopped and goes on where it was.
#[derive(Clone, Default)]
struct Freezer(Arc<(AtomicBool, Mutex<Option<Waker>>)>);

impl Freezer {
    fn freeze(&self) {
        self.0.0.store(true, Ordering::Relaxed);
    }

    fn thaw(&self) {
        self.0.0.store(false, Ordering::Relaxed);
        if let Some(waker) = self.0.1.lock().unwrap().take() {
            waker.wake();
        }
    }

    async fn run(self, process: impl Future<Output = ()>) {
        let mut process = pin!(process);
        poll_fn(|context| {
            if self.0.0.load(Ordering::Relaxed) {
                *self.0.1.lock().unwrap() = Some(context.waker().clone());
                return Poll::Pending;
            }
            process.as_mut().poll(context)
        })
        .await;
    }
}

struct Replica {
    leader: Leader,
    /// Requests do not get through.
    cut_off: Arc<AtomicBool>,
    freezer: Freezer,
    stop: Arc<Notify>,
    task: JoinHandle<()>,
    events: Receiver<Event>,
}

fn replica(store: &Store, name: &str, seed: u64) -> Replica {
    let cut_off = Arc::new(AtomicBool::new(false));
    let (store, broken) = (store.clone(), Arc::clone(&cut_off));
    let client = client(move |asked| {
        let (store, broken) = (store.clone(), Arc::clone(&broken));
        async move {
            sleep(Duration::from_millis(5)).await;
            if broken.load(Ordering::Relaxed) {
                return std::future::pending().await;
            }
            Ok(store.serve(&asked))
        }
    });
    let options = crate::api::Options {
        random: Random::seeded(seed),
        ..crate::api::Options::new("karpenter/1.15.0")
    };
    let api = Api::with(client, options);
    let clock = Clock::starting_at("2026-11-16T03:00:00Z".parse().unwrap());
    let (recorder, events) = Recorder::new(100);
    let election = Election::new("kube-system", "karpenter-leader-election", name.to_owned());
    let (elector, leader) = Elector::new(api, clock, recorder, election);
    let (freezer, stop) = (Freezer::default(), Arc::new(Notify::new()));
    let (frozen, stopped) = (freezer.clone(), Arc::clone(&stop));
    let task = tokio::spawn(async move {
        let process = elector.run(async move { stopped.notified().await });
        frozen.run(process).await;
    });
    Replica {
        leader,
        cut_off,
        freezer,
        stop,
        task,
        events,
    }
}

/// Lets time pass and returns after how many seconds a replica leads, watching that no two ever do.
async fn until_leads(replicas: &[&Replica], wanted: usize) -> f64 {
    let began = Instant::now();
    loop {
        let leading: Vec<bool> = replicas.iter().map(|r| r.leader.epoch_now().is_some()).collect();
        assert!(leading.iter().filter(|leads| **leads).count() <= 1, "{leading:?}");
        if leading[wanted] {
            return began.elapsed().as_secs_f64();
        }
        assert!(began.elapsed() < Duration::from_mins(5), "nobody leads");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Lets time pass, watching that no two replicas lead.
async fn watched(replicas: &[&Replica], seconds: u64) {
    for _ in 0..seconds * 20 {
        let leading = replicas.iter().filter(|r| r.leader.epoch_now().is_some()).count();
        assert!(leading <= 1, "{leading} replicas lead");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_replica_leads_at_once_and_writes_what_client_go_writes() {
    let store = Store::default();
    let mut one = replica(&store, "one", 1);
    watched(&[&one], 1).await;
    assert_eq!(one.leader.epoch_now(), Some(0));
    let expected = json!({
        "holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 0,
        "acquireTime": "2026-11-16T03:00:00.005000Z", "renewTime": "2026-11-16T03:00:00.005000Z",
    });
    assert_eq!(store.spec(), expected);
    watched(&[&one], 60).await;
    assert_eq!(one.leader.epoch_now(), Some(0));
    assert_eq!(store.spec()["acquireTime"], "2026-11-16T03:00:00.005000Z");
    assert_ne!(store.spec()["renewTime"], "2026-11-16T03:00:00.005000Z");
    let event = one.events.try_recv().unwrap();
    assert_eq!((&*event.component, &*event.reason), ("one", "LeaderElection"));
    assert_eq!(event.message, "one became leader");
    assert_eq!(
        (&*event.object.kind, event.object.uid.to_string().as_str()),
        ("Lease", "lease-uid")
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_cleanly_is_followed_within_a_retry() {
    let store = Store::default();
    let one = replica(&store, "one", 1);
    until_leads(&[&one], 0).await;
    let two = replica(&store, "two", 2);
    watched(&[&one, &two], 30).await;
    one.stop.notify_one();
    one.task.await.unwrap();
    let spec = store.spec();
    assert_eq!(
        (&spec["holderIdentity"], &spec["leaseDurationSeconds"]),
        (&json!(""), &json!(1))
    );
    assert_eq!(one.leader.epoch_now(), None);
    let waited = until_leads(&[&two], 0).await;
    assert!(waited <= 2.0 * 2.2 + 0.1, "{waited}");
    assert_eq!(two.leader.epoch_now(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_killed_is_followed_after_its_lease_and_a_retry() {
    let store = Store::default();
    let one = replica(&store, "one", 1);
    until_leads(&[&one], 0).await;
    let two = replica(&store, "two", 2);
    watched(&[&one, &two], 30).await;
    one.task.abort();
    let waited = until_leads(&[&two], 0).await;
    // Two retries: one until the last renewal was seen, one after it has expired.
    assert!((12.0..=15.0 + 2.0 * 4.4).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_begins_and_becomes_a_candidate() {
    for seed in 0..8 {
        let store = Store::default();
        let one = replica(&store, "one", seed);
        until_leads(&[&one], 0).await;
        let two = replica(&store, "two", seed + 100);
        watched(&[&one, &two], 30).await;
        one.cut_off.store(true, Ordering::Relaxed);
        until_leads(&[&one, &two], 1).await;
        assert_eq!(*one.leader.changes().borrow(), Leadership::Lost);
        one.cut_off.store(false, Ordering::Relaxed);
        watched(&[&one, &two], 60).await;
        assert_eq!((one.leader.epoch_now(), two.leader.epoch_now()), (None, Some(1)));
        two.task.abort();
        until_leads(&[&one], 0).await;
        assert_eq!(one.leader.epoch_now(), Some(2));
        one.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_frozen_and_thawed_does_not_act_on_its_old_term() {
    for (seed, seconds) in (0..5).flat_map(|seed| [1, 5, 11, 13, 14, 20, 100].map(|seconds| (seed, seconds))) {
        let store = Store::default();
        let one = replica(&store, "one", seed);
        until_leads(&[&one], 0).await;
        let two = replica(&store, "two", seed + 100);
        watched(&[&one, &two], 30).await;
        one.freezer.freeze();
        watched(&[&one, &two], seconds).await;
        one.freezer.thaw();
        watched(&[&one, &two], 30).await;
        let leaders = [&one, &two].map(|replica| replica.leader.epoch_now());
        match seconds {
            ..=11 => assert_eq!(leaders, [Some(0), None]),
            20.. => assert_eq!(leaders, [None, Some(1)]),
            _ => assert!(leaders.iter().flatten().count() == 1, "{leaders:?}"),
        }
        one.task.abort();
        two.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_of_the_server_does_not_cost_the_leadership() {
    let store = Store::default();
    let one = replica(&store, "one", 1);
    until_leads(&[&one], 0).await;
    let mut changes = one.leader.changes();
    changes.mark_unchanged();
    one.cut_off.store(true, Ordering::Relaxed);
    watched(&[&one], 4).await;
    one.cut_off.store(false, Ordering::Relaxed);
    watched(&[&one], 60).await;
    assert!(!changes.has_changed().unwrap());
    assert_eq!(one.leader.epoch_now(), Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_deleted_is_made_again_and_epochs_go_on() {
    let store = Store::default();
    let one = replica(&store, "one", 1);
    until_leads(&[&one], 0).await;
    one.stop.notify_one();
    one.task.await.unwrap();
    let two = replica(&store, "two", 2);
    until_leads(&[&two], 0).await;
    *store.0.lock().unwrap() = None;
    watched(&[&two], 10).await;
    assert_eq!(two.leader.epoch_now(), Some(1));
    assert_eq!(store.spec()["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_stops_leaves_the_lease_alone() {
    let store = Store::default();
    let one = replica(&store, "one", 1);
    until_leads(&[&one], 0).await;
    let two = replica(&store, "two", 2);
    watched(&[&one, &two], 5).await;
    two.stop.notify_one();
    two.task.await.unwrap();
    assert_eq!(store.spec()["holderIdentity"], "one");
    watched(&[&one], 30).await;
    assert_eq!(one.leader.epoch_now(), Some(0));
}
