//! What EKS, AKS and kwok offer, with prices, without asking a cloud.
//!
//! The tables under `data/` are part of the binary; `data/README.md` says where their facts come from and how they are
//! made. What a table cannot know is assumed, and [`Loaded::assumed`] says so: nobody should take an assumed price for
//! a quoted one.

pub mod aws;
pub mod azure;
mod classes;
pub mod kwok;
mod spec;
pub mod table;

use std::sync::Arc;

use api::labels::{ARCH, ARCH_AMD64, OS, WINDOWS_BUILD};
use model::{
    object::NodePool,
    requirement::RequirementSpec,
    snapshot::{Catalog, CatalogType},
};

pub use classes::NodeClass;
pub use table::Damaged;

/// Whose offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// Amazon EC2, as Karpenter's provider for EKS describes it.
    Aws,
    /// Azure virtual machines, as Karpenter's provider for AKS describes them.
    Azure,
    /// The simulated machines of Karpenter's kwok provider.
    Kwok,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Aws, Self::Azure, Self::Kwok];

    /// The word for it on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Kwok => "kwok",
        }
    }

    /// The source whose node class is of this kind.
    pub fn of_node_class(kind: &str) -> Option<Self> {
        match kind {
            "EC2NodeClass" => Some(Self::Aws),
            "AKSNodeClass" => Some(Self::Azure),
            "KWOKNodeClass" => Some(Self::Kwok),
            _ => None,
        }
    }

    /// The source that gives nodes such provider IDs.
    pub fn of_provider_id(id: &str) -> Option<Self> {
        let (scheme, _) = id.split_once("://")?;
        Self::ALL.into_iter().find(|source| source.name() == scheme)
    }

    /// Regions with prices of their own, the default first; none where regions mean nothing.
    pub fn priced_regions(self) -> &'static [&'static str] {
        match self {
            Self::Aws => &aws::PRICED_REGIONS,
            Self::Azure => &azure::PRICED_REGIONS,
            Self::Kwok => &[],
        }
    }
}

/// A catalogue, and what to think of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Whose they are.
    pub source: Source,
    /// The offers.
    pub catalog: Catalog,
    /// Where everything is assumed to be sold; empty where types differ in that.
    pub zones: Vec<String>,
    /// The region they are for; empty where regions mean nothing.
    pub region: String,
    /// The day the on-demand prices are of; empty where prices are made by formula.
    pub prices_of: String,
    /// What is not known and was assumed, a sentence each.
    pub assumed: Vec<String>,
}

/// Whether a NodePool asks for machines with Windows.
pub fn asks_for_windows(pool: &NodePool) -> bool {
    let requirements = pool.spec.template.spec.requirements.iter();
    let mut of_os = requirements.filter(|it| *it.key == *OS && *it.operator == *"In");
    of_os.any(|it| it.values.iter().any(|value| **value == *WINDOWS))
}

impl Loaded {
    /// The same machines with Windows as well: which one a node boots is its node class's to say, and nobody has said it.
    #[must_use]
    pub fn with_windows(mut self) -> Self {
        self.catalog.instance_types = with_windows(&self.catalog.instance_types);
        self.assumed.push(WINDOWS_PRICES.to_owned());
        self
    }
}

/// Types that may boot Windows as well as Linux.
fn with_windows(types: &[Arc<CatalogType>]) -> Vec<Arc<CatalogType>> {
    let mut types = types.to_vec();
    for entry in &mut types {
        let is_amd64 = |it: &RequirementSpec| it.key == ARCH && it.values.iter().any(|value| value == ARCH_AMD64);
        if !entry.requirements.iter().any(is_amd64) {
            continue;
        }
        let entry = Arc::make_mut(entry);
        // Which build it is depends on the image.
        entry.requirements.retain(|it| it.key != WINDOWS_BUILD);
        for requirement in entry.requirements.iter_mut().filter(|it| it.key == OS) {
            requirement.values = vec![LINUX.to_owned(), WINDOWS.to_owned()];
        }
    }
    types
}

const LINUX: &str = "linux";

const WINDOWS_PRICES: &str = "machines with Windows cost what they do with Linux (no prices of Windows in the table)";

const WINDOWS: &str = "windows";

/// The catalogue of a source in a region, or in its default region.
///
/// It sells in the region's first three zones and in those of `more_zones` that lie in the region.
pub fn load(source: Source, region: Option<&str>, more_zones: &[String]) -> Result<Loaded, Damaged> {
    let region = region
        .or_else(|| source.priced_regions().first().copied())
        .unwrap_or_default();
    match source {
        Source::Aws => aws::load(region, more_zones),
        Source::Azure => azure::load(region),
        Source::Kwok => Ok(kwok::load()),
    }
}
