//! What can be had at what price, as gauges.

use std::sync::Arc;

use api::labels::{CAPACITY_TYPE, ZONE};
use model::{
    requirement::Operator,
    snapshot::{CatalogOffering, CatalogType},
};

use super::Metrics;

impl Metrics {
    /// Shows the offerings of instance types, whichever class they are for.
    pub fn show_offerings(&self, types: &[Arc<CatalogType>]) {
        for entry in types {
            for offering in &entry.offerings {
                let (kind, zone) = (only(offering, CAPACITY_TYPE), only(offering, ZONE));
                let labels = [entry.name.as_str(), kind, zone];
                let is_available = f64::from(u8::from(offering.available));
                self.cloudprovider_instance_type_offering_available
                    .set(labels, is_available);
                #[expect(clippy::cast_precision_loss, reason = "a gauge")]
                let price = offering.price.picos() as f64 / 1e12;
                self.cloudprovider_instance_type_offering_price_estimate
                    .set(labels, price);
            }
        }
    }
}

fn only<'a>(offering: &'a CatalogOffering, key: &str) -> &'a str {
    let found = offering.requirements.iter().find(|it| it.key == key);
    match found {
        Some(it) if it.operator == Operator::In => it.values.first().map_or("", String::as_str),
        _ => "",
    }
}
