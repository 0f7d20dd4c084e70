//! What can no plan cost less than? A lower bound on the price of the nodes any plan must buy.
//!
//! # Why it is one
//!
//! Give each pod a value `v`, such that no node holds pods worth more than it costs. Then the pods on the nodes of any
//! plan are worth no more than those nodes cost; every pod is on some node; so the plan costs at least the sum of all
//! values. Room on nodes there are already costs nothing, so the most that fits there is taken off the sum.
//!
//! That no node holds more than it costs is shown per offer by prices for its resources. Take any prices `λ ≥ 0` per
//! unit. The pods `y` on a node obey `Σ y·requests ≤ allocatable`, and of one class there are at most `f`: what fits at
//! all, and what its groups allow. Hence
//!
//! ```text
//! Σ y·v  =  Σ y·(λ·requests) + Σ y·(v − λ·requests)  ≤  λ·allocatable + Σ f·max(0, v − λ·requests)  =  U(λ, v)
//! ```
//!
//! and for classes that share a group of at most `m` pods a node, the last sum may also be replaced by `m` times its
//! largest term without `f`. So `U(λ, v) ≤ price` for one `λ` per offer proves the values, whatever `λ` is: a poor choice
//! makes the bound weak, never wrong. Leaving constraints out (zones, limits, affinity) only allows more plans, so it
//! makes the bound lower, never wrong; so does leaving out offers that another offer beats in everything.
//!
//! Values may be mended instead of found: with `s = price / U(λ, v)` per offer, the values
//! `v' = min over offers of s·max(v, λ·requests)` obey every offer, because
//! `s·max(v, λ·requests) = s·(λ·requests + max(0, v − λ·requests))`.
//!
//! The search for `v` and `λ` uses floats. What counts is [`certificate`], which repeats the proof in integers.

mod ascent;
mod certificate;
mod need;
mod node;

use crate::cost::Problem;

/// Pico-dollars per hour that every plan for these pods costs at least; pods that fit no offer at all are left out.
///
/// `starts` are values per class to begin with, such as the passes learnt; the better they are, the higher the bound.
pub fn lower_bound(problem: &Problem, starts: &[Vec<f64>]) -> u64 {
    let needs = need::needs(problem);
    let market = node::Market::new(problem, &needs);
    let proof = ascent::ascend(&market, &needs, starts);
    certificate::certify(&market, &needs, &proof)
}

/// The same, and the part of it that each pod of a class has: in proportion to what the proof finds it worth.
#[expect(clippy::cast_precision_loss, reason = "parts are shown, not decided by")]
pub(crate) fn shared_lower_bound(problem: &Problem) -> (u64, Vec<f64>) {
    let needs = need::needs(problem);
    let market = node::Market::new(problem, &needs);
    let proof = ascent::ascend(&market, &needs, &[]);
    let total = certificate::certify(&market, &needs, &proof);
    let worth: f64 = needs
        .iter()
        .zip(&proof.values)
        .map(|(need, value)| need.count() as f64 * value)
        .sum();
    let scale = if worth > 0.0 { total as f64 / worth } else { 0.0 };
    let mut parts = vec![0.0; problem.classes.len()];
    for (need, value) in needs.iter().zip(&proof.values) {
        for (class, _) in &need.classes {
            parts[*class] = value * scale;
        }
    }
    (total, parts)
}
