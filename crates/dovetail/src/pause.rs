//! `dovetail pause` and `dovetail resume`: nothing is disrupted for a while; pods that come get nodes all the same.

use std::path::PathBuf;

use api::{
    annotations::{PAUSE, PAUSE_REASON},
    duration::Duration,
};
use jiff::Timestamp;
use model::object::{NodePool, ObjectKey};
use runtime::{Api, Clock, Patch, api::Whereabouts};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    answer::Answer,
    document,
    failure::Failure,
    live, raw,
    terminal::{agreed, counted},
};

/// Stop voluntary disruption at once: consolidation, drift and expiry. New nodes and repair go on.
///
/// Writes two annotations on NodePools, which every leader reads before it disrupts anything.
#[derive(Debug, clap::Args)]
pub(crate) struct PauseArgs {
    /// Why; the next person on call reads it.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// For how long, such as 2h; otherwise until `dovetail resume`.
    #[arg(long = "for", value_name = "DURATION")]
    span: Option<Duration>,
    #[command(flatten)]
    which: Which,
}

/// End a pause.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Only these NodePools; otherwise all.
    #[arg(long = "pool", value_name = "NODEPOOL")]
    pools: Vec<String>,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// The kubeconfig that names the cluster; otherwise as kubectl finds it.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; otherwise its current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
    Yaml,
}

/// What was done, for programs.
#[derive(Debug, Serialize)]
struct Done<'a> {
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    kind: &'static str,
    /// Whether something was written.
    written: bool,
    /// Whether the pools are paused now.
    paused: bool,
    /// Until when; none until somebody resumes them.
    until: Option<String>,
    reason: Option<&'a str>,
    pools: &'a [String],
}

impl Default for Done<'_> {
    fn default() -> Self {
        Self {
            api_version: "dovetail.dev/v1alpha1",
            kind: "Pause",
            written: false,
            paused: false,
            until: None,
            reason: None,
            pools: &[],
        }
    }
}

/// What stands for the end of a pause that nobody has set.
const OPEN: &str = "until-resumed";

pub(crate) fn pause(args: &PauseArgs) -> anyhow::Result<Answer> {
    if args.reason.trim().is_empty() {
        let why = "the next person on call reads it";
        return Err(Failure::usage("a pause needs a reason", why, "--reason \"…\"").into());
    }
    let now = Clock::system().now();
    live::wait_for(async { paused(&args.which.cluster().await?, args, now).await }).map(Answer::from)
}

/// Pauses pools of a cluster, and says so.
async fn paused(api: &Api, args: &PauseArgs, now: Timestamp) -> anyhow::Result<String> {
    let until = args
        .span
        .map(|span| now.saturating_add(span.to_signed()).unwrap_or(Timestamp::MAX));
    let pools = chosen(&live::list::<NodePool>(api).await?, &args.which.pools)?;
    let asks = format!(
        "Writes {PAUSE} on {}: {}. Stops consolidation, drift and expiry; not new nodes, not repair.",
        counted(pools.len(), "NodePool"),
        pools.join(", ")
    );
    if !args.which.agrees(&asks)? {
        return args.which.told(NOTHING.to_owned(), &Done::default());
    }
    write(api, &pools, &annotations(until, Some(&args.reason))).await?;
    let done = Done {
        written: true,
        paused: true,
        until: until.map(written),
        reason: Some(&args.reason),
        pools: &pools,
        ..Done::default()
    };
    let until = until.map_or("until it is resumed".to_owned(), |until| {
        format!("until {}", written(until))
    });
    let text = format!("paused {until}: {:?}. End it: dovetail resume\n", args.reason);
    args.which.told(text, &done)
}

pub(crate) fn resume(args: &ResumeArgs) -> anyhow::Result<Answer> {
    live::wait_for(async { resumed(&args.which.cluster().await?, args).await }).map(Answer::from)
}

/// Ends the pause of pools of a cluster, and says so.
async fn resumed(api: &Api, args: &ResumeArgs) -> anyhow::Result<String> {
    let all = live::list::<NodePool>(api).await?;
    let is_paused = |pool: &&Value| !pool["metadata"]["annotations"][PAUSE].is_null();
    let paused: Vec<Value> = all.iter().filter(is_paused).cloned().collect();
    if paused.is_empty() {
        return args
            .which
            .told("nothing to resume: no pause is set.\n".to_owned(), &Done::default());
    }
    let pools = chosen(&paused, &args.which.pools)?;
    if !args.which.agrees(&format!("Takes {PAUSE} off {}.", pools.join(", ")))? {
        let still = Done {
            paused: true,
            pools: &pools,
            ..Done::default()
        };
        return args.which.told(NOTHING.to_owned(), &still);
    }
    write(api, &pools, &annotations_gone()).await?;
    let done = Done {
        written: true,
        pools: &pools,
        ..Done::default()
    };
    args.which.told(format!("resumed {}\n", pools.join(", ")), &done)
}

const NOTHING: &str = "nothing was written\n";

impl Which {
    /// The cluster that is meant. There is no dump to write to.
    async fn cluster(&self) -> Result<Api, Failure> {
        let place = Whereabouts {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        };
        let (api, _) = raw::connected(&place, "--kubeconfig FILE and --context NAME choose one").await?;
        Ok(api)
    }

