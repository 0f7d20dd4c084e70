//! A cluster from its API server: every kind a decision reads, listed page by page, all kinds at once.

use std::{collections::BTreeSet, io::Cursor};

use bytes::Bytes;
use http::Method;
use model::{
    dump::{self, Source},
    snapshot::Objects,
};
use runtime::{
    Api, ApiError, Clock, Resource,
    api::{ConnectError, Options, Whereabouts, connect_to},
};
use serde::Deserialize;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{DUMP_COMMAND, Gathered, Needs, Origin, passed_over};
use crate::{
    failure::Failure,
    live::{USER_AGENT, wait_for},
};

/// Without these there is no answer at all; without others the answer says what it does without.
const ESSENTIAL: [&str; 4] = ["NodePool", "NodeClaim", "Node", "Pod"];
/// Of these two a command about budgets reads.
const POOLS: [&str; 2] = ["NodePool", "Node"];
/// And of these one about prices.
const OFFERS: [&str; 3] = ["NodePool", "Node", "NodeOverlay"];
/// The controller's lease, whoever holds it.
const LEASE: &str = "karpenter-leader-election";

/// What the API server lists, and what it does not.
pub(super) fn read(place: &Whereabouts, needs: Needs, clock: &Clock) -> anyhow::Result<Gathered> {
    let listed = wait_for(async { Ok(listed(place, needs).await?) })?;
    let asked_at = listed.server_time.unwrap_or_else(|| clock.now());
    let options = dump::Options {
        // One object that nobody can read must not keep the others from being looked at.
        mode: dump::Mode::Lenient,
        taken_at: asked_at,
    };
    let lists = listed.lists.into_iter();
    let streams = lists.map(|(name, pages)| Source::Stream(name, Box::new(Cursor::new(pages.concat()))));
    let (snapshot, report) = dump::read(streams, options).map_err(|faults| {
        let faults: Vec<_> = faults.0.iter().map(ToString::to_string).collect();
        Failure::new(
            format!("cannot read what {} lists", listed.cluster),
            faults.join("\n        "),
            format!("work from a dump: {DUMP_COMMAND}"),
        )
    })?;
    let mut assumed = listed.assumed;
    assumed.extend(passed_over(&report));
    let origin = Origin::Live {
        cluster: listed.cluster,
        objects: report.objects,
        leader: listed.leader,
        version: listed.version,
    };
    Ok(Gathered {
        snapshot,
        classes: report.node_classes,
        // Their controller makes their pods.
        jobs: Vec::new(),
        origin,
        assumed,
    })
}

/// What an API server answered.
struct Listed {
    cluster: String,
    /// By kind, in the order of a snapshot's tables.
    lists: Vec<(String, Vec<Bytes>)>,
    assumed: Vec<String>,
    leader: Option<String>,
    version: Option<String>,
    server_time: Option<jiff::Timestamp>,
}

/// Kinds with their versions.
fn of_kinds(names: &[&str]) -> Vec<(&'static str, &'static str)> {
    let all = Objects::KINDS.iter().copied();
    all.filter(|(_, kind)| names.contains(kind)).collect()
}

async fn listed(place: &Whereabouts, needs: Needs) -> Result<Listed, Failure> {
    let (api, context) = connect_to(place, Options::new(USER_AGENT))
        .await
        .map_err(|error| not_connected(&error))?;
    let cluster = short(&context);
    let wanted: Vec<(&str, &str)> = match needs {
        Needs::Decisions => Objects::KINDS.to_vec(),
        Needs::Pools => of_kinds(&POOLS),
        Needs::Offers => of_kinds(&OFFERS),
    };
    let mut answers = JoinSet::new();
    for (at, (api_version, kind)) in wanted.iter().copied().enumerate() {
        let api = api.clone();
        answers.spawn(async move { (at, api.pages(&Resource::new(api_version, kind)).await) });
    }
    let mut answers = answers.join_all().await;
    answers.sort_by_key(|(at, _)| *at);
    let mut gaps = Gaps::default();
    let mut lists = Vec::new();
    for ((_, answer), (api_version, kind)) in answers.into_iter().zip(&wanted) {
        let name = resource_name(api_version, kind);
        match answer {
            Ok(pages) => lists.push((name, pages)),
            Err(error) => gaps.take(&error, kind, &name, &cluster)?,
        }
    }
    if needs != Needs::Pools {
        let classes = node_classes(&api, &lists, &mut gaps, &cluster).await?;
        lists.extend(classes);
    }
    Ok(Listed {
        leader: leader(&api).await,
        version: version(&api).await,
        server_time: api.server_time(),
        assumed: gaps.told(),
        lists,
        cluster,
    })
}

