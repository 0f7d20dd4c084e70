//! The comparison and the benchmark of disruption as commands: `cargo xtask bench disruption` runs them.

use std::{ops::Range, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use disruption::{Command, Consolidation};
use disruption_bench::{
    bench,
    differential::{self, Verdict},
    input::Input,
    scale_in::{self, Placing, Scenario, Settled},
};
use model::price::Price;
use packing::Packing;

/// As the product has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Our decisions on which nodes go, beside upstream's.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Compares decisions on seeded clusters
    Differential(Differential),
    /// Measures a full evaluation of every candidate
    Bench(Bench),
}

#[derive(Args)]
struct Differential {
    /// Which clusters: 1..1001, the end excluded
    #[arg(long, default_value = "1..61", value_parser = seeds)]
    seeds: Range<u64>,
    /// Prints every row, not only those that differ
    #[arg(long)]
    all: bool,
}

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
struct Bench {
    /// Nodes of the fleets
    #[arg(long, value_delimiter = ',', default_values_t = [100, 500, 2000, 5000])]
    nodes: Vec<u64>,
    /// Up to how many nodes upstream is asked as well
    #[arg(long, default_value_t = 500)]
    reference_up_to: u64,
    /// Runs of ours; the fastest counts
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// Threads of ours
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Instead: plays mixed workloads after a 60 % scale-in until nothing is left to do, ours and upstream's algorithm
    #[arg(long)]
    scale_in: bool,
    /// Pods before the scale-in
    #[arg(long, default_value_t = 500)]
    pods: u64,
    /// Which workloads are scaled in: 1..4, the end excluded
    #[arg(long, default_value = "1..4", value_parser = seeds)]
    seeds: Range<u64>,
    /// Pods land where the plan has them, not where kube-scheduler's stand-in puts them
    #[arg(long)]
    as_planned: bool,
    /// Tells every command of a scale-in
    #[arg(long)]
    commands: bool,
    /// Rows as JSON
    #[arg(long)]
    json: bool,
}

fn seeds(text: &str) -> Result<Range<u64>> {
    let wrong = || format!("{text:?} is no range of seeds: write 1..1001, the end excluded");
    let (from, to) = text.split_once("..").with_context(wrong)?;
    Ok(from.parse().with_context(wrong)?..to.parse().with_context(wrong)?)
}

fn main() -> Result<ExitCode> {
    match Cli::parse().task {
        Task::Differential(args) => compare(&args),
        Task::Bench(args) if args.scale_in => play(&args).map(|()| ExitCode::SUCCESS),
        Task::Bench(args) => measure(&args).map(|()| ExitCode::SUCCESS),
    }
}

#[expect(clippy::print_stdout, reason = "a command's answer")]
fn compare(args: &Differential) -> Result<ExitCode> {
    let dir = tempfile::tempdir()?;
    let (mut same, mut ties, mut different, mut acts) = (0, 0, 0, 0);
    for seed in args.seeds.clone() {
        let input = Input::of_seed(seed, dir.path())?;
        for row in differential::compare(&input).with_context(|| format!("seed {seed}"))? {
            acts += u32::from(row.acts);
            match row.verdict {
                Verdict::Same => same += 1,
                Verdict::Tie(_) => ties += 1,
                Verdict::Different(_) => different += 1,
            }
            if args.all || matches!(row.verdict, Verdict::Different(_)) {
                println!("seed {seed} {row}");
            }
        }
        std::fs::remove_file(&input.file)?;
    }
    println!("{same} same, {ties} ties, {different} different; upstream acts in {acts}");
    Ok(if different == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[expect(clippy::print_stdout, reason = "a command's answer")]
fn measure(args: &Bench) -> Result<()> {
    let dir = tempfile::tempdir()?;
    if !args.json {
        println!("nodes  pods    candidates  ours_ms  reference_ms  ratio");
    }
    for nodes in &args.nodes {
        let input = Input::generate(&workloads::steady::fleet(*nodes, 20), dir.path())?;
        let row = bench::measure(&input, args.runs, args.threads, *nodes <= args.reference_up_to)?;
        if args.json {
            println!("{}", serde_json::to_string(&row)?);
        } else {
            let or_dash =
                |number: Option<f64>, digits: usize| number.map_or("–".to_owned(), |n| format!("{n:.digits$}"));
            println!(
                "{:>5}  {:>6}  {:>10}  {:>7.1}  {:>12}  {}",
                row.nodes,
                row.pods,
                row.candidates,
                row.ours_ms,
                or_dash(row.reference_ms, 0),
                or_dash(row.ratio, 5)
            );
        }
    }
    Ok(())
}

/// Both ways to buy the fleet, both ways to look after it.
#[expect(clippy::print_stdout, reason = "a command's answer")]
fn play(args: &Bench) -> Result<()> {
    if !args.json {
        println!("{HEAD}");
    }
    let placing = if args.as_planned {
        Placing::AsPlanned
    } else {
        Placing::StandIn
    };
    for seed in args.seeds.clone() {
        for fleet in [Packing::Faithful, Packing::Cheapest] {
            for consolidation in [Consolidation::Faithful, Consolidation::Cheapest] {
                let scenario = Scenario {
                    pods: args.pods,
                    seed,
                    fleet,
                    consolidation,
                    placing,
                };
                let hear = |command: &Command, price: Price| {
                    if args.commands {
                        println!(
                            "  {price}: {:?} {} saves {}",
                            command.method,
                            command.text(),
                            command.saving
                        );
                    }
                };
                let settled = scale_in::play(&scenario, hear)
                    .with_context(|| format!("{} pods, seed {seed}, {consolidation:?}", args.pods))?;
                if args.json {
                    println!("{}", serde_json::to_string(&settled)?);
                } else {
                    println!("{}", row(&settled));
                }
            }
        }
    }
    Ok(())
}

const HEAD: &str = "pods  seed  fleet     decides   before $/h  settled $/h   bound $/h  ratio  nodes  launched  rounds  moved  pending  moved per $  commands";

fn row(settled: &Settled) -> String {
    format!(
        "{:>4}  {:>4}  {:<8}  {:<8}  {:>10.4}  {:>11.4}  {:>10.4}  {:>5.3}  {:>5}  {:>8}  {:>6}  {:>5}  {:>7}  {:>11.1}  {:?}",
        settled.pods,
        settled.seed,
        settled.fleet,
        settled.consolidation,
        settled.before_usd_h,
        settled.settled_usd_h,
        settled.bound_usd_h,
        settled.ratio,
        settled.nodes,
        settled.launched,
        settled.rounds,
        settled.pods_moved,
        settled.pods_pending,
        settled.pods_per_usd,
        settled.commands
    )
}
