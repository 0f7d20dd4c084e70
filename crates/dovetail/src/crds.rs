//! `dovetail crds`: the CustomResourceDefinitions to install, how a cluster's differ from them, and their installation.

mod apply;
mod compare;
pub(crate) mod diff;
mod table;

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use anyhow::Context;
use api::{crds::installation, provider::Provider};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use runtime::Api;
use serde_json::json;

use self::diff::{Report, There};
use crate::{
    answer::Answer,
    document,
    failure::Failure,
    live,
    place::Place,
    raw::{self, noted},
    terminal::{Presentation, agreed, aside},
};

/// Print the CustomResourceDefinitions to install.
///
/// NodePool, NodeClaim and NodeOverlay carry rules on label keys that depend on the provider, so each provider has its
/// own variant of them. `--only aws`, `azure` and `kwok` print what an installation of Karpenter for that provider
/// has: the core kinds with its rules and its node class. `--only core` prints the core kinds without any provider's
/// rules. Without `--only`, everything is printed with the rules of all providers, which fit into one cluster.
///
/// `--diff` compares them with those of the cluster, or of a dump that holds CustomResourceDefinitions, field by field: where
/// this program's accept less or more, and which objects they would refuse. Without `--only` the providers whose node class is
/// installed are meant. `--apply` shows the same, asks, and writes what differs.
///
/// Example: dovetail crds --diff --exit-code
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "a flag each, as the command line has them")]
pub(crate) struct Args {
    /// Print one installation instead of everything.
    #[arg(long, visible_alias = "provider", value_enum)]
    only: Option<Only>,
    /// How to print them: YAML documents, or one JSON list; of differences otherwise a table.
    #[arg(short, long, value_enum)]
    output: Option<Format>,
    /// Write one YAML file per kind into this directory instead, and print their paths.
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    directory: Option<PathBuf>,
    /// Print how the cluster's CRDs differ from these.
    #[arg(long, conflicts_with = "directory")]
    diff: bool,
    /// Write those that differ or are missing to the cluster, after showing how and asking.
    #[arg(long, conflicts_with_all = ["directory", "diff", "from", "output"])]
    apply: bool,
    /// Do not ask.
    #[arg(long, requires = "apply")]
    yes: bool,
    /// Exit with 3 instead of 0 when something differs.
    #[arg(long, requires = "diff")]
    exit_code: bool,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    presentation: Presentation,
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
    Table,
    Yaml,
    Json,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    if args.apply {
        return applied(args);
    }
    if args.diff {
        return differences(args);
    }
    let crds = installation(providers(args.only));
    match &args.directory {
        Some(directory) => write(&crds, directory).map(Answer::from),
        None => printed(&crds, args.output.unwrap_or(Format::Yaml)).map(Answer::from),
    }
}

fn printed(crds: &[CustomResourceDefinition], format: Format) -> anyhow::Result<String> {
    match format {
        Format::Yaml => crds
            .iter()
            .map(|crd| Ok(format!("---\n{}", document::yaml(crd)?)))
            .collect(),
        Format::Json => document::json(&json!({ "apiVersion": "v1", "kind": "List", "items": crds })),
        Format::Table => {
            let why = "a definition is no table";
            Err(Failure::usage("-o table is for --diff", why, "-o yaml or -o json").into())
        }
    }
}

fn differences(args: &Args) -> anyhow::Result<Answer> {
    let asked = args.only.map(|only| providers(Some(only)));
    let report = if args.place.from.is_empty() {
        let place = args.place.cluster();
        live::wait_for(async {
            let (api, name) = raw::connected(&place, raw::OR_A_DUMP).await?;
            Ok(There::of_cluster(&api, name).await?.compared(asked))
        })?
    } else {
        There::of_dump(&raw::of_files(&args.place.from)?)?.compared(asked)
    };
    let text = match args.output.unwrap_or(Format::Table) {
        Format::Table => table::render(&report, &args.presentation.screen()),
        Format::Json => document::json(&envelope(&report))?,
        Format::Yaml => document::yaml(&envelope(&report))?,
    };
    Ok(Answer {
        text,
        notes: noted("assumed", &report.assumed),
        is_finding: args.exit_code && report.differing().next().is_some(),
        ..Answer::default()
    })
}

/// Applies what differs without asking: whoever calls has asked.
pub(crate) async fn brought_up(api: &Api) -> Result<String, Failure> {
    let report = There::of_cluster(api, "the cluster".to_owned()).await?.compared(None);
    apply::allowed(&report)?;
    apply::applied(api, &report).await
}

fn envelope(report: &Report) -> serde_json::Value {
    let answer = serde_json::to_value(report).unwrap_or_default();
    report.frame.around("CRDDiff", &report.assumed, answer)
}

fn applied(args: &Args) -> anyhow::Result<Answer> {
    let asked = args.only.map(|only| providers(Some(only)));
    let place = args.place.cluster();
    let screen = args.presentation.screen();
    live::wait_for(async {
        let (api, name) = raw::connected(&place, "--kubeconfig FILE and --context NAME choose one").await?;
        let report = There::of_cluster(&api, name).await?.compared(asked);
        let shown = table::render(&report, &screen);
        if report.differing().next().is_none() {
            return Ok(Answer::from(shown));
        }
        apply::allowed(&report)?;
        aside(&shown);
        if !args.yes && !agreed(&apply::plan(&report))? {
            return Ok(Answer::from("nothing was written\n".to_owned()));
        }
        Ok(Answer::from(apply::applied(&api, &report).await?))
    })
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
            let print = |output| printed(&installation(providers(only)), output).unwrap();
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
