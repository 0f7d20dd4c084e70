//! `dovetail crds`: the CustomResourceDefinitions to install.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use anyhow::Context;
use api::{crds::installation, provider::Provider};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
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
    #[arg(long, visible_alias = "provider", value_enum)]
    only: Option<Only>,
    /// How to print them: YAML documents, or one JSON list.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
    /// Write one YAML file per kind into this directory instead, and print their paths.
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    directory: Option<PathBuf>,
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
    if let Some(directory) = &args.directory {
        return write(&crds, directory);
    }
    match args.output {
        Format::Yaml => crds
            .iter()
            .map(|crd| Ok(format!("---\n{}", document::yaml(crd)?)))
            .collect(),
        Format::Json => document::json(&json!({ "apiVersion": "v1", "kind": "List", "items": crds })),
    }
}

fn write(crds: &[CustomResourceDefinition], directory: &Path) -> anyhow::Result<String> {
    std::fs::create_dir_all(directory).with_context(|| format!("create directory {}", directory.display()))?;
    let mut written = String::new();
    for crd in crds {
        let path = directory.join(file_name(crd));
        std::fs::write(&path, document::yaml(crd)?).with_context(|| format!("write {}", path.display()))?;
        writeln!(written, "{}", path.display())?;
    }
    Ok(written)
}

/// `<group>_<plural>.yaml`, as Karpenter names them.
fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Texts by file name.
    type Files = BTreeMap<String, String>;

    fn checked_in() -> Files {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/crds");
        let entries = std::fs::read_dir(&directory).map(|entries| entries.map(|entry| entry.unwrap()).collect());
        let entries: Vec<_> = entries.unwrap_or_default();
        entries
            .into_iter()
            .map(|entry| {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                (entry.file_name().into_string().unwrap(), text)
            })
            .collect()
    }

    #[test]
    fn the_checked_in_crds_are_fresh() {
        let generated: Files = installation(&Provider::ALL)
            .iter()
            .map(|crd| (file_name(crd), document::yaml(crd).unwrap()))
            .collect();
        let checked_in = checked_in();
        let stale: Vec<_> = generated
            .keys()
            .chain(checked_in.keys())
            .filter(|name| generated.get(*name) != checked_in.get(*name))
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        assert!(
            stale.is_empty(),
            "{stale:?} in crates/api/crds differ from the types. To refresh: \
             rm crates/api/crds/*.yaml; cargo run -p dovetail -- crds --directory crates/api/crds"
        );
    }

    #[test]
    fn yaml_and_json_say_the_same() {
        for only in [
            None,
            Some(Only::Core),
            Some(Only::Aws),
            Some(Only::Azure),
            Some(Only::Kwok),
        ] {
            let print = |output| {
                answer(&Args {
                    only,
                    output,
                    directory: None,
                })
                .unwrap()
            };
            let json: serde_json::Value = serde_json::from_str(&print(Format::Json)).unwrap();
            let yaml: Vec<serde_json::Value> = serde_saphyr::from_multiple(&print(Format::Yaml)).unwrap();
            assert_eq!(json["items"], serde_json::Value::Array(yaml), "{only:?}");
        }
    }

    #[test]
    fn each_installation_has_the_core_kinds_and_its_own_node_class() {
        let names = |only| {
            let crds = installation(providers(only));
            crds.into_iter().map(|crd| crd.spec.names.kind).collect::<Vec<_>>()
        };
        let core = ["CapacityBuffer", "NodeClaim", "NodeOverlay", "NodePool"];
        assert_eq!(names(Some(Only::Core)), core);
        let node_classes = [
            (Only::Aws, "EC2NodeClass"),
            (Only::Azure, "AKSNodeClass"),
            (Only::Kwok, "KWOKNodeClass"),
        ];
        for (only, node_class) in node_classes {
            let mut expected = [&core[..], &[node_class]].concat();
            let mut actual = names(Some(only));
            expected.sort_unstable();
            actual.sort_unstable();
            assert_eq!(actual, expected);
        }
    }
}
