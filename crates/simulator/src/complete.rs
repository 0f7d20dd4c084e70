//! What does the API server fill into objects of built-in kinds, and what does it not take? The part of its rules that
//! people meet; only strangers are held to it.

use serde_json::{Value, json};

use crate::{Resource, metadata, schema::Problem, selector::Selector, write::fields};

/// Fills in what is left out.
pub(crate) fn complete(resource: &Resource, object: &mut Value) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod_spec(&mut object["spec"], true),
        ("", "services") => service(&mut object["spec"]),
        ("", "secrets") => default(object, &[("type", json!("Opaque"))]),
        ("", "persistentvolumeclaims") => default(&mut object["spec"], &[("volumeMode", json!("Filesystem"))]),
        ("apps", "deployments") => {
            default(
                &mut object["spec"],
                &[
                    ("replicas", json!(1)),
                    ("revisionHistoryLimit", json!(10)),
                    ("progressDeadlineSeconds", json!(600)),
                    ("strategy", json!({"type": "RollingUpdate"})),
                ],
            );
            let strategy = &mut object["spec"]["strategy"];
            default(strategy, &[("type", json!("RollingUpdate"))]);
            if strategy["type"] == "RollingUpdate" {
                let surge = [("maxSurge", json!("25%")), ("maxUnavailable", json!("25%"))];
                default(&mut strategy["rollingUpdate"], &surge);
            }
            template(&mut object["spec"]);
        }
        ("apps", "replicasets") => {
            default(&mut object["spec"], &[("replicas", json!(1))]);
            template(&mut object["spec"]);
        }
        ("apps", "daemonsets") => {
            let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
            default(
                &mut object["spec"],
                &[("revisionHistoryLimit", json!(10)), ("updateStrategy", rolling)],
            );
            template(&mut object["spec"]);
        }
        ("apps", "statefulsets") => {
            default(
                &mut object["spec"],
                &[
                    ("replicas", json!(1)),
                    ("revisionHistoryLimit", json!(10)),
                    ("podManagementPolicy", json!("OrderedReady")),
                    (
                        "persistentVolumeClaimRetentionPolicy",
                        json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
                    ),
                    (
                        "updateStrategy",
                        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
                    ),
                ],
            );
            template(&mut object["spec"]);
        }
        ("batch", "jobs") => job(object),
        ("batch", "cronjobs") => {
            default(
                &mut object["spec"],
                &[
                    ("concurrencyPolicy", json!("Allow")),
                    ("suspend", json!(false)),
                    ("successfulJobsHistoryLimit", json!(3)),
                    ("failedJobsHistoryLimit", json!(1)),
                ],
            );
            template(&mut object["spec"]["jobTemplate"]["spec"]);
        }
        ("scheduling.k8s.io", "priorityclasses") => {
            default(object, &[("preemptionPolicy", json!("PreemptLowerPriority"))]);
        }
        ("storage.k8s.io", "storageclasses") => default(
            object,
            &[
                ("reclaimPolicy", json!("Delete")),
                ("volumeBindingMode", json!("Immediate")),
            ],
        ),
        ("rbac.authorization.k8s.io", "clusterrolebindings" | "rolebindings") => {
            for subject in object["subjects"].as_array_mut().into_iter().flatten() {
                if subject["kind"] != "ServiceAccount" {
                    default(subject, &[("apiGroup", json!("rbac.authorization.k8s.io"))]);
                }
            }
        }
        _ => {}
    }
}

fn default(object: &mut Value, values: &[(&str, Value)]) {
    let known = fields(object);
    for (field, value) in values {
        known.entry(*field).or_insert_with(|| value.clone());
    }
}

fn template(spec: &mut Value) {
    if spec["template"].is_object() {
        pod_spec(&mut spec["template"]["spec"], false);
    }
}

fn job(object: &mut Value) {
    let spec = &mut object["spec"];
    default(
        spec,
        &[
            ("backoffLimit", json!(6)),
            ("completionMode", json!("NonIndexed")),
            ("suspend", json!(false)),
            ("manualSelector", json!(false)),
            ("podReplacementPolicy", json!("TerminatingOrFailed")),
        ],
    );
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        default(spec, &[("completions", json!(1))]);
    }
    default(spec, &[("parallelism", json!(1))]);
    template(spec);
}

