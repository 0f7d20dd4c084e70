//! Where do our decisions differ from upstream's? Held against each other method by method, up to ties that upstream's
//! unstable sorts leave open.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use disruption::{Command, Consolidation, Facts, Method, Options, Pass, ask, consider};
use model::object::NodeName;

use crate::{
    input::Input,
    reference::{self, CommandOf},
};

/// How one method's answers compare.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The same.
    Same,
    /// Upstream may take either: so many nodes save alike.
    Tie(&'static str),
    /// Not the same.
    Different(String),
}

/// One method on one input.
#[derive(Debug, Clone)]
pub struct Row {
    /// Which cluster.
    pub input: String,
    /// Which method.
    pub method: Method,
    /// How many candidates it has.
    pub candidates: usize,
    /// Whether upstream acts.
    pub acts: bool,
    /// How they compare.
    pub verdict: Verdict,
}

impl Row {
    /// Whether they do not compare.
    pub fn is_different(&self) -> bool {
        matches!(self.verdict, Verdict::Different(_))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}: ", self.input, self.method)?;
        match &self.verdict {
            Verdict::Same => f.write_str("same"),
            Verdict::Tie(why) => write!(f, "tie: {why}"),
            Verdict::Different(how) => write!(f, "DIFFERENT: {how}"),
        }
    }
}

/// Upstream's rules only, and its mistake about devices.
pub fn options() -> Options {
    Options {
        consolidation: Consolidation::Faithful,
        is_matching_devices_by_name: true,
        ..Options::default()
    }
}

/// How often upstream is asked again when its first answer is not ours: chance breaks ties in the plans it simulates.
const MORE_RUNS: usize = 8;

/// Asks both about one input.
pub fn compare(input: &Input) -> anyhow::Result<Vec<Row>> {
    let facts = buffered(input);
    let mut rows = compare_once(input, &facts)?;
    for _ in 0..MORE_RUNS {
        if !rows.iter().any(Row::is_different) {
            break;
        }
        for (row, again) in rows.iter_mut().zip(compare_once(input, &facts)?) {
            if row.is_different() && !again.is_different() {
                row.verdict = Verdict::Tie("another run of upstream decides as we do");
            }
        }
    }
    Ok(rows)
}

/// Holds our answers against one run of upstream.
fn compare_once(input: &Input, facts: &Facts) -> anyhow::Result<Vec<Row>> {
    let upstream = reference::consolidate(&input.file)?;
    let rows = upstream.methods.iter().filter_map(|theirs| {
        let method = match theirs.name.as_str() {
            "empty" => Method::Emptiness,
            "multi" => Method::MultiNodeConsolidation,
            "single" => Method::SingleNodeConsolidation,
            _ => return None,
        };
        let ours = ask(method, &input.snapshot, facts, &options(), input.snapshot.taken_at());
        Some(Row {
            input: input.snapshot.title().name.clone(),
            method,
            candidates: theirs.candidates.len(),
            acts: !theirs.commands.is_empty(),
            verdict: judge(input, facts, &ours, theirs),
        })
    });
    Ok(rows.collect())
}

/// The oracle deals the pods of capacity buffers before it asks; a plan of ours does so here.
fn buffered(input: &Input) -> Facts {
    let mut facts = Facts::default();
    let settings = input.snapshot.settings();
    if !settings.feature_gates.capacity_buffer {
        return facts;
    }
    let options = packing::Options {
        packing: packing::Packing::Faithful,
        is_matching_devices_by_name: true,
        ..packing::Options::default()
    };
    let plan = packing::plan(&input.snapshot, &options);
    for node in &plan.existing {
        let fake = api::annotations::CAPACITY_BUFFER_FAKE_POD;
        let count = node
            .pods
            .iter()
            .filter(|pod| pod.metadata.annotations.get(fake).is_some())
            .count();
        let id = input
            .snapshot
            .node(&node.name)
            .and_then(|node| node.spec.provider_id.clone());
        if let Some(id) = id.filter(|_| count > 0) {
            facts.buffer_pods.insert(id, count);
        }
    }
    facts
}

