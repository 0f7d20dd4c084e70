//! What must hold, whatever happens: checked with every change of the store and against the cloud's truth.
//!
//! Nothing here asks the controllers, and nothing is shared with them: the checks compute for themselves what a limit
//! allows, what a budget allows and who is protected.

mod budget;
mod mirror;
mod safety;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use cloud_sim::Machine;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use simulator::{Change, Event};

use crate::{
    World,
    expectation::unexplained,
    ground::{holds, text},
    process::led_since,
};
use mirror::Mirror;

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Which rule: `I1` to `I10`, `L1` to `L4`.
    pub rule: &'static str,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.rule, self.what)
    }
}

/// How long a machine without a claim may run: until the sweep, which looks every two minutes and twice, has seen it.
const LEAK: SignedDuration = SignedDuration::from_mins(10);
/// How long a claim may take to go without saying what it waits for.
const GOING: SignedDuration = SignedDuration::from_mins(15);
/// How long before the end nothing may come or go any more.
const STILL: SignedDuration = SignedDuration::from_mins(10);

/// The checks of one run.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    mirror: Mirror,
    found: BTreeSet<Violation>,
    /// When a node or claim last came or went.
    moved: Option<(Timestamp, String)>,
    /// Pods we asked to delete, by key.
    deletions: BTreeSet<String>,
    /// When processes last renewed their lease, by the server's clock.
    renewed: BTreeMap<String, Timestamp>,
}

/// How long a lease holds.
const LEASE: SignedDuration = SignedDuration::from_secs(15);
/// How long a process that leads may take to heed what the cloud said about a machine.
const HEEDED: SignedDuration = SignedDuration::from_secs(60);

impl Checker {
    /// The autoscaler asks for the deletion of a pod.
    pub(crate) fn deletes_pod(&mut self, key: String) {
        self.deletions.insert(key);
    }

    /// A process asks for the lease, or renews it.
    pub(crate) fn renews(&mut self, process: &str, now: Timestamp) {
        self.renewed.insert(process.to_owned(), now);
    }

    /// I10: a process changes something while the lease is not its own.
    pub(crate) fn acts(&mut self, process: &str, holder: Option<&str>, what: &str, now: Timestamp) {
        let renewed = self.renewed.get(process);
        let is_valid = renewed.is_some_and(|at| now.duration_since(*at) <= LEASE);
        let why = match holder {
            Some(holder) if holder == process && is_valid => return,
            Some(holder) if holder == process => "whose lease has expired".to_owned(),
            Some(holder) => format!("while {holder} leads"),
            None => "while nobody leads".to_owned(),
        };
        self.found.insert(Violation {
            rule: "I10",
            what: format!("{process} asks for {what} {why}"),
        });
    }

    /// What users change on purpose makes moves legitimate again.
    pub(crate) fn disturbed(&mut self) {
        self.mirror.forget_moves();
    }

    pub(crate) fn see(&mut self, change: &Change, now: Timestamp, world: &World) {
        let plural = change.resource.plural.as_str();
        let mut found = Vec::new();
        if plural == "pods" {
            found.extend(safety::protected(&self.mirror, change, &self.deletions, now));
        }
        if plural == "nodeclaims" && change.event == Event::Deleted {
            found.extend(orphaned(&change.object, world));
        }
        if plural == "nodeclaims" {
            let early = safety::replaced_first(&self.mirror, change, now);
            // A machine that the cloud takes or has lost goes whether it is replaced or not.
            found.extend(early.filter(|_| has_machine(&change.object, world)));
        }
        if matches!(plural, "nodes" | "nodeclaims") && change.event != Event::Modified {
            self.moved = Some((now, format!("{plural} {}", text(&change.object, "/metadata/name"))));
        }
        self.mirror.see(change, now);
        if plural == "nodeclaims" {
            found.extend(safety::within_limits(&self.mirror));
            found.extend(safety::within_budgets(&self.mirror, change, now));
            found.extend(safety::no_churn(&mut self.mirror, change, now));
            found.extend(safety::no_double_promise(&mut self.mirror, change, now));
        }
        if plural == "nodes" && change.event == Event::Added {
            found.extend(safety::no_runaway(&self.mirror));
        }
        self.found.extend(found);
    }

    /// Looks at the cloud's truth.
    pub(crate) fn look(&mut self, world: &World) {
        let now = world.clock.now();
        self.found.extend(leaks(
            &world.server.objects("NodeClaim"),
            &world.region.machines(),
            now,
            LEAK,
        ));
        self.found.extend(unheeded(world, now));
        for double in world.region.doubles() {
            self.found.insert(Violation {
                rule: "I5",
                what: double,
            });
        }
    }

