//! What the AWS provider takes: a cold start to a full catalogue, memory with it, interruption messages per second.
//!
//! `cargo xtask bench aws catalogue|interruptions` builds this optimised and runs it. Nothing of upstream runs beside it.

#![allow(clippy::print_stdout, reason = "what a benchmark is for")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

mod catalogue;
mod interruptions;
mod process;

use anyhow::Result;
use clap::Parser;

#[derive(Parser)]
#[command(name = "cargo xtask bench aws")]
enum Task {
    /// From no client to every type of a class with prices: seconds, processor time, memory. AWS is moto.
    Catalogue,
    /// Messages of a queue read and matched with claims, as the controller does it
    Interruptions(interruptions::Load),
}

fn main() -> Result<()> {
    match Task::parse() {
        Task::Catalogue => catalogue::run(),
        Task::Interruptions(load) => interruptions::run(&load),
    }
}
