//! What do the cluster's ResourceClaims ask for, read once: classes looked up, expressions compiled.
//!
//! What is wrong with a request is remembered in its place, because upstream reports the first fault it meets while it
//! goes through constraints and requests, and some faults depend on the host.

use std::{collections::BTreeMap, fmt};

use model::{
    object::{
        Consumer, DeviceConstraint, DeviceQuery, DeviceRequest, DeviceSelector, List, Map, Pod, PodResourceClaim,
        ResourceClaim, Text, Uid,
    },
    quantity::Quantity,
    requirement::Requirements,
    snapshot::Snapshot,
    vocabulary::Vocabulary,
};

use crate::{
    constraint::MatchAttribute,
    id::{ClaimId, number},
    reach,
    selector::{ExpressionNumber, Selectors},
};

/// A request, or one of its alternatives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestName {
    pub(crate) parent: Text,
    pub(crate) alternative: Option<Text>,
}

impl fmt::Display for RequestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.alternative {
            Some(alternative) => write!(f, "{}/{alternative}", self.parent),
            None => f.write_str(&self.parent),
        }
    }
}

/// A claim, ready to be allocated.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) namespace: Text,
    pub(crate) name: Text,
    /// It has devices already, which ask this of the node.
    pub(crate) allocation: Option<Requirements>,
    pub(crate) reserved_for: List<Consumer>,
    pub(crate) constraints: Result<Vec<MatchAttribute>, String>,
    pub(crate) requests: Vec<Request>,
}

impl Claim {
    /// `namespace/name`
    pub(crate) fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Whether pods reserve it, and only pods that are on the move.
    pub(crate) fn is_held_by_moving_pods(&self, is_moving: impl Fn(&Uid) -> bool) -> bool {
        let moves = |consumer: &Consumer| is_pod(consumer) && is_moving(&consumer.uid);
        !self.reserved_for.is_empty() && self.reserved_for.iter().all(moves)
    }
}

pub(crate) fn is_pod(consumer: &Consumer) -> bool {
    consumer.resource.as_ref() == "pods" && consumer.api_group.is_empty()
}

/// A request: the first of its alternatives that can be had. Most have one.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) alternatives: Vec<Result<Query, String>>,
}

/// Which devices and how many.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    pub(crate) name: RequestName,
    /// How faults of it begin.
    pub(crate) prefix: String,
    pub(crate) selectors: Vec<ExpressionNumber>,
    pub(crate) amount: Amount,
    pub(crate) capacity: Map<Quantity>,
}

/// How many devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    Exactly(usize),
    All,
}

/// The claims of a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    all: Vec<Claim>,
    ids: BTreeMap<(Text, Text), ClaimId>,
}

impl Claims {
    pub(crate) fn new(snapshot: &Snapshot, selectors: &mut Selectors, vocabulary: &mut Vocabulary) -> Self {
        let mut claims = Self::default();
        for claim in snapshot.objects().resource_claims.iter() {
            let id = ClaimId(number(claims.all.len()));
            let claim = read(claim, snapshot, selectors, vocabulary);
            claims.ids.insert((claim.namespace.clone(), claim.name.clone()), id);
            claims.all.push(claim);
        }
        claims
    }

    pub(crate) fn get(&self, id: ClaimId) -> Option<&Claim> {
        self.all.get(id.position())
    }

    /// The claims a pod refers to, in the order of its spec; those that were never made are left out.
    pub(crate) fn of_pod(&self, pod: &Pod) -> Result<Vec<ClaimId>, String> {
        let names = pod
            .spec
            .resource_claims
            .iter()
            .filter_map(|claim| claim_name(pod, claim));
        names.map(|name| self.find(&pod.metadata.namespace, name)).collect()
    }

    fn find(&self, namespace: &Text, name: &Text) -> Result<ClaimId, String> {
        let id = self.ids.get(&(namespace.clone(), name.clone()));
        id.copied()
            .ok_or_else(|| format!("resourceclaim \"{namespace}/{name}\" not found"))
    }
}

/// The name in the spec, or of the claim that was made for the pod.
fn claim_name<'a>(pod: &'a Pod, claim: &'a PodResourceClaim) -> Option<&'a Text> {
    if claim.resource_claim_name.is_some() {
        return claim.resource_claim_name.as_ref();
    }
    let mut statuses = pod.status.resource_claim_statuses.iter();
    let status = statuses.find(|status| status.name == claim.name)?;
    status.resource_claim_name.as_ref()
}