    /// What was done, as it is asked for.
    fn told(&self, text: String, done: &Done<'_>) -> anyhow::Result<String> {
        match self.output {
            Format::Table => Ok(text),
            Format::Json => document::json(done),
            Format::Yaml => document::yaml(done),
        }
    }

    /// Shows what will be written, and asks.
    fn agrees(&self, asks: &str) -> anyhow::Result<bool> {
        Ok(self.yes || agreed(asks)?)
    }
}

/// The names of the pools that are meant.
fn chosen(all: &[Value], wanted: &[String]) -> Result<Vec<String>, Failure> {
    let name = |pool: &Value| pool["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let known: Vec<String> = all.iter().map(name).collect();
    if let Some(unknown) = wanted.iter().find(|wanted| !known.contains(wanted)) {
        let why = format!("there are {}", known.join(", "));
        return Err(Failure::new(
            format!("no NodePool {unknown} to change"),
            why,
            "name one of them with --pool",
        ));
    }
    if known.is_empty() {
        let why = "the cluster has none, so there is nothing that could be disrupted";
        return Err(Failure::new("no NodePool to change", why, "kubectl get nodepools"));
    }
    Ok(if wanted.is_empty() { known } else { wanted.to_vec() })
}

fn annotations(until: Option<Timestamp>, reason: Option<&str>) -> Value {
    let until = until.map_or(OPEN.to_owned(), written);
    json!({"metadata": {"annotations": {PAUSE: until, PAUSE_REASON: reason}}})
}

fn annotations_gone() -> Value {
    json!({"metadata": {"annotations": {PAUSE: null, PAUSE_REASON: null}}})
}

fn written(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

async fn write(api: &Api, pools: &[String], change: &Value) -> anyhow::Result<()> {
    for pool in pools {
        let key = ObjectKey::cluster_scoped(pool);
        api.patch::<NodePool>(&key, None, &Patch::Merge(change.clone())).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use simulator::{ApiServer, Resource};

    use super::*;

    /// A cluster with the pools `a` and `b`, the first with an annotation of somebody else's.
    fn two_pools() -> (ApiServer, Api) {
        let server = ApiServer::new(|| Timestamp::UNIX_EPOCH);
        server.define(&Resource::new("karpenter.sh", "nodepools"), "NodePool", false);
        for (name, annotations) in [("a", json!({"team": "shop"})), ("b", json!({}))] {
            let metadata = json!({"name": name, "annotations": annotations});
            let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": {}});
            server.create(pool).unwrap();
        }
        let api = Api::new(server.client(), "dovetail-cli/test");
        (server, api)
    }

    fn which(pools: &[&str]) -> Which {
        Which {
            pools: pools.iter().map(|&name| name.to_owned()).collect(),
            yes: true,
            output: Format::Table,
            kubeconfig: None,
            context: None,
        }
    }

    #[test]
    fn a_pause_is_written_on_the_pools_that_are_meant_and_taken_off_again() {
        live::wait_for(async {
            let (server, api) = two_pools();
            let annotations = |pool: &str| server.get("NodePool", pool).unwrap()["metadata"]["annotations"].clone();
            let args = PauseArgs {
                reason: "incident 4711".to_owned(),
                span: Some("2h".parse().unwrap()),
                which: which(&["a"]),
            };
            let said = paused(&api, &args, "2026-11-16T15:42:07Z".parse().unwrap()).await?;
            assert_eq!(
                said,
                "paused until 2026-11-16T17:42:07Z: \"incident 4711\". End it: dovetail resume\n"
            );
            let expected = json!({PAUSE: "2026-11-16T17:42:07Z", PAUSE_REASON: "incident 4711", "team": "shop"});
            assert_eq!(annotations("a"), expected);
            assert!(annotations("b")[PAUSE].is_null());

            let unpaused = resumed(&api, &ResumeArgs { which: which(&["b"]) }).await;
            assert!(unpaused.unwrap_err().to_string().contains("no NodePool b to change"));
            assert_eq!(resumed(&api, &ResumeArgs { which: which(&[]) }).await?, "resumed a\n");
            assert_eq!(annotations("a"), json!({"team": "shop"}));
            let said = resumed(&api, &ResumeArgs { which: which(&[]) }).await?;
            assert_eq!(said, "nothing to resume: no pause is set.\n");
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn all_pools_are_meant_unless_some_are_named() {
        let all = ["a", "b"].map(|name| json!({"metadata": {"name": name}}));
        let chosen = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
            super::chosen(&all, &wanted)
        };
        assert_eq!(chosen(&[]).unwrap(), ["a", "b"]);
        assert_eq!(chosen(&["b"]).unwrap(), ["b"]);
        assert_eq!(chosen(&["c"]).unwrap_err().why, "there are a, b");
    }

    #[test]
    fn a_pause_says_until_when_and_why() {
        let until = "2026-11-16T17:42:07Z".parse().unwrap();
        let expected = json!({"metadata": {"annotations": {
            "dovetail.dev/pause": "2026-11-16T17:42:07Z", "dovetail.dev/pause-reason": "incident 4711",
        }}});
        assert_eq!(annotations(Some(until), Some("incident 4711")), expected);
        let open = annotations(None, Some("incident 4711"));
        assert_eq!(open["metadata"]["annotations"]["dovetail.dev/pause"], "until-resumed");
    }
}
