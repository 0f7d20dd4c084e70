//! Which columns do the built-in kinds have, and what is in them? As the real server prints them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{Resource, pod::is_ready};

/// A column.
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) form: &'static str,
    /// Shown only when asked for more.
    pub(super) is_wide: bool,
    pub(super) fill: fn(&Value, Timestamp) -> Value,
}

const fn text(title: &'static str, fill: fn(&Value, Timestamp) -> Value) -> Column {
    Column {
        title,
        form: "string",
        is_wide: false,
        fill,
    }
}

const fn number(title: &'static str, fill: fn(&Value, Timestamp) -> Value) -> Column {
    Column {
        title,
        form: "integer",
        is_wide: false,
        fill,
    }
}

const fn wide(title: &'static str, fill: fn(&Value, Timestamp) -> Value) -> Column {
    Column {
        title,
        form: "string",
        is_wide: true,
        fill,
    }
}

pub(super) const NAME: Column = text("Name", |object, _| object["metadata"]["name"].clone());
const AGE: Column = text("Age", |object, now| {
    json!(since(object, "/metadata/creationTimestamp", now))
});
const CONTAINERS: Column = wide("Containers", |object, _| json!(each_container(object, "name")));
const IMAGES: Column = wide("Images", |object, _| json!(each_container(object, "image")));
const SELECTOR: Column = wide("Selector", |object, _| json!(selector(&object["spec"]["selector"])));

/// The columns of a kind.
pub(super) fn of(resource: &Resource) -> Vec<Column> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pods(),
        ("", "nodes") => nodes(),
        ("", "events") => events(),
        ("", "services") => services(),
        ("", "namespaces") => vec![NAME, text("Status", |o, _| o["status"]["phase"].clone()), AGE],
        ("", "configmaps") => vec![
            NAME,
            number("Data", |o, _| json!(count(&o["data"]) + count(&o["binaryData"]))),
            AGE,
        ],
        ("", "secrets") => vec![
            NAME,
            text("Type", |o, _| o["type"].clone()),
            number("Data", |o, _| json!(count(&o["data"]))),
            AGE,
        ],
        ("", "serviceaccounts") => vec![NAME, text("Secrets", |o, _| json!(count(&o["secrets"]))), AGE],
        ("", "persistentvolumeclaims") => claims(),
        ("", "persistentvolumes") => volumes(),
        ("apps", "deployments") => deployments(),
        ("apps", "replicasets") | ("", "replicationcontrollers") => replica_sets(),
        ("apps", "statefulsets") => vec![
            NAME,
            text("Ready", |o, _| {
                json!(format!(
                    "{}/{}",
                    whole(o, "/status/readyReplicas"),
                    whole(o, "/spec/replicas")
                ))
            }),
            AGE,
            CONTAINERS,
            IMAGES,
        ],
        ("apps", "daemonsets") => daemon_sets(),
        ("batch", "jobs") => jobs(),
        ("batch", "cronjobs") => cron_jobs(),
        ("coordination.k8s.io", "leases") => {
            vec![NAME, text("Holder", |o, _| o["spec"]["holderIdentity"].clone()), AGE]
        }
        ("policy", "poddisruptionbudgets") => budgets(),
        ("scheduling.k8s.io", "priorityclasses") => vec![
            NAME,
            number("Value", |o, _| o["value"].clone()),
            text("Global-Default", |o, _| {
                json!(o["globalDefault"].as_bool().unwrap_or(false))
            }),
            AGE,
            text("PreemptionPolicy", |o, _| o["preemptionPolicy"].clone()),
        ],
        ("storage.k8s.io", "storageclasses") => storage_classes(),
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            vec![
                NAME,
                text("Created At", |o, _| o["metadata"]["creationTimestamp"].clone()),
            ]
        }
        _ => vec![NAME, AGE],
    }
}

