//! What a decision knew beside the snapshot, and the same decision once more.

use std::{collections::BTreeMap, fmt::Write};

use disruption::{Command, Facts, Method, Replacement, Round};
use jiff::Timestamp;
use ledger::{
    ENGINE, Id,
    flight::{Frame, hex},
};
use model::{
    digest::of_texts,
    object::{NodeClaimName, ObjectKey},
    plan::{Plan, PlannedClaim},
    snapshot::{Inputs, Snapshot},
};
use runtime::settings::Steering;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    disruption::rounds,
    provisioning::pass::{self, Given, Manner},
    records::{id_of_move, id_of_refusal},
};

/// A decision on its way to the tape.
pub(crate) enum Taped {
    Provisioning {
        given: Box<Given>,
        plan: Box<Plan>,
        ids: Vec<Id>,
    },
    Disruption {
        given: Box<RoundGiven>,
        round: Box<Round>,
        ids: Vec<Id>,
    },
}

/// What a round knew beside the snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoundGiven {
    pub(crate) facts: Facts,
    /// The methods that were asked; none for all.
    pub(crate) asked: Option<Vec<Method>>,
    /// Pools of somebody else's.
    pub(crate) left_out: Vec<String>,
    pub(crate) is_faithful: bool,
    pub(crate) is_repair_legacy: bool,
}

/// What a plan knew beside the snapshot, as a tape has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PlanGiven {
    marked: Vec<NodeClaimName>,
    left_out: Vec<String>,
    packing: String,
    steering: String,
    foresight: bool,
    /// Pods that earlier plans have on machines to come, by claim.
    #[serde(default)]
    promised: BTreeMap<NodeClaimName, Vec<(String, String)>>,
}

impl Taped {
    /// Its line.
    pub(super) fn frame(self, at: Timestamp, inputs: &Inputs) -> Frame {
        let (kind, ids, answer, given) = match self {
            Self::Provisioning { given, plan, ids } => {
                let given = serde_json::to_value(PlanGiven::from(&*given));
                ("provisioning", ids, of_plan(&plan), given)
            }
            Self::Disruption { given, round, ids } => {
                ("disruption", ids, of_round(&round), serde_json::to_value(&*given))
            }
        };
        let parts = inputs.parts.iter();
        Frame {
            kind: kind.to_owned(),
            at,
            ids,
            answer: hex(of_texts([answer.as_str()])),
            inputs: hex(inputs.digest),
            parts: parts.map(|(name, number)| ((*name).to_owned(), hex(*number))).collect(),
            engine: ENGINE.to_owned(),
            given: given.unwrap_or(Value::Null),
        }
    }
}

impl From<&Given> for PlanGiven {
    fn from(given: &Given) -> Self {
        let packing = match given.manner.options.packing {
            packing::Packing::Cheapest => "cheapest",
            packing::Packing::Faithful => "faithful",
        };
        Self {
            marked: given.marked.clone(),
            left_out: given.left_out.iter().map(|key| key.name.to_string()).collect(),
            packing: packing.to_owned(),
            steering: given.manner.steering.as_str().to_owned(),
            foresight: given.manner.foresight,
            promised: by_claim(&given.manner.options.promised),
        }
    }
}

fn by_claim(promised: &BTreeMap<ObjectKey, NodeClaimName>) -> BTreeMap<NodeClaimName, Vec<(String, String)>> {
    let mut by_claim: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (pod, claim) in promised {
        let pod = (pod.namespace.to_string(), pod.name.to_string());
        by_claim.entry(claim.clone()).or_default().push(pod);
    }
    by_claim
}

impl From<PlanGiven> for Given {
    fn from(given: PlanGiven) -> Self {
        let settings = runtime::Settings {
            packing: match given.packing.as_str() {
                "faithful" => runtime::settings::Packing::Faithful,
                _ => runtime::settings::Packing::Cheapest,
            },
            steering: match given.steering.as_str() {
                "off" => Steering::Off,
                "release" => Steering::Release,
                "pin" => Steering::Pin,
                _ => Steering::Nominate,
            },
            foresight: given.foresight,
            ..runtime::Settings::default()
        };
        let mut manner: Manner = pass::manner(&settings);
        let promises = given.promised.into_iter().flat_map(|(claim, pods)| {
            let promise = move |(namespace, name): (String, String)| (ObjectKey::new(&namespace, &name), claim.clone());
            pods.into_iter().map(promise)
        });
        manner.options.promised = promises.collect();
        Self {
            marked: given.marked,
            left_out: given
                .left_out
                .iter()
                .map(|name| ObjectKey::cluster_scoped(name))
                .collect(),
            manner,
        }
    }
}

/// What came of deciding once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// A number for all of it, as a tape has it.
    pub digest: String,
    /// What each decision comes to, in a line; those of the same id say the same.
    pub decisions: Vec<(Id, String)>,
}

/// A frame that cannot be decided on again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unlike(String);

