//! What types cost: on demand, and as spot in each zone.
//!
//! On-demand prices begin with the built-in table and are then asked for; until spot prices have been read once, spot
//! costs what on-demand does, and afterwards a zone without a price sells none. A failed question changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_pricing::types::{Filter, FilterType};
use catalogue::{Damaged, aws::KnownType};
use jiff::Timestamp;
use model::price::Price;
use serde::Deserialize;

use crate::{Clients, Failure};

/// Where a price comes from and how old it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PriceSource {
    /// The table in the binary, of this day.
    BuiltIn(String),
    /// AWS, when it was last asked.
    Asked(Timestamp),
}

/// The prices known.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    region: String,
    is_isolated: bool,
    on_demand: BTreeMap<String, Price>,
    on_demand_source: PriceSource,
    spot: BTreeMap<String, BTreeMap<String, Price>>,
    spot_read_at: Option<Timestamp>,
    version: u64,
}

impl Prices {
    /// The built-in ones. A region without prices of its own has those of us-east-1, as upstream does it.
    pub fn built_in(region: &str, is_isolated: bool) -> Result<(Self, BTreeMap<String, KnownType>), Damaged> {
        let (known, prices_of) = catalogue::aws::known(region)?;
        let price = |(name, known): (&String, &KnownType)| Some((name.clone(), known.price?));
        let prices = Self {
            region: region.to_owned(),
            is_isolated,
            on_demand: known.iter().filter_map(price).collect(),
            on_demand_source: PriceSource::BuiltIn(prices_of),
            spot: BTreeMap::new(),
            spot_read_at: None,
            version: 0,
        };
        Ok((prices, known))
    }

    /// Dollars an hour.
    pub fn on_demand(&self, instance_type: &str) -> Option<Price> {
        self.on_demand.get(instance_type).copied()
    }

    /// Dollars an hour in a zone.
    pub fn spot(&self, instance_type: &str, zone: &str) -> Option<Price> {
        if self.spot_read_at.is_none() {
            return self.on_demand(instance_type);
        }
        self.spot.get(instance_type)?.get(zone).copied()
    }

    /// Where on-demand prices come from.
    pub fn on_demand_source(&self) -> &PriceSource {
        &self.on_demand_source
    }

    /// When spot prices were last read; none: not yet.
    pub fn spot_read_at(&self) -> Option<Timestamp> {
        self.spot_read_at
    }

    /// Counts changes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether AWS can be asked what on-demand costs here.
    pub fn asks_on_demand(&self) -> bool {
        !self.is_isolated && !self.region.starts_with("us-gov")
    }

    /// Takes what was asked for. Prices that are not among them stay.
    pub fn take_on_demand(&mut self, prices: BTreeMap<String, Price>, now: Timestamp) {
        let differs = prices.iter().any(|(name, price)| self.on_demand(name) != Some(*price));
        self.version += u64::from(differs);
        self.on_demand.extend(prices);
        self.on_demand_source = PriceSource::Asked(now);
    }

    /// Takes what was asked for. Prices that are not among them stay.
    pub fn take_spot(&mut self, prices: BTreeMap<String, BTreeMap<String, Price>>, now: Timestamp) {
        let is_first = self.spot_read_at.is_none();
        let differs = prices.iter().any(|(name, zones)| {
            let known = self.spot.get(name);
            zones
                .iter()
                .any(|(zone, price)| known.and_then(|known| known.get(zone)) != Some(price))
        });
        self.version += u64::from(is_first || differs);
        for (name, zones) in prices {
            self.spot.entry(name).or_default().extend(zones);
        }
        self.spot_read_at = Some(now);
    }
}

/// Why prices are still the old ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// AWS did not answer.
    #[error("retrieving {kind} pricing data, {failure}")]
    Asked {
        /// Which prices.
        kind: &'static str,
        /// What it said.
        failure: Failure,
    },
    /// AWS named none.
    #[error("no {0} pricing found")]
    None(&'static str),
}

