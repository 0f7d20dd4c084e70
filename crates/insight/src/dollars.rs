//! An amount of money that may be less than nothing: a change, a saving, a difference.

use std::{
    iter::Sum,
    ops::{Add, AddAssign, Neg, Sub},
};

use model::price::Price;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Hours of a month, as clouds' calculators count it.
const HOURS_OF_A_MONTH: i128 = 730;

/// Pico-dollars, exact. In documents a number of dollars, with the unit in the key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dollars(pub i128);

impl Dollars {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// The same rate for a month instead of an hour.
    #[must_use]
    pub fn monthly(self) -> Self {
        Self(self.0.saturating_mul(HOURS_OF_A_MONTH))
    }

    /// Without its sign.
    pub fn size(self) -> Price {
        Price::from_picos(u64::try_from(self.0.unsigned_abs()).unwrap_or(u64::MAX))
    }

    /// A part of it.
    #[must_use]
    pub fn part(self, part: u64, whole: u64) -> Self {
        match whole {
            0 => Self::ZERO,
            _ => Self(self.0.saturating_mul(i128::from(part)) / i128::from(whole)),
        }
    }

    /// At least nothing.
    #[must_use]
    pub fn or_nothing(self) -> Self {
        self.max(Self::ZERO)
    }

    /// How many thousandths of a whole, of amounts that are not negative.
    pub fn per_mille_of(self, whole: Self) -> Option<u64> {
        if whole.0 <= 0 {
            return None;
        }
        u64::try_from((self.0.saturating_mul(1000) + whole.0 / 2) / whole.0).ok()
    }
}

impl From<Price> for Dollars {
    fn from(price: Price) -> Self {
        Self(i128::from(price.picos()))
    }
}

impl Add for Dollars {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Dollars {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Dollars {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Dollars {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl Sum for Dollars {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let size: f64 = self.size().to_decimal().parse().unwrap_or_default();
        serializer.serialize_f64(if self.0 < 0 { -size } else { size })
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        let size = Price::from_f64(dollars.abs())
            .ok_or_else(|| serde::de::Error::custom(format_args!("{dollars} is not an amount of dollars")))?;
        let size = Self::from(size);
        Ok(if dollars < 0.0 { -size } else { size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_keeps_its_sign_and_its_digits_in_a_document() {
        for (picos, text) in [
            (0, "0.0"),
            (129_600_000_000, "0.1296"),
            (-423_110_000_000_000, "-423.11"),
        ] {
            assert_eq!(serde_json::to_string(&Dollars(picos)).unwrap(), text);
            assert_eq!(serde_json::from_str::<Dollars>(text).unwrap(), Dollars(picos));
        }
    }

    #[test]
    fn a_share_is_in_thousandths_and_of_nothing_there_is_none() {
        assert_eq!(Dollars(99).per_mille_of(Dollars(1000)), Some(99));
        assert_eq!(Dollars(1).per_mille_of(Dollars::ZERO), None);
        assert_eq!(Dollars(1000).part(1, 3), Dollars(333));
    }
}
