//! Can a host have the devices that a pod's claims ask for, and what follows for the host?

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use model::{
    bitset::BitSet,
    object::{NodeName, Pod, Text, Uid},
    quantity::Quantity,
    requirement::Requirements,
    snapshot::{DeviceId, Snapshot},
    vocabulary::Vocabulary,
};

use crate::{
    claim::Claim,
    host::Host,
    id::{ClaimId, HostId, KindId, TypeId},
    inventory::Inventory,
    ledger::{KindUsage, Ledger},
    pool::{Pool, Pools},
    reach::LENIENT,
    search::{Memory, Pick, Search},
    wish::{Offered, Wish},
};

/// Why a host cannot have the devices. The text is upstream's, without the words that name the attempt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraError {
    /// No type of the host has them.
    #[error("no instance type can satisfy the allocation")]
    NoInstanceType,
    /// The claim itself is at fault.
    #[error("validating claim {claim:?}: {reason}")]
    Invalid {
        /// Its name.
        claim: Text,
        /// What is wrong.
        reason: String,
    },
    /// The claim has devices that will come with another node.
    #[error("claim is bound to a different in-flight NodeClaim (ResourceClaim={claim})")]
    BoundElsewhere {
        /// Namespace and name.
        claim: String,
    },
    /// The claim's devices are out of the host's reach.
    #[error("{place} allocation topology is incompatible with NodeClaim requirements (ResourceClaim={claim})")]
    OutOfReach {
        /// `in-cluster` or `in-memory`.
        place: &'static str,
        /// Namespace and name.
        claim: String,
    },
    /// The search took too many steps. The run must end here, as it does upstream when a search takes five seconds.
    #[error("context deadline exceeded")]
    Exhausted,
}

/// What a host can have; it becomes real with [`Allocator::commit`].
#[derive(Debug)]
pub struct Allocation {
    /// The types that have the devices, in option order.
    pub types: Vec<TypeId>,
    /// What the devices ask of the host.
    pub requirements: Requirements,
    grant: Option<Grant>,
}

/// Devices to be committed.
#[derive(Debug)]
struct Grant {
    host: HostId,
    taken: Vec<(KindId, BitSet, KindUsage)>,
    claims: Vec<(ClaimId, ClaimAllocation)>,
    pools: Arc<[Pool]>,
}

/// What this run has allocated to a claim.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimAllocation {
    /// For which host.
    pub host: HostId,
    /// What the devices ask of nodes, whichever type the host becomes.
    pub requirements: Requirements,
    /// Some device comes with the node: no other node can use the claim.
    pub is_node_local: bool,
    /// By the kind of types the host may become.
    granted: BTreeMap<KindId, Granted>,
}

/// What a claim got for one kind of types.
#[derive(Debug, Clone, PartialEq)]
struct Granted {
    types: BitSet,
    devices: Vec<AllocatedDevice>,
    /// What the devices ask of the host.
    asked: Requirements,
}

/// One device of a claim.
#[derive(Debug, Clone, PartialEq)]
pub struct AllocatedDevice {
    /// Which one.
    pub id: DeviceId,
    /// It comes with the node.
    pub is_template: bool,
    /// `request` or `request/alternative`.
    pub request: String,
    /// The share of a device that several claims may have.
    pub consumed: Vec<(Text, Quantity)>,
}

/// The devices of one planning run. Cloning it is cheap next to a run: what does not change is shared.
#[derive(Debug, Clone)]
pub struct Allocator {
    inventory: Arc<Inventory>,
    /// What drivers have published.
    published: Pools,
    ledger: Ledger,
    moving: Arc<HashSet<Uid>>,
    /// What a host that got devices still sees.
    pools: BTreeMap<HostId, Arc<[Pool]>>,
    claims: BTreeMap<ClaimId, ClaimAllocation>,
    matches_by_name: bool,
}

impl Allocator {
    /// The devices of a snapshot for one run.
    /// - `nodes`: the initialised nodes that stay; the slices other nodes own do not count.
    /// - `moving`: pods that leave their nodes in this run; what only they hold is free.
    /// - `vocabulary`: the run's; labels that slices and allocations name are entered.
    pub fn new(
        snapshot: &Snapshot,
        nodes: &BTreeSet<NodeName>,
        moving: impl IntoIterator<Item = Uid>,
        vocabulary: &mut Vocabulary,
    ) -> Self {
        let moving: HashSet<Uid> = moving.into_iter().collect();
        let inventory = Inventory::new(snapshot, nodes, vocabulary);
        let published = inventory.pools.clone();
        Self {
            ledger: ledger(&inventory, &published, &moving),
            inventory: Arc::new(inventory),
            published,
            moving: Arc::new(moving),
            pools: BTreeMap::new(),
            claims: BTreeMap::new(),
            matches_by_name: false,
        }
    }

