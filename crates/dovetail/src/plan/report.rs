//! The answer as a document: every figure the table shows and those it has no room for. Stable within `v1alpha1`.

mod nodes;
mod pending;
pub(crate) mod usd;

use std::fmt;

use model::price::Price;
use serde::{Deserialize, Serialize};

pub(crate) use self::{
    nodes::{ExistingNode, NewNode, Room},
    pending::Pending,
};
use super::{engine::Planned, input::Input};
use crate::terminal::{HOURS_OF_A_MONTH, counted, grouped};

/// What `-o json` and `-o yaml` print.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    #[serde(rename = "apiVersion")]
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// The name of the snapshot; empty for dumps.
    pub(crate) cluster: String,
    pub(crate) as_of: String,
    pub(crate) engine: String,
    pub(crate) source: Source,
    pub(crate) assumed: Vec<String>,
    pub(crate) pods: Pods,
    pub(crate) new_nodes: Vec<NewNode>,
    pub(crate) existing_nodes: Vec<ExistingNode>,
    pub(crate) pending: Vec<Pending>,
    pub(crate) total: Total,
}

/// Where the answer comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Source {
    pub(crate) dump: String,
    pub(crate) files: usize,
    pub(crate) objects: usize,
    pub(crate) catalogue: String,
    pub(crate) catalogue_because: String,
    pub(crate) region: String,
    pub(crate) prices_of: String,
    pub(crate) instance_types: usize,
}

/// How many pods want a place and get one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pods {
    pub(crate) waiting: usize,
    pub(crate) on_new_nodes: usize,
    pub(crate) on_existing_nodes: usize,
    pub(crate) pending: usize,
}

/// What it comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Total {
    pub(crate) new_nodes: usize,
    #[serde(with = "usd")]
    pub(crate) usd_h: Price,
    #[serde(with = "usd")]
    pub(crate) usd_mo: Price,
    /// What no valid plan can cost less than, where it was computed.
    #[serde(with = "usd::maybe")]
    pub(crate) lower_bound_usd_h: Option<Price>,
    /// What upstream's algorithm pays for the same pods.
    #[serde(with = "usd::maybe")]
    pub(crate) upstream_usd_h: Option<Price>,
    pub(crate) upstream_new_nodes: Option<usize>,
    pub(crate) upstream_pending: Option<usize>,
}

impl Report {
    pub(super) fn of(input: &Input, planned: &Planned) -> Self {
        let (snapshot, plan) = (&input.snapshot, &planned.plan);
        let pods = Pods {
            waiting: plan.placed() + plan.unplaced.len(),
            on_new_nodes: plan.claims.iter().map(|claim| claim.pods.len()).sum(),
            on_existing_nodes: plan.existing.iter().map(|node| node.pods.len()).sum(),
            pending: plan.unplaced.len(),
        };
        Self {
            api_version: "dovetail.dev/v1alpha1".into(),
            kind: "Plan".into(),
            cluster: snapshot.title().name.clone(),
            as_of: snapshot.taken_at().to_string(),
            engine: env!("CARGO_PKG_VERSION").into(),
            source: Source::of(input),
            assumed: input.assumed.clone(),
            pods,
            new_nodes: nodes::new(plan, snapshot),
            existing_nodes: nodes::existing(plan, snapshot),
            pending: pending::groups(planned, snapshot),
            total: Total::of(planned),
        }
    }
}

impl Source {
    fn of(input: &Input) -> Self {
        let catalogue = &input.catalogue;
        Self {
            dump: input.dump.clone(),
            files: input.files,
            objects: input.objects,
            catalogue: catalogue.name.clone(),
            catalogue_because: catalogue.because.clone(),
            region: catalogue.region.clone(),
            prices_of: catalogue.prices_of.clone(),
            instance_types: input.snapshot.catalog().instance_types.len(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} in {}; catalogue {}",
            self.dump,
            counted(self.objects, "object"),
            counted(self.files, "file"),
            self.catalogue
        )?;
        if !self.region.is_empty() {
            write!(f, " {}", self.region)?;
        }
        write!(f, ", {} instance types", grouped(self.instance_types as u128))?;
        if !self.prices_of.is_empty() {
            write!(f, ", prices {}", self.prices_of)?;
        }
        if !self.catalogue_because.is_empty() {
            write!(f, " (because {})", self.catalogue_because)?;
        }
        Ok(())
    }
}

impl Total {
    fn of(planned: &Planned) -> Self {
        let price = planned.plan.price();
        Self {
            new_nodes: planned.plan.claims.len(),
            usd_h: price,
            usd_mo: Price::from_picos(price.picos().saturating_mul(HOURS_OF_A_MONTH)),
            lower_bound_usd_h: planned.lower_bound,
            upstream_usd_h: planned.upstream.map(|upstream| upstream.price),
            upstream_new_nodes: planned.upstream.map(|upstream| upstream.nodes),
            upstream_pending: planned.upstream.map(|upstream| upstream.unplaced),
        }
    }
}