/// Decides once more on what a decision was made on.
pub fn again(frame: &Frame, whole: &Snapshot) -> Result<Answer, Unlike> {
    let unlike = |error: serde_json::Error| Unlike(format!("what it was given cannot be read: {error}"));
    match frame.kind.as_str() {
        "provisioning" => {
            let given: PlanGiven = serde_json::from_value(frame.given.clone()).map_err(unlike)?;
            let (plan, ids) = pass::again(whole, &given.into());
            Ok(Answer {
                digest: hex(of_texts([of_plan(&plan).as_str()])),
                decisions: planned(&plan, &ids),
            })
        }
        "disruption" => {
            let given: RoundGiven = serde_json::from_value(frame.given.clone()).map_err(unlike)?;
            let round = rounds::again(whole, &given, frame.at);
            Ok(Answer {
                digest: hex(of_texts([of_round(&round).as_str()])),
                decisions: found(&round),
            })
        }
        other => Err(Unlike(format!(
            "{other:?} is no kind of decision that this version knows"
        ))),
    }
}

/// What a plan says, a line for each decision.
fn planned(plan: &Plan, ids: &[Id]) -> Vec<(Id, String)> {
    let claims = plan.claims.iter().map(|claim| {
        let launch = claim.cheapest.as_ref();
        let what = launch.map_or("a node".to_owned(), |launch| {
            let part = |text: &Option<model::object::Text>| text.as_deref().unwrap_or("any").to_owned();
            let (capacity, zone) = (part(&launch.capacity_type), part(&launch.zone));
            format!("{} {capacity} in {zone} at {}/h", launch.instance_type, launch.price)
        });
        format!("launch {what} of {} for {} pod(s)", claim.node_pool, claim.pods.len())
    });
    let refused = plan
        .unplaced
        .iter()
        .map(|refusal| format!("no node for {}: {}", refusal.pod.metadata.key(), refusal.message));
    let texts: Vec<String> = claims.chain(refused).collect();
    // Ids are of claims' names and of workloads; which line is whose does not matter to whoever compares all of them.
    let rest = ids.last().copied().unwrap_or_else(|| Id::of("plan", []));
    let ids = ids.iter().copied().chain(std::iter::repeat(rest));
    ids.zip(texts).collect()
}

fn found(round: &Round) -> Vec<(Id, String)> {
    let commands = round.commands.iter().map(|command| {
        let nodes: Vec<&str> = command.nodes().map(model::object::NodeName::as_str).collect();
        let text = format!(
            "{} {}, {} pod(s) move, saves {}/h",
            command.decision(),
            nodes.join(", "),
            command.pod_count(),
            command.saving
        );
        (id_of_move(command), text)
    });
    let kept = round.refusals.iter().filter_map(|refusal| {
        let text = format!("keep {}: {}", refusal.node, rule(&refusal.rule));
        Some((id_of_refusal(refusal)?, text))
    });
    commands.chain(kept).collect()
}

fn rule(rule: &disruption::Rule) -> String {
    ledger::cut(&format!("{rule:?}"))
}

/// All of a plan as text: equal plans, equal texts.
fn of_plan(plan: &Plan) -> String {
    let mut text = String::new();
    for claim in &plan.claims {
        add_claim(&mut text, claim);
    }
    for node in &plan.existing {
        let _ = writeln!(text, "node {} {}", node.name, pods(&node.pods));
    }
    for refusal in &plan.unplaced {
        let (pod, kind) = (refusal.pod.metadata.key(), refusal.kind);
        let _ = writeln!(text, "unplaced {pod} {kind:?} {}", refusal.message);
    }
    let _ = writeln!(text, "order {:?}", plan.order);
    text
}

fn pods(pods: &[std::sync::Arc<model::object::Pod>]) -> String {
    let names: Vec<String> = pods.iter().map(|pod| pod.metadata.key().to_string()).collect();
    names.join(" ")
}

fn add_claim(text: &mut String, claim: &PlannedClaim) {
    let options: Vec<&str> = claim
        .options
        .iter()
        .map(model::object::InstanceTypeName::as_str)
        .collect();
    let _ = writeln!(
        text,
        "claim {} [{}] {:?} {:?} {:?} {:?} {:?} {:?} {} {:?} {}",
        claim.node_pool,
        options.join(" "),
        claim.constraints,
        claim.min_types,
        claim.cheapest,
        claim.requests,
        claim.labels,
        claim.annotations,
        claim.wave,
        claim.nominated,
        pods(&claim.pods),
    );
}

fn of_round(round: &Round) -> String {
    let mut text = String::new();
    for command in &round.commands {
        add_command(&mut text, command);
    }
    for refusal in &round.refusals {
        let _ = writeln!(
            text,
            "keep {} {:?} {:?} {:?}",
            refusal.node, refusal.method, refusal.rule, refusal.fix
        );
    }
    text
}

fn add_command(text: &mut String, command: &Command) {
    let _ = writeln!(
        text,
        "{:?} {} {:?} {:?} {:?}",
        command.method,
        command.text(),
        command.terminate_first,
        command.saving,
        command.scores
    );
    for candidate in &command.candidates {
        let _ = writeln!(
            text,
            "candidate {} {} {:?} {}",
            candidate.claim,
            candidate.price,
            candidate.disruption_cost,
            pods(&candidate.reschedulable)
        );
    }
    for replacement in &command.replacements {
        match replacement {
            Replacement::Planned(claim) => add_claim(text, claim),
            Replacement::Static(pool) => {
                let _ = writeln!(text, "static {pool}");
            }
        }
    }
    text.push_str(&of_plan(&command.plan));
}
