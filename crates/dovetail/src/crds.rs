//! `dovetail crds`: the CustomResourceDefinitions to install.

use api::{crds::installation, provider::Provider};
use serde_json::json;

use crate::document;

/// Print the CustomResourceDefinitions to install.
///
/// NodePool, NodeClaim and NodeOverlay carry rules on label keys that depend on the provider, so each provider has its
/// own variant of them. `--only aws`, `azure` and `kwok` print what an installation of Karpenter for that provider
/// has: the core kinds with its rules and its node class. `--only core` prints the core kinds without any provider's
/// rules. Without `--only`, everything is printed with the rules of all providers, which fit into one cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one installation instead of everything.
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// How to print them: YAML documents, or one JSON list.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Only {
    Aws,
    Azure,
    Kwok,
    Core,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Yaml,
    Json,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<String> {
    let crds = installation(providers(args.only));
    match args.output {
        Format::Yaml => crds
            .iter()
            .map(|crd| Ok(format!("---\n{}", document::yaml(crd)?)))
            .collect(),
        Format::Json => document::json(&json!({ "apiVersion": "v1", "kind": "List", "items": crds })),
    }
}

fn providers(only: Option<Only>) -> &'static [Provider] {
    match only {
        None => &Provider::ALL,
        Some(Only::Aws) => &[Provider::Aws],
        Some(Only::Azure) => &[Provider::Azure],
        Some(Only::Kwok) => &[Provider::Kwok],
        Some(Only::Core) => &[],
    }
}