fn pods() -> Vec<Column> {
    vec![
        NAME,
        text("Ready", |pod, _| {
            let total = count(&pod["spec"]["containers"]);
            let statuses = pod["status"]["containerStatuses"].as_array();
            let ready = match statuses {
                Some(statuses) => statuses.iter().filter(|one| one["ready"] == true).count(),
                // A kubelet that tells of no containers still tells of the pod.
                None if is_ready(pod) => total,
                None => 0,
            };
            json!(format!("{ready}/{total}"))
        }),
        text("Status", |pod, _| json!(phase(pod))),
        text("Restarts", |pod, _| {
            let statuses = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
            let restarts: i64 = statuses.map(|one| one["restartCount"].as_i64().unwrap_or(0)).sum();
            json!(restarts.to_string())
        }),
        AGE,
        wide("IP", |pod, _| or_none(pod, "/status/podIP")),
        wide("Node", |pod, _| or_none(pod, "/spec/nodeName")),
        wide("Nominated Node", |pod, _| or_none(pod, "/status/nominatedNodeName")),
        wide("Readiness Gates", |_, _| json!("<none>")),
    ]
}

fn phase(pod: &Value) -> String {
    let status = &pod["status"];
    let phase = status["phase"].as_str().unwrap_or_default();
    let is_over = matches!(phase, "Succeeded" | "Failed");
    if !pod["metadata"]["deletionTimestamp"].is_null() && !is_over {
        return "Terminating".to_owned();
    }
    let conditions = status["conditions"].as_array().into_iter().flatten();
    if conditions.into_iter().any(|one| one["reason"] == "SchedulingGated") {
        return "SchedulingGated".to_owned();
    }
    let statuses = status["containerStatuses"].as_array().into_iter().flatten();
    let said = statuses.into_iter().find_map(|one| {
        let state = &one["state"];
        state["waiting"]["reason"]
            .as_str()
            .or(state["terminated"]["reason"].as_str())
    });
    said.or(status["reason"].as_str()).unwrap_or(phase).to_owned()
}

fn nodes() -> Vec<Column> {
    vec![
        NAME,
        text("Status", |node, _| {
            let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
            let ready = conditions.into_iter().find(|one| one["type"] == "Ready");
            let mut status = match ready.map(|ready| &ready["status"]) {
                Some(status) if *status == "True" => "Ready",
                Some(_) => "NotReady",
                None => "Unknown",
            }
            .to_owned();
            if node["spec"]["unschedulable"] == true {
                status.push_str(",SchedulingDisabled");
            }
            json!(status)
        }),
        text("Roles", |node, _| {
            let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
            let mut roles: Vec<&str> = labels
                .filter_map(|(label, value)| match label.strip_prefix("node-role.kubernetes.io/") {
                    Some(role) => Some(role),
                    None if label == "kubernetes.io/role" => value.as_str(),
                    None => None,
                })
                .collect();
            roles.sort_unstable();
            json!(if roles.is_empty() {
                "<none>".to_owned()
            } else {
                roles.join(",")
            })
        }),
        AGE,
        text("Version", |node, _| {
            json!(string(node, "/status/nodeInfo/kubeletVersion"))
        }),
        wide("Internal-IP", |node, _| json!(address(node, "InternalIP"))),
        wide("External-IP", |node, _| json!(address(node, "ExternalIP"))),
        wide("OS-Image", |node, _| or_unknown(node, "/status/nodeInfo/osImage")),
        wide("Kernel-Version", |node, _| {
            let kernel = or_unknown(node, "/status/nodeInfo/kernelVersion");
            match string(node, "/status/nodeInfo/architecture") {
                "" => kernel,
                architecture => json!(format!("{} ({architecture})", kernel.as_str().unwrap_or_default())),
            }
        }),
        wide("Container-Runtime", |node, _| {
            or_unknown(node, "/status/nodeInfo/containerRuntimeVersion")
        }),
    ]
}

fn address(node: &Value, kind: &str) -> String {
    let addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    let found = addresses.into_iter().find(|one| one["type"] == kind);
    let found = found.and_then(|one| one["address"].as_str());
    found.unwrap_or("<none>").to_owned()
}

