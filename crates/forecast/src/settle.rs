//! Where does a fleet come to rest when every move that saves money is made at once?

use disruption::{Consolidation, Facts, Method, Options, decide};
use jiff::SignedDuration;
use model::price::Price;

use crate::Fleet;

/// What became of a fleet at rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// Nodes in the end.
    pub nodes: usize,
    /// What they cost an hour.
    pub price: Price,
    /// Rounds in which something was done.
    pub rounds: usize,
    /// Nodes that went.
    pub removed: usize,
    /// Pods that moved, each time they did.
    pub moved: usize,
    /// Whether it came to rest; else the rounds were used up first.
    pub is_at_rest: bool,
}

/// Between rounds: the wait before a command is validated, a launch, a drain.
const ROUND: SignedDuration = SignedDuration::from_secs(60);

/// Makes every move that empties or consolidates nodes, until there is none or `most_rounds` are over. Budgets hold at
/// the time of each round; nodes count as quiet, because they will be.
pub fn settle(fleet: &mut Fleet, consolidation: Consolidation, most_rounds: usize) -> Settled {
    let options = Options {
        consolidation,
        ..Options::default()
    };
    let mut settled = Settled::default();
    while settled.rounds < most_rounds {
        fleet.ripen();
        let now = fleet.snapshot().taken_at();
        let round = decide(fleet.snapshot(), &Facts::default(), &options, now);
        let commands: Vec<_> = round.commands.iter().filter(|it| saves(it.method)).collect();
        if commands.is_empty() {
            settled.is_at_rest = true;
            break;
        }
        for command in commands {
            settled.removed += command.candidates.len();
            settled.moved += command.pod_count();
            fleet.obey(command);
        }
        fleet.provision();
        settled.rounds += 1;
        fleet.set_time(now.saturating_add(ROUND).unwrap_or(now));
    }
    settled.nodes = fleet.nodes();
    settled.price = fleet.price();
    settled
}

fn saves(method: Method) -> bool {
    method.is_consolidation()
}
