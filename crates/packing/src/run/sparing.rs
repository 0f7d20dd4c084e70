//! Placing pods as upstream does, but so that claims leave each other room within the limits.
//!
//! A claim counts as the largest machine it may become. The first ones take all there is, only to have more types to choose
//! from, and pods that must not share a node with them have to wait until those machines are there and turn out small.

use std::collections::VecDeque;

use super::Run;
use crate::problem::Problem;

impl Run<'_> {
    /// How many claims of each template these pods need where nothing is limited, and how many pods have no place even so.
    pub(crate) fn without_limits(&mut self, queue: VecDeque<u32>) -> (Vec<i64>, usize) {
        let templates = &self.problem.templates;
        for (limits, template) in self.limits.iter_mut().zip(templates) {
            limits.lift(template);
        }
        let left = self.drain(queue);
        let mut claims = vec![0; templates.len()];
        for template in &self.claims.templates {
            claims[*template as usize] += 1;
        }
        (claims, left.len())
    }

    /// Places what can be placed with so many claims of each template sharing what is left, then the rest with all of it;
    /// returns the pods left over.
    pub(crate) fn drain_sparingly(&mut self, queue: VecDeque<u32>, claims: &[i64]) -> Vec<u32> {
        let problem = self.problem;
        self.share_limits(problem, |template| claims[template]);
        let left = self.drain(queue);
        self.share_limits(problem, |_| 1);
        self.memo.failures.clear();
        self.drain(left.into())
    }

    fn share_limits(&mut self, problem: &Problem, parts: impl Fn(usize) -> i64) {
        for (at, (limits, template)) in self.limits.iter_mut().zip(&problem.templates).enumerate() {
            limits.share(parts(at), template, &problem.index);
        }
    }
}
