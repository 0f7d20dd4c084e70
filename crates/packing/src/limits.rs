//! What a NodePool may still launch.

use model::{
    quantity::Quantity,
    resources::{ResourceList, ResourceName},
};

use crate::{
    bitmap::is_empty,
    index::{Index, Mask},
    lanes,
    problem::TemplateEntry,
};

/// What a NodePool's limits leave while a run goes on.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    remaining: Option<Vec<(ResourceName, i64)>>,
    /// How many claims are to share that.
    parts: i64,
    /// The rows within limits, as of the last change.
    open: Mask,
    reached: Option<LimitReached>,
}

/// Why a NodePool launches nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// No node is left.
    Nodes,
    /// Every instance type is too large for what is left.
    Resources,
}

impl Limits {
    pub(crate) fn new(template: &TemplateEntry, index: &Index) -> Self {
        let mut limits = Self {
            remaining: template.remaining.clone(),
            parts: 1,
            open: template.rows.clone(),
            reached: None,
        };
        limits.refresh(template, index);
        limits
    }

    /// The rows within limits.
    pub(crate) fn open(&self) -> Result<&Mask, LimitReached> {
        match self.reached {
            Some(reached) => Err(reached),
            None => Ok(&self.open),
        }
    }

    /// Takes over what another leaves.
    pub(crate) fn restore(&mut self, other: &Self) {
        if let (Some(mine), Some(theirs)) = (&mut self.remaining, &other.remaining) {
            let amounts = mine.iter_mut().zip(theirs);
            amounts.for_each(|((_, mine), (_, theirs))| *mine = *theirs);
        }
        self.open.copy_from_slice(&other.open);
        (self.parts, self.reached) = (other.parts, other.reached);
    }

    /// As if there were none.
    pub(crate) fn lift(&mut self, template: &TemplateEntry) {
        (self.remaining, self.reached) = (None, None);
        self.open.copy_from_slice(&template.rows);
    }

    /// From now on so many claims share what is left: none becomes a machine larger than its part, unless none is that small.
    pub(crate) fn share(&mut self, parts: i64, template: &TemplateEntry, index: &Index) {
        self.parts = parts.max(1);
        self.refresh(template, index);
    }

    /// What is left of each limited resource, in lane units; none without limits.
    pub(crate) fn remaining(&self) -> Option<&[(ResourceName, i64)]> {
        self.remaining.as_deref()
    }

    /// Takes off the largest node a new claim may become, resource by resource. Instance types have no `nodes`, so a
    /// limit on nodes is not taken off: upstream may overshoot it within one run, and checks again when it creates.
    pub(crate) fn take(&mut self, rows: &[u64], template: &TemplateEntry, index: &Index) {
        let Some(remaining) = &mut self.remaining else { return };
        for (name, left) in remaining.iter_mut() {
            let largest = index.capacity(name).and_then(|column| column.largest(rows));
            *left = left.saturating_sub(largest.unwrap_or(0));
        }
        self.parts = (self.parts - 1).max(1);
        self.refresh(template, index);
    }

    /// Gives back what a node that goes away takes of the limits.
    pub(crate) fn give_back(&mut self, capacity: &ResourceList, template: &TemplateEntry, index: &Index) {
        let Some(remaining) = &mut self.remaining else { return };
        for (name, left) in remaining.iter_mut() {
            let freed = match name {
                ResourceName::Nodes => lanes::offered(name, Quantity::from_units(1)),
                _ => lanes::offered(name, capacity.amount(name.as_str())),
            };
            *left = left.saturating_add(freed);
        }
        self.refresh(template, index);
    }

    fn refresh(&mut self, template: &TemplateEntry, index: &Index) {
        let Some(remaining) = &self.remaining else { return };
        if remaining
            .iter()
            .any(|(name, left)| *name == ResourceName::Nodes && *left == 0)
        {
            self.reached = Some(LimitReached::Nodes);
            return;
        }
        let open = &mut self.open;
        keep_within(remaining, self.parts, open, template, index);
        if self.parts > 1 && is_empty(open) {
            keep_within(remaining, 1, open, template, index);
        }
        self.reached = is_empty(open).then_some(LimitReached::Resources);
    }
}

/// Keeps the rows of machines no larger than a part of what is left.
fn keep_within(
    remaining: &[(ResourceName, i64)],
    parts: i64,
    open: &mut Mask,
    template: &TemplateEntry,
    index: &Index,
) {
    open.copy_from_slice(&template.rows);
    for (name, left) in remaining {
        match index.capacity(name) {
            // Something is overdrawn: nothing may be added, not even what has none of it.
            _ if *left < 0 => open.fill(0),
            Some(column) => column.keep_at_most(*left / parts, open),
            None => {}
        }
    }
}
