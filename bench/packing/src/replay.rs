//! Could each of upstream's decisions have been ours? Its log of one run, put to our solver step by step.

use anyhow::Result;
use model::object::ObjectKey;
use packing::{Disagreement, Place, Step};

use crate::differential::options;
use crate::input::Input;
use crate::reference::{self, Ask, Decision, Reference};

/// What a replay found.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// Decisions in the log.
    pub steps: usize,
    /// The first that could not have been ours.
    pub disagreement: Option<Disagreement>,
}

/// Replays one run of upstream on an input.
pub fn replay(reference: &mut Reference, input: &Input) -> Result<Replayed> {
    let ask = Ask {
        log: true,
        ..Ask::runs(1)
    };
    let plans = reference.solve(&input.file, ask)?;
    let steps: Vec<Step> = plans.iter().flat_map(|plan| &plan.log).map(step).collect();
    Ok(Replayed {
        steps: steps.len(),
        disagreement: packing::replay(&input.snapshot, &options(), &steps).err(),
    })
}

fn step(decision: &Decision) -> Step {
    let (namespace, name) = decision.pod.split_once('/').unwrap_or(("", &decision.pod));
    Step {
        pod: ObjectKey::new(namespace, name),
        attempts: decision.attempts as usize,
        place: match decision.place {
            reference::Place::Node => Place::Node(decision.node.clone().unwrap_or_default()),
            reference::Place::Claim => Place::Claim(decision.claim.unwrap_or_default()),
            reference::Place::New => Place::New(decision.node_pool.clone().unwrap_or_default()),
            reference::Place::None => Place::Nowhere,
        },
        requirements: decision.requirements.clone(),
        types: decision.types,
    }
}
