//! `dovetail prices`: what can be bought, where, and for how much an hour; and how today's prices are had.

mod pull;
mod table;

use std::collections::BTreeSet;

use insight::offer::{Offer, offers};
use model::object::{Labels, NodePool};
use serde::Serialize;

use crate::{
    answer::Answer,
    failure::Failure,
    plugin,
    reply::{Format, Reply, formats},
    source::{self, Input, Needs, SourceArgs},
    terminal::counted,
};

/// Print what a cloud offers: instance types by zone and capacity type with their price an hour, the cheapest first.
///
/// A catalogue that is named needs no cluster. Otherwise it is the one that the cluster or the dump buys from, and --pool
/// leaves what a NodePool may buy, its overlays applied. `pull` prints the command that has prices of today, for --prices.
///
///     dovetail prices --catalogue aws -l karpenter.k8s.aws/instance-family=m7g --capacity spot
///     dovetail prices --from dump/ --pool general --cpu 8
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// `show` offers, or print how to `pull` prices of today.
    #[arg(value_enum, default_value_t = What::Show)]
    what: What,
    /// Only types whose names begin so, such as m7g or m7g.2xlarge; several with commas.
    #[arg(long = "type", value_name = "NAME", value_delimiter = ',')]
    types: Vec<String>,
    /// Only in these zones; several with commas.
    #[arg(long, value_name = "ZONE", value_delimiter = ',')]
    zone: Vec<String>,
    /// Only as this capacity type: spot, on-demand or reserved.
    #[arg(long, value_name = "TYPE", value_parser = ["spot", "on-demand", "reserved"])]
    capacity: Option<String>,
    /// Only with at least so many cores.
    #[arg(long, value_name = "CORES")]
    cpu: Option<u64>,
    /// Only with at least so much memory, in GiB.
    #[arg(long, value_name = "GIB")]
    memory: Option<u64>,
    /// Only what this NodePool may buy.
    #[arg(long, value_name = "NODEPOOL")]
    pool: Option<String>,
    /// Only offers whose nodes would have these labels, as kubectl has them: `kubernetes.io/arch=arm64`.
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = tui::Selector::read)]
    selector: Option<tui::Selector>,
    /// How many rows a table has at most; 0 for all.
    #[arg(long, value_name = "ROWS", default_value_t = 40)]
    limit: usize,
    /// How to print it.
    #[arg(short, long, default_value = "table", value_parser = formats(&["table", "json", "yaml", "csv", "name"]))]
    output: Format,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    reply: Reply,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    Show,
    Pull,
}

/// What can be bought.
#[derive(Debug, Serialize)]
struct Prices {
    /// What was offered before anything was left out.
    all: usize,
    offers: Vec<Offer>,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let input = source::read(&args.source, Needs::Offers)?;
    if args.what == What::Pull {
        return Ok(pull::commands(&input)?.into());
    }
    args.check_types(&input)?;
    args.check_zones(&input)?;
    let pool = args.pool.as_deref().map(|name| pool(&input, name)).transpose()?;
    let is_labelled = |labels: &Labels| args.selector.as_ref().is_none_or(|selector| selector.selects(labels));
    let mut found = offers(&input.snapshot, pool, is_labelled);
    found.retain(|offer| args.wants(offer));
    let catalogue = &input.snapshot.catalog().instance_types;
    let prices = Prices {
        all: catalogue.iter().map(|entry| entry.offerings.len()).sum(),
        offers: found,
    };
    let is_empty = prices.offers.is_empty();
    args.reply.answer(
        &input,
        ("Prices", &prices),
        args.output,
        is_empty,
        |screen| match args.output {
            Format::Csv => table::csv(&prices),
            Format::Name => table::names(&prices),
            _ => table::render(&prices, args.limit, screen),
        },
    )
}