fn events() -> Vec<Column> {
    vec![
        text("Last Seen", |event, now| json!(last_seen(event, now))),
        text("Type", |event, _| event["type"].clone()),
        text("Reason", |event, _| event["reason"].clone()),
        text("Object", |event, _| {
            let kind = string(event, "/involvedObject/kind").to_lowercase();
            let name = string(event, "/involvedObject/name");
            json!(if name.is_empty() {
                kind
            } else {
                format!("{kind}/{name}")
            })
        }),
        wide("Subobject", |event, _| {
            json!(string(event, "/involvedObject/fieldPath"))
        }),
        wide("Source", |event, _| {
            let first = |one: &'static str, other: &'static str| match string(event, one) {
                "" => string(event, other).to_owned(),
                text => text.to_owned(),
            };
            let component = first("/source/component", "/reportingComponent");
            let instance = first("/source/host", "/reportingInstance");
            json!(if instance.is_empty() {
                component
            } else {
                format!("{component}, {instance}")
            })
        }),
        text("Message", |event, _| json!(string(event, "/message").trim())),
        wide("First Seen", |event, now| json!(first_seen(event, now))),
        wide("Count", |event, _| {
            json!(event["count"].as_i64().filter(|count| *count > 0).unwrap_or(1))
        }),
        wide("Name", |event, _| event["metadata"]["name"].clone()),
    ]
}

fn first_seen(event: &Value, now: Timestamp) -> String {
    let at = match string(event, "/firstTimestamp") {
        "" => string(event, "/eventTime"),
        at => at,
    };
    age(at, now)
}

fn last_seen(event: &Value, now: Timestamp) -> String {
    let series = string(event, "/series/lastObservedTime");
    match (series, string(event, "/lastTimestamp")) {
        ("", "") => first_seen(event, now),
        ("", at) | (at, _) => age(at, now),
    }
}

fn services() -> Vec<Column> {
    vec![
        NAME,
        text("Type", |service, _| service["spec"]["type"].clone()),
        text("Cluster-IP", |service, _| or_none(service, "/spec/clusterIP")),
        text("External-IP", |service, _| match string(service, "/spec/type") {
            "LoadBalancer" => json!("<pending>"),
            _ => json!("<none>"),
        }),
        text("Port(s)", |service, _| {
            let ports = service["spec"]["ports"].as_array().into_iter().flatten();
            let ports: Vec<String> = ports
                .map(|port| format!("{}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP")))
                .collect();
            json!(if ports.is_empty() {
                "<none>".to_owned()
            } else {
                ports.join(",")
            })
        }),
        AGE,
        wide("Selector", |service, _| json!(labels(&service["spec"]["selector"]))),
    ]
}

fn claims() -> Vec<Column> {
    vec![
        NAME,
        text("Status", |o, _| json!(string(o, "/status/phase"))),
        text("Volume", |o, _| json!(string(o, "/spec/volumeName"))),
        text("Capacity", |o, _| json!(string(o, "/status/capacity/storage"))),
        text("Access Modes", |o, _| json!(access_modes(&o["status"]["accessModes"]))),
        text("StorageClass", |o, _| json!(string(o, "/spec/storageClassName"))),
        text("VolumeAttributesClass", |_, _| json!("<unset>")),
        AGE,
        wide("VolumeMode", |o, _| json!(string(o, "/spec/volumeMode"))),
    ]
}

fn volumes() -> Vec<Column> {
    vec![
        NAME,
        text("Capacity", |o, _| json!(string(o, "/spec/capacity/storage"))),
        text("Access Modes", |o, _| json!(access_modes(&o["spec"]["accessModes"]))),
        text("Reclaim Policy", |o, _| {
            json!(string(o, "/spec/persistentVolumeReclaimPolicy"))
        }),
        text("Status", |o, _| json!(string(o, "/status/phase"))),
        text("Claim", |o, _| {
            match (string(o, "/spec/claimRef/namespace"), string(o, "/spec/claimRef/name")) {
                (_, "") => json!(""),
                (namespace, name) => json!(format!("{namespace}/{name}")),
            }
        }),
        text("StorageClass", |o, _| json!(string(o, "/spec/storageClassName"))),
        text("VolumeAttributesClass", |_, _| json!("<unset>")),
        text("Reason", |o, _| json!(string(o, "/status/reason"))),
        AGE,
        wide("VolumeMode", |o, _| json!(string(o, "/spec/volumeMode"))),
    ]
}

