//! Offers for people, zones that cost the same in one row; and as rows for a spreadsheet.

use insight::{Dollars, offer::Offer};

use super::Prices;
use crate::terminal::{Align, Amount, Cell, Role, Screen, Table, counted, grouped, hanging};

/// Offers of one type and capacity type that cost the same.
struct Row<'a> {
    offer: &'a Offer,
    zones: Vec<&'a str>,
}

pub(super) fn render(prices: &Prices, limit: usize, screen: &Screen) -> String {
    let rows = rows(&prices.offers);
    let shown = if limit == 0 { rows.len() } else { rows.len().min(limit) };
    let mut text = hanging("", &sentence(prices), screen.text_width());
    if rows.is_empty() {
        return text;
    }
    let all_zones = distinct(prices.offers.iter().map(|offer| offer.zone.as_str()));
    let mut table = Table::default();
    for (title, align) in [
        ("TYPE", Align::Left),
        ("VCPU", Align::Right),
        ("GIB", Align::Right),
        ("GPU", Align::Right),
        ("ARCH", Align::Left),
        ("CAPACITY", Align::Left),
        ("$/H", Align::Right),
        ("$/MO", Align::Right),
        ("ZONE", Align::Left),
    ] {
        table.column(title, align);
    }
    table.wrap_last();
    table.keep(shown);
    for row in &rows {
        table.row(cells(row, all_zones));
    }
    text.push_str(&table.render(screen));
    if shown < rows.len() {
        let rest = counted(rows.len() - shown, "row");
        text.push_str(&format!("{rest} more; --limit 0 shows all\n"));
    }
    text
}

fn sentence(prices: &Prices) -> String {
    let Some(cheapest) = prices.offers.first() else {
        return format!("None of {} is as asked for.", counted_offers(prices.all));
    };
    let types = distinct(prices.offers.iter().map(|offer| offer.instance_type.as_str()));
    format!(
        "{} of {}, among {} in all; the cheapest is {} {} at {}.",
        counted_offers(prices.offers.len()),
        counted(types, "instance type"),
        grouped(prices.all as u128),
        cheapest.instance_type,
        cheapest.capacity_type,
        exact(cheapest.usd_h)
    )
}

fn counted_offers(count: usize) -> String {
    format!(
        "{} {}",
        grouped(count as u128),
        if count == 1 { "offer" } else { "offers" }
    )
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.collect::<std::collections::BTreeSet<_>>().len()
}

/// Offers that differ in their zone only, in one row.
fn rows(offers: &[Offer]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for offer in offers {
        let is_same = |row: &Row<'_>| {
            row.offer.instance_type == offer.instance_type
                && row.offer.capacity_type == offer.capacity_type
                && row.offer.usd_h == offer.usd_h
                && row.offer.available == offer.available
        };
        match rows.last_mut().filter(|row| is_same(row)) {
            Some(row) => row.zones.push(&offer.zone),
            None => rows.push(Row {
                offer,
                zones: vec![&offer.zone],
            }),
        }
    }
    rows
}

fn cells(row: &Row<'_>, all_zones: usize) -> Vec<Cell> {
    let offer = row.offer;
    let role = match offer.capacity_type.as_str() {
        "spot" => Role::Spot,
        "reserved" => Role::Reserved,
        _ => Role::OnDemand,
    };
    let gpu = if offer.gpu == 0 {
        "-".to_owned()
    } else {
        offer.gpu.to_string()
    };
    let mut zones = if row.zones.len() == all_zones && all_zones > 1 {
        format!("all {all_zones}")
    } else {
        row.zones.join(", ")
    };
    if !offer.available {
        zones += " (not to be had now)";
    }
    vec![
        offer.instance_type.clone().into(),
        offer.vcpu.to_string().into(),
        gib(offer.memory_mib).into(),
        gpu.into(),
        offer.arch.clone().into(),
        Cell::new(role, offer.capacity_type.clone()),
        four(offer.usd_h).into(),
        offer.usd_h.monthly().plain().into(),
        zones.into(),
    ]
}

/// `16`, `0.5`
fn gib(mib: u64) -> String {
    match mib % 1024 * 10 / 1024 {
        0 => (mib / 1024).to_string(),
        tenths => format!("{}.{tenths}", mib / 1024),
    }
}

/// `$0.1374/h`: offers are told apart by their last places.
fn exact(price: Dollars) -> String {
    format!("${}/h", four(price))
}

fn four(price: Dollars) -> String {
    let tenths = (price.0 + 50_000_000) / 100_000_000;
    format!("{}.{:04}", grouped((tenths / 10_000).unsigned_abs()), tenths % 10_000)
}

pub(super) fn csv(prices: &Prices) -> String {
    let mut text = "instance_type,capacity_type,zone,usd_per_hour,vcpu,memory_mib,gpu,arch,available\n".to_owned();
    for offer in &prices.offers {
        text.push_str(&format!(
            "{},{},{},{},{},{},{},{},{}\n",
            offer.instance_type,
            offer.capacity_type,
            offer.zone,
            offer.usd_h.size().to_decimal(),
            offer.vcpu,
            offer.memory_mib,
            offer.gpu,
            offer.arch,
            offer.available
        ));
    }
    text
}

/// The types, each once.
pub(super) fn names(prices: &Prices) -> String {
    let mut names: Vec<&str> = Vec::new();
    for offer in &prices.offers {
        if !names.contains(&offer.instance_type.as_str()) {
            names.push(&offer.instance_type);
        }
    }
    names.iter().map(|name| format!("{name}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_four_places_and_memory_no_more_than_one() {
        assert_eq!(four(Dollars(137_450_000_000)), "0.1375");
        assert_eq!(four(Dollars(1_234_567_800_000_000)), "1,234.5678");
        assert_eq!((gib(16 * 1024), gib(512)), ("16".to_owned(), "0.5".to_owned()));
    }
}
