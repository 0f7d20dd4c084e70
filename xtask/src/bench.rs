//! Benchmarks and their inputs: generates snapshots, and asks the reference what upstream makes of them.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Deserialize;
use serde_json::Value;
use workloads::diverse::Types;
use workloads::{Shape, Snapshot, shape};

/// `cargo xtask bench …`; alone it lists the shapes.
#[derive(Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Subcommand)]
enum Task {
    /// Writes a snapshot file
    Gen(Gen),
    /// Ours and upstream's scheduler in turn on the same inputs: time, memory, cost
    Packing(crate::packing::Forwarded),
    /// A full evaluation of every candidate for consolidation, ours and upstream's, on fleets with nothing left to gain
    Disruption(crate::packing::Forwarded),
    /// Ours and upstream's controller in turn on a real control plane: seconds, nodes, cost, memory, writes
    Cluster(crate::race::Race),
    /// Ours and upstream's controller started on a large cluster: seconds until each leads with a full cache
    Startup(crate::race::Startup),
    /// What the AWS provider takes: a cold start to a full catalogue, memory with it, interruption messages per second
    #[command(subcommand)]
    Aws(Aws),
    /// Answers about a large cluster from its dump: seconds and memory of status, why, cost and plan
    Insight(crate::insight::Insight),
    /// Upstream's scheduler and consolidation, on snapshot files
    #[command(subcommand)]
    Reference(Reference),
}

#[derive(Subcommand)]
enum Aws {
    /// From no client to every type of a class with prices: seconds, processor time, memory. AWS is moto
    Catalogue(crate::packing::Forwarded),
    /// Messages of a queue read and matched with claims
    Interruptions(crate::packing::Forwarded),
}