/// Kinds that could not be listed.
#[derive(Debug, Default)]
struct Gaps {
    forbidden: Vec<String>,
    not_installed: Vec<String>,
}

impl Gaps {
    /// Notes a kind that may be missing; fails where it may not, or where nobody answers.
    fn take(&mut self, error: &ApiError, kind: &str, name: &str, cluster: &str) -> Result<(), Failure> {
        let is_essential = ESSENTIAL.contains(&kind);
        if error.is_missing_kind() && kind != "NodePool" {
            self.not_installed.push(name.to_owned());
        } else if error.is_forbidden() && !is_essential {
            self.forbidden.push(name.to_owned());
        } else {
            return Err(not_listed(error, name, cluster));
        }
        Ok(())
    }

    fn told(self) -> Vec<String> {
        let told = |names: Vec<String>, why: &str| (!names.is_empty()).then(|| format!("{why}: {}", names.join(", ")));
        let forbidden = told(self.forbidden, "may not be listed, taken for none");
        let missing = told(self.not_installed, "not installed, so there are none");
        forbidden.into_iter().chain(missing).collect()
    }
}

/// The node classes that NodePools name, whatever their provider.
async fn node_classes(
    api: &Api,
    lists: &[(String, Vec<Bytes>)],
    gaps: &mut Gaps,
    cluster: &str,
) -> Result<Vec<(String, Vec<Bytes>)>, Failure> {
    let pools = lists.iter().find(|(name, _)| name == "nodepools.karpenter.sh");
    let pages = pools.map_or(&[][..], |(_, pages)| pages);
    let mut classes = Vec::new();
    for (group, kind) in pages.iter().flat_map(|page| class_kinds(page)).collect::<BTreeSet<_>>() {
        let name = resource_name(&format!("{group}/v1"), &kind);
        let listed = match preferred(api, &group).await {
            Ok(api_version) => api.pages(&Resource::new(&api_version, &kind)).await,
            Err(error) => Err(error),
        };
        match listed {
            Ok(pages) => classes.push((name, pages)),
            Err(error) if error.is_not_found() => gaps.not_installed.push(name),
            Err(error) => gaps.take(&error, &kind, &name, cluster)?,
        }
    }
    Ok(classes)
}

/// The kinds of node class that a list of NodePools names.
fn class_kinds(page: &[u8]) -> Vec<(String, String)> {
    #[derive(Deserialize)]
    struct Page {
        #[serde(default)]
        items: Vec<Value>,
    }
    let page: Page = serde_json::from_slice(page).unwrap_or(Page { items: Vec::new() });
    let class = |pool: &Value| {
        let class = &pool["spec"]["template"]["spec"]["nodeClassRef"];
        Some((class["group"].as_str()?.to_owned(), class["kind"].as_str()?.to_owned()))
    };
    page.items.iter().filter_map(class).collect()
}

/// The version of an API group that the server prefers.
async fn preferred(api: &Api, group: &str) -> Result<String, ApiError> {
    let bytes = api
        .call(Method::GET, &format!("/apis/{group}"), None, "application/json")
        .await?;
    let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let version = answer["preferredVersion"]["groupVersion"].as_str();
    Ok(version.map_or_else(|| format!("{group}/v1"), ToOwned::to_owned))
}

