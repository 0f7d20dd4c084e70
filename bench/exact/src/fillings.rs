//! All ways to fill a node, of which no other is better: what an exact solver chooses from.

use packing::cost::{Amounts, Problem};

/// Pods on a node: one count per class, and the cheapest node that holds them.
#[derive(Debug, Clone)]
pub struct Filling {
    /// Pods per class.
    pub pods: Vec<u32>,
    /// Pico-dollars per hour.
    pub price: u64,
}

/// Every filling to which no pod can be added, for every offer.
pub fn all(problem: &Problem) -> Vec<Filling> {
    let mut found = Vec::new();
    for (at, offer) in (0..).zip(problem.offers.iter()) {
        let open = |class: usize| problem.reaches[problem.classes[class].reach].offers.contains(at);
        let mut search = Search {
            problem,
            open: (0..problem.classes.len()).filter(|&class| open(class)).collect(),
            price: offer.price,
            pods: vec![0; problem.classes.len()],
            groups: vec![0; problem.groups.len()],
            found: &mut found,
        };
        search.extend(0, offer.allocatable);
    }
    cheapest(found)
}

struct Search<'a> {
    problem: &'a Problem,
    open: Vec<usize>,
    price: u64,
    pods: Vec<u32>,
    groups: Vec<u32>,
    found: &'a mut Vec<Filling>,
}

impl Search<'_> {
    fn extend(&mut self, position: usize, free: Amounts) {
        let Some(&class) = self.open.get(position) else {
            if self.open.iter().all(|&class| self.room(class, &free) == 0) {
                let pods = self.pods.clone();
                self.found.push(Filling { pods, price: self.price });
            }
            return;
        };
        let problem = self.problem;
        let it = &problem.classes[class];
        for count in 0..=self.room(class, &free) {
            let mut rest = free;
            rest.take(&it.requests, count);
            self.pods[class] = count;
            it.groups.iter().for_each(|group| self.groups[*group] += count);
            self.extend(position + 1, rest);
            it.groups.iter().for_each(|group| self.groups[*group] -= count);
        }
        self.pods[class] = 0;
    }

    /// How many more pods of a class the node takes.
    fn room(&self, class: usize, free: &Amounts) -> u32 {
        let it = &self.problem.classes[class];
        let by_group = it.groups.iter().map(|group| self.problem.groups[*group].max - self.groups[*group]);
        let by_count = it.count - self.pods[class];
        by_group.fold(it.requests.times_in(free).min(by_count), u32::min)
    }
}

/// Of equal fillings the cheapest.
fn cheapest(mut found: Vec<Filling>) -> Vec<Filling> {
    found.sort_by(|a, b| (&a.pods, a.price).cmp(&(&b.pods, b.price)));
    found.dedup_by(|a, b| a.pods == b.pods);
    found.retain(|filling| filling.pods.iter().any(|count| *count > 0));
    found
}
