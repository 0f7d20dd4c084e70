//! Which workloads are there by name? The list the task runner prints, generates and benchmarks.

use std::fmt;

use crate::diverse::{PREFERENCE_PODS, SIZES, Types};
use crate::performance::Scenario;
use crate::snapshot::Snapshot;
use crate::{consolidation, diverse, mixed, performance, random, regression};

/// A workload and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Upstream's benchmark of diverse pods.
    Diverse {
        /// How many.
        pods: u64,
        /// Over which catalogue.
        types: Types,
    },
    /// Upstream's benchmark of pods with preferences.
    Preferences {
        /// How many.
        pods: u64,
        /// Over which catalogue.
        types: Types,
        /// Whether the preferences count.
        respected: bool,
    },
    /// A scenario of the performance suite, pending.
    Performance(Scenario),
    /// The same scenario as a fleet after scale-in.
    Fleet(Scenario),
    /// A hundred equal pods.
    RegressionSimple,
    /// Six Deployments of sixteen.
    RegressionComplex,
    /// Mixed Deployments, pending.
    Mixed {
        /// How many pods.
        pods: u64,
        /// Which ones.
        seed: u64,
    },
    /// Mixed Deployments as a fleet after scale-in.
    FleetMixed {
        /// How many pods before it.
        pods: u64,
        /// Which ones.
        seed: u64,
    },
    /// Many nodes with many pods on them, half empty.
    Cluster {
        /// About how many nodes.
        nodes: u64,
        /// About how many pods.
        pods: u64,
    },
    /// A random cluster with every scheduling feature in it somewhere.
    Random {
        /// Which one.
        seed: u64,
    },
}

/// A shape nobody generates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownShape(pub String);

impl fmt::Display for UnknownShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown shape {:?}; known are {}", self.0, NAMES.join(", "))
    }
}

impl std::error::Error for UnknownShape {}

/// The names [`Shape::named`] knows; `performance-` and `fleet-` are followed by a scenario of the performance suite.
pub const NAMES: [&str; 11] = [
    "diverse",
    "preferences-respect",
    "preferences-ignore",
    "performance-SCENARIO",
    "fleet-SCENARIO",
    "regression-simple",
    "regression-complex",
    "mixed",
    "fleet-mixed",
    "cluster",
    "random",
];

impl Shape {
    /// The shape of a name; parameters that do not apply to it are ignored.
    pub fn named(name: &str, pods: Option<u64>, types: Types, seed: u64) -> Result<Self, UnknownShape> {
        let scenario = |prefix: &str| {
            Scenario::ALL
                .into_iter()
                .find(|s| name.strip_prefix(prefix) == Some(s.key()))
        };
        if let Some(scenario) = scenario("performance-") {
            return Ok(Self::Performance(scenario));
        }
        if let Some(scenario) = scenario("fleet-") {
            return Ok(Self::Fleet(scenario));
        }
        Ok(match name {
            "diverse" => Self::Diverse {
                pods: pods.unwrap_or(500),
                types,
            },
            "preferences-respect" => Self::Preferences {
                pods: pods.unwrap_or(PREFERENCE_PODS),
                types,
                respected: true,
            },
            "preferences-ignore" => Self::Preferences {
                pods: pods.unwrap_or(PREFERENCE_PODS),
                types,
                respected: false,
            },
            "regression-simple" => Self::RegressionSimple,
            "regression-complex" => Self::RegressionComplex,
            "mixed" => Self::Mixed {
                pods: pods.unwrap_or(500),
                seed,
            },
            "fleet-mixed" => Self::FleetMixed {
                pods: pods.unwrap_or(500),
                seed,
            },
            "cluster" => {
                let pods = pods.unwrap_or(100_000);
                Self::Cluster { nodes: pods / 20, pods }
            }
            "random" => Self::Random { seed },
            _ => return Err(UnknownShape(name.to_string())),
        })
    }

    /// Every pending-pod shape upstream publishes, at its published size, and the mixed workload.
    pub fn benchmarks() -> Vec<Self> {
        let types = Types::Fake400;
        let mut shapes: Vec<Self> = SIZES.into_iter().map(|pods| Self::Diverse { pods, types }).collect();
        shapes.push(Self::Preferences {
            pods: PREFERENCE_PODS,
            types,
            respected: true,
        });
        shapes.push(Self::Preferences {
            pods: PREFERENCE_PODS,
            types,
            respected: false,
        });
        shapes.push(Self::Diverse {
            pods: 1000,
            types: Types::Assorted,
        });
        shapes.extend(Scenario::ALL.map(Self::Performance));
        shapes.extend([
            Self::RegressionSimple,
            Self::RegressionComplex,
            Self::Mixed { pods: 500, seed: 1 },
        ]);
        shapes
    }

    /// Every fleet for consolidation.
    pub fn fleets() -> Vec<Self> {
        let mut shapes: Vec<Self> = Scenario::ALL.map(Self::Fleet).to_vec();
        shapes.push(Self::FleetMixed { pods: 500, seed: 1 });
        shapes
    }

    /// The snapshot itself.
    pub fn generate(&self) -> Snapshot {
        match *self {
            Self::Diverse { pods, types } => diverse::diverse(pods, types),
            Self::Preferences { pods, types, respected } => diverse::preferences(pods, types, respected),
            Self::Performance(scenario) => performance::scale_out(scenario),
            Self::Fleet(scenario) => consolidation::performance(scenario),
            Self::RegressionSimple => regression::simple(),
            Self::RegressionComplex => regression::complex(),
            Self::Mixed { pods, seed } => mixed::pending(pods, seed),
            Self::FleetMixed { pods, seed } => consolidation::mixed(pods, seed),
            Self::Cluster { nodes, pods } => consolidation::cluster(nodes, pods),
            Self::Random { seed } => random::random(seed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_found_by_the_name_its_snapshot_has() {
        let scenarios = Shape::benchmarks().into_iter().chain(Shape::fleets());
        for shape in scenarios.filter(|shape| matches!(shape, Shape::Performance(_) | Shape::Fleet(_))) {
            let name = shape.generate().name().to_string();
            assert_eq!(Shape::named(&name, None, Types::Fake400, 0), Ok(shape));
        }
        assert_eq!(
            Shape::named("nonsense", None, Types::Fake400, 0),
            Err(UnknownShape("nonsense".to_string()))
        );
    }
}
