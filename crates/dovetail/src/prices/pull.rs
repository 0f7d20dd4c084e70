//! How are prices of today had? By asking the cloud with its own tool; this program has no credentials of anybody's.

use crate::{failure::Failure, source::Input};

/// Azure hands out a page at a time.
const AZURE: &str = r#"url="https://prices.azure.com/api/retail/prices?\$filter=serviceName%20eq%20'Virtual%20Machines'%20and%20armRegionName%20eq%20'REGION'%20and%20priceType%20eq%20'Consumption'"
while [ "${url:-null}" != null ]; do
  page=$(curl -sf "$url") || break
  printf '%s\n' "$page"
  url=$(printf '%s' "$page" | jq -r .NextPageLink)
done | jq -s '{Items: map(.Items) | add}' > prices.json
"#;

/// The command that writes what `--prices` reads.
pub(super) fn commands(input: &Input) -> Result<String, Failure> {
    let offers = input.catalogue.as_ref();
    let (name, region) = offers.map_or(("", ""), |offers| (offers.name.as_str(), offers.region.as_str()));
    match name {
        "aws" => Ok(format!(
            "aws ec2 describe-spot-price-history --region {region} --product-descriptions Linux/UNIX --start-time \"$(date -u +%FT%TZ)\" --output json > prices.json\n"
        )),
        "azure" => Ok(AZURE.replace("REGION", region)),
        other => Err(Failure::new(
            format!("nobody sells what the catalogue {other} offers"),
            "prices are had from AWS and Azure",
            "--prices takes lines of instance_type,capacity_type,zone,usd_per_hour as well",
        )),
    }
}
