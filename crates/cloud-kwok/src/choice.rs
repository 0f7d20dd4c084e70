//! Which machine does a claim get? The cheapest one that can be had of the types it names.

use model::{
    instance_type::{InstanceType, Offering},
    object::NodeClaim,
    price::Price,
    requirement::{Operator, Requirement, Requirements},
    snapshot::{CatalogOffering, CatalogType},
    vocabulary::Vocabulary,
};

use crate::Offers;

/// A machine to be launched.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) described: &'a CatalogType,
    pub(crate) shape: &'a InstanceType,
    pub(crate) offering: &'a CatalogOffering,
}

/// Why a claim gets no machine. The texts are upstream's, but for the last, where upstream crashes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoChoice {
    #[error("instance type requirement not found")]
    NoTypesNamed,
    #[error("instance type not found (instance-type={0})")]
    UnknownType(String),
    #[error("no available offering of the instance types {0:?} meets the requirements")]
    NothingFits(Vec<String>),
}

/// The machine a claim gets: the lowest price, among equals the type the claim names first, and of its offerings the first
/// by zone and capacity type. Upstream draws the offering; we must find the same one again after a crash.
pub(crate) fn choose<'a>(claim: &NodeClaim, offers: &'a Offers) -> Result<Choice<'a>, NoChoice> {
    let named = claim
        .spec
        .requirements
        .iter()
        .find(|requirement| *requirement.key == *api::labels::INSTANCE_TYPE)
        .ok_or(NoChoice::NoTypesNamed)?;
    let mut vocabulary = offers.vocabulary().clone();
    let wanted = requirements(claim, &mut vocabulary);
    let mut best: Option<(Price, Choice<'a>)> = None;
    for name in &named.values {
        let (described, shape) = offers
            .get(name)
            .ok_or_else(|| NoChoice::UnknownType(name.to_string()))?;
        let cheapest = cheapest(described, shape, &wanted, &vocabulary);
        if let Some(offering) = cheapest.filter(|found| best.as_ref().is_none_or(|(price, _)| found.price < *price)) {
            let choice = Choice {
                described,
                shape,
                offering,
            };
            best = Some((offering.price, choice));
        }
    }
    let names = || named.values.iter().map(ToString::to_string).collect();
    best.map(|(_, choice)| choice)
        .ok_or_else(|| NoChoice::NothingFits(names()))
}

fn cheapest<'a>(
    described: &'a CatalogType,
    shape: &InstanceType,
    wanted: &Requirements,
    vocabulary: &Vocabulary,
) -> Option<&'a CatalogOffering> {
    let fits = |offering: &Offering| offering.is_available && offering.is_compatible(wanted, vocabulary);
    described
        .offerings
        .iter()
        .zip(&shape.offerings)
        .filter(|(_, offering)| fits(offering))
        .map(|(described, _)| described)
        .min_by_key(|offering| (offering.price, values(offering)))
}

/// What tells two offerings of one price apart, in the order of the labels' names from the last: zone, then capacity type.
fn values(offering: &CatalogOffering) -> Vec<(&str, &[String])> {
    let mut values: Vec<_> = offering
        .requirements
        .iter()
        .map(|requirement| (requirement.key.as_str(), requirement.values.as_slice()))
        .collect();
    values.sort_unstable();
    values.reverse();
    values
}

fn requirements(claim: &NodeClaim, vocabulary: &mut Vocabulary) -> Requirements {
    let mut all = Requirements::default();
    for written in &claim.spec.requirements {
        // The API server refuses unknown operators, so one that slipped through asks for nothing we could keep.
        if let Ok(operator) = written.operator.parse::<Operator>() {
            let values = written.values.iter().map(AsRef::as_ref);
            let requirement = Requirement::parse(&written.key, operator, values, vocabulary);
            all.add(requirement, vocabulary);
        }
    }
    all
}
