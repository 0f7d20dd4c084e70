//! `dovetail lint`: what hurts in NodePools, NodeClasses, workloads, PodDisruptionBudgets and the installation.

mod explain;
mod github;
mod sarif;
mod table;

use std::path::PathBuf;

use ::lint::{Finding, RULES, Rejection, Scope, Severity, World, findings, nearest, rule};
use runtime::Clock;
use serde_json::{Value, json};

use crate::{
    answer::Answer,
    document,
    failure::Failure,
    place::Place,
    raw::{self, Frame, Raw, noted},
    reply::Reply,
    terminal::counted,
    trace,
};

/// Find what hurts in NodePools, NodeClasses, workloads, PodDisruptionBudgets and the installation.
///
/// Reads manifests, a dump (`--from`), or the cluster kubectl speaks to. Manifests are files or directories of YAML,
/// JSON or Markdown with fenced YAML; Helm values of the controller are read as well. One object is silenced by the annotation
/// `dovetail.dev/lint-ignore: "CODE reason"`. Ends with 3 if something at or above --fail-on was found.
///
/// Example: dovetail lint manifests/ -o github
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Manifests: files, directories, or `-` for standard input.
    #[arg(value_name = "PATH", conflicts_with_all = ["from", "kubeconfig", "context"])]
    paths: Vec<PathBuf>,
    /// The same, as kubectl has it.
    #[arg(short = 'f', long = "filename", num_args = 1.., value_name = "PATH", conflicts_with_all = ["from", "kubeconfig", "context"])]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) place: Place,
    /// From which severity on the command ends with 3.
    #[arg(long, value_enum, default_value_t = Level::Error, value_name = "SEVERITY")]
    fail_on: Level,
    /// Rules to leave out.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "CODE")]
    ignore: Vec<String>,
    /// One rule in full, with what it finds.
    #[arg(long, value_name = "CODE")]
    explain: Option<String>,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    pub(crate) reply: Reply,
}

impl Args {
    /// What is named either way.
    fn manifests(&self) -> Vec<PathBuf> {
        self.paths.iter().chain(&self.files).cloned().collect()
    }
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Table,
    /// With files and lines.
    Wide,
    Json,
    Yaml,
    /// SARIF 2.1.0.
    Sarif,
    /// Annotations of GitHub Actions.
    Github,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Level {
    Error,
    Warning,
    Note,
}

impl Level {
    fn severity(self) -> Severity {
        match self {
            Self::Error => Severity::Error,
            Self::Warning => Severity::Warning,
            Self::Note => Severity::Note,
        }
    }
}

/// What was found, in what.
#[derive(Debug)]
struct Report {
    frame: Frame,
    name: String,
    is_whole: bool,
    objects: usize,
    values: usize,
    fragments: usize,
    findings: Vec<Finding>,
    gaps: Vec<String>,
    /// What was looked at, where that is asked for.
    inputs: String,
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    let ignored = args
        .ignore
        .iter()
        .map(|code| known(code))
        .collect::<Result<Vec<_>, _>>()?;
    let explained = args.explain.as_deref().map(known).transpose()?;
    if let Some(code) = explained
        && args.manifests().is_empty()
        && args.place.from.is_empty()
    {
        return Ok(explain::rule(code, &args.reply.presentation.screen()).into());
    }
    let mut report = report(args)?;
    report.findings.retain(|finding| !ignored.contains(&finding.code));
    if let Some(code) = explained {
        report.findings.retain(|finding| finding.code == code);
    }
    let limit = args.fail_on.severity();
    let screen = args.reply.presentation.screen();
    let text = match (args.output, explained) {
        (Format::Table | Format::Wide, Some(code)) => explain::findings(code, &report, &screen),
        (Format::Table, None) => table::render(&report, false, &screen),
        (Format::Wide, None) => table::render(&report, true, &screen),
        (Format::Json, _) => document::json(&envelope(&report))?,
        (Format::Yaml, _) => document::yaml(&envelope(&report))?,
        (Format::Sarif, _) => document::json(&sarif::log(&report.findings))?,
        (Format::Github, _) => github::annotations(&report.findings),
    };
    let is_finding = report.findings.iter().any(|finding| finding.severity <= limit);
    let notes = noted("left out", &report.gaps) + &report.inputs;
    let answer = args.reply.told(text, notes)?;
    Ok(Answer { is_finding, ..answer })
}

/// A rule's code as the catalogue spells it.
fn known(code: &str) -> Result<&'static str, Failure> {
    if let Some(rule) = rule(code) {
        return Ok(rule.code);
    }
    let codes = || RULES.iter().map(|rule| rule.code);
    let next = match nearest(&code.to_uppercase(), codes()) {
        Some(near) => format!("{near} is the nearest; docs/lint lists all"),
        None => format!("one of {}", codes().collect::<Vec<_>>().join(", ")),
    };
    Err(Failure::usage(format!("no rule {code}"), "no rule has this code", next))
}

