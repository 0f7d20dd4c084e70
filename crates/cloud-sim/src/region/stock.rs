//! Which offers can be had now, and what is wrong with what is sold?

use cloud::CloudError;
use jiff::Timestamp;
use model::resources::ResourceList;

use super::{Defect, Inner};
use crate::{Chance, Scope, market::Offer};

impl Inner {
    /// The cheapest offer that can be had; otherwise which ones could not, and why.
    pub(super) fn first_in_stock<'a>(
        &mut self,
        offers: &[Offer<'a>],
        quota: Option<u64>,
        now: Timestamp,
    ) -> Result<Offer<'a>, CloudError> {
        self.short.retain(|(_, until)| *until > now);
        let mut refused = Vec::new();
        for offer in offers {
            match self.why_short(offer, quota) {
                None => {
                    self.take(offer);
                    return Ok(*offer);
                }
                Some(reason) => refused.push(offer.unavailable(reason)),
            }
        }
        // A fleet request names so many; that it fails for want of all of them is what a caller can learn.
        refused.truncate(60);
        let message = match refused.first() {
            Some(first) => format!(
                "all requested instance types were unavailable during launch ({})",
                first.reason
            ),
            None => "no instance type satisfied the requirements".to_owned(),
        };
        Err(CloudError::InsufficientCapacity {
            message,
            offerings: refused,
        })
    }

    pub(super) fn why_short(&self, offer: &Offer<'_>, quota: Option<u64>) -> Option<&'static str> {
        let is_it = |scope: &Scope| scope.includes(offer.described.name.as_str(), offer.zone, offer.capacity_type);
        let cores = |resources: &ResourceList| u64::try_from(resources.amount("cpu").value()).unwrap_or(0);
        if self.short.iter().any(|(scope, _)| is_it(scope))
            || self.stock.iter().any(|(scope, left)| *left == 0 && is_it(scope))
        {
            return Some("InsufficientInstanceCapacity");
        }
        let running = || -> u64 { self.machines.values().map(|it| cores(&it.launched.capacity)).sum() };
        let is_over = quota.is_some_and(|quota| running() + cores(&offer.described.capacity) > quota);
        is_over.then_some("VcpuLimitExceeded")
    }

    pub(super) fn take(&mut self, offer: &Offer<'_>) {
        for (scope, left) in &mut self.stock {
            if scope.includes(offer.described.name.as_str(), offer.zone, offer.capacity_type) {
                *left = left.saturating_sub(1);
            }
        }
    }

    pub(super) fn defect(&mut self, chance: Chance, offer: &Offer<'_>, thing: &str, now: Timestamp) -> Option<Defect> {
        self.batches.retain(|batch| batch.until > now);
        let struck = self.batches.iter().find(|batch| {
            let (name, zone) = (offer.described.name.as_str(), offer.zone);
            batch.scope.includes(name, zone, offer.capacity_type) && chance.of("defect", thing).happens(batch.per_mille)
        });
        struck.map(|batch| batch.defect)
    }
}
