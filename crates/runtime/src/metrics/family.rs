//! One metric with its series: a value for each set of label values.
//!
//! Series lie sorted in a vector, so counting in a series that exists allocates nothing, and what is shown is always in
//! the same order. Families whose series would be as many as there are pods or nodes are [`Drawn`] instead: nothing of
//! them is kept, they are written when somebody asks.

use std::{
    borrow::Cow,
    cmp::Ordering,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{observations::Observations, page::Sheet, quantiles::Quantiles, text};
use crate::settings::MetricsProfile;

/// What sort of metric a family is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations by size.
    Histogram,
    /// Quantiles of observations.
    Summary,
}

impl Kind {
    /// As the text format says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Summary => "summary",
        }
    }
}

/// What a family is: its name, what it means, and how its series are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it means.
    pub help: &'static str,
    /// What sort it is.
    pub kind: Kind,
    /// Its labels, in the order in which values are given.
    pub labels: Vec<Cow<'static, str>>,
    /// The smallest profile that shows it.
    pub profile: MetricsProfile,
    /// Positions of the labels in the order in which they are written: by name.
    order: Vec<usize>,
}

impl About {
    /// A description.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        help: &'static str,
        kind: Kind,
        labels: Vec<Cow<'static, str>>,
        profile: MetricsProfile,
    ) -> Self {
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.sort_by(|one, two| labels.get(*one).cmp(&labels.get(*two)));
        Self {
            name: name.into(),
            help,
            kind,
            labels,
            profile,
            order,
        }
    }

    /// Writes a sample of a series.
    pub fn sample<S: AsRef<str>>(&self, out: &mut String, values: &[S], value: f64) {
        self.part(out, "", values, None, value);
    }

    /// Writes one of the samples that a histogram or a summary has for a series.
    pub(super) fn part<S: AsRef<str>>(
        &self,
        out: &mut String,
        suffix: &str,
        values: &[S],
        extra: Option<(&str, &str)>,
        value: f64,
    ) {
        let pair = |at: &usize| Some((self.labels.get(*at)?.as_ref(), values.get(*at)?.as_ref()));
        let labels = self.order.iter().filter_map(pair).chain(extra);
        text::sample(out, &self.name, suffix, labels, value);
    }
}

/// A value that a family can show.
pub trait Shown {
    /// Writes its samples.
    fn show(&self, about: &About, values: &[Box<str>], out: &mut String);
}

impl Shown for f64 {
    fn show(&self, about: &About, values: &[Box<str>], out: &mut String) {
        about.sample(out, values, *self);
    }
}

/// The label values of a series, and what it shows.
type Row<V> = (Box<[Box<str>]>, V);

/// A family of which every series is kept.
#[derive(Debug)]
pub struct Family<V> {
    about: About,
    rows: Mutex<Vec<Row<V>>>,
}

impl<V: Shown> Family<V> {
    /// A family without series.
    pub fn new(about: About) -> Self {
        let rows = Mutex::default();
        Self { about, rows }
    }

    /// What it is.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Changes a series, which is made first if there is none.
    pub fn change(&self, values: &[&str], fresh: impl FnOnce() -> V, change: impl FnOnce(&mut V)) {
        let mut rows = self.lock();
        let at = match find(&rows, values) {
            Ok(at) => at,
            Err(at) => {
                let key = values.iter().map(|value| Box::from(*value)).collect();
                rows.insert(at, (key, fresh()));
                at
            }
        };
        if let Some((_, value)) = rows.get_mut(at) {
            change(value);
        }
    }

    /// Looks at a series.
    pub fn read<R>(&self, values: &[&str], look: impl FnOnce(&V) -> R) -> Option<R> {
        let rows = self.lock();
        let at = find(&rows, values).ok()?;
        rows.get(at).map(|(_, value)| look(value))
    }

    /// Takes away the series that do not meet a test of their label values.
    pub fn retain(&self, keep: impl Fn(&[Box<str>]) -> bool) {
        self.lock().retain(|(values, _)| keep(values));
    }

