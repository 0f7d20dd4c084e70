//! What does our planner allocate for a snapshot file? A program of its own, because counting allocations slows them.

use std::alloc::System;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use packing::{Options, Packing};
use packing_bench::bench::measure::Memory;
use packing_bench::input::Input;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Prints what planning allocates, as JSON.
#[derive(Parser)]
struct Cli {
    /// The snapshot file
    file: PathBuf,
    /// Upstream's algorithm only
    #[arg(long)]
    faithful: bool,
}

#[allow(clippy::print_stdout, reason = "the count is this program's product")]
fn main() -> Result<()> {
    let cli = Cli::parse();
    let input = Input::read(&cli.file)?;
    let options = Options {
        packing: if cli.faithful {
            Packing::Faithful
        } else {
            Packing::Cheapest
        },
        ..Options::default()
    };
    let region = Region::new(COUNTING);
    let plan = packing::plan(&input.snapshot, &options);
    let change = region.change();
    drop(plan);
    let memory = Memory {
        bytes: u64::try_from(change.bytes_allocated)?,
        allocations: u64::try_from(change.allocations + change.reallocations)?,
    };
    println!("{}", serde_json::to_string(&memory)?);
    Ok(())
}