fn report(args: &Args) -> anyhow::Result<Report> {
    let (raw, scope) = match (args.manifests().is_empty(), args.place.from.is_empty()) {
        (false, _) => {
            let mut raw = raw::of_files(&args.manifests())?;
            raw.now = Clock::system().now();
            (raw, Scope::Some)
        }
        (true, false) => (raw::of_files(&args.place.from)?, Scope::Whole),
        (true, true) => (raw::of_cluster(&args.place.cluster())?, Scope::Whole),
    };
    let now = args.place.at.unwrap_or(raw.now);
    // What a cluster holds it has accepted; asking again would only be slow.
    let rejections = if scope == Scope::Some {
        rejections(&raw)
    } else {
        Vec::new()
    };
    let inputs = trace::of_objects(&raw, args.reply.verbose);
    let mut frame = raw.frame(now);
    if scope == Scope::Some {
        frame.of = "manifests";
    }
    let Raw {
        name,
        documents,
        mut gaps,
        ..
    } = raw;
    let world = World::new(documents, scope, now, rejections);
    if scope == Scope::Whole {
        // Of manifests the API server's own words are among the findings.
        gaps.extend(world.unread().iter().cloned());
    }
    let (objects, values, fragments) = world.counts();
    if objects + values + fragments == 0 {
        let why = "no YAML, JSON or fenced YAML with an apiVersion and a kind, and no Helm values of the controller";
        return Err(Failure::new(format!("nothing to look at in {name}"), why, "dovetail lint -f PATH").into());
    }
    Ok(Report {
        findings: findings(&world),
        name,
        frame,
        is_whole: scope == Scope::Whole,
        objects,
        values,
        fragments,
        gaps,
        inputs,
    })
}

/// What the API server would say to the objects of Karpenter.
fn rejections(raw: &Raw) -> Vec<Rejection> {
    let is_ours = |value: &Value| {
        value["apiVersion"]
            .as_str()
            .is_some_and(|version| version.starts_with("karpenter."))
    };
    if !raw.documents.iter().any(|document| is_ours(&document.value)) {
        return Vec::new();
    }
    let definitions = api::crds::installation(&api::provider::Provider::ALL);
    let definitions = definitions
        .iter()
        .filter_map(|definition| serde_json::to_value(definition).ok());
    let admission = simulator::Admission::new(definitions);
    let objected = |(document, value): (usize, &Value)| {
        let objections = admission.objections(value).into_iter();
        objections
            .map(move |objection| Rejection {
                document,
                path: objection.field,
                text: objection.text,
            })
            .collect::<Vec<_>>()
    };
    let values = raw.documents.iter().map(|document| &document.value).enumerate();
    values.filter(|(_, value)| is_ours(value)).flat_map(objected).collect()
}

impl Report {
    fn count(&self, severity: Severity) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    }

    /// `2 errors, 11 warnings, 7 notes`.
    fn counts(&self) -> String {
        let counts = [Severity::Error, Severity::Warning, Severity::Note]
            .map(|severity| counted(self.count(severity), severity.as_str()));
        counts.join(", ")
    }

    /// `7 objects, 1 Helm values file, 1 fragment`.
    fn subject(&self) -> String {
        let mut parts = vec![counted(self.objects, "object")];
        if self.values > 0 {
            parts.push(counted(self.values, "Helm values file"));
        }
        if self.fragments > 0 {
            parts.push(counted(self.fragments, "fragment"));
        }
        parts.join(", ")
    }
}

/// How many rules there are to look at.
fn rules() -> usize {
    RULES.iter().filter(|rule| rule.needs != ::lint::Needs::NotYet).count()
}

fn envelope(report: &Report) -> Value {
    let finding = |finding: &Finding| {
        json!({
            "code": finding.code,
            "rule": finding.rule,
            "severity": finding.severity,
            "object": finding.object,
            "file": finding.source,
            "line": finding.line,
            "path": finding.path,
            "text": finding.text,
            "why": finding.why,
            "fix": {"text": finding.fix, "edit": finding.edit},
            "url": page_of(finding.code),
        })
    };
    let answer = json!({
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "summary": {
            "objects": report.objects,
            "helm_values": report.values,
            "fragments": report.fragments,
            "rules": rules(),
            "errors": report.count(Severity::Error),
            "warnings": report.count(Severity::Warning),
            "notes": report.count(Severity::Note),
        },
    });
    report.frame.around("Findings", &report.gaps, answer)
}

/// Where a rule is explained.
fn page_of(code: &str) -> String {
    format!("docs/lint/{code}.md")
}
