//! `dovetail version`: which release this is, which Karpenter API it speaks, and how old what comes with it is.

use std::fmt::Write;

use catalogue::Source;
use jiff::{SignedDuration, Timestamp};
use runtime::Clock;
use serde::Serialize;

use crate::{document, terminal::grouped};

/// Print the release, the Karpenter API it speaks, and the age of the catalogues that come with it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    #[value(alias = "table")]
    Text,
    Json,
    Yaml,
}

#[derive(Debug, Serialize)]
struct Release {
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    kind: &'static str,
    version: &'static str,
    /// The release of Karpenter whose API and behaviour are spoken.
    karpenter: &'static str,
    /// Versions of the hashes that tell drift, by kind.
    hashes: Hashes,
    catalogues: Vec<Offers>,
}

#[derive(Debug, Serialize)]
struct Hashes {
    #[serde(rename = "NodePool")]
    node_pool: &'static str,
    #[serde(rename = "EC2NodeClass")]
    ec2_node_class: &'static str,
    #[serde(rename = "AKSNodeClass")]
    aks_node_class: &'static str,
}

/// A catalogue that comes with the program.
#[derive(Debug, Serialize)]
struct Offers {
    name: &'static str,
    instance_types: usize,
    /// The day of its prices; empty where a formula makes them.
    prices: String,
    age_days: Option<i64>,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<String> {
    let now = Clock::system().now();
    let release = Release {
        api_version: "dovetail.dev/v1alpha1",
        kind: "Version",
        version: env!("CARGO_PKG_VERSION"),
        karpenter: api::KARPENTER_VERSION,
        hashes: Hashes {
            node_pool: api::karpenter::NODEPOOL_HASH_VERSION,
            ec2_node_class: api::aws::EC2NODECLASS_HASH_VERSION,
            aks_node_class: api::azure::AKSNODECLASS_HASH_VERSION,
        },
        catalogues: Source::ALL
            .into_iter()
            .filter_map(|source| offers(source, now))
            .collect(),
    };
    match args.output {
        Format::Text => Ok(text(&release)),
        Format::Json => document::json(&release),
        Format::Yaml => document::yaml(&release),
    }
}

fn offers(source: Source, now: Timestamp) -> Option<Offers> {
    let loaded = catalogue::load(source, None, &[]).ok()?;
    let made = format!("{}T00:00:00Z", loaded.prices_of).parse::<Timestamp>().ok();
    let age = made.map(|made| now.duration_since(made));
    Some(Offers {
        name: source.name(),
        instance_types: loaded.catalog.instance_types.len(),
        prices: loaded.prices_of,
        age_days: age.map(|age| age.as_secs() / SignedDuration::from_hours(24).as_secs()),
    })
}

fn text(release: &Release) -> String {
    let mut text = format!("dovetail {}, speaks Karpenter {}\n", release.version, release.karpenter);
    let hashes = &release.hashes;
    let _ = writeln!(
        text,
        "api         karpenter.sh/v1; hashes NodePool {}, EC2NodeClass {}, AKSNodeClass {}; output {}",
        hashes.node_pool, hashes.ec2_node_class, hashes.aks_node_class, release.api_version
    );
    for offers in &release.catalogues {
        let prices = match offers.age_days {
            Some(age) => format!(", prices {} ({age} days old)", offers.prices),
            None => String::new(),
        };
        let types = grouped(offers.instance_types as u128);
        let _ = writeln!(text, "{:11} {types} types{prices}", offers.name);
    }
    text
}
