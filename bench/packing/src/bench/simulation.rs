//! What does it cost to ask "where would the pods of this node go?" about every node of a large cluster?

use anyhow::Result;
use model::object::NodeName;
use packing::{Options, Packing, Prepared};

use super::measure::Timing;
use super::row::aligned;
use crate::input::Input;

/// Simulations of one cluster.
#[derive(Debug, Clone)]
pub struct Simulations {
    nodes: usize,
    pods: usize,
    /// What all simulations share.
    prepare: Timing,
    /// Counts and rooms of one thread.
    simulator: Timing,
    /// The first question about each node.
    first: Timing,
    /// The second, once every kind of pod was tried everywhere.
    again: Timing,
    moved: usize,
    words: u64,
    probes: u64,
    launching: usize,
}

impl Simulations {
    /// Removes every node of a cluster, one at a time, twice.
    pub fn run(input: &Input) -> Result<Self> {
        let options = Options {
            packing: Packing::Faithful,
            ..Options::default()
        };
        let prepare = Timing::of(3, || Prepared::new(&input.snapshot, &options));
        let prepared = Prepared::new(&input.snapshot, &options);
        let simulator = Timing::of(3, || prepared.simulator());
        let names: Vec<NodeName> = prepared.nodes().cloned().collect();
        let (mut first, mut again) = (Timing::default(), Timing::default());
        let (mut moved, mut words, mut probes, mut launching) = (0, 0, 0, 0);
        let mut asked = prepared.simulator();
        for name in &names {
            first.add(|| asked.without(std::slice::from_ref(name)))?;
        }
        for name in &names {
            let simulation = again.add(|| asked.without(std::slice::from_ref(name)))?;
            moved += simulation.moved;
            words += simulation.work.words;
            probes += simulation.work.probes;
            launching += usize::from(!simulation.plan.claims.is_empty());
        }
        Ok(Self {
            nodes: names.len(),
            pods: input.snapshot.objects().pods.len(),
            prepare,
            simulator,
            first,
            again,
            moved,
            words,
            probes,
            launching,
        })
    }

    /// The figures as a table.
    #[allow(clippy::cast_precision_loss, reason = "printed to three digits")]
    pub fn table(&self) -> String {
        let micros = |ms: f64| format!("{:.1}", ms * 1e3);
        let each = |count: f64| format!("{:.1}", count / self.nodes as f64);
        let pair = |name: &str, value: String| vec![name.to_owned(), value];
        aligned(&[
            pair("simulation", "value".to_owned()),
            pair("nodes", self.nodes.to_string()),
            pair("pods", self.pods.to_string()),
            pair("prepare, ms", format!("{:.1}", self.prepare.quantile(0.5))),
            pair("simulator, ms", format!("{:.1}", self.simulator.quantile(0.5))),
            pair("first removal, median µs", micros(self.first.quantile(0.5))),
            pair("removal, median µs", micros(self.again.quantile(0.5))),
            pair("removal, mean µs", micros(self.again.mean())),
            pair("removal, 99 % µs", micros(self.again.quantile(0.99))),
            pair("pods moved", each(self.moved as f64)),
            pair("words", each(self.words as f64)),
            pair("probes", each(self.probes as f64)),
            pair("removals that launch", self.launching.to_string()),
        ])
    }
}
