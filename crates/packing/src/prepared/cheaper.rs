//! Where would pods of removed nodes go if money decided? And what is a node worth to those that run on it?
//!
//! Room that is there costs nothing and is filled first; for the rest the cheaper passes propose nodes, which are filled
//! through the solver's own tests like every proposal.

use std::collections::{BTreeMap, VecDeque};

use model::{object::NodeName, price::Price};

use super::Prepared;
use crate::{
    cost::{Settings, Variant, adapt, portfolio, worths},
    portfolio::filled,
    run::Run,
};

/// How the pods of removed nodes are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As upstream would.
    Faithful,
    /// On room that is there, and then on the nodes that the cheaper passes propose.
    Cheap {
        /// Which nodes they may propose.
        variant: Variant,
        /// How many passes, at most four.
        passes: usize,
    },
}

/// Spot offers that fewer types could stand in for are not proposed.
const STAND_INS: usize = 15;
/// With more pods than this what a pod is worth is not learnt from passes, which would take longer than they are worth.
const MOST_LEARNT: usize = 5_000;

/// What nodes are worth.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Worth {
    /// What the pods of each node would cost on nodes bought for all pods at once. Nodes that go already have none.
    pub nodes: BTreeMap<NodeName, Price>,
    /// All of them together: what the fleet need not cost more than by much.
    pub all: Price,
}

impl Prepared {
    /// What each node is worth to its pods, going by the whole demand: the pods of a few nodes alone would not tell what
    /// the rest of the fleet could do for them.
    pub fn worth(&self) -> Worth {
        let mut run = Run::new(&self.problem);
        let all = self.problem.order.clone();
        let picture = adapt::for_passes(&mut run, &all);
        let passes = if all.len() > MOST_LEARNT { 0 } else { LEARNING };
        let values = worths(&picture.problem, &settings(Variant::Mixed, passes), passes);
        let of_pod = picture.of_pods(&values);
        let sum = |pods: &[u32]| {
            pods.iter()
                .filter_map(|pod| of_pod.get(pod))
                .copied()
                .fold(0, u64::saturating_add)
        };
        let nodes = self.nodes.iter();
        Worth {
            nodes: nodes
                .map(|(name, entry)| (name.clone(), Price::from_picos(sum(&entry.residents))))
                .collect(),
            all: Price::from_picos(sum(&all)),
        }
    }
}

/// Passes that learn what pods are worth.
const LEARNING: usize = 4;

fn settings(variant: Variant, passes: usize) -> Settings {
    Settings {
        variants: vec![variant],
        passes,
        stand_ins: STAND_INS,
        ..Settings::default()
    }
}

/// Places what can be placed of a queue, and leaves the rest in it.
pub(super) fn place(run: &mut Run<'_>, queue: &mut VecDeque<u32>, way: Way) {
    let Way::Cheap { variant, passes } = way else {
        run.empty(queue);
        return;
    };
    let left = run.place_on_nodes(queue.drain(..));
    queue.extend(&left);
    if left.is_empty() {
        return;
    }
    let picture = adapt::for_passes(run, &left);
    let found = portfolio(&picture.problem, &settings(variant, passes));
    match filled(run, &left, &picture, &found) {
        Some(rest) => *queue = rest.into(),
        None => run.empty(queue),
    }
}