fn read(claim: &ResourceClaim, snapshot: &Snapshot, selectors: &mut Selectors, vocabulary: &mut Vocabulary) -> Claim {
    let name = &claim.metadata.name;
    let mut reader = Reader {
        claim: name,
        snapshot,
        selectors,
    };
    let devices = &claim.spec.devices;
    Claim {
        namespace: claim.metadata.namespace.clone(),
        name: name.clone(),
        allocation: claim.status.allocation.as_ref().map(|allocation| {
            let selector = allocation.node_selector.as_ref();
            selector.map_or_else(Requirements::default, |selector| reach::collapsed(selector, vocabulary))
        }),
        reserved_for: claim.status.reserved_for.clone(),
        constraints: devices.constraints.iter().map(|it| constraint(name, it)).collect(),
        requests: devices.requests.iter().map(|request| reader.request(request)).collect(),
    }
}

fn constraint(claim: &str, constraint: &DeviceConstraint) -> Result<MatchAttribute, String> {
    if let Some(attribute) = &constraint.match_attribute {
        return Ok(MatchAttribute {
            attribute: attribute.clone(),
            requests: constraint.requests.to_vec(),
        });
    }
    Err(match constraint.distinct_attribute {
        Some(_) => format!("claim {claim:?}: DistinctAttribute constraints not done yet"),
        None => format!("claim {claim:?}: unsupported constraint type"),
    })
}

/// Reads the requests of one claim.
struct Reader<'a> {
    claim: &'a Text,
    snapshot: &'a Snapshot,
    selectors: &'a mut Selectors,
}

impl Reader<'_> {
    fn request(&mut self, request: &DeviceRequest) -> Request {
        let name = |alternative| RequestName {
            parent: request.name.clone(),
            alternative,
        };
        let alternatives = match &request.exactly {
            Some(query) => vec![self.query(name(None), query)],
            None if request.first_available.is_empty() => vec![Err(format!(
                "{}: only Exactly and FirstAvailable requests are supported",
                self.prefix(&request.name)
            ))],
            None => {
                let queries = request.first_available.iter();
                queries
                    .map(|query| self.query(name(Some(query.name.clone())), query))
                    .collect()
            }
        };
        Request { alternatives }
    }

    fn query(&mut self, name: RequestName, query: &DeviceQuery) -> Result<Query, String> {
        let prefix = self.prefix(name.alternative.as_ref().unwrap_or(&name.parent));
        let selectors = self.expressions(query).map_err(|fault| format!("{prefix}: {fault}"))?;
        Ok(Query {
            name,
            prefix,
            selectors,
            amount: match query.allocation_mode.as_ref() {
                "All" => Amount::All,
                _ => Amount::Exactly(usize::try_from(query.count).unwrap_or_default()),
            },
            capacity: query
                .capacity
                .as_ref()
                .map(|capacity| capacity.requests.clone())
                .unwrap_or_default(),
        })
    }

    /// The expressions of the class, then those of the request; all must hold.
    fn expressions(&mut self, query: &DeviceQuery) -> Result<Vec<ExpressionNumber>, String> {
        let name = &query.device_class_name;
        let Some(class) = self.snapshot.objects().device_classes.find("", name) else {
            return Err(format!(
                "DeviceClass {name:?} not found: DeviceClass.resource.k8s.io {name:?} not found"
            ));
        };
        let mut numbers = Vec::new();
        for selector in &class.spec.selectors {
            let number = self
                .expression(selector)
                .ok_or_else(|| format!("DeviceClass {name:?} has unsupported selector type (only CEL is supported)"))?;
            numbers.push(number);
        }
        for selector in &query.selectors {
            let number = self
                .expression(selector)
                .ok_or("unsupported selector type (only CEL is supported)")?;
            numbers.push(number);
        }
        let fault = numbers.iter().find_map(|number| self.selectors.fault(*number));
        fault.map_or(Ok(numbers), Err)
    }

    fn expression(&mut self, selector: &DeviceSelector) -> Option<ExpressionNumber> {
        let cel = selector.cel.as_ref()?;
        Some(self.selectors.intern(&cel.expression))
    }

    fn prefix(&self, request: &Text) -> String {
        format!("claim {:?} request {request:?}", self.claim)
    }
}