#[derive(Args)]
struct Gen {
    /// What to generate; `cargo xtask bench` lists the names
    #[arg(long, required_unless_present = "random", conflicts_with = "random")]
    shape: Option<String>,
    /// A random cluster with every scheduling feature in it somewhere
    #[arg(long)]
    random: bool,
    /// How many pods, for shapes that come in sizes
    #[arg(long)]
    pods: Option<u64>,
    /// The catalogue of upstream's in-process benchmark
    #[arg(long, value_enum, default_value = "fake-400")]
    types: Catalogue,
    /// Which one of the seeded shapes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to write, gzipped when it ends in .gz
    #[arg(short, long)]
    output: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Catalogue {
    #[value(name = "fake-400")]
    Fake400,
    Assorted,
}

#[derive(Subcommand)]
enum Reference {
    /// Builds the reference and prints where it is
    Build,
    /// Prints a line per file: claims, price, time, memory
    Solve {
        #[command(flatten)]
        run: Run,
        /// Snapshot files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Prints a line per file and consolidation method
    Consolidate {
        /// Snapshot files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Generates and solves every published shape, then consolidates every fleet
    All {
        #[command(flatten)]
        run: Run,
    },
}

#[derive(Args, Clone, Copy)]
struct Run {
    /// Goroutines of upstream's scheduler; 5 is what its benchmark uses, 1 its default in production
    #[arg(long, default_value_t = 5)]
    workers: u32,
    /// Solve this often from scratch and report the fastest
    #[arg(long, default_value_t = 1)]
    repeat: u32,
}

/// What of the reference's plan goes into the table.
#[derive(Deserialize)]
struct Plan {
    snapshot: String,
    pods: u64,
    price: f64,
    claims: Vec<Value>,
    existing: Vec<Value>,
    errors: serde_json::Map<String, Value>,
    construct: Cost,
    solve: Cost,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cost {
    nanoseconds: u64,
    /// All threads together, garbage collection included.
    cpu_nanoseconds: u64,
    bytes_allocated: u64,
}

#[allow(clippy::cast_precision_loss, reason = "printed to three digits")]
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// What of the reference's consolidation goes into the table.
#[derive(Deserialize)]
struct Consolidation {
    snapshot: String,
    nodes: u64,
    methods: Vec<Method>,
}

#[derive(Deserialize)]
struct Method {
    name: String,
    candidates: Vec<Value>,
    commands: Vec<Action>,
    cost: Cost,
}

#[derive(Deserialize)]
struct Action {
    decision: String,
    candidates: Vec<String>,
    replacements: Vec<Value>,
    savings: f64,
}

pub(crate) fn run(bench: &Bench) -> Result<ExitCode> {
    match &bench.task {
        None => list(),
        Some(Task::Cluster(race)) => return crate::race::run(race),
        Some(Task::Startup(startup)) => crate::race::run_startup(startup)?,
        Some(Task::Insight(task)) => return crate::insight::run(task),
        Some(Task::Packing(forwarded)) => return crate::packing::run("packing-bench", "bench", forwarded),
        Some(Task::Disruption(forwarded)) => return crate::packing::run("disruption-bench", "bench", forwarded),
        Some(Task::Aws(Aws::Catalogue(forwarded))) => return crate::packing::run("aws-bench", "catalogue", forwarded),
        Some(Task::Aws(Aws::Interruptions(forwarded))) => {
            return crate::packing::run("aws-bench", "interruptions", forwarded);
        }
        Some(Task::Gen(gen_args)) => write(&generate(gen_args)?, &gen_args.output)?,
        Some(Task::Reference(Reference::Build)) => print(&rig::reference::program()?.display().to_string()),
        Some(Task::Reference(Reference::Solve { run, files })) => solve(files, *run)?,
        Some(Task::Reference(Reference::Consolidate { files })) => consolidate(files)?,
        Some(Task::Reference(Reference::All { run })) => all(*run)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list() {
    print("Shapes for `cargo xtask bench gen --shape NAME -o FILE`:");
    for name in shape::NAMES {
        print(&format!("  {name}"));
    }
    print("SCENARIO is one of:");
    for scenario in workloads::performance::Scenario::ALL {
        print(&format!("  {}", scenario.key()));
    }
}

fn generate(args: &Gen) -> Result<Snapshot> {
    let types = match args.types {
        Catalogue::Fake400 => Types::Fake400,
        Catalogue::Assorted => Types::Assorted,
    };
    let name = if args.random {
        "random"
    } else {
        args.shape.as_deref().unwrap_or_default()
    };
    Ok(Shape::named(name, args.pods, types, args.seed)?.generate())
}

fn write(snapshot: &Snapshot, path: &Path) -> Result<()> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let mut out = BufWriter::new(file);
    if path.extension().is_some_and(|ext| ext == "gz") {
        let mut gzip = GzEncoder::new(&mut out, Compression::default());
        serde_json::to_writer(&mut gzip, snapshot)?;
        gzip.finish()?;
    } else {
        serde_json::to_writer(&mut out, snapshot)?;
    }
    out.flush().with_context(|| format!("cannot write {}", path.display()))
}

fn solve(files: &[PathBuf], run: Run) -> Result<()> {
    print(
        "| shape | pods | claims | on existing | errors | $/h | construct s | solve s | solve CPU s | pods/s | MB allocated |",
    );
    print("|---|---|---|---|---|---|---|---|---|---|---|");
    for file in files {
        let (workers, repeat) = (run.workers.to_string(), run.repeat.to_string());
        let plan: Plan = ask("solve", file, &["--workers", &workers, "--repeat", &repeat])?;
        print(&solve_row(&plan));
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "printed rounded")]
fn solve_row(plan: &Plan) -> String {
    let solve = seconds(plan.solve.nanoseconds);
    format!(
        "| {} | {} | {} | {} | {} | {:.4} | {:.3} | {solve:.3} | {:.3} | {:.0} | {:.1} |",
        plan.snapshot,
        plan.pods,
        plan.claims.len(),
        plan.existing.len(),
        plan.errors.len(),
        plan.price,
        seconds(plan.construct.nanoseconds),
        seconds(plan.solve.cpu_nanoseconds),
        plan.pods as f64 / solve,
        plan.solve.bytes_allocated as f64 / 1e6
    )
}

fn consolidate(files: &[PathBuf]) -> Result<()> {
    print(
        "| fleet | nodes | method | candidates | decision | nodes removed | replacements | saved $/h | seconds | CPU s |",
    );
    print("|---|---|---|---|---|---|---|---|---|---|");
    for file in files {
        let result: Consolidation = ask("consolidate", file, &[])?;
        for method in &result.methods {
            print(&method_row(&result, method));
        }
    }
    Ok(())
}

fn method_row(result: &Consolidation, method: &Method) -> String {
    let sum = |part: fn(&Action) -> usize| method.commands.iter().map(part).sum::<usize>();
    let decision = method
        .commands
        .first()
        .map_or("none", |command| command.decision.as_str());
    format!(
        "| {} | {} | {} | {} | {decision} | {} | {} | {:.4} | {:.3} | {:.3} |",
        result.snapshot,
        result.nodes,
        method.name,
        method.candidates.len(),
        sum(|command| command.candidates.len()),
        sum(|command| command.replacements.len()),
        // From a positive zero: the sum of nothing is a negative one.
        method.commands.iter().fold(0.0, |sum, command| sum + command.savings),
        seconds(method.cost.nanoseconds),
        seconds(method.cost.cpu_nanoseconds)
    )
}

fn all(run: Run) -> Result<()> {
    let dir = rig::cache::root()?.join("workloads");
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let store = |shape: Shape| {
        let snapshot = shape.generate();
        let path = dir.join(format!("{}.json", snapshot.name()));
        write(&snapshot, &path).map(|()| path)
    };
    let benchmarks = Shape::benchmarks().into_iter().map(store).collect::<Result<Vec<_>>>()?;
    let fleets = Shape::fleets().into_iter().map(store).collect::<Result<Vec<_>>>()?;
    solve(&benchmarks, run)?;
    print("");
    consolidate(&fleets)
}

/// Runs the reference on a file and reads its answer.
fn ask<T: for<'de> Deserialize<'de>>(command: &str, file: &Path, args: &[&str]) -> Result<T> {
    let program = rig::reference::program()?;
    let output = Command::new(&program)
        .arg(command)
        .arg(file)
        .args(args)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        bail!("the reference could not {command} {}", file.display());
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("the reference's answer on {}", file.display()))
}

#[allow(clippy::print_stdout, reason = "the tables are this task's product")]
fn print(line: &str) {
    println!("{line}");
}
