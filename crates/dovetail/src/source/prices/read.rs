//! Prices as people have them.

use std::{fs, path::Path};

use api::labels::{CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_RESERVED, CAPACITY_TYPE_SPOT};
use jiff::Timestamp;
use model::price::Price;
use serde::Deserialize;

use super::Listed;
use crate::failure::Failure;

/// Faults that are told; who has more has one cause for most of them.
const TOLD: usize = 10;

/// The prices of a file.
pub(super) fn file(path: &Path) -> Result<Listed, Failure> {
    let wrong = |why: String| {
        Failure::new(
            format!("cannot read the prices {}", path.display()),
            why,
            "give what `aws ec2 describe-spot-price-history` or prices.azure.com prints, or lines of instance_type,capacity_type,zone,usd_per_hour",
        )
    };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    text_of(&text).map_err(wrong)
}

pub(super) fn text_of(text: &str) -> Result<Listed, String> {
    if !text.trim_start().starts_with('{') {
        return lines(text);
    }
    let document: Document = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match document {
        Document {
            spot_price_history: Some(history),
            ..
        } => aws(history),
        Document { items: Some(items), .. } => azure(items),
        _ => Err("it has neither SpotPriceHistory, as AWS prints it, nor Items, as Azure does".to_owned()),
    }
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "SpotPriceHistory")]
    spot_price_history: Option<Vec<SpotEntry>>,
    #[serde(rename = "Items")]
    items: Option<Vec<RetailItem>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SpotEntry {
    instance_type: String,
    availability_zone: String,
    spot_price: String,
    #[serde(default)]
    product_description: String,
    #[serde(default)]
    timestamp: String,
}

/// Of each type and zone the newest price, of Linux.
fn aws(mut history: Vec<SpotEntry>) -> Result<Listed, String> {
    history.retain(|entry| entry.product_description.is_empty() || entry.product_description.starts_with("Linux/UNIX"));
    // By the time and not its text: AWS writes +00:00, and others Z.
    history.sort_by_key(|entry| entry.timestamp.parse::<Timestamp>().ok());
    let mut listed = Listed::default();
    for entry in history {
        let price = price(&entry.spot_price).map_err(|error| format!("{}: {error}", entry.instance_type))?;
        let what = (
            entry.instance_type,
            CAPACITY_TYPE_SPOT.to_owned(),
            Some(entry.availability_zone),
        );
        listed.prices.insert(what, price);
        listed.of = day(&entry.timestamp);
    }
    Ok(listed)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RetailItem {
    #[serde(default)]
    arm_sku_name: String,
    retail_price: serde_json::Number,
    #[serde(default)]
    sku_name: String,
    #[serde(default)]
    product_name: String,
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    effective_start_date: String,
}

/// Pay as you go, of Linux; Azure has one price for all zones.
fn azure(items: Vec<RetailItem>) -> Result<Listed, String> {
    let mut listed = Listed::default();
    for item in items {
        let is_other = item.r#type != "Consumption"
            || item.product_name.contains("Windows")
            || item.sku_name.contains("Low Priority")
            || item.arm_sku_name.is_empty();
        if is_other {
            continue;
        }
        let price = price(&item.retail_price.to_string()).map_err(|error| format!("{}: {error}", item.arm_sku_name))?;
        let is_spot = item.sku_name.contains("Spot");
        let capacity = if is_spot {
            CAPACITY_TYPE_SPOT
        } else {
            CAPACITY_TYPE_ON_DEMAND
        };
        listed
            .prices
            .insert((item.arm_sku_name, capacity.to_owned(), None), price);
        listed.of = listed.of.max(day(&item.effective_start_date));
    }
    Ok(listed)
}

/// `instance_type,capacity_type,zone,usd_per_hour` a line; no zone is every zone.
fn lines(text: &str) -> Result<Listed, String> {
    let mut listed = Listed::default();
    let mut faults = Vec::new();
    let mut columns = COLUMNS;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("instance_type,") {
            columns = line.split(',').count().max(COLUMNS);
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match one(line, columns) {
            Ok((what, price)) => drop(listed.prices.insert(what, price)),
            Err(error) => faults.push(format!("line {}: {error}", at + 1)),
        }
    }
    if faults.is_empty() && !listed.prices.is_empty() {
        return Ok(listed);
    }
    if faults.is_empty() {
        return Err("it has no prices".to_owned());
    }
    let more = faults.len().saturating_sub(TOLD);
    faults.truncate(TOLD);
    if more > 0 {
        faults.push(format!("and {more} more"));
    }
    Err(faults.join("\n        "))
}

/// Columns that count; a heading may name more, as that of `dovetail prices -o csv` does.
const COLUMNS: usize = 4;

fn one(line: &str, columns: usize) -> Result<(super::What, Price), String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let (&[name, capacity, zone, dollars, ..], true) = (fields.as_slice(), fields.len() == columns) else {
        return Err(format!("{line:?} has {} fields instead of {columns}", fields.len()));
    };
    let known = [CAPACITY_TYPE_SPOT, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_RESERVED];
    if !known.contains(&capacity) {
        return Err(format!("capacity type {capacity:?} is none of {}", known.join(", ")));
    }
    let zone = Some(zone.to_owned()).filter(|zone| !zone.is_empty() && zone != "*");
    Ok(((name.to_owned(), capacity.to_owned(), zone), price(dollars)?))
}

fn price(text: &str) -> Result<Price, String> {
    text.parse().map_err(|_| format!("{text:?} is no price in dollars"))
}

fn day(time: &str) -> String {
    time.get(..10).unwrap_or_default().to_owned()
}
