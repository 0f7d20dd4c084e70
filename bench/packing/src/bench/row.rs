//! What was measured on one input: a row of the table, an object of the JSON.

use packing::Packing;
use serde_json::{Value, json};

use super::measure::Memory;
use crate::reference::{Cost, Plan};

/// One planner on one input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Time of one plan; of upstream only its Solve, because the rest is not ours to judge.
    pub ms: f64,
    /// Nodes it launches.
    pub claims: usize,
    /// Pods it leaves.
    pub unplaced: usize,
    /// What the nodes cost an hour.
    pub usd_h: f64,
    /// What the plan allocated.
    pub memory: Memory,
}

/// Both on one input.
#[derive(Debug, Clone)]
pub struct Row {
    /// The input's name.
    pub input: String,
    /// Pods to place.
    pub pods: usize,
    /// Which passes of ours took part.
    pub packing: Packing,
    /// Ours, from the snapshot to the finished plan, everything counted.
    pub ours: Side,
    /// The same when what follows from the catalogue is there already, as upstream's construction is.
    pub warm_ms: f64,
    /// Upstream's, when it took its turns.
    pub reference: Option<Side>,
    /// What upstream spends before it solves.
    pub reference_construct_ms: Option<f64>,
    /// What no plan can cost less than.
    pub lower_bound_usd_h: Option<f64>,
}

/// The columns of the table.
pub const COLUMNS: [&str; 16] = [
    "input",
    "pods",
    "ours ms",
    "reference ms",
    "ratio",
    "warm ms",
    "warm ratio",
    "reference construct ms",
    "claims",
    "reference claims",
    "ours $/h",
    "reference $/h",
    "bound $/h",
    "ours MB",
    "reference MB",
    "ours allocations",
];

impl Cost {
    /// Time on the wall.
    #[allow(clippy::cast_precision_loss, reason = "printed to three digits")]
    pub fn ms(&self) -> f64 {
        self.nanoseconds as f64 / 1e6
    }
}

impl Side {
    /// What upstream reported.
    pub fn reference(plan: &Plan) -> Self {
        Self {
            ms: plan.solve.ms(),
            claims: plan.claims.len(),
            unplaced: plan.errors.len() + plan.ignored.len(),
            usd_h: plan.price,
            memory: Memory {
                bytes: plan.solve.bytes_allocated,
                allocations: plan.solve.allocations,
            },
        }
    }
}

impl Row {
    /// How many plans of ours fit into one of upstream's.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.reference?.ms / self.ours.ms)
    }

    /// The same with what follows from the catalogue kept.
    pub fn warm_ratio(&self) -> Option<f64> {
        Some(self.reference?.ms / self.warm_ms)
    }

    /// The row of the table.
    pub fn cells(&self) -> [String; 16] {
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        let reference = self.reference;
        [
            self.input.clone(),
            self.pods.to_string(),
            format!("{:.3}", self.ours.ms),
            or_dash(reference.map(|side| format!("{:.1}", side.ms))),
            or_dash(self.ratio().map(|ratio| format!("{ratio:.0}"))),
            format!("{:.3}", self.warm_ms),
            or_dash(self.warm_ratio().map(|ratio| format!("{ratio:.0}"))),
            or_dash(self.reference_construct_ms.map(|ms| format!("{ms:.1}"))),
            self.ours.claims.to_string(),
            or_dash(reference.map(|side| side.claims.to_string())),
            format!("{:.4}", self.ours.usd_h),
            or_dash(reference.map(|side| format!("{:.4}", side.usd_h))),
            or_dash(self.lower_bound_usd_h.map(|bound| format!("{bound:.4}"))),
            megabytes(self.ours.memory),
            or_dash(reference.map(|side| megabytes(side.memory))),
            self.ours.memory.allocations.to_string(),
        ]
    }

    /// The row as JSON.
    pub fn json(&self) -> Value {
        let reference = |of: fn(&Side) -> Value| self.reference.as_ref().map_or(Value::Null, of);
        json!({
            "input": self.input,
            "pods": self.pods,
            "packing": match self.packing { Packing::Faithful => "faithful", Packing::Cheapest => "cheapest" },
            "ours_ms": self.ours.ms,
            "reference_ms": reference(|side| json!(side.ms)),
            "ratio": self.ratio(),
            "ours_warm_ms": self.warm_ms,
            "warm_ratio": self.warm_ratio(),
            "ours_usd_h": self.ours.usd_h,
            "reference_usd_h": reference(|side| json!(side.usd_h)),
            "lower_bound_usd_h": self.lower_bound_usd_h,
            "reference_construct_ms": self.reference_construct_ms,
            "ours_claims": self.ours.claims,
            "reference_claims": reference(|side| json!(side.claims)),
            "ours_unplaced": self.ours.unplaced,
            "reference_unplaced": reference(|side| json!(side.unplaced)),
            "ours_memory": self.ours.memory,
            "reference_memory": reference(|side| json!(side.memory)),
        })
    }
}

#[allow(clippy::cast_precision_loss, reason = "printed to one digit")]
fn megabytes(memory: Memory) -> String {
    format!("{:.1}", memory.bytes as f64 / 1e6)
}

/// A Markdown table of all rows.
pub fn table(rows: &[Row]) -> String {
    let head = COLUMNS.map(ToOwned::to_owned).to_vec();
    let rows = rows.iter().map(|row| row.cells().to_vec());
    aligned(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

/// A Markdown table whose columns line up for people too: the first to the left, the others, numbers, to the right.
pub(super) fn aligned(cells: &[Vec<String>]) -> String {
    let columns = cells.first().map_or(0, Vec::len);
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
    };
    let rule = widths.iter().enumerate().map(|(column, &width)| {
        if column == 0 {
            "-".repeat(width + 2)
        } else {
            format!("{}:", "-".repeat(width + 1))
        }
    });
    let mut lines: Vec<String> = cells.iter().map(line).collect();
    lines.insert(1, format!("|{}|", rule.collect::<Vec<_>>().join("|")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let side = |ms, usd_h| Side {
            ms,
            claims: 2,
            unplaced: 0,
            usd_h,
            memory: Memory {
                bytes: 1_500_000,
                allocations: 12,
            },
        };
        Row {
            input: "diverse-10".to_owned(),
            pods: 10,
            packing: Packing::Faithful,
            ours: side(0.5, 1.0),
            warm_ms: 0.25,
            reference: Some(side(1000.0, 1.25)),
            reference_construct_ms: Some(3.0),
            lower_bound_usd_h: None,
        }
    }

    #[test]
    fn the_ratio_is_how_many_plans_of_ours_fit_into_one_of_theirs() {
        assert_eq!((row().ratio(), row().warm_ratio()), (Some(2000.0), Some(4000.0)));
        assert_eq!(
            Row {
                reference: None,
                ..row()
            }
            .ratio(),
            None
        );
    }

    #[test]
    fn all_lines_of_the_table_are_equally_wide() {
        let table = table(&[
            row(),
            Row {
                reference: None,
                ..row()
            },
        ]);
        let widths: Vec<usize> = table.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths, [widths[0]; 4]);
    }
}