fn judge(input: &Input, facts: &Facts, ours: &Pass, theirs: &reference::Method) -> Verdict {
    if ours.eligible != theirs.candidates.len() {
        return Verdict::Different(format!(
            "{} candidates, upstream has {}",
            ours.eligible,
            theirs.candidates.len()
        ));
    }
    if let Some(difference) = budgets(ours, theirs) {
        return Verdict::Different(difference);
    }
    match (ours.commands.as_slice(), theirs.commands.as_slice()) {
        ([], []) => words(ours, theirs),
        ([ours_one], [theirs_one]) if is_same(ours_one, theirs_one) => words(ours, theirs),
        (_, []) => Verdict::Different(format!("we act, upstream does not: {}", ours.commands[0].text())),
        ([], [theirs_one]) => tie_of_order(input, facts, ours, theirs, theirs_one),
        ([ours_one], [theirs_one]) if ours.method == Method::Emptiness => tie_of_empties(theirs, ours_one, theirs_one),
        ([ours_one], [theirs_one]) => tie(input, facts, theirs, ours_one, theirs_one),
        _ => Verdict::Different("several commands".to_owned()),
    }
}

fn budgets(ours: &Pass, theirs: &reference::Method) -> Option<String> {
    let ours = ours.budgets.as_ref()?;
    let found: BTreeMap<String, u64> = ours
        .pools
        .iter()
        .map(|(pool, budget)| (pool.to_string(), u64::from(budget.remaining())))
        .collect();
    (found != theirs.budgets).then(|| format!("budgets {found:?}, upstream {:?}", theirs.budgets))
}

fn is_same(ours: &Command, theirs: &CommandOf) -> bool {
    nodes(ours) == theirs.candidates && is_alike(ours, theirs)
}

fn nodes(command: &Command) -> Vec<String> {
    let mut nodes: Vec<String> = command.nodes().map(ToString::to_string).collect();
    nodes.sort();
    nodes
}

/// The same kind of decision, the same types, the same saving.
fn is_alike(ours: &Command, theirs: &CommandOf) -> bool {
    let types = |names: &mut dyn Iterator<Item = String>| names.collect::<BTreeSet<String>>();
    let our_types: Vec<BTreeSet<String>> = ours
        .replacements
        .iter()
        .filter_map(|replacement| replacement.planned())
        .map(|claim| types(&mut claim.options.iter().map(ToString::to_string)))
        .collect();
    let their_types: Vec<BTreeSet<String>> = theirs
        .replacements
        .iter()
        .map(|claim| types(&mut claim.instance_types.iter().cloned()))
        .collect();
    #[expect(clippy::cast_precision_loss, reason = "compared to the cent")]
    let saving = ours.saving.0 as f64 / 1e12;
    ours.decision().as_str() == theirs.decision && our_types == their_types && (saving - theirs.savings).abs() < 1e-6
}

/// Both act, on different nodes: fine if upstream's nodes would have done for us, and equal savings left the order open.
fn tie(input: &Input, facts: &Facts, theirs: &reference::Method, ours: &Command, upstream: &CommandOf) -> Verdict {
    let named: Vec<NodeName> = upstream
        .candidates
        .iter()
        .map(|name| NodeName::from(name.as_str()))
        .collect();
    let now = input.snapshot.taken_at();
    match consider(&named, &input.snapshot, facts, &options(), now) {
        Ok(command) if !is_alike(&command, upstream) => Verdict::Different(format!(
            "same nodes, other outcome: {} against {}",
            command.text(),
            described(upstream)
        )),
        Err(rule) => Verdict::Different(format!("we refuse {}: {rule:?}", described(upstream))),
        Ok(_) if !has_ties(theirs) => Verdict::Different(format!("{} against {}", ours.text(), described(upstream))),
        Ok(_) => Verdict::Tie("nodes that save alike, or pools in random order"),
    }
}