fn pod_spec(spec: &mut Value, is_pod: bool) {
    default(
        spec,
        &[
            ("restartPolicy", json!("Always")),
            ("terminationGracePeriodSeconds", json!(30)),
            ("dnsPolicy", json!("ClusterFirst")),
            ("schedulerName", json!("default-scheduler")),
            ("securityContext", json!({})),
        ],
    );
    if is_pod {
        default(
            spec,
            &[
                ("enableServiceLinks", json!(true)),
                ("serviceAccountName", json!("default")),
            ],
        );
    }
    if let Some(account) = spec["serviceAccountName"].as_str().map(str::to_owned) {
        default(spec, &[("serviceAccount", json!(account))]);
    }
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            complete_container(container);
        }
    }
}

fn complete_container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let tag = image.rsplit('/').next().and_then(|last| last.split_once(':'));
    let is_latest = tag.is_none_or(|(_, tag)| tag == "latest") && !image.contains('@');
    let policy = if is_latest { "Always" } else { "IfNotPresent" };
    default(
        container,
        &[
            ("imagePullPolicy", json!(policy)),
            ("resources", json!({})),
            ("terminationMessagePath", json!("/dev/termination-log")),
            ("terminationMessagePolicy", json!("File")),
        ],
    );
    for port in container["ports"].as_array_mut().into_iter().flatten() {
        default(port, &[("protocol", json!("TCP"))]);
    }
    let Some(limits) = container["resources"]["limits"].as_object().cloned() else {
        return;
    };
    for (name, limit) in limits {
        fields(&mut container["resources"]["requests"])
            .entry(name)
            .or_insert(limit);
    }
}

fn service(spec: &mut Value) {
    default(
        spec,
        &[
            ("type", json!("ClusterIP")),
            ("sessionAffinity", json!("None")),
            ("internalTrafficPolicy", json!("Cluster")),
            ("ipFamilies", json!(["IPv4"])),
            ("ipFamilyPolicy", json!("SingleStack")),
        ],
    );
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        let number = port["port"].clone();
        default(port, &[("protocol", json!("TCP")), ("targetPort", number)]);
    }
}

/// What is wrong with an object, which was another one before.
pub(crate) fn check(resource: &Resource, object: &Value, before: Option<&Value>) -> Vec<Problem> {
    let mut problems = Vec::new();
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => {
            check_pod(&object["spec"], "spec", &mut problems);
            if let Some(before) = before {
                keep_pod(&before["spec"], &object["spec"], &mut problems);
                let nominated = &object["status"]["nominatedNodeName"];
                let is_new = !nominated.is_null() && *nominated != before["status"]["nominatedNodeName"];
                if is_new && !object["spec"]["nodeName"].is_null() {
                    let why = "may not be set on pods that are already bound to a node";
                    problems.push(Problem::new(
                        "FieldValueForbidden",
                        "status.nominatedNodeName",
                        None,
                        why,
                    ));
                }
            }
        }
        ("", "nodes") => check_node(object, before, &mut problems),
        ("apps", "deployments" | "replicasets" | "daemonsets" | "statefulsets") => {
            check_workload(object, before, &mut problems);
        }
        ("batch", "jobs") => {
            let policy = &object["spec"]["template"]["spec"]["restartPolicy"];
            if *policy != "Never" && *policy != "OnFailure" {
                let choices = ["OnFailure".to_owned(), "Never".to_owned()];
                let field = "spec.template.spec.restartPolicy";
                problems.push(Problem::unsupported(field, policy.clone(), &choices));
            }
        }
        ("policy", "poddisruptionbudgets") => {
            let spec = &object["spec"];
            if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
                let why = "minAvailable and maxUnavailable cannot be both set";
                problems.push(Problem::invalid("spec", spec.clone(), why));
            }
        }
        _ => {}
    }
    problems
}

fn check_pod(spec: &Value, path: &str, problems: &mut Vec<Problem>) {
    let containers = spec["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if containers.is_empty() {
        problems.push(Problem::required(&format!("{path}.containers"), ""));
    }
    for (at, container) in containers.iter().enumerate() {
        for field in ["name", "image"] {
            if container[field].as_str().unwrap_or_default().is_empty() {
                problems.push(Problem::required(&format!("{path}.containers[{at}].{field}"), ""));
            }
        }
        let doubled = |other: &Value| other["name"] == container["name"] && !container["name"].is_null();
        if containers[..at].iter().any(doubled) {
            let field = format!("{path}.containers[{at}].name");
            problems.push(Problem::new(
                "FieldValueDuplicate",
                &field,
                Some(container["name"].clone()),
                "",
            ));
        }
    }
    let policy = spec["restartPolicy"].as_str().unwrap_or("Always");
    if !["Always", "OnFailure", "Never"].contains(&policy) {
        let choices = ["Always", "OnFailure", "Never"].map(str::to_owned);
        problems.push(Problem::unsupported(
            &format!("{path}.restartPolicy"),
            json!(policy),
            &choices,
        ));
    }
}

