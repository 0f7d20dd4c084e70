//! What an answer was made from, and how the planner came to it: the lines that -v and -vv add on standard error.

use std::collections::BTreeMap;

use runtime::Clock;

use crate::{
    plan::threads,
    raw::{Raw, text},
    source::Input,
    terminal::{counted, grouped, hourly},
};

/// From how many -v on the planner's own way is told.
const TRACE: u8 = 2;

/// Lines about the inputs of an answer, and about the race that a plan won.
pub(crate) fn of(input: &Input, verbose: u8) -> String {
    if verbose == 0 {
        return String::new();
    }
    let mut lines = vec![inputs(input)];
    lines.extend(parts(input));
    if verbose >= TRACE && input.catalogue.is_some() {
        lines.extend(race(input));
    }
    lines.into_iter().fold(String::new(), |all, line| all + &line + "\n")
}

/// Lines about objects that are looked at as they are written.
pub(crate) fn of_objects(raw: &Raw, verbose: u8) -> String {
    if verbose == 0 {
        return String::new();
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for document in &raw.documents {
        *kinds.entry(text(&document.value, "kind")).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    format!(
        "inputs   {} of {}: {}\n",
        counted(raw.documents.len(), "object"),
        raw.name,
        kinds.join(", ")
    )
}

fn inputs(input: &Input) -> String {
    let (snapshot, objects) = (&input.snapshot, input.snapshot.objects());
    let types = &snapshot.catalog().instance_types;
    let offers: usize = types.iter().map(|entry| entry.offerings.len()).sum();
    format!(
        "inputs   digest {:016x}: {}, {}, {}, {}, {} of {}; engine {}",
        snapshot.inputs().digest,
        counted(objects.pods.len(), "pod"),
        counted(objects.nodes.len(), "node"),
        counted(objects.node_claims.len(), "NodeClaim"),
        counted(objects.node_pools.len(), "NodePool"),
        counted(offers, "offer"),
        counted(types.len(), "instance type"),
        env!("CARGO_PKG_VERSION")
    )
}

/// The digest of each part that there is something of: where two answers differ, so does the part that is to blame.
fn parts(input: &Input) -> Option<String> {
    let parts = input.snapshot.inputs().parts;
    let told: Vec<String> = parts
        .iter()
        .filter(|(_, digest)| *digest != 0)
        .map(|(name, digest)| format!("{name} {digest:016x}"))
        .collect();
    (!told.is_empty()).then(|| format!("inputs   {}", told.join(", ")))
}

fn race(input: &Input) -> Vec<String> {
    let options = packing::Options {
        threads: threads(),
        ..packing::Options::default()
    };
    let clock = Clock::system();
    let began = clock.now();
    let packing::Planned { report, dropped, .. } = packing::planned(input.planning(), &options);
    let took = clock.now().duration_since(began).as_millis();
    let mut lines = vec![format!(
        "trace    pending pods planned in {took} ms, {} steps; no plan costs less than {}",
        grouped(u128::from(report.steps)),
        hourly(report.lower_bound)
    )];
    for (at, contender) in report.contenders.iter().enumerate() {
        let end = match (at == report.winner, contender.is_valid) {
            (true, _) => "; chosen",
            (false, true) => "",
            (false, false) => "; not valid",
        };
        let realised = contender.realised.as_ref().filter(|it| it.price != contender.price);
        let realised = realised.map_or_else(String::new, |it| {
            format!("; {} once kube-scheduler has placed the pods", hourly(it.price))
        });
        lines.push(format!(
            "trace    {}: {}, {}, {} without a place, {}{realised}{end}",
            contender.name,
            hourly(contender.price),
            counted(contender.claims, "node"),
            contender.unplaced,
            counted(contender.options, "option"),
        ));
    }
    lines.extend(dropped.iter().map(|dropped| {
        let why = if dropped.is_min_values {
            "minValues"
        } else {
            "its requirements"
        };
        format!("trace    NodePool {} has no instance type left: {why}", dropped.pool)
    }));
    lines
}
