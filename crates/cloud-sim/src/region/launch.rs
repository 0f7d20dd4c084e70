//! How does a claim get its machine, and what does that machine turn out to be?

use std::{sync::Arc, time::Duration};

use catalogue::Source;
use cloud::{CloudError, LaunchToken, Launched, UnavailableOfferings};
use jiff::Timestamp;
use model::{
    object::{Map, NodeClaim, ProviderId, Text},
    quantity::Quantity,
    requirement::Operator,
    resources::ResourceList,
};

use super::{Defect, Image, Inner, Region, after, gone};
use crate::{Machine, Phase, market::Offer};

impl Region {
    /// A machine that has been there before the story began, joined and ready: as if launched for this claim.
    pub fn adopt(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Arc<Machine>, CloudError> {
        let launched = self.launch(claim, token, &UnavailableOfferings::default())?;
        let now = self.now();
        let mut inner = self.lock();
        let id = ProviderId::from(&*launched.provider_id);
        let machine = inner.machines.get_mut(&id).ok_or_else(gone)?;
        (machine.phase, machine.is_ready) = (Phase::Joined, true);
        (machine.joins_at, machine.ready_at) = (Some(now), Some(now));
        machine.visible_from = now;
        Ok(Arc::new(machine.clone()))
    }

    /// Launches a machine for a claim, or says which one the same launch gave before.
    /// What the caller knows to be short is not asked for.
    pub(crate) fn launch(
        &self,
        claim: &NodeClaim,
        token: &LaunchToken,
        known: &UnavailableOfferings,
    ) -> Result<Launched, CloudError> {
        let now = self.now();
        let types = known.overlay(&self.types(), now);
        let mut inner = self.lock();
        inner.tick(now);
        if let Some(known) = inner.tokens.get(token) {
            return Ok(known.clone());
        }
        self.throttle(&mut inner, now)?;
        let offers = self.market.admitted(claim, &types);
        let offer = inner.first_in_stock(&offers, self.rules.quota_cpu, now)?;
        let launched = self.start(&mut inner, claim, token, &offer, now);
        drop(inner);
        self.changed.notify_one();
        Ok(launched)
    }

    fn throttle(&self, inner: &mut Inner, now: Timestamp) -> Result<(), CloudError> {
        const WINDOW: Duration = Duration::from_mins(1);
        let Some(most) = self.rules.launches_per_minute else {
            return Ok(());
        };
        while inner.recent.front().is_some_and(|at| after(*at, WINDOW) <= now) {
            inner.recent.pop_front();
        }
        let oldest = inner.recent.front().copied();
        if let Some(oldest) = oldest.filter(|_| inner.recent.len() >= usize::try_from(most).unwrap_or(usize::MAX)) {
            let wait = after(oldest, WINDOW).duration_since(now);
            return Err(CloudError::Throttled {
                message: "RequestLimitExceeded: Request limit exceeded.".to_owned(),
                retry_after: Duration::try_from(wait).ok(),
            });
        }
        inner.recent.push_back(now);
        Ok(())
    }

    fn start(
        &self,
        inner: &mut Inner,
        claim: &NodeClaim,
        token: &LaunchToken,
        offer: &Offer<'_>,
        now: Timestamp,
    ) -> Launched {
        inner.launched += 1;
        let other = inner
            .machines
            .values()
            .find(|it| it.is_staying() && *it.claim_uid() == token.claim);
        if let Some(other) = other {
            let double = format!(
                "NodeClaim {} was launched again as {token} while {} ran",
                claim.metadata.name, other.id
            );
            inner.doubles.push(double);
        }
        let thing = token.to_string();
        let (id, node_name) = self.names(claim, offer, inner.launched, &thing);
        let image = inner.image.clone().unwrap_or_else(|| Image {
            name: "image-1".to_owned(),
            defect: None,
        });
        let launched = describe(claim, &id, &image.name, offer);
        let defect = image.defect.or_else(|| inner.defect(self.chance, offer, &thing, now));
        let within =
            |question: &str, (least, most): (Duration, Duration)| self.chance.of(question, &thing).between(least, most);
        let joins_at = after(now, within("boot", self.rules.boot));
        let ready_at = after(joins_at, within("ready", self.rules.ready));
        let (capacity, allocatable) = truly(&launched, defect);
        let machine = Machine {
            id: id.clone(),
            node_name,
            claim: claim.name(),
            token: token.clone(),
            price: offer.offering.price,
            launched_at: now,
            phase: Phase::Booting,
            joins_at: (defect != Some(Defect::NeverJoins)).then_some(joins_at),
            ready_at: (defect != Some(Defect::NeverReady)).then_some(ready_at),
            is_ready: false,
            capacity,
            allocatable,
            launched: launched.clone(),
            visible_from: after(now, self.rules.read_lag),
        };
        inner.note(
            now,
            format!(
                "launch {id} {} {} {} for {} ({token})",
                machine.instance_type(),
                machine.zone(),
                machine.capacity_type(),
                machine.claim,
            ),
        );
        inner.machines.insert(id, machine);
        inner.tokens.insert(token.clone(), launched.clone());
        launched
    }

    /// The cloud's name for a machine, and its own.
    fn names(&self, claim: &NodeClaim, offer: &Offer<'_>, number: u64, thing: &str) -> (ProviderId, String) {
        let bits = self.chance.of("name", thing).number();
        match self.market.source() {
            Source::Aws => {
                let id = format!("aws:///{}/i-0{bits:016x}", offer.zone);
                let node = format!(
                    "ip-10-{}-{}-{}.ec2.internal",
                    number / 65_025 % 255,
                    number / 255 % 255,
                    number % 255 + 1
                );
                (id.as_str().into(), node)
            }
            Source::Azure => {
                let node = format!("aks-{}-{:08x}", claim.metadata.name, bits >> 32);
                let id = format!(
                    "azure:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/demo/providers/Microsoft.Compute/virtualMachines/{node}"
                );
                (id.as_str().into(), node)
            }
            Source::Kwok => {
                let node = format!("kwok-{}-{:010}", claim.metadata.name, bits % 10_000_000_000);
                (format!("kwok://{node}").as_str().into(), node)
            }
        }
    }
}

fn describe(claim: &NodeClaim, id: &ProviderId, image: &str, offer: &Offer<'_>) -> Launched {
    let facts = offer.described.requirements.iter().chain(&offer.offering.requirements);
    let single = facts.filter_map(|it| match (it.operator, it.values.as_slice()) {
        (Operator::In, [value]) => Some((Text::from(it.key.as_str()), Text::from(value.as_str()))),
        _ => None,
    });
    let mut labels: Vec<(Text, Text)> = claim.metadata.labels.iter().cloned().collect();
    labels.push((api::labels::INSTANCE_TYPE.into(), offer.described.name.as_str().into()));
    labels.extend(single);
    Launched {
        provider_id: id.as_str().into(),
        image_id: image.into(),
        capacity: offer.described.capacity.clone(),
        allocatable: offer.shape.allocatable(),
        labels: Map::from_pairs(labels),
        annotations: Map::default(),
    }
}

/// What a machine truly has, and what of it pods may use.
fn truly(launched: &Launched, defect: Option<Defect>) -> (ResourceList, ResourceList) {
    let Some(Defect::LessMemory(percent)) = defect else {
        return (launched.capacity.clone(), launched.allocatable.clone());
    };
    let less = |resources: &ResourceList| {
        resources.map(|name, quantity| {
            if name.as_str() == "memory" {
                Quantity::from_bytes(quantity.value() / 100 * i64::from(percent))
            } else {
                quantity
            }
        })
    };
    (less(&launched.capacity), less(&launched.allocatable))
}
