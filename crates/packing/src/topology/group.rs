//! How many pods of a kind are in each domain, and which domains that leaves to the next pod.

use model::object::{LabelSelector, Labels, Text};

use super::identity::Kind;
use crate::bitmap::{Bitmap, bits, has, positions, put};

/// Pods counted for one constraint.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) kind: Kind,
    pub(crate) namespaces: Vec<Text>,
    pub(crate) selector: Option<LabelSelector>,
    pub(crate) max_skew: i32,
    pub(crate) min_domains: Option<i32>,
    /// Position of the node filter; none when every node passes.
    pub(crate) filter: Option<u32>,
    pub(crate) counts: Counts,
}

/// Counts by domain.
#[derive(Debug, Clone)]
pub(crate) enum Counts {
    /// The domains are hosts.
    Hosts(HostCounts),
    /// The domains are values of a label.
    Labels(LabelCounts),
}

/// Counts per host, with the hosts that are full as sets.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostCounts {
    counts: Vec<u32>,
    /// Hosts at or above the first threshold, and at or above the one after it.
    pub(crate) above: [Bitmap; 2],
    pub(crate) len: [usize; 2],
    /// Counts on hosts that take no pods in this run.
    pub(crate) elsewhere: Vec<(Text, u32)>,
}

impl HostCounts {
    pub(crate) fn count(&self, host: usize) -> u32 {
        self.counts.get(host).copied().unwrap_or(0)
    }

    fn add(&mut self, host: usize, thresholds: [u32; 2], step: i32) {
        if self.counts.len() <= host {
            self.counts.resize(host + 1, 0);
        }
        let old = self.counts[host];
        let new = old.saturating_add_signed(step);
        self.counts[host] = new;
        for (at, threshold) in thresholds.into_iter().enumerate() {
            if old < threshold && new >= threshold {
                self.above[at].insert(host);
                self.len[at] += 1;
            } else if old >= threshold && new < threshold {
                self.above[at].remove(host);
                self.len[at] -= 1;
            }
        }
    }
}

/// Counts per value of a label.
#[derive(Debug, Clone)]
pub(crate) struct LabelCounts {
    /// Position of the label among the topology keys.
    pub(crate) key: usize,
    pub(crate) counts: Vec<i32>,
    /// Values that are domains at all.
    pub(crate) known: Box<[u64]>,
    /// Domains with pods.
    pub(crate) occupied: Box<[u64]>,
}

impl LabelCounts {
    pub(crate) fn new(key: usize, values: usize, words: usize) -> Self {
        Self {
            key,
            counts: vec![0; values],
            known: vec![0; words].into_boxed_slice(),
            occupied: vec![0; words].into_boxed_slice(),
        }
    }

    pub(crate) fn register(&mut self, domain: usize) {
        put(&mut self.known, domain);
    }

    /// Domains that exist, with pods or without.
    pub(crate) fn register_all(&mut self, domains: &[u64]) {
        self.known
            .iter_mut()
            .zip(domains)
            .for_each(|(known, more)| *known |= more);
    }

    fn add(&mut self, domain: usize, step: i32) {
        put(&mut self.known, domain);
        self.counts[domain] += step;
        let bit = 1 << (domain % 64);
        if self.counts[domain] > 0 {
            self.occupied[domain / 64] |= bit;
        } else {
            self.occupied[domain / 64] &= !bit;
        }
    }
}

impl Group {
    /// Whether the constraint's selector picks a pod.
    pub(crate) fn selects(&self, namespace: &Text, labels: &Labels) -> bool {
        self.namespaces.contains(namespace)
            && self
                .selector
                .as_ref()
                .is_some_and(|selector| super::bound::selects(selector, labels))
    }

    /// Counts a pod on a host that takes no pods in this run.
    pub(crate) fn add_elsewhere(&mut self, host: &Text, step: i32) {
        let Counts::Hosts(hosts) = &mut self.counts else {
            return;
        };
        match hosts.elsewhere.iter_mut().find(|(name, _)| name == host) {
            Some((_, count)) => *count = count.saturating_add_signed(step),
            None => hosts.elsewhere.push((host.clone(), 1)),
        }
    }

    /// Counts a pod on a host.
    pub(crate) fn add_host(&mut self, host: usize, step: i32) {
        let first = match self.kind {
            Kind::Spread => u32::try_from(self.max_skew).unwrap_or(0),
            _ => 1,
        };
        if let Counts::Hosts(hosts) = &mut self.counts {
            hosts.add(host, [first, first + 1], step);
        }
    }

    /// Counts a pod in a domain of a label.
    pub(crate) fn add_domain(&mut self, domain: usize, step: i32) {
        if let Counts::Labels(labels) = &mut self.counts {
            labels.add(domain, step);
        }
    }

    /// The least count over the domains a pod could be in.
    pub(crate) fn least(&self, labels: &LabelCounts, pod: &[u64]) -> i32 {
        let (mut least, mut supported) = (i32::MAX, 0);
        for (at, (known, pod)) in labels.known.iter().zip(pod).enumerate() {
            for bit in bits(known & pod) {
                supported += 1;
                least = least.min(labels.counts[at * 64 + bit]);
            }
        }
        if self.min_domains.is_some_and(|wanted| supported < wanted) {
            0
        } else {
            least
        }
    }

    /// Keeps in `chosen` the domains of least count among these.
    pub(crate) fn keep_emptiest<I: Iterator<Item = u64>>(
        labels: &LabelCounts,
        among: impl Fn() -> I,
        chosen: &mut [u64],
    ) {
        let count = |at: usize, bit: usize| labels.counts[at * 64 + bit];
        let counts = among()
            .enumerate()
            .flat_map(|(at, word)| bits(word).map(move |bit| count(at, bit)));
        let Some(least) = counts.min() else { return };
        for (at, (word, chosen)) in among().zip(chosen.iter_mut()).enumerate() {
            let emptiest = bits(word).filter(|bit| count(at, *bit) == least);
            *chosen &= emptiest.fold(0, |mask, bit| mask | 1 << bit);
        }
    }

    /// Whether no pod is counted anywhere a pod with these domains could be.
    pub(crate) fn is_first(labels: &LabelCounts, pod: &[u64]) -> bool {
        !crate::bitmap::intersects(&labels.occupied, pod)
    }
}

/// Domain names with their counts, for messages.
pub(crate) fn listed(labels: &LabelCounts) -> impl Iterator<Item = (usize, i32)> + '_ {
    positions(&labels.known)
        .filter(|domain| has(&labels.known, *domain))
        .map(|domain| (domain, labels.counts[domain]))
}
