//! In which ways are the passes tried, and in which order? Those that win most often come first, for most races end early.

use crate::cost::{Settings, Variant};

use super::FLEXIBLE;

/// What a node counts as dearer than it is where few nodes are sought: two cents an hour.
const SURCHARGE: u64 = 20_000_000_000;
/// Permille a node may cost more to be in an emptier zone where few nodes are sought.
const ZONE_TOLERANCE: u64 = 3;
/// Spot prices are taken as the mean of so many types that hold the same.
const ROBUST: usize = 3;

/// One way to run the passes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial {
    pub(super) name: &'static str,
    variant: Variant,
    has_surcharge: bool,
    is_robust: bool,
    /// Spot offers that cannot be replaced are left out.
    pub(super) is_flexible: bool,
    /// It is tried only if this way found nothing that is flexible enough; if none is named, if no way did.
    pub(super) mends: Option<&'static str>,
}

const PLAIN: Trial = Trial {
    name: "cheap",
    variant: Variant::Mixed,
    has_surcharge: false,
    is_robust: false,
    is_flexible: false,
    mends: None,
};

/// All of them.
pub(super) const TRIALS: [Trial; 8] = [
    PLAIN,
    Trial {
        name: "cheap, few nodes",
        has_surcharge: true,
        ..PLAIN
    },
    Trial {
        name: "cheap, few nodes, flexible",
        has_surcharge: true,
        is_flexible: true,
        mends: Some("cheap, few nodes"),
        ..PLAIN
    },
    Trial {
        name: "cheap, flexible",
        is_flexible: true,
        ..PLAIN
    },
    Trial {
        name: "cheap, one ratio",
        variant: Variant::OneRatio,
        ..PLAIN
    },
    Trial {
        name: "cheap, small nodes",
        variant: Variant::SmallNodes,
        ..PLAIN
    },
    Trial {
        name: "cheap, one ratio, small nodes",
        variant: Variant::OneRatioSmallNodes,
        ..PLAIN
    },
    Trial {
        name: "cheap, robust prices",
        has_surcharge: true,
        is_robust: true,
        ..PLAIN
    },
];

impl Trial {
    /// What the passes are asked for.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            variants: vec![self.variant],
            node_surcharge: if self.has_surcharge { SURCHARGE } else { 0 },
            zone_tolerance: if self.has_surcharge { ZONE_TOLERANCE } else { 0 },
            stand_ins: if self.is_flexible { FLEXIBLE } else { 0 },
            robust_prices: if self.is_robust { ROBUST } else { 0 },
            ..Settings::default()
        }
    }
}
