//! A cloud in memory: it keeps the contract, has every fault, and answers at once. For tests of the suite and of whoever
//! needs a cloud.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::labels::{CAPACITY_TYPE, INSTANCE_TYPE, ZONE};
use async_trait::async_trait;
use jiff::Timestamp;
use model::{
    object::{Map, NodeClaim, NodePool, ProviderId, Text},
    requirement::Operator,
    snapshot::{CatalogOffering, CatalogType},
    vocabulary::Vocabulary,
};

use crate::{
    CloudError, CloudProvider, Instance, LaunchToken, Launched, NodeClassKind, RepairAction, RepairPolicy,
    UnavailableOffering, UnavailableOfferings, conformance::Fault,
};

/// Tells the time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A cloud in memory.
pub struct Reference {
    now: Now,
    types: Vec<Arc<CatalogType>>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    machines: BTreeMap<ProviderId, Machine>,
    /// Machines of others.
    foreign: BTreeSet<ProviderId>,
    /// Which machine a token launched.
    tokens: BTreeMap<LaunchToken, ProviderId>,
    rebooted: BTreeSet<String>,
    faults: Vec<Fault>,
    /// Until when reads do not show what is launched meanwhile.
    lag: Option<Timestamp>,
    unavailable: UnavailableOfferings,
    shutdown: Duration,
    launched: u64,
}

struct Machine {
    instance: Instance,
    /// From when on reads show it.
    visible_from: Timestamp,
    /// When it will be gone.
    gone_at: Option<Timestamp>,
}

impl Reference {
    /// A cloud that sells these types. Give offerings a zone and a capacity type.
    pub fn new(now: Now, types: Vec<Arc<CatalogType>>) -> Self {
        Self {
            now,
            types,
            inner: Mutex::default(),
        }
    }

    /// Makes something go wrong.
    pub fn inject(&self, fault: Fault) {
        let now = (self.now)();
        let mut inner = self.lock();
        match fault {
            Fault::ReadLag(lag) => inner.lag = now.checked_add(lag).ok(),
            fault => inner.faults.push(fault),
        }
    }

    /// From now on, machines take this long to go.
    pub fn shut_down_in(&self, time: Duration) {
        self.lock().shutdown = time;
    }

    /// Takes a machine away, as a spot interruption does.
    pub fn lose(&self, id: &ProviderId) {
        self.lock().machines.remove(id);
    }

    /// Everything that runs.
    pub fn machines(&self) -> Vec<ProviderId> {
        let mut inner = self.lock();
        inner.tick((self.now)());
        inner.machines.keys().chain(&inner.foreign).cloned().collect()
    }

