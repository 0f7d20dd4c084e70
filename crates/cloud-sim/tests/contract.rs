//! The simulated cloud keeps the provider contract, and its region does what it says.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the whole target is a test")]

use std::{
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use catalogue::Source;
use cloud::{
    CloudError, CloudProvider, LaunchToken,
    conformance::{self, Fault, Harness},
};
use cloud_sim::{CallFault, CloudSim, Defect, Happening, Image, Market, Method, Region, Rules, Scope};
use jiff::Timestamp;
use model::object::{NodeClaim, NodePool, ProviderId};
use serde_json::json;

static KWOK: LazyLock<Arc<Market>> = LazyLock::new(|| Arc::new(Market::load(Source::Kwok).unwrap()));

/// A region whose clock is moved by hand.
struct Bench {
    region: Arc<Region>,
    cloud: CloudSim,
    seconds: Arc<AtomicI64>,
    claims: AtomicU64,
    faults: Arc<Mutex<Vec<CallFault>>>,
    lag: Mutex<Option<Duration>>,
}

fn bench(market: &Arc<Market>, rules: Rules) -> Bench {
    let seconds = Arc::new(AtomicI64::new(1_000_000));
    let clock = Arc::clone(&seconds);
    let now = Arc::new(move || Timestamp::from_second(clock.load(Ordering::SeqCst)).unwrap());
    let region = Region::new(Arc::clone(market), rules, now);
    let faults: Arc<Mutex<Vec<CallFault>>> = Arc::default();
    let next = Arc::clone(&faults);
    region.set_faults(move |facts| {
        let is_create = facts.method == Method::Create;
        let fault = is_create.then(|| next.lock().unwrap().pop()).flatten();
        fault.unwrap_or(CallFault::None)
    });
    Bench {
        cloud: region.provider(),
        region,
        seconds,
        claims: AtomicU64::new(0),
        faults,
        lag: Mutex::default(),
    }
}

impl Bench {
    fn pass(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    async fn launch(&self, name: &str) -> Result<NodeClaim, CloudError> {
        let mut claim = self.claim(name);
        let launched = self.cloud.create(&claim, &token(&claim)).await?;
        claim.status.provider_id = Some(launched.provider_id.clone().into());
        claim.status.image_id = launched.image_id;
        Ok(claim)
    }
}

fn token(claim: &NodeClaim) -> LaunchToken {
    LaunchToken {
        claim: claim.metadata.uid.clone(),
        attempt: 1,
    }
}

#[async_trait]
impl Harness for Bench {
    fn cloud(&self) -> &dyn CloudProvider {
        &self.cloud
    }

    fn claim(&self, name: &str) -> NodeClaim {
        let number = self.claims.fetch_add(1, Ordering::SeqCst);
        serde_json::from_value(json!({
            "metadata": {"name": name, "uid": format!("uid-{number}"), "labels": {"karpenter.sh/nodepool": "default"}},
            "spec": {"requirements": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
            ]},
        }))
        .unwrap()
    }

    fn pool(&self) -> NodePool {
        NodePool::default()
    }

    fn now(&self) -> Timestamp {
        self.region.now()
    }

    async fn advance(&self, by: Duration) {
        self.pass(i64::try_from(by.as_secs()).unwrap());
    }

    async fn inject(&self, fault: Fault) -> bool {
        match fault {
            Fault::LostResponse => self.faults.lock().unwrap().push(CallFault::LoseAnswer),
            Fault::Throttled(wait) => self.faults.lock().unwrap().push(CallFault::Throttle(wait)),
            Fault::OutOfStock => self.region.run_short(&Scope::default(), Duration::from_mins(5)),
            // The lag is a rule of the region; the harness of that case is made with one.
            Fault::ReadLag(lag) => return *self.lag.lock().unwrap() == Some(lag),
            // A machine is started or it is not.
            Fault::PartialFailure => return false,
        }
        true
    }

    async fn machines(&self) -> Vec<ProviderId> {
        let own = self.region.machines().into_iter().map(|machine| machine.id);
        own.chain(self.region.foreign()).collect()
    }

    async fn start_foreign(&self) -> Option<ProviderId> {
        Some(self.region.start_foreign("kwok://kwok-somebody-else"))
    }
}

#[tokio::test]
async fn the_simulated_cloud_keeps_the_contract_with_every_catalogue() {
    for source in Source::ALL {
        let market = Arc::new(Market::load(source).unwrap());
        let failures = conformance::failures(|| async { bench(&market, Rules::default()) }).await;
        assert_eq!(failures, [""; 0], "{source:?}");
    }
}

#[tokio::test]
async fn the_simulated_cloud_keeps_the_contract_when_its_reads_lag() {
    let lag = Duration::from_secs(30);
    let rules = Rules {
        read_lag: lag,
        ..Rules::default()
    };
    // Only the case of the lag itself: the others read what they just launched.
    let case = conformance::all()
        .into_iter()
        .find(|case| case.name.contains("reads_do_not_show_yet"));
    let lagging = bench(&KWOK, rules);
    *lagging.lag.lock().unwrap() = Some(lag);
    assert_eq!((case.unwrap().run)(&lagging).await, Ok(()));
    lagging.launch("late").await.unwrap();
    assert_eq!(
        (
            lagging.cloud.list().await.unwrap().len(),
            lagging.region.machines().len()
        ),
        (1, 2)
    );
}

#[tokio::test]
async fn a_seed_gives_the_same_machines_and_times_whatever_order_they_are_asked_for_in() {
    let lives = |names: [&'static str; 3], seed: u64| async move {
        let world = bench(
            &KWOK,
            Rules {
                seed,
                ..Rules::default()
            },
        );
        for name in names {
            let mut claim = world.claim(name);
            claim.metadata.uid = name.into();
            world.cloud.create(&claim, &token(&claim)).await.unwrap();
        }
        let machines = world.region.machines();
        let mut lives: Vec<_> = machines
            .iter()
            .map(|it| (it.claim.to_string(), it.joins_at, it.ready_at))
            .collect();
        lives.sort();
        lives
    };
    let first = lives(["a", "b", "c"], 1).await;
    assert_eq!(lives(["c", "a", "b"], 1).await, first);
    assert_ne!(lives(["a", "b", "c"], 2).await, first);
}

#[tokio::test]
async fn a_machine_boots_joins_is_ready_and_is_paid_for_until_it_is_gone() {
    let world = bench(&KWOK, Rules::default());
    let claim = world.launch("a").await.unwrap();
    assert_eq!(world.region.happenings(), []);
    world.pass(60);
    let told: Vec<bool> = world
        .region
        .happenings()
        .iter()
        .map(|it| matches!(it, Happening::Ready(_)))
        .collect();
    assert_eq!(told, [false, true]);
    world.pass(3540);
    let bill = world.region.bill();
    assert_eq!(
        bill.spent_picos,
        u128::from(bill.hourly.picos()),
        "an hour costs what an hour costs"
    );
    world.cloud.delete(&claim).await.unwrap();
    world.pass(60);
    assert!(matches!(
        world.region.happenings()[..],
        [Happening::Gone(_, cloud_sim::Ending::Deleted)]
    ));
    let end = world.region.bill();
    world.pass(3600);
    assert_eq!(world.region.bill(), end);
}

#[tokio::test]
async fn quotas_and_rates_refuse_what_is_too_much() {
    let rules = Rules {
        quota_cpu: Some(2),
        launches_per_minute: Some(3),
        ..Rules::default()
    };
    let world = bench(&KWOK, rules);
    world.launch("a").await.unwrap();
    world.launch("b").await.unwrap();
    let Err(CloudError::InsufficientCapacity { offerings, .. }) = world.launch("c").await else {
        panic!("two cores of two run");
    };
    assert_eq!(&*offerings[0].reason, "VcpuLimitExceeded");
    let Err(CloudError::Throttled { retry_after, .. }) = world.launch("d").await else {
        panic!("three launches a minute");
    };
    assert_eq!(retry_after, Some(Duration::from_mins(1)));
}

#[tokio::test]
async fn a_stock_ends_and_the_next_cheapest_is_given() {
    let world = bench(&KWOK, Rules::default());
    let first = world.launch("a").await.unwrap();
    let scope = Scope {
        instance_type: Some(world.region.machines()[0].instance_type().to_owned()),
        ..Scope::default()
    };
    world.region.limit_stock(&scope, 1);
    world.launch("b").await.unwrap();
    let third = world.launch("c").await.unwrap();
    let types: Vec<_> = world
        .region
        .machines()
        .iter()
        .map(|it| (it.id.clone(), it.instance_type().to_owned()))
        .collect();
    let of = |claim: &NodeClaim| {
        types
            .iter()
            .find(|(id, _)| Some(id) == claim.status.provider_id.as_ref())
            .unwrap()
    };
    assert_ne!(of(&first).1, of(&third).1);
}

#[tokio::test]
async fn spot_is_taken_back_after_a_notice_and_a_zone_without_one() {
    let world = bench(&KWOK, Rules::default());
    world.launch("a").await.unwrap();
    world.pass(60);
    world.region.happenings();
    assert_eq!(world.region.interrupt(&Scope::default(), 1000), 1);
    assert!(matches!(world.region.happenings()[..], [Happening::Notice(_)]));
    world.pass(119);
    assert_eq!(world.region.machines().len(), 1);
    world.pass(1);
    assert!(matches!(
        world.region.happenings()[..],
        [Happening::Gone(_, cloud_sim::Ending::Interrupted)]
    ));
    world.launch("b").await.unwrap();
    let zone = world.region.machines()[0].zone().to_owned();
    assert_eq!(world.region.lose_zone(&zone, Duration::from_mins(10)), 1);
    assert_eq!(world.region.machines().len(), 0);
    world.launch("c").await.unwrap();
    assert_ne!(world.region.machines()[0].zone(), zone);
}

#[tokio::test]
async fn machines_of_a_bad_image_never_join_and_those_of_the_old_one_have_drifted() {
    let world = bench(&KWOK, Rules::default());
    let old = world.launch("a").await.unwrap();
    world.region.release(Image {
        name: "image-2".to_owned(),
        defect: Some(Defect::NeverJoins),
    });
    assert_eq!(
        world.cloud.is_drifted(&old).await.unwrap().as_deref(),
        Some("ImageDrift")
    );
    let new = world.launch("b").await.unwrap();
    assert_eq!(world.cloud.is_drifted(&new).await.unwrap(), None);
    world.pass(3600);
    let joined: Vec<String> = world
        .region
        .happenings()
        .iter()
        .filter_map(|it| match it {
            Happening::Joined(machine) => Some(machine.claim.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(joined, ["a"]);
}

#[tokio::test]
async fn a_spoilt_batch_has_less_memory_than_promised() {
    let world = bench(&KWOK, Rules::default());
    world
        .region
        .spoil(&Scope::default(), Defect::LessMemory(50), 1000, Duration::from_mins(1));
    world.launch("a").await.unwrap();
    let machine = &world.region.machines()[0];
    let (promised, has) = (
        machine.launched.capacity.amount("memory"),
        machine.capacity.amount("memory"),
    );
    assert!(has.value() <= promised.value() / 2, "{has} of {promised}");
}