impl Args {
    /// A beginning that no type's name has is a slip, or of another cloud.
    fn check_types(&self, input: &Input) -> Result<(), Failure> {
        let types = input.snapshot.catalog().instance_types.iter();
        let names: BTreeSet<&str> = types.map(|entry| entry.name.as_str()).collect();
        let is_unknown = |beginning: &&String| !names.iter().any(|name| is_of(name, beginning));
        match self.types.iter().find(is_unknown) {
            None => Ok(()),
            Some(unknown) => {
                let why = format!(
                    "it is the beginning of none of {}",
                    counted(names.len(), "instance type")
                );
                let families: BTreeSet<&str> = names
                    .iter()
                    .filter_map(|name| name.split_once('.'))
                    .map(|it| it.0)
                    .collect();
                let known = families.into_iter().chain(names);
                let next = match lint::nearest(unknown, known) {
                    Some(near) => format!("{near} is the nearest"),
                    None => "name the beginning of one, up to where a part of it ends: m7g, Standard_D4s".to_owned(),
                };
                let error = format!("--type {unknown}: no instance type here has such a name");
                Err(Failure::usage(error, why, next))
            }
        }
    }

    /// A zone that nobody sells in is a slip, or of another region.
    fn check_zones(&self, input: &Input) -> Result<(), Failure> {
        let types = input.snapshot.catalog().instance_types.iter();
        let specs = types
            .flat_map(|entry| &entry.offerings)
            .flat_map(|offering| &offering.requirements);
        let of_zones = specs.filter(|spec| spec.key == api::labels::ZONE);
        let zones: BTreeSet<&str> = of_zones.flat_map(|spec| &spec.values).map(String::as_str).collect();
        match self.zone.iter().find(|zone| !zones.contains(zone.as_str())) {
            None => Ok(()),
            Some(unknown) => {
                let zones: Vec<&str> = zones.into_iter().collect();
                Err(Failure::usage(
                    format!("--zone {unknown}: nothing is offered there"),
                    format!("zones are {}", zones.join(", ")),
                    "name one of them, or another region with --region",
                ))
            }
        }
    }

    fn wants(&self, offer: &Offer) -> bool {
        let begins = |name: &String| is_of(&offer.instance_type, name);
        (self.types.is_empty() || self.types.iter().any(begins))
            && (self.zone.is_empty() || self.zone.contains(&offer.zone))
            && self.capacity.as_ref().is_none_or(|kind| *kind == offer.capacity_type)
            && self.cpu.is_none_or(|cores| offer.vcpu >= cores)
            && self.memory.is_none_or(|gib| offer.memory_mib >= gib << 10)
    }
}

/// Whether a type is meant by the beginning of its name, up to where a part of names ends: `m7` is not `m7g`.
fn is_of(name: &str, beginning: &str) -> bool {
    let beginning = beginning.trim_end_matches('*');
    name.strip_prefix(beginning).is_some_and(|rest| {
        rest.is_empty() || beginning.ends_with(['.', '_', '-']) || rest.starts_with(['.', '_', '-'])
    })
}

fn pool<'a>(input: &'a Input, name: &str) -> Result<&'a NodePool, Failure> {
    let pools = &input.snapshot.objects().node_pools;
    if pools.is_empty() {
        return Err(Failure::usage(
            format!("--pool {name} needs a cluster"),
            "a catalogue alone has no NodePools",
            "add --from PATH, or leave --catalogue out to ask the cluster",
        ));
    }
    let found = pools.iter().find(|pool| *pool.metadata.name == *name);
    found
        .map(AsRef::as_ref)
        .ok_or_else(|| plugin::unknown("NodePool", name, pools.iter().map(|pool| &*pool.metadata.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_meant_by_whole_parts_of_its_name() {
        let cases = [
            ("m7g.2xlarge", "m7g", true),
            ("m7g.2xlarge", "m7g.", true),
            ("m7g.2xlarge", "m7g.*", true),
            ("m7g.2xlarge", "m7g.2xlarge", true),
            ("m7gd.2xlarge", "m7g", false),
            ("Standard_D4s_v5", "Standard_D4s", true),
            ("Standard_D48s_v5", "Standard_D4", false),
        ];
        for (name, beginning, expected) in cases {
            assert_eq!(is_of(name, beginning), expected, "{name} {beginning}");
        }
    }
}
