//! A cluster from files: what `kubectl get -o yaml|json` printed, or a snapshot file.

use std::path::{Path, PathBuf};

use model::dump::{self, Report, Source};

use super::{DUMP_COMMAND, Gathered, Needs, Origin, SourceArgs, passed_over, time, untold};
use crate::{failure::Failure, terminal::counted};

/// Kinds that tell what was said and decided.
const RECORDS: [&str; 2] = ["Event", "ConfigMap"];

/// The objects of the files, and what of them does not count.
pub(super) fn read(args: &SourceArgs, needs: Needs) -> Result<Gathered, Failure> {
    let name = names(&args.place.from);
    let options = dump::Options {
        mode: dump::Mode::Strict,
        taken_at: time::UNKNOWN,
    };
    let sources = args.place.from.iter().map(|path| source(path));
    let (snapshot, report) = dump::read(sources, options).map_err(|faults| {
        let faults: Vec<_> = faults.0.iter().map(ToString::to_string).collect();
        Failure::new(
            format!("cannot read {name}"),
            faults.join("\n        "),
            format!("mend or take out what is named above; a complete dump is made by\n        {DUMP_COMMAND}"),
        )
    })?;
    if report.objects == 0 {
        return Err(nothing_in(&name, &report));
    }
    let mut assumed = match needs {
        Needs::Pools | Needs::Offers => Vec::new(),
        Needs::Decisions => passed_over(&report),
    };
    let snapshot = if needs == Needs::Decisions {
        let (snapshot, told) = untold::assumed(snapshot);
        assumed.extend(told);
        snapshot
    } else {
        snapshot
    };
    let origin = Origin::Dump {
        name,
        files: report.sources,
        objects: report.objects,
        has_records: report.skipped.keys().any(|(_, kind)| RECORDS.contains(&kind.as_str())),
    };
    Ok(Gathered {
        snapshot,
        classes: report.node_classes,
        jobs: report.jobs.into_values().collect(),
        origin,
        assumed,
    })
}

fn source(path: &Path) -> Source {
    if path.as_os_str() == "-" {
        return Source::Stream("standard input".into(), Box::new(std::io::stdin()));
    }
    Source::Path(path.to_owned())
}

fn names(paths: &[PathBuf]) -> String {
    let name = |path: &PathBuf| {
        if path.as_os_str() == "-" {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        }
    };
    paths.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn nothing_in(dump: &str, report: &Report) -> Failure {
    let skipped: usize = report.skipped.values().sum();
    let kinds = report
        .skipped
        .iter()
        .map(|((version, kind), count)| format!("{count} {kind} of {version}"));
    let kinds: Vec<String> = kinds.collect();
    let named = if kinds.is_empty() {
        String::new()
    } else {
        format!(" ({})", kinds.join(", "))
    };
    let is_old = |((version, _), _): (&(String, String), &usize)| version.starts_with("karpenter.sh/");
    let next = if report.skipped.iter().any(is_old) {
        format!("convert what is of an old version first: dovetail lint -f {dump} --explain NP25 tells how")
    } else {
        DUMP_COMMAND.to_owned()
    };
    Failure::new(
        format!("{dump} holds no object a plan can be made from"),
        format!(
            "read {} named *.yaml, *.yml or *.json, passed over {} with other names and {} of other kinds{named}",
            counted(report.sources, "file"),
            report.ignored_files,
            counted(skipped, "object"),
        ),
        next,
    )
}
