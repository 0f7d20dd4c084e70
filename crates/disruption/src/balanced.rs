//! Is a move worth the disturbance? The policy Balanced, in whole numbers.

use std::collections::BTreeMap;

use model::{object::NodePoolName, price::Price};

use crate::{
    candidate::Candidate,
    command::{PoolScore, Saving},
    cost::Cost,
    method::Method,
    world::World,
};

/// A move must save at least half the share of the cost that it has of the disturbance.
const K: i128 = 2;
const BALANCED: &str = "Balanced";

/// What the pools have in all: the denominators.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pools: BTreeMap<NodePoolName, (Price, Cost)>,
    balanced: BTreeMap<NodePoolName, bool>,
}

impl Totals {
    /// Over all nodes, by what the candidates of a class cost; pools without a candidate have none.
    pub(crate) fn of(world: &World<'_>, method: Method) -> Self {
        let candidates = world.candidates(method.class());
        let candidates: Vec<&Candidate> = candidates.iter().filter_map(|found| found.as_ref().ok()).collect();
        let mut fallback: BTreeMap<NodePoolName, Price> = BTreeMap::new();
        for candidate in &candidates {
            let sum = fallback.entry(candidate.node_pool.clone()).or_default();
            *sum = *sum + candidate.price;
        }
        let is_balanced = |pool: &NodePoolName| {
            let pool = world.pool(pool);
            pool.is_some_and(|pool| *pool.spec.disruption.consolidation_policy == *BALANCED)
        };
        let balanced: BTreeMap<NodePoolName, bool> =
            fallback.keys().map(|pool| (pool.clone(), is_balanced(pool))).collect();
        if !balanced.values().any(|is_balanced| *is_balanced) {
            return Self::default();
        }
        let known: BTreeMap<_, _> = candidates
            .iter()
            .map(|candidate| (&candidate.node, candidate))
            .collect();
        let mut costs: BTreeMap<NodePoolName, Cost> = BTreeMap::new();
        for machine in &world.machines {
            let Some(pool) = machine
                .node_pool()
                .filter(|pool| balanced.get(pool).copied().unwrap_or(false))
            else {
                continue;
            };
            let cost = match known.get(&machine.name) {
                Some(candidate) => candidate.reschedule_cost,
                None => machine.tracked_cost(world.gates()),
            };
            let sum = costs.entry(pool).or_default();
            *sum = *sum + cost;
        }
        let pools = fallback.into_iter().map(|(pool, fallback)| {
            let tracked = world.facts.pool_costs.get(&pool).copied();
            let price = tracked.filter(|price| *price > Price::ZERO).unwrap_or(fallback);
            let cost = costs.get(&pool).copied().unwrap_or_default();
            (pool, (price, cost))
        });
        Self {
            pools: pools.collect(),
            balanced,
        }
    }

    fn is_balanced(&self, pool: &NodePoolName) -> bool {
        self.balanced.get(pool).copied().unwrap_or(false)
    }

    /// How a move fares with each pool under the policy; empty when there is none.
    pub(crate) fn scores(&self, candidates: &[&Candidate], saving: Saving) -> Vec<PoolScore> {
        let whole: i128 = candidates
            .iter()
            .map(|candidate| i128::from(candidate.price.picos()))
            .sum();
        let mut by_pool: BTreeMap<&NodePoolName, (i128, Cost)> = BTreeMap::new();
        for candidate in candidates {
            let (price, cost) = by_pool.entry(&candidate.node_pool).or_default();
            *price += i128::from(candidate.price.picos());
            *cost = *cost + candidate.reschedule_cost;
        }
        let is_spread = by_pool.len() > 1 && whole > 0;
        let scored = by_pool.into_iter().filter(|(pool, _)| self.is_balanced(pool));
        scored
            .map(|(pool, (price, cost))| {
                let share = if is_spread { saving.0 * price / whole } else { saving.0 };
                self.score(pool, share, cost)
            })
            .collect()
    }

    /// Whether even the best that can be, going without a replacement, would be worth it.
    pub(crate) fn may_pass(&self, candidate: &Candidate) -> bool {
        let is_known = self
            .pools
            .get(&candidate.node_pool)
            .is_some_and(|(price, _)| *price > Price::ZERO);
        if !self.is_balanced(&candidate.node_pool) || !is_known {
            return true;
        }
        let saving = i128::from(candidate.price.picos());
        self.score(&candidate.node_pool, saving, candidate.reschedule_cost)
            .is_approved
    }

