//! Which machines does the simulated cloud sell? Upstream's own test catalogues, made by formula.

mod fake;
mod kwok;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::object::{CAPACITY_TYPE, ZONE, requirement};

pub use fake::{FAKE_LABELS, assorted, fake};
pub use kwok::{KWOK_FAMILY, KWOK_LABELS, KWOK_SIZE, KWOK_ZONES, kwok, kwok_price};

/// One machine type.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceType {
    /// The cloud's name.
    pub name: String,
    /// What a node of this type may be labelled with.
    pub requirements: Vec<Value>,
    /// What the machine has.
    pub capacity: Map<String, Value>,
    /// What its system keeps for itself.
    pub overhead: Value,
    /// Where, how and for how much it can be had.
    pub offerings: Vec<Offering>,
    /// How many volumes of a CSI driver a node takes.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub volume_attachment_limits: Map<String, Value>,
    /// Devices it comes with, null when there are none.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub dynamic_resources: Value,
    /// Cores, for our own arithmetic.
    #[serde(skip)]
    pub cpu: u64,
    /// Memory in MiB, for our own arithmetic.
    #[serde(skip)]
    pub memory_mi: u64,
    /// Pods, for our own arithmetic.
    #[serde(skip)]
    pub pods: u64,
}

/// One way to buy a type.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offering {
    /// Capacity type and zone, and the reservation when there is one.
    pub requirements: Vec<Value>,
    /// Dollars per hour, exact.
    pub price: String,
    /// Whether the cloud has any.
    pub available: bool,
    /// Instances left in the reservation.
    pub reservation_capacity: u64,
    /// Resources of which a node has another amount here.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub capacity_override: Map<String, Value>,
    /// What a node keeps for itself here, null when it is what the type says.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub overhead_override: Value,
}

impl Offering {
    /// An available offering.
    pub fn new(capacity_type: &str, zone: &str, price: String) -> Self {
        Self {
            requirements: vec![
                requirement(CAPACITY_TYPE, "In", &[capacity_type]),
                requirement(ZONE, "In", &[zone]),
            ],
            price,
            available: true,
            reservation_capacity: 0,
            capacity_override: Map::new(),
            overhead_override: Value::Null,
        }
    }
}

/// What both of upstream's catalogues keep back on every node: a tenth of a core and ten megabytes.
fn overhead() -> Value {
    json!({ "kubeReserved": { "cpu": "100m", "memory": "10Mi" }, "systemReserved": {}, "evictionThreshold": {} })
}

/// The values of `items` in order of first appearance.
fn distinct<'a>(items: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}
