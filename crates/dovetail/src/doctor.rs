//! `dovetail doctor`: checks an installation, and says of each finding what proves it and what mends it safely.
//!
//! It only reads, unless it is told to fix something. What can be told from objects is told from a dump as well; the rest is asked of the API server.

mod access;
mod claims;
mod mend;
mod objects;
mod server;
mod table;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use crate::{
    answer::Answer,
    document,
    failure::Failure,
    live,
    place::Place,
    raw::{self, Raw, noted},
    reply::Reply,
    source::DUMP_COMMAND,
    trace,
};

/// Check permissions, CRDs, the lease, and stuck, lost or blocked objects; each finding with its proof and a safe fix.
///
/// Nothing is written without --fix. Checks that need the API server are left out on a dump, and the answer says so. Permissions
/// are those of whoever asks; --service-account asks for the controller's. Ends with 3 if something stops or is about to.
///
/// --fix does what mends a finding and is safe without a person: CRDs (D01), claims whose node is gone (D10), nodes that call
/// themselves a pool's and have no claim (D11). It says what, and asks. For the rest it names the command.
///
/// Example: dovetail doctor --service-account kube-system/dovetail
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Whose permissions are checked instead of one's own; asking for others takes a permission itself.
    #[arg(long, value_name = "NAMESPACE/NAME", conflicts_with = "from")]
    service_account: Option<String>,
    /// Do what mends this finding, or all that have a safe fix.
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = mend::ALL, conflicts_with_all = ["from", "watch"])]
    fix: Option<String>,
    /// Do not ask.
    #[arg(long, requires = "fix")]
    yes: bool,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    pub(crate) reply: Reply,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Table,
    Json,
    Yaml,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// Something does not work.
    Stop,
    /// Something is about to, or nobody knows.
    Warn,
    /// Nothing was found.
    Ok,
    /// It could not be asked.
    Skipped,
}

/// What a check says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    id: &'static str,
    state: State,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    proof: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<Fix>,
}

/// What mends a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Fix {
    /// Commands or changes, in order.
    commands: Vec<String>,
    safe_because: String,
    /// What `--fix` does about it; nothing where that takes a person.
    #[serde(skip)]
    act: Option<mend::Act>,
}

impl Check {
    fn ok(id: &'static str, text: impl Into<String>) -> Self {
        Self::new(id, State::Ok, text)
    }

    fn new(id: &'static str, state: State, text: impl Into<String>) -> Self {
        Self {
            id,
            state,
            text: text.into(),
            proof: Vec::new(),
            fix: None,
        }
    }

    fn proof(mut self, proof: impl Into<String>) -> Self {
        self.proof.push(proof.into());
        self
    }

    fn fix(mut self, command: impl Into<String>, safe_because: impl Into<String>) -> Self {
        self.fix = Some(Fix {
            commands: vec![command.into()],
            safe_because: safe_because.into(),
            act: None,
        });
        self
    }

    /// Lets `--fix` do what mends it.
    fn act(mut self, act: mend::Act) -> Self {
        if let Some(fix) = &mut self.fix {
            fix.act = Some(act);
            fix.commands.push(format!("dovetail doctor --fix {}", self.id));
        }
        self
    }
}

pub(crate) fn answer(args: &Args) -> anyhow::Result<Answer> {
    if let Some(wanted) = &args.fix {
        return fixed(args, wanted);
    }
    let (raw, mut checks) = if args.place.from.is_empty() {
        asked(args)?
    } else {
        (raw::of_files(&args.place.from)?, server::skipped())
    };
    // A cluster without objects has an API server that can be asked; of a dump nothing is left.
    if raw.documents.is_empty() && !args.place.from.is_empty() {
        let why = "no YAML or JSON with an apiVersion and a kind was read";
        return Err(Failure::new(format!("nothing to check in {}", raw.name), why, DUMP_COMMAND).into());
    }
    let now = args.place.at.unwrap_or(raw.now);
    checks.extend(objects::checks(&raw, now));
    checks.sort_by_key(|check| check.id);
    let has_findings = checks.iter().any(|check| check.state <= State::Warn);
    let text = match args.output {
        Format::Table => table::render(&raw.name, &checks, &args.reply.presentation.screen()),
        Format::Json => document::json(&envelope(&raw, &checks, now))?,
        Format::Yaml => document::yaml(&envelope(&raw, &checks, now))?,
    };
    let notes = noted("assumed", &raw.gaps) + &trace::of_objects(&raw, args.reply.verbose);
    let answer = args.reply.told(text, notes)?;
    Ok(Answer {
        is_finding: has_findings,
        ..answer
    })
}

/// Checks once more, and does what is asked for.
fn fixed(args: &Args, wanted: &str) -> anyhow::Result<Answer> {
    let place = args.place.cluster();
    live::wait_for(async {
        let (api, name) = raw::connected(&place, "--kubeconfig FILE and --context NAME choose one").await?;
        let raw = raw::listed(&api, name).await?;
        let mut checks = server::checks(&api, args.service_account.as_deref()).await?;
        checks.extend(objects::checks(&raw, raw.now));
        checks.sort_by_key(|check| check.id);
        mend::mended(&api, &checks, wanted, args.yes).await
    })
}

/// What the API server says.
fn asked(args: &Args) -> anyhow::Result<(Raw, Vec<Check>)> {
    let place = args.place.cluster();
    live::wait_for(async {
        let (api, name) = raw::connected(&place, raw::OR_A_DUMP).await?;
        let raw = raw::listed(&api, name).await?;
        let checks = server::checks(&api, args.service_account.as_deref()).await?;
        Ok((raw, checks))
    })
}

fn envelope(raw: &Raw, checks: &[Check], now: Timestamp) -> serde_json::Value {
    raw.frame(now).around("Checkup", &raw.gaps, json!({"checks": checks}))
}
