//! What becomes of a fleet after most of its pods went, when every decision is carried out at once? Played offline, round
//! after round until nobody finds anything to do, with our decisions or with upstream's algorithm.
//!
//! Pods that move land where kube-scheduler's stand-in puts them, or where the plan has them; pods that find no room get
//! nodes, as provisioning would buy them.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Cursor,
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use disruption::{Command, Consolidation, Facts, Method, Options, decide};
use jiff::{SignedDuration, Timestamp};
use model::{
    dump::{self, Mode, Source},
    object::NodeClaim,
    plan::{Launch, Plan},
    price::Price,
    snapshot::Snapshot,
};
use packing::Packing;
use scheduler::rehearsal::{Spot, rehearse};
use serde::Serialize;
use workloads::{
    object::Object,
    placed::{self, Placed},
};

/// More rounds than any fleet has needed.
const MOST_ROUNDS: usize = 200;
/// Between rounds: the wait before a command is validated, a launch, a drain.
const ROUND: SignedDuration = SignedDuration::from_secs(60);

/// Who places the pods that move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placing {
    /// The stand-in of kube-scheduler.
    StandIn,
    /// Whoever decided: every pod lands where the plan has it.
    AsPlanned,
}

/// Which fleet, and who looks after it.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// Pods before the scale-in.
    pub pods: u64,
    /// Which workload of that size.
    pub seed: u64,
    /// Who bought the fleet.
    pub fleet: Packing,
    /// Who decides afterwards.
    pub consolidation: Consolidation,
    /// Who places pods.
    pub placing: Placing,
}

/// What became of a fleet.
#[derive(Debug, Clone, Serialize)]
pub struct Settled {
    /// Pods before the scale-in.
    pub pods: u64,
    /// Which workload.
    pub seed: u64,
    /// Who bought the fleet: `faithful` or `cheapest`.
    pub fleet: &'static str,
    /// Who decided afterwards.
    pub consolidation: &'static str,
    /// What the fleet cost before, in dollars an hour.
    pub before_usd_h: f64,
    /// What it costs in the end.
    pub settled_usd_h: f64,
    /// What no fleet for the pods that stay costs less than.
    pub bound_usd_h: f64,
    /// In the end by the bound.
    pub ratio: f64,
    /// Nodes in the end.
    pub nodes: usize,
    /// Rounds in which something was done.
    pub rounds: usize,
    /// Commands, by method.
    pub commands: BTreeMap<String, usize>,
    /// Nodes that were launched on the way.
    pub launched: usize,
    /// Pods that had to move, each time they did.
    pub pods_moved: usize,
    /// Pods that found no room where they were to go, and waited for another node.
    pub pods_pending: usize,
    /// Pods moved for each dollar an hour saved.
    pub pods_per_usd: f64,
}

/// A fleet while it is played.
struct Fleet {
    machines: Vec<Placed>,
    waiting: Vec<Object>,
    names: usize,
    launched: usize,
}

impl Fleet {
    /// The fleet that a planner buys for all pods, with those that stay.
    fn bought(scenario: &Scenario) -> Result<Self> {
        let pods = placed::pods(scenario.pods, scenario.seed);
        let mut fleet = Self {
            machines: Vec::new(),
            waiting: pods.iter().map(|(pod, _)| pod.clone()).collect(),
            names: 0,
            launched: 0,
        };
        fleet.provision(scenario.fleet, Placing::AsPlanned)?;
        ensure!(fleet.waiting.is_empty(), "{} pods have no place", fleet.waiting.len());
        let stay: BTreeSet<&str> = pods
            .iter()
            .filter(|(_, stays)| *stays)
            .map(|(pod, _)| pod.name())
            .collect();
        for machine in &mut fleet.machines {
            machine.pods.retain(|pod| stay.contains(pod.name()));
        }
        fleet.launched = 0;
        Ok(fleet)
    }

    fn snapshot(&self, now: Timestamp) -> Result<Snapshot> {
        read(&placed::cluster("scale-in", &self.machines, &self.waiting), now)
    }

