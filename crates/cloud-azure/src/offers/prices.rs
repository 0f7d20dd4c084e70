//! What does a size cost? Retail prices, and the built-in table until they are read.

use std::collections::BTreeMap;

use catalogue::Damaged;
use jiff::Timestamp;
use model::price::Price;

use crate::arm::wire::RetailPrice;

/// What a size without a price counts as: kept, but the last choice.
const UNKNOWN_DOLLARS: f64 = 999.0;

/// Where prices come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PriceSource {
    /// The table that is part of this program, of that day.
    BuiltIn(String),
    /// Azure, at that time.
    Asked(Timestamp),
}

/// Prices by size. Zones of a region cost the same.
#[derive(Debug, Clone)]
pub(crate) struct Prices {
    on_demand: BTreeMap<String, Price>,
    spot: BTreeMap<String, Price>,
    source: PriceSource,
    unknown: Price,
    version: u64,
}

impl Prices {
    /// The built-in ones.
    pub(crate) fn built_in(region: &str) -> Result<Self, Damaged> {
        let table = catalogue::azure::prices(region)?;
        Ok(Self {
            on_demand: table.on_demand,
            spot: table.spot,
            source: PriceSource::BuiltIn(table.day),
            unknown: Price::from_f64(UNKNOWN_DOLLARS).unwrap_or_default(),
            version: 0,
        })
    }

    /// Takes what Azure says; an empty answer is none. Of several meters of a size the cheapest counts: the dearer ones
    /// are licences that their names do not always tell.
    pub(crate) fn take(&mut self, all: &[RetailPrice], now: Timestamp) {
        let (mut on_demand, mut spot) = (BTreeMap::new(), BTreeMap::new());
        for price in all {
            let is_other = price.product_name.ends_with(" Windows") || price.meter_name.ends_with(" Low Priority");
            if is_other || price.arm_sku_name.is_empty() || price.retail_price <= 0.0 {
                continue;
            }
            let Some(amount) = Price::from_f64(price.retail_price) else {
                continue;
            };
            let kind = if price.sku_name.ends_with(" Spot") {
                &mut spot
            } else {
                &mut on_demand
            };
            let kept = kind.entry(price.arm_sku_name.clone()).or_insert(amount);
            *kept = amount.min(*kept);
        }
        if on_demand.is_empty() {
            return;
        }
        self.source = PriceSource::Asked(now);
        if self.on_demand != on_demand || self.spot != spot {
            (self.on_demand, self.spot) = (on_demand, spot);
            self.version += 1;
        }
    }

    pub(crate) fn on_demand(&self, size: &str) -> Price {
        self.on_demand.get(size).copied().unwrap_or(self.unknown)
    }

    /// Until a spot price is read, spot counts as on-demand.
    pub(crate) fn spot(&self, size: &str) -> Price {
        self.spot.get(size).copied().unwrap_or_else(|| self.on_demand(size))
    }

    pub(crate) fn source(&self) -> &PriceSource {
        &self.source
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(size: &str, sku: &str, product: &str, meter: &str, dollars: f64) -> RetailPrice {
        RetailPrice {
            retail_price: dollars,
            arm_sku_name: size.to_owned(),
            sku_name: sku.to_owned(),
            product_name: product.to_owned(),
            meter_name: meter.to_owned(),
        }
    }

    #[test]
    fn the_cheapest_meter_that_is_ours_counts() {
        let mut prices = Prices::built_in("eastus").unwrap();
        prices.take(
            &[
                meter(
                    "Standard_D16ads_v5",
                    "D16ads v5",
                    "Virtual Machines Dadsv5 Series",
                    "D16ads v5",
                    1.56,
                ),
                meter(
                    "Standard_D16ads_v5",
                    "D16ads v5",
                    "Virtual Machines Dadsv5 Series",
                    "D16ads v5",
                    0.824,
                ),
                meter(
                    "Standard_D16ads_v5",
                    "D16ads v5",
                    "Virtual Machines Dadsv5 Series Windows",
                    "D16ads v5",
                    0.1,
                ),
                meter(
                    "Standard_D16ads_v5",
                    "D16ads v5 Low Priority",
                    "x",
                    "D16ads v5 Low Priority",
                    0.1,
                ),
                meter("Standard_D16ads_v5", "D16ads v5 Spot", "x", "D16ads v5 Spot", 0.09),
            ],
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(prices.on_demand("Standard_D16ads_v5").to_decimal(), "0.824");
        assert_eq!(prices.spot("Standard_D16ads_v5").to_decimal(), "0.09");
        assert_eq!(prices.on_demand("Standard_X1").to_decimal(), "999");
        assert_eq!(prices.source(), &PriceSource::Asked(Timestamp::UNIX_EPOCH));
    }

    #[test]
    fn an_empty_answer_leaves_the_built_in_prices_standing() {
        let mut prices = Prices::built_in("eastus").unwrap();
        prices.take(&[], Timestamp::UNIX_EPOCH);
        assert_eq!(prices.on_demand("Standard_D4s_v5").to_decimal(), "0.192");
        assert!(matches!(prices.source(), PriceSource::BuiltIn(day) if !day.is_empty()));
        assert_eq!(prices.version(), 0);
    }
}
