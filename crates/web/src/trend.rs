//! How did it come here? Points of the recent past, as many as a chart can show; the older they get, the farther apart.

use std::collections::{BTreeMap, VecDeque};

use insight::Dollars;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// A moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Point {
    /// When.
    pub(crate) at: Timestamp,
    /// What an hour cost.
    pub(crate) spend_usd_h: Dollars,
    /// By pool.
    pub(crate) pools: BTreeMap<String, Dollars>,
    /// Machines.
    pub(crate) nodes: usize,
    /// Pods that waited for a node.
    pub(crate) pending: usize,
    /// What it could not cost less than, where that was worked out.
    pub(crate) bound_usd_h: Option<Dollars>,
    /// What the same pods cost on demand and each alone, where that was worked out.
    pub(crate) baseline_usd_h: Option<Dollars>,
}

/// Points that are kept.
const MOST: usize = 240; // of six minutes: a day
/// How near to each other points are at first.
const FIRST_STEP: SignedDuration = SignedDuration::from_secs(5);
/// How far they are apart at most: a day then fits.
const LAST_STEP: SignedDuration = SignedDuration::from_mins(6);

/// The recent past.
#[derive(Debug)]
pub(crate) struct Trend {
    points: VecDeque<Point>,
    step: SignedDuration,
}

impl Default for Trend {
    fn default() -> Self {
        Self {
            points: VecDeque::new(),
            step: FIRST_STEP,
        }
    }
}

impl Trend {
    /// Takes a point in. One that is nearer than a step to the last one but one stands in for the last, so that the end
    /// is always now.
    pub(crate) fn push(&mut self, mut point: Point) {
        if self.points.back().is_some_and(|last| last.at > point.at) {
            // Another cluster, or a clock that was set back.
            self.points.clear();
            self.step = FIRST_STEP;
        }
        if let Some(last) = self.points.back() {
            // They change slowly, and are worked out seldom.
            point.bound_usd_h = point.bound_usd_h.or(last.bound_usd_h);
            point.baseline_usd_h = point.baseline_usd_h.or(last.baseline_usd_h);
        }
        let before = self.points.len().checked_sub(2).and_then(|at| self.points.get(at));
        if before.is_some_and(|before| point.at.duration_since(before.at) < self.step) {
            self.points.pop_back();
        }
        self.points.push_back(point);
        if self.points.len() > MOST {
            self.thin();
        }
    }

    fn thin(&mut self) {
        if self.step >= LAST_STEP {
            self.points.pop_front();
            return;
        }
        self.step = (self.step * 2).min(LAST_STEP);
        // The last stays: it is now. So does the first, until a day has passed.
        let last = self.points.len() - 1;
        let mut at = 0;
        self.points.retain(|_| {
            let stays = at % 2 == 0 || at == last;
            at += 1;
            stays
        });
    }

    /// Oldest first.
    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> {
        self.points.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(second: i64) -> Point {
        Point {
            at: Timestamp::from_second(second).unwrap(),
            spend_usd_h: Dollars(second.into()),
            pools: BTreeMap::new(),
            nodes: 0,
            pending: 0,
            bound_usd_h: None,
            baseline_usd_h: None,
        }
    }

    #[test]
    fn a_day_of_points_stays_bounded_and_reaches_back_a_day() {
        let mut trend = Trend::default();
        for second in (0..3 * 86_400).step_by(2) {
            trend.push(point(second));
            assert!(trend.points.len() <= MOST);
        }
        let (first, last) = (trend.points.front().unwrap(), trend.points.back().unwrap());
        assert_eq!(last.at.as_second(), 3 * 86_400 - 2, "the end is now");
        let reach = last.at.duration_since(first.at);
        assert!(reach >= SignedDuration::from_hours(23), "{reach:?}");
        assert!(reach <= SignedDuration::from_hours(25), "{reach:?}");
    }

    #[test]
    fn the_first_minutes_are_kept_from_the_beginning() {
        let mut trend = Trend::default();
        for second in 0..3600 {
            trend.push(point(second));
        }
        assert_eq!(trend.points.front().unwrap().at.as_second(), 0);
        let times: Vec<i64> = trend.points().map(|point| point.at.as_second()).collect();
        assert!(times.is_sorted() && times.len() > MOST / 2);
    }

    #[test]
    fn what_is_seldom_worked_out_is_carried_on() {
        let mut trend = Trend::default();
        let mut known = point(0);
        known.bound_usd_h = Some(Dollars(7));
        trend.push(known);
        trend.push(point(60));
        assert_eq!(trend.points.back().unwrap().bound_usd_h, Some(Dollars(7)));
    }

    #[test]
    fn a_clock_that_is_set_back_begins_anew() {
        let mut trend = Trend::default();
        trend.push(point(100));
        trend.push(point(50));
        assert_eq!(trend.points.len(), 1);
    }
}
