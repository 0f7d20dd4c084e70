//! One metric with its series: a number for each set of label values.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

type Series<const N: usize, V> = Mutex<BTreeMap<[Box<str>; N], V>>;

macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<const N: usize> {
            name: &'static str,
            help: &'static str,
            labels: [&'static str; N],
            series: Series<N, f64>,
        }

        impl<const N: usize> $name<N> {
            pub(super) fn new(name: &'static str, help: &'static str, labels: [&'static str; N]) -> Self {
                Self { name, help, labels, series: Mutex::default() }
            }

            /// Adds to a series.
            pub fn add(&self, values: [&str; N], amount: f64) {
                let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
                *series.entry(values.map(Into::into)).or_default() += amount;
            }

            /// What a series shows.
            pub fn value(&self, values: [&str; N]) -> f64 {
                let series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
                series.get(&values.map(Into::into)).copied().unwrap_or_default()
            }
        }
    )*};
}

plain! {
    /// Only grows.
    Counter;
    /// Goes up and down.
    Gauge;
}

impl<const N: usize> Counter<N> {
    /// Counts one more.
    pub fn inc(&self, values: [&str; N]) {
        self.add(values, 1.0);
    }
}

impl<const N: usize> Gauge<N> {
    /// Sets a series.
    pub fn set(&self, values: [&str; N], to: f64) {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        series.insert(values.map(Into::into), to);
    }

    /// Takes a series away.
    pub fn remove(&self, values: [&str; N]) {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        series.remove(&values.map(Into::into));
    }

    /// Takes away the series that do not meet a test of their label values.
    pub fn retain(&self, keep: impl Fn(&[Box<str>; N]) -> bool) {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        series.retain(|values, _| keep(values));
    }
}

/// Counts observations by size.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; N],
    buckets: &'static [f64],
    series: Series<N, Observations>,
}

/// Quantiles of observations.
#[derive(Debug)]
pub struct Summary<const N: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; N],
    series: Series<N, Observations>,
}

#[derive(Debug, Default)]
struct Observations {
    counts: Vec<u64>,
    sum: f64,
    count: u64,
}

impl<const N: usize> Histogram<N> {
    pub(super) fn new(
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        buckets: &'static [f64],
    ) -> Self {
        let series = Mutex::default();
        Self {
            name,
            help,
            labels,
            buckets,
            series,
        }
    }

    /// Counts one observation.
    pub fn observe(&self, values: [&str; N], value: f64) {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = series.entry(values.map(Into::into)).or_default();
        seen.counts.resize(self.buckets.len(), 0);
        for (count, bound) in seen.counts.iter_mut().zip(self.buckets) {
            *count += u64::from(value <= *bound);
        }
        seen.sum += value;
        seen.count += 1;
    }
}

impl<const N: usize> Summary<N> {
    pub(super) fn new(name: &'static str, help: &'static str, labels: [&'static str; N]) -> Self {
        let series = Mutex::default();
        Self {
            name,
            help,
            labels,
            series,
        }
    }

    /// Counts one observation.
    pub fn observe(&self, values: [&str; N], value: f64) {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = series.entry(values.map(Into::into)).or_default();
        seen.sum += value;
        seen.count += 1;
    }
}
