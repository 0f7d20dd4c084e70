//! `--scheduler-config`: what the cluster's scheduler is configured to do to pods that do not say how to spread.
//!
//! A strict YAML or JSON document, valid exactly when kube-scheduler's own would be; the words are upstream's.

use api::labels::syntax::key_faults;
use model::object::{List, TopologySpreadConstraint};
use serde_json::{Map, Value};

const CONSTRAINT_FIELDS: &[&str] = &[
    "maxSkew",
    "topologyKey",
    "whenUnsatisfiable",
    "labelSelector",
    "minDomains",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "matchLabelKeys",
];

/// The default constraints of a document; none of an empty one.
pub(super) fn parse(text: &str) -> Result<List<TopologySpreadConstraint>, String> {
    if text.is_empty() {
        return Ok(List::default());
    }
    let decoding = |fault: String| format!("decoding scheduler config, {fault}");
    let document: Value = serde_saphyr::from_str(text).map_err(|error| decoding(error.to_string()))?;
    let constraints = decode(&document)
        .map_err(|fault| decoding(format!("error unmarshaling JSON: while decoding JSON: {fault}")))?;
    validate(&constraints)?;
    Ok(constraints.into())
}

fn decode(document: &Value) -> Result<Vec<TopologySpreadConstraint>, String> {
    let Some(spread) = field(document, "SchedulerConfiguration", &["podTopologySpread"])?.get("podTopologySpread")
    else {
        return Ok(Vec::new());
    };
    let Some(constraints) =
        field(spread, "PodTopologySpreadConfig", &["defaultConstraints"])?.get("defaultConstraints")
    else {
        return Ok(Vec::new());
    };
    for constraint in constraints.as_array().into_iter().flatten() {
        field(constraint, "TopologySpreadConstraint", CONSTRAINT_FIELDS)?;
    }
    if constraints.is_null() {
        return Ok(Vec::new());
    }
    serde_json::from_value(constraints.clone()).map_err(|error| error.to_string())
}

/// The fields of an object, all of which must be known.
fn field<'a>(value: &'a Value, what: &str, known: &[&str]) -> Result<&'a Map<String, Value>, String> {
    static NOTHING: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    let fields = match value {
        Value::Null => return Ok(&NOTHING),
        Value::Object(fields) => fields,
        _ => return Err(format!("{value} is not an object of type {what}")),
    };
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(format!("json: unknown field {unknown:?}")),
        None => Ok(fields),
    }
}

fn validate(constraints: &[TopologySpreadConstraint]) -> Result<(), String> {
    let at = "validating scheduler config, podTopologySpread.defaultConstraints";
    for (index, constraint) in constraints.iter().enumerate() {
        if let Some(fault) = fault_of(constraint) {
            return Err(format!("{at}[{index}]{fault}"));
        }
        let same = |other: &TopologySpreadConstraint| {
            (&other.topology_key, &other.when_unsatisfiable)
                == (&constraint.topology_key, &constraint.when_unsatisfiable)
        };
        if let Some(twin) = constraints.iter().take(index).position(same) {
            let (key, when) = (&constraint.topology_key, &constraint.when_unsatisfiable);
            return Err(format!("{at}[{index}] is a duplicate of [{twin}], {{{key}, {when}}}"));
        }
    }
    Ok(())
}

/// What is wrong with a constraint, to be read after its place.
fn fault_of(constraint: &TopologySpreadConstraint) -> Option<String> {
    let key = &*constraint.topology_key;
    let when = &*constraint.when_unsatisfiable;
    if constraint.max_skew <= 0 {
        return Some(".maxSkew must be greater than 0".to_owned());
    }
    if key.is_empty() {
        return Some(".topologyKey must be set".to_owned());
    }
    let faults = key_faults(key);
    if !faults.is_empty() {
        return Some(format!(
            ".topologyKey {key:?} is not a valid label name, {}",
            faults.join(", ")
        ));
    }
    if when != "DoNotSchedule" && when != "ScheduleAnyway" {
        return Some(format!(
            r#".whenUnsatisfiable {when:?} must be one of "DoNotSchedule" or "ScheduleAnyway""#
        ));
    }
    if constraint.label_selector.is_some() {
        return Some(".labelSelector must not be set, as selectors are deduced for each pod".to_owned());
    }
    (!constraint.match_label_keys.is_empty())
        .then(|| ".matchLabelKeys must not be set, as it has no effect on default constraints".to_owned())
}
