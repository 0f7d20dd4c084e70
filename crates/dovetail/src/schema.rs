//! `dovetail schema`: the JSON Schema of each document that `-o json` and `-o yaml` print.

use anyhow::Context;
use serde_json::Value;

use crate::{document, plugin};

/// Print the JSON Schema of a document that commands print with -o json, or the kinds there are.
///
/// Documents are stable within dovetail.dev/v1alpha1: fields may come, none goes or changes its meaning.
///
/// Example: dovetail schema Status | jq '.properties.money'
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The `kind` of the document; otherwise the kinds are listed, with the command that prints each.
    #[arg(value_name = "KIND")]
    kind: Option<String>,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Format::Json)]
    output: Format,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Json,
    Yaml,
}

/// A kind, the command that prints it, and its schema.
macro_rules! schemas {
    ($($kind:literal $command:literal,)*) => {
        const SCHEMAS: &[(&str, &str, &str)] =
            &[$(($kind, $command, include_str!(concat!("../schemas/", $kind, ".json"))),)*];
    };
}

schemas! {
    "Budgets" "budgets",
    "CRDDiff" "crds --diff",
    "Checkup" "doctor",
    "Cost" "cost",
    "Decision" "why ID",
    "Decisions" "decisions",
    "DemoSummary" "demo",
    "Drift" "drift",
    "Findings" "lint",
    "NodeExplanation" "why node",
    "NodePoolExplanation" "why nodepool",
    "Observation" "observe",
    "Pause" "pause",
    "Plan" "plan",
    "PodExplanation" "why pod",
    "Prices" "prices",
    "Replay" "replay",
    "Status" "status",
    "Version" "version",
    "WhatIf" "whatif",
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<String> {
    let Some(kind) = &args.kind else {
        let line = |(kind, command, _): &(&str, &str, &str)| format!("{kind:20} dovetail {command} -o json\n");
        return Ok(SCHEMAS.iter().map(line).collect());
    };
    let found = SCHEMAS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(kind));
    let Some((_, _, text)) = found else {
        return Err(plugin::unknown("kind", kind, SCHEMAS.iter().map(|(known, ..)| *known)).into());
    };
    let schema: Value = serde_json::from_str(text).context("the schema that comes with the program")?;
    match args.output {
        Format::Json => document::json(&schema),
        Format::Yaml => document::yaml(&schema),
    }
}