    /// Looks at how it ended, after nothing went wrong for a while.
    pub(crate) fn end(&mut self, world: &World, is_still: bool) {
        let now = world.clock.now();
        let claims = world.server.objects("NodeClaim");
        self.look(world);
        self.found.extend(leaks(
            &claims,
            &world.region.machines(),
            now,
            SignedDuration::from_secs(90),
        ));
        self.found.extend(claims.iter().filter_map(|claim| stuck(claim, now)));
        self.found
            .extend(ghosts(&world.server.objects("Node"), &world.region.machines()));
        self.found
            .extend(unexplained(world).map(|what| Violation { rule: "L1", what }));
        if let Some((at, what)) = self.moved.take().filter(|_| is_still)
            && now.duration_since(at) < STILL
        {
            let what = format!("{what} came or went at {at}, when nothing had changed for long");
            self.found.insert(Violation { rule: "L2", what });
        }
    }

    pub(crate) fn found(&self) -> Vec<Violation> {
        self.found.iter().cloned().collect()
    }
}

/// I1: machines that no claim knows.
fn leaks(claims: &[Arc<Value>], machines: &[Machine], now: Timestamp, grace: SignedDuration) -> Vec<Violation> {
    let known: BTreeSet<&str> = claims.iter().map(|claim| text(claim, "/metadata/uid")).collect();
    let is_leaked = |machine: &&Machine| {
        let is_old = now.duration_since(machine.launched_at) > grace;
        machine.is_staying() && is_old && !known.contains(machine.claim_uid().to_string().as_str())
    };
    let leaked = machines.iter().filter(is_leaked);
    leaked
        .map(|machine| Violation {
            rule: "I1",
            what: format!(
                "machine {} runs for NodeClaim {}, which is gone",
                machine.id, machine.claim
            ),
        })
        .collect()
}

/// L4: the cloud has said that it will take a machine, and its claim stays.
fn unheeded(world: &World, now: Timestamp) -> Vec<Violation> {
    let notices = world.region.notices();
    if notices.is_empty() {
        return Vec::new();
    }
    let claims = world.server.list("NodeClaim");
    let is_staying = |uid: &str| {
        let claim = claims.iter().find(|claim| text(claim, "/metadata/uid") == uid);
        // What was not recorded as launched cannot be known by its machine.
        claim.is_some_and(|claim| claim["metadata"]["deletionTimestamp"].is_null() && holds(claim, "Registered"))
    };
    // Of four leaders that die within a minute none has had that minute.
    let led_since = led_since(&world.server, &world.settings).unwrap_or(Timestamp::MIN);
    let late = notices.into_iter().filter(|(machine, since)| {
        now.duration_since(led_since.max(*since)) >= HEEDED && is_staying(&machine.claim_uid().to_string())
    });
    late.map(|(machine, since)| Violation {
        rule: "L4",
        what: format!(
            "NodeClaim {} stays, although its machine will be taken, as was said at {since}",
            machine.claim
        ),
    })
    .collect()
}

/// L3: nodes that count as ready and have no machine.
fn ghosts(nodes: &[Arc<Value>], machines: &[Machine]) -> Vec<Violation> {
    let there: BTreeSet<&str> = machines.iter().map(|machine| machine.id.as_str()).collect();
    let is_ghost = |node: &&Arc<Value>| holds(node, "Ready") && !there.contains(text(node, "/spec/providerID"));
    let ghosts = nodes.iter().filter(is_ghost);
    ghosts
        .map(|node| Violation {
            rule: "L3",
            what: format!("node {} is ready and has no machine", text(node, "/metadata/name")),
        })
        .collect()
}

/// I2: a claim that went while its machine was there to stay.
fn orphaned(claim: &Value, world: &World) -> Option<Violation> {
    let uid = text(claim, "/metadata/uid");
    let machines = world.region.machines();
    let left = machines
        .iter()
        .find(|machine| machine.is_staying() && machine.claim_uid().to_string() == uid)?;
    Some(Violation {
        rule: "I2",
        what: format!(
            "NodeClaim {} went while machine {} ran",
            text(claim, "/metadata/name"),
            left.id
        ),
    })
}

/// Whether a claim's machine is there to stay.
fn has_machine(claim: &Value, world: &World) -> bool {
    let id = text(claim, "/status/providerID");
    let machines = world.region.machines();
    machines
        .iter()
        .any(|machine| machine.is_staying() && machine.id.as_str() == id)
}

/// L3: a claim that is going for long and does not say what it waits for.
fn stuck(claim: &Value, now: Timestamp) -> Option<Violation> {
    let since: Timestamp = text(claim, "/metadata/deletionTimestamp").parse().ok()?;
    let says = ["Drained", "VolumesDetached", "InstanceTerminating"];
    let conditions = claim["status"]["conditions"].as_array();
    let is_explained = conditions.is_some_and(|conditions| {
        conditions.iter().any(|one| {
            let is_one = says.iter().any(|kind| one["type"] == *kind);
            is_one && one["status"] != "True" && one["reason"].as_str().is_some_and(|reason| !reason.is_empty())
        })
    });
    let is_stuck = now.duration_since(since) > GOING && !is_explained && !holds(claim, "Drained");
    is_stuck.then(|| Violation {
        rule: "L3",
        what: format!(
            "NodeClaim {} is going since {since} and does not say what it waits for",
            text(claim, "/metadata/name")
        ),
    })
}
