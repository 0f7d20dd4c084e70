//! Where does the time of one faithful plan go, step by step?

use std::time::Instant;

use packing::{Options, Packing, PlanStep, Warm};

use super::row::aligned;
use crate::input::Input;

/// How often each step is timed.
const CALLS: usize = 25;

const STEPS: [(PlanStep, &str); 6] = [
    (PlanStep::Demand, "demand"),
    (PlanStep::Supply, "supply"),
    (PlanStep::Problem, "problem"),
    (PlanStep::Run, "run"),
    (PlanStep::Solve, "solve"),
    (PlanStep::Finish, "finish"),
];

/// The median milliseconds of each step, from nothing and with what follows from the catalogue kept.
pub fn table(inputs: &[Input]) -> String {
    let counted = ["probes a pod", "words a pod"];
    let head = ["input", "from"]
        .into_iter()
        .chain(STEPS.map(|(_, name)| name))
        .chain(counted);
    let mut rows = vec![head.map(ToOwned::to_owned).collect::<Vec<_>>()];
    for input in inputs {
        for (name, is_kept) in [("nothing", false), ("catalogue", true)] {
            let (medians, per_pod) = measure(input, is_kept);
            let numbers = medians.into_iter().chain(per_pod).map(|number| format!("{number:.3}"));
            rows.push(
                [input.name.clone(), name.to_owned()]
                    .into_iter()
                    .chain(numbers)
                    .collect(),
            );
        }
    }
    aligned(&rows)
}

/// The median milliseconds of the steps, and the probes and words a pod.
#[expect(clippy::disallowed_methods, reason = "measuring time is what this is for")]
#[allow(clippy::cast_precision_loss, reason = "printed to three digits")]
fn measure(input: &Input, is_kept: bool) -> ([f64; 6], [f64; 2]) {
    let options = Options {
        packing: Packing::Faithful,
        ..Options::default()
    };
    let mut samples: [Vec<f64>; 6] = Default::default();
    let mut warm = Warm::default();
    let mut per_pod = [0.0; 2];
    for call in 0..=CALLS {
        if !is_kept {
            warm = Warm::default();
        }
        let mut last = Instant::now();
        let (plan, work) = warm.faithful(&input.snapshot, &options, |step| {
            let now = Instant::now();
            for ((of, _), samples) in STEPS.iter().zip(&mut samples) {
                // The first call fills what is kept.
                if *of == step && call > 0 {
                    samples.push((now - last).as_secs_f64() * 1e3);
                }
            }
            last = now;
        });
        let pods = (plan.placed() + plan.unplaced.len()) as f64;
        per_pod = [work.probes, work.words].map(|count| count as f64 / pods);
    }
    let medians = samples.map(|mut samples| {
        samples.sort_unstable_by(f64::total_cmp);
        samples[samples.len() / 2]
    });
    (medians, per_pod)
}