/// Budgets leave some empty nodes: which of those that save alike, upstream's unstable sort decides.
fn tie_of_empties(theirs: &reference::Method, ours: &Command, upstream: &CommandOf) -> Verdict {
    let worth = |nodes: &[String]| -> BTreeMap<(String, String), usize> {
        let mut counts = BTreeMap::new();
        for candidate in theirs
            .candidates
            .iter()
            .filter(|candidate| nodes.contains(&candidate.node))
        {
            let ratio = format!("{:.9}", candidate.price / candidate.disruption_cost);
            *counts.entry((candidate.node_pool.clone(), ratio)).or_default() += 1;
        }
        counts
    };
    if worth(&nodes(ours)) == worth(&upstream.candidates) && is_alike(ours, upstream) {
        Verdict::Tie("empty nodes that save alike")
    } else {
        Verdict::Different(format!("{} against {}", ours.text(), described(upstream)))
    }
}

fn tie_of_order(
    input: &Input,
    facts: &Facts,
    ours: &Pass,
    theirs: &reference::Method,
    upstream: &CommandOf,
) -> Verdict {
    let named: Vec<NodeName> = upstream
        .candidates
        .iter()
        .map(|name| NodeName::from(name.as_str()))
        .collect();
    let found = consider(&named, &input.snapshot, facts, &options(), input.snapshot.taken_at());
    let is_multi = ours.method == Method::MultiNodeConsolidation;
    match found {
        Ok(command) if is_alike(&command, upstream) && is_multi && has_ties(theirs) => {
            Verdict::Tie("a prefix of another order of nodes that save alike")
        }
        found => Verdict::Different(format!("upstream acts, we do not: {}; {found:?}", described(upstream))),
    }
}

fn described(command: &CommandOf) -> String {
    format!(
        "{} {:?} saving {}",
        command.decision, command.candidates, command.savings
    )
}

/// Whether the order of the candidates is open: two save alike, or there are several pools.
fn has_ties(method: &reference::Method) -> bool {
    let mut ratios: Vec<f64> = method
        .candidates
        .iter()
        .map(|candidate| candidate.price / candidate.disruption_cost)
        .collect();
    ratios.sort_by(f64::total_cmp);
    let pools: BTreeSet<&str> = method
        .candidates
        .iter()
        .map(|candidate| candidate.node_pool.as_str())
        .collect();
    ratios.windows(2).any(|pair| (pair[0] - pair[1]).abs() <= 1e-12) || (method.name == "single" && pools.len() > 1)
}

/// Every reason upstream publishes for a node or a pool, we have too; upstream stops publishing once it found something.
/// Without candidates its controller does not look at budgets, only the oracle does.
fn words(ours: &Pass, theirs: &reference::Method) -> Verdict {
    let mut said: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    if let Some(budgets) = &ours.budgets {
        for (pool, budget) in &budgets.pools {
            let message = budget.blocked_message(budgets.reason);
            let texts = message.map(|message| format!("DisruptionBlocked: {message}"));
            said.entry(pool.to_string()).or_default().extend(texts);
        }
    }
    let is_looked_at = |text: &&String| ours.budgets.is_some() || !text.starts_with(BLOCKED);
    for refusal in &ours.refusals {
        if let Some(event) = refusal.event() {
            let text = format!("{}: {}", event.reason, event.message);
            said.entry(refusal.node.to_string()).or_default().insert(text.clone());
            if let Some(claim) = &refusal.claim {
                said.entry(claim.to_string()).or_default().insert(text);
            }
        }
    }
    for (object, texts) in &theirs.events {
        for text in texts.iter().filter(is_looked_at).filter(|text| is_compared(text)) {
            let known = said.get(object);
            if !known.is_some_and(|known| known.iter().any(|ours| is_same_text(ours, text))) {
                return Verdict::Different(format!("{object}: upstream says {text:?}, we say {known:?}"));
            }
        }
    }
    Verdict::Same
}

/// How upstream begins to say that budgets leave a pool nothing.
const BLOCKED: &str = "DisruptionBlocked: No allowed disruptions";

fn is_compared(text: &str) -> bool {
    text.starts_with("Unconsolidatable")
        || text.starts_with("DisruptionBlocked: N")
        || text.starts_with("DisruptionBlocked: P")
}

/// Which pods are named first is random upstream, and so are the words about each where several NodePools refuse.
fn is_same_text(ours: &str, theirs: &str) -> bool {
    const PODS: &str = "Unconsolidatable: Not all pods would schedule, ";
    ours == theirs || (ours.starts_with(PODS) && theirs.starts_with(PODS))
}