    /// Buys nodes for the pods that wait.
    fn provision(&mut self, packing: Packing, placing: Placing) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let snapshot = self.snapshot(start()?)?;
        let options = packing::Options {
            packing,
            ..packing::Options::default()
        };
        let plan = packing::plan(&snapshot, &options);
        self.carry_out(&snapshot, &plan, placing)
    }

    /// Launches a plan's nodes, and lets its pods land.
    fn carry_out(&mut self, snapshot: &Snapshot, plan: &Plan, placing: Placing) -> Result<()> {
        let names = plan
            .claims
            .iter()
            .map(|claim| self.launch(claim.cheapest.as_ref()))
            .collect::<Result<Vec<String>>>()?;
        let mut places: BTreeMap<String, Option<String>> = BTreeMap::new();
        for (claim, name) in plan.claims.iter().zip(&names) {
            places.extend(
                claim
                    .pods
                    .iter()
                    .map(|pod| (pod.metadata.name.to_string(), Some(name.clone()))),
            );
        }
        for node in &plan.existing {
            let name = Some(node.name.to_string());
            places.extend(
                node.pods
                    .iter()
                    .map(|pod| (pod.metadata.name.to_string(), name.clone())),
            );
        }
        if placing == Placing::StandIn {
            let outcome = rehearse(snapshot, plan);
            for landed in outcome.elsewhere {
                let place = match landed.on {
                    Spot::Claim(at) => names.get(at).cloned(),
                    Spot::Node(name) => Some(name.to_string()),
                };
                places.insert(landed.pod.name.to_string(), place);
            }
            for pod in outcome.pending {
                places.insert(pod.name.to_string(), None);
            }
        }
        self.place(&places);
        Ok(())
    }

    fn launch(&mut self, launch: Option<&Launch>) -> Result<String> {
        let launch = launch.context("a claim that nothing can be launched for")?;
        self.names += 1;
        self.launched += 1;
        let name = format!("node-{:04}", self.names);
        self.machines.push(Placed {
            name: name.clone(),
            instance_type: launch.instance_type.to_string(),
            zone: launch.zone.as_deref().unwrap_or_default().to_owned(),
            capacity_type: launch.capacity_type.as_deref().unwrap_or_default().to_owned(),
            pods: Vec::new(),
        });
        Ok(name)
    }

    /// Pods leave where they are for where they go; those that go nowhere wait.
    fn place(&mut self, places: &BTreeMap<String, Option<String>>) {
        let mut going: Vec<Object> = Vec::new();
        let mut take = |pods: &mut Vec<Object>| {
            let (leave, stay): (Vec<_>, Vec<_>) = std::mem::take(pods)
                .into_iter()
                .partition(|pod| places.contains_key(pod.name()));
            *pods = stay;
            going.extend(leave);
        };
        take(&mut self.waiting);
        for machine in &mut self.machines {
            take(&mut machine.pods);
        }
        for pod in going {
            let place = places.get(pod.name()).cloned().flatten();
            let machine = place.and_then(|name| self.machines.iter_mut().find(|machine| machine.name == name));
            match machine {
                Some(machine) => machine.pods.push(pod),
                None => self.waiting.push(pod),
            }
        }
    }

    /// What a command asks for is done: nodes come, pods move, nodes go.
    fn obey(&mut self, snapshot: &Snapshot, command: &Command, placing: Placing) -> Result<()> {
        let going: BTreeSet<&str> = command.nodes().map(model::object::NodeName::as_str).collect();
        self.carry_out(&without(snapshot, command), &command.plan, placing)?;
        let mut left = Vec::new();
        self.machines.retain_mut(|machine| {
            let goes = going.contains(machine.name.as_str());
            if goes {
                left.append(&mut machine.pods);
            }
            !goes
        });
        self.waiting.append(&mut left);
        Ok(())
    }
}

/// The snapshot in which the nodes of a command go.
fn without(snapshot: &Snapshot, command: &Command) -> Snapshot {
    let claims = &snapshot.objects().node_claims;
    let going = command
        .candidates
        .iter()
        .filter_map(|candidate| claims.find("", candidate.claim.as_str()));
    let going: Vec<Arc<NodeClaim>> = going
        .map(|claim| {
            let mut going = NodeClaim::clone(claim);
            going.metadata.deletion_timestamp = Some(snapshot.taken_at());
            Arc::new(going)
        })
        .collect();
    snapshot.overlaid(|objects| objects.node_claims = objects.node_claims.with(going))
}

