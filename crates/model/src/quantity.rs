//! How much of something: Kubernetes' fixed-point number, exact.
//!
//! The amount is a whole number of nano-units, the finest step Kubernetes stores, so comparing and adding never
//! rounds and no float takes part in a decision. The notation (decimal, binary, exponent) is remembered for printing
//! only: `1Gi` and `1073741824` are equal.
//!
//! Two deliberate differences from `k8s.io/apimachinery`: printing is always canonical (Go echoes spellings such as
//! `1.500` or `+5` until the first arithmetic), and a magnitude above 10^29 is held at 10^29 where Go grows without
//! bound (and then prints a decimal above 999E without its suffix).

mod parse;
mod print;
mod wire;

#[cfg(test)]
mod tests;

use std::{
    cmp::Ordering,
    hash::{Hash, Hasher},
    iter::Sum,
    ops::{Add, AddAssign, Neg, Sub, SubAssign},
};

pub use parse::QuantityError;

/// Nano-units in one unit.
const UNIT: i128 = 1_000_000_000;
/// Nano-units in one thousandth.
const MILLI: i128 = 1_000_000;
/// The largest magnitude held, in nano-units: room for sums of anything a cluster can contain.
const LIMIT: i128 = 10_i128.pow(38);

/// The notation a quantity is printed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// `500m`, `2`, `3k`: powers of 1000.
    #[default]
    DecimalSi,
    /// `512Mi`: powers of 1024.
    BinarySi,
    /// `5e3`: powers of ten, spelled out.
    DecimalExponent,
}

/// An exact amount. Equality, order and hash look at the amount alone, never at the notation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Nothing, in decimal notation.
    pub const ZERO: Self = Self {
        nanos: 0,
        format: Format::DecimalSi,
    };

    /// An amount of nano-units, held at the largest magnitude when beyond it.
    pub fn from_nanos(nanos: i128, format: Format) -> Self {
        Self {
            nanos: nanos.clamp(-LIMIT, LIMIT),
            format,
        }
    }

    /// A whole amount in decimal notation: `from_units(3)` is `3`.
    pub fn from_units(units: i64) -> Self {
        Self {
            nanos: i128::from(units) * UNIT,
            format: Format::DecimalSi,
        }
    }

    /// An amount of thousandths in decimal notation: `from_millis(500)` is `500m`.
    pub fn from_millis(millis: i64) -> Self {
        Self {
            nanos: i128::from(millis) * MILLI,
            format: Format::DecimalSi,
        }
    }

    /// A whole amount in binary notation: `from_bytes(1 << 30)` is `1Gi`.
    pub fn from_bytes(bytes: i64) -> Self {
        Self {
            nanos: i128::from(bytes) * UNIT,
            format: Format::BinarySi,
        }
    }

    /// The exact amount in nano-units.
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// The notation it prints in.
    pub fn format(self) -> Format {
        self.format
    }

    /// The same amount, printed in another notation.
    #[must_use]
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Whole units, a fraction rounded away from zero; the ends of `i64` when beyond them.
    pub fn value(self) -> i64 {
        divide_away_from_zero(self.nanos, UNIT)
    }

    /// Whole thousandths, a finer fraction rounded away from zero; the ends of `i64` when beyond them.
    pub fn milli_value(self) -> i64 {
        divide_away_from_zero(self.nanos, MILLI)
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Zero takes the other operand's notation, so that a sum started from nothing prints like its parts.
    fn joint_format(self, other: Self) -> Format {
        if self.is_zero() { other.format } else { self.format }
    }
}

fn divide_away_from_zero(nanos: i128, divisor: i128) -> i64 {
    let whole = nanos / divisor;
    let rounded = if nanos % divisor == 0 {
        whole
    } else {
        whole + nanos.signum()
    };
    i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::from_nanos(self.nanos.saturating_add(other.nanos), self.joint_format(other))
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self::from_nanos(self.nanos.saturating_sub(other.nanos), self.joint_format(other))
    }
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        Self {
            nanos: -self.nanos,
            ..self
        }
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Quantity {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, Add::add)
    }
}