    /// Starts a machine of somebody else.
    pub fn start_foreign(&self, id: &str) -> ProviderId {
        let id = ProviderId::from(id);
        self.lock().foreign.insert(id.clone());
        id
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cheapest available offering of the types a claim names, the first of equals; any type when it names none.
    fn choose(&self, claim: &NodeClaim, inner: &Inner) -> Option<(Arc<CatalogType>, CatalogOffering)> {
        let requirements = &claim.spec.requirements;
        let named = requirements.iter().find(|it| *it.key == *INSTANCE_TYPE);
        let is_wanted =
            |entry: &CatalogType| named.is_none_or(|it| it.values.iter().any(|name| **name == *entry.name.as_str()));
        let is_admitted = |offering: &CatalogOffering| {
            [ZONE, CAPACITY_TYPE].iter().all(|key| {
                let wanted = requirements.iter().find(|it| *it.key == **key && *it.operator == *"In");
                let offered = only_value(offering, key);
                wanted.is_none_or(|it| it.values.iter().any(|value| Some(&**value) == offered))
            })
        };
        let types = inner.unavailable.overlay(&self.types, (self.now)());
        let offers = types.iter().filter(|entry| is_wanted(entry)).flat_map(|entry| {
            let available = entry.offerings.iter().filter(|it| it.available && is_admitted(it));
            available.map(|offering| (Arc::clone(entry), offering.clone()))
        });
        offers.min_by_key(|(_, offering)| offering.price)
    }

    fn launch(&self, claim: &NodeClaim, token: &LaunchToken, inner: &mut Inner) -> Result<Launched, CloudError> {
        let now = (self.now)();
        let (entry, offering) = self.choose(claim, inner).ok_or_else(|| out_of_stock(Vec::new()))?;
        if inner.strikes(Fault::OutOfStock) {
            let short = shortage(&entry, &offering);
            inner.unavailable.mark(&short, now);
            return Err(out_of_stock(vec![short]));
        }
        let is_half_done = inner.strikes(Fault::PartialFailure);
        inner.launched += 1;
        let id: ProviderId = format!("reference:///{}", inner.launched).as_str().into();
        let launched = describe(claim, &id, &entry, &offering);
        let instance = Instance {
            provider_id: id.clone(),
            claim: Some(claim.name()),
            claim_uid: Some(claim.metadata.uid.clone()),
            launched_at: Some(now),
            is_terminating: false,
            launched: launched.clone(),
        };
        let machine = Machine {
            instance,
            visible_from: inner.lag.filter(|until| *until > now).unwrap_or(now),
            gone_at: None,
        };
        inner.machines.insert(id.clone(), machine);
        if is_half_done {
            return Err(CloudError::Other(
                "the machine started, but its disk did not attach".to_owned(),
            ));
        }
        inner.tokens.insert(token.clone(), id);
        Ok(launched)
    }
}

impl Inner {
    /// Whether a fault was injected; it strikes once.
    fn strikes(&mut self, fault: Fault) -> bool {
        let at = self.faults.iter().position(|it| *it == fault);
        at.map(|at| self.faults.remove(at)).is_some()
    }

    fn throttle(&mut self) -> Option<Duration> {
        let at = self.faults.iter().position(|it| matches!(it, Fault::Throttled(_)))?;
        match self.faults.remove(at) {
            Fault::Throttled(wait) => Some(wait),
            _ => None,
        }
    }

    /// Lets machines go whose time has come.
    fn tick(&mut self, now: Timestamp) {
        self.machines
            .retain(|_, machine| machine.gone_at.is_none_or(|at| at > now));
    }

    fn of_claim(&self, claim: &NodeClaim) -> Vec<ProviderId> {
        let is_own = |instance: &Instance| {
            instance.claim_uid.as_ref() == Some(&claim.metadata.uid)
                && claim
                    .status
                    .provider_id
                    .as_ref()
                    .is_none_or(|id| *id == instance.provider_id)
        };
        let own = self.machines.values().filter(|machine| is_own(&machine.instance));
        own.map(|machine| machine.instance.provider_id.clone()).collect()
    }
}

fn describe(claim: &NodeClaim, id: &ProviderId, entry: &CatalogType, offering: &CatalogOffering) -> Launched {
    let single = entry.requirements.iter().chain(&offering.requirements);
    let single = single.filter_map(|it| match (it.operator, it.values.as_slice()) {
        (Operator::In, [value]) => Some((Text::from(it.key.as_str()), Text::from(value.as_str()))),
        _ => None,
    });
    let mut labels: Vec<(Text, Text)> = claim.metadata.labels.iter().cloned().collect();
    labels.push((INSTANCE_TYPE.into(), entry.name.as_str().into()));
    labels.extend(single);
    Launched {
        provider_id: id.as_str().into(),
        image_id: "reference-image".into(),
        capacity: entry.capacity.clone(),
        allocatable: entry.instance_type(&mut Vocabulary::new()).allocatable(),
        labels: Map::from_pairs(labels),
        annotations: Map::default(),
    }
}

fn shortage(entry: &CatalogType, offering: &CatalogOffering) -> UnavailableOffering {
    UnavailableOffering {
        instance_type: Some(entry.name.clone()),
        zone: only_value(offering, ZONE).map(Into::into),
        capacity_type: only_value(offering, CAPACITY_TYPE).map(Into::into),
        reason: "OutOfStock".into(),
        retry_after: None,
    }
}

fn out_of_stock(offerings: Vec<UnavailableOffering>) -> CloudError {
    let message = "no offering that the NodeClaim admits is in stock".to_owned();
    CloudError::InsufficientCapacity { message, offerings }
}

fn only_value<'a>(offering: &'a CatalogOffering, key: &str) -> Option<&'a str> {
    let requirement = offering.requirements.iter().find(|it| it.key == key)?;
    match requirement.values.as_slice() {
        [value] => Some(value),
        _ => None,
    }
}