    fn score(&self, pool: &NodePoolName, saving: i128, cost: Cost) -> PoolScore {
        let (price, costs) = self.pools.get(pool).copied().unwrap_or_default();
        let (price, costs) = (i128::from(price.picos()), i128::from(costs.units()));
        let cost = i128::from(cost.units());
        // saving / price >= cost / costs / K, without dividing.
        let is_worth_it = price > 0
            && costs > 0
            && saving > 0
            && saving.saturating_mul(costs).saturating_mul(K) >= price.saturating_mul(cost);
        PoolScore {
            pool: pool.clone(),
            saving: (saving, price),
            disruption: (cost, costs),
            is_approved: is_worth_it,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What so many ordinary pods cost.
    fn pods(count: usize) -> Cost {
        std::iter::repeat_n(Cost::NODE, count).sum()
    }

    fn picos(dollars: &str) -> i128 {
        let (sign, dollars) = dollars.strip_prefix('-').map_or((1, dollars), |dollars| (-1, dollars));
        sign * i128::from(dollars.parse::<Price>().unwrap().picos())
    }

    /// How a move fares in a pool that costs and disturbs so much.
    fn scored(saving: &str, disruption: usize, (cost, disturbance): (&str, usize)) -> (String, bool) {
        let pool = NodePoolName::from("p");
        let totals = Totals {
            pools: [(pool.clone(), (cost.parse().unwrap(), pods(disturbance)))].into(),
            balanced: [(pool.clone(), true)].into(),
        };
        let score = totals.score(&pool, picos(saving), pods(disruption));
        let message = score.message();
        let number = message.split(' ').nth(1).unwrap_or_default().to_owned();
        (number, score.is_approved)
    }

    #[test]
    fn a_move_is_worth_it_from_half_its_share_of_the_disturbance_on() {
        // Ten nodes and eighty pods: the example of upstream's design.
        let ten = ("58.08", 90);
        let cases = [
            (("7.26", 4, ten), ("2.81", true)),
            (("4.84", 5, ten), ("1.50", true)),
            (("2.42", 9, ten), ("0.42", false)),
            (("0", 11, ten), ("0.00", false)),
            // A uniform pool, exactly at the threshold.
            (("2.42", 9, ("48.40", 90)), ("0.50", true)),
            // The same saving, few pods and many.
            (("4.84", 5, ("58.08", 117)), ("1.95", true)),
            (("4.84", 32, ("58.08", 117)), ("0.30", false)),
            // Ten times the pool.
            (("7.26", 4, ("580.80", 900)), ("2.81", true)),
            // The same shares of pools of different prices.
            (("4.84", 4, ("48.40", 90)), ("2.25", true)),
            (("1.45", 4, ("14.50", 90)), ("2.25", true)),
            // Nothing of something.
            (("4.84", 0, ten), ("+Inf", true)),
            (("0", 0, ten), ("0.00", false)),
            (("4.84", 5, ("0", 90)), ("0.00", false)),
        ];
        for ((saving, disruption, totals), (score, is_approved)) in cases {
            let found = scored(saving, disruption, totals);
            assert_eq!(
                found,
                (score.to_owned(), is_approved),
                "{saving} for {disruption} of {totals:?}"
            );
        }
    }

    #[test]
    fn scores_follow_savings_and_disturbance() {
        let cases = [
            (("20", 5), ("4.00", true)),
            (("10", 10), ("1.00", true)),
            (("5", 50), ("0.10", false)),
            (("10", 0), ("+Inf", true)),
            (("0", 10), ("0.00", false)),
            (("-5", 10), ("0.00", false)),
        ];
        for ((saving, disruption), (score, is_approved)) in cases {
            let found = scored(saving, disruption, ("100", 100));
            assert_eq!(found, (score.to_owned(), is_approved), "{saving} for {disruption}");
        }
    }

    #[test]
    fn a_pool_nobody_has_totals_of_approves_nothing() {
        let pool = NodePoolName::from("p");
        let score = Totals::default().score(&pool, picos("4.84"), pods(2));
        assert!(
            !score.is_approved && score.message().starts_with("score 0.00"),
            "{}",
            score.message()
        );
    }
}
