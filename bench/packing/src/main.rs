//! The comparisons as commands, built optimised: `cargo xtask differential` and `cargo xtask bench packing` run them.

use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use packing::Packing;
use packing_bench::bench::row::Row;
use packing_bench::bench::{self, Bench};
use packing_bench::differential::{self, Report, Shard};
use packing_bench::given;
use packing_bench::input::Input;
use packing_bench::outcome::Outcome;
use packing_bench::reference::{Ask, Reference};
use packing_bench::replay;
use packing_bench::verdict::Verdict;
use workloads::Shape;
use workloads::diverse::Types;

/// As the product has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Our planner beside upstream's.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Compares plans on random clusters, or on files
    Differential(Differential),
    /// Prints the facts of our plan for a file, and of one run of upstream
    Show { file: PathBuf },
    /// Measures both planners in turn on upstream's benchmark shapes, or on files
    Bench(Measure),
}

#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
#[derive(Args)]
struct Differential {
    /// Which random clusters: 1..2000, the end excluded, or one number
    #[arg(long, default_value = "1..60", value_parser = differential::seeds)]
    seeds: Range<u64>,
    /// Only a part of them: i/n
    #[arg(long, default_value = "0/1")]
    shard: Shard,
    /// Compares what both start from, not what they plan
    #[arg(long)]
    given: bool,
    /// Replays each of upstream's decisions in our solver, instead of comparing plans
    #[arg(long, conflicts_with = "given")]
    replay: bool,
    /// Compares upstream with itself: how often a right plan is taken for a wrong one
    #[arg(long, conflicts_with = "given")]
    upstream: bool,
    /// Runs of upstream when its first is not ours; more of them show more of its ties
    #[arg(long, default_value_t = differential::RUNS)]
    runs: u32,
    /// Leaves out random clusters whose file contains this text, for example '"ignoreDRARequests":false'
    #[arg(long)]
    without: Vec<String>,
    /// Prints every input, not only those that differ
    #[arg(long)]
    all: bool,
    /// Snapshot files, instead of random clusters
    files: Vec<PathBuf>,
}