fn gone() -> CloudError {
    CloudError::NotFound("instance terminated".to_owned())
}

#[async_trait]
impl CloudProvider for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn node_classes(&self) -> &'static [NodeClassKind] {
        &[NodeClassKind {
            group: "karpenter.kwok.sh",
            version: "v1alpha1",
            kind: "KWOKNodeClass",
        }]
    }

    async fn create(&self, claim: &NodeClaim, token: &LaunchToken) -> Result<Launched, CloudError> {
        let mut inner = self.lock();
        inner.tick((self.now)());
        if let Some(wait) = inner.throttle() {
            let message = "RequestLimitExceeded: come back later".to_owned();
            let retry_after = Some(wait);
            return Err(CloudError::Throttled { message, retry_after });
        }
        let known = inner.tokens.get(token).and_then(|id| inner.machines.get(id));
        if let Some(machine) = known {
            return Ok(machine.instance.launched.clone());
        }
        let launched = self.launch(claim, token, &mut inner)?;
        if inner.strikes(Fault::LostResponse) {
            return Err(CloudError::Other(
                "the connection was closed before the answer came".to_owned(),
            ));
        }
        Ok(launched)
    }

    async fn delete(&self, claim: &NodeClaim) -> Result<(), CloudError> {
        let now = (self.now)();
        let mut inner = self.lock();
        inner.tick(now);
        let own = inner.of_claim(claim);
        if own.is_empty() {
            return Err(gone());
        }
        let gone_at = now.checked_add(inner.shutdown).unwrap_or(Timestamp::MAX);
        for id in own {
            if let Some(machine) = inner.machines.get_mut(&id) {
                machine.gone_at.get_or_insert(gone_at);
                machine.instance.is_terminating = true;
            }
        }
        Ok(())
    }

    async fn get(&self, id: &ProviderId) -> Result<Instance, CloudError> {
        let now = (self.now)();
        let mut inner = self.lock();
        inner.tick(now);
        let machine = inner.machines.get(id).filter(|machine| machine.visible_from <= now);
        machine.map(|machine| machine.instance.clone()).ok_or_else(gone)
    }

    async fn list(&self) -> Result<Vec<Instance>, CloudError> {
        let now = (self.now)();
        let mut inner = self.lock();
        inner.tick(now);
        let visible = inner.machines.values().filter(|machine| machine.visible_from <= now);
        Ok(visible.map(|machine| machine.instance.clone()).collect())
    }

    async fn instance_types(&self, _: &NodePool) -> Result<Vec<Arc<CatalogType>>, CloudError> {
        Ok(self.lock().unavailable.overlay(&self.types, (self.now)()))
    }

    fn offers_version(&self) -> u64 {
        self.lock().unavailable.version((self.now)())
    }

    async fn is_drifted(&self, _: &NodeClaim) -> Result<Option<String>, CloudError> {
        Ok(None)
    }

    async fn reboot(&self, claim: &NodeClaim, operation_id: &str) -> Result<(), CloudError> {
        let mut inner = self.lock();
        inner.tick((self.now)());
        if inner.of_claim(claim).is_empty() {
            return Err(gone());
        }
        inner.rebooted.insert(operation_id.to_owned());
        Ok(())
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        vec![RepairPolicy {
            condition_type: "Ready",
            condition_status: model::object::ConditionStatus::False,
            reason_regex: "",
            toleration: Duration::from_mins(10),
            termination_grace_period: None,
            priority: 0,
            action: RepairAction::ReplaceNode,
        }]
    }

    fn well_known_labels(&self) -> Vec<String> {
        Vec::new()
    }
}
