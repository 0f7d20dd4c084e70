//! What is particular to pods: defaults, deletion with grace, eviction under budgets, binding.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    Failure, Resource,
    address::Key,
    selector::Selector,
    store::Store,
    write::{self, Deletion, Part},
};

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn budgets() -> Resource {
    Resource::new("policy", "poddisruptionbudgets")
}

/// Gives a pod the priority of its class: the one it names, or that of all pods that name none. A cluster without
/// classes is one of a test that has none, for the real server brings two.
pub(crate) fn rank(store: &Store, key: &Key, pod: &mut Value) -> Result<(), Failure> {
    let named = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let is_it = |class: &Value| match named.as_str() {
        "" => class["globalDefault"] == true,
        name => class["metadata"]["name"] == name,
    };
    let kind = Resource::new("scheduling.k8s.io", "priorityclasses");
    let mut classes = store.all(&kind).peekable();
    if classes.peek().is_none() {
        return Ok(());
    }
    let Some(class) = classes.find(|class| is_it(class)) else {
        let why = format!("no PriorityClass with name {named} was found");
        let is_wrong = !named.is_empty();
        return if is_wrong {
            Err(Failure::forbidden(&pods(), key, &why))
        } else {
            Ok(())
        };
    };
    pod["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
    pod["spec"]["priority"] = class["value"].clone();
    if pod["spec"]["preemptionPolicy"].is_null() && !class["preemptionPolicy"].is_null() {
        pod["spec"]["preemptionPolicy"] = class["preemptionPolicy"].clone();
    }
    Ok(())
}

/// Fills in what every pod has.
pub(crate) fn complete(pod: &mut Value) {
    let defaults = [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
        ("enableServiceLinks", json!(true)),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
        ("priority", json!(0)),
    ];
    let spec = write::fields(&mut pod["spec"]);
    for (field, value) in defaults {
        spec.entry(field).or_insert(value);
    }
    tolerate_trouble(&mut pod["spec"]);
    let class = quality(&pod["spec"]);
    let status = write::fields(&mut pod["status"]);
    status.entry("phase").or_insert_with(|| json!("Pending"));
    status.entry("qosClass").or_insert_with(|| json!(class));
    if pod["spec"]["schedulingGates"]
        .as_array()
        .is_some_and(|gates| !gates.is_empty())
    {
        let gated = json!({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates"});
        pod["status"]["conditions"] = json!([gated]);
    }
}

/// Pods stay five minutes on a node that is in trouble unless they say otherwise.
fn tolerate_trouble(spec: &mut Value) {
    if !spec["tolerations"].is_array() {
        spec["tolerations"] = json!([]);
    }
    let Some(tolerations) = spec["tolerations"].as_array_mut() else {
        return;
    };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|one| {
            let is_key = one["key"] == key || (one["key"].is_null() && one["operator"] == "Exists");
            is_key && (one["effect"].is_null() || one["effect"] == "NoExecute")
        });
        if !tolerated {
            tolerations
                .push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
}

fn quality(spec: &Value) -> &'static str {
    let containers: Vec<&Value> = ["containers", "initContainers"]
        .iter()
        .filter_map(|field| spec[field].as_array())
        .flatten()
        .collect();
    let has = |container: &Value, field: &str, name: &str| !container["resources"][field][name].is_null();
    let matters = ["cpu", "memory"];
    let asks = |container: &&Value| {
        matters
            .iter()
            .any(|name| has(container, "requests", name) || has(container, "limits", name))
    };
    let is_bounded = |container: &&Value| {
        matters.iter().all(|name| {
            let resources = &container["resources"];
            let (asked, limit) = (&resources["requests"][name], &resources["limits"][name]);
            !limit.is_null() && (asked.is_null() || asked == limit)
        })
    };
    if !containers.iter().any(asks) {
        "BestEffort"
    } else if containers.iter().all(is_bounded) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// How long a pod may take to end: none where nobody runs it.
pub(crate) fn grace_seconds(pod: &Value, asked: Option<i64>) -> i64 {
    let is_bound = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let is_over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !is_bound || is_over {
        return 0;
    }
    let own = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    asked.unwrap_or(own).max(0)
}

/// Evicts a pod if the budgets allow it.
pub(crate) fn evict(store: &mut Store, key: &Key, eviction: &Value, now: Timestamp) -> Result<(), Failure> {
    let pod = Arc::clone(store.get(&pods(), key)?);
    let mut deletion = Deletion::of(&eviction["deleteOptions"]);
    if !ignores_budgets(&pod) {
        consult_budgets(store, key, &pod, now)?;
    }
    write::preconditions("", key, &pod, &deletion)?;
    deletion.resource_version = None;
    mark(store, key, &pod, now)?;
    write::delete(store, &pods(), key, &deletion, now).map(drop)
}

fn mark(store: &mut Store, key: &Key, pod: &Value, now: Timestamp) -> Result<(), Failure> {
    let mut marked = pod.clone();
    let condition = json!({
        "type": "DisruptionTarget", "status": "True",
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
    });
    set_condition(&mut marked, condition, now);
    write::update(store, &pods(), key, Part::Status, marked).map(drop)
}

/// Sets a condition; its time moves only when its status does.
pub(crate) fn set_condition(object: &mut Value, mut condition: Value, now: Timestamp) {
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = object["status"]["conditions"].as_array_mut() else {
        return;
    };
    let known = conditions.iter_mut().find(|known| known["type"] == condition["type"]);
    let same = known
        .as_ref()
        .is_some_and(|known| known["status"] == condition["status"]);
    condition["lastTransitionTime"] = match &known {
        Some(known) if same => known["lastTransitionTime"].clone(),
        _ => write::time(now),
    };
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// A pod that is not serving, or already going, is nobody's business.
fn ignores_budgets(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str();
    matches!(phase, Some("Succeeded" | "Failed" | "Pending")) || !pod["metadata"]["deletionTimestamp"].is_null()
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn consult_budgets(store: &mut Store, key: &Key, pod: &Value, now: Timestamp) -> Result<(), Failure> {
    let covers = |budget: &&Arc<Value>| {
        let selector = Selector::of_object(budget["spec"].get("selector"));
        budget["metadata"]["namespace"] == key.0 && selector.is_some_and(|selector| selector.chooses(pod))
    };
    let covering: Vec<Arc<Value>> = store.all(&budgets()).filter(covers).cloned().collect();
    match covering.as_slice() {
        [] => Ok(()),
        [budget] => consult(store, key, pod, budget, now),
        _ => Err(Failure {
            code: 500,
            reason: String::new(),
            message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
                .to_owned(),
            details: None,
        }),
    }
}

fn consult(store: &mut Store, key: &Key, pod: &Value, budget: &Value, now: Timestamp) -> Result<(), Failure> {
    let status = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let (healthy, desired) = (status("currentHealthy"), status("desiredHealthy"));
    if !is_ready(pod) {
        let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
        if always || (healthy >= desired && desired > 0) {
            return Ok(());
        }
    }
    let name = budget["metadata"]["name"].as_str().unwrap_or_default();
    if status("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(&cause, Some(10)));
    }
    if status("disruptionsAllowed") < 0 {
        let resource = Resource::new("policy", "poddisruptionbudget");
        let key = (String::new(), name.to_owned());
        return Err(Failure::forbidden(
            &resource,
            &key,
            "pdb disruptions allowed is negative",
        ));
    }
    if status("disruptionsAllowed") == 0 {
        return Err(refused(&why_none(budget, name, healthy, desired), None));
    }
    let mut spent = budget.clone();
    let left = status("disruptionsAllowed") - 1;
    spent["status"]["disruptionsAllowed"] = json!(left);
    write::fields(&mut spent["status"]["disruptedPods"]).insert(key.1.clone(), write::time(now));
    if left == 0 {
        let generation = budget["metadata"]["generation"].clone();
        let condition = json!({
            "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
            "observedGeneration": generation,
        });
        set_condition(&mut spent, condition, now);
    }
    let budget_key = (key.0.clone(), name.to_owned());
    write::update(store, &budgets(), &budget_key, Part::Status, spent).map(drop)
}

fn why_none(budget: &Value, name: &str, healthy: i64, desired: i64) -> String {
    let conditions = budget["status"]["conditions"].as_array().into_iter().flatten();
    let said = conditions
        .filter(|one| one["type"] == "DisruptionAllowed" && one["status"] == "False")
        .find_map(|one| {
            Some((
                one["reason"].as_str()?,
                one["message"].as_str().filter(|said| !said.is_empty())?,
            ))
        });
    match said {
        Some(("SyncFailed", message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        ),
        _ if healthy <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        }
        Some((reason, message)) => {
            format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}")
        }
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

fn refused(cause: &str, retry_after: Option<u64>) -> Failure {
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]});
    if let Some(seconds) = retry_after {
        details["retryAfterSeconds"] = json!(seconds);
    }
    Failure {
        code: 429,
        reason: "TooManyRequests".to_owned(),
        message: "Cannot evict pod as it would violate the pod's disruption budget.".to_owned(),
        details: Some(details),
    }
}

/// Binds a pod to a node.
pub(crate) fn bind(store: &mut Store, key: &Key, binding: &Value, now: Timestamp) -> Result<(), Failure> {
    let pod = Arc::clone(store.get(&pods(), key)?);
    write::is_current(&pods(), key, &pod, binding)?;
    let no = |why: String| Err(Failure::conflict(&Resource::new("", "pods/binding"), key, &why));
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return no(format!("pod {} is being deleted, cannot be assigned to a host", key.1));
    }
    if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
        return no(format!("pod {} is already assigned to node \"{node}\"", key.1));
    }
    if pod["spec"]["schedulingGates"]
        .as_array()
        .is_some_and(|gates| !gates.is_empty())
    {
        return no(format!("pod {} has non-empty .spec.schedulingGates", key.1));
    }
    let mut bound = (*pod).clone();
    bound["spec"]["nodeName"] = binding["target"]["name"].clone();
    write::fields(&mut bound["status"]).remove("nominatedNodeName");
    set_condition(&mut bound, json!({"type": "PodScheduled", "status": "True"}), now);
    // The API server binds below its strategies, so a binding counts as no generation.
    store.put(&pods(), key.clone(), bound);
    Ok(())
}
