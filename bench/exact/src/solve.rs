//! The cheapest choice of fillings that covers all pods, in fractions of nodes or in whole nodes.

use anyhow::{Context, Result};
use good_lp::{Expression, ProblemVariables, Solution, SolverModel, variable};
use packing::cost::Problem;

use crate::{dollars, fillings::Filling};

#[cfg(feature = "highs")]
use good_lp::highs as solver;
#[cfg(not(feature = "highs"))]
use good_lp::microlp as solver;

/// With fractions of nodes: no bound can prove more by looking at single nodes.
pub fn relaxed(problem: &Problem, fillings: &[Filling]) -> Result<f64> {
    covered(problem, fillings, false)
}

/// With whole nodes: the price of the cheapest plan.
pub fn whole(problem: &Problem, fillings: &[Filling]) -> Result<f64> {
    covered(problem, fillings, true)
}

fn covered(problem: &Problem, fillings: &[Filling], is_whole: bool) -> Result<f64> {
    let mut variables = ProblemVariables::new();
    let node = if is_whole { variable().integer().min(0) } else { variable().min(0) };
    let nodes = variables.add_vector(node, fillings.len());
    let cost: Expression = nodes.iter().zip(fillings).map(|(node, filling)| dollars(filling.price) * *node).sum();
    let mut model = variables.minimise(cost.clone()).using(solver);
    for (class, it) in problem.classes.iter().enumerate() {
        let held = nodes.iter().zip(fillings).filter(|(_, filling)| filling.pods[class] > 0);
        let pods: Expression = held.map(|(node, filling)| f64::from(filling.pods[class]) * *node).sum();
        model = model.with(pods.geq(f64::from(it.count)));
    }
    Ok(model.solve().context("the solver finds no plan")?.eval(cost))
}
