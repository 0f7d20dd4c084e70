//! `dovetail version`: which release this is and which Karpenter API it speaks.

use serde::Serialize;

use crate::document;

/// Print the release and the Karpenter API it speaks.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Yaml,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    version: &'static str,
    karpenter_version: &'static str,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<String> {
    let version = Version {
        version: env!("CARGO_PKG_VERSION"),
        karpenter_version: api::KARPENTER_VERSION,
    };
    match args.output {
        Format::Text => Ok(format!(
            "dovetail {}, speaks Karpenter {}\n",
            version.version, version.karpenter_version
        )),
        Format::Json => document::json(&version),
        Format::Yaml => document::yaml(&version),
    }
}