/// Little of a pod can be changed once it is there.
fn keep_pod(before: &Value, after: &Value, problems: &mut Vec<Problem>) {
    let frozen = |spec: &Value| {
        let mut spec = spec.clone();
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                fields(container).remove("image");
            }
        }
        let spec_fields = fields(&mut spec);
        for free in [
            "activeDeadlineSeconds",
            "tolerations",
            "schedulingGates",
            "terminationGracePeriodSeconds",
        ] {
            spec_fields.remove(free);
        }
        for list in ["containers", "initContainers", "ephemeralContainers", "nodeName"] {
            if spec_fields.get(list).is_some_and(Value::is_null) {
                spec_fields.remove(list);
            }
        }
        spec
    };
    let count = |spec: &Value| spec["containers"].as_array().map_or(0, Vec::len);
    if count(before) != count(after) {
        let why = "pod updates may not add or remove containers";
        problems.push(Problem::new("FieldValueForbidden", "spec.containers", None, why));
    } else if before != after && frozen(before) != frozen(after) {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,\
                   `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                   existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                   previously negative)";
        problems.push(Problem::new("FieldValueForbidden", "spec", None, why));
    }
}

fn check_node(node: &Value, before: Option<&Value>, problems: &mut Vec<Problem>) {
    let taints = node["spec"]["taints"].as_array().map(Vec::as_slice).unwrap_or_default();
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    for (at, taint) in taints.iter().enumerate() {
        let effect = taint["effect"].as_str().unwrap_or_default();
        let field = format!("metadata.taints[{at}]");
        if !effects.contains(&effect) {
            let choices = effects.map(str::to_owned);
            problems.push(Problem::unsupported(
                &format!("{field}.effect"),
                json!(effect),
                &choices,
            ));
        }
        let same = |other: &Value| (&other["key"], &other["effect"]) == (&taint["key"], &taint["effect"]);
        if taints[..at].iter().any(same) {
            problems.push(Problem::new(
                "FieldValueDuplicate",
                &field,
                Some(taint.clone()),
                "taints must be unique by key and effect pair",
            ));
        }
    }
    let provider = |node: &Value| node["spec"]["providerID"].as_str().unwrap_or_default().to_owned();
    if let Some(before) = before
        && !provider(before).is_empty()
        && provider(before) != provider(node)
    {
        let why = "node updates may not change providerID except from \"\" to valid";
        problems.push(Problem::new("FieldValueForbidden", "spec.providerID", None, why));
    }
}

fn check_workload(object: &Value, before: Option<&Value>, problems: &mut Vec<Problem>) {
    let spec = &object["spec"];
    if let Some(replicas) = spec["replicas"].as_i64().filter(|replicas| *replicas < 0) {
        let why = "must be greater than or equal to 0";
        problems.push(Problem::invalid("spec.replicas", json!(replicas), why));
    }
    let labels = &spec["template"]["metadata"]["labels"];
    metadata::labels(labels, "spec.template.labels", problems);
    match Selector::of_object(spec.get("selector")) {
        None => {
            problems.push(Problem::required("spec.selector", ""));
            let why = "`selector` does not match template `labels`";
            let shown = if labels.is_null() { json!({}) } else { labels.clone() };
            problems.push(Problem::invalid("spec.template.metadata.labels", shown, why));
        }
        Some(selector) if selector.is_everything() => {
            let why = "empty selector is invalid for deployment";
            problems.push(Problem::invalid("spec.selector", json!({}), why));
        }
        Some(selector) => {
            if !selector.chooses(&spec["template"]) {
                let why = "`selector` does not match template `labels`";
                let shown = if labels.is_null() { json!({}) } else { labels.clone() };
                problems.push(Problem::invalid("spec.template.metadata.labels", shown, why));
            }
        }
    }
    check_pod(&spec["template"]["spec"], "spec.template.spec", problems);
    if let Some(before) = before
        && before["spec"]["selector"] != spec["selector"]
    {
        problems.push(Problem::invalid(
            "spec.selector",
            spec["selector"].clone(),
            "field is immutable",
        ));
    }
}