fn access_modes(modes: &Value) -> String {
    let short = |mode: &Value| match mode.as_str() {
        Some("ReadWriteOnce") => "RWO",
        Some("ReadOnlyMany") => "ROX",
        Some("ReadWriteMany") => "RWX",
        _ => "RWOP",
    };
    let modes: Vec<&str> = modes.as_array().into_iter().flatten().map(short).collect();
    modes.join(",")
}

fn deployments() -> Vec<Column> {
    vec![
        NAME,
        text("Ready", |o, _| {
            json!(format!(
                "{}/{}",
                whole(o, "/status/readyReplicas"),
                whole(o, "/spec/replicas")
            ))
        }),
        number("Up-to-date", |o, _| json!(whole(o, "/status/updatedReplicas"))),
        number("Available", |o, _| json!(whole(o, "/status/availableReplicas"))),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

fn replica_sets() -> Vec<Column> {
    vec![
        NAME,
        number("Desired", |o, _| json!(whole(o, "/spec/replicas"))),
        number("Current", |o, _| json!(whole(o, "/status/replicas"))),
        number("Ready", |o, _| json!(whole(o, "/status/readyReplicas"))),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

fn daemon_sets() -> Vec<Column> {
    vec![
        NAME,
        number("Desired", |o, _| json!(whole(o, "/status/desiredNumberScheduled"))),
        number("Current", |o, _| json!(whole(o, "/status/currentNumberScheduled"))),
        number("Ready", |o, _| json!(whole(o, "/status/numberReady"))),
        number("Up-to-date", |o, _| json!(whole(o, "/status/updatedNumberScheduled"))),
        number("Available", |o, _| json!(whole(o, "/status/numberAvailable"))),
        text("Node Selector", |o, _| {
            json!(labels(&o["spec"]["template"]["spec"]["nodeSelector"]))
        }),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

fn jobs() -> Vec<Column> {
    vec![
        NAME,
        text("Status", |job, _| {
            let has = |kind: &str| {
                let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
                conditions
                    .into_iter()
                    .any(|one| one["type"] == kind && one["status"] == "True")
            };
            let is_deleting = !job["metadata"]["deletionTimestamp"].is_null();
            json!(match () {
                () if has("Complete") => "Complete",
                () if has("Failed") => "Failed",
                () if is_deleting => "Terminating",
                () if has("Suspended") => "Suspended",
                () => "Running",
            })
        }),
        text("Completions", |job, _| {
            let done = whole(job, "/status/succeeded");
            let parallel = whole(job, "/spec/parallelism");
            json!(match job["spec"]["completions"].as_i64() {
                Some(wanted) => format!("{done}/{wanted}"),
                None if parallel > 1 => format!("{done}/1 of {parallel}"),
                None => format!("{done}/1"),
            })
        }),
        text("Duration", |job, now| {
            let time = |pointer: &str| string(job, pointer).parse::<Timestamp>().ok();
            let Some(start) = time("/status/startTime") else {
                return json!("");
            };
            let end = time("/status/completionTime").unwrap_or(now);
            json!(human(end.as_second() - start.as_second()))
        }),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

fn cron_jobs() -> Vec<Column> {
    vec![
        NAME,
        text("Schedule", |o, _| json!(string(o, "/spec/schedule"))),
        text("Timezone", |o, _| or_none(o, "/spec/timeZone")),
        text("Suspend", |o, _| {
            json!(if o["spec"]["suspend"] == true { "True" } else { "False" })
        }),
        number("Active", |o, _| json!(count(&o["status"]["active"]))),
        text("Last Schedule", |o, now| match string(o, "/status/lastScheduleTime") {
            "" => json!("<none>"),
            at => json!(age(at, now)),
        }),
        AGE,
        wide("Containers", |o, _| {
            json!(each(&o["spec"]["jobTemplate"]["spec"]["template"]["spec"], "name"))
        }),
        wide("Images", |o, _| {
            json!(each(&o["spec"]["jobTemplate"]["spec"]["template"]["spec"], "image"))
        }),
        wide("Selector", |o, _| {
            json!(selector(&o["spec"]["jobTemplate"]["spec"]["selector"]))
        }),
    ]
}

fn budgets() -> Vec<Column> {
    fn bound(object: &Value, field: &str) -> Value {
        match &object["spec"][field] {
            Value::Null => json!("N/A"),
            Value::String(text) => json!(text),
            number => json!(number.to_string()),
        }
    }
    vec![
        NAME,
        text("Min Available", |o, _| bound(o, "minAvailable")),
        text("Max Unavailable", |o, _| bound(o, "maxUnavailable")),
        number("Allowed Disruptions", |o, _| {
            json!(whole(o, "/status/disruptionsAllowed"))
        }),
        AGE,
    ]
}

fn storage_classes() -> Vec<Column> {
    vec![
        NAME,
        text("Provisioner", |o, _| json!(string(o, "/provisioner"))),
        text("ReclaimPolicy", |o, _| {
            json!(o["reclaimPolicy"].as_str().unwrap_or("Delete"))
        }),
        text("VolumeBindingMode", |o, _| {
            json!(o["volumeBindingMode"].as_str().unwrap_or("Immediate"))
        }),
        text("AllowVolumeExpansion", |o, _| {
            json!(o["allowVolumeExpansion"].as_bool().unwrap_or(false))
        }),
        AGE,
    ]
}

fn string<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn or_else(object: &Value, pointer: &str, other: &str) -> Value {
    match string(object, pointer) {
        "" => json!(other),
        text => json!(text),
    }
}

fn or_none(object: &Value, pointer: &str) -> Value {
    or_else(object, pointer, "<none>")
}

fn or_unknown(object: &Value, pointer: &str) -> Value {
    or_else(object, pointer, "<unknown>")
}

fn whole(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    }
}

fn each_container(object: &Value, field: &str) -> String {
    each(&object["spec"]["template"]["spec"], field)
}

fn each(spec: &Value, field: &str) -> String {
    let containers = spec["containers"].as_array().into_iter().flatten();
    let all: Vec<&str> = containers.filter_map(|one| one[field].as_str()).collect();
    all.join(",")
}

fn labels(map: &Value) -> String {
    let pairs = map.as_object().into_iter().flatten();
    let pairs: Vec<String> = pairs
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() {
        return "<none>".to_owned();
    }
    pairs.join(",")
}

fn selector(selector: &Value) -> String {
    let mut all: Vec<String> = match &selector["matchLabels"] {
        Value::Null => Vec::new(),
        map => vec![labels(map)],
    };
    for one in selector["matchExpressions"].as_array().into_iter().flatten() {
        let values = one["values"].as_array().into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        let key = one["key"].as_str().unwrap_or_default();
        all.push(match one["operator"].as_str() {
            Some("In") => format!("{key} in ({})", values.join(",")),
            Some("NotIn") => format!("{key} notin ({})", values.join(",")),
            Some("Exists") => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    if all.is_empty() {
        return "<none>".to_owned();
    }
    all.join(",")
}

fn since(object: &Value, pointer: &str, now: Timestamp) -> String {
    age(string(object, pointer), now)
}

/// How long ago a time was.
pub(crate) fn age(at: &str, now: Timestamp) -> String {
    match at.parse::<Timestamp>() {
        Ok(at) => human(now.as_second() - at.as_second()),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// A time span, as exact as one wants to read it.
fn human(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let two = |whole: i64, unit: &str, part: i64, small: &str| match part {
        0 => format!("{whole}{unit}"),
        part => format!("{whole}{unit}{part}{small}"),
    };
    match () {
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 192 => two(days, "d", hours % 24, "h"),
        () if days < 730 => format!("{days}d"),
        () if days < 2920 => two(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_as_kubectl_tells_them() {
        let cases = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 120, "3h2m"),
            (47 * 3600, "47h"),
            (50 * 3600, "2d2h"),
            (30 * 86400, "30d"),
            (800 * 86400, "2y70d"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn a_cordoned_node_and_a_going_pod_say_so() {
        let node =
            json!({"spec": {"unschedulable": true}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!((nodes()[1].fill)(&node, now), "Ready,SchedulingDisabled");
        let pod = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}});
        assert_eq!((pods()[2].fill)(&pod, now), "Terminating");
    }
}