    /// What there is to show; none when there is no series.
    pub fn sheet(&self) -> Option<Sheet> {
        let mut text = String::new();
        for (values, value) in self.lock().iter() {
            value.show(&self.about, values, &mut text);
        }
        (!text.is_empty()).then(|| Sheet::of(self.about.clone(), text))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Row<V>>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<V>(rows: &[Row<V>], values: &[&str]) -> Result<usize, usize> {
    rows.binary_search_by(|(key, _)| compare(key, values))
}

fn compare(key: &[Box<str>], values: &[&str]) -> Ordering {
    key.iter().map(AsRef::as_ref).cmp(values.iter().copied())
}

impl Family<f64> {
    /// Adds to a series.
    pub fn add(&self, values: &[&str], amount: f64) {
        self.change(values, f64::default, |value| *value += amount);
    }
}

impl Family<Observations> {
    /// Counts one observation.
    pub fn observe(&self, values: &[&str], bounds: &'static [f64], value: f64) {
        self.change(values, || Observations::new(bounds), |seen| seen.observe(value));
    }
}

macro_rules! typed {
    ($($(#[$doc:meta])* $name:ident($value:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<const N: usize>(Family<$value>);

        impl<const N: usize> $name<N> {
            pub(super) fn new(name: &'static str, help: &'static str, labels: [&'static str; N], profile: MetricsProfile) -> Self {
                Self(Family::new(about(name, help, Kind::$name, labels, profile)))
            }

            pub(super) fn about(&self) -> &About {
                self.0.about()
            }

            pub(super) fn sheet(&self) -> Option<Sheet> {
                self.0.sheet()
            }
        }
    )*};
}

typed! {
    /// Only grows.
    Counter(f64);
    /// Goes up and down.
    Gauge(f64);
    /// Quantiles of observations.
    Summary(Quantiles);
}

fn about<const N: usize>(
    name: &'static str,
    help: &'static str,
    kind: Kind,
    labels: [&'static str; N],
    profile: MetricsProfile,
) -> About {
    About::new(name, help, kind, labels.map(Cow::from).to_vec(), profile)
}

impl<const N: usize> Counter<N> {
    /// Counts one more.
    pub fn inc(&self, values: [&str; N]) {
        self.add(values, 1.0);
    }

    /// Counts several more.
    pub fn add(&self, values: [&str; N], amount: f64) {
        self.0.add(&values, amount);
    }

    /// What a series shows.
    pub fn value(&self, values: [&str; N]) -> f64 {
        self.0.read(&values, |value| *value).unwrap_or_default()
    }
}

impl<const N: usize> Gauge<N> {
    /// Adds to a series.
    pub fn add(&self, values: [&str; N], amount: f64) {
        self.0.add(&values, amount);
    }

    /// Sets a series.
    pub fn set(&self, values: [&str; N], to: f64) {
        self.0.change(&values, f64::default, |value| *value = to);
    }

    /// What a series shows.
    pub fn value(&self, values: [&str; N]) -> f64 {
        self.0.read(&values, |value| *value).unwrap_or_default()
    }

    /// Takes a series away.
    pub fn remove(&self, values: [&str; N]) {
        self.0.retain(|known| compare(known, &values).is_ne());
    }

    /// Takes away the series that do not meet a test of their label values.
    pub fn retain(&self, keep: impl Fn(&[Box<str>; N]) -> bool) {
        self.0.retain(|values| values.try_into().is_ok_and(&keep));
    }
}

impl<const N: usize> Summary<N> {
    /// Counts one observation.
    pub fn observe(&self, values: [&str; N], value: f64) {
        self.0.change(&values, Quantiles::default, |seen| seen.observe(value));
    }
}

/// Counts observations by size.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    family: Family<Observations>,
    bounds: &'static [f64],
}

impl<const N: usize> Histogram<N> {
    pub(super) fn new(
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        profile: MetricsProfile,
        bounds: &'static [f64],
    ) -> Self {
        let family = Family::new(about(name, help, Kind::Histogram, labels, profile));
        Self { family, bounds }
    }

    /// Counts one observation.
    pub fn observe(&self, values: [&str; N], value: f64) {
        self.family.observe(&values, self.bounds, value);
    }

    /// How many observations a series has counted.
    pub fn count(&self, values: [&str; N]) -> u64 {
        self.family.read(&values, Observations::count).unwrap_or_default()
    }

    pub(super) fn about(&self) -> &About {
        self.family.about()
    }

    pub(super) fn sheet(&self) -> Option<Sheet> {
        self.family.sheet()
    }
}

/// A gauge of which nothing is kept: its samples are written when they are asked for, from what is then known.
#[derive(Debug)]
pub struct Drawn<const N: usize>(About);

impl<const N: usize> Drawn<N> {
    pub(super) fn new(
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        profile: MetricsProfile,
    ) -> Self {
        Self(about(name, help, Kind::Gauge, labels, profile))
    }

    /// What it is.
    pub fn about(&self) -> &About {
        &self.0
    }

    /// A sheet of these samples.
    pub fn sheet_of<S: AsRef<str>>(&self, samples: impl IntoIterator<Item = ([S; N], f64)>) -> Sheet {
        let mut text = String::new();
        for (values, value) in samples {
            self.0.sample(&mut text, &values, value);
        }
        Sheet::of(self.0.clone(), text)
    }

    #[expect(
        clippy::unused_self,
        reason = "every kind of family answers; this one has nothing of its own to show"
    )]
    pub(super) fn sheet(&self) -> Option<Sheet> {
        None
    }
}