    /// Takes more nodes away before the first pod is placed, as a simulation does: the slices they own go with them, and
    /// what only these pods and those that move anyway hold is free.
    pub fn leave<'a>(
        &mut self,
        nodes: impl IntoIterator<Item = &'a NodeName>,
        pods: impl IntoIterator<Item = &'a Uid>,
    ) {
        let holdings = &self.inventory.holdings;
        let leaving: Vec<&Uid> = pods.into_iter().filter(|pod| holdings.has_holder(pod)).collect();
        let reduced = self.inventory.pools.without(&nodes.into_iter().collect());
        if leaving.is_empty() && reduced.is_none() {
            return;
        }
        Arc::make_mut(&mut self.moving).extend(leaving.into_iter().cloned());
        if let Some(reduced) = reduced {
            self.published = reduced;
        }
        self.ledger = ledger(&self.inventory, &self.published, &self.moving);
    }

    /// Makes upstream's mistake: within one attempt it remembers by a device's name whether it matches a request, so
    /// that `gpu-0` of the first instance type speaks for `gpu-0` of all others. A type may be refused whose device
    /// would do, or kept although its device will not. Only for comparing plans with upstream's. Even so a type may get
    /// other devices than upstream gives it, if an expression cannot be evaluated on a device of the same name before.
    #[must_use]
    pub fn matching_by_name(self) -> Self {
        Self {
            matches_by_name: true,
            ..self
        }
    }

    /// An instance type of the catalogue by name.
    pub fn type_id(&self, name: &str) -> Option<TypeId> {
        self.inventory.type_id(name)
    }

    /// The claims a pod refers to. An error is upstream's text: a claim that is not there fails every attempt of the run.
    pub fn claims_of(&self, pod: &Pod) -> Result<Vec<ClaimId>, String> {
        self.inventory.claims.of_pod(pod)
    }

    /// Whether the host can have the devices of the claims. Nothing changes before [`Allocator::commit`].
    pub fn allocate(
        &self,
        host: &Host<'_>,
        claims: &[ClaimId],
        vocabulary: &Vocabulary,
    ) -> Result<Allocation, DraError> {
        let all_types = |requirements| Allocation {
            types: host.types.to_vec(),
            requirements,
            grant: None,
        };
        if claims.is_empty() {
            return Ok(all_types(Requirements::default()));
        }
        let (requirements, open) = self.classify(host, claims, vocabulary)?;
        if open.is_empty() {
            return Ok(all_types(requirements));
        }
        let pools = self.visible_pools(host, &requirements, vocabulary);
        let kinds = self.kinds(host);
        let wishes = self.wishes(host, &kinds, &open, &pools)?;
        let search = Search {
            inventory: &self.inventory,
            published: &self.published,
            ledger: &self.ledger,
            vocabulary,
            host,
            wishes: &wishes,
            kind: KindId::BARE,
            requirements,
            pools: Arc::clone(&pools),
            picks: Vec::new(),
            usage: KindUsage::default(),
            pins: Vec::new(),
            steps: 0,
            memory: self.matches_by_name.then(Memory::new),
        };
        self.search(search, &kinds, &pools)
    }

    /// Makes an allocation real, and gives back what it holds for types that are not `kept`.
    pub fn commit(&mut self, allocation: Allocation, kept: &[TypeId], vocabulary: &Vocabulary) {
        let Some(grant) = allocation.grant else { return };
        self.ledger.commit(grant.host, &grant.taken);
        self.pools.insert(grant.host, grant.pools);
        self.claims.extend(grant.claims);
        let dropped = type_set(&allocation.types).difference(&type_set(kept));
        if !dropped.is_empty() {
            self.release(grant.host, &dropped, vocabulary);
        }
    }

    /// The drivers of the devices a host got, sorted: the value of `karpenter.sh/requested-dra-drivers`, joined by commas.
    pub fn requested_drivers(&self, host: HostId) -> Vec<Text> {
        let claims = self.claims.values().filter(|claim| claim.host == host);
        let devices = claims.flat_map(|claim| claim.granted.values().flat_map(|granted| &granted.devices));
        let drivers: BTreeSet<&Text> = devices.map(|device| &device.id.driver).collect();
        drivers.into_iter().cloned().collect()
    }

    /// What this run has allocated, by namespace and name of the claim.
    pub fn allocations(&self) -> impl Iterator<Item = (&Text, &Text, &ClaimAllocation)> {
        self.claims.iter().filter_map(|(id, allocation)| {
            let claim = self.inventory.claims.get(*id)?;
            Some((&claim.namespace, &claim.name, allocation))
        })
    }

    /// Gives back what types hold that the host can no longer become.
    fn release(&mut self, host: HostId, dropped: &BitSet, vocabulary: &Vocabulary) {
        self.ledger.release(host, dropped);
        for claim in self.claims.values_mut().filter(|claim| claim.host == host) {
            claim.release(dropped, vocabulary);
        }
    }

    /// What claims that have devices ask of the host, and which claims have none. Each is held against what those
    /// before it left.
    fn classify(
        &self,
        host: &Host<'_>,
        claims: &[ClaimId],
        vocabulary: &Vocabulary,
    ) -> Result<(Requirements, Vec<ClaimId>), DraError> {
        let (mut requirements, mut open) = (host.requirements.clone(), Vec::new());
        for id in claims {
            let Some(claim) = self.inventory.claims.get(*id) else {
                continue;
            };
            let (place, asked) = match self.held(*id, claim) {
                Held::Nothing => {
                    open.push(*id);
                    continue;
                }
                Held::InCluster(asked) => ("in-cluster", asked),
                Held::InMemory(allocation) if allocation.is_node_local => {
                    if allocation.host != host.id {
                        return Err(DraError::BoundElsewhere { claim: claim.key() });
                    }
                    continue;
                }
                Held::InMemory(allocation) => ("in-memory", &allocation.requirements),
            };
            if !requirements.is_compatible(asked, LENIENT, vocabulary) {
                let claim = claim.key();
                return Err(DraError::OutOfReach { place, claim });
            }
            requirements.add_all(asked, vocabulary);
        }
        Ok((requirements, open))
    }

    /// A claim whose pods all move is allocated anew, once: the next pod shares what the first one got. Upstream
    /// allocates it again for the next pod and panics when it commits that.
    fn held<'a>(&'a self, id: ClaimId, claim: &'a Claim) -> Held<'a> {
        if let Some(allocation) = self.claims.get(&id) {
            return Held::InMemory(allocation);
        }
        let is_moving = || claim.is_held_by_moving_pods(|uid| self.moving.contains(uid));
        match &claim.allocation {
            Some(asked) if !is_moving() => Held::InCluster(asked),
            _ => Held::Nothing,
        }
    }

    fn visible_pools(&self, host: &Host<'_>, requirements: &Requirements, vocabulary: &Vocabulary) -> Arc<[Pool]> {
        let pools = &self.published;
        match self.pools.get(&host.id) {
            Some(seen) => pools.narrowed(seen, requirements, host.node_name, vocabulary).into(),
            None => pools
                .seen_by(requirements, host.node_name, &self.inventory.devices, vocabulary)
                .into(),
        }
    }

    /// The kinds of types the host may become, in the order of their first types.
    fn kinds(&self, host: &Host<'_>) -> Vec<KindId> {
        let (mut seen, mut kinds) = (BitSet::default(), Vec::new());
        for instance_type in host.types {
            let kind = self.inventory.kind(*instance_type);
            if !seen.contains(kind.0) {
                seen.insert(kind.0);
                kinds.push(kind);
            }
        }
        kinds
    }

    fn wishes(
        &self,
        host: &Host<'_>,
        kinds: &[KindId],
        open: &[ClaimId],
        pools: &[Pool],
    ) -> Result<Vec<Wish<'_>>, DraError> {
        let offered = Offered {
            inventory: &self.inventory,
            published: &self.published,
            pools,
            kinds: if host.has_templates { kinds } else { &[] },
        };
        let claims = open
            .iter()
            .filter_map(|id| Some((*id, self.inventory.claims.get(*id)?)));
        claims
            .map(|(id, claim)| {
                Wish::new(id, claim, offered).map_err(|reason| DraError::Invalid {
                    claim: claim.name.clone(),
                    reason,
                })
            })
            .collect()
    }

    /// One search per kind of types: the types of a kind have the same devices and have taken the same ones, so they
    /// would find the same. What later kinds add to the requirements does not change what an earlier one found.
    fn search(&self, mut search: Search<'_>, kinds: &[KindId], pools: &Arc<[Pool]>) -> Result<Allocation, DraError> {
        let (host, vocabulary) = (search.host, search.vocabulary);
        let mut claims: Vec<ClaimAllocation> = search.wishes.iter().map(|_| ClaimAllocation::new(host.id)).collect();
        let mut taken = BTreeMap::new();
        for kind in kinds {
            let is_found = search.run(*kind, pools);
            if search.is_exhausted() && self.has_types_after(host, *kind) {
                return Err(DraError::Exhausted);
            }
            if !is_found {
                continue;
            }
            taken.insert(*kind, (BitSet::default(), std::mem::take(&mut search.usage)));
            for pick in &search.picks {
                if let Some(claim) = claims.get_mut(pick.wish) {
                    claim.add(*kind, pick, &self.inventory, vocabulary);
                }
            }
        }
        if taken.is_empty() {
            return Err(DraError::NoInstanceType);
        }
        let types = self.surviving(host, &mut taken);
        let mut requirements = Requirements::default();
        for claim in &mut claims {
            claim.set_types(&taken);
            claim.combine(vocabulary);
            requirements.add_all(&claim.requirements, vocabulary);
        }
        let left = self
            .published
            .narrowed(pools, &search.requirements, host.node_name, vocabulary);
        let grant = Grant {
            host: host.id,
            taken: taken
                .into_iter()
                .map(|(kind, (types, usage))| (kind, types, usage))
                .collect(),
            claims: search.wishes.iter().map(|wish| wish.id).zip(claims).collect(),
            pools: left.into(),
        };
        Ok(Allocation {
            types,
            requirements,
            grant: Some(grant),
        })
    }

    /// Whether some type was still to be tried when the search of a kind ran out of steps: upstream looks at the time
    /// before each type, so the last one may run out of it and merely not be found.
    fn has_types_after(&self, host: &Host<'_>, kind: KindId) -> bool {
        let first = host.types.iter().position(|it| self.inventory.kind(*it) == kind);
        first.is_some_and(|at| at + 1 < host.types.len())
    }

    /// The host's types of the kinds that were found devices for; each kind learns which they are.
    fn surviving(&self, host: &Host<'_>, taken: &mut BTreeMap<KindId, (BitSet, KindUsage)>) -> Vec<TypeId> {
        let mut types = Vec::new();
        for instance_type in host.types {
            if let Some((set, _)) = taken.get_mut(&self.inventory.kind(*instance_type)) {
                set.insert(instance_type.bit());
                types.push(*instance_type);
            }
        }
        types
    }
}

