//! The lists of all screens: what is in them, in which order, and which line the cursor is on.

use ledger::Record;

use super::{App, Screen};
use crate::{filter::Filter, listing::Listing, picture::Row};

impl App {
    /// Makes every list anew from what is known; cursors stay on their objects.
    pub(crate) fn relist(&mut self) {
        let Some(picture) = self.picture.clone() else {
            return;
        };
        let ahead = self.ahead.clone();
        let filter = Filter::read(&self.filters[0]);
        let nodes = &mut self.nodes;
        nodes.listing = Listing::of(&picture, ahead.as_deref(), &filter, &nodes.sort, nodes.group);
        nodes.cursor.settle(nodes.listing.names(&picture));
        nodes.marked.retain(|name| picture.row(name).is_some());
        self.pools.settle(picture.pools.iter().map(|pool| pool.name.as_str()));
        if let Some(ahead) = &ahead {
            let filter = Filter::read(&self.filters[1]);
            let takes = |at: &usize| {
                let pod = &ahead.waiting[*at];
                filter.takes_text(&[&pod.pod, &pod.stops_at, &pod.workload, &pod.message])
            };
            let (shown, cursor) = &mut self.pending;
            *shown = (0..ahead.waiting.len()).filter(takes).collect();
            cursor.settle(shown.iter().map(|at| ahead.waiting[*at].pod.as_str()));
            let lines = self.plan_names();
            self.plan.settle(lines.iter().map(String::as_str));
        }
        if let Screen::Node(name) = self.screen() {
            let pods = picture.pods_of(name);
            self.pods.1.settle(pods.iter().map(|pod| pod.pod.as_str()));
            self.pods.0 = pods;
        }
        self.relist_decisions();
    }

    /// Takes in all decisions there are.
    pub(super) fn decided(&mut self, mut records: Vec<Record>) {
        records.sort_by_key(|record| std::cmp::Reverse((record.time, record.id)));
        self.timeline.records = records;
        self.timeline.note.clear();
        self.relist_decisions();
    }

    pub(super) fn relist_decisions(&mut self) {
        let filter = Filter::read(&self.filters[2]);
        let until = self.picture.as_ref().map(|picture| picture.taken_at);
        let timeline = &mut self.timeline;
        let newest = timeline.records.first().map(|record| record.time);
        let Some(end) = until.max(newest) else {
            return;
        };
        let age = |record: &Record| end.duration_since(record.time.max(record.last_seen)).as_secs();
        let takes = |record: &Record| {
            let (age, word) = (age(record), record.word());
            age >= timeline.back_s
                && age <= timeline.back_s + timeline.span_s
                && timeline.narrowed.takes(record)
                && filter.takes_text(&[
                    word,
                    &record.reason,
                    &record.pool,
                    &record.detail,
                    &record.id.to_string(),
                    &crate::draw::what(record),
                ])
        };
        let records = timeline.records.iter().enumerate();
        timeline.shown = records.filter(|(_, record)| takes(record)).map(|(at, _)| at).collect();
        let names: Vec<String> = timeline
            .shown
            .iter()
            .map(|at| timeline.records[*at].id.to_string())
            .collect();
        timeline.cursor.settle(names.iter().map(String::as_str));
    }

    /// What lines of the plan are called.
    pub(crate) fn plan_names(&self) -> Vec<String> {
        let Some(ahead) = &self.ahead else {
            return Vec::new();
        };
        let outlook = &ahead.outlook;
        let moves = outlook.moves.iter().map(|step| step.id.clone());
        let kept = outlook.waits.iter().chain(&outlook.held).map(|kept| {
            let node = kept.targets.first().map(|target| target.node.clone());
            node.unwrap_or_default()
        });
        moves.chain(kept).collect()
    }

    /// The node that a line of the plan is about.
    pub(crate) fn planned_node(&self) -> Option<String> {
        let outlook = &self.ahead.as_ref()?.outlook;
        let at = self.plan.at;
        let targets = if let Some(step) = outlook.moves.get(at) {
            &step.targets
        } else {
            let at = at.checked_sub(outlook.moves.len())?;
            &outlook.waits.iter().chain(&outlook.held).nth(at)?.targets
        };
        targets.first().map(|target| target.node.clone())
    }

    /// The node under the cursor, or the one that is looked at.
    pub(crate) fn node_here(&self) -> Option<&Row> {
        let picture = self.picture.as_ref()?;
        match self.screen() {
            Screen::Nodes => picture.row(&self.nodes.cursor.name),
            Screen::Node(name) => picture.row(name),
            Screen::Plan => picture.row(&self.planned_node()?),
            _ => None,
        }
    }

    /// The decision under the cursor.
    pub(crate) fn decision_here(&self) -> Option<&Record> {
        let at = self.timeline.shown.get(self.timeline.cursor.at)?;
        self.timeline.records.get(*at)
    }

    /// Moves the cursor of the screen on top.
    pub(super) fn move_by(&mut self, by: isize) {
        let Some(picture) = self.picture.clone() else {
            return;
        };
        match self.screen() {
            Screen::Nodes => {
                let nodes = &mut self.nodes;
                nodes.cursor.move_by(by, nodes.listing.names(&picture));
            }
            Screen::Pools | Screen::Cost => {
                self.pools
                    .move_by(by, picture.pools.iter().map(|pool| pool.name.as_str()));
            }
            Screen::Plan => {
                let names = self.plan_names();
                self.plan.move_by(by, names.iter().map(String::as_str));
            }
            Screen::Pending => {
                let (Some(ahead), (shown, cursor)) = (&self.ahead, &mut self.pending) else {
                    return;
                };
                cursor.move_by(by, shown.iter().map(|at| ahead.waiting[*at].pod.as_str()));
            }
            Screen::Timeline => {
                let timeline = &mut self.timeline;
                let names: Vec<String> = timeline
                    .shown
                    .iter()
                    .map(|at| timeline.records[*at].id.to_string())
                    .collect();
                timeline.cursor.move_by(by, names.iter().map(String::as_str));
            }
            Screen::Node(_) => {
                let (pods, cursor) = &mut self.pods;
                cursor.move_by(by, pods.iter().map(|pod| pod.pod.as_str()));
            }
            Screen::Text { .. } => self.scroll = self.scroll.saturating_add_signed(by),
        }
    }
}