fn start() -> Result<Timestamp> {
    Ok(workloads::snapshot::TAKEN_AT.parse()?)
}

fn read(workload: &workloads::Snapshot, now: Timestamp) -> Result<Snapshot> {
    let mut file = serde_json::to_value(workload)?;
    if let Some(taken) = file.pointer_mut("/metadata/takenAt") {
        *taken = now.to_string().into();
    }
    let source = Source::Stream(
        "scale-in".to_owned(),
        Box::new(Cursor::new(file.to_string().into_bytes())),
    );
    let options = dump::Options {
        mode: Mode::Strict,
        taken_at: now,
    };
    Ok(dump::read([source], options)?.0)
}

/// What the machines of a snapshot cost: the sum over pools.
fn price(snapshot: &Snapshot) -> Price {
    disruption::tracked_costs(snapshot).into_values().sum()
}

/// What no fleet for these pods costs less than.
fn bound(scenario: &Scenario) -> Result<Price> {
    let stay: Vec<Object> = placed::pods(scenario.pods, scenario.seed)
        .into_iter()
        .filter(|(_, stays)| *stays)
        .map(|(pod, _)| pod)
        .collect();
    let snapshot = read(&placed::cluster("bound", &[], &stay), start()?)?;
    Ok(packing::planned(&snapshot, &packing::Options::default())
        .report
        .lower_bound)
}

/// Plays a scenario to its end; `hear` is told of every command.
pub fn play(scenario: &Scenario, mut hear: impl FnMut(&Command, Price)) -> Result<Settled> {
    let mut fleet = Fleet::bought(scenario)?;
    let options = Options {
        consolidation: scenario.consolidation,
        ..Options::default()
    };
    let packing = match scenario.consolidation {
        Consolidation::Faithful => Packing::Faithful,
        Consolidation::Cheapest => Packing::Cheapest,
    };
    let mut now = start()?;
    let before = price(&fleet.snapshot(now)?);
    let mut settled = Settled {
        pods: scenario.pods,
        seed: scenario.seed,
        fleet: match scenario.fleet {
            Packing::Faithful => "faithful",
            Packing::Cheapest => "cheapest",
        },
        consolidation: match scenario.consolidation {
            Consolidation::Faithful => "faithful",
            Consolidation::Cheapest => "cheapest",
        },
        before_usd_h: dollars(before),
        settled_usd_h: 0.0,
        bound_usd_h: dollars(bound(scenario)?),
        ratio: 0.0,
        nodes: 0,
        rounds: 0,
        commands: BTreeMap::new(),
        launched: 0,
        pods_moved: 0,
        pods_pending: 0,
        pods_per_usd: 0.0,
    };
    for round in 0.. {
        ensure!(round < MOST_ROUNDS, "the fleet does not settle: {:?}", settled.commands);
        let snapshot = fleet.snapshot(now)?;
        let found = decide(&snapshot, &Facts::default(), &options, now);
        if found.commands.is_empty() {
            break;
        }
        settled.rounds += 1;
        for command in &found.commands {
            hear(command, price(&snapshot));
            *settled.commands.entry(method(command.method)).or_default() += 1;
            settled.pods_moved += command.pod_count();
            let waiting = fleet.waiting.len();
            fleet.obey(&snapshot, command, scenario.placing)?;
            settled.pods_pending += fleet.waiting.len() - waiting;
        }
        fleet.provision(packing, scenario.placing)?;
        now = now.checked_add(ROUND)?;
    }
    let after = price(&fleet.snapshot(now)?);
    settled.settled_usd_h = dollars(after);
    settled.ratio = settled.settled_usd_h / settled.bound_usd_h;
    settled.nodes = fleet.machines.len();
    settled.launched = fleet.launched;
    #[expect(clippy::cast_precision_loss, reason = "a few hundred pods")]
    let moved = settled.pods_moved as f64;
    settled.pods_per_usd = moved / (settled.before_usd_h - settled.settled_usd_h).max(f64::EPSILON);
    Ok(settled)
}

fn method(method: Method) -> String {
    format!("{method:?}")
}

#[expect(clippy::cast_precision_loss, reason = "dollars for people")]
fn dollars(price: Price) -> f64 {
    price.picos() as f64 / 1e12
}
