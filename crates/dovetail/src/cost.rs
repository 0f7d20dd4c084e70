//! `dovetail cost`: what it costs, what part is avoidable, what was saved.

mod book;
mod history;
mod table;

use insight::{
    Dollars, Prices,
    commitment::Used,
    money::{Accounts, Bounds, By, Money, Rows},
    outlook::{Outlook, Reach},
};
use serde::Serialize;

use self::history::History;
use crate::{
    answer::Answer,
    decisions::ShelfArgs,
    failure::Failure,
    plan::threads,
    reply::{Format, Reply, formats},
    source::{self, Needs, SourceArgs},
    together::together,
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
    /// Only what pods with these labels cost, as kubectl has them: `app=web`, `tier in (a,b)`; by pool, type, zone or capacity
    /// of the machines they are on.
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = tui::Selector::read, conflicts_with = "window")]
    selector: Option<tui::Selector>,
    /// What was spent and saved in a window of time instead of the rate now: 24h, 7d, or month for the calendar month so far.
    ///
    /// From the decisions that the controller keeps, and the machines that run; needs a cluster, or a dump with both.
    #[arg(long, value_name = "SPAN", value_parser = history::Span::parsed)]
    window: Option<history::Span>,
    /// How to print it.
    #[arg(short, long, visible_alias = "format", default_value = "table", value_parser = formats(&["table", "json", "yaml", "csv", "name"]))]
    output: Format,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) reply: Reply,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<History>,
    /// What was bought in advance, and what of it is used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commitments: Vec<Used>,
    /// What the pods cost that were asked for; the rows are theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    selected: Option<Selected>,
}

/// Pods that were asked for.
#[derive(Debug, Serialize)]
struct Selected {
    pods: usize,
    usd_h: Dollars,
    usd_mo: Dollars,
}

impl Selected {
    fn of(rows: &Rows) -> Result<Self, Failure> {
        let usd_h: Dollars = rows.rows.iter().map(|row| row.usd_h).sum();
        let pods = rows.rows.iter().map(|row| row.pods).sum();
        if pods == 0 {
            return Err(Failure::new(
                "no pod on a node of a NodePool has these labels",
                "only pods that run on such nodes cost something here",
                "kubectl get pods -A --show-labels",
            ));
        }
        Ok(Self {
            pods,
            usd_h,
            usd_mo: usd_h.monthly(),
        })
    }
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let mut input = source::read(&args.source, Needs::Decisions)?.about_moves();
    let prices = Prices::of(&input.snapshot);
    let view = input.priced(&prices);
    let reach = Reach::for_machines(view.machines.len(), threads());
    let (bounds, outlook) = together(|| Bounds::of(&view), || Outlook::of(&input.looked_at(&prices), reach));
    let accounts = Accounts::of(&view, &prices, &outlook, &bounds);
    let by = match &args.selector {
        Some(selector) => Rows::of_pods(&view, &args.by, |pod| selector.selects(&pod.metadata.labels)),
        None => Rows::of(&view, &accounts, &args.by),
    };
    let selected = args.selector.as_ref().map(|_| Selected::of(&by)).transpose()?;
    let mut told = Vec::new();
    let window = match &args.window {
        None => None,
        Some(span) => {
            let shelf = ShelfArgs::of(&args.source, None).read().map_err(history::none)?;
            let (history, assumed) = History::of(&view, &accounts.money, &by, span, &shelf);
            told = assumed;
            Some(history)
        }
    };
    let cost = Cost {
        by,
        money: accounts.money,
        window,
        commitments: input.coverage.commitments.clone(),
        selected,
    };
    drop(view);
    input.assumed.extend(told);
    args.reply
        .answer(&input, ("Cost", &cost), args.output, false, |screen| {
            match args.output {
                Format::Csv if cost.window.is_some() => history::csv(&cost),
                Format::Csv => table::csv(&cost),
                Format::Name => cost.by.rows.iter().map(|row| format!("{}\n", row.name)).collect(),
                _ if cost.window.is_some() => history::render(&cost, screen),
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