fn type_set(types: &[TypeId]) -> BitSet {
    types.iter().map(|it| it.bit()).collect()
}

/// What a claim has before the attempt.
enum Held<'a> {
    Nothing,
    /// What the devices ask of the node.
    InCluster(&'a Requirements),
    InMemory(&'a ClaimAllocation),
}

impl ClaimAllocation {
    /// The devices the claim gets if its host becomes the type.
    pub fn devices(&self, instance_type: TypeId) -> &[AllocatedDevice] {
        let mut granted = self.granted.values();
        let found = granted.find(|granted| granted.types.contains(instance_type.bit()));
        found.map_or(&[], |granted| &granted.devices)
    }

    fn new(host: HostId) -> Self {
        Self {
            host,
            requirements: Requirements::default(),
            is_node_local: false,
            granted: BTreeMap::new(),
        }
    }

    fn add(&mut self, kind: KindId, pick: &Pick<'_>, inventory: &Inventory, vocabulary: &Vocabulary) {
        let Some(id) = inventory.devices.name(pick.offer.identity) else {
            return;
        };
        let granted = self.granted.entry(kind).or_insert_with(|| Granted {
            types: BitSet::default(),
            devices: Vec::new(),
            asked: Requirements::default(),
        });
        if let Some(topology) = &pick.offer.topology {
            granted.asked.add_all(topology, vocabulary);
        }
        granted.devices.push(AllocatedDevice {
            id: id.clone(),
            is_template: pick.offer.is_template,
            request: pick.request.to_string(),
            consumed: pick.consumed.clone(),
        });
        self.is_node_local |= pick.offer.is_template;
    }

    fn set_types(&mut self, taken: &BTreeMap<KindId, (BitSet, KindUsage)>) {
        for (kind, granted) in &mut self.granted {
            if let Some((types, _)) = taken.get(kind) {
                granted.types.clone_from(types);
            }
        }
    }

    /// A claim that once was node-local stays so, even if all types that made it so are gone.
    fn release(&mut self, dropped: &BitSet, vocabulary: &Vocabulary) {
        for granted in self.granted.values_mut() {
            granted.types = granted.types.difference(dropped);
        }
        self.granted.retain(|_, granted| !granted.types.is_empty());
        self.combine(vocabulary);
    }

    /// The host may become any of its types, so other nodes must do for all of them.
    fn combine(&mut self, vocabulary: &Vocabulary) {
        self.requirements = Requirements::default();
        for granted in self.granted.values() {
            self.requirements.add_all(&granted.asked, vocabulary);
        }
    }
}

/// What is taken before the first pod is placed.
fn ledger(inventory: &Inventory, published: &Pools, moving: &HashSet<Uid>) -> Ledger {
    let allocated = inventory.holdings.usage(|uid| moving.contains(uid));
    let budget = published.budget(&inventory.devices, &allocated);
    Ledger::new(allocated, budget)
}