#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
#[derive(Args)]
struct Measure {
    /// Adds the sizes for which upstream needs minutes
    #[arg(long)]
    large: bool,
    /// Our own growth from 5,000 to 100,000 pods, without upstream
    #[arg(long, conflicts_with = "large")]
    growth: bool,
    /// "Remove this node" for every node of a cluster of 5,000 nodes and 100,000 pods
    #[arg(long)]
    simulation: bool,
    /// The faithful pass alone, step by step
    #[arg(long)]
    steps: bool,
    /// Upstream's algorithm only, without our cheaper passes
    #[arg(long)]
    faithful: bool,
    /// Measures only ours
    #[arg(long)]
    alone: bool,
    /// Turns of each
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Threads of ours; otherwise as many as the machine has
    #[arg(long)]
    threads: Option<NonZero<usize>>,
    /// Only inputs whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Prints JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Draws the times into this file
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Snapshot files, instead of the shapes
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Differential(task) => compare(&task),
        Task::Show { file } => show(&file),
        Task::Bench(task) => measure(&task),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compare(task: &Differential) -> Result<ExitCode> {
    let mut reference = Reference::start()?;
    let dir = tempfile::tempdir()?;
    let mut report = Report::default();
    let mut take = |input: Input| -> Result<()> {
        if task.given {
            return compare_given(&mut reference, &input);
        }
        if task.replay {
            return replay_one(&mut reference, &input);
        }
        let compare = if task.upstream {
            differential::compare_upstream
        } else {
            differential::compare
        };
        let row = compare(&mut reference, &input, task.runs)?;
        if task.all || matches!(row.verdict, Verdict::Different(_)) {
            print(&row.to_string());
        }
        report.rows.push(row);
        Ok(())
    };
    for file in &task.files {
        take(Input::read(file)?)?;
    }
    let seeds = if task.files.is_empty() {
        task.seeds.clone()
    } else {
        0..0
    };
    for seed in task.shard.of(seeds) {
        let input = differential::random(seed, dir.path())?;
        let file = input.file.clone();
        let text = std::fs::read_to_string(&file)?;
        if !task.without.iter().any(|part| text.contains(part.as_str())) {
            take(input)?;
        }
        std::fs::remove_file(file)?;
    }
    print(&report.to_string());
    let (_, _, different) = report.counts();
    Ok(ExitCode::from(u8::from(different > 0)))
}

fn show(file: &Path) -> Result<ExitCode> {
    let input = Input::read(file)?;
    let ours = Outcome::ours(&packing::plan(&input.snapshot, &differential::options()));
    print(&format!("ours\n{ours}"));
    for plan in Reference::start()?.solve(file, Ask::runs(1))? {
        print(&format!("\nupstream\n{}", Outcome::upstream(&plan)));
    }
    Ok(ExitCode::SUCCESS)
}

fn replay_one(reference: &mut Reference, input: &Input) -> Result<()> {
    let replayed = replay::replay(reference, input)?;
    match replayed.disagreement {
        None => print(&format!("{:<24} {} decisions", input.name, replayed.steps)),
        Some(found) => {
            let (name, steps) = (&input.name, replayed.steps);
            let (step, pod, what) = (found.step, found.pod, found.what);
            print(&format!(
                "{name:<24} DISAGREES at decision {step} of {steps}, {pod}: {what}"
            ));
        }
    }
    Ok(())
}

fn compare_given(reference: &mut Reference, input: &Input) -> Result<()> {
    let ask = Ask {
        log: true,
        ..Ask::runs(1)
    };
    for plan in reference.solve(&input.file, ask)? {
        for line in given::differences(&input.snapshot, &plan) {
            print(&format!("{} {line}", input.name));
        }
    }
    Ok(())
}

fn measure(task: &Measure) -> Result<ExitCode> {
    let dir = tempfile::tempdir()?;
    if task.simulation {
        let (nodes, pods) = bench::CLUSTER;
        let input = Input::generate(&Shape::Cluster { nodes, pods }.generate(), dir.path())?;
        print(&bench::simulation::Simulations::run(&input)?.table());
        return Ok(ExitCode::SUCCESS);
    }
    let bench = Bench {
        rounds: task.rounds,
        packing: if task.faithful {
            Packing::Faithful
        } else {
            Packing::Cheapest
        },
        is_compared: !task.alone && !task.growth,
        threads: task
            .threads
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, NonZero::get),
    };
    let (mut rows, mut inputs) = (Vec::new(), Vec::new());
    let mut take = |input: Input| -> Result<()> {
        if task.steps {
            inputs.push(input);
            return Ok(());
        }
        eprintln!("measuring {} …", input.name);
        rows.push(bench.run(&input)?);
        Ok(())
    };
    for file in &task.files {
        take(Input::read(file)?)?;
    }
    for shape in shapes(task) {
        let mut workload = shape.generate();
        if task.growth {
            workload.raise_limits();
        }
        if task
            .only
            .as_ref()
            .is_none_or(|part| workload.name().contains(part.as_str()))
        {
            take(Input::generate(&workload, dir.path())?)?;
        }
    }
    let aws = "deployment-5000-aws";
    if task.files.is_empty() && !task.growth && task.only.as_ref().is_none_or(|part| aws.contains(part.as_str())) {
        take(Input::deployment_on_aws(5000, dir.path())?)?;
    }
    if task.steps {
        print(&bench::steps::table(&inputs));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &task.svg {
        std::fs::write(path, bench::plot::svg(&rows))?;
    }
    if task.json {
        let rows: Vec<_> = rows.iter().map(Row::json).collect();
        print(&serde_json::to_string_pretty(&rows)?);
    } else {
        print(&bench::row::table(&rows));
    }
    Ok(ExitCode::SUCCESS)
}

fn shapes(task: &Measure) -> Vec<Shape> {
    if !task.files.is_empty() {
        return Vec::new();
    }
    if task.growth {
        let types = Types::Fake400;
        return bench::GROWTH.map(|pods| Shape::Diverse { pods, types }).to_vec();
    }
    bench::shapes(task.large)
}

#[allow(clippy::print_stdout, reason = "the tables are this program's product")]
fn print(line: &str) {
    println!("{line}");
}
