//! What does it cost? The Retail Prices API with its filter, its pages and the meters that a reader must not take.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Refusal},
    knob::PriceChange,
    request::Asked,
    uri,
    world::World,
};

const PRICES: &str = include_str!("../data/prices.json");
/// Items on a page, unless a knob says otherwise.
const PAGE: usize = 100;
/// What a Windows licence adds for a core and hour.
const LICENCE: f64 = 0.046;

#[derive(Deserialize)]
struct Price {
    size: String,
    series: Option<String>,
    vcpu: f64,
    #[serde(rename = "onDemand")]
    on_demand: f64,
    spot: Option<f64>,
}

pub(crate) struct Prices {
    all: BTreeMap<String, Price>,
}

impl Prices {
    pub(crate) fn load() -> Result<Self> {
        let all: Vec<Price> = serde_json::from_str(PRICES).context("reading prices.json")?;
        let all = all.into_iter().map(|price| (price.size.clone(), price));
        Ok(Self { all: all.collect() })
    }

    pub(crate) fn set(&mut self, knob: &PriceChange) -> Result<(), String> {
        let price = self.all.get_mut(&knob.size);
        let price = price.ok_or_else(|| format!("no size is called `{}`", knob.size))?;
        price.on_demand = knob.on_demand;
        price.spot = knob.spot;
        Ok(())
    }

    /// All meters: of every size the Linux one, and beside it those that look like it.
    fn meters(&self, region: &str) -> Vec<Value> {
        self.all.values().flat_map(|price| meters(price, region)).collect()
    }
}

fn meters(price: &Price, region: &str) -> Vec<Value> {
    let short = price.size.trim_start_matches("Standard_").replace('_', " ");
    let series = price.series.as_deref().unwrap_or(&price.size).replace('_', " ");
    let linux = format!("Virtual Machines {series} Series");
    let windows = format!("{linux} Windows");
    let licensed = |price: f64, cores: f64| price + LICENCE * cores;
    let meter = |product: &str, suffix: &str, amount: f64| {
        json!({
            "currencyCode": "USD", "tierMinimumUnits": 0.0, "retailPrice": amount, "unitPrice": amount,
            "armRegionName": region, "location": region, "effectiveStartDate": "2024-01-01T00:00:00Z",
            "meterId": format!("{}{suffix}", price.size), "meterName": format!("{short}{suffix}"),
            "productId": "DZH318Z0", "skuId": "DZH318Z0/0000", "productName": product,
            "skuName": format!("{short}{suffix}"), "serviceName": "Virtual Machines", "serviceId": "DZH313Z7MMC8",
            "serviceFamily": "Compute", "unitOfMeasure": "1 Hour", "type": "Consumption",
            "isPrimaryMeterRegion": true, "armSkuName": price.size,
        })
    };
    let mut meters = vec![
        meter(&windows, "", licensed(price.on_demand, price.vcpu)),
        meter(&linux, "", price.on_demand),
    ];
    if let Some(spot) = price.spot {
        meters.push(meter(&linux, " Spot", spot));
        meters.push(meter(&windows, " Spot", licensed(spot, price.vcpu)));
        meters.push(meter(&linux, " Low Priority", price.on_demand / 5.0));
    }
    if price.size.contains("ads_v5") {
        // The real list has Windows prices under products that do not end so: the cheapest is the Linux one.
        let hidden = format!("{linux} Windows Server");
        meters.push(meter(&hidden, "", licensed(price.on_demand, price.vcpu)));
    }
    meters
}

/// The fields that a filter may name, and under which name they stand in an item.
const FIELDS: [(&str, &str); 8] = [
    ("priceType", "type"),
    ("currencyCode", "currencyCode"),
    ("serviceFamily", "serviceFamily"),
    ("serviceName", "serviceName"),
    ("armRegionName", "armRegionName"),
    ("armSkuName", "armSkuName"),
    ("skuName", "skuName"),
    ("productName", "productName"),
];

/// `name eq 'value'`, joined by `and`.
fn parse(filter: &str) -> Result<Vec<(&'static str, String)>, String> {
    let one = |condition: &str| {
        let (name, value) = condition
            .trim()
            .split_once(" eq '")
            .ok_or_else(|| format!("`{condition}` is not understood"))?;
        let value = value
            .strip_suffix('\'')
            .ok_or_else(|| format!("`{condition}` does not end with a quote"))?;
        let field = FIELDS.iter().find(|(known, _)| *known == name);
        let (_, field) = field.ok_or_else(|| format!("`{name}` is not a field to filter by"))?;
        Ok((*field, value.to_owned()))
    };
    filter.split(" and ").map(one).collect()
}

impl World {
    pub(crate) fn list_prices(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        let filter = asked.query.get("$filter").map(String::as_str);
        let conditions = filter.map_or(Ok(Vec::new()), parse);
        let conditions = conditions.map_err(|why| {
            Refusal::bad(
                "InvalidFilterInQueryString",
                format!("Invalid OData parameters supplied: {why}"),
            )
        })?;
        let items = self.prices.meters(&self.setup.region).into_iter();
        let items = items.filter(|item| conditions.iter().all(|(field, value)| item[*field] == value.as_str()));
        let items: Vec<Value> = items.collect();
        let start = asked.query.get("$skip").and_then(|skip| skip.parse().ok()).unwrap_or(0);
        let size = self.page_size(asked.id()).unwrap_or(PAGE);
        let total = items.len();
        let page: Vec<Value> = items.into_iter().skip(start).take(size).collect();
        let next = (total > start + size).then(|| {
            let filter = filter
                .map(|filter| format!("&$filter={}", uri::quoted(filter)))
                .unwrap_or_default();
            format!(
                "{}{}?api-version={}{filter}&$skip={}",
                self.url,
                asked.path,
                asked.version(),
                start + size
            )
        });
        Ok(Answer::ok(json!({
            "BillingCurrency": "USD", "CustomerEntityId": "Default", "CustomerEntityType": "Retail",
            "Count": page.len(), "Items": page, "NextPageLink": next,
        })))
    }
}
