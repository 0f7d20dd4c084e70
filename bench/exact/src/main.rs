//! How near to the cheapest plan are our plans and our lower bound? Small inputs, solved to the end by an integer
//! program over all ways to fill a node: prints bound, relaxed optimum, optimum and ours.
//!
//! `cargo run --release [-- SEEDS]`, or with `--features highs` for the faster solver.

mod fillings;
mod small;
mod solve;

#[allow(dead_code, reason = "shared with the tests of the packing crate")]
#[path = "../../../crates/packing/tests/picture/mod.rs"]
mod picture;

use anyhow::{Context, Result};
use packing::{
    bound::lower_bound,
    cost::{Settings, portfolio},
};

fn main() -> Result<()> {
    let seeds: u64 = match std::env::args().nth(1) {
        Some(text) => text.parse().with_context(|| format!("{text:?} is not a number of seeds"))?,
        None => 20,
    };
    println!("{:>6} {:>8} {:>10} {:>10} {:>10} {:>10}", "seed", "fillings", "bound", "relaxed", "optimum", "ours");
    let (mut bounds, mut ours) = (0.0, 0.0);
    for seed in 0..seeds {
        let problem = small::problem(seed);
        let found = portfolio(&problem, &Settings::default());
        let plan = found.candidates.first().context("the passes propose nothing")?;
        let bound = dollars(lower_bound(&problem, &found.values));
        let fillings = fillings::all(&problem);
        let (relaxed, optimum) = (solve::relaxed(&problem, &fillings)?, solve::whole(&problem, &fillings)?);
        let price = dollars(plan.price);
        println!("{seed:>6} {:>8} {bound:>10.5} {relaxed:>10.5} {optimum:>10.5} {price:>10.5}", fillings.len());
        bounds += bound / optimum;
        ours += price / optimum;
    }
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let count = seeds as f64;
    println!("mean of bound / optimum {:.4}, of ours / optimum {:.4}", bounds / count, ours / count);
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "for printing")]
fn dollars(picos: u64) -> f64 {
    picos as f64 / 1e12
}