/// Who leads; none when nobody does, or when we may not see it.
async fn leader(api: &Api) -> Option<String> {
    let path = format!("/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.name%3D{LEASE}");
    let bytes = api.call(Method::GET, &path, None, "application/json").await.ok()?;
    let answer: Value = serde_json::from_slice(&bytes).ok()?;
    let mut leases = answer["items"].as_array()?.iter();
    let lease = leases.find(|lease| lease["metadata"]["name"] == LEASE)?;
    let holder = lease["spec"]["holderIdentity"]
        .as_str()
        .filter(|holder| !holder.is_empty())?;
    // Identities end in a part that tells two processes on one host apart.
    Some(holder.split('_').next().unwrap_or(holder).to_owned())
}

async fn version(api: &Api) -> Option<String> {
    let bytes = api.call(Method::GET, "/version", None, "application/json").await.ok()?;
    let answer: Value = serde_json::from_slice(&bytes).ok()?;
    Some(answer["gitVersion"].as_str()?.to_owned())
}

/// `nodepools.karpenter.sh`, `pods`.
fn resource_name(api_version: &str, kind: &str) -> String {
    let path = Resource::new(api_version, kind).collection("");
    let plural = path.rsplit('/').next().unwrap_or_default();
    match api_version.split_once('/') {
        Some((group, _)) => format!("{plural}.{group}"),
        None => plural.to_owned(),
    }
}

/// What a context is called, without the account that EKS puts before it.
fn short(context: &str) -> String {
    match context.strip_prefix("arn:") {
        Some(arn) => arn.rsplit('/').next().unwrap_or(arn).to_owned(),
        None => context.to_owned(),
    }
}

fn not_connected(error: &ConnectError) -> Failure {
    Failure::unreachable(
        "cannot tell which cluster is meant",
        error.to_string(),
        format!(
            "--kubeconfig FILE and --context NAME choose one; or work from a dump with --from PATH:\n        {DUMP_COMMAND}"
        ),
    )
}

fn not_listed(error: &ApiError, name: &str, cluster: &str) -> Failure {
    let what = format!("cannot list {name} in {cluster}");
    let dump = format!("or work from a dump with --from PATH:\n        {DUMP_COMMAND}");
    match error.code {
        None => Failure::unreachable(
            format!("cannot reach the API server of {cluster}"),
            &error.message,
            format!("check that kubectl get nodes answers; {dump}"),
        ),
        Some(404) => Failure::new(
            what,
            format!("the server answered 404: {}", error.message),
            "kubectl get crds shows what is installed; dovetail crds prints what belongs there",
        ),
        Some(code) => Failure::unreachable(
            what,
            format!("the server answered {code}: {}", error.message),
            format!("ask for a ClusterRole with verb list on {name}, {dump}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eks_context_is_called_by_its_cluster() {
        assert_eq!(short("arn:aws:eks:us-east-1:123456789012:cluster/prod-us"), "prod-us");
        assert_eq!(short("kind-test"), "kind-test");
    }

    #[test]
    fn kinds_are_called_as_roles_call_them() {
        assert_eq!(resource_name("karpenter.sh/v1", "NodePool"), "nodepools.karpenter.sh");
        assert_eq!(resource_name("v1", "Pod"), "pods");
    }

    #[test]
    fn the_viewers_role_reads_what_is_read_and_writes_nothing() {
        let text = include_str!("../../../../deploy/viewer.yaml");
        let role: Value = serde_saphyr::from_str(text).unwrap();
        let rules = role["rules"].as_array().unwrap();
        let words = |rule: &Value, key: &str| -> Vec<String> {
            let words = rule[key].as_array().into_iter().flatten();
            words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
        };
        for rule in rules {
            let verbs = words(rule, "verbs");
            assert!(
                verbs
                    .iter()
                    .all(|verb| ["get", "list", "watch"].contains(&verb.as_str())),
                "{rule}"
            );
        }
        for (api_version, kind) in Objects::KINDS {
            let name = resource_name(api_version, kind);
            let (plural, group) = name.split_once('.').unwrap_or((&name, ""));
            let has = |key: &str, rule: &Value, word: &str| words(rule, key).iter().any(|other| other == word);
            let listed = rules.iter().any(|rule| {
                has("apiGroups", rule, group) && has("resources", rule, plural) && has("verbs", rule, "list")
            });
            assert!(listed, "{name} is read and not in the role");
        }
    }
}
