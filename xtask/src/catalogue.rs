//! Writes the embedded catalogues from collected facts: one JSON object per line and instance type.
//!
//! `crates/catalogue/data/README.md` says where the facts come from; this says what of them is kept.

use std::{collections::BTreeMap, fs, io::Write, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;
use flate2::{Compression, GzBuilder};
use serde_json::Value;

use crate::run;

/// Writes the embedded catalogues of instance types anew
#[derive(Args)]
pub(crate) struct Catalogue {
    /// Directory with aws-instance-types.json and azure-skus.json
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// The day the AWS on-demand prices are of
    #[arg(long, value_name = "DATE", default_value = "2026-07-20")]
    aws_prices_of: String,
    /// The day the Azure on-demand prices are of
    #[arg(long, value_name = "DATE", default_value = "2026-06-18")]
    azure_prices_of: String,
}

type Row = Vec<String>;

pub(crate) fn run(task: &Catalogue) -> Result<ExitCode> {
    let aws = read(task, "aws-instance-types.json")?;
    let aws: Vec<Row> = aws.iter().map(aws_row).collect();
    write("aws", &task.aws_prices_of, &catalogue::aws::COLUMNS, &aws)?;
    let azure = read(task, "azure-skus.json")?;
    let offered: Vec<&Value> = azure.iter().filter(|sku| is_offered(sku)).collect();
    let cheapest = cheapest_core_by_series(&offered);
    let azure: Vec<Row> = offered.iter().map(|sku| azure_row(sku, &cheapest)).collect();
    write("azure", &task.azure_prices_of, &catalogue::azure::COLUMNS, &azure)?;
    Ok(ExitCode::SUCCESS)
}

fn read(task: &Catalogue, file: &str) -> Result<Vec<Value>> {
    let path = task.from.join(file);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let parse = |(at, line)| {
        serde_json::from_str(line)
            .with_context(|| format!("{} line {}: expected one JSON object", path.display(), at + 1))
    };
    text.lines().enumerate().map(parse).collect()
}

fn write<const N: usize>(name: &str, prices_of: &str, columns: &[&str; N], rows: &[Row]) -> Result<()> {
    let mut text = format!("prices\t{prices_of}\n{}\n", columns.join("\t"));
    for row in rows {
        if row.len() != N {
            bail!("a row of {name} has {} fields and not {N}: {row:?}", row.len());
        }
        text.push_str(&row.join("\t"));
        text.push('\n');
    }
    let path = run::root().join(format!("crates/catalogue/data/{name}.tsv.gz"));
    let file = fs::File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    // Without a time in it, the same facts give the same bytes.
    let mut packed = GzBuilder::new().mtime(0).write(file, Compression::best());
    packed.write_all(text.as_bytes())?;
    packed.finish()?;
    eprintln!("{}: {} types", path.display(), rows.len());
    Ok(())
}

fn aws_row(kind: &Value) -> Row {
    let field = |path: &str| text(kind.pointer(path));
    let flag = |path: &str| {
        if kind.pointer(path) == Some(&Value::Bool(true)) {
            "1"
        } else {
            "0"
        }
    };
    let accelerator = ["name", "manufacturer", "count"].map(|part| field(&format!("/accelerator/{part}")));
    let accelerator = if kind.get("accelerator").is_some() {
        accelerator.join(",")
    } else {
        String::new()
    };
    let resources = kind.get("resources").and_then(Value::as_object);
    let resources: Vec<_> = resources
        .into_iter()
        .flatten()
        .map(|(name, count)| format!("{name}={}", text(Some(count))))
        .collect();
    let vcpu = kind.get("vcpu_milli").and_then(Value::as_u64).unwrap_or_default() / 1000;
    vec![
        field("/name"),
        field("/arch"),
        field("/hypervisor"),
        field("/cpu_manufacturer"),
        field("/cpu_clock_mhz"),
        vcpu.to_string(),
        field("/memory_mib"),
        field("/pods"),
        flag("/encryption_in_transit").to_owned(),
        field("/ebs_bandwidth_mbps"),
        field("/network_bandwidth_mbps"),
        field("/local_nvme_gb"),
        field("/efa_interfaces"),
        field("/pod_eni"),
        field("/gpu/name"),
        field("/gpu/manufacturer"),
        field("/gpu/count"),
        field("/gpu/memory_mib"),
        accelerator,
        resources.join(","),
        field("/on_demand_usd_hour/us-east-1"),
        field("/on_demand_usd_hour_other/us-west-2"),
        field("/on_demand_usd_hour_other/eu-west-1"),
        field("/on_demand_usd_hour_other/us-gov-east-1"),
        field("/on_demand_usd_hour_other/us-gov-west-1"),
        field("/on_demand_cny_hour/cn-north-1"),
    ]
}

/// What the provider would offer: it knows the size, does not reject it, can use its GPU on Ubuntu, and has a price.
fn is_offered(sku: &Value) -> bool {
    let has = |key: &str| sku.get(key).is_some_and(|value| !value.is_null());
    let is_rejected = sku
        .get("rejected")
        .and_then(Value::as_array)
        .is_some_and(|reasons| !reasons.is_empty());
    let has_gpu = sku.get("gpu").and_then(Value::as_u64).is_some_and(|count| count > 0);
    let runs = sku.get("gpuOS").and_then(Value::as_array);
    let runs_ubuntu = runs.is_some_and(|systems| systems.iter().any(|system| system == "ubuntu"));
    sku.get("known") == Some(&Value::Bool(true))
        && !is_rejected
        && has("vcpu")
        && has("memGiB")
        && sku.pointer("/onDemand/eastus").is_some()
        && (!has_gpu || runs_ubuntu)
}

/// Dollars per core of each series' cheapest size, by series and region.
type PerCore = BTreeMap<(String, &'static str), f64>;

fn cheapest_core_by_series(skus: &[&Value]) -> PerCore {
    let mut cheapest = PerCore::new();
    for sku in skus {
        for region in catalogue::azure::PRICED_REGIONS {
            let Some(price) = per_core(sku, region) else { continue };
            let least = cheapest.entry((text(sku.get("series")), region)).or_insert(price);
            *least = least.min(price);
        }
    }
    cheapest
}

fn per_core(sku: &Value, region: &str) -> Option<f64> {
    let price = sku.pointer(&format!("/onDemand/{region}"))?.as_f64()?;
    Some(price / sku.get("vcpu")?.as_f64()?)
}

/// The on-demand price without a Windows licence. The published table has the price with it for some sizes; they cost
/// exactly the licence, 4.6 cents per core, more than the others of their series.
fn on_demand(sku: &Value, region: &'static str, cheapest: &PerCore) -> String {
    const LICENCE: f64 = 0.046;
    let path = format!("/onDemand/{region}");
    let (Some(price), Some(cores)) = (per_core(sku, region), sku.get("vcpu").and_then(Value::as_f64)) else {
        return text(sku.pointer(&path));
    };
    let least = cheapest
        .get(&(text(sku.get("series")), region))
        .copied()
        .unwrap_or(price);
    if (price - least - LICENCE).abs() > 0.0005 {
        return text(sku.pointer(&path));
    }
    decimal((price - LICENCE) * cores)
}

/// To six places, which is what published prices have, without trailing zeros.
fn decimal(price: f64) -> String {
    let text = format!("{price:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn azure_row(sku: &Value, cheapest: &PerCore) -> Row {
    let field = |path: &str| text(sku.pointer(path));
    let flag = |key: &str| {
        if sku.get(key) == Some(&Value::Bool(true)) {
            "1"
        } else {
            "0"
        }
    };
    let [east, west, europe] = catalogue::azure::PRICED_REGIONS.map(|region| on_demand(sku, region, cheapest));
    let spot_in_europe = spot_as_in_the_east(sku, &east, &europe);
    vec![
        field("/name"),
        field("/skuFamily"),
        field("/series"),
        field("/version"),
        field("/vcpu"),
        field("/memGiB"),
        arch(sku),
        field("/gpu"),
        field("/accelType"),
        if sku.get("gpu").and_then(Value::as_u64).unwrap_or_default() > 0 {
            field("/gpuVendor")
        } else {
            String::new()
        },
        flag("accelNet").to_owned(),
        flag("premiumIO").to_owned(),
        flag("ultraSSD").to_owned(),
        ephemeral_os_gb(sku),
        zones(sku, "westus2"),
        zones(sku, "southcentralus"),
        field("/maxDataDisks"),
        east,
        west,
        europe,
        field("/spot/eastus"),
        field("/spot/westus2"),
        spot_in_europe,
    ]
}

/// There is no source for spot prices in westeurope: the discount is taken from eastus.
fn spot_as_in_the_east(sku: &Value, east: &str, europe: &str) -> String {
    let spot = sku.pointer("/spot/eastus").and_then(Value::as_f64);
    match (spot, east.parse::<f64>(), europe.parse::<f64>()) {
        (Some(spot), Ok(east), Ok(europe)) if east > 0.0 => decimal(spot / east * europe),
        _ => String::new(),
    }
}

/// The architecture; where no source has it, a `p` among the features after the series' capitals means Arm.
fn arch(sku: &Value) -> String {
    if let Some(arch) = sku.get("arch").and_then(Value::as_str) {
        return arch.to_owned();
    }
    let series = text(sku.get("series"));
    let features = series.split('_').next().unwrap_or_default();
    let is_arm = features.contains('p');
    if is_arm { "arm64" } else { "amd64" }.to_owned()
}

/// Digits of the zones; `-` for none, empty for unknown.
fn zones(sku: &Value, region: &str) -> String {
    match sku.pointer(&format!("/zones/{region}")).and_then(Value::as_array) {
        None => String::new(),
        Some(zones) if zones.is_empty() => "-".to_owned(),
        Some(zones) => zones.iter().filter_map(Value::as_str).collect(),
    }
}

/// The largest system disk on local storage in GB: on NVMe, else in the cache, else on the temporary disk. The first two
/// are known only for sizes with true API records; for the others the documented temporary disk stands in.
fn ephemeral_os_gb(sku: &Value) -> String {
    if sku.get("ephemeralOS") != Some(&Value::Bool(true)) {
        return String::new();
    }
    let number = |key: &str| sku.get(key).and_then(Value::as_u64).filter(|number| *number > 0);
    let placements = sku.get("ephPlacements").and_then(Value::as_array);
    let takes_nvme = placements.is_some_and(|placements| placements.iter().any(|placement| placement == "NvmeDisk"));
    let nvme = number("nvmeMiB").filter(|_| takes_nvme).map(|mib| mib << 20);
    let bytes = nvme
        .or_else(|| number("cacheBytes"))
        .or_else(|| number("tempMiB").map(|mib| mib << 20))
        .or_else(|| number("docTempGiB").map(|gib| gib << 30));
    bytes
        .map(|bytes| (bytes / 1_000_000_000).to_string())
        .unwrap_or_default()
}

/// A field as the table writes it; absent is empty.
fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_windows_licence_is_taken_off_the_price() {
        let sku = |name: &str, cores: u64, price: f64| json!({ "name": name, "series": "Dads_v5", "vcpu": cores, "onDemand": { "eastus": price } });
        let (linux, windows) = (sku("D8ads", 8, 0.412), sku("D16ads", 16, 1.56));
        let cheapest = cheapest_core_by_series(&[&linux, &windows]);
        let prices = [&linux, &windows].map(|sku| on_demand(sku, "eastus", &cheapest));
        assert_eq!(prices, ["0.412", "0.824"]);
    }

    #[test]
    fn an_unknown_architecture_is_read_from_the_series() {
        let of = |series: &str| arch(&json!({ "series": series }));
        assert_eq!([of("Dpds_v6"), of("Dlds_v7"), of("E_v4")], ["arm64", "amd64", "amd64"]);
    }

    #[test]
    fn the_local_system_disk_is_the_first_place_there_is() {
        let cases = [
            (
                json!({ "ephemeralOS": true, "cacheBytes": 53_687_091_200_u64, "tempMiB": 16384 }),
                "53",
            ),
            (json!({ "ephemeralOS": true, "docTempGiB": 600 }), "644"),
            (json!({ "ephemeralOS": false, "docTempGiB": 600 }), ""),
        ];
        for (sku, expected) in cases {
            assert_eq!(ephemeral_os_gb(&sku), expected, "{sku}");
        }
    }
}