/// The fields that select Linux on demand in a region.
fn common_filters(region: &str) -> [(&'static str, String); 6] {
    [
        ("regionCode", region.to_owned()),
        ("serviceCode", "AmazonEC2".to_owned()),
        ("preInstalledSw", "NA".to_owned()),
        ("operatingSystem", "Linux".to_owned()),
        ("capacitystatus", "Used".to_owned()),
        ("marketoption", "OnDemand".to_owned()),
    ]
}

/// Asks what on-demand costs.
pub async fn ask_on_demand(clients: &Clients) -> Result<BTreeMap<String, Price>, PriceError> {
    let (shared, metal) = tokio::join!(
        ask_products(clients, "Shared", "Compute Instance"),
        ask_products(clients, "Dedicated", "Compute Instance (bare metal)"),
    );
    let (mut shared, metal) = (shared?, metal?);
    if shared.is_empty() || metal.is_empty() {
        return Err(PriceError::None("on-demand"));
    }
    shared.extend(metal);
    Ok(shared)
}

async fn ask_products(clients: &Clients, tenancy: &str, family: &str) -> Result<BTreeMap<String, Price>, PriceError> {
    let asked = |failure| PriceError::Asked {
        kind: "on-demand",
        failure,
    };
    let more = [("tenancy", tenancy.to_owned()), ("productFamily", family.to_owned())];
    let mut filters = Vec::new();
    for (field, value) in common_filters(&clients.region).into_iter().chain(more) {
        let filter = Filter::builder()
            .r#type(FilterType::TermMatch)
            .field(field)
            .value(value);
        let filter = filter.build().map_err(|error| {
            asked(Failure {
                code: String::new(),
                message: error.to_string(),
                status: None,
            })
        })?;
        filters.push(filter);
    }
    let mut pages = clients
        .pricing
        .get_products()
        .service_code("AmazonEC2")
        .set_filters(Some(filters))
        .max_results(100)
        .into_paginator()
        .send();
    let mut prices = BTreeMap::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| asked(Failure::of(&error)))?;
        let read = page
            .price_list()
            .iter()
            .filter_map(|text| product(text, &clients.region));
        prices.extend(read);
    }
    Ok(prices)
}

#[derive(Deserialize)]
struct Product {
    product: Described,
    #[serde(default)]
    terms: Terms,
}

#[derive(Deserialize)]
struct Described {
    #[serde(default)]
    attributes: Attributes,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Attributes {
    instance_type: String,
}

#[derive(Deserialize, Default)]
struct Terms {
    #[serde(rename = "OnDemand", default)]
    on_demand: BTreeMap<String, Term>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term {
    #[serde(default)]
    price_dimensions: BTreeMap<String, Dimension>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dimension {
    #[serde(default)]
    price_per_unit: BTreeMap<String, String>,
}

/// A product's type and price; none when it is free, which only parts of other products are.
pub fn product(text: &str, region: &str) -> Option<(String, Price)> {
    let product: Product = match serde_json::from_str(text) {
        Ok(product) => product,
        Err(error) => {
            tracing::error!(%error, "failed unmarshaling pricing data");
            return None;
        }
    };
    let currency = if region.starts_with("cn-") { "CNY" } else { "USD" };
    let dimensions = product
        .terms
        .on_demand
        .values()
        .flat_map(|it| it.price_dimensions.values());
    let mut prices = dimensions.filter_map(|it| it.price_per_unit.get(currency)?.parse::<Price>().ok());
    let price = prices.rfind(|price| price.picos() > 0)?;
    let name = product.product.attributes.instance_type;
    (!name.is_empty()).then_some((name, price))
}

/// Asks what spot costs in each zone. Later records are newer ones.
pub async fn ask_spot(
    clients: &Clients,
    now: Timestamp,
) -> Result<BTreeMap<String, BTreeMap<String, Price>>, PriceError> {
    let mut pages = clients
        .ec2
        .describe_spot_price_history()
        .product_descriptions("Linux/UNIX")
        .product_descriptions("Linux/UNIX (Amazon VPC)")
        .start_time(aws_smithy_types::DateTime::from_secs(now.as_second()))
        .max_results(2000)
        .into_paginator()
        .send();
    let mut prices: BTreeMap<String, BTreeMap<String, Price>> = BTreeMap::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| PriceError::Asked {
            kind: "spot",
            failure: Failure::of(&error),
        })?;
        for record in page.spot_price_history() {
            let (Some(name), Some(zone)) = (record.instance_type(), record.availability_zone()) else {
                continue;
            };
            let price = record.spot_price().and_then(|text| text.parse::<Price>().ok());
            if let Some(price) = price.filter(|_| record.timestamp().is_some()) {
                let zones = prices.entry(name.as_str().to_owned()).or_default();
                zones.insert(zone.to_owned(), price);
            }
        }
    }
    if prices.is_empty() {
        return Err(PriceError::None("spot"));
    }
    Ok(prices)
}

/// Zones that are named in spot prices.
pub fn zones(prices: &BTreeMap<String, BTreeMap<String, Price>>) -> BTreeSet<&str> {
    prices
        .values()
        .flat_map(|zones| zones.keys().map(String::as_str))
        .collect()
}
