//! What in the cluster bears on a node class: the maintenance window, and who else looks after DNS on nodes.

use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::Controller;

/// The ConfigMap that AKS writes the next window into.
const WINDOW: &str = "upcoming-maintenance-window";
const START: &str = "aksManagedNodeOSUpgradeSchedule-start";
const END: &str = "aksManagedNodeOSUpgradeSchedule-end";
/// The one network policy that AKS brings itself.
const OWN_POLICY: (&str, &str) = ("kube-system", "konnectivity-agent");

#[derive(Deserialize, Default)]
#[serde(default)]
struct List {
    items: Vec<Item>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Item {
    metadata: Named,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    name: String,
    namespace: String,
}

impl Controller {
    /// Whether images may change now. Where nobody says when, they may always.
    pub(super) async fn is_window_open(&self) -> Result<bool, String> {
        let namespace = self.read.settings.azure.system_namespace.trim();
        if namespace.is_empty() {
            return Ok(true);
        }
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{WINDOW}");
        match self.get(&path).await {
            Ok(None) => Ok(true),
            Ok(Some(map)) => is_open(&map, self.read.clock.now()),
            Err(error) => Err(format!("error getting maintenance window configmap, {error}")),
        }
    }

    /// Whether nothing in the cluster stands against local DNS on nodes.
    pub(super) async fn has_no_rival_dns(&self) -> Result<bool, String> {
        let policy = self.read.settings.azure.network_policy.to_lowercase();
        let kinds: &[&str] = match policy.as_str() {
            "cilium" => &[
                "/apis/cilium.io/v2/ciliumnetworkpolicies",
                "/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies",
            ],
            "calico" => &[
                "/apis/crd.projectcalico.org/v1/networkpolicies",
                "/apis/crd.projectcalico.org/v1/globalnetworkpolicies",
            ],
            _ => &[],
        };
        if !kinds.is_empty()
            && self
                .has_others("/apis/networking.k8s.io/v1/networkpolicies?limit=2")
                .await?
        {
            return Ok(false);
        }
        for kind in kinds {
            if self.has_others(&format!("{kind}?limit=1")).await? {
                return Ok(false);
            }
        }
        let daemon_set = "/apis/apps/v1/namespaces/kube-system/daemonsets/node-local-dns";
        let rival = self.get(daemon_set).await;
        let rival = rival.map_err(|error| format!("checking node-local-dns daemonset: {error}"))?;
        Ok(rival.is_none())
    }

    /// Whether a list has anything that AKS did not bring. A kind that is not installed has nothing.
    async fn has_others(&self, path: &str) -> Result<bool, String> {
        let list = self
            .get(path)
            .await
            .map_err(|error| format!("listing {path}: {error}"))?;
        let list: List = list
            .and_then(|list| serde_json::from_value(list).ok())
            .unwrap_or_default();
        let is_other = |item: &Item| (item.metadata.namespace.as_str(), item.metadata.name.as_str()) != OWN_POLICY;
        Ok(list.items.iter().any(is_other))
    }

    async fn get(&self, path: &str) -> Result<Option<Value>, String> {
        let api = self.read.objects.api();
        match api.call(Method::GET, path, None, "application/json").await {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| error.to_string()),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Whether a window is open. Half a window is none that we could keep to.
fn is_open(map: &Value, now: Timestamp) -> Result<bool, String> {
    let time = |key: &str| {
        let text = map.get("data").and_then(|data| data.get(key)).and_then(Value::as_str);
        text.filter(|text| !text.is_empty())
    };
    let parse = |text: &str, which: &str| {
        let parsed: Result<Timestamp, _> = text.parse();
        parsed.map_err(|error| {
            format!("error parsing maintenance window {which} time for channel aksManagedNodeOSUpgradeSchedule, {text:?}: {error}")
        })
    };
    match (time(START), time(END)) {
        (None, None) => Ok(true),
        (Some(start), Some(end)) => Ok(parse(start, "start")? < now && now < parse(end, "end")?),
        _ => Err(format!(
            "unexpected state, with incomplete maintenance window data for channel aksManagedNodeOSUpgradeSchedule: \
             ConfigMap {WINDOW} has only one of {START} and {END}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_window_is_open_between_its_times_and_where_there_is_none() {
        let now: Timestamp = "2026-11-17T12:00:00Z".parse().unwrap();
        let at = |start: &str, end: &str| is_open(&json!({"data": {START: start, END: end}}), now);
        assert_eq!(at("2026-11-17T11:00:00Z", "2026-11-17T13:00:00Z"), Ok(true));
        assert_eq!(at("2026-11-17T13:00:00Z", "2026-11-17T14:00:00Z"), Ok(false));
        assert_eq!(
            at("2026-11-17T10:00:00+00:00", "2026-11-17T12:00:00Z"),
            Ok(false),
            "the end is not in it"
        );
        assert_eq!(at("", ""), Ok(true));
        assert_eq!(is_open(&json!({}), now), Ok(true));
        assert!(
            at("2026-11-17T11:00:00Z", "")
                .unwrap_err()
                .contains("incomplete maintenance window data")
        );
        assert!(at("soon", "later").unwrap_err().contains("start"));
    }
}
