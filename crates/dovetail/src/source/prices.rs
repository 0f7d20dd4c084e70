//! `--prices FILE`: prices of today instead of those that come with the program.
//!
//! Read as their sources print them: `aws ec2 describe-spot-price-history`, Azure's retail prices, or lines of
//! `instance_type,capacity_type,zone,usd_per_hour`.

mod read;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use api::labels::{CAPACITY_TYPE, ZONE};
use model::{
    price::Price,
    snapshot::{Catalog, CatalogOffering, CatalogType},
};

use crate::{failure::Failure, terminal::counted};

/// What is priced: an instance type, a capacity type, and a zone or all of them.
type What = (String, String, Option<String>);

/// Prices, and of when.
#[derive(Debug, Default, PartialEq)]
struct Listed {
    prices: BTreeMap<What, Price>,
    /// The newest of their times, where they have any.
    of: String,
}

/// The catalogue with these prices; what is to be told about them; and of which day they are.
pub(super) fn applied(file: &Path, catalog: &Catalog) -> Result<(Catalog, String, String), Failure> {
    let listed = read::file(file)?;
    let mut repriced = 0;
    let mut known = std::collections::BTreeSet::new();
    let mut with_prices = |entry: &Arc<CatalogType>| {
        let mut entry = CatalogType::clone(entry);
        for offering in &mut entry.offerings {
            if let Some((what, price)) = listed.price_of(entry.name.as_str(), offering) {
                known.insert(what);
                repriced += usize::from(offering.price != price);
                offering.price = price;
            }
        }
        Arc::new(entry)
    };
    let mut catalog = catalog.clone();
    for entry in &mut catalog.instance_types {
        *entry = with_prices(entry);
    }
    for entry in catalog.node_pool_variants.values_mut().flatten() {
        *entry = with_prices(entry);
    }
    if known.is_empty() {
        return Err(of_nothing(file, &listed));
    }
    let unknown = listed.prices.len() - known.len();
    let unknown = match unknown {
        0 => String::new(),
        count => format!("; {} of what this catalogue does not offer", counted(count, "price")),
    };
    let told = format!(
        "{} of {}: {} changed{unknown}",
        counted(known.len(), "price"),
        file.display(),
        counted(repriced, "offer"),
    );
    Ok((catalog, told, listed.of))
}

impl Listed {
    /// The price of an offering: of its zone, or else of all zones.
    fn price_of(&self, name: &str, offering: &CatalogOffering) -> Option<(What, Price)> {
        let value = |key: &str| {
            let found = offering.requirements.iter().find(|one| one.key == key)?;
            found.values.first().cloned()
        };
        let (capacity, zone) = (value(CAPACITY_TYPE)?, value(ZONE));
        [zone, None].into_iter().find_map(|zone| {
            let what = (name.to_owned(), capacity.clone(), zone);
            self.prices.get(&what).map(|price| (what, *price))
        })
    }
}

fn of_nothing(file: &Path, listed: &Listed) -> Failure {
    let first = listed.prices.keys().next();
    let first = first.map_or_else(String::new, |(name, capacity, zone)| {
        let zone = zone.as_deref().unwrap_or("every zone");
        format!(", such as {name} {capacity} in {zone}")
    });
    Failure::new(
        format!("no price of {} is of anything this catalogue offers", file.display()),
        format!("{} read{first}", counted(listed.prices.len(), "price")),
        "check that the file is of this cloud and this region: --catalogue and --region say which are meant",
    )
}

#[cfg(test)]
mod tests;
