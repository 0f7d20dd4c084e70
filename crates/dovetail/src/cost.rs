//! `dovetail cost`: what it costs, what part is avoidable, what was saved.

mod table;

use insight::{
    Prices, View,
    money::{Accounts, By, Money, Rows},
    outlook::{Outlook, Reach},
};
use serde::Serialize;

use crate::{
    answer::Answer,
    plan::threads,
    reply::{Format, Reply, formats},
    source::{self, Needs, SourceArgs},
};

/// Print what it costs, what part of that is avoidable, and what was saved.
///
/// The lower bound is what no valid fleet for the pods that run can cost less than; the baseline is each pod on a node of its
/// own, on demand. Shares of namespaces and labels: a core counts as 7.2 GiB, devices as 60% of their node.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// By what: pool, namespace, label:KEY, type, zone or capacity.
    #[arg(long, default_value = "pool", value_name = "KEY", value_parser = by)]
    by: By,
    /// How to print it.
    #[arg(short, long, visible_alias = "format", default_value = "table", value_parser = formats(&["table", "json", "yaml", "csv", "name"]))]
    output: Format,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    reply: Reply,
}

fn by(text: &str) -> Result<By, String> {
    match text {
        "pool" | "nodepool" => Ok(By::Pool),
        "type" => Ok(By::Type),
        "zone" => Ok(By::Zone),
        "capacity" => Ok(By::Capacity),
        "namespace" | "ns" => Ok(By::Namespace),
        _ => match text.strip_prefix("label:").filter(|key| !key.is_empty()) {
            Some(key) => Ok(By::Label(key.to_owned())),
            None => Err("write pool, namespace, label:KEY, type, zone or capacity".to_owned()),
        },
    }
}

/// What it costs, and whose that is.
#[derive(Debug, Serialize)]
pub(crate) struct Cost {
    #[serde(flatten)]
    money: Money,
    by: Rows,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let input = source::read(&args.source, Needs::Decisions)?.about_moves();
    let prices = Prices::of(&input.snapshot);
    let view = View::priced(&input.snapshot, &prices);
    let outlook = Outlook::of(&view, Reach::for_machines(view.machines.len(), threads()));
    let accounts = Accounts::of(&view, &prices, &outlook);
    let cost = Cost {
        by: Rows::of(&view, &accounts, &args.by),
        money: accounts.money,
    };
    args.reply
        .answer(&input, ("Cost", &cost), args.output, false, |screen| {
            match args.output {
                Format::Csv => table::csv(&cost),
                Format::Name => cost.by.rows.iter().map(|row| format!("{}\n", row.name)).collect(),
                _ => table::render(&cost, &args.by, screen),
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_split_by_words_people_know() {
        assert_eq!(by("ns"), Ok(By::Namespace));
        assert_eq!(by("label:team"), Ok(By::Label("team".into())));
        assert!(by("label:").is_err() && by("colour").is_err());
    }
}
